"""The one table of methods: command-line name -> where its class is, read without importing any
class.

Published names are in ALIASES, or in SETTINGS if they stand for a method with a parameter set.
"""

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
    "names": "tacit.learners.prototypes.names:NamePrototypes",
    "pate": "tacit.learners.pate.pate:PATE",
    "label-private": "tacit.learners.label_dp.label_private:LabelPrivate",
}

ALIASES: dict[str, str] = {
    "dppl-mean": "coinpress",
    "dppl-public": "public",
    "dp-ls": "least-squares",
    "dp-lp": "gradient-descent",
    "linear-probe": "gradient-descent",
    "dpsgd-global-adapt": "global-adapt",
    "dp-sgd-global-adapt": "global-adapt",
    "dp-newton": "newton",
    "dp-fc": "feature-covariance",
    "zero-shot": "names",
}

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "dppl-public-top-k": ("public", {"k": 5}),
    "top-k": ("public", {"k": 5}),
    "lnmax": ("pate", {"aggregator": "laplace"}),
    "gnmax": ("pate", {"aggregator": "gnmax"}),
    "confident-gnmax": ("pate", {"aggregator": "confident"}),
    "interactive-gnmax": ("pate", {"aggregator": "interactive"}),
    "ugnmax": ("pate", {"collector": "upsampling"}),
    "vgnmax": ("pate", {"collector": "vanishing"}),
    "wgnmax": ("pate", {"collector": "weighting"}),
    "rr": ("label-private", {"randomizer": "rr"}),
    "rr-with-prior": ("label-private", {"randomizer": "rr-with-prior", "prior": "clusters"}),
    "lp-1st": ("label-private", {"randomizer": "rr", "stages": 1}),
    "lp-2st": ("label-private", {"randomizer": "rr-with-prior", "stages": 2}),
    "lp-mst": ("label-private", {"randomizer": "rr-with-prior", "stages": 3}),
    "alibi": ("label-private", {"randomizer": "laplace"}),
}

IN_PYTHON: dict[str, str] = {"dpsgd": "tacit.DPSGD", "dp-sgd": "tacit.DPSGD"}
"""Published names of learners that commands and plans do not run, with the class of each."""


def method_called(name: str) -> str:
    """The name in METHODS for a published name such as DPPL-Mean; any other name unchanged."""
    return ALIASES.get(published(name), name)


def setting_called(name: str) -> tuple[str, dict[str, Any]] | None:
    """The method and the parameters that a published name stands for, if SETTINGS has it."""
    return SETTINGS.get(published(name))


def in_python(name: str) -> str | None:
    """Return what to do about a name of a learner that only Python has; None for other names."""
    learner = IN_PYTHON.get(published(name))
    if learner is None:
        return None
    return (
        f"is {learner}, which only Python has; use it there, or choose global-adapt or"
        " gradient-descent here"
    )


def published(name: str) -> str:
    """A name in lower case with hyphens, as in ALIASES and SETTINGS."""
    return "-".join(name.lower().replace("_", " ").split())


def name_of(learner_class: type) -> str:
    """The name in METHODS of a class; empty for classes that are not in the table."""
    path = f"{learner_class.__module__}:{learner_class.__qualname__}"
    for name, listed in METHODS.items():
        if listed == path:
            return name
    return ""


def load(path: str) -> Any:
    """The object that "module:name" names, or the module alone."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)
