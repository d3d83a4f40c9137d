import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.balance import COUNT_SHARE
from tacit.learners.common.preconditioning import NOISE_IN_LOGIT
from tacit.learners.common.softmax import logits
from tacit.learners.linear import newton
from tacit.learners.linear.newton import (
    exact_derivatives,
    expected_second_derivatives,
    noisy_derivatives,
    pooled,
    weighted,
)
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded, weighted_product_sums
from tacit.models.spectra import spectrum
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel, compose


def direct(rows, y, n_classes, epochs, alpha, balanced):
    """Newton's steps [Mehta et al. 2023, DP-Newton], one class after the other, without noise;
    ridge 0.3.

    Of the loss sum_i w_i log(1 + exp(-s_i (theta'x_i + offset))) with s_i = 1 and w_i = 1 for
    records of the class, and s_i = -1 and w_i = alpha for the others.
    """
    masses = np.bincount(y, minlength=n_classes) + 1.0
    heads = []
    for k in range(n_classes):
        weight, positive = np.where(y == k, 1.0, alpha), (y == k).astype(float)
        offset = np.log(masses[k] / (alpha * (masses.sum() - masses[k]))) if balanced else 0.0
        head = np.zeros(rows.shape[1])
        for _ in range(epochs):
            p = 1 / (1 + np.exp(-(rows @ head + offset)))
            gradient = rows.T @ (weight * (p - positive)) + 0.3 * head
            hessian = (rows.T * (weight * p * (1 - p))) @ rows + 0.3 * np.eye(len(head))
            head = head - np.linalg.solve(hessian, gradient)
        heads.append(head)
    return np.array(heads)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("alpha", [None, 1.0, 0.05])
def test_infinite_budget_is_the_direct_formula(alpha, balanced):
    rows = unit(unit(X) - unit(PUBLIC).mean(axis=0))
    model = tacit.Newton("rho=inf", classes=4, public=PUBLIC, alpha=alpha, balanced=balanced).fit(
        X, Y
    )
    expected = direct(rows, Y, 4, 8, 1 / 3 if alpha is None else alpha, balanced)
    assert np.allclose(model.coefficients_, expected, rtol=1e-9, atol=1e-10)
    assert np.array_equal(model.predict(X), (rows @ expected.T).argmax(axis=1))


def test_the_limit_is_weighted_logistic_regression_of_each_class_against_the_rest():
    model = tacit.Newton("rho=inf", classes=4, balanced=False, ridge=1.0, epochs=20).fit(X, Y)
    for k in range(4):
        reference = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000)
        reference.fit(unit(X), k == Y, sample_weight=np.where(k == Y, 1, 1 / 3))
        assert np.allclose(model.coefficients_[k], reference.coef_[0], atol=1e-4)


def test_a_large_budget_is_near_the_non_private_form():
    exact = tacit.Newton("rho=inf", classes=4, epochs=3).fit(X, Y)
    near = tacit.Newton("rho=1e9", classes=4, epochs=3).fit(X, Y)
    assert np.allclose(near.coefficients_, exact.coefficients_, atol=0.05)


def contributions(rows, labels, head, alpha):
    """Sums of gradients and of Hessians over records in integer units, as the learner hands them to
    the mechanism.
    """
    bound = (1 + (len(head) - 1) * alpha**2) ** 0.5
    whole = rounded(rows)
    first, second = weighted(logits(whole, head), labels, alpha)
    width = rows.shape[1]
    hessians = weighted_product_sums(
        [(whole, second * (4 / bound))], n_weights=len(head), width=width
    )
    return product_sums([(first / bound, whole)], shape=head.shape), hessians


def squared(difference):
    return sum(int(value) ** 2 for value in difference.ravel())


@pytest.mark.parametrize("alpha", [0.01, 1 / 6, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_a_record_moves_both_stacks_by_at_most_one_unit(alpha, scale):
    """Neighbours in exact arithmetic: all classes together, whatever the head."""
    rng = np.random.default_rng(1)
    rows, labels = unit(rng.normal(size=(40, 5))), rng.integers(0, 7, 40)
    head = rng.normal(size=(7, 5)) * scale
    whole = contributions(rows, labels, head, alpha)
    largest = [0, 0]
    for i in range(40):
        without = contributions(np.delete(rows, i, axis=0), np.delete(labels, i), head, alpha)
        moved = [squared(one - other) for one, other in zip(whole, without, strict=True)]
        assert max(moved) <= UNIT**2
        largest = np.maximum(largest, moved)
    if scale == 0:
        assert largest[0] > 0.24 * UNIT**2  # at the zero head every |p - [k = y]| is a half
        assert largest[1] > 0.99 * UNIT**2


def test_the_bound_on_gradients_is_reached():
    rows, head = np.array([[1.0]]), np.array([[-50.0], [50.0], [50.0]])
    gradients, _ = contributions(rows, np.array([0]), head, 0.7)
    assert squared(gradients) > 0.99 * UNIT**2


def test_derivatives_are_those_of_the_loss_and_do_not_depend_on_other_rows():
    rows, head = rounded(unit(X)), np.random.default_rng(1).normal(size=(4, 12)) * 5
    first, second = weighted(logits(rows, head), Y, 0.2)
    own = np.eye(4)[Y]
    weights, p = np.where(own, 1, 0.2), 1 / (1 + np.exp(-unit(X) @ head.T))
    assert np.allclose(first, weights * (p - own), atol=1e-3)
    assert np.allclose(second, weights * p * (1 - p), atol=1e-3)
    order = np.random.default_rng(3).permutation(500)
    for chosen in (order, order[:100], order[:1], order[::3]):
        again = weighted(logits(rounded(unit(X)[chosen]), head), Y[chosen], 0.2)
        assert np.array_equal(again[0], first[chosen])
        assert np.array_equal(again[1], second[chosen])


def test_the_budget_is_spent_in_gradients_hessians_and_counts():
    promise, z = (
        tacit.Newton("rho=0.5", epochs=3).promise(),
        Budget.parse("rho=0.5").gaussian(split=True),
    )
    parts = [
        6 * Gaussian(z * (6 / (1 - COUNT_SHARE)) ** 0.5),
        Parallel(Gaussian(z / COUNT_SHARE**0.5), "classes"),
    ]
    assert promise.event == compose(parts)
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    published = tacit.Newton("rho=0.5", epochs=3, balanced=False).promise()
    assert published.rho == pytest.approx(3 / 6)  # T/s^2
    declared = tacit.Newton("rho=0.5", epochs=3, counts=125).promise()
    assert declared.event == 6 * Gaussian(z * 6**0.5)
    assert declared.unprotected == (*promise.unprotected, "class counts (declared)")


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_noise_of_each_part_agrees_with_its_event(monkeypatch, alpha):
    """Variances over 2,000 draws: (s f)^2 and (s f/4)^2 with f^2 = 1 + (K - 1) alpha^2, fresh for
    each class.
    """
    settings = {"noise": "research", "random_state": 0, "balanced": False}
    model = tacit.Newton("rho=2", classes=3, alpha=alpha, epochs=2, **settings)
    ((event, count),) = model.promise().event.counted()
    assert count == 4
    rows, labels = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0, 2])
    calls = []

    def noted(*arguments, **settings):
        calls.append((arguments, settings))
        return noisy_derivatives(*arguments, **settings)

    monkeypatch.setattr(newton, "noisy_derivatives", noted)
    model.fit(rows, labels)
    (head, offsets, blocks), settings = calls[0]
    assert not head.any()
    assert not offsets.any()
    drawn = [noisy_derivatives(head, offsets, blocks, **settings) for _ in range(2000)]
    gradients, hessians = (np.stack([draw[i] for draw in drawn]) for i in (0, 1))
    exact = exact_derivatives(head, offsets, [Block(rows, labels)], alpha=alpha)
    deviation = event.noise_multiplier * (1 + 2 * alpha**2) ** 0.5
    assert gradients.var(axis=0).mean() == pytest.approx(deviation**2, rel=0.05)
    upper = hessians[:, :, *np.triu_indices(2)]
    assert upper.var(axis=0).mean() == pytest.approx((deviation / 4) ** 2, rel=0.05)
    assert np.array_equal(hessians, hessians.transpose(0, 1, 3, 2))
    assert np.allclose(gradients.mean(axis=0), exact[0], atol=5 * deviation / 2000**0.5)
    assert np.allclose(hessians.mean(axis=0), exact[1], atol=5 * deviation / 4 / 2000**0.5)
    flat = np.column_stack([gradients.reshape(2000, 6), upper.reshape(2000, 9)])
    assert np.abs(np.corrcoef(flat, rowvar=False) - np.eye(15)).max() < 0.12


def test_every_epoch_draws_fresh_noise_twice(monkeypatch):
    seen = []

    class Spy(ResearchNoise):
        def gaussian(self, values, scale):
            released = super().gaussian(values, scale)
            seen.append((scale / UNIT, (released - values).ravel()[:12] / scale))
            return released

    monkeypatch.setattr("tacit.learners.common.base.noise_source", lambda *_: Spy(0))
    model = tacit.Newton("rho=0.1", classes=4, epochs=5, counts=125).fit(X, Y)
    ((event, count),) = model.guarantee_.event.counted()
    assert len(seen) == count == 10
    assert {scale for scale, _ in seen} == {event.noise_multiplier}
    assert np.abs(np.corrcoef(np.stack([drawn for _, drawn in seen])) - np.eye(10)).max() < 0.95


def test_pooling_shrinks_by_as_much_as_noise_makes_matrices_differ():
    rng = np.random.default_rng(0)

    def symmetric(scale):
        upper = np.triu(rng.normal(size=(20, 15, 15)) * scale)
        return upper + np.triu(upper, 1).transpose(0, 2, 1)

    truth = np.diag(np.arange(15.0)) + symmetric(1.0)
    for deviation in (0.01, 1.0, 100.0):
        noisy = truth + symmetric(deviation)
        found, left = pooled(noisy, deviation)
        assert ((found - truth) ** 2).mean() < ((noisy - truth) ** 2).mean() * 1.001
        kept = 1 / (1 + deviation**2)
        assert np.allclose(
            found, noisy.mean(axis=0) + kept * (noisy - noisy.mean(axis=0)), atol=0.15 * deviation
        )
        assert left == pytest.approx(deviation * (kept**2 + (1 - kept**2) / 20) ** 0.5, rel=0.2)
    assert np.array_equal(pooled(np.zeros((1, 2, 2)), 1.0)[0], np.zeros((1, 2, 2)))


def test_noisy_hessians_need_no_luck():
    for pooling in (True, False):
        for seed in range(3):
            model = tacit.Newton(
                "rho=1e-6", classes=4, pooled=pooling, noise="research", random_state=seed
            ).fit(X, Y)
            assert np.isfinite(model.coefficients_).all()


def test_noise_in_a_logit_stays_within_its_limit():
    """Heads without signal: every row's logits, over seeds. To 10 %, since damping goes by the
    noisy Hessian.
    """
    x, y = np.zeros((1, 12)), np.array([0])
    settings = {"classes": 4, "counts": 125, "noise": "research"}
    for budget in ("rho=0.01", "rho=100"):
        heads = [
            tacit.Newton(budget, random_state=s, **settings).fit(x, y).coefficients_
            for s in range(40)
        ]
        assert (np.concatenate(heads) @ unit(X).T).std() < 1.1 * NOISE_IN_LOGIT


@pytest.mark.thorough
@pytest.mark.slow
def test_accuracy_on_a_tenth_of_real_embeddings(cifar10):
    """With a hundred times the rho, noise is to signal as in the whole. The Hessians of 100 classes
    take minutes.
    """
    settings = {"classes": 10, "public": cifar10.public, "noise": "research", "random_state": 0}
    for rho, floor in (("inf", 0.85), (3200, 0.84), (12.5, 0.82)):
        model = tacit.Newton(f"rho={rho}", **settings).fit(
            cifar10.train_x[:5000], cifar10.train_y[:5000]
        )
        assert model.score(cifar10.test_x, cifar10.test_y) > floor


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, stating("Gaussian", "pure epsilon")),
        ({"epochs": 0}, InputError, "epochs=0 must be a whole number"),
        ({"alpha": 0}, InputError, "alpha=0 must be a number"),
        ({"pooled": 1}, InputError, stating("pooled=1", "False", "True")),
        ({"counts": [1, 2]}, InputError, stating("one number", "4 classes")),
        ({"balanced": 1}, InputError, stating("balanced=1", "False", "True")),
        ({"ridge": 0}, InputError, "ridge=0 must be a number"),
        ({"damping": 0}, InputError, "damping=0 must be a number"),
        ({"learning_rate": -1}, InputError, "learning_rate=-1 must be a number"),
        ({"intercept": -1}, InputError, "intercept=-1 must be a number"),
        ({"public": np.ones((3, 2))}, InputError, "encode both the same way"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.Newton(**({"classes": 4} | parameters)).fit(X, Y)


def test_expected_weights_are_the_mean_over_the_label_that_the_head_expects():
    """A positive of probability q has the sigmoid p of weights 1 and alpha; the mean weight is q +
    (1 - q) alpha.
    """
    logits, alpha = np.array([[-3.0, 0.0, 2.0, 40.0]]), 0.25
    q = 1 / (1 + np.exp(-logits - np.log(alpha)))
    p = 1 / (1 + np.exp(-logits))
    assert np.allclose(q / (q + (1 - q) * alpha), p)
    assert np.allclose(
        expected_second_derivatives(logits, alpha), (q + (1 - q) * alpha) * p * (1 - p)
    )


@pytest.mark.parametrize("unit", ["change-label", "change-labels-of-person"])
def test_where_rows_are_public_hessians_have_no_noise_and_depend_on_no_label(unit):
    persons = np.arange(len(X)) // 2
    given = {} if unit == "change-label" else {"persons": persons}
    seen = []

    class Spy(ResearchNoise):
        def gaussian(self, values, scale):
            seen.append(values.shape)
            return super().gaussian(values, scale)

    def hessians(labels):
        """The matrices that the only step of a fit is divided by, one for each class."""
        matrices = []

        def noted(matrix):
            matrices.append(matrix.copy())
            return spectrum(matrix)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(newton, "spectrum", noted)
            tacit.Newton("rho=0.1", classes=4, epochs=1, counts=125, unit=unit).fit(
                X, labels, **given
            )
        assert len(matrices) == 4
        return matrices

    assert np.array_equal(hessians(Y), hessians((Y + 1) % 4))
    noise = pytest.MonkeyPatch()
    noise.setattr("tacit.learners.common.base.noise_source", lambda *_: Spy(0))
    model = tacit.Newton("rho=0.1", classes=4, epochs=3, counts=125, unit=unit).fit(X, Y, **given)
    noise.undo()
    assert seen == [(4, 12)] * 3
    assert model.guarantee_.rho == pytest.approx(0.1)


@pytest.mark.parametrize("alpha", [None, 1.0, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_changed_label_moves_the_gradients_by_what_their_noise_is_scaled_to(alpha, n_classes):
    """Largest distance over heads and labels, in units of the bound of a record."""
    model = tacit.Newton(
        "rho=0.5", classes=n_classes, alpha=alpha, unit="change-label", counts=10, epochs=1
    )
    facts = model.fit(X, Y % n_classes).released_.mechanism
    weight = facts["weight of a negative"]
    bound = (1 + (n_classes - 1) * weight**2) ** 0.5
    rng = np.random.default_rng(0)
    largest = 0.0
    for scale in (0.1, 3.0, 30.0):
        for _ in range(20):
            logits = np.tile(rng.normal(size=n_classes) * scale - scale, (n_classes, 1))
            first = weighted(logits, np.arange(n_classes), weight)[0] / bound
            largest = max(largest, max(np.linalg.norm(a - b) for a in first for b in first))
    z = Budget.parse("rho=0.5").gaussian(split=True)
    moved = facts["noise multiplier of the gradients of an epoch"] / z
    assert largest <= moved <= 2
    assert largest >= 0.9 * min(moved, 2)
