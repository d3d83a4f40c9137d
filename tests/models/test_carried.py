import re

import numpy as np
import pytest

from messages import stating
from tacit.models.carried import CarriedPosterior, carried, deciding, misfit
from tacit.models.posterior import ClassPosterior

C, D, P = 4, 6, 3
RNG = np.random.default_rng(0)
POSTERIOR = ClassPosterior(
    RNG.normal(size=(C, P)), np.full((C, P), 0.25), np.full(C, 7.0), 0.5, 0.75
)
AXES, VARIANCES, CLARITY = (
    np.linalg.qr(RNG.normal(size=(D, P)))[0],
    np.array([0.5, 0.25, 0.125]),
    np.full(C, 0.5),
)
KNOWN = CarriedPosterior(POSTERIOR, AXES, VARIANCES, CLARITY)
LINEAR = KNOWN.arrays({})
QUADRATIC = {"axes": AXES} | KNOWN.arrays({"axes": AXES})


def test_a_posterior_comes_back_as_it_was_in_float32():
    named = CarriedPosterior(POSTERIOR, AXES, VARIANCES, CLARITY, RNG.normal(size=(C, P)))
    back = carried(named.arrays({}))
    for name in ("axes", "variances", "clarity", "names"):
        np.testing.assert_array_equal(getattr(back, name), getattr(named, name).astype(np.float32))
    np.testing.assert_array_equal(back.posterior.mean, POSTERIOR.mean.astype(np.float32))
    np.testing.assert_array_equal(back.posterior.variance, POSTERIOR.variance)
    assert (back.posterior.within, back.posterior.trust) == (0.75, 0.5)
    assert carried({"coefficients": np.ones((C, D))}) is None


def test_the_axes_are_those_of_the_decision_where_it_has_some():
    assert "posterior.axes" in LINEAR
    assert "posterior.axes" not in QUADRATIC
    np.testing.assert_array_equal(carried(QUADRATIC).axes, AXES)
    assert set(deciding(QUADRATIC)) == {"axes"}


def test_variances_that_float32_rounds_to_zero_stay_above_it():
    tiny = CarriedPosterior(POSTERIOR, AXES, np.array([1.0, 1e-60, 0.0]), CLARITY)
    assert misfit(tiny.arrays({}), C, D) is None


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        ({"coefficients": np.ones((C, D))}, None),
        (LINEAR, None),
        (QUADRATIC, None),
        (LINEAR | {"posterior.names": np.ones((C, P), np.float32)}, None),
        (
            LINEAR | {"posterior.names": np.ones((C, P + 1), np.float32)},
            stating("posterior.names", "float32"),
        ),
        (
            {"posterior.axes": LINEAR["posterior.axes"]},
            "arrays of a posterior must be axes, .* and are axes",
        ),
        (
            LINEAR | {"posterior.other": np.ones(3, np.float32)},
            "arrays of a posterior must be .* and are .*other",
        ),
        (
            QUADRATIC | {"posterior.axes": LINEAR["posterior.axes"]},
            "arrays of a posterior must be clarity, means",
        ),
        (
            {name: array for name, array in LINEAR.items() if "axes" not in name},
            "a posterior needs its axes",
        ),
        (
            LINEAR | {"posterior.axes": np.ones(D, np.float32)},
            stating("posterior", "axes", "(d, p)"),
        ),
        (
            LINEAR | {"posterior.axes": np.ones((D + 1, P), np.float32)},
            stating("posterior.axes", "(7, 3)"),
        ),
        (
            LINEAR | {"posterior.means": np.ones((C + 1, P), np.float32)},
            stating("posterior.means", "float32"),
        ),
        (
            LINEAR | {"posterior.means": np.ones((C, P))},
            stating("posterior.means", "float64", "float32"),
        ),
        (
            LINEAR | {"posterior.means": np.full((C, P), np.nan, np.float32)},
            stating("posterior.means", "finite"),
        ),
        (
            LINEAR | {"posterior.spreads": np.zeros((C, P), np.float32)},
            "posterior.spreads must be above 0",
        ),
        (
            LINEAR | {"posterior.variances": np.full(P, -1, np.float32)},
            "posterior.variances must be above 0",
        ),
        (LINEAR | {"posterior.sizes": np.zeros(C, np.float32)}, "posterior.sizes must be above 0"),
        (
            LINEAR | {"posterior.clarity": np.full(C, 1.5, np.float32)},
            stating("posterior.clarity", "0", "1"),
        ),
        (
            LINEAR | {"posterior.shares": np.array([0.5, -0.5], np.float32)},
            stating("posterior.shares", "0", "1"),
        ),
        (
            LINEAR | {"posterior.shares": np.zeros(2, np.float32)},
            "posterior.shares must be above 0",
        ),
        (LINEAR | {"posterior.shares": np.array([1, 0], np.float32)}, None),
        (
            LINEAR | {"posterior.shares": np.ones(3, np.float32)},
            stating("posterior.shares", "float32", "(3,)"),
        ),
    ],
)
def test_arrays_that_do_not_fit(arrays, fault):
    found = misfit(arrays, C, D)
    assert found is None if fault is None else re.search(fault, found)
