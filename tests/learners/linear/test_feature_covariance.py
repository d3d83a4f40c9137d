import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.balance import COUNT_SHARE, ClassCounts
from tacit.learners.common.preconditioning import NOISE_IN_LOGIT, damping_for
from tacit.learners.linear import feature_covariance as module
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel, compose


def direct(rows, y, n_classes, epochs, rate, ridge, balanced, clip=np.inf, damping=None):
    """Steps of (G + damping I)^-1 times the gradient [Mehta et al. 2023, DP-FC] in plain numpy,
    without noise.
    """
    shares = np.bincount(y, minlength=n_classes) + 1.0
    offsets = np.log(shares / shares.mean()) * balanced
    matrix = rows.T @ rows + (ridge * n_classes if damping is None else damping) * np.eye(
        rows.shape[1]
    )
    head = np.zeros((n_classes, rows.shape[1]))
    for _ in range(epochs):
        residual = softmax(rows @ head.T + offsets, axis=1) - np.eye(n_classes)[y]
        residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
        head = head - rate * np.linalg.solve(matrix, (residual.T @ rows + ridge * head).T).T
    return head


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("public", [None, PUBLIC])
def test_infinite_budget_is_the_direct_formula(public, balanced):
    rows = unit(X) if public is None else unit(unit(X) - unit(public).mean(axis=0))
    model = tacit.FeatureCovariance("rho=inf", classes=4, public=public, balanced=balanced).fit(
        X, Y
    )
    expected = direct(rows, Y, 4, 40, 4.0, 0.3, balanced)
    assert np.allclose(model.coefficients_, expected, rtol=1e-9, atol=1e-10)
    assert np.array_equal(model.predict(X), (rows @ expected.T).argmax(axis=1))


def test_descent_that_runs_long_enough_is_logistic_regression():
    model = tacit.FeatureCovariance(
        "rho=inf", classes=4, balanced=False, ridge=1.0, epochs=500
    ).fit(X, Y)
    reference = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(unit(X), Y)
    assert np.allclose(model.coefficients_, reference.coef_, atol=1e-4)


def test_a_large_budget_is_the_clipped_formula():
    settings = {"epochs": 3, "learning_rate": 4.0, "ridge": 1.0, "damping": 2.0}
    model = tacit.FeatureCovariance("rho=1e9", classes=4, balanced=False, clip=0.5, **settings).fit(
        X, Y
    )
    expected = direct(unit(X), Y, 4, 3, 4.0, 1.0, False, clip=0.5, damping=2.0)
    assert np.allclose(model.coefficients_, expected, atol=0.02)
    assert not np.allclose(
        expected, direct(unit(X), Y, 4, 3, 4.0, 1.0, False, damping=2.0), atol=0.1
    )


def test_the_budget_is_spent_in_moments_epochs_and_counts():
    promise, z = (
        tacit.FeatureCovariance("rho=0.5", epochs=7).promise(),
        Budget.parse("rho=0.5").gaussian(split=True),
    )
    parts = [
        8 * Gaussian(z * (8 / (1 - COUNT_SHARE)) ** 0.5),
        Parallel(Gaussian(z / COUNT_SHARE**0.5), "classes"),
    ]
    assert promise.event == compose(parts)
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    assert tacit.FeatureCovariance(
        "rho=0.5", epochs=7, balanced=False
    ).promise().event == 8 * Gaussian(z * 8**0.5)
    declared = tacit.FeatureCovariance("rho=0.5", epochs=7, counts=125).promise()
    assert declared.event == 8 * Gaussian(z * 8**0.5)
    assert declared.unprotected == (*promise.unprotected, "class counts (declared)")


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_noise_of_each_part_agrees_with_its_event(monkeypatch, clip):
    """Over 200 draws. Damping and learning rate so large that the head of one epoch is minus the
    noisy gradient.
    """
    nothing = np.zeros((2, 20)), np.array([0, 1])
    seen = []
    monkeypatch.setattr(
        module, "spectrum", lambda moments: seen.append(moments) or np.linalg.eigh(moments)
    )
    settings = {
        "epochs": 1,
        "learning_rate": 1e12,
        "damping": 1e12,
        "counts": 1,
        "clip": clip,
        "noise": "research",
    }
    models = [
        tacit.FeatureCovariance("rho=2", classes=2, random_state=s, **settings) for s in range(200)
    ]
    heads = np.stack([model.fit(*nothing).coefficients_.ravel() for model in models])
    ((event, count),) = models[0].promise().event.counted()
    assert count == 2
    moments = np.stack(seen)[:, *np.triu_indices(20)]
    assert heads.var() == pytest.approx((clip * event.noise_multiplier) ** 2, rel=0.05)
    assert moments.var() == pytest.approx(event.noise_multiplier**2, rel=0.05)
    both = np.column_stack([heads, moments])
    assert np.abs(np.corrcoef(both, rowvar=False) - np.eye(250)).max() < 0.5


def test_epochs_draw_fresh_noise_at_the_multiplier_of_the_event(steps_drawn):
    model = tacit.FeatureCovariance(
        "rho=0.1", classes=4, epochs=12, counts=125, noise="research", random_state=0
    )
    ((event, count),) = model.fit(X, Y).guarantee_.event.counted()
    assert len(steps_drawn) == count - 1 == 12
    assert {z for z, _ in steps_drawn} == {event.noise_multiplier}
    noise = np.stack([drawn.ravel() for _, drawn in steps_drawn])
    assert np.abs(np.corrcoef(noise) - np.eye(12)).max() < 0.8
    assert noise.std() == pytest.approx(event.noise_multiplier, rel=0.15)


def test_the_counts_are_noisy_unless_declared(monkeypatch):
    seen = []
    monkeypatch.setattr(
        ClassCounts, "log_shares", lambda _, counts: seen.append(counts) or np.zeros(4)
    )

    def counts(n, seed, **parameters):
        seen.clear()
        model = tacit.FeatureCovariance(
            "rho=0.005", classes=4, noise="research", random_state=seed, **parameters
        )
        model.fit(X[:n], Y[:n])
        return list(seen)

    drawn = np.concatenate([counts(500, seed) for seed in range(30)])
    assert drawn.shape == (30, 4)
    assert drawn.std(axis=0) == pytest.approx([100] * 4, rel=0.5)
    assert np.array_equal(counts(400, 0, counts=[1, 2, 3, 4]), [[1, 2, 3, 4]])
    assert not counts(400, 0, balanced=False)


@pytest.mark.parametrize("kind", [tacit.FeatureCovariance, tacit.Newton])
def test_counts_are_refused_where_they_would_go_unused(kind):
    with pytest.raises(InputError, match=stating("counts=125", "balanced=False")):
        kind("rho=0.5", balanced=False, counts=125).promise()


def test_damping_is_the_least_that_noise_allows():
    values = np.array([100.0, 10.0, 1.0, 0.0])
    shares = values / values.sum()
    assert damping_for(values, 0.1, 2.0) == 2.0
    assert damping_for(values, 0.0, 1e-9) == 1e-9
    for deviation in (10.0, 1e3, 1e6):
        found = damping_for(values, deviation, 0.1)
        assert deviation * np.sqrt(np.sum(shares / (values + found) ** 2)) == pytest.approx(
            NOISE_IN_LOGIT, rel=1e-6
        )
    assert damping_for(np.zeros(4), 3.0, 0.1) == pytest.approx(3.0 / NOISE_IN_LOGIT)


def test_damping_grows_with_noise():
    fits = {"classes": 4, "counts": 125, "noise": "research", "random_state": 0}
    small, large = (
        tacit.FeatureCovariance(budget, **fits).fit(X, Y) for budget in ("rho=1e6", "rho=0.01")
    )
    assert small.damping_ == pytest.approx(0.3 * 4 + (21 / 2e6) ** 0.5 * 12**0.5)
    assert large.damping_ > 1000
    assert tacit.FeatureCovariance("rho=0.01", damping=3.0, **fits).fit(X, Y).damping_ == 3.0


@pytest.mark.thorough
@pytest.mark.slow
def test_accuracy_on_a_tenth_of_real_embeddings(cifar100):
    """With a hundred times the rho, noise is to signal as in the whole."""
    settings = {"classes": 100, "public": cifar100.public, "noise": "research", "random_state": 0}
    for rho, floor in (("inf", 0.6), (3200, 0.6), (12.5, 0.59)):
        model = tacit.FeatureCovariance(f"rho={rho}", **settings).fit(
            cifar100.train_x[:5000], cifar100.train_y[:5000]
        )
        assert model.score(cifar100.test_x, cifar100.test_y) > floor


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, stating("Gaussian", "pure epsilon")),
        ({"epochs": 0}, InputError, "epochs=0 must be a whole number"),
        ({"clip": 0}, InputError, "clip=0 must be a number"),
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
        tacit.FeatureCovariance(**({"classes": 4} | parameters)).fit(X, Y)
