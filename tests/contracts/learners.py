"""How the contract tests make each learner small, on data drawn here."""

import numpy as np

from tacit.learners.methods import METHODS, load
from tacit.learners.prototypes.coinpress import PAPER_STEPS

RNG = np.random.default_rng(0)
WIDTH = 6
CENTRES = RNG.normal(size=(3, WIDTH)) * 3
X = np.concatenate([centre + RNG.normal(size=(40, WIDTH)) for centre in CENTRES])
Y = np.repeat([0, 1, 2], 40)
PUBLIC = np.concatenate([centre + RNG.normal(size=(20, WIDTH)) for centre in CENTRES])

CLASSES = {method: load(path) for method, path in METHODS.items()}
NEEDS = {
    method: ({"public": PUBLIC} if kind.needs_public else {})
    | ({"names": CENTRES} if kind.needs_names else {})
    for method, kind in CLASSES.items()
}
FEW = {  # steps, so that tests of all else are quick
    "gradient-descent": {"steps": 4},
    "global-adapt": {"steps": 4},
    "projected": {"steps": 4},
    "feature-covariance": {"epochs": 2},
    "newton": {"epochs": 1},
}
UNITS_OF = {method: kind.units for method, kind in CLASSES.items() if kind.units[0] != "add-remove"}
MOVED_BY_LESS = {
    "coinpress",
    "auto",
    "least-squares",
    "gradient-descent",
    "global-adapt",
    "feature-covariance",
    "newton",
}  # methods with sums that a replaced record moves by less than two
# methods that use no record
UNUSED = {method for method, kind in CLASSES.items() if not kind.uses_records}
NAMED = [method for method, kind in CLASSES.items() if "names" in kind.flat_parameters()]
STOPPING = {method for method, kind in CLASSES.items() if kind.stops_early}
AMPLE = {
    "pate": {"n_teachers": 40, "aggregator": "gnmax", "sigma": 8.0}
}  # what a method needs to do well on few records
EUCLIDEAN = {"coinpress"}  # methods to which a row of zeros is an ordinary point
BUDGETS = ("rho=0.5", "epsilon=1,delta=1e-6", "epsilon=1", "mu=1")
STRICT = (
    *BUDGETS,
    "rho=0.3",
    "rho=7.7",
    "rho=0.001",
    "epsilon=0.1,delta=1e-9",
    "epsilon=8.4,delta=1e-5",
    "epsilon=0.3",
    "epsilon=3.3",
    "mu=0.37",
    "tpr=0.1@fpr=0.01",
)
VARIANTS = {
    "noisy-sum": [{}, {"public": PUBLIC}],
    "names": [{}, {"public": PUBLIC}, {"public": PUBLIC, "adapt": True}],
    "auto": [{}, {"names": CENTRES}],
    "least-squares": [
        {},
        {"alpha": 0.5, "intercept": 0.5},
        {"public": PUBLIC, "normalise": False},
        {"counts": 40, "intercept": 0.5},
    ],
    "gradient-descent": [
        {},
        {"public": PUBLIC, "steps": 5, "intercept": 0.5, "names": CENTRES},
        {"counts": 40, "clip": 0.5, "balanced": False},
    ],
    "global-adapt": [
        {},
        {"public": PUBLIC, "steps": 5, "intercept": 0.5, "threshold": 0.5},
        {
            "counts": 40,
            "clip": 0.5,
            "balanced": False,
            "threshold_share": 0.3,
            "tolerance": 0.5,
            "names": CENTRES,
        },
    ],
    "projected": [
        {},
        {"public": PUBLIC, "steps": 5, "dimension": 2},
        {"counts": 40, "clip": 0.5, "balanced": False, "share": 0.3},
        {"prototypes": "public", "public": PUBLIC},
        {
            "prototypes": "public",
            "public": PUBLIC,
            "d_min": 0.5,
            "d_max": 1.5,
            "counts": 40,
            "share": 0.3,
        },
    ],
    "feature-covariance": [
        {},
        {"public": PUBLIC, "epochs": 5, "intercept": 0.5},
        {"clip": 0.5, "balanced": False, "damping": 5.0, "learning_rate": 1.0, "names": CENTRES},
    ],
    "newton": [
        {},
        {"public": PUBLIC, "epochs": 2, "intercept": 0.5, "alpha": 1.0},
        {"balanced": False, "damping": 5.0, "pooled": False},
    ],
    "public": [
        {"k": 1},
        {"k": 5},
        {"k": 1, "d_min": 0.5, "d_max": 1.5},
        {"k": 1, "selection": "permute-and-flip"},
        {"centre": True, "names": CENTRES},
        {"d_min": "public", "d_max": "public"},
    ],
    "coinpress": [
        {"steps": PAPER_STEPS},
        {"counts": 40},
        {"counts": [40, 40, 1], "pooling": 2, "public": PUBLIC, "metric": "euclidean"},
    ],
}
# where a record may have several labels: parameters to test, and the set that stands for each class
SEVERAL = {
    "gradient-descent": [
        {"most_labels": 2},
        {
            "most_labels": 1,
            "public": PUBLIC,
            "steps": 5,
            "intercept": 0.5,
            "clip": 0.5,
            "counts": 40,
            "names": CENTRES,
        },
    ],
    "noisy-sum": [{"most_labels": 1}, {"most_labels": 2, "public": PUBLIC}],
    "auto": [{"most_labels": 2, "names": CENTRES}],
    "least-squares": [{"most_labels": 2}, {"most_labels": 1, "public": PUBLIC, "intercept": 0.5}],
}
SEVERAL_CASES = [(method, variant) for method, given in SEVERAL.items() for variant in given]
SETS = np.array([[True, False, True], [True, True, True], [False, False, False]])
CASES = [(method, variant) for method in METHODS for variant in VARIANTS.get(method, [{}])]


def budget_of(method, amount=0.5):
    """A budget that the method takes: rho, or epsilon where it takes pure budgets alone."""
    kind = "epsilon" if CLASSES[method].budget_kinds == ("pure",) else "rho"
    return f"{kind}={amount}"


def learner_class(method):
    return load(METHODS[method])


def make(method, variant=None, **parameters):
    """A learner of this method with small public data and few steps, the class list declared."""
    given = {"classes": range(3)} | NEEDS.get(method, {}) | FEW.get(method, {})
    return learner_class(method).of_flat(**(given | (variant or {}) | parameters))


def labels_for(learner, y):
    """Classes y (n,), or the sets that stand for them if a record may have several labels."""
    if getattr(learner, "most_labels", None) is None:
        return y
    return SETS[y]


def same(one, other):
    """Whether two fitted learners would release the same arrays, bit for bit."""
    left, right = one.released_.arrays, other.released_.arrays
    return left.keys() == right.keys() and all(
        np.array_equal(left[name], right[name]) for name in left
    )


def finite(learner):
    """Whether all that a fitted learner would release is finite."""
    return all(np.isfinite(array).all() for array in learner.released_.arrays.values())
