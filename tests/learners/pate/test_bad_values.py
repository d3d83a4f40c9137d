"""Values of the wrong kind, given to the functions of `tacit.pate`: one line each."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import tacit
from messages import stating
from tacit.errors import InputError

VOTES = np.random.default_rng(0).integers(0, 3, (20, 12))
COUNTS = np.array([[60, 30, 10], [50, 45, 5]])
NOISE = {"aggregator": "confident", "sigma": 10.0, "sigma1": 10.0, "threshold": 5.0}
SPARSE, RAGGED = csr_matrix(np.eye(3)), [[1], [1, 2]]


def refused(function, facts, *given, **named):
    with pytest.raises(InputError, match=stating(*facts)) as caught:
        function(*given, **named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"votes": SPARSE}, ("votes", "sparse", "votes.toarray()")),
        (
            {"votes": RAGGED},
            ("votes", "different lengths"),
        ),
        ({"votes": -VOTES - 1}, ("3 classes",)),
        ({"votes": [["a", "b"]]}, ("votes", "dtype <U1", "whole numbers")),
        ({"classes": 1}, ("1 classes",)),
        (
            {"collector": ["gnmax"]},
            ("collector=['gnmax']", "gnmax, upsampling, vanishing, weighting"),
        ),
        (
            {"stopping": np.arange(3)},
            ("stopping=array([0, 1, 2])", "filter", "data-dependent"),
        ),
        (
            {"noise": np.arange(3)},
            ("noise=array([0, 1, 2])", "noise='secure'", "research"),
        ),
        ({"unit": SPARSE}, ("replace-person", "unit='replace'")),
        ({"unit": "add-remove"}, ("unit='add-remove'", "replace", "replace-person")),
    ],
)
def test_aggregate(given, facts):
    refused(
        tacit.pate.aggregate,
        facts,
        **{"votes": VOTES, "classes": 3, "budgets": 1.0} | NOISE | given,
    )


def test_scores_of_a_student():
    of_student = {"aggregator": "interactive", "confidence": 0.5, "budgets": 1.0, "classes": 3}
    for scores, facts in (
        (SPARSE, ("student_scores", "sparse")),
        (RAGGED, ("student_scores", "array")),
    ):
        refused(tacit.pate.aggregate, facts, VOTES, student_scores=scores, **NOISE | of_student)


@pytest.mark.parametrize("function", [tacit.pate.rdp, tacit.pate.rdp_per_vote])
@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"votes": RAGGED}, ("votes", "different lengths", "per class")),
        ({"votes": SPARSE}, ("votes", "sparse")),
        ({"votes": -COUNTS}, ("votes", "int64", "(2, 3)", ">= 0")),
        ({"orders": "high"}, ("orders", "numbers", "[2, 8, 32]")),
        ({"orders": RAGGED}, ("orders", "numbers")),
        (
            {"answered": "yes"},
            ("answered", "numbers", "2 queries"),
        ),
        ({"aggregator": np.arange(3)}, ("aggregator=array([0, 1, 2])", "gnmax")),
        ({"exact_q": np.arange(3)}, ("exact_q=array([0, 1, 2])", "True", "False")),
    ],
)
def test_data_dependent_costs(function, given, facts):
    refused(function, facts, **{"votes": COUNTS, "sigma": 10.0, "orders": [2, 8]} | given)


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"counts": RAGGED}, ("counts", "numbers", "per class")),
        ({"counts": SPARSE}, ("counts", "sparse")),
        ({"counts": "many"}, ("counts", "numbers")),
        ({"counts": -COUNTS}, ("counts", "(2, 3)", "negative")),
        (
            {"truth": RAGGED},
            ("truth", "different lengths", "2 simulated queries"),
        ),
        ({"truth": ["a", "b"]}, ("truth", "(2,)", "dtype <U1")),
        (
            {"aggregator": np.arange(3)},
            ("aggregator=array([0, 1, 2])", "confident, gnmax"),
        ),
        ({"seed": -1}, ("seed=-1", "0")),
        ({"accuracy": 10**400}, ("0 to 1",)),
    ],
)
def test_calibration(given, facts):
    refused(tacit.pate.calibrate, facts, **{"budget": 1.0, "counts": COUNTS} | given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_queries", -1),
        ("n_teachers", "many"),
        ("n_teachers", 0),
        ("n_classes", 1),
        ("n_classes", RAGGED),
        ("seed", -1),
    ],
)
def test_simulation(name, value):
    right = {"n_queries": 5, "n_teachers": 10, "n_classes": 3, "accuracy": 0.8}
    refused(
        tacit.pate.simulated_counts,
        (f"{name}={value!r}", "whole number"),
        **right | {name: value},
    )
