import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.balance import COUNT_SHARE
from tacit.learners.common.descent import SAMPLING_IN_GRADIENT
from tacit.learners.common.softmax import residuals
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel, compose


@pytest.mark.parametrize("public", [None, PUBLIC])
def test_infinite_budget_is_logistic_regression(public):
    """Descent that runs long enough ends where scikit-learn's solver does."""
    rows = unit(X) if public is None else unit(unit(X) - unit(public).mean(axis=0))
    model = tacit.GradientDescent(
        "rho=inf",
        classes=4,
        public=public,
        balanced=False,
        ridge=1.0,
        steps=2000,
        learning_rate=4.0,
    ).fit(X, Y)
    reference = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows, Y)
    assert np.allclose(model.coefficients_, reference.coef_, atol=1e-5)
    assert np.array_equal(model.predict(X), reference.predict(rows))
    short = tacit.GradientDescent("rho=inf", classes=4, public=public, balanced=False).fit(X, Y)
    assert short.score(X, Y) == pytest.approx(reference.score(rows, Y), abs=0.02)


ZERO = np.zeros(4)


def test_balanced_learning_undoes_the_class_shares():
    """Logistic regression beside log shares, by another optimiser."""
    chosen = np.flatnonzero((Y > 0) | (np.arange(500) % 10 == 0))
    rows, labels = unit(X[chosen]), Y[chosen]
    shares = np.bincount(labels) + 1.0
    offsets = np.log(shares / shares.mean())

    def loss(flat):
        head = flat.reshape(4, 12)
        logits = rows @ head.T + offsets
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
        return losses.sum() + 0.5 * (head**2).sum()

    expected = minimize(loss, np.zeros(48), tol=1e-10).x.reshape(4, 12)
    settings = {"classes": 4, "ridge": 1.0, "learning_rate": 4.0}
    model = tacit.GradientDescent("rho=inf", steps=2000, **settings).fit(X[chosen], labels)
    assert np.allclose(model.coefficients_, expected, atol=1e-3)
    near = tacit.GradientDescent("rho=1e8", steps=400, clip=2, **settings).fit(X[chosen], labels)
    assert np.allclose(near.coefficients_, expected, atol=0.05)
    plain = tacit.GradientDescent("rho=inf", classes=4, balanced=False).fit(X[chosen], labels)
    assert (model.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()


def naive_gradients(rows, labels, head, clip):
    """Each record's gradient as a matrix of its own, clipped by its Frobenius norm, one after the
    other.
    """
    total = np.zeros_like(head)
    for x, y in zip(rows, labels, strict=True):
        gradient = np.outer(softmax(head @ x) - np.eye(len(head))[y], x)
        total += gradient * min(1, clip / np.linalg.norm(gradient))
    return total


@pytest.mark.parametrize("clip", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_clipping_is_that_of_every_single_gradient(clip, scale):
    head = np.random.default_rng(1).normal(size=(4, 12)) * scale
    rows = unit(X)
    found = (
        product_sums(
            [(residuals(rounded(rows), Y, head, ZERO) / clip, rounded(rows))], shape=(4, 12)
        )
        / UNIT
        * clip
    )
    assert np.allclose(found, naive_gradients(rows, Y, head, clip), atol=0.02)


def test_a_step_is_minus_the_clipped_gradient():
    settings = {
        "classes": 4,
        "steps": 1,
        "counts": 1,
        "learning_rate": 4.0,
        "clip": 0.3,
        "ridge": 0.0,
    }
    model = tacit.GradientDescent("rho=1e8", **settings).fit(X, Y)
    assert np.allclose(
        model.coefficients_, -naive_gradients(unit(X), Y, np.zeros((4, 12)), 0.3), atol=0.02
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (100, 256)])
def test_a_residual_does_not_depend_on_the_other_rows(scale, n_classes, width):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    rows, labels = unit(rng.normal(size=(301, width))), rng.integers(0, n_classes, 301)
    head = rng.normal(size=(n_classes, width)) * scale
    offsets = rng.normal(size=n_classes)
    whole = residuals(rounded(rows), labels, head, offsets)
    order = rng.permutation(301)
    for chosen in (np.arange(301)[::-1], order, order[:100], order[:1], order[::2]):
        assert np.array_equal(
            residuals(rounded(rows[chosen]), labels[chosen], head, offsets), whole[chosen]
        )


def test_residuals_are_softmax_less_one_hot():
    head = np.random.default_rng(1).normal(size=(4, 12)) * 5
    offsets = np.log([0.1, 0.2, 0.3, 0.4])
    expected = softmax(unit(X) @ head.T + offsets, axis=1) - np.eye(4)[Y]
    assert np.allclose(residuals(rounded(unit(X)), Y, head, offsets), expected, atol=1e-3)
    assert np.allclose(residuals(rounded(unit(X)), Y, head * 0, ZERO), 0.25 - np.eye(4)[Y])


def test_the_budget_is_spent_in_steps_and_a_count():
    promise = tacit.GradientDescent("rho=0.5", steps=7).promise()
    z = Budget.parse("rho=0.5").gaussian(split=True)
    of_step, of_count = z * (7 / (1 - COUNT_SHARE)) ** 0.5, z / COUNT_SHARE**0.5
    assert promise.event == compose(
        [7 * Gaussian(of_step), Parallel(Gaussian(of_count), "classes")]
    )
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    declared = tacit.GradientDescent("rho=0.5", steps=7, counts=125).promise()
    assert declared.event == 7 * Gaussian(z * 7**0.5)
    assert declared.unprotected == (*promise.unprotected, "class counts (declared)")


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_noise_of_each_step_agrees_with_its_event(clip):
    """Heads of one step without records, 100 entries over 200 draws: variance (learning rate x clip
    x z/n)^2.
    """
    nothing = np.zeros((2, 50)), np.array([0, 1])
    settings = {
        "classes": 2,
        "steps": 1,
        "counts": 1,
        "learning_rate": 1.0,
        "clip": clip,
        "noise": "research",
    }
    models = [
        tacit.GradientDescent("rho=2", random_state=s, **settings).fit(*nothing) for s in range(200)
    ]
    drawn = np.stack([model.coefficients_.ravel() for model in models])
    ((event, count),) = tacit.GradientDescent("rho=2", **settings).promise().event.counted()
    assert count == 1
    assert drawn.var() == pytest.approx((clip * event.noise_multiplier / 2) ** 2, rel=0.05)
    assert np.abs(np.corrcoef(drawn, rowvar=False) - np.eye(100)).max() < 0.5


def test_steps_draw_fresh_noise_at_the_multiplier_of_the_event(steps_drawn):
    model = tacit.GradientDescent(
        "rho=0.1", classes=4, steps=12, counts=125, noise="research", random_state=0
    )
    model.fit(X, Y)
    ((event, count),) = model.guarantee_.event.counted()
    assert len(steps_drawn) == count == 12
    assert {z for z, _ in steps_drawn} == {event.noise_multiplier}
    noise = np.stack([drawn.ravel() for _, drawn in steps_drawn])
    assert np.abs(np.corrcoef(noise) - np.eye(12)).max() < 0.8
    assert noise.std() == pytest.approx(event.noise_multiplier, rel=0.15)


def test_the_learning_rate_is_the_longest_that_noise_allows():
    def rate(rho, counts, **parameters):
        fit = {"classes": 4, "counts": counts, "noise": "research", "random_state": 0} | parameters
        return tacit.GradientDescent(f"rho={rho}", **fit).fit(X, Y).learning_rate_

    assert rate(1e6, 10**5) == 4
    assert rate(1e6, 10**5, public=PUBLIC) == 16
    assert rate(0.005, 125, steps=10) == pytest.approx(1.2 * 3 * 500 / (100 * 10), rel=1e-4)
    sampling = (SAMPLING_IN_GRADIENT * 60 * 125) ** 0.5
    assert rate(1e6, 125, public=PUBLIC) == pytest.approx(
        1.2 * 3 * 500 / (sampling * 60**1.5), rel=1e-3
    )


def test_the_count_is_noisy_unless_declared():

    def rate(n, seed, **parameters):
        model = tacit.GradientDescent(
            "rho=0.005", classes=4, steps=10, noise="research", random_state=seed, **parameters
        )
        return model.fit(X[:n], Y[:n]).learning_rate_

    rates = np.array([rate(500, seed) for seed in range(100)])
    step = (10 / (1 - COUNT_SHARE)) ** 0.5 * 10
    count = rates * 10**1.5 * step / 3.6
    low = 3.6 / (10**1.5 * step)  # of a count of 1, the least
    assert (rates >= low * 0.999).all()
    shown = count[count > 2]
    assert np.median(np.abs(shown - 500)) > 50
    assert rate(400, 0, counts=125) == rate(500, 1, counts=125)


def test_the_intercept_is_a_constant_column_that_counts_in_the_norm():
    rows = np.column_stack([unit(X), np.full(500, 0.5)]) / np.sqrt(1.25)
    model = tacit.GradientDescent(
        "rho=inf",
        classes=4,
        balanced=False,
        intercept=0.5,
        ridge=1.0,
        steps=2000,
        learning_rate=4.0,
    ).fit(X, Y)
    reference = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows, Y)
    scores = model.released_.decision.similarities(model.released_.arrays, X)
    assert np.allclose(scores, reference.decision_function(rows), atol=1e-4)


@pytest.mark.thorough
@pytest.mark.slow
def test_accuracy_on_real_embeddings_is_that_of_logistic_regression(cifar100):
    """Within a point of scikit-learn's."""
    model = tacit.GradientDescent("rho=inf", classes=100).fit(cifar100.train_x, cifar100.train_y)
    rows, test_rows = (unit(x.astype(float)) for x in (cifar100.train_x, cifar100.test_x))
    reference = LogisticRegression(C=1 / 0.3, fit_intercept=False, max_iter=1000).fit(
        rows, cifar100.train_y
    )
    expected = reference.score(test_rows, cifar100.test_y)
    assert model.score(cifar100.test_x, cifar100.test_y) == pytest.approx(expected, abs=0.01)
    assert expected > 0.68


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("centred", "floors"),
    [(True, {"inf": 0.6, 3200: 0.6, 12.5: 0.59}), (False, {3200: 0.6, 12.5: 0.58})],
)
def test_accuracy_on_a_tenth_of_real_embeddings(cifar100, centred, floors):
    """With a hundred times the rho, noise is to signal as in the whole."""
    settings = {
        "classes": 100,
        "public": cifar100.public if centred else None,
        "noise": "research",
        "random_state": 0,
    }
    for rho, floor in floors.items():
        model = tacit.GradientDescent(f"rho={rho}", **settings).fit(
            cifar100.train_x[:5000], cifar100.train_y[:5000]
        )
        assert model.score(cifar100.test_x, cifar100.test_y) > floor


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, stating("Gaussian", "pure epsilon")),
        ({"steps": 0}, InputError, "steps=0 must be a whole number"),
        ({"clip": 0}, InputError, "clip=0 must be a number"),
        ({"counts": [1, 2]}, InputError, stating("one number", "4 classes")),
        ({"balanced": 1}, InputError, stating("balanced=1", "False", "True")),
        ({"ridge": -1}, InputError, "ridge=-1 must be a number"),
        ({"learning_rate": 0}, InputError, "learning_rate=0 must be a number"),
        ({"intercept": -1}, InputError, "intercept=-1 must be a number"),
        ({"public": np.ones((3, 2))}, InputError, "encode both the same way"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.GradientDescent(**({"classes": 4} | parameters)).fit(X, Y)
