"""The methods of the table: predictions on the test rows at each requested budget.

Methods have their defaults, with two exceptions. `coinpress` gets the true class sizes, which it
takes as declared, and rescales rows only where they are shorter than it assumes. `public` centres
its rows and gets a window of similarities from the public rows.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from problems import Problem

import tacit
from tacit.mechanisms import exponential, top_k
from tacit.mechanisms.noise import ResearchNoise
from tacit.models.decisions import NearestPrototype
from tacit.models.public_rows import public_centre
from tacit.models.rows import unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

# rough epsilons: of most methods, of expensive ones, of methods that take names, and of all methods
# in settings with few cells
ROUGH_EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, math.inf)
FEW_EPSILONS = (0.1, 0.5, 2.0, 8.0, math.inf)
NAMED_EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 8.0)
SETTING_EPSILONS = (0.1, 0.5, 2.0)

# numbers of seeds: of most methods, of expensive ones, and of methods that take names
SEEDS = 5
FEW_SEEDS = 3
NAMED_SEEDS = 2

# end of the name of a method that takes names
NAMED = " with names"

# public rows a class in "public-5"
K = 5

# differs from the seeds of the problems, so that noise is independent of the choice of records
NOISE_SEEDS = 1000

# of the similarities of public rows: ends of the clip window of `public`
QUANTILES = (0.9, 0.999)

# rough epsilon and predictions of the test rows
Predictions = Iterator[tuple[float, NDArray[np.int64]]]

# of a problem, at a seed and at several rough epsilons
Method = Callable[[Problem, int, Sequence[float]], Predictions]


def budget(rough: float) -> str:
    """Return the budget at e on the axis of the papers: rho = e^2/2."""
    return f"rho={rough**2 / 2!r}"


def _learner(learner_class: type, *, with_names: bool = False) -> Method:
    """Return the method that fits a learner with its defaults."""

    def predictions(data: Problem, seed: int, roughs: Sequence[float]) -> Predictions:
        parameters = _common_parameters(data, seed)
        if with_names:
            parameters["names"] = data.names
        for rough in roughs:
            learner = learner_class(budget(rough), **parameters).fit(data.x, data.y)
            yield rough, learner.predict(data.test_x)

    return predictions


def _common_parameters(data: Problem, seed: int) -> dict[str, object]:
    return {
        "classes": data.n_classes,
        "public": data.public,
        "noise": "research",
        "random_state": NOISE_SEEDS + seed,
    }


def _coinpress(data: Problem, seed: int, roughs: Sequence[float]) -> Predictions:
    """CoinPressPrototypes with the true class sizes, of which each must be 1 or more."""
    parameters = _common_parameters(data, seed) | {"counts": np.maximum(data.sizes, 1)}
    if not rows_are_short(data.public):
        del parameters["public"]
    for rough in roughs:
        learner = tacit.CoinPressPrototypes(budget(rough), **parameters).fit(data.x, data.y)
        yield rough, learner.predict(data.test_x)


def rows_are_short(public: NDArray[np.floating]) -> bool:
    """Return true if public rows are shorter than rows of unit variance.

    CoinPressPrototypes should then rescale rows. Longer rows are clipped, which costs less than to
    shorten all of them.
    """
    median_norm = float(np.median(np.linalg.norm(public.astype(np.float64), axis=1)))
    return median_norm < math.sqrt(public.shape[1])


def _public(data: Problem, seed: int, roughs: Sequence[float], k: int) -> Predictions:
    """PublicPrototypes with scores that are computed once for all budgets.

    The selection is that of the learner. Rows are centred. The window comes from quantiles of the
    similarities between public rows.
    """
    centre = public_centre(data.public, data.public.shape[1])
    unit_rows = unit_rows_about(data.public[:2000], centre)
    low, high = np.quantile(1 + unit_rows @ unit_rows.T, QUANTILES)
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

    # utilities are in units of the sensitivity; the mechanisms take integers
    sensitivity = round(high * 2**36) - round(low * 2**36)
    scores = np.rint(learner.utilities_ * sensitivity).astype(np.int64)
    noise = ResearchNoise(NOISE_SEEDS + seed)
    for rough in roughs:
        if math.isinf(rough):
            yield rough, learner.predict(data.test_x)
            continue

        epsilon = Budget.parse(budget(rough)).exponential(Unit.ADD_REMOVE)
        common = {"sensitivity": sensitivity, "epsilon": epsilon, "noise": noise}
        rows = []
        for class_scores in scores:
            if k == 1:
                row = exponential.select(class_scores, selection="exponential", **common)
            else:
                row = top_k.select_set(class_scores, k, **common)
            rows.append(row)
        arrays = {"prototypes": data.public[np.array(rows)], "centre": centre}
        decision = NearestPrototype("cosine", centred="rows and prototypes")
        yield rough, np.argmax(decision.similarities(arrays, data.test_x), axis=1)


METHODS: dict[str, Method] = {
    "auto": _learner(tacit.AutoPrototypes),
    "noisy-sum": _learner(tacit.NoisySumPrototypes),
    "coinpress": _coinpress,
    "public": partial(_public, k=1),
    "public-5": partial(_public, k=K),
    "least-squares": _learner(tacit.LeastSquares),
    "gradient-descent": _learner(tacit.GradientDescent),
    "feature-covariance": _learner(tacit.FeatureCovariance),
    "global-adapt": _learner(tacit.GlobalAdapt),
    "newton": _learner(tacit.Newton),
    "projected": _learner(tacit.ProjectedPrototypes),
    f"auto{NAMED}": _learner(tacit.AutoPrototypes, with_names=True),
    f"gradient-descent{NAMED}": _learner(tacit.GradientDescent, with_names=True),
    "names": _learner(tacit.NamePrototypes, with_names=True),
}
EXPENSIVE = ("newton", "projected")

# methods without names that are compared in settings with few cells, too
IN_FEW = ("auto", "noisy-sum", "least-squares", "gradient-descent", "feature-covariance")


def needs_names(method: str) -> bool:
    """Return true if a method takes rows of class names."""
    return method == "names" or method.endswith(NAMED)


def grid(method: str, few: bool = False) -> tuple[tuple[float, ...], int]:
    """Return the rough epsilons and the number of seeds of a method.

    `few` is for a setting with few cells.
    """
    if needs_names(method):
        return (SETTING_EPSILONS if few else NAMED_EPSILONS), NAMED_SEEDS
    if few and method in IN_FEW:
        return SETTING_EPSILONS, SEEDS
    if few:
        return SETTING_EPSILONS, 0
    if method in EXPENSIVE:
        return FEW_EPSILONS, FEW_SEEDS
    return ROUGH_EPSILONS, SEEDS
