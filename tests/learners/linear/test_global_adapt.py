import numpy as np
import pytest
from scipy.special import softmax

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.common.balance import COUNT_SHARE
from tacit.learners.common.softmax import residuals
from tacit.learners.linear import global_adapt as module
from tacit.learners.linear.global_adapt import scaled
from tacit.mechanisms.counts import noisy_count
from tacit.mechanisms.gaussian import noisy_class_sums
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel, compose

ZERO = np.zeros(4)


def nesterov(gradient, theta, rate, steps):
    previous = ahead = theta
    for step in range(steps):
        theta = ahead - rate * gradient(ahead)
        ahead = theta + step / (step + 3) * (theta - previous)
        previous = theta
    return theta


def naive_gradients(rows, labels, head, threshold, clip, offsets=ZERO):
    """Each record's gradient as a matrix of its own, scaled by its Frobenius norm, one after the
    other.
    """
    total, norms = np.zeros_like(head), []
    for x, y in zip(rows, labels, strict=True):
        gradient = np.outer(softmax(head @ x + offsets) - np.eye(len(head))[y], x)
        norms.append(np.linalg.norm(gradient))
        total += gradient * (
            clip / threshold if norms[-1] <= threshold else min(1, clip / norms[-1])
        )
    return total, np.array(norms)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("public", [None, PUBLIC])
def test_infinite_budget_is_plain_gradient_descent(public, balanced):
    rows = unit(X) if public is None else unit(unit(X) - unit(public).mean(axis=0))
    offsets = np.log(np.bincount(Y) + 1.0) * balanced
    settings = {"classes": 4, "public": public, "steps": 40, "ridge": 0.7, "balanced": balanced}
    model = tacit.GlobalAdapt("rho=inf", **settings).fit(X, Y)

    def gradient(head):
        return (
            (softmax(rows @ head.T + offsets, axis=1) - np.eye(4)[Y]).T @ rows + 0.7 * head
        ) / 500

    expected = nesterov(gradient, np.zeros((4, 12)), 4 if public is None else 16, 40)
    assert np.allclose(model.coefficients_, expected)
    plain = tacit.GradientDescent("rho=inf", **settings).fit(X, Y)
    assert np.array_equal(model.coefficients_, plain.coefficients_)
    assert model.thresholds_.size == 0


@pytest.mark.parametrize("threshold", [0.2, 0.7, 1.4])
@pytest.mark.parametrize("clip", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_scaling_is_that_of_every_single_gradient(threshold, clip, scale):
    head = np.random.default_rng(1).normal(size=(4, 12)) * scale
    rows = rounded(unit(X))
    left, norms = scaled(residuals(rows, Y, head, ZERO), threshold, clip)
    expected, expected_norms = naive_gradients(unit(X), Y, head, threshold, clip)
    assert np.allclose(
        product_sums([(left, rows)], shape=(4, 12)) / UNIT * clip, expected, atol=0.02
    )
    assert np.allclose(norms, expected_norms, atol=1e-3)
    assert np.linalg.norm(left, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (100, 256)])
def test_the_scale_of_a_record_does_not_depend_on_the_other_rows(n_classes, width):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    rows, labels = unit(rng.normal(size=(301, width))), rng.integers(0, n_classes, 301)
    head = rng.normal(size=(n_classes, width))

    def of(chosen):
        return scaled(
            residuals(rounded(rows[chosen]), labels[chosen], head, np.zeros(n_classes)), 0.9, 1.0
        )

    left, norms = of(np.arange(301))
    order = rng.permutation(301)
    for chosen in (np.arange(301)[::-1], order, order[:100], order[:1], order[::2]):
        found = of(chosen)
        assert np.array_equal(found[0], left[chosen])
        assert np.array_equal(found[1], norms[chosen])


@pytest.mark.parametrize(
    ("counts", "balanced", "shares"),
    [
        (125, True, [1, 1, 1, 1]),
        ([50, 300, 50, 100], True, [51, 301, 51, 101]),
        ([50, 300, 50, 100], False, [1, 1, 1, 1]),
    ],
)
def test_without_noise_to_speak_of_it_is_the_published_algorithm(counts, balanced, shares):
    """Beside the log shares of the declared counts, where classes are balanced."""
    settings = {"classes": 4, "steps": 12, "learning_rate": 2.0, "clip": 0.8, "ridge": 0.0}
    settings |= {"counts": counts, "balanced": balanced}
    offsets = np.log(shares)
    model = tacit.GlobalAdapt("rho=1e8", decay=0.2, tolerance=0.9, threshold=1.0, **settings).fit(
        X, Y
    )
    threshold, thresholds = 1.0, []

    def gradient(head):
        nonlocal threshold
        total, norms = naive_gradients(unit(X), Y, head, threshold, 0.8, offsets)
        thresholds.append(threshold)
        threshold = min(threshold * np.exp(-0.2 + (norms > 0.9 * threshold).mean()), 2**0.5)
        return total / 500

    expected = nesterov(gradient, np.zeros((4, 12)), 2.0, 12)
    assert np.allclose(model.thresholds_, thresholds, rtol=0.01)
    assert np.allclose(model.coefficients_, expected, atol=0.05)


def test_the_budget_is_spent_in_steps_thresholds_and_class_counts():
    promise = tacit.GlobalAdapt("rho=0.5", steps=7, threshold_share=0.2).promise()
    of_step, of_threshold, of_counts = (
        (7 / (0.8 - COUNT_SHARE)) ** 0.5,
        (7 / 0.2) ** 0.5,
        COUNT_SHARE**-0.5,
    )
    found = {(round(event.base().noise_multiplier, 9), n) for event, n in promise.event.counted()}
    assert found == {(round(of_step, 9), 7), (round(of_threshold, 9), 7), (round(of_counts, 9), 1)}
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    declared = tacit.GlobalAdapt("rho=0.5", steps=7, threshold_share=0.2, counts=125).promise()
    z = Budget.parse("rho=0.5").gaussian(split=True)
    assert declared.event == compose(
        [7 * Gaussian(z * (7 / 0.8) ** 0.5), 7 * Gaussian(z * of_threshold)]
    )
    assert declared.unprotected == (*promise.unprotected, "class counts (declared)")


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_noise_of_a_step_agrees_with_its_event(clip):
    """Heads of one step without records, 100 entries over 200 draws: variance (learning rate x clip
    x z/n)^2.
    """
    nothing = np.zeros((2, 50)), np.array([0, 1])
    settings = {
        "classes": 2,
        "steps": 1,
        "counts": 250,
        "learning_rate": 1.0,
        "clip": clip,
        "noise": "research",
    }
    models = [
        tacit.GlobalAdapt("rho=0.01", random_state=s, **settings).fit(*nothing) for s in range(200)
    ]
    z = min(event.noise_multiplier for event, _ in models[0].guarantee_.event.counted())
    drawn = np.stack([model.coefficients_.ravel() for model in models])
    assert drawn.var() == pytest.approx((clip * z / 500) ** 2, rel=0.05)
    assert np.abs(np.corrcoef(drawn, rowvar=False) - np.eye(100)).max() < 0.5


@pytest.mark.parametrize("counts", [250, 125])
def test_noise_of_the_threshold_agrees_with_its_event(counts):
    """Log thresholds move by the share above, here of all 200 records in the declared number; its
    deviation is z/n.
    """
    n = 2 * counts
    settings = {
        "classes": 2,
        "counts": counts,
        "steps": 800,
        "learning_rate": 1e-9,
        "noise": "research",
    }
    settings |= {"threshold": 0.03, "tolerance": 1e-6, "decay": 200 / n, "threshold_share": 0.3}
    x, y = np.repeat([[1.0, 0.0]], 200, axis=0), np.arange(200) % 2
    models = [
        tacit.GlobalAdapt(f"rho={1000 / counts}", random_state=s, **settings).fit(x, y)
        for s in range(5)
    ]
    z = max(event.noise_multiplier for event, _ in models[0].guarantee_.event.counted())
    shares = np.stack([np.diff(np.log(model.thresholds_)) for model in models]) + settings["decay"]
    assert shares.mean() == pytest.approx(200 / n, abs=0.005)
    assert shares.var() == pytest.approx((z / n) ** 2, rel=0.05)


def test_steps_thresholds_and_counts_draw_fresh_noise_at_the_multipliers_of_their_events(
    monkeypatch, steps_drawn
):
    above, counts = [], []

    def count(exact, cost, noise):
        released = noisy_count(exact, cost, noise)
        above.append((cost, exact, released - exact))
        return released

    def class_counts(blocks, **settings):
        counts.append(Parallel(Gaussian(settings["noise_multiplier"]), "classes"))
        return noisy_class_sums(blocks, **settings)

    monkeypatch.setattr(module, "noisy_count", count)
    monkeypatch.setattr("tacit.mechanisms.gaussian.noisy_class_sums", class_counts)
    model = tacit.GlobalAdapt("rho=0.1", classes=4, steps=12, noise="research", random_state=0).fit(
        X, Y
    )
    promised = dict(model.guarantee_.event.counted())
    done = [Gaussian(z) for z, _ in steps_drawn] + [cost for cost, _, _ in above] + counts
    assert dict(compose(done).counted()) == promised
    assert promised[Gaussian(steps_drawn[0][0])] == len(steps_drawn) == len(above) == 12
    assert len(counts) == 1
    assert len({noise for _, _, noise in above}) == 12
    noise = np.stack([noise.ravel() for _, noise in steps_drawn])
    assert np.abs(np.corrcoef(noise) - np.eye(12)).max() < 0.8
    assert noise.std() == pytest.approx(steps_drawn[0][0], rel=0.15)


def test_thresholds_settle_where_the_share_above_is_the_decay_and_stay_in_range():
    model = tacit.GlobalAdapt("rho=1e6", classes=4, steps=200, learning_rate=0.01, decay=0.3).fit(
        X, Y
    )
    rows = rounded(unit(X))
    _, norms = scaled(residuals(rows, Y, model.coefficients_, ZERO), 1.0, 1.0)
    assert (norms > model.thresholds_[-1]).mean() == pytest.approx(0.3, abs=0.1)
    wild = tacit.GlobalAdapt("rho=1e-4", classes=4, steps=60, noise="research", random_state=0).fit(
        X, Y
    )
    assert 1e-6 <= wild.thresholds_.min() < wild.thresholds_.max() <= 2**0.5


@pytest.mark.thorough
@pytest.mark.slow
def test_accuracy_on_a_tenth_of_real_embeddings(cifar100):
    """With a hundred times the rho, noise is to signal as in the whole."""
    settings = {"classes": 100, "public": cifar100.public, "noise": "research", "random_state": 0}
    for rho, floor in ((3200, 0.6), (50, 0.6), (0.5, 0.47)):
        model = tacit.GlobalAdapt(f"rho={rho}", **settings).fit(
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
        ({"threshold": 2}, InputError, "threshold=2 must be a number"),
        ({"threshold_share": 1}, InputError, "threshold_share=1 must be a number"),
        ({"decay": -1}, InputError, "decay=-1 must be a number"),
        ({"tolerance": 0}, InputError, "tolerance=0 must be a number"),
        ({"ridge": -1}, InputError, "ridge=-1 must be a number"),
        ({"learning_rate": 0}, InputError, "learning_rate=0 must be a number"),
        ({"intercept": -1}, InputError, "intercept=-1 must be a number"),
        ({"public": np.ones((3, 2))}, InputError, "encode both the same way"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.GlobalAdapt(**({"classes": 4} | parameters)).fit(X, Y)


def test_persons_above_the_threshold_count_by_the_share_of_their_gradients(monkeypatch):
    persons, seen = np.arange(500) % 90, []
    monkeypatch.setattr(
        module, "noisy_count", lambda exact, *_: seen.append(exact) or noisy_count(exact, *_)
    )
    settings = {"classes": 4, "steps": 3, "threshold": 0.85, "noise": "research", "random_state": 0}
    settings |= {"budget": "rho=0.5", "unit": "add-remove-person", "counts": [50, 300, 50, 100]}
    tacit.GlobalAdapt(**settings).fit(X, Y, persons=persons)
    offsets = np.log([51, 301, 51, 101])
    _, norms = scaled(residuals(rounded(unit(X)), Y, np.zeros((4, 12)), offsets), 0.85, 1.0)
    above = norms > 0.85
    assert 0 < above.sum() < 500
    assert float(seen[0]) == pytest.approx(
        (np.bincount(persons, above) / np.bincount(persons)).sum(), abs=1e-6
    )
    assert max(seen) <= 90


@pytest.mark.parametrize("budget", ["rho=0.5", "rho=inf"])
def test_with_one_record_per_person_it_is_that_of_records(budget):
    settings = {"classes": 4, "steps": 5, "noise": "research", "random_state": 0}
    by_person = tacit.GlobalAdapt(budget, unit="add-remove-person", **settings).fit(
        X, Y, persons=np.arange(500)[::-1]
    )
    by_record = tacit.GlobalAdapt(budget, **settings).fit(X, Y)
    assert np.allclose(by_person.thresholds_, by_record.thresholds_, rtol=0, atol=1e-6)
    assert np.allclose(by_person.coefficients_, by_record.coefficients_, rtol=0, atol=1e-6)
    assert by_person.guarantee_.event == by_record.guarantee_.event.base()


@pytest.mark.parametrize(
    "unit_name", ["add-remove-person", "replace-person", "change-labels-of-person"]
)
def test_units_per_person_keep_the_budget(unit_name):
    model = tacit.GlobalAdapt("rho=0.5", classes=4, steps=5, unit=unit_name).fit(
        X, Y, persons=np.arange(500) % 90
    )
    assert model.guarantee_ == model.promise()
    assert model.guarantee_.rho == pytest.approx(0.5)


def test_scaling_may_lengthen_what_a_changed_label_moves():
    """Residuals of 40 and 60 % for two classes are sqrt(2) apart; one is scaled up, since it is
    below the threshold.
    """
    both = np.array([[-0.4, 0.4], [0.6, -0.6]])
    left, _ = scaled(both, threshold=0.6, clip=1.0)
    assert np.linalg.norm(both[0] - both[1]) == pytest.approx(2**0.5)
    assert np.linalg.norm(left[0] - left[1]) > 1.2 * 2**0.5

    model = tacit.GlobalAdapt("rho=0.5", classes=2, unit="change-label", counts=10, steps=7)
    facts = model.fit(X, Y % 2).released_.mechanism
    z = Budget.parse("rho=0.5").gaussian(split=True)
    assert facts["noise multiplier of a step"] == pytest.approx(2 * z * (7 / 0.99) ** 0.5)
    assert facts["noise multiplier of a count above the threshold"] == pytest.approx(
        z * (7 / 0.01) ** 0.5
    )
