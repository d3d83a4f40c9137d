import numpy as np
import pytest
from scipy.special import softmax

import tacit
from tacit.errors import BudgetError, InputError
from tacit.learners.common.softmax import residuals
from tacit.learners.linear import global_adapt as module
from tacit.learners.linear.global_adapt import RECORDS_SHARE, scaled
from tacit.mechanisms.counts import noisy_count
from tacit.mechanisms.noise import noise_source
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, compose

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 12))
Y = RNG.integers(0, 4, 500)
X = CENTRES[Y] + RNG.normal(size=(500, 12))
PUBLIC = RNG.normal(size=(80, 12)) + 1
ZERO = np.zeros(4)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def nesterov(gradient, theta, rate, steps):
    previous = ahead = theta
    for step in range(steps):
        theta = ahead - rate * gradient(ahead)
        ahead = theta + step / (step + 3) * (theta - previous)
        previous = theta
    return theta


def naive_gradients(rows, labels, head, threshold, clip):
    """Each record's gradient as a matrix of its own, scaled by its Frobenius norm, one after the other."""
    total, norms = np.zeros_like(head), []
    for x, y in zip(rows, labels, strict=True):
        gradient = np.outer(softmax(head @ x) - np.eye(len(head))[y], x)
        norms.append(np.linalg.norm(gradient))
        total += gradient * (clip / threshold if norms[-1] <= threshold else min(1, clip / norms[-1]))
    return total, np.array(norms)


@pytest.mark.parametrize("public", [None, PUBLIC])
def test_infinite_budget_is_plain_gradient_descent(public):
    rows = unit(X) if public is None else unit(unit(X) - unit(public).mean(axis=0))
    settings = {"classes": 4, "public": public, "steps": 40, "ridge": 0.7}
    model = tacit.GlobalAdapt("rho=inf", **settings).fit(X, Y)

    def gradient(head):
        return ((softmax(rows @ head.T, axis=1) - np.eye(4)[Y]).T @ rows + 0.7 * head) / 500

    expected = nesterov(gradient, np.zeros((4, 12)), 4 if public is None else 16, 40)
    assert np.allclose(model.coefficients_, expected)
    plain = tacit.GradientDescent("rho=inf", balanced=False, **settings).fit(X, Y)
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
    assert np.allclose(product_sums([(left, rows)], shape=(4, 12)) / UNIT * clip, expected, atol=0.02)
    assert np.allclose(norms, expected_norms, atol=1e-3)
    assert np.linalg.norm(left, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (100, 256)])
def test_the_scale_of_a_record_does_not_depend_on_the_other_rows(n_classes, width):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    rows, labels = unit(rng.normal(size=(301, width))), rng.integers(0, n_classes, 301)
    head = rng.normal(size=(n_classes, width))

    def of(chosen):
        return scaled(residuals(rounded(rows[chosen]), labels[chosen], head, np.zeros(n_classes)), 0.9, 1.0)

    left, norms = of(np.arange(301))
    order = rng.permutation(301)
    for chosen in (np.arange(301)[::-1], order, order[:100], order[:1], order[::2]):
        found = of(chosen)
        assert np.array_equal(found[0], left[chosen])
        assert np.array_equal(found[1], norms[chosen])


def test_without_noise_to_speak_of_it_is_the_published_algorithm():
    settings = {"classes": 4, "steps": 12, "records": 500, "learning_rate": 2.0, "clip": 0.8, "ridge": 0.0}
    model = tacit.GlobalAdapt("rho=1e8", decay=0.2, tolerance=0.9, threshold=1.0, **settings).fit(X, Y)
    threshold, thresholds = 1.0, []

    def gradient(head):
        nonlocal threshold
        total, norms = naive_gradients(unit(X), Y, head, threshold, 0.8)
        thresholds.append(threshold)
        threshold = min(threshold * np.exp(-0.2 + (norms > 0.9 * threshold).mean()), 2**0.5)
        return total / 500

    expected = nesterov(gradient, np.zeros((4, 12)), 2.0, 12)
    assert np.allclose(model.thresholds_, thresholds, rtol=0.01)
    assert np.allclose(model.coefficients_, expected, atol=0.05)


def test_the_budget_is_spent_in_steps_counts_and_the_number_of_records():
    promise = tacit.GlobalAdapt("rho=0.5", steps=7, threshold_share=0.2).promise()
    of_step, of_count, of_records = (7 / (0.8 - RECORDS_SHARE)) ** 0.5, (7 / 0.2) ** 0.5, RECORDS_SHARE**-0.5
    found = {(round(event.noise_multiplier, 9), n) for event, n in promise.event.counted()}
    assert found == {(round(of_step, 9), 7), (round(of_count, 9), 7), (round(of_records, 9), 1)}
    assert promise.rho == pytest.approx(0.5)
    assert Budget.parse("rho=0.5").permits(promise.event)
    declared = tacit.GlobalAdapt("rho=0.5", steps=7, threshold_share=0.2, records=125).promise()
    assert declared.event == compose([7 * Gaussian((7 / 0.8) ** 0.5), 7 * Gaussian(of_count)])
    assert declared.unprotected == (*promise.unprotected, "number of records (declared)")


def drawn(seeds, steps, **parameters):
    settings = {"classes": 2, "records": 500, "threshold": 0.7, "decay": 0.5, "threshold_share": 0.3, "ridge": 0.0}
    settings |= {"steps": steps, "learning_rate": 1.0, "noise": "research"} | parameters
    x, y = (
        np.repeat([[1.0, 0.0]], 200, axis=0),
        np.arange(200) % 2,
    )  # gradients cancel at the zero head; norms sqrt(1/2)
    return [tacit.GlobalAdapt("rho=0.01", random_state=seed, **settings).fit(x, y) for seed in range(seeds)]


@pytest.mark.parametrize("clip", [1.0, 0.5])
def test_noise_of_a_step_agrees_with_its_event(clip):
    """Heads of one step without signal, over 2,000 draws: variance (learning rate x clip x z/n)^2."""
    models = drawn(2000, steps=1, clip=clip)
    z = min(event.noise_multiplier for event, _ in models[0].guarantee_.event.counted())
    heads = np.stack([model.coefficients_ for model in models])
    assert heads.var(axis=0).mean() == pytest.approx((clip * z / 500) ** 2, rel=0.05)
    assert np.abs(np.corrcoef(heads.reshape(2000, 4), rowvar=False) - np.eye(4)).max() < 0.12


def test_noise_of_the_threshold_agrees_with_its_event():
    """Log thresholds after one step, over 2,000 draws: the share is of the declared number, its deviation z/n."""
    models = drawn(2000, steps=2)
    z = max(event.noise_multiplier for event, _ in models[0].guarantee_.event.counted())
    shares = np.log([model.thresholds_[1] / 0.7 for model in models]) + 0.5
    assert shares.mean() == pytest.approx(200 / 500, abs=0.01)
    assert shares.var() == pytest.approx((z / 500) ** 2, rel=0.05)
    halved = drawn(200, steps=2, records=250)
    assert np.mean([np.log(model.thresholds_[1] / 0.7) + 0.5 for model in halved]) == pytest.approx(0.8, abs=0.02)


def test_noise_of_the_number_of_records_agrees_with_its_event():
    """Over 2,000 draws."""
    model = tacit.GlobalAdapt("rho=0.01")
    deviation = (0.5 / 0.01 / RECORDS_SHARE) ** 0.5
    assert deviation in [pytest.approx(event.noise_multiplier) for event, _ in model.promise().event.counted()]
    numbers = [model._records(2000, noise_source("research", seed)) for seed in range(2000)]
    assert np.mean(numbers) == pytest.approx(2000, abs=10)
    assert np.var(numbers) == pytest.approx(deviation**2, rel=0.05)
    assert {tacit.GlobalAdapt(records=7)._records(n, noise_source("research", 0)) for n in (5, 2000)} == {7}


def test_steps_and_counts_draw_fresh_noise_at_the_multipliers_of_their_events(monkeypatch):
    steps, above = [], []

    def products(blocks, **settings):
        exact = product_sums(list(blocks), shape=settings["shape"])
        released = settings["noise"].gaussian(exact, scale=settings["noise_multiplier"] * UNIT) / UNIT
        steps.append((settings["noise_multiplier"], released - exact / UNIT))
        return released

    def count(exact, cost, noise):
        released = noisy_count(exact, cost, noise)
        above.append((cost, exact, released - exact))
        return released

    monkeypatch.setattr(module.outer_products, "noisy_products", products)
    monkeypatch.setattr(module.counts, "noisy_count", count)
    model = tacit.GlobalAdapt("rho=0.1", classes=4, steps=12, noise="research", random_state=0).fit(X, Y)
    promised = dict(model.guarantee_.event.counted())
    assert dict(compose([Gaussian(z) for z, _ in steps] + [cost for cost, _, _ in above]).counted()) == promised
    assert promised[Gaussian(steps[0][0])] == len(steps) == 12
    assert len(above) == 13  # the number of records, and one count for each step
    assert above[0][1] == 500
    assert len({noise for _, _, noise in above}) == 13
    noise = np.stack([noise.ravel() for _, noise in steps])
    assert np.abs(np.corrcoef(noise) - np.eye(12)).max() < 0.8
    assert noise.std() == pytest.approx(steps[0][0], rel=0.15)


def test_thresholds_settle_where_the_share_above_is_the_decay_and_stay_in_range():
    model = tacit.GlobalAdapt("rho=1e6", classes=4, steps=200, learning_rate=0.01, decay=0.3).fit(X, Y)
    rows = rounded(unit(X))
    _, norms = scaled(residuals(rows, Y, model.coefficients_, ZERO), 1.0, 1.0)
    assert (norms > model.thresholds_[-1]).mean() == pytest.approx(0.3, abs=0.1)
    wild = tacit.GlobalAdapt("rho=1e-4", classes=4, steps=60, noise="research", random_state=0).fit(X, Y)
    assert 1e-6 <= wild.thresholds_.min() < wild.thresholds_.max() <= 2**0.5


@pytest.mark.slow
def test_accuracy_on_real_embeddings(embeddings):
    folder = embeddings / "mobilenetv2-in1k-160"
    x, y, test_x, test_y = (
        np.load(folder / "cifar100" / f"{name}.npy") for name in ("train_x", "train_y", "test_x", "test_y")
    )
    public = np.load(folder / "tiny_imagenet" / "train_x.npy")[:30000]
    for budget, least in [("rho=inf", 0.68), ("rho=32", 0.67), ("rho=0.5", 0.65), ("rho=0.005", 0.49)]:
        model = tacit.GlobalAdapt(
            budget, classes=100, public=public, noise="secure" if budget == "rho=inf" else "research"
        )
        assert model.fit(x, y).score(test_x, test_y) > least


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, "Gaussian noise has no pure epsilon"),
        ({"steps": 0}, InputError, "steps=0 must be a whole number"),
        ({"clip": 0}, InputError, "clip=0 must be a number"),
        ({"records": 0}, InputError, "records=0 must be a number"),
        ({"threshold": 2}, InputError, "threshold=2 must be a number"),
        ({"threshold_share": 1}, InputError, "threshold_share=1 must be a number"),
        ({"decay": -1}, InputError, "decay=-1 must be a number"),
        ({"tolerance": 0}, InputError, "tolerance=0 must be a number"),
        ({"ridge": -1}, InputError, "ridge=-1 must be a number"),
        ({"learning_rate": 0}, InputError, "learning_rate=0 must be a number"),
        ({"intercept": -1}, InputError, "intercept=-1 must be a number"),
        ({"public": np.ones((3, 2))}, InputError, "encode both alike"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.GlobalAdapt(**({"classes": 4} | parameters)).fit(X, Y)
