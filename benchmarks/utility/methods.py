"""The methods of the table: predictions on the test rows at each requested budget.

Methods have their defaults, with two exceptions. `coinpress` gets the true class sizes, which it
takes as declared. `public` centres its rows and gets a window of similarities from the public rows.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from problems import Problem

import tacit
from tacit.learners.common.parameters import public_centre
from tacit.mechanisms import exponential, top_k
from tacit.mechanisms.noise import ResearchNoise
from tacit.models.decisions import NearestPrototype
from tacit.models.rows import unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

ROUGH_EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, math.inf)
FEW_EPSILONS = (0.1, 0.5, 2.0, 8.0, math.inf)
NAMED_EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 8.0)
SETTING_EPSILONS = (0.1, 0.5, 2.0)  # of settings with few cells
SEEDS, FEW_SEEDS, NAMED_SEEDS = 5, 3, 2
NAMED = " with names"
K = 5
# differs from the seeds of the problems, so that noise is independent of the choice of records
NOISE_SEEDS = 1000
QUANTILES = (0.9, 0.999)

Predictions = Iterator[tuple[float, NDArray[np.int64]]]


def budget(rough: float) -> str:
    """The budget at e on the axis of the papers: rho = e^2/2."""
    return f"rho={rough**2 / 2!r}"


def _learner(
    kind: type, *, named: bool = False, **parameters: object
) -> Callable[[Problem, int, Sequence[float]], Predictions]:
    def predictions(data: Problem, seed: int, roughs: Sequence[float]) -> Predictions:
        shared = {
            "classes": data.n_classes,
            "public": data.public,
            "noise": "research",
            "random_state": NOISE_SEEDS + seed,
        }
        if named:
            shared["names"] = data.names
        for rough in roughs:
            given = {
                name: value(data) if callable(value) else value
                for name, value in parameters.items()
            }
            yield (
                rough,
                kind(budget(rough), **shared | given).fit(data.x, data.y).predict(data.test_x),
            )

    return predictions


def _public(data: Problem, seed: int, roughs: Sequence[float], k: int) -> Predictions:
    """PublicPrototypes with scores computed once for all budgets; the selection is that of the
    learner.

    Rows are centred. The window comes from quantiles of the similarities between public rows.
    """
    centre = public_centre(data.public, data.public.shape[1])
    unit = unit_rows_about(data.public[:2000], centre)
    low, high = np.quantile(1 + unit @ unit.T, QUANTILES)
    learner = tacit.PublicPrototypes(
        "epsilon=inf",
        public=data.public,
        classes=data.n_classes,
        k=k,
        centre=True,
        d_min=low,
        d_max=high,
    )
    learner.fit(data.x, data.y)
    width = round(high * 2**36) - round(low * 2**36)
    scores = np.rint(learner.utilities_ * width).astype(np.int64)
    noise = ResearchNoise(NOISE_SEEDS + seed)
    for rough in roughs:
        if math.isinf(rough):
            yield rough, learner.predict(data.test_x)
            continue
        epsilon = Budget.parse(budget(rough)).exponential(Unit.ADD_REMOVE)
        facts = {"sensitivity": width, "epsilon": epsilon, "noise": noise}
        if k == 1:
            draw = [exponential.select(row, selection="exponential", **facts) for row in scores]
        else:
            draw = [top_k.select_set(row, k, **facts) for row in scores]
        arrays = {"prototypes": data.public[np.array(draw)], "centre": centre}
        decision = NearestPrototype("cosine", centred="rows and prototypes")
        yield rough, np.argmax(decision.similarities(arrays, data.test_x), axis=1)


METHODS: dict[str, Callable[[Problem, int, Sequence[float]], Predictions]] = {
    "auto": _learner(tacit.AutoPrototypes),
    "noisy-sum": _learner(tacit.NoisySumPrototypes),
    "coinpress": _learner(tacit.CoinPressPrototypes, counts=lambda data: np.maximum(data.sizes, 1)),
    "public": lambda data, seed, roughs: _public(data, seed, roughs, k=1),
    "public-5": lambda data, seed, roughs: _public(data, seed, roughs, k=K),
    "least-squares": _learner(tacit.LeastSquares),
    "gradient-descent": _learner(tacit.GradientDescent),
    "feature-covariance": _learner(tacit.FeatureCovariance),
    "global-adapt": _learner(tacit.GlobalAdapt),
    "newton": _learner(tacit.Newton),
    "projected": _learner(tacit.ProjectedPrototypes),
    f"auto{NAMED}": _learner(tacit.AutoPrototypes, named=True),
    f"gradient-descent{NAMED}": _learner(tacit.GradientDescent, named=True),
    "names": _learner(tacit.NamePrototypes, named=True),
}
EXPENSIVE = ("newton", "projected")
IN_FEW = ("auto", "noisy-sum", "least-squares", "gradient-descent", "feature-covariance")


def needs_names(method: str) -> bool:
    """Whether a method takes rows of class names."""
    return method == "names" or method.endswith(NAMED)


def grid(method: str, few: bool = False) -> tuple[tuple[float, ...], int]:
    """Rough epsilons and number of seeds of a method, in a setting with few or many cells."""
    if needs_names(method):
        return SETTING_EPSILONS if few else NAMED_EPSILONS, NAMED_SEEDS
    if few:
        return SETTING_EPSILONS, SEEDS if method in IN_FEW else 0
    return (FEW_EPSILONS, FEW_SEEDS) if method in EXPENSIVE else (ROUGH_EPSILONS, SEEDS)
