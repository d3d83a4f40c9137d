from dataclasses import replace

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.overlap import OVERLAP


def direct(x, y, n_classes, rho, rng):
    """Section 3 of the specification in plain numpy."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    sums = np.stack([unit[y == c].sum(axis=0) for c in range(n_classes)])
    return sums + rng.normal(size=sums.shape) / np.sqrt(2 * rho)


def cosine_predictions(prototypes, x):
    unit = prototypes / np.linalg.norm(prototypes, axis=1, keepdims=True)
    return np.argmax(x / np.linalg.norm(x, axis=1, keepdims=True) @ unit.T, axis=1)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 12))
    y = rng.integers(0, 4, 500)
    return centres[y] * 2 + rng.normal(size=(500, 12)), y


def test_infinite_budget_is_the_sum_of_unit_rows_bit_for_bit(blobs):
    x, y = blobs
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    expected = np.stack([unit[y == c].sum(axis=0) for c in range(4)])
    for budget in ("rho=inf", "epsilon=inf"):
        model = tacit.NoisySumPrototypes(budget, classes=4).fit(x, y)
        assert np.array_equal(model.prototypes_, expected)
        assert np.array_equal(model.predict(x), cosine_predictions(expected, x))


def test_public_rows_centre_private_rows_and_rows_to_predict(blobs):
    x, y = blobs
    public = np.random.default_rng(5).normal(size=(40, 12)) + 2
    centre = (public / np.linalg.norm(public, axis=1, keepdims=True)).mean(axis=0)
    centred = x / np.linalg.norm(x, axis=1, keepdims=True) - centre
    plain = tacit.NoisySumPrototypes("rho=inf", classes=4).fit(centred, y)
    model = tacit.NoisySumPrototypes("rho=inf", classes=4, public=public).fit(x, y)
    assert np.allclose(model.prototypes_, plain.prototypes_)
    assert np.array_equal(model.predict(x), plain.predict(centred))
    promise = tacit.NoisySumPrototypes("rho=2", classes=4, public=public).promise()
    plain_promise = tacit.NoisySumPrototypes("rho=2", classes=4).promise()
    assert promise == replace(plain_promise, unprotected=(OVERLAP,))


@pytest.mark.parametrize("rho", [0.02, 2.0])
def test_noise_has_the_variance_of_the_specification(blobs, rho):
    x, y = blobs
    exact = tacit.NoisySumPrototypes("rho=inf", classes=4).fit(x, y).prototypes_
    draws = [
        tacit.NoisySumPrototypes(f"rho={rho}", classes=4, noise="research", random_state=seed)
        .fit(x, y)
        .prototypes_
        for seed in range(100)
    ]
    residual = np.stack(draws) - exact
    assert residual.var() == pytest.approx(1 / (2 * rho), rel=0.1)
    assert abs(residual.mean()) < 5 * np.sqrt(1 / (2 * rho) / residual.size)


def test_the_result_does_not_depend_on_order_or_scale_of_rows(blobs):
    x, y = blobs
    order = np.random.default_rng(1).permutation(len(x))
    fit = [
        tacit.NoisySumPrototypes("rho=1", classes=4, noise="research", random_state=0)
        .fit(*data)
        .prototypes_
        for data in ((x, y), (x[order], y[order]), (x * 2.0**10, y), (x * 2.0**-10, y))
    ]
    assert np.array_equal(fit[0], fit[1])
    assert np.array_equal(fit[0], fit[2])
    assert np.array_equal(fit[0], fit[3])


def test_rows_at_the_ends_of_the_float_range():
    x = np.array([[1e200, 0], [1e-200, 0], [0, 1e-310]])
    model = tacit.NoisySumPrototypes("rho=inf", classes=2).fit(x, [0, 0, 1])
    assert np.allclose(model.prototypes_, [[2, 0], [0, 1]])


@pytest.mark.slow
def test_accuracy_on_real_embeddings_is_that_of_the_direct_formula(cifar100):
    x, y, test_x, test_y = cifar100.train_x, cifar100.train_y, cifar100.test_x, cifar100.test_y
    model = tacit.NoisySumPrototypes("rho=0.5", classes=100).fit(x, y)
    reference = direct(x.astype(float), y, 100, 0.5, np.random.default_rng(0))
    expected = (cosine_predictions(reference, test_x.astype(float)) == test_y).mean()
    assert model.score(test_x, test_y) == pytest.approx(expected, abs=0.01)
    assert expected > 0.57


def test_bad_parameters():
    with pytest.raises(BudgetError, match=stating("Gaussian", "pure epsilon")):
        tacit.NoisySumPrototypes("epsilon=1", classes=2).promise()
    with pytest.raises(InputError, match="class 1 is listed twice"):
        tacit.NoisySumPrototypes(classes=[0, 1, 1]).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(InputError, match="noise='fast'"):
        tacit.NoisySumPrototypes(classes=2, noise="fast").fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(InputError, match="declare at least one class"):
        tacit.NoisySumPrototypes(classes=[]).fit([[1.0], [2.0]], [0, 1])
