import math

import numpy as np
import pytest
from scipy.optimize import minimize

import tacit
from learners.blobs import PUBLIC, X, Y, unit
from tacit.learners.linear.name_centre import NameCentre, cosine_variance
from tacit.models.name_length import LENGTH_MEAN, LENGTH_SD, SCALE_OF_LENGTH

NAMES = np.array([X[c == Y].mean(axis=0) for c in range(4)])
COUNTS = np.bincount(Y)
LEARNERS = [tacit.GradientDescent, tacit.GlobalAdapt, tacit.FeatureCovariance]


def test_the_variance_of_cosines_to_other_names():
    names = unit(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]))
    others = [[0.0, 0.6], [0.0, 0.8], [0.6, 0.8]]  # of the first, second and third name
    assert cosine_variance(names) == pytest.approx(
        max(np.var(others, axis=1).mean(), names.var(axis=0).mean())
    )
    assert cosine_variance(names[:2]) == pytest.approx(0.25)  # two names have one other name each
    assert cosine_variance(names[[0, 0, 0]]) == 1e-9


def advantage(rows, labels, names):
    """Mean cosine to the own name, less that to all names by their shares."""
    cosines = rows @ unit(names).T
    return np.mean(
        cosines[np.arange(len(labels)), labels] - cosines @ (np.bincount(labels) / len(labels))
    )


def test_the_first_gradient_determines_the_scale():
    """By the definition, without noise: a/v, shrunk towards right names by its sampling noise, and
    the share of the sampling's noise in class sums.
    """
    rows = unit(unit(X) - unit(PUBLIC).mean(axis=0))
    names = unit(unit(NAMES) - unit(PUBLIC).mean(axis=0))
    variance = cosine_variance(names)
    ratio = advantage(rows, Y, names) / variance
    sampling = 1 / (variance * len(Y) * SCALE_OF_LENGTH**2)  # variance of ratio / SCALE_OF_LENGTH
    gain = LENGTH_SD**2 / (LENGTH_SD**2 + sampling)
    length = LENGTH_MEAN + gain * (ratio / SCALE_OF_LENGTH - LENGTH_MEAN)
    assert 0.1 < length < LENGTH_MEAN
    share = np.mean(COUNTS / (COUNTS + 0.4 * COUNTS**2))
    model = tacit.GradientDescent(
        "rho=inf", classes=4, public=PUBLIC, counts=COUNTS, names=NAMES
    ).fit(X, Y)
    # counts are raised by one
    assert model.name_scale_ == pytest.approx(SCALE_OF_LENGTH * length * share, rel=1e-3)


def scale_after(ratio, noise=0.0, counts=COUNTS, counts_noise=0.0):
    """The scale of a centre whose gradients all say this a/v; records are few enough to need
    names.
    """
    named = NameCentre(unit(NAMES), counts, counts_noise=counts_noise, noise=noise, steps=10**6)
    step = named._curvature / (named.directions**2).sum()
    follow = named.follow(lambda head: -ratio * step * named.directions)
    for _ in range(named._used):
        follow(np.zeros((4, 12)))
    return named.scale / named._noise_share()


def test_the_scale_of_names_that_fit_and_of_others():
    assert scale_after(20.0) == pytest.approx(20.0)
    assert scale_after(1e6) == 20.0  # right names suffice
    assert scale_after(10.0) == pytest.approx(10.0, abs=0.5)
    assert scale_after(1.0) == scale_after(-5.0) == scale_after(-1e6) == 0.0


def test_noise_contradicts_no_names():
    """Neither noise in the gradients nor noise in the number of records."""
    assert scale_after(0.0) == 0.0
    assert scale_after(0.0, counts_noise=1e6) > 10.0
    named = NameCentre(unit(NAMES), COUNTS, counts_noise=0.0, noise=1e6, steps=2)
    follow = named.follow(lambda head: 0 * head)
    follow(np.zeros((4, 12)))
    follow(np.zeros((4, 12)))
    assert named.scale == pytest.approx(20.0, rel=0.01)


def test_steps_average_to_the_precision_and_no_further():
    named = NameCentre(unit(NAMES), COUNTS, counts_noise=0.0, noise=100.0, steps=50)
    one = 100.0 * np.linalg.norm(named.directions) / (500 * cosine_variance(unit(NAMES)))
    wanted = math.ceil((one / 2) ** 2)
    assert 1 < wanted < 50
    follow = named.follow(lambda head: -1e6 * named.directions)
    scales = []
    for _ in range(wanted + 1):
        follow(np.zeros((4, 12)))
        scales.append(named.scale)
    assert scales[: wanted - 1] == [0.0] * (wanted - 1)
    assert scales[wanted - 1] == scales[wanted] > 0


@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_head_starts_at_the_names(learner, intercept):
    """One step is taken at zero with names and without, so the heads differ by s T."""
    one = {"epochs": 1} if learner is tacit.FeatureCovariance else {"steps": 1}
    given = {
        "classes": 4,
        "public": PUBLIC,
        "intercept": intercept,
        "noise": "research",
        "random_state": 0,
    } | one
    plain = learner("rho=50", **given).fit(X, Y)
    named = learner("rho=50", **given, names=NAMES).fit(X, Y)
    names = unit(unit(NAMES) - unit(PUBLIC).mean(axis=0))
    assert named.name_scale_ > 0
    assert plain.name_scale_ == 0
    apart = named.name_scale_ * (names - names.mean(axis=0))
    assert np.allclose(named.coefficients_ - plain.coefficients_, apart, rtol=0, atol=1e-10)
    assert np.allclose(named.intercepts_, plain.intercepts_, rtol=0, atol=1e-10)


def test_the_ridge_is_centred_on_the_names():
    """Descent ends at the optimum of another solver, whose penalty is on the distance from s T."""
    settings = {"classes": 4, "balanced": False, "ridge": 1.0, "learning_rate": 4.0, "steps": 2000}
    model = tacit.GradientDescent("rho=inf", names=NAMES, **settings).fit(X, Y)
    rows, names = unit(X), unit(NAMES)
    centre = model.name_scale_ * (names - names.mean(axis=0))

    def loss(flat):
        head = flat.reshape(4, 12)
        logits = rows @ head.T
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(Y)), Y]
        return losses.sum() + 0.5 * ((head - centre) ** 2).sum()

    expected = minimize(loss, np.zeros(48), tol=1e-10).x.reshape(4, 12)
    assert np.allclose(model.coefficients_, expected, atol=1e-3)


@pytest.mark.parametrize("learner", LEARNERS)
def test_right_names_help_and_wrong_ones_do_no_harm_where_records_are_seen(learner):
    """A hundred classes of ten records, whose names are near the class means; means of three
    seeds.
    """
    rng = np.random.default_rng(3)
    means = unit(rng.normal(size=(100, 64)))
    names = unit(means + 1.2 * unit(rng.normal(size=(100, 64))))
    y = np.repeat(np.arange(100), 10)
    x, test = (means[y] + 1.2 * unit(rng.normal(size=(1000, 64))) for _ in range(2))

    def accuracy(budget, names):
        given = {"classes": 100, "noise": "research", "names": names}
        fits = [learner(budget, random_state=seed, **given).fit(x, y) for seed in range(3)]
        return np.mean([fit.score(test, y) for fit in fits])

    alone = tacit.NamePrototypes(classes=100, names=names).fit(x, y).score(test, y)
    for budget in ("rho=0.02", "rho=0.5"):
        without, right = accuracy(budget, None), accuracy(budget, names)
        assert right > max(without, alone) - 0.01
    wrong = np.roll(names, 1, axis=0)
    assert accuracy("rho=4", wrong) > accuracy("rho=4", None) - 0.01
    assert accuracy("rho=0.02", names) > accuracy("rho=0.02", None) + 0.2


def test_names_of_classes_without_records_are_kept():
    model = tacit.GradientDescent(
        "rho=0.01", classes=5, names=np.vstack([NAMES, -NAMES.sum(axis=0)]), counts=100
    )
    model.set_params(noise="research", random_state=0).fit(X, Y)
    assert model.coefficients_.shape == (5, 12)
    assert np.isfinite(model.coefficients_).all()
