"""From events to epsilon(delta): the smallest of several valid bounds. The only file that imports
dp_accounting.

Each bound is an upper bound on epsilon at a given delta:

- the sum of pure epsilons, if all events have one;
- the exact curve of one Gaussian with mu^2 = sum 1/z_i^2, if all events are Gaussian
  [Balle and Wang 2018; Dong, Roth and Su 2019];
- the exact curve of uses of one event that states it in closed form, as `Exponential` does for one
  and for two;
- the Renyi curve, optimised over orders, converted by Canonne, Kamath and Steinke 2020, Prop. 12;
- a composed privacy loss distribution, rounded up, for several events that are not all Gaussian, or
  that were sampled; in closed form for functions of Gaussian releases, which have the losses of
  these.

Loss distributions, and noise for a given epsilon, are computed by dp_accounting. It is imported
where it is used, so that predicting from most releases, which checks their numbers, does without
it.

Events state their Renyi curves and loss distributions (`events/`). Sensitivity is already part of
an event's parameters, so the library's neighbouring relations, which differ between its
accountants, are not used.
"""

import math
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from tacit.errors import InputError
from tacit.privacy.events import ZCDP, Event, Losses, compose
from tacit.privacy.events.base import ORDERS, Floats

# below, neither the solver nor the discrete noise is exact enough; Renyi holds
_LEAST_DELTA_OF_CURVE = 1e-30
_LEAST_DELTA_OF_GRID = 1e-13  # loss distributions lose about 1e-16 of their mass to rounding
_MOST_CURVES = 3e5  # microseconds of curves, beyond which even the estimate of the work is left
_MOST_USES = 10**6  # that a loss distribution composes; beyond, the Renyi curve serves
_FINE_PARTS = 10  # up to so many distinct events are composed on the finer grid
# of a grid; where it would need more, epsilon is so small that the Renyi curve serves
MOST_POINTS = 4_000_000


def check_delta(delta: float) -> None:
    """Refuse a delta outside [0, 1)."""
    if not 0 <= delta < 1:
        raise InputError(
            f"delta={delta} must be at least 0 and below 1; pass for example delta=1e-6"
        )


@lru_cache(maxsize=1024)
def epsilon(event: Event, delta: float) -> float:
    """Epsilon of a sum of events at `delta` in [0, 1): the smallest of the bounds listed above, inf
    if none exists.

    At delta 0 it is the pure epsilon.
    """
    check_delta(delta)
    event = _without_free_parts(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded:
        return event.pure
    if _has_exact_curve(event, delta):
        return gaussian_epsilon(event.mu, delta)
    exact = _closed_form(event, delta)
    if exact is not None:
        return exact
    return _smallest_bound(event, delta)


@lru_cache(maxsize=1024)
def older_epsilon(event: Event, delta: float) -> float:
    """`epsilon` without the closed form of a single use, as documents before version 5 state it."""
    check_delta(delta)
    event = _without_free_parts(event.base())
    priced_by_closed_form = _single_use(event) is not None and not _has_exact_curve(event, delta)
    if priced_by_closed_form and delta > 0 and event.pure > 0 and event.bounded:
        return _smallest_bound(event, delta)
    return epsilon(event, delta)


def _smallest_bound(event: Event, delta: float) -> float:
    best = min(event.pure, _renyi_epsilon(event, delta))
    interval = _interval(event, delta, best)
    if interval > 0 and _points(event, interval) <= MOST_POINTS:
        best = min(best, _loss_distribution_epsilon(event, delta, interval))
    return best


def work(event: Event, delta: float) -> float:
    """About how many microseconds `epsilon` takes; this estimate itself takes a small part of
    them.
    """
    event = _without_free_parts(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded or _has_exact_curve(event, delta):
        return 0.0
    if _closed_form(event, delta) is not None:
        return 0.0
    curves = sum(part.curve_work for part, _ in event.contained())
    if curves > _MOST_CURVES or _has_losses_of_one_gaussian(event):
        return curves
    interval = _interval(event, delta, min(event.pure, _renyi_epsilon(event, delta)))
    points = _points(event, interval) if interval > 0 else math.inf
    uses = [n for _, n in event.counted()]
    return (
        curves + points * max(1.0, len(uses) / 5) + sum(uses) if points <= MOST_POINTS else curves
    )


def _without_free_parts(event: Event) -> Event:
    """The event without parts that cost nothing, such as infinite noise, for which the library has
    no curves.
    """
    return compose(n * part for part, n in event.counted() if part.pure > 0)


def _has_exact_curve(event: Event, delta: float) -> bool:
    return delta >= _LEAST_DELTA_OF_CURVE and has_exact_mu(event)


def has_exact_mu(event: Event) -> bool:
    """Return whether mu states the whole trade-off curve, as it does for Gaussian events."""
    return all(part.exact_mu for part, _ in event.counted())


def _has_losses_of_one_gaussian(event: Event) -> bool:
    each = [part.losses(n) for part, n in event.counted()]
    return all(
        losses is not None and losses.law == "gaussian" and losses.uses is None for losses in each
    )


def _closed_form(event: Event, delta: float) -> float | None:
    parts = event.counted()
    return parts[0][0].exact_epsilon(parts[0][1], delta) if len(parts) == 1 else None


def _interval(event: Event, delta: float, best: float) -> float:
    """Interval of the grid of a loss distribution; 0 if no distribution is used: it gains nothing
    or loses too much.
    """
    uses = sum(n for _, n in event.counted())
    sampled = any(part.sampled for part, _ in event.counted())
    known = all(part.losses(n) is not None for part, n in event.counted())
    # beyond 100 nobody compares numbers, and the grid, fine enough for four digits, would grow
    # without bound
    if not (known and 0 < best < 100 and delta >= _LEAST_DELTA_OF_GRID and uses <= _MOST_USES):
        return 0.0
    if uses == 1 and not sampled:  # nothing is composed
        return 0.0
    # losses of samples reach much further than epsilon, and each distinct event is one more
    # convolution
    return best * (1e-3 if sampled or len(event.counted()) > _FINE_PARTS else 1e-4)


def _points(event: Event, interval: float) -> float:
    """About how many points of a grid the losses of an event cover."""
    return sum(part.reach(n) for part, n in event.counted()) / interval


def attack_rate(event: Event, false_positive_rate: float) -> float:
    """Largest true-positive rate of any attack that tells neighbouring data sets apart, at this
    false-positive rate.

    The trade-off function of Gaussian events, and of one use of an event that states its own;
    `attained` says whether an attack reaches it. For all other sums of events the smallest of
    several bounds.
    """
    if not 0 <= false_positive_rate <= 1:
        raise InputError(
            f"false_positive_rate={false_positive_rate} must be from 0 to 1; pass for example 0.01"
        )
    if false_positive_rate == 1:
        return 1.0
    event = _without_free_parts(event.base())
    if event.pure == 0:
        return false_positive_rate
    if has_exact_mu(event):
        return _gaussian_rate(event.mu, false_positive_rate)
    single = _single_use(event)
    exact = None if single is None else single.attack_rate(false_positive_rate)
    return bounded_attack_rate(event, false_positive_rate) if exact is None else exact


def attained(event: Event) -> bool:
    """Return whether an attack on some neighbouring data sets reaches `attack_rate` and
    `advantage`.
    """
    event = _without_free_parts(event.base())
    if has_exact_mu(event):
        return True
    single = _single_use(event)
    return single is not None and single.attained


def _single_use(event: Event) -> Event | None:
    """The event that was used once and is all that was used; None if there is none."""
    parts = event.counted()
    if len(parts) != 1:
        return None
    part, uses = parts[0]
    return part if uses == 1 else None


def bounded_attack_rate(
    event: Event, false_positive_rate: float, epsilon_at: Callable[[Event, float], float] = epsilon
) -> float:
    """Smallest of the bounds on `attack_rate` that follow from the advantage, pure epsilon, epsilon
    at deltas and mu.

    `epsilon_at` is the function that computes epsilon at delta.
    """
    by_advantage = false_positive_rate + bounded_advantage(event, epsilon_at)
    return min(attack_rate_by_curve(event, false_positive_rate, epsilon_at), by_advantage)


def attack_rate_by_curve(
    event: Event, false_positive_rate: float, epsilon_at: Callable[[Event, float], float]
) -> float:
    """`bounded_attack_rate` without the bound by the advantage."""
    fpr = false_positive_rate
    if event.pure == 0:
        return fpr
    bounds = [
        math.exp(min(epsilon_at(event, delta), 700)) * fpr + delta for delta in attack_deltas(fpr)
    ]
    bounds += [math.exp(min(event.pure, 700)) * fpr, 1 - math.exp(-event.pure) * (1 - fpr)]
    if math.isfinite(event.mu):
        bounds.append(_gaussian_rate(event.mu, fpr))
    return min(1.0, *bounds)


def _gaussian_rate(mu: float, false_positive_rate: float) -> float:
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(false_positive_rate) + mu))


def attack_deltas(false_positive_rate: float) -> list[float]:
    """The deltas at which `attack_rate` evaluates epsilon."""
    return [false_positive_rate * 10.0**-power for power in range(7)]


def advantage(event: Event) -> float:
    """Most by which the true-positive rate of any attack exceeds its false-positive rate: the total
    variation distance.

    2 Phi(mu/2) - 1 of Gaussian events; in closed form for one use of an event that states it; for
    all other sums of events the smallest of several bounds.
    """
    event = _without_free_parts(event.base())
    single = _single_use(event)
    exact = None if single is None else single.total_variation()
    return bounded_advantage(event) if exact is None else exact


def bounded_advantage(event: Event, epsilon_at: Callable[[Event, float], float] = epsilon) -> float:
    """Smallest of these bounds on `advantage`.

    2 Phi(mu/2) - 1; tanh(epsilon/2) of a pure epsilon; (exp(epsilon) - 1 + 2 delta) / (exp(epsilon)
    + 1) at each of `advantage_deltas` [Kairouz, Oh and Viswanath 2015, Thm 2.1]; sqrt(rho/2) by
    Pinsker's inequality. `epsilon_at` is the function that computes epsilon at delta.
    """
    if event.pure == 0:
        return 0.0
    curve = [(epsilon_at(event, delta), delta) for delta in advantage_deltas(event)]
    bounds = [
        math.tanh(bound / 2) + delta * (1 - math.tanh(bound / 2))
        for bound, delta in [(event.pure, 0.0), *curve]
    ]
    if math.isfinite(event.mu):
        bounds.append(math.erf(event.mu / math.sqrt(8)))
    if math.isfinite(event.rho):
        bounds.append(math.sqrt(event.rho / 2))
    return min(1.0, *bounds)


def advantage_deltas(event: Event) -> tuple[float, ...]:
    """The deltas at which `advantage` evaluates epsilon: none where mu is finite and not loose
    because of sampling.
    """
    tight = math.isfinite(event.mu) and not any(part.sampled for part, _ in event.contained())
    return () if tight else (0.1, 0.03, 0.01, 0.001)


def gaussian_multiplier(epsilon_: float, delta: float) -> float:
    """Smallest noise multiplier, rounded up, such that one Gaussian is (epsilon, delta)-DP."""
    from dp_accounting import get_sigma_gaussian

    with np.errstate(divide="ignore"):  # the search starts far from the solution
        z = float(get_sigma_gaussian(epsilon_, delta))
    step = 1e-12
    while gaussian_epsilon(1 / z, delta) > epsilon_:
        z, step = z * (1 + step), min(2 * step, 0.5)
    return z


@lru_cache(maxsize=1024)
def largest_rho(epsilon_: float, delta: float) -> float:
    """Largest rho, rounded down, such that rho-zCDP is (epsilon, delta)-DP by the bounds above.

    At order a the conversion of [Canonne, Kamath and Steinke 2020, Prop. 12] allows (epsilon - ln(1
    - 1/a) + ln(delta a)/(a - 1))/a; the best order gives the same rho as all orders together.
    """
    check_delta(delta)
    if math.isinf(epsilon_) or delta == 0:
        return epsilon_ if math.isinf(epsilon_) else 0.0
    order = best_order(epsilon_, delta)
    rho = max(_allowed(np.array([order]), epsilon_, delta)[0] / order, 0.0)
    step = 1e-10
    while rho > 0 and epsilon(ZCDP(rho), delta) > epsilon_:
        rho, step = rho * (1 - step), min(2 * step, 0.5)
    return float(rho)


@lru_cache(maxsize=1024)
def best_order(epsilon_: float, delta: float) -> float:
    """The Renyi order that permits the largest rho of which rho-zCDP is (epsilon, delta)-DP, for 0
    < delta < 1.
    """
    orders = ORDERS
    for _ in range(4):
        order = orders[np.argmax(_allowed(orders, epsilon_, delta) / orders)]
        orders = 1 + (order - 1) * np.linspace(0.9, 1.1, 201)
    return float(orders[np.argmax(_allowed(orders, epsilon_, delta) / orders)])


def largest_renyi(order: float, epsilon_: float, delta: float) -> float:
    """Largest Renyi divergence, rounded down, that implies (epsilon, delta)-DP by this order
    alone.
    """
    orders = np.array([order])
    value = max(float(_allowed(orders, epsilon_, delta)[0]), 0.0)
    while value > 0 and renyi_epsilons(np.array([value]), orders, delta) > epsilon_:
        value *= 1 - 1e-12
    return value


def _allowed(orders: Floats, epsilon_: float, delta: float) -> Floats:
    """Renyi divergence at each order that `renyi_epsilons` converts to this epsilon."""
    return np.asarray(epsilon_ - _slack(orders, delta))


def renyi_epsilons(values: Floats, orders: Floats, delta: float) -> Floats:
    """Epsilon at delta, of shape (...), of Renyi curves of shape (..., orders) [Canonne, Kamath and
    Steinke 2020].
    """
    check_delta(delta)
    return np.asarray(np.maximum((values + _slack(orders, delta)).min(axis=-1), 0.0))


def _slack(orders: Floats, delta: float) -> Floats:
    """By how much epsilon at delta exceeds the Renyi divergence of each order [Canonne, Kamath and
    Steinke 2020].
    """
    return np.asarray(np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon, rounded up, at which the delta of one Gaussian [Balle and Wang 2018, Eq. 6]
    is small enough.
    """
    low, high, goal = 0.0, 1.0, math.log(delta)
    if log_gaussian_delta(mu, low) <= goal:
        return low
    while log_gaussian_delta(mu, high) > goal:
        low, high = high, 10 * high
    while high - low > 1e-13 + 4e-16 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if log_gaussian_delta(mu, middle) > goal else (low, middle)
    return high


def log_gaussian_delta(mu: float, epsilon_: float) -> float:
    """Logarithm of Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)."""
    from scipy.special import log_ndtr

    middle = epsilon_ / mu
    first, second = float(log_ndtr(mu / 2 - middle)), epsilon_ + float(log_ndtr(-mu / 2 - middle))
    share = -math.expm1(second - first)
    return first + math.log(share) if share > 0 else -math.inf


@lru_cache(maxsize=1024)
def _renyi_epsilon(event: Event, delta: float) -> float:
    curve = event.renyi(ORDERS)
    finite = np.isfinite(curve)
    if not finite.any():
        return math.inf
    best, order = best_conversion(ORDERS[finite], curve[finite], delta)
    # the optimum is flat: two refinements leave a relative error below 1e-9
    for width in (1e-1, 1e-3):
        if order > 1:
            near = 1 + (order - 1) * np.linspace(1 - width, 1 + width, 101)
            curve = event.renyi(near)
            finite = np.isfinite(curve)
            best, order = min((best, order), best_conversion(near[finite], curve[finite], delta))
    if event.best_orders:
        orders = np.array(event.best_orders)
        best = min(best, float(renyi_epsilons(event.renyi(orders), orders, delta)))
    return best


def best_conversion(orders: Floats, curve: Floats, delta: float) -> tuple[float, float]:
    """Smallest epsilon of a Renyi curve at delta, and its order.

    By [Canonne, Kamath and Steinke 2020, Prop. 12], which orders close to 1 make numerically
    unstable; and 0 where the total variation is at most delta, by the inequality of Bretagnolle and
    Huber.
    """
    epsilons = np.full(len(orders), np.inf)
    stable = orders > 1.01
    epsilons[stable] = curve[stable] + _slack(orders[stable], delta)
    epsilons[delta**2 + np.expm1(-curve) > 0] = 0.0
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(orders[best])


def _loss_distribution_epsilon(event: Event, delta: float, interval: float) -> float:
    if _has_losses_of_one_gaussian(event):
        return gaussian_epsilon(event.mu, delta)
    parts = [
        _loss_distribution(losses, interval)
        for part, n in event.counted()
        if (losses := part.losses(n))
    ]
    return float(
        reduce(lambda total, part: total.compose(part), parts).get_epsilon_for_delta(delta)
    )


def _loss_distribution(losses: Losses, interval: float) -> Any:
    """The library's privacy loss distribution, rounded up to multiples of `interval`."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    laws = {
        "gaussian": pld.from_gaussian_mechanism,
        "laplace": pld.from_laplace_mechanism,
        "randomized response": pld.from_randomized_response,
        "profile": _from_profile,
    }
    one = laws[losses.law](**losses.parameters, value_discretization_interval=interval)
    return one if losses.uses is None else one.self_compose(losses.uses)


def _from_profile(
    profile: Callable[[Floats], Floats], width: float, value_discretization_interval: float
) -> Any:
    """Of a privacy profile that is the same in both directions, with losses from -width to
    width.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    last = math.ceil(width / value_discretization_interval)
    losses = np.arange(-last, last + 1) * value_discretization_interval
    deltas = profile(np.clip(losses, -width, width))
    deltas[0] = -np.expm1(losses[0])  # at and below -width
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        value_discretization_interval, -last, last, deltas
    )
    return pld.PrivacyLossDistribution(pmf)
