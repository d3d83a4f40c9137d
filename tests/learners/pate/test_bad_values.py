"""Values of the wrong kind, given to the functions of `tacit.pate`: one line each."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import tacit
from tacit.errors import InputError

VOTES = np.random.default_rng(0).integers(0, 3, (20, 12))
COUNTS = np.array([[60, 30, 10], [50, 45, 5]])
NOISE = {"aggregator": "confident", "sigma": 10.0, "sigma1": 10.0, "threshold": 5.0}
SPARSE, RAGGED = csr_matrix(np.eye(3)), [[1], [1, 2]]


def refused(function, message, *given, **named):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        function(*given, **named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"votes": SPARSE}, "votes is a sparse matrix; pass a dense array, votes.toarray()"),
        (
            {"votes": RAGGED},
            "votes has entries of different lengths; pass one vote of every teacher",
        ),
        ({"votes": -VOTES - 1}, "which is not one of the 3 classes"),
        ({"votes": [["a", "b"]]}, "votes have dtype <U1; pass whole numbers"),
        ({"classes": 1}, "which is not one of the 1 classes"),
        (
            {"collector": ["gnmax"]},
            "collector=['gnmax'] must be one of gnmax, upsampling, vanishing, weighting",
        ),
        (
            {"stopping": np.arange(3)},
            "stopping=array([0, 1, 2]) must be one of filter, data-dependent",
        ),
        (
            {"noise": np.arange(3)},
            "noise=array([0, 1, 2]) must be one of secure, research; pass noise='secure'",
        ),
        ({"unit": SPARSE}, "must be one of replace, replace-person; pass unit='replace'"),
        ({"unit": "add-remove"}, "unit='add-remove' must be one of replace, replace-person"),
    ],
)
def test_aggregate(given, message):
    refused(
        tacit.pate.aggregate,
        message,
        **{"votes": VOTES, "classes": 3, "budgets": 1.0} | NOISE | given,
    )


def test_scores_of_a_student():
    of_student = {"aggregator": "interactive", "confidence": 0.5, "budgets": 1.0, "classes": 3}
    for scores, message in (
        (SPARSE, "student_scores is a sparse matrix"),
        (RAGGED, "student_scores is not an array"),
    ):
        refused(tacit.pate.aggregate, message, VOTES, student_scores=scores, **NOISE | of_student)


@pytest.mark.parametrize("function", [tacit.pate.rdp, tacit.pate.rdp_per_vote])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"votes": RAGGED}, "votes has entries of different lengths; pass votes per class, >= 0"),
        ({"votes": SPARSE}, "votes is a sparse matrix"),
        ({"votes": -COUNTS}, "votes have dtype int64 and shape (2, 3); pass votes per class, >= 0"),
        ({"orders": "high"}, "orders is not an array of numbers; pass for example [2, 8, 32]"),
        ({"orders": RAGGED}, "orders is not an array of numbers"),
        (
            {"answered": "yes"},
            "answered is not an array of numbers; pass one value from 0 to 1 for each of 2 queries",
        ),
        ({"aggregator": np.arange(3)}, "aggregator=array([0, 1, 2]) must be one of gnmax"),
        ({"exact_q": np.arange(3)}, "exact_q=array([0, 1, 2]) must be True or False"),
    ],
)
def test_data_dependent_costs(function, given, message):
    refused(function, message, **{"votes": COUNTS, "sigma": 10.0, "orders": [2, 8]} | given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"counts": RAGGED}, "counts is not an array of numbers; pass votes per class"),
        ({"counts": SPARSE}, "counts is a sparse matrix"),
        ({"counts": "many"}, "counts is not an array of numbers"),
        ({"counts": -COUNTS}, "counts have shape (2, 3), or hold a negative or infinite number"),
        (
            {"truth": RAGGED},
            "truth has entries of different lengths; pass the class of each of 2 simulated queries",
        ),
        ({"truth": ["a", "b"]}, "truth has shape (2,) and dtype <U1; pass the class"),
        (
            {"aggregator": np.arange(3)},
            "aggregator=array([0, 1, 2]) must be one of confident, gnmax",
        ),
        ({"seed": -1}, "seed=-1 must be a whole number from 0"),
        ({"accuracy": 10**400}, "must be a number from 0 to 1; correct it"),
    ],
)
def test_calibration(given, message):
    refused(tacit.pate.calibrate, message, **{"budget": 1.0, "counts": COUNTS} | given)


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
        f"{name}={value!r} must be a whole number from",
        **right | {name: value},
    )
