import itertools

import numpy as np
import pytest
from scipy.special import softmax

import tacit
from messages import stating
from tacit.data.imbalance import imbalanced_subset
from tacit.errors import BudgetError, InputError
from tacit.learners.common.overlap import OVERLAP
from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.prototypes import auto as module
from tacit.learners.prototypes.auto import (
    CLEAR,
    COUNT_SHARE,
    LONGEST_START,
    SMALL_CLASSES,
    START,
    signal,
    sums_with_counts,
)
from tacit.learners.prototypes.refinement import BALANCE, RIDGE, STEPS, clip_norm
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import noise_source
from tacit.mechanisms.outer_products import NORM, UNIT
from tacit.models import deciding
from tacit.models.calibration import fair_offsets, posterior_probabilities, simulated
from tacit.models.carried import CarriedPosterior, carried
from tacit.models.decisions import LinearHead, QuadraticHead
from tacit.models.metrics import evaluate
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import ClassPosterior, class_posterior
from tacit.models.public_prior import public_prior
from tacit.models.quadratic import FLOOR, NAMES, ROOT, STEEP, blended
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
# share of the sums: two signals
ROUTES = {0.25: [np.inf, np.inf], 0.5: [-np.inf, np.inf], 1.0: [-np.inf, -np.inf]}
NAME_ROWS = CENTRES + RNG.normal(size=(4, 12)) / 2
# Unit rows whose directions about the public centre are opposite to those of the names.
OPPOSITE = -unit_rows_about(NAME_ROWS, CENTRE)
ALONG = OPPOSITE @ CENTRE
WRONG = CENTRE + (np.sqrt(ALONG**2 + 1 - CENTRE @ CENTRE) - ALONG)[:, None] * OPPOSITE


@pytest.mark.parametrize("budget", ["rho=0.5", "rho=8", "epsilon=1,delta=1e-6"])
def test_the_promise_is_a_quarter_for_the_sums_and_the_rest_for_what_follows(budget):
    z = Budget.parse(budget).gaussian(split=True)
    promise = tacit.AutoPrototypes(budget, public=PUBLIC).promise()
    assert promise.event == compose(
        [Parallel(Gaussian(2 * z), "classes"), Gaussian(z * (1 / 0.75) ** 0.5)]
    )
    assert Budget.parse(budget).permits(promise.event)
    assert promise.unprotected == ("class list (read off the private labels)", OVERLAP)


def test_names_change_no_promise():
    for unit in ("add-remove", "replace", "change-label"):
        plain = tacit.AutoPrototypes("rho=0.5", public=PUBLIC, classes=4, unit=unit)
        named = tacit.AutoPrototypes(
            "rho=0.5", public=PUBLIC, classes=4, unit=unit, names=NAME_ROWS
        )
        assert named.promise() == plain.promise()


def take(route, monkeypatch):
    """Spend this share of the budget on sums, whatever the signal."""
    signals = itertools.cycle(ROUTES[route])
    monkeypatch.setattr(module, "signal", lambda *_: next(signals))


def test_each_route_is_taken_at_some_budget():
    spent = []
    for rho in np.geomspace(1e-4, 1.0, 60):
        model = tacit.AutoPrototypes(f"rho={rho}", **FIT).fit(X, Y)
        assert model.refined_ == (model.spent_on_sums_ < 1)
        spent.append(model.spent_on_sums_)
    assert set(spent) == set(ROUTES)
    assert (spent[0], spent[-1]) == (1.0, 0.25)


@pytest.fixture
def draws(monkeypatch):
    """What every release that is drawn adds: kind, multiplier and noise."""
    seen = []
    class_sums, noisy_integers = gaussian.class_sums, gaussian.noisy_integers
    products = outer_products.noisy_products
    second_moments = outer_products.noisy_second_moments

    def exact_class_sums(blocks, **settings):
        blocks = list(blocks)
        assert all((np.linalg.norm(rows, axis=1) < 1 + 1e-9).all() for rows, *_ in blocks)
        return class_sums(blocks, **settings)

    def noisy_class_sums(totals, **settings):
        integers = noisy_integers(totals, **settings)
        exact, released = totals / 2**32, integers / 2**32
        seen.append(("sums", settings["noise_multiplier"], released - exact, released))
        return integers

    def noisy_products(blocks, **settings):
        blocks = list(blocks)
        released = products(blocks, **settings)
        exact = outer_products.product_sums(blocks, shape=settings["shape"]) / UNIT
        seen.append(("step", settings["noise_multiplier"], released - exact, released))
        return released

    def noisy_second_moments(blocks, **settings):
        released = second_moments(blocks, **settings)
        rows = np.concatenate([np.asarray(block.rows.values, float) for block in blocks]) / NORM
        noise = (released - rows.T @ rows)[np.triu_indices(settings["width"])]
        seen.append(("moments", settings["noise_multiplier"], noise, released))
        return released

    monkeypatch.setattr(gaussian, "class_sums", exact_class_sums)
    monkeypatch.setattr(gaussian, "noisy_integers", noisy_class_sums)
    monkeypatch.setattr(outer_products, "noisy_second_moments", noisy_second_moments)
    monkeypatch.setattr(outer_products, "noisy_products", noisy_products)
    return seen


# by how much each release moves under each unit; clip norms of gradients here are below sqrt(1/2),
# so theirs is 2
MOVED = {
    "add-remove": {"sums": 1.0, "moments": 1.0, "step": 1.0},
    "replace": {"sums": 2.0, "moments": 2**0.5, "step": 2.0},
    "change-label": {"sums": 2**0.5, "step": 2.0},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("unit", MOVED)
def test_every_route_spends_exactly_the_budget(monkeypatch, draws, route, unit):
    take(route, monkeypatch)
    model = tacit.AutoPrototypes("rho=0.05", unit=unit, **FIT).fit(X, Y)
    assert (model.spent_on_sums_, model.refined_) == (route, route < 1)
    z = Budget.parse("rho=0.05").gaussian(split=True)
    kinds = [kind for kind, _, _, _ in draws]
    shares = np.array(
        [(z * MOVED[unit][kind] / multiplier) ** 2 for kind, multiplier, _, _ in draws]
    )
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    steps = (
        [kind for kind in ["moments", *["step"] * STEPS] if kind in MOVED[unit]]
        if route < 1
        else []
    )
    assert kinds == ["sums"] * {0.25: 1, 0.5: 2, 1.0: 3}[route] + steps
    assert shares[0] == pytest.approx(0.25, abs=1e-12)
    assert model.guarantee_.rho == pytest.approx(0.05, rel=1e-9)
    noise = [drawn / multiplier for _, multiplier, drawn, _ in draws]
    for kind in set(kinds):
        own = np.stack(
            [drawn.ravel() for drawn, other in zip(noise, kinds, strict=True) if other == kind]
        )
        assert own.std() == pytest.approx(1, rel=0.2)
        if len(own) > 1:
            # nothing is drawn once and used twice
            assert np.abs(np.corrcoef(own) - np.eye(len(own))).max() < 0.8


@pytest.mark.parametrize("route", ROUTES)
def test_sums_are_weighted_by_their_precision(monkeypatch, draws, route):
    take(route, monkeypatch)
    used = []
    found = module.class_posterior

    def spy(prior, release):
        used.append((prior, release))
        return found(prior, release)

    monkeypatch.setattr(module, "class_posterior", spy)
    tacit.AutoPrototypes("rho=0.05", **FIT).fit(X, Y)
    released = [own for kind, _, _, own in draws if kind == "sums"]
    precisions = [multiplier**-2 for kind, multiplier, _, _ in draws if kind == "sums"]
    assert len(used) == len(released)
    for i, (prior, release) in enumerate(used, 1):
        mean = np.average(released[:i], axis=0, weights=precisions[:i])
        assert np.allclose(
            release.sums @ prior.axes.T,
            mean[:, :-1] / (1 - COUNT_SHARE) ** 0.5,
            rtol=1e-9,
            atol=1e-9,
        )
        assert np.allclose(release.counts, mean[:, -1] / COUNT_SHARE**0.5, rtol=1e-9)
        assert release.noise == pytest.approx(
            (sum(precisions[:i]) * (1 - COUNT_SHARE)) ** -0.5, rel=1e-9
        )
        assert release.count_noise == pytest.approx(
            (sum(precisions[:i]) * COUNT_SHARE) ** -0.5, rel=1e-9
        )


@pytest.mark.parametrize("route", ROUTES)
def test_names_are_directions_along_the_axes_and_meet_the_last_sums(monkeypatch, route):
    take(route, monkeypatch)
    used, releases = [], []
    monkeypatch.setattr(deciding, "named_posterior", lambda *given: used.append(given))
    found = module.class_posterior
    monkeypatch.setattr(
        module,
        "class_posterior",
        lambda prior, release: releases.append(release) or found(prior, release),
    )
    tacit.AutoPrototypes("rho=0.05", names=NAME_ROWS, **FIT).fit(X, Y)
    ((prior, release, plain, names),) = used
    assert np.allclose(names @ prior.axes.T, unit_rows_about(NAME_ROWS, CENTRE))
    assert np.array_equal(release.sums, releases[-1].sums)
    assert (release.noise, release.count_noise) == (releases[-1].noise, releases[-1].count_noise)
    assert np.array_equal(plain.mean, found(prior, release).mean)


@pytest.mark.parametrize("route", ROUTES)
def test_clarity_is_at_the_noise_of_all_sums(monkeypatch, route):
    take(route, monkeypatch)
    used = []
    found = deciding.blended

    def spy(posterior, variances, rows, clarity, names, *, linear):
        used.append((posterior, clarity))
        return found(posterior, variances, rows, clarity, names, linear=linear)

    monkeypatch.setattr(deciding, "blended", spy)
    model = tacit.AutoPrototypes("rho=0.02", names=NAME_ROWS, **FIT).fit(X, Y)
    ((posterior, clarity),) = used
    noise = (0.5 / 0.02 / (route * (1 - COUNT_SHARE))) ** 0.5
    assert np.allclose(clarity, posterior.clarity(noise), rtol=1e-6)
    assert model.released_.mechanism["noise multiplier of the sums"] == pytest.approx(
        (0.5 / 0.02 / route) ** 0.5
    )


def test_noise_of_the_sums_agrees_with_their_event():
    """Over 2,000 draws from no records."""
    noise = noise_source("research", 0)
    event = tacit.AutoPrototypes("rho=0.02", public=PUBLIC).promise().event.counted()
    (multiplier,) = (own.event.noise_multiplier for own, _ in event if isinstance(own, Parallel))
    nothing = UnitRows(np.zeros((2, 3)), np.array([0, 1]))
    drawn = np.stack(
        [
            sums_with_counts(nothing, n_classes=2, multiplier=multiplier, noise=noise)
            for _ in range(2000)
        ]
    )
    assert multiplier == pytest.approx(10)
    assert drawn[:, :, :-1].var(axis=0).mean() == pytest.approx(
        multiplier**2 / (1 - COUNT_SHARE), rel=0.05
    )
    assert drawn[:, :, -1].var(axis=0).mean() == pytest.approx(
        multiplier**2 / COUNT_SHARE, rel=0.05
    )
    assert np.abs(drawn.mean(axis=0)).max() < 5 * multiplier / COUNT_SHARE**0.5 / 2000**0.5


def test_sums_and_counts_are_exact_at_a_huge_budget_and_unbiased_at_others():
    noise = noise_source("research", 0)

    def draw(multiplier):
        records = UnitRows(X, Y, CENTRE)
        return sums_with_counts(records, n_classes=4, multiplier=multiplier, noise=noise)

    assert np.allclose(draw(1e-6), SUMS, atol=1e-4)
    assert np.allclose(draw(0.0), SUMS, rtol=1e-12)
    drawn = np.stack([draw(5.0) for _ in range(400)])
    z = (drawn.mean(axis=0) - SUMS) / drawn.std(axis=0) * 20
    assert np.abs(z).max() < 4
    assert z.std() == pytest.approx(1, abs=0.3)


def test_a_row_and_its_count_have_norm_1_and_a_row_of_zeros_has_neither(monkeypatch):
    seen = []
    spied = module.gaussian.class_sums

    def spy(blocks, **settings):
        blocks = list(blocks)
        seen.extend(block.rows for block in blocks)
        return spied(blocks, **settings)

    monkeypatch.setattr(module.gaussian, "class_sums", spy)
    records = UnitRows(np.concatenate([X, np.zeros((3, 12))]), np.append(Y, [0, 1, 2]))
    sums_with_counts(records, n_classes=4, multiplier=1.0, noise=noise_source("research", 0))
    rows = np.concatenate(seen)
    assert len(rows) == 500
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-14)
    assert np.allclose(rows[:, -1] ** 2, COUNT_SHARE)


@pytest.mark.parametrize("multiplier", [0.0, 3.0])
@pytest.mark.parametrize("within", [0.6, 1.0])
@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
def test_the_signal_is_that_of_small_classes_under_trust_and_else_of_average_ones(
    multiplier, within, trust
):
    sizes = np.array([7.0, 100.0, 30.0, 900.0, 12.0])
    posterior = ClassPosterior(np.zeros((5, 12)), np.ones((5, 12)), sizes, trust, within)
    n = trust * np.quantile(sizes, SMALL_CLASSES) + (1 - trust) * sizes.mean()
    expected = n * posterior.between / (12 * multiplier**2 + n * within) ** 0.5
    assert signal(posterior, multiplier) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("signals", "spent", "refined"),
    [
        ([CLEAR, CLEAR], 0.25, True),
        ([CLEAR - 1e-9, CLEAR], 0.5, True),
        ([CLEAR - 1e-9, CLEAR - 1e-9], 1.0, False),
        ([0.0, CLEAR], 0.5, True),
    ],
)
def test_the_route_follows_the_signal(monkeypatch, signals, spent, refined):
    left = iter(signals)
    noises = []

    def next_signal(posterior, noise):
        noises.append(noise)
        return next(left)

    monkeypatch.setattr(module, "signal", next_signal)
    model = tacit.AutoPrototypes("rho=0.5", **FIT).fit(X, Y)
    assert (model.spent_on_sums_, model.refined_) == (spent, refined)
    assert noises == pytest.approx([1.0] * len(noises))  # of sums that cost all of rho = 0.5


def unit_deviation(scores):
    """Of public rows, deviation 1 about the mean of each row."""
    return (scores - scores.mean(axis=1, keepdims=True)).std()


def directly(posterior, prior, names=None, clip=np.inf):
    """The refined route in plain numpy, but for the scale of the scores it starts from."""
    rows = unit_rows_about(PUBLIC, CENTRE)
    within = posterior.within * prior.variances + FLOOR * prior.variances.max()
    a = min(ROOT, STEEP * posterior.between**0.5)
    slopes, variance = posterior.mean / within**a, posterior.variance / within**a
    lengths = (slopes * posterior.mean).sum(axis=1) + 2 * posterior.trust / 16 * variance.sum(
        axis=1
    )
    slopes = slopes / lengths[:, None] ** 0.5 @ prior.axes.T
    slopes /= unit_deviation(rows @ slopes.T)
    if names is not None:
        slopes = slopes / (1 + NAMES) + names / unit_deviation(rows @ names.T) * NAMES / (1 + NAMES)
        slopes /= unit_deviation(rows @ slopes.T)
    known = CarriedPosterior(posterior, prior.axes, prior.variances, np.ones(4), None)
    simulation = simulated(known, prior.sample)
    scale = posterior_probabilities(
        posterior, simulation, lambda sample: sample @ (slopes @ prior.axes).T
    ).scale
    start, beside = min(START * scale, LONGEST_START) * slopes, BALANCE * np.log(posterior.sizes)
    ridge = RIDGE * posterior.within**2 / posterior.between
    over_moments = np.linalg.inv(ROWS.T @ ROWS + ridge * 4 * np.eye(12))
    theta = ahead = np.zeros((4, 12))
    for step in range(STEPS):
        residual = softmax(ROWS @ (start + ahead).T + beside, axis=1) - np.eye(4)[Y]
        residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
        moved = ahead - 4 * (residual.T @ ROWS + ridge * ahead) @ over_moments
        theta, ahead = moved, moved + step / (step + 3) * (moved - theta)
    return start + theta


def exact_posterior():
    prior = public_prior(PUBLIC, CENTRE)
    return prior, class_posterior(
        prior, NoisySums(SUMS[:, :-1] @ prior.axes, 0.0, SUMS[:, -1], 0.0)
    )


@pytest.mark.parametrize("names", [None, NAME_ROWS])
def test_infinite_budget_is_the_direct_formula(names):
    settings = {"public": PUBLIC, "classes": 4, "names": names}
    models = [
        tacit.AutoPrototypes("rho=inf", noise=noise, **settings).fit(X, Y)
        for noise in ("research", "secure")
    ]
    prior, posterior = exact_posterior()
    coefficients = directly(
        posterior, prior, None if names is None else unit_rows_about(names, CENTRE)
    )
    for model in models:
        assert (model.refined_, model.spent_on_sums_, model.names_used_) == (
            True,
            0.25,
            names is not None,
        )
        assert np.allclose(model.coefficients_, coefficients, rtol=1e-9, atol=1e-9)
        assert not model.intercepts_.any()
        assert np.allclose(model.prototypes_, posterior.mean @ prior.axes.T, atol=1e-9)
        assert np.allclose(model.sizes_, np.bincount(Y), rtol=1e-12)
        scores = ROWS @ coefficients.T
        assert np.allclose(model.decision_function(X), scores)
        assert np.array_equal(model.predict(X), scores.argmax(axis=1))


def test_a_large_budget_is_the_clipped_formula():
    model = tacit.AutoPrototypes("rho=1e9", **FIT).fit(X, Y)
    prior, posterior = exact_posterior()
    assert np.allclose(
        model.coefficients_, directly(posterior, prior, clip=clip_norm(posterior.sizes)), atol=0.02
    )
    assert not np.allclose(model.coefficients_, directly(posterior, prior), atol=0.05)


def test_few_records_at_an_infinite_budget_are_decided_by_their_sums(monkeypatch):
    take(1.0, monkeypatch)
    few = np.concatenate([np.flatnonzero(c == Y)[:2] for c in range(4)])
    model = tacit.AutoPrototypes("rho=inf", **FIT).fit(X[few], Y[few])
    prior = public_prior(PUBLIC, CENTRE)
    sums = np.stack([ROWS[few[2 * c : 2 * c + 2]].sum(axis=0) for c in range(4)])
    posterior = class_posterior(prior, NoisySums(sums @ prior.axes, 0.0, np.full(4, 2.0), 0.0))
    scores = blended(
        posterior, prior.variances, unit_rows_about(PUBLIC, CENTRE) @ prior.axes, np.ones(4), None
    )
    assert not model.refined_
    assert model.released_.mechanism["releases of the sums"] == "one"
    assert np.allclose(model.decision_function(X), scores.of(ROWS @ prior.axes))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("budget", ["rho=0.5", "rho=inf"])
@pytest.mark.parametrize("names", [None, NAME_ROWS])
def test_it_decides_as_released(monkeypatch, route, budget, names, tmp_path):
    take(route, monkeypatch)
    model = tacit.AutoPrototypes(budget, public=PUBLIC, classes=4, names=names).fit(X, Y)
    scores = ROWS @ model.coefficients_.T + model.intercepts_
    if not model.refined_:
        scores += (ROWS @ model.axes_) ** 2 @ model.squares_.T
    assert model.refined_ == (route < 1)
    assert isinstance(model.released_.decision, LinearHead if model.refined_ else QuadraticHead)
    assert (
        ("squares" in model.released_.arrays) == hasattr(model, "squares_") == (not model.refined_)
    )
    assert np.allclose(model.decision_function(X), scores)
    release = tacit.Release.load(
        tacit.Release.of(model).save(tmp_path / "out", allow_research=True)
    ).verify()
    assert np.array_equal(release.predict(X), model.predict(X))
    assert np.array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("names", [None, NAME_ROWS])
def test_offsets_after_gradient_steps_are_those_of_the_coefficients_that_the_steps_gave(
    monkeypatch, names
):
    take(0.25, monkeypatch)
    rare = np.flatnonzero((Y > 0) | (np.arange(500) < 60))
    model = tacit.AutoPrototypes("rho=0.05", names=names, **FIT).fit(X[rare], Y[rare])
    known, sample = carried(model.released_.carried), public_prior(PUBLIC, CENTRE).sample
    simulation = simulated(known, sample)
    found = fair_offsets(
        known.clarity, simulation, lambda rows: rows @ (model.coefficients_ @ known.axes).T
    )
    assert np.allclose(model.intercepts_, found, atol=1e-4 * np.ptp(found))
    assert found.argmax() == 0


@pytest.mark.parametrize(("names", "alone"), [(None, True), (NAME_ROWS, False), (WRONG, True)])
def test_offsets_of_sums_count_less_where_no_names_are_used(monkeypatch, names, alone):
    take(1, monkeypatch)
    asked = []
    monkeypatch.setattr(
        deciding,
        "fair_offsets",
        lambda *_, sums_alone: asked.append(sums_alone) or np.array([9, 0, 0, 0]),
    )
    model = tacit.AutoPrototypes("rho=0.5", names=names, **FIT).fit(X, Y)
    assert asked == [alone]
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_right_names_help_where_sums_are_noise_and_do_no_harm_where_they_are_clear(seed):
    def accuracy(budget, names):
        model = tacit.AutoPrototypes(budget, **(FIT | {"random_state": seed, "names": names})).fit(
            X, Y
        )
        return (model.predict(X) == Y).mean()

    assert accuracy("rho=1e-5", NAME_ROWS) > accuracy("rho=1e-5", None) + 0.1
    assert accuracy("rho=1", NAME_ROWS) > accuracy("rho=1", None) - 0.02


@pytest.mark.parametrize("budget", ["rho=inf", "rho=1e4", "rho=0.5", "rho=0.02"])
def test_names_that_the_sums_contradict_change_nothing(budget):
    plain = tacit.AutoPrototypes(budget, **FIT).fit(X, Y)
    model = tacit.AutoPrototypes(budget, names=WRONG, **FIT).fit(X, Y)
    right = tacit.AutoPrototypes(budget, names=NAME_ROWS, **FIT).fit(X, Y)
    assert (plain.names_used_, model.names_used_, right.names_used_) == (False, False, True)
    said = [fitted.released_.mechanism["class names"] for fitted in (plain, model, right)]
    assert said == ["none", deciding.LEFT_OUT, "used"]
    arrays, same = plain.released_.arrays, model.released_.arrays
    assert arrays.keys() == same.keys()
    assert all(np.array_equal(arrays[name], same[name]) for name in arrays)
    assert not np.allclose(right.coefficients_, plain.coefficients_)


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


@pytest.mark.parametrize(
    ("budget", "margin"), [("rho=0.005", 0.06), ("rho=0.05", 0.08), ("rho=0.5", 0.02)]
)
def test_it_is_better_than_noisy_sums_where_classes_are_small(budget, margin):
    gains = []
    for seed in range(3):
        x, y, test_x, test_y, public = clusters(seed)
        # another seed than that of the clusters: the noise would be their middles
        fit = {"public": public, "classes": 20, "noise": "research", "random_state": seed + 100}
        models = [
            kind(budget, **fit).fit(x, y)
            for kind in (tacit.AutoPrototypes, tacit.NoisySumPrototypes)
        ]
        auto, sums = (
            evaluate(test_y, model.predict(test_x), np.arange(20)).balanced for model in models
        )
        gains.append(auto - sums)
    assert np.mean(gains) > margin


def test_in_hopeless_noise_names_decide():
    x, y, test_x, test_y, public = clusters(0, width=384)
    rows = {"public": public, "classes": 20}
    means = np.stack([test_x[test_y == c].mean(axis=0) for c in range(20)])
    for seed in range(5):
        names = means + 5 * np.random.default_rng(seed + 50).normal(size=means.shape)
        by_name = tacit.NamePrototypes(names=names, **rows).fit(x, y).predict(test_x)
        model = tacit.AutoPrototypes(
            "rho=1e-6", names=names, noise="research", random_state=seed, **rows
        ).fit(x, y)
        assert not model.refined_
        assert model.names_used_
        assert 0.3 < (by_name == test_y).mean() < 0.99
        assert abs((model.predict(test_x) == test_y).mean() - (by_name == test_y).mean()) <= 0.01


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
        (np.ones((30, 3)), Y[:30], 2 * np.ones((30, 3))),
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
    ("ratio", "budget", "balanced", "minority"),
    [(10, "rho=0.125", 0.53, 0.36), (100, "rho=2", 0.475, 0.25)],
)
def test_accuracy_on_imbalanced_real_embeddings(cifar100, ratio, budget, balanced, minority):
    kept = imbalanced_subset(cifar100.train_y, ratio, 0)
    x, y = cifar100.train_x[kept], cifar100.train_y[kept]
    model = tacit.AutoPrototypes(
        budget, public=cifar100.public, classes=100, noise="research", random_state=0
    )
    predicted = model.fit(x, y).predict(cifar100.test_x)
    scores = evaluate(cifar100.test_y, predicted, np.arange(100), np.bincount(y, minlength=100))
    assert scores.balanced >= balanced
    assert scores.minority >= minority


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budget": "epsilon=1"}, BudgetError, stating("Gaussian", "pure epsilon")),
        ({"public": None}, InputError, stating("public=None", "rows")),
        ({"public": np.ones((3, 2))}, InputError, "encode both the same way"),
        ({"public": np.zeros((3, 12))}, InputError, "public row 0 is all zeros"),
        (
            {"names": NAME_ROWS, "classes": None},
            InputError,
            stating("names", "declared class list"),
        ),
        (
            {"names": NAME_ROWS[:3]},
            InputError,
            stating("names", "3 classes", "4"),
        ),
        ({"names": NAME_ROWS[:, :5]}, InputError, stating("names[0]", "(1, 5)", "12 columns")),
        (
            {"names": np.where(np.eye(4, 12) > 0, np.nan, 1.0)},
            InputError,
            r"names\[0\] row 0 is not finite",
        ),
        ({"names": [*NAME_ROWS[:3], np.zeros(12)]}, InputError, r"names\[3\]"),
        ({"names": [*NAME_ROWS[:3], []]}, InputError, r"names\[3\]"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        tacit.AutoPrototypes(**({"classes": 4, "public": PUBLIC} | parameters)).fit(X, Y)
