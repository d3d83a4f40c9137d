import numpy as np
import pytest
from scipy.special import softmax

import tacit
from tacit.data.imbalance import imbalanced_subset
from tacit.errors import BudgetError, InputError
from tacit.learners.prototypes import auto as module
from tacit.learners.prototypes.auto import CLIP, COUNT_SHARE, NARROW, STEPS, square_scores
from tacit.mechanisms.noise import noise_source
from tacit.mechanisms.outer_products import NORM, UNIT, rounded
from tacit.mechanisms.rounding import integer_rows
from tacit.models.metrics import evaluate
from tacit.models.posterior import class_posterior, density, public_prior
from tacit.models.rows import unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel, compose

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 12))
Y = RNG.integers(0, 4, 500)
X = CENTRES[Y] + RNG.normal(size=(500, 12))
PUBLIC = CENTRES[RNG.integers(0, 4, 80)] + RNG.normal(size=(80, 12))
CENTRE = (PUBLIC / np.linalg.norm(PUBLIC, axis=1, keepdims=True)).mean(axis=0)
ROWS = unit_rows_about(X, CENTRE)
SUMS = np.stack([np.append(ROWS[c == Y].sum(axis=0), (c == Y).sum()) for c in range(4)])
FIT = {"public": PUBLIC, "classes": 4, "noise": "research", "random_state": 0}
ROUTES = {"rho=1e4": (0.25, True), "rho=0.5": (0.5, True), "rho=0.001": (1.0, False)}


@pytest.mark.parametrize("budget", ["rho=0.5", "rho=8", "epsilon=1,delta=1e-6"])
def test_the_promise_is_a_quarter_for_the_sums_and_the_rest_for_what_follows(budget):
    z = Budget.parse(budget).gaussian(split=True)
    promise = tacit.AutoPrototypes(budget, public=PUBLIC).promise()
    assert promise.event == compose([Parallel(Gaussian(2 * z), "classes"), Gaussian(z / 0.75**0.5)])
    assert Budget.parse(budget).permits(promise.event)
    assert promise.unprotected == ("class list (read off the private labels)",)


@pytest.fixture
def draws(monkeypatch):
    """What every release that is drawn adds: kind, multiplier and noise."""
    seen = []
    class_sums, products = module.gaussian.noisy_class_sums, module.outer_products.noisy_products

    def noisy_class_sums(blocks, **settings):
        blocks = [(rows, own) for rows, own in blocks]
        assert all((np.linalg.norm(rows, axis=1) < 1 + 1e-9).all() for rows, _ in blocks)
        released = class_sums(blocks, **settings)
        exact = module.gaussian.class_sums(blocks, n_classes=settings["n_classes"], width=settings["width"]) / 2**32
        seen.append(("sums", settings["noise_multiplier"], released - exact, released))
        return released

    def noisy_products(blocks, **settings):
        blocks = list(blocks)
        released = products(blocks, **settings)
        exact = module.outer_products.product_sums(blocks, shape=settings["shape"]) / UNIT
        seen.append(("step", settings["noise_multiplier"], released - exact, released))
        return released

    monkeypatch.setattr(module.gaussian, "noisy_class_sums", noisy_class_sums)
    monkeypatch.setattr(module.outer_products, "noisy_products", noisy_products)
    return seen


@pytest.mark.parametrize("budget", ROUTES)
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
def test_every_route_spends_exactly_the_budget(draws, budget, unit):
    model = tacit.AutoPrototypes(budget, unit=unit, **FIT).fit(X, Y)
    of_sums, refined = ROUTES[budget]
    assert (model.spent_on_sums_, model.refined_) == (of_sums, refined)
    z = Budget.parse(budget).gaussian(model.promise().unit, split=True)
    kinds = [kind for kind, _, _, _ in draws]
    shares = np.array([(z / multiplier) ** 2 for _, multiplier, _, _ in draws])
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert kinds == ["sums"] * {0.25: 1, 0.5: 2, 1.0: 3}[of_sums] + ["step"] * (STEPS if refined else 0)
    assert shares[0] == pytest.approx(0.25, abs=1e-12)
    assert (1 / z**2) * 0.5 == pytest.approx(sum(0.5 / multiplier**2 for _, multiplier, _, _ in draws), rel=1e-12)
    noise = [drawn / multiplier for _, multiplier, drawn, _ in draws]
    for kind in set(kinds):
        own = np.stack([drawn.ravel() for drawn, other in zip(noise, kinds, strict=True) if other == kind])
        assert own.std() == pytest.approx(1, rel=0.2)
        if len(own) > 1:
            assert np.abs(np.corrcoef(own) - np.eye(len(own))).max() < 0.8  # nothing is drawn once and used twice


@pytest.mark.parametrize("budget", ROUTES)
def test_sums_are_weighted_by_their_precision(monkeypatch, draws, budget):
    used = []
    found = module.class_posterior

    def spy(prior, sums, noise, counts, count_noise):
        used.append((sums @ prior.axes.T, noise, counts, count_noise))
        return found(prior, sums, noise, counts, count_noise)

    monkeypatch.setattr(module, "class_posterior", spy)
    tacit.AutoPrototypes(budget, **FIT).fit(X, Y)
    released = [own for kind, _, _, own in draws if kind == "sums"]
    precisions = [multiplier**-2 for kind, multiplier, _, _ in draws if kind == "sums"]
    assert len(used) == len(released)
    for i, (sums, noise, counts, count_noise) in enumerate(used, 1):
        mean = np.average(released[:i], axis=0, weights=precisions[:i])
        assert np.allclose(sums, mean[:, :-1] / (1 - COUNT_SHARE) ** 0.5, rtol=1e-9, atol=1e-9)
        assert np.allclose(counts, mean[:, -1] / COUNT_SHARE**0.5, rtol=1e-9)
        assert noise == pytest.approx((sum(precisions[:i]) * (1 - COUNT_SHARE)) ** -0.5, rel=1e-9)
        assert count_noise == pytest.approx((sum(precisions[:i]) * COUNT_SHARE) ** -0.5, rel=1e-9)


def ready(budget, width=3, n_classes=2):
    """A learner as `fit` has it when `_fit` begins."""
    model = tacit.AutoPrototypes(budget, public=np.ones((1, width)) + np.eye(width))
    model.classes_, model.centre_ = np.arange(n_classes), None
    return model


def test_noise_of_the_sums_agrees_with_their_event():
    """Over 2,000 draws from no records."""
    model, noise = ready("rho=0.02"), noise_source("research", 0)
    event = model.promise().event.counted()
    (multiplier,) = (own.event.noise_multiplier for own, _ in event if isinstance(own, Parallel))
    nothing = np.zeros((2, 3)), np.array([0, 1])
    drawn = np.stack([model._noisy_sums(*nothing, multiplier, noise) for _ in range(2000)])
    assert multiplier == pytest.approx(10)
    assert drawn[:, :, :-1].var(axis=0).mean() == pytest.approx(multiplier**2 / (1 - COUNT_SHARE), rel=0.05)
    assert drawn[:, :, -1].var(axis=0).mean() == pytest.approx(multiplier**2 / COUNT_SHARE, rel=0.05)
    assert np.abs(drawn.mean(axis=0)).max() < 5 * multiplier / COUNT_SHARE**0.5 / 2000**0.5


def test_noise_of_a_step_agrees_with_its_event(monkeypatch):
    """Over 2,000 draws from no records: together, the steps are the rest's one Gaussian."""
    model, noise, drawn = ready("rho=0.02"), noise_source("research", 0), []

    def no_descent(gradient, start, rate, steps):
        drawn.extend(gradient(start) for _ in range(2000))
        assert rate == pytest.approx(
            min(8.0 / 40, 3.6 / np.hypot(multiplier * 60**0.5, (2e-5 * 60 * 20) ** 0.5) / 60**1.5)
        )
        return start

    monkeypatch.setattr(module, "descend", no_descent)
    (multiplier,) = (own.noise_multiplier for own, _ in model.promise().event.counted() if isinstance(own, Gaussian))
    model.coefficients_, model.intercepts_ = np.ones((2, 3)), np.zeros(2)
    model.axes_, model.squares_ = np.eye(3), np.zeros((2, 3))
    model._refine(np.zeros((2, 3)), np.array([0, 1]), np.array([30.0, 10.0]), multiplier, noise)
    assert np.stack(drawn).var(axis=0).mean() == pytest.approx(STEPS * multiplier**2 * CLIP**2, rel=0.05)


@pytest.mark.parametrize(("multiplier", "clip"), [(1e-6, CLIP), (0.0, np.inf)])
def test_the_gradient_is_that_of_the_quadratic_scores_beside_log_shares(monkeypatch, multiplier, clip):
    model, rng, found = ready("rho=1", width=12, n_classes=4), np.random.default_rng(1), []
    head, sizes = rng.normal(size=(4, 12)), np.array([10.0, 100.0, 50.0, 300.0])
    model.coefficients_, model.intercepts_ = rng.normal(size=(4, 12)), rng.normal(size=4)
    model.axes_, model.squares_ = np.linalg.qr(rng.normal(size=(12, 12)))[0], -5 * rng.random((4, 12))
    model.centre_ = CENTRE
    monkeypatch.setattr(module, "descend", lambda gradient, start, **_: found.append(gradient(head)) or start)
    scores = ROWS @ (model.coefficients_ + head).T + (ROWS @ model.axes_) ** 2 @ model.squares_.T + model.intercepts_
    model._refine(X, Y, sizes, multiplier, noise_source("research", 0))
    residual = softmax(scores + np.log(sizes), axis=1) - np.eye(4)[Y]
    residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
    assert np.allclose(found[0], residual.T @ ROWS + module.RIDGE * head, atol=0.02 if multiplier else 1e-9)


def test_sums_and_counts_are_exact_at_a_huge_budget_and_unbiased_at_others():
    model = tacit.AutoPrototypes("rho=1e9", **FIT).fit(X, Y)
    exact = model._noisy_sums(X, Y, 1e-6, noise_source("research", 0))
    assert np.allclose(exact, SUMS, atol=1e-4)
    assert np.allclose(model._noisy_sums(X, Y, 0.0, noise_source("research", 0)), SUMS, rtol=1e-12)
    noise = noise_source("research", 0)
    drawn = np.stack([model._noisy_sums(X, Y, 5.0, noise) for _ in range(400)])
    z = (drawn.mean(axis=0) - SUMS) / drawn.std(axis=0) * 20
    assert np.abs(z).max() < 4
    assert z.std() == pytest.approx(1, abs=0.3)


def test_a_row_and_its_count_have_norm_1_and_a_row_of_zeros_has_neither(monkeypatch):
    seen = []
    spied = module.gaussian.noisy_class_sums

    def spy(blocks, **settings):
        blocks = list(blocks)
        seen.extend(rows for rows, _ in blocks)
        return spied(blocks, **settings)

    monkeypatch.setattr(module.gaussian, "noisy_class_sums", spy)
    model = ready("rho=1", width=12, n_classes=4)
    model._noisy_sums(np.concatenate([X, np.zeros((3, 12))]), np.append(Y, [0, 1, 2]), 1.0, noise_source("research", 0))
    rows = np.concatenate(seen)
    assert len(rows) == 500
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-14)
    assert np.allclose(rows[:, -1] ** 2, COUNT_SHARE)


def directly(posterior, prior, n_steps=STEPS, step_noise=0.0, clip=np.inf, signal_noise=0.0):
    """The refined route in plain numpy, its constants written out."""
    small = max(np.quantile(posterior.sizes, 0.25) - signal_noise, 1)
    signal = small / np.sqrt(0.01 * small)
    belief = 0.3 / (1 + signal / (20 * max(posterior.trust, 0.25)))
    squares, slopes, offsets = density(prior, posterior, NARROW)
    start = belief * slopes @ prior.axes.T
    beside = belief * ((ROWS @ prior.axes) ** 2 @ squares.T + offsets) + np.log(
        posterior.sizes / posterior.sizes.mean()
    )
    n = posterior.sizes.sum()
    rate = min(16.0, 3.6 * n / (np.hypot(step_noise, (2e-5 * 60 * n / 4) ** 0.5) * 60**1.5))
    theta = ahead = np.zeros((4, 12))
    for step in range(n_steps):
        residual = softmax(ROWS @ (start + ahead).T + beside, axis=1) - np.eye(4)[Y]
        residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
        moved = ahead - rate / n * (residual.T @ ROWS + 0.3 * ahead)
        theta, ahead = moved, moved + step / (step + 3) * (moved - theta)
    return start + theta, belief * squares, belief * offsets


def test_infinite_budget_is_the_direct_formula():
    settings = {"public": PUBLIC, "classes": 4}
    models = [tacit.AutoPrototypes("rho=inf", noise=noise, **settings).fit(X, Y) for noise in ("research", "secure")]
    prior = public_prior(PUBLIC, CENTRE)
    posterior = class_posterior(prior, SUMS[:, :-1] @ prior.axes, 0.0, SUMS[:, -1], 0.0)
    coefficients, squares, offsets = directly(posterior, prior)
    for model in models:
        assert (model.refined_, model.spent_on_sums_) == (True, 0.25)
        assert np.allclose(model.coefficients_, coefficients, rtol=1e-9, atol=1e-9)
        assert np.allclose(model.squares_, squares, rtol=1e-9, atol=1e-9)
        assert np.allclose(model.intercepts_, offsets, rtol=1e-9, atol=1e-9)
        assert np.allclose(model.prototypes_, posterior.mean @ prior.axes.T, atol=1e-9)
        assert np.allclose(model.sizes_, np.bincount(Y), rtol=1e-12)
        scores = ROWS @ coefficients.T + (ROWS @ prior.axes) ** 2 @ squares.T + offsets
        assert np.allclose(model.decision_function(X), scores)
        assert np.array_equal(model.predict(X), scores.argmax(axis=1))


def test_a_large_budget_is_the_clipped_formula():
    model = tacit.AutoPrototypes("rho=1e9", **FIT).fit(X, Y)
    prior = public_prior(PUBLIC, CENTRE)
    posterior = class_posterior(prior, SUMS[:, :-1] @ prior.axes, 0.0, SUMS[:, -1], 0.0)
    assert np.allclose(model.coefficients_, directly(posterior, prior, clip=CLIP)[0], atol=0.02)
    assert not np.allclose(model.coefficients_, directly(posterior, prior)[0], atol=0.05)


def exact_square_scores(rows, axes, squares):
    """In whole numbers of any size."""
    whole = np.rint(np.ldexp(axes, 15)).astype(np.int64).astype(object)
    along = (rows.values.astype(np.int64).astype(object) @ whole).astype(np.float64)
    again = integer_rows(np.ldexp(along, -33) ** 2, NORM).astype(object)
    power = 34 - np.frexp(np.linalg.norm(squares, axis=1).max())[1]
    head = np.rint(np.ldexp(squares, power)).astype(np.int64).astype(object)
    return np.ldexp((again @ head.T).astype(np.float64), -power) / NORM


@pytest.mark.parametrize(("n_classes", "width"), [(2, 1), (7, 33), (40, 96)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_square_scores_are_exact_and_do_not_depend_on_the_other_rows(n_classes, width, scale):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.normal(size=(width, width)))[0]
    squares = -rng.random((n_classes, width)) * scale
    rows = rounded(unit_rows_about(rng.normal(size=(151, width)), None))
    whole = square_scores(rows, axes, squares)
    assert np.array_equal(whole, exact_square_scores(rows, axes, squares))
    assert np.allclose(whole, (rows.values / NORM @ axes) ** 2 @ squares.T, rtol=1e-3, atol=scale * 1e-4)
    order = rng.permutation(151)
    for chosen in (np.arange(151)[::-1], order, order[:100], order[:1], order[::2]):
        part = type(rows)(rows.values[chosen])
        assert np.array_equal(square_scores(part, axes, squares), whole[chosen])


@pytest.mark.parametrize("budget", [*ROUTES, "rho=inf"])
def test_it_decides_as_released(budget, tmp_path):
    model = tacit.AutoPrototypes(budget, public=PUBLIC, classes=4).fit(X, Y)
    scores = ROWS @ model.coefficients_.T + (ROWS @ model.axes_) ** 2 @ model.squares_.T + model.intercepts_
    assert np.allclose(model.decision_function(X), scores)
    release = tacit.Release.load(tacit.Release.of(model).save(tmp_path / "out", allow_research=True)).verify()
    assert np.array_equal(release.predict(X), model.predict(X))
    assert np.array_equal(model.predict(X), scores.argmax(axis=1))


def clusters(seed, width=100, n_classes=20):
    """Classes that are some of 60 public clusters; their sizes fall from 500 to 10."""
    rng = np.random.default_rng(seed)
    scale = np.linspace(2, 0.3, width)
    middles = rng.normal(size=(60, width)) * scale

    def rows(of):
        return middles[of] + 1.5 * scale * rng.normal(size=(len(of), width))

    y = np.repeat(np.arange(n_classes), np.geomspace(500, 10, n_classes).astype(int))
    test_y = np.repeat(np.arange(n_classes), 50)
    return rows(y), y, rows(test_y), test_y, rows(rng.integers(0, 60, 3000))


@pytest.mark.parametrize(("budget", "margin"), [("rho=0.005", 0.06), ("rho=0.05", 0.08), ("rho=0.5", 0.02)])
def test_it_is_better_than_noisy_sums_where_classes_are_small(budget, margin):
    gains = []
    for seed in range(3):
        x, y, test_x, test_y, public = clusters(seed)
        # another seed than that of the clusters: the noise would be their middles
        fit = {"public": public, "classes": 20, "noise": "research", "random_state": seed + 100}
        models = [kind(budget, **fit).fit(x, y) for kind in (tacit.AutoPrototypes, tacit.NoisySumPrototypes)]
        auto, sums = (evaluate(test_y, model.predict(test_x), np.arange(20)).balanced for model in models)
        gains.append(auto - sums)
    assert np.mean(gains) > margin


@pytest.mark.parametrize("budget", ["rho=1e-6", "rho=0.5", "rho=1e6", "rho=inf"])
@pytest.mark.parametrize(
    ("rows", "labels", "public"),
    [
        (X[:1], Y[:1], PUBLIC),
        (np.zeros((5, 12)), [0, 1, 2, 3, 0], PUBLIC),
        (X, Y, np.ones((40, 12))),
        (X, Y, PUBLIC[:1]),
        (X, np.full(500, 2), PUBLIC),
        (X[:, :1], Y, PUBLIC[:, :1]),
        (RNG.normal(size=(6, 40)), Y[:6], RNG.normal(size=(5, 40))),
        (np.ones((30, 3)), Y[:30], np.ones((30, 3))),
    ],
)
def test_extremes_simply_work(rows, labels, public, budget):
    model = tacit.AutoPrototypes(budget, **(FIT | {"public": public})).fit(rows, labels)
    assert all(np.isfinite(array).all() for array in model.released_.arrays.values())
    assert np.isfinite(model.sizes_).all()
    assert np.isfinite(model.prototypes_).all()
    assert set(model.predict(rows)) <= {0, 1, 2, 3}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "budget", "balanced", "minority"), [(10, "rho=0.125", 0.53, 0.36), (100, "rho=2", 0.475, 0.25)]
)
def test_accuracy_on_imbalanced_real_embeddings(cifar100, ratio, budget, balanced, minority):
    kept = imbalanced_subset(cifar100.train_y, ratio, 0)
    x, y = cifar100.train_x[kept], cifar100.train_y[kept]
    model = tacit.AutoPrototypes(budget, public=cifar100.public, classes=100, noise="research", random_state=0)
    predicted = model.fit(x, y).predict(cifar100.test_x)
    scores = evaluate(cifar100.test_y, predicted, np.arange(100), np.bincount(y, minlength=100))
    assert scores.balanced >= balanced
    assert scores.minority >= minority


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, "Gaussian noise has no pure epsilon"),
        ({"public": None}, InputError, "public=None must be public rows"),
        ({"public": np.ones((3, 2))}, InputError, "encode both alike"),
        ({"public": np.zeros((3, 12))}, InputError, "public"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.AutoPrototypes(**({"classes": 4, "public": PUBLIC} | parameters)).fit(X, Y)
