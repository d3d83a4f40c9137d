"""Every event against formulas computed here, independently of tacit and of dp_accounting."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.signal import fftconvolve
from scipy.stats import norm

from tacit.errors import InputError
from tacit.privacy import accounting
from tacit.privacy.events import (
    ZCDP,
    Composition,
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.serial import event_from_json, event_to_json

EVENTS = [
    Gaussian(1.3),
    Exponential(0.7),
    PureDP(0.4),
    ZCDP(0.2),
    RandomizedResponse(0.9, 4),
    Laplace(1.6),
    Parallel(Gaussian(2.0), "classes"),
    Parallel(Exponential(0.5), "splits"),
    RepeatAndSelect(Gaussian(4.0), 5, 1),
    RepeatAndSelect(Exponential(0.3), 3, 0),
    SampledGaussian(1.1, 0.05),
]
DELTAS = [1e-3, 1e-5, 1e-8]


def response_divergence(epsilon, n_classes, order):
    """Renyi divergence of randomized response between two labels, straight from its two rows."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + n_classes - 1)
    other = (1 - keep) / (n_classes - 1)
    total = keep**order * other ** (1 - order) + other**order * keep ** (1 - order) + (n_classes - 2) * other
    return math.log(total) / (order - 1)


def laplace_divergence(scale, order):
    def integrand(x):
        return math.exp(order * -abs(x) / scale + (1 - order) * -abs(x - 1) / scale) / (2 * scale)

    total = sum(quad(integrand, a, b, epsabs=1e-13)[0] for a, b in ((-60 * scale, 0), (0, 1), (1, 60 * scale)))
    return math.log(total) / (order - 1)


def gaussian_delta(mu, epsilon):
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_composing_n_times_equals_n_compositions(event, n):
    assert n * event == compose([event] * n)
    total = event
    for _ in range(n - 1):
        total = total + event
    assert total == n * event
    assert (n * event).rho == pytest.approx(n * event.rho)
    assert (n * event).pure == pytest.approx(n * event.pure)
    for delta in DELTAS:
        assert accounting.epsilon(n * event, delta) == accounting.epsilon(total, delta)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("conversion", ["twice", "relabelled"])
def test_conversions_of_the_unit_keep_every_use(event, conversion):
    """Two changes of n uses cost n uses at two changes, in every fact and on the curves."""
    one = getattr(event, conversion)()
    converted = getattr(5 * event, conversion)()
    assert converted == 5 * one
    assert (converted.pure, converted.rho, converted.mu) == pytest.approx((5 * one.pure, 5 * one.rho, 5**0.5 * one.mu))
    orders = np.array([1.5, 4.0])
    assert accounting.renyi(converted, orders) == pytest.approx(5 * accounting.renyi(one, orders))
    assert accounting.epsilon(converted, 1e-5) >= accounting.epsilon(5 * event, 1e-5)
    mixed = getattr(3 * event + 2 * Gaussian(9.0), conversion)()
    assert mixed == 3 * one + 2 * getattr(Gaussian(9.0), conversion)()


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_nothing_is_free_and_order_does_not_matter(event):
    other = Exponential(0.3)
    assert accounting.epsilon(event + other, 1e-5) == pytest.approx(accounting.epsilon(other + event, 1e-5), rel=1e-9)
    assert accounting.epsilon(event + other, 1e-5) > accounting.epsilon(event, 1e-5)
    assert 0 * event == Composition(())
    assert accounting.epsilon(0 * event, 0.0) == 0


@pytest.mark.parametrize("event", [*EVENTS, 3 * Gaussian(2.0) + Exponential(1.0)], ids=repr)
def test_json_round_trip(event):
    assert event_from_json(event_to_json(event)) == event


def test_infinite_values_survive_json():
    assert event_from_json(event_to_json(Exponential(math.inf))) == Exponential(math.inf)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("z", [0.3, 1.0, 8.0])
def test_gaussians_follow_the_exact_curve(z, delta):
    epsilon = accounting.epsilon(3 * Gaussian(z), delta)
    assert gaussian_delta(math.sqrt(3) / z, epsilon) == pytest.approx(delta, rel=1e-6)
    assert accounting.epsilon(Gaussian(z / math.sqrt(3)), delta) == pytest.approx(epsilon, rel=1e-9)
    assert accounting.epsilon(Gaussian(z) + Gaussian(2 * z), delta) == pytest.approx(
        accounting.epsilon(Gaussian(z / math.sqrt(1.25)), delta), rel=1e-9
    )


@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_conversion_agrees_with_mpmath(rho, delta):
    def bound(order):
        return rho * order + mpmath.log(1 - 1 / order) - mpmath.log(delta * order) / (order - 1)

    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(i) / 200) for i in range(-400, 1600)]
    best = min(orders, key=bound)
    exact = bound(mpmath.findroot(lambda a: mpmath.diff(bound, a), best))
    assert accounting.epsilon(ZCDP(rho), delta) == pytest.approx(float(max(exact, 0)), rel=1e-7, abs=1e-9)
    assert accounting.epsilon(ZCDP(rho), delta) >= float(exact) * (1 - 1e-12)


def test_one_exponential_mechanism_says_its_epsilon():
    assert accounting.epsilon(Exponential(1.0), 1e-5) == 1.0
    assert accounting.epsilon(Exponential(1.0), 0.0) == 1.0
    assert accounting.epsilon(ZCDP(0.125), 1e-5) == pytest.approx(2.17, abs=0.01)
    assert Exponential(1.0).rho == 0.125


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.5, 4.0, 32.0])
def test_renyi_curves(epsilon, order):
    orders = np.array([order])
    assert accounting.renyi(PureDP(epsilon), orders)[0] == pytest.approx(response_divergence(epsilon, 2, order))
    assert accounting.renyi(RandomizedResponse(epsilon, 5), orders)[0] == pytest.approx(
        response_divergence(epsilon, 5, order), rel=1e-9
    )
    assert accounting.renyi(Laplace(1 / epsilon), orders)[0] == pytest.approx(
        laplace_divergence(1 / epsilon, order), rel=1e-6
    )


@pytest.mark.parametrize(("epsilon", "n_classes"), [(1e-6, 2), (1e-6, 1000), (1e-4, 10**6), (1e-9, 3), (300.0, 5)])
def test_response_curves_keep_their_digits_where_numbers_are_tiny_or_huge(epsilon, n_classes):
    with mpmath.workdps(60):
        e, k = mpmath.mpf(epsilon), n_classes
        other = 1 / (mpmath.exp(e) + k - 1)
        for order in (1.02, 2.0, 100.0, 1e5):
            a = mpmath.mpf(order)
            total = other * (mpmath.exp(a * e) + mpmath.exp((1 - a) * e) + k - 2)
            exact = float(mpmath.log(total) / (a - 1))
            found = accounting.renyi(RandomizedResponse(epsilon, k), np.array([order]))[0]
            assert found == pytest.approx(exact, rel=1e-9)
            assert found > 0


def test_many_small_responses_are_never_free():
    assert accounting.epsilon(10**6 * RandomizedResponse(1e-4, 10**6), 1e-9) > 0
    assert accounting.epsilon(RandomizedResponse(1e-6, 1000), 1e-12) > 0


def test_below_the_digits_of_the_curves_only_renyi_is_trusted():
    assert accounting.epsilon(Gaussian(1.0), 1e-31) == accounting.epsilon(ZCDP(0.5), 1e-31)
    assert accounting.epsilon(Gaussian(1.0), 1e-29) < accounting.epsilon(ZCDP(0.5), 1e-29)
    mixed, bound = Gaussian(2.0) + Exponential(0.5), ZCDP(0.125 + 0.5**2 / 8)
    assert accounting.epsilon(mixed, 1e-14) == pytest.approx(accounting.epsilon(bound, 1e-14), rel=1e-9)
    assert accounting.epsilon(mixed, 1e-12) < accounting.epsilon(bound, 1e-12)


@pytest.mark.parametrize("event", [Gaussian(1.0), Gaussian(30.0) + Exponential(0.1), 3 * Laplace(2.0)], ids=repr)
def test_epsilon_falls_as_delta_grows_over_all_its_range(event):
    deltas = [10.0**-power for power in (300, 100, 40, 31, 29, 14, 12, 9, 6, 3)]
    epsilons = [accounting.epsilon(event, delta) for delta in deltas]
    assert epsilons == sorted(epsilons, reverse=True)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 6.0])
def test_rho_of_pure_events_is_the_largest_divergence_over_order(epsilon):
    orders = 1 + np.logspace(-3, 4, 400)
    pure = [response_divergence(epsilon, 2, a) / a if a < 100 else epsilon / a for a in orders]
    assert max(pure) == pytest.approx(PureDP(epsilon).rho, rel=2e-3)
    assert max(pure) <= PureDP(epsilon).rho * (1 + 1e-7)
    laplace = accounting.renyi(Laplace(1 / epsilon), orders[orders > 1.001]) / orders[orders > 1.001]
    assert laplace.max() == pytest.approx(Laplace(1 / epsilon).rho, rel=2e-3)
    assert laplace.max() <= Laplace(1 / epsilon).rho * (1 + 1e-7)


STEP = 2e-4  # of the loss distributions below


def loss_masses(event):
    """The masses of one use's privacy loss, on multiples of STEP, and the first multiple; from the densities alone."""
    if isinstance(event, RandomizedResponse | PureDP):
        size = getattr(event, "n_classes", 2)
        other = 1 / (math.exp(event.epsilon) + size - 1)
        masses = {event.epsilon: other * math.exp(event.epsilon), -event.epsilon: other, 0.0: (size - 2) * other}
    elif isinstance(event, Gaussian):
        mean, deviation = event.rho, 1 / event.noise_multiplier
        grid = np.arange(mean - 9 * deviation, mean + 9 * deviation, STEP)
        masses = dict(zip(grid + STEP / 2, np.diff(norm.cdf(np.append(grid, math.inf), mean, deviation)), strict=True))
    else:
        b = event.noise_multiplier  # the loss at x is (|x - 1| - |x|)/b, so 1/b below 0, and -1/b above 1
        grid = np.arange(0, 1, b * STEP / 2)
        between = np.diff(1 - 0.5 * np.exp(-np.append(grid, 1.0) / b))
        masses = dict(zip((1 - 2 * grid) / b - STEP / 2, between, strict=True))
        masses[1 / b] = masses.get(1 / b, 0.0) + 0.5
        masses[-1 / b] = masses.get(-1 / b, 0.0) + 0.5 * math.exp(-1 / b)
    places = np.rint(np.array(list(masses)) / STEP).astype(int)
    least = places.min()
    return least, np.bincount(places - least, weights=list(masses.values()))


def composed_delta(events, epsilon):
    """Delta at `epsilon` of these events together, by convolving the distributions of their losses."""
    least, total = 0, np.ones(1)
    for event in events:
        first, masses = loss_masses(event)
        least, total = least + first, np.maximum(fftconvolve(total, masses), 0.0)
    losses = (least + np.arange(len(total))) * STEP
    return float(np.sum(total * np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0)))))


@pytest.mark.parametrize(
    "events",
    [
        [Laplace(2.5)] * 12,
        [PureDP(0.3)] * 6,
        [RandomizedResponse(0.8, 5)] * 6,
        [RandomizedResponse(0.4, 3)] * 4 + [RandomizedResponse(0.7, 20)] * 3,
        [Gaussian(4.0)] * 5 + [Laplace(4.0)] * 3,
        [Gaussian(5.0)] * 3 + [RandomizedResponse(0.5, 10)] * 4 + [PureDP(0.2)] * 2,
    ],
    ids=lambda events: repr(compose(events)),
)
def test_composed_losses_are_those_of_the_mechanisms(events):
    """The stated epsilon has the delta that the mechanisms' own densities give, every use counted."""
    delta = 1e-4
    assert composed_delta(events, accounting.epsilon(compose(events), delta)) == pytest.approx(delta, rel=0.02)


@pytest.mark.parametrize(
    "event", [event for event in EVENTS if type(event.base()) in accounting._LOSSES], ids=lambda event: repr(event)
)
def test_uses_counted_together_cost_what_they_cost_one_by_one(event):
    """Uses whose parameters differ in the tenth digit are composed one by one, equal ones by their count."""
    name, value = next(iter(vars(event.base()).items()))
    apart = [replace(event.base(), **{name: value * (1 + i * 1e-10)}) for i in range(6)]
    assert len(compose(apart).counted()) == 6
    other = Gaussian(6.0)
    together = accounting.epsilon(6 * event.base() + other, 1e-5)
    assert together == pytest.approx(accounting.epsilon(compose(apart) + other, 1e-5), rel=1e-3)


def bounded_range_loss(epsilon, t):
    """A worst pair of bounded range: losses t and t - epsilon, and the first one's probability."""
    return t, (math.exp(epsilon) - math.exp(t)) / math.expm1(epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_exponential_mechanism_bounds_cover_every_bounded_range_pair(epsilon):
    """Three pairs with losses {t, t - epsilon}, composed by enumeration, never exceed the stated epsilon."""
    n, delta = 3, 1e-3
    stated = accounting.epsilon(n * Exponential(epsilon), delta)
    worst = 0.0
    for t in np.linspace(1e-3, epsilon - 1e-3, 60):
        loss, p = bounded_range_loss(epsilon, t)
        losses = [
            (i * loss + (n - i) * (loss - epsilon), math.comb(n, i) * p**i * (1 - p) ** (n - i)) for i in range(n + 1)
        ]
        worst = max(worst, sum(w * max(0.0, 1 - math.exp(stated - x)) for x, w in losses))
    assert 0.3 * delta < worst <= delta * (1 + 1e-6)
    assert stated <= n * epsilon


def test_mixtures_beat_basic_composition_and_stay_valid():
    mixed = Gaussian(2.0) + Exponential(0.5)
    assert accounting.epsilon(mixed, 1e-5) < accounting.epsilon(Gaussian(2.0), 1e-5) + 0.5
    # an exponential mechanism contains binary randomized response with losses +-epsilon/2
    p = 1 / (1 + math.exp(-0.25))
    epsilon = accounting.epsilon(mixed, 1e-5)
    true_delta = p * gaussian_delta(0.5, epsilon - 0.25) + (1 - p) * gaussian_delta(0.5, epsilon + 0.25)
    assert true_delta <= 1e-5


def test_mu_of_pure_events_touches_the_pure_curve():
    mu = PureDP(1.0).mu
    corner = 1 / (1 + math.e)
    assert norm.cdf(norm.ppf(1 - corner) - mu) == pytest.approx(corner)
    assert Gaussian(2.0).mu == 0.5
    assert (Gaussian(2.0) + Gaussian(2.0)).mu == pytest.approx(math.sqrt(0.5))


def test_group_privacy_for_two():
    assert Gaussian(1.0).twice().rho == 4 * Gaussian(1.0).rho
    assert Exponential(1.0).twice() == Exponential(2.0)
    assert PureDP(1.0).twice() == PureDP(2.0)
    assert ZCDP(0.1).twice() == ZCDP(0.4)
    assert Laplace(1.0).twice().pure == 2.0
    assert RandomizedResponse(1.0, 4).twice().pure == 2.0
    per_class = Parallel(Gaussian(1.0), "classes")
    assert per_class.twice().rho == 2.0
    assert per_class.relabelled().rho == 1.0  # two classes, each at distance one
    assert Parallel(Gaussian(1.0), "splits").relabelled().rho == 2.0  # a label does not move a record between splits
    assert (per_class + Gaussian(1.0)).relabelled().rho == 3.0


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_two_changes_cost_double_in_pure_epsilon_and_mu(event):
    """Group privacy, exact for these: a loss of at most epsilon on each change, a shift by mu on each."""
    kind = type(event.base())
    if kind in (Exponential, PureDP, RandomizedResponse, Laplace):
        assert event.twice().pure == pytest.approx(2 * event.pure)
    if kind in (Gaussian, SampledGaussian):
        assert event.twice().mu == pytest.approx(2 * event.mu)
    if kind is SampledGaussian:  # in the sample is either of two records
        assert event.twice().sampling_rate == pytest.approx(1 - (1 - event.sampling_rate) ** 2)
    assert event.rho < event.twice().rho <= 4 * event.rho * (1 + 1e-9) or math.isinf(event.rho)


FREE = [Gaussian(math.inf), SampledGaussian(math.inf, 0.1), Laplace(math.inf), PureDP(0), Exponential(0), ZCDP(0)]
USELESS = [Gaussian(0), SampledGaussian(0, 0.1), Laplace(0), PureDP(math.inf), Exponential(math.inf), ZCDP(math.inf)]


@pytest.mark.parametrize("event", [*FREE, RandomizedResponse(0, 3), RepeatAndSelect(PureDP(0), 5, 1)], ids=repr)
def test_what_tells_nothing_costs_nothing(event):
    for one in (event, 3 * event, Parallel(event, "classes"), event.twice()):
        assert (one.pure, one.rho, one.mu) == (0, 0, 0)
        assert accounting.epsilon(one, 1e-6) == accounting.epsilon(one, 0) == 0
        assert accounting.attack_rate(one, 0.01) == 0.01


@pytest.mark.parametrize("event", [*USELESS, RepeatAndSelect(PureDP(math.inf), 5, 1)], ids=repr)
def test_no_noise_has_no_bound(event):
    for one in (event, 3 * event, Parallel(event, "classes"), event.twice()):
        assert (one.pure, one.rho, one.mu) == (math.inf, math.inf, math.inf)
        assert accounting.epsilon(one, 1e-6) == math.inf
        assert not one.bounded


@pytest.mark.parametrize("rho", [1e-9, 0.3, 20.0])
def test_zcdp_alone_has_neither_a_pure_epsilon_nor_a_mu(rho):
    assert (ZCDP(rho).pure, ZCDP(rho).mu) == (math.inf, math.inf)


def test_parallel_costs_its_event_once():
    for event in (Gaussian(1.0), Exponential(1.0), 3 * Gaussian(2.0)):
        assert accounting.epsilon(Parallel(event, "classes"), 1e-6) == accounting.epsilon(event, 1e-6)
        assert Parallel(event, "classes").rho == event.rho


def test_attack_rate_is_the_gaussian_trade_off():
    assert accounting.attack_rate(Gaussian(1.0), 0.01) == pytest.approx(norm.cdf(norm.ppf(0.01) + 1.0))
    assert accounting.attack_rate(Exponential(0.0), 0.01) == 0.01
    assert accounting.attack_rate(Gaussian(0.0), 0.01) == 1.0
    assert accounting.attack_rate(PureDP(0.5), 0.01) <= 0.01 * math.exp(0.5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_largest_rho_keeps_epsilon_and_is_the_largest(epsilon, delta):
    rho = accounting.largest_rho(epsilon, delta)
    assert accounting.epsilon(ZCDP(rho), delta) <= epsilon
    assert accounting.epsilon(ZCDP(rho * 1.0001), delta) > epsilon


@pytest.mark.parametrize("epsilon", [1e-15, 1e-9, 1e-4, 0.0199, 0.0201, 0.5, 5.0])
def test_mu_of_a_pure_mechanism_is_not_below_the_quantile(epsilon):
    """By 60 digits: mu = 2 Phi^-1(1/2 + tanh(epsilon/2)/2)."""
    with mpmath.workdps(60):
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
        found = mpmath.mpf(PureDP(epsilon).mu)
        assert exact * (1 - mpmath.mpf(10) ** -12) <= found <= exact * (1 + mpmath.mpf(10) ** -8)


@given(z=st.floats(0.05, 50), delta=st.floats(1e-12, 0.1))
def test_calibration_is_on_the_safe_side(z, delta):
    target = accounting.epsilon(Gaussian(z), delta)
    if 1e-6 < target < 1e3:
        found = accounting.gaussian_multiplier(target, delta)
        assert found == pytest.approx(z, rel=1e-5)
        assert accounting.epsilon(Gaussian(found), delta) <= target


@pytest.mark.parametrize(("epsilon", "rho"), [(1, 0.030557), (2, 0.108256), (3, 0.224249)])
def test_zcdp_conversion_meets_the_reference(epsilon, rho):
    assert accounting.epsilon(ZCDP(rho), 1e-5) == pytest.approx(epsilon, abs=2e-5)


@pytest.mark.parametrize("make", [Gaussian, Exponential, PureDP, ZCDP, Laplace])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_negative_and_nan_parameters_are_refused(make, value):
    with pytest.raises(InputError, match="must be zero or positive"):
        make(value)


def test_words_say_how_often_and_where():
    assert Gaussian(2.0).describe() == (1 * Gaussian(2.0)).describe() == "Gaussian noise of 2 times the L2 sensitivity"
    for n in (2, 3):
        assert (n * Gaussian(2.0)).describe() == f"{n} x ({Gaussian(2.0).describe()})"
    both = (2 * Gaussian(2.0) + Exponential(1.0)).describe()
    assert both == f"2 x ({Gaussian(2.0).describe()}); {Exponential(1.0).describe()}"
    assert Parallel(Gaussian(2.0), "classes").describe().endswith("on each class separately")
    assert Parallel(Gaussian(2.0), "splits").describe().endswith("on each split separately")


@pytest.mark.parametrize("n_classes", [1, 0, -3])
def test_a_response_needs_two_labels(n_classes):
    with pytest.raises(InputError, match=f"n_classes={n_classes}"):
        RandomizedResponse(1.0, n_classes)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta="):
        accounting.epsilon(Gaussian(1.0), delta)
