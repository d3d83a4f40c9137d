"""Sums, group privacy, JSON and words of all kinds of events, by formulas that are independent of
tacit.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import norm

from privacy.events.samples import DELTAS, EVENTS
from tacit.errors import InputError
from tacit.privacy import accounting, attack_rates
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
    event_from_json,
)


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
@pytest.mark.parametrize(
    "convert", [lambda event: event.for_group(2), lambda event: event.for_label_change()]
)
def test_group_privacy_keeps_every_use(event, convert):
    """Two changes of n uses cost n uses at two changes, in every fact and on the curves."""
    one = convert(event)
    converted = convert(5 * event)
    assert converted == 5 * one
    assert (converted.pure, converted.rho, converted.mu) == pytest.approx(
        (5 * one.pure, 5 * one.rho, 5**0.5 * one.mu)
    )
    orders = np.array([1.5, 4.0])
    assert converted.renyi(orders) == pytest.approx(5 * one.renyi(orders))
    assert accounting.epsilon(converted, 1e-5) >= accounting.epsilon(5 * event, 1e-5)
    mixed = convert(3 * event + 2 * Gaussian(9.0))
    assert mixed == 3 * one + 2 * convert(Gaussian(9.0))


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_nothing_is_free_and_order_does_not_matter(event):
    other = Exponential(0.3)
    assert accounting.epsilon(event + other, 1e-5) == pytest.approx(
        accounting.epsilon(other + event, 1e-5), rel=1e-9
    )
    assert accounting.epsilon(event + other, 1e-5) > accounting.epsilon(event, 1e-5)
    assert 0 * event == Composition(())
    assert accounting.epsilon(0 * event, 0.0) == 0


@pytest.mark.parametrize("event", [*EVENTS, 3 * Gaussian(2.0) + Exponential(1.0)], ids=repr)
def test_json_round_trip(event):
    assert event_from_json(event.to_json()) == event


def test_infinite_values_survive_json():
    assert event_from_json(Exponential(math.inf).to_json()) == Exponential(math.inf)


STEP = 2e-4  # of the loss distributions below


def loss_masses(event):
    """The masses of one use's privacy loss, on multiples of STEP, and the first multiple; from the
    densities alone.
    """
    if isinstance(event, RandomizedResponse | PureDP):
        size = getattr(event, "n_classes", 2)
        other = 1 / (math.exp(event.epsilon) + size - 1)
        masses = {
            event.epsilon: other * math.exp(event.epsilon),
            -event.epsilon: other,
            0.0: (size - 2) * other,
        }
    elif isinstance(event, Gaussian):
        mean, deviation = event.rho, 1 / event.noise_multiplier
        grid = np.arange(mean - 9 * deviation, mean + 9 * deviation, STEP)
        masses = dict(
            zip(
                grid + STEP / 2,
                np.diff(norm.cdf(np.append(grid, math.inf), mean, deviation)),
                strict=True,
            )
        )
    else:
        # the loss at x is (|x - 1| - |x|)/b, so 1/b below 0, and -1/b above 1
        b = event.noise_multiplier
        grid = np.arange(0, 1, b * STEP / 2)
        between = np.diff(1 - 0.5 * np.exp(-np.append(grid, 1.0) / b))
        masses = dict(zip((1 - 2 * grid) / b - STEP / 2, between, strict=True))
        masses[1 / b] = masses.get(1 / b, 0.0) + 0.5
        masses[-1 / b] = masses.get(-1 / b, 0.0) + 0.5 * math.exp(-1 / b)
    places = np.rint(np.array(list(masses)) / STEP).astype(int)
    least = places.min()
    return least, np.bincount(places - least, weights=list(masses.values()))


def composed_delta(events, epsilon):
    """Delta at `epsilon` of these events together, by convolving the distributions of their
    losses.
    """
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
    """The stated epsilon has the delta that the mechanisms' own densities give, every use
    counted.
    """
    delta = 1e-4
    assert composed_delta(events, accounting.epsilon(compose(events), delta)) == pytest.approx(
        delta, rel=0.02
    )


@pytest.mark.parametrize(
    "event", [event for event in EVENTS if event.base().losses(1)], ids=lambda event: repr(event)
)
def test_uses_counted_together_cost_what_they_cost_one_by_one(event):
    """Uses whose parameters differ in the tenth digit are composed one by one, equal ones by their
    count.
    """
    name, value = next(iter(vars(event.base()).items()))
    apart = [replace(event.base(), **{name: value * (1 + i * 1e-10)}) for i in range(3)]
    assert len(compose(apart).counted()) == 3
    other = Gaussian(6.0)
    together = accounting.epsilon(3 * event.base() + other, 1e-5)
    assert together == pytest.approx(accounting.epsilon(compose(apart) + other, 1e-5), rel=1e-3)


def test_group_privacy_for_two():
    assert Gaussian(1.0).for_group(2).rho == 4 * Gaussian(1.0).rho
    assert Exponential(1.0).for_group(2) == Exponential(2.0)
    assert PureDP(1.0).for_group(2) == PureDP(2.0)
    assert ZCDP(0.1).for_group(2) == ZCDP(0.4)
    assert Laplace(1.0).for_group(2).pure == 2.0
    assert RandomizedResponse(1.0, 4).for_group(2).pure == 2.0
    per_class = Parallel(Gaussian(1.0), "classes")
    assert per_class.for_group(2).rho == 2.0
    assert per_class.for_label_change().rho == 1.0  # two classes, each at distance one
    # a label does not move a record between splits
    assert Parallel(Gaussian(1.0), "splits").for_label_change().rho == 2.0
    assert (per_class + Gaussian(1.0)).for_label_change().rho == 3.0


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_group_privacy_for_two_doubles_pure_epsilon_and_mu(event):
    """Group privacy, exact for these: a loss of at most epsilon on each change, a shift by mu on
    each.
    """
    kind = type(event.base())
    if kind in (Exponential, PureDP, RandomizedResponse, Laplace):
        assert event.for_group(2).pure == pytest.approx(2 * event.pure)
    if kind in (Gaussian, SampledGaussian):
        assert event.for_group(2).mu == pytest.approx(2 * event.mu)
    if kind is SampledGaussian:  # in the sample is either of two records
        assert event.for_group(2).sampling_rate == pytest.approx(1 - (1 - event.sampling_rate) ** 2)
    assert event.rho < event.for_group(2).rho <= 4 * event.rho * (1 + 1e-9) or math.isinf(event.rho)


FREE = [
    Gaussian(math.inf),
    SampledGaussian(math.inf, 0.1),
    Laplace(math.inf),
    PureDP(0),
    Exponential(0),
    ZCDP(0),
]


USELESS = [
    Gaussian(0),
    SampledGaussian(0, 0.1),
    Laplace(0),
    PureDP(math.inf),
    Exponential(math.inf),
    ZCDP(math.inf),
]


@pytest.mark.parametrize(
    "event", [*FREE, RandomizedResponse(0, 3), RepeatAndSelect(PureDP(0), 5, 1)], ids=repr
)
def test_an_event_that_reveals_nothing_costs_nothing(event):
    for one in (event, 3 * event, Parallel(event, "classes"), event.for_group(2)):
        assert (one.pure, one.rho, one.mu) == (0, 0, 0)
        assert accounting.epsilon(one, 1e-6) == accounting.epsilon(one, 0) == 0
        assert attack_rates.attack_rate(one, 0.01) == 0.01


@pytest.mark.parametrize("event", [*USELESS, RepeatAndSelect(PureDP(math.inf), 5, 1)], ids=repr)
def test_no_noise_has_no_bound(event):
    for one in (event, 3 * event, Parallel(event, "classes"), event.for_group(2)):
        assert (one.pure, one.rho, one.mu) == (math.inf, math.inf, math.inf)
        assert accounting.epsilon(one, 1e-6) == math.inf
        assert not one.bounded


@pytest.mark.parametrize("make", [Gaussian, Exponential, PureDP, ZCDP, Laplace])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_negative_and_nan_parameters_are_refused(make, value):
    with pytest.raises(InputError, match="must be zero or positive"):
        make(value)


def test_descriptions_state_counts_and_parts():
    assert (
        Gaussian(2.0).describe()
        == (1 * Gaussian(2.0)).describe()
        == "Gaussian noise of 2 times the L2 sensitivity"
    )
    for n in (2, 3):
        assert (n * Gaussian(2.0)).describe() == f"{n} x ({Gaussian(2.0).describe()})"
    both = (2 * Gaussian(2.0) + Exponential(1.0)).describe()
    assert both == f"2 x ({Gaussian(2.0).describe()}); {Exponential(1.0).describe()}"
    assert Parallel(Gaussian(2.0), "classes").describe().endswith("on each class separately")
    assert Parallel(Gaussian(2.0), "splits").describe().endswith("on each split separately")
