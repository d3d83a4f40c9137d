"""The one table of methods: command-line name -> where its class is. Read without importing any of them."""

from importlib import import_module
from typing import Any

METHODS: dict[str, str] = {
    "auto": "tacit.learners.prototypes.auto:AutoPrototypes",
    "noisy-sum": "tacit.learners.prototypes.noisy_sum:NoisySumPrototypes",
    "coinpress": "tacit.learners.prototypes.coinpress:CoinPressPrototypes",
    "least-squares": "tacit.learners.linear.least_squares:LeastSquares",
    "gradient-descent": "tacit.learners.linear.gradient_descent:GradientDescent",
    "global-adapt": "tacit.learners.linear.global_adapt:GlobalAdapt",
    "projected": "tacit.learners.prototypes.projected:ProjectedPrototypes",
    "feature-covariance": "tacit.learners.linear.feature_covariance:FeatureCovariance",
    "newton": "tacit.learners.linear.newton:Newton",
    "public": "tacit.learners.prototypes.public:PublicPrototypes",
    "pate": "tacit.learners.pate.pate:PATE",
    "label-private": "tacit.learners.label_dp.label_private:LabelPrivate",
}


def load(path: str) -> Any:
    """The object that "module:name" names, or the module alone."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)
