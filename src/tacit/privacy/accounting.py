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
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import InputError
from tacit.privacy.events import ZCDP, Event, Losses, compose
from tacit.privacy.events.base import ORDERS, Floats

# Below this delta neither the solver nor the discrete noise is exact enough; Renyi holds.
_LEAST_DELTA_OF_CURVE = 1e-30

# Loss distributions lose about 1e-16 of their mass to rounding.
_LEAST_DELTA_OF_GRID = 1e-13

# Uses that a loss distribution composes; beyond, the Renyi curve serves.
_MOST_USES = 10**6

# Points of a grid; where it would need more, epsilon is so small that the Renyi curve serves.
MOST_POINTS = 4_000_000

# From this epsilon on nobody compares numbers, and the grid, fine enough for four digits, would
# grow without bound.
_MOST_EPSILON_OF_GRID = 100

# Intervals of the grid, relative to epsilon. The coarse one serves samples, whose losses reach
# much further than epsilon, and many distinct events, each of which is one more convolution.
_FINE_INTERVAL = 1e-4
_COARSE_INTERVAL = 1e-3
_MOST_FINE_EVENTS = 10

# Microseconds of Renyi curves beyond which the estimate of the work takes too long itself.
_MOST_CURVE_WORK = 3e5


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
    event = without_free_parts(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded:
        return event.pure

    if _has_exact_curve(event, delta):
        return gaussian_epsilon(event.mu, delta)

    closed_form = _closed_form(event, delta)
    if closed_form is not None:
        return closed_form
    return _smallest_bound(event, delta)


@lru_cache(maxsize=1024)
def older_epsilon(event: Event, delta: float) -> float:
    """`epsilon` without the closed form of a single use, as documents before version 5 state it."""
    check_delta(delta)
    event = without_free_parts(event.base())
    priced_by_closed_form = single_use(event) is not None and not _has_exact_curve(event, delta)
    if priced_by_closed_form and delta > 0 and event.pure > 0 and event.bounded:
        return _smallest_bound(event, delta)
    return epsilon(event, delta)


def _smallest_bound(event: Event, delta: float) -> float:
    """Return the smallest of the pure epsilon and those of the Renyi curve and the loss
    distribution.
    """
    best = min(event.pure, _renyi_epsilon(event, delta))
    interval = _interval(event, delta, best)
    if interval > 0 and _points(event, interval) <= MOST_POINTS:
        best = min(best, _loss_distribution_epsilon(event, delta, interval))
    return best


def work(event: Event, delta: float) -> float:
    """Return about how many microseconds `epsilon` takes.

    This estimate itself takes a small part of them.
    """
    event = without_free_parts(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded or _has_exact_curve(event, delta):
        return 0.0
    if _closed_form(event, delta) is not None:
        return 0.0

    curve_work = sum(part.curve_work for part, _ in event.contained())
    if curve_work > _MOST_CURVE_WORK or _has_losses_of_one_gaussian(event):
        return curve_work

    interval = _interval(event, delta, min(event.pure, _renyi_epsilon(event, delta)))
    if interval == 0:
        return curve_work
    points = _points(event, interval)
    if points > MOST_POINTS:
        return curve_work

    uses = [n for _, n in event.counted()]
    return curve_work + points * max(1.0, len(uses) / 5) + sum(uses)


def without_free_parts(event: Event) -> Event:
    """Return the event without parts that cost nothing.

    The library has no curves for some of them, such as infinite noise.
    """
    return compose(n * part for part, n in event.counted() if part.pure > 0)


def single_use(event: Event) -> Event | None:
    """Return the event if it was used once and nothing else was used, else None."""
    parts = event.counted()
    if len(parts) != 1:
        return None
    part, uses = parts[0]
    if uses != 1:
        return None
    return part


def _has_exact_curve(event: Event, delta: float) -> bool:
    """Return whether the epsilon of one Gaussian is exact, at a delta that its solver reaches."""
    return delta >= _LEAST_DELTA_OF_CURVE and has_exact_mu(event)


def has_exact_mu(event: Event) -> bool:
    """Return whether mu states the whole trade-off curve, as it does for Gaussian events."""
    return all(part.exact_mu for part, _ in event.counted())


def _has_losses_of_one_gaussian(event: Event) -> bool:
    """Return whether the losses of all parts are those of Gaussian noise, whose sum is Gaussian."""
    for part, n in event.counted():
        losses = part.losses(n)
        if losses is None or losses.law != "gaussian" or losses.uses is not None:
            return False
    return True


def _closed_form(event: Event, delta: float) -> float | None:
    """Return the epsilon that the only event of a sum states itself, or None."""
    parts = event.counted()
    if len(parts) != 1:
        return None
    part, uses = parts[0]
    return part.exact_epsilon(uses, delta)


def _interval(event: Event, delta: float, best: float) -> float:
    """Return the interval of the grid of a loss distribution, or 0 if a distribution gains nothing
    or loses too much.

    `best` is the smallest other bound on epsilon.
    """
    uses = sum(n for _, n in event.counted())
    has_losses = all(part.losses(n) is not None for part, n in event.counted())
    fits_grid = 0 < best < _MOST_EPSILON_OF_GRID and delta >= _LEAST_DELTA_OF_GRID
    if not has_losses or not fits_grid or uses > _MOST_USES:
        return 0.0

    sampled = any(part.sampled for part, _ in event.counted())
    if uses == 1 and not sampled:
        # nothing is composed
        return 0.0

    if sampled or len(event.counted()) > _MOST_FINE_EVENTS:
        return best * _COARSE_INTERVAL
    return best * _FINE_INTERVAL


def _points(event: Event, interval: float) -> float:
    """Return about how many points of a grid the losses of an event cover."""
    return sum(part.reach(n) for part, n in event.counted()) / interval


def gaussian_multiplier(epsilon_: float, delta: float) -> float:
    """Smallest noise multiplier, rounded up, such that one Gaussian is (epsilon, delta)-DP."""
    from dp_accounting import get_sigma_gaussian

    # the library's search starts far from the solution, where it divides by zero
    with np.errstate(divide="ignore"):
        z = float(get_sigma_gaussian(epsilon_, delta))

    # its result is good to a tolerance only: raise it until our own curve agrees
    step = 1e-12
    while gaussian_epsilon(1 / z, delta) > epsilon_:
        z *= 1 + step
        step = min(2 * step, 0.5)
    return z


@lru_cache(maxsize=1024)
def largest_rho(epsilon_: float, delta: float) -> float:
    """Largest rho, rounded down, such that rho-zCDP is (epsilon, delta)-DP by the bounds above.

    At order a the conversion of [Canonne, Kamath and Steinke 2020, Prop. 12] allows (epsilon - ln(1
    - 1/a) + ln(delta a)/(a - 1))/a; the best order gives the same rho as all orders together.
    """
    check_delta(delta)
    if math.isinf(epsilon_):
        return epsilon_
    if delta == 0:
        return 0.0

    order = best_order(epsilon_, delta)
    rho = max(_allowed(np.array([order]), epsilon_, delta)[0] / order, 0.0)

    # lower it by rounding errors until the bounds agree
    step = 1e-10
    while rho > 0 and epsilon(ZCDP(rho), delta) > epsilon_:
        rho *= 1 - step
        step = min(2 * step, 0.5)
    return float(rho)


@lru_cache(maxsize=1024)
def best_order(epsilon_: float, delta: float) -> float:
    """Return the Renyi order that permits the largest rho of which rho-zCDP is (epsilon, delta)-DP.

    delta is above 0 and below 1.
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
    """Excess of epsilon at delta over the Renyi divergence of each order [Canonne, Kamath and
    Steinke 2020, Prop. 12].
    """
    return np.asarray(np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon, rounded up, at which the delta of one Gaussian [Balle and Wang 2018, Eq. 6]
    is small enough.
    """
    log_delta = math.log(delta)
    low = 0.0
    if log_gaussian_delta(mu, low) <= log_delta:
        return low

    high = 1.0
    while log_gaussian_delta(mu, high) > log_delta:
        low = high
        high = 10 * high

    # bisection; delta is small enough at `high`, too large at `low`
    while high - low > 1e-13 + 4e-16 * high:
        middle = (low + high) / 2
        if log_gaussian_delta(mu, middle) > log_delta:
            low = middle
        else:
            high = middle
    return high


def log_gaussian_delta(mu: float, epsilon_: float) -> float:
    """Logarithm of Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)."""
    from scipy.special import log_ndtr

    shift = epsilon_ / mu
    log_first = float(log_ndtr(mu / 2 - shift))
    log_second = epsilon_ + float(log_ndtr(-mu / 2 - shift))

    # ln(first - second), without leaving the logarithms
    share = -math.expm1(log_second - log_first)
    if share <= 0:
        return -math.inf
    return log_first + math.log(share)


@lru_cache(maxsize=1024)
def _renyi_epsilon(event: Event, delta: float) -> float:
    """Return epsilon by the Renyi curve, at the best order."""
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
    """Return epsilon by the composed privacy loss distribution on a grid of this interval."""
    if _has_losses_of_one_gaussian(event):
        return gaussian_epsilon(event.mu, delta)

    total: Any = None
    for part, n in event.counted():
        losses = part.losses(n)
        if losses is None:
            continue
        distribution = _loss_distribution(losses, interval)
        total = distribution if total is None else total.compose(distribution)
    return float(total.get_epsilon_for_delta(delta))


def _loss_distribution(losses: Losses, interval: float) -> Any:
    """Return the library's privacy loss distribution, rounded up to multiples of `interval`."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    laws = {
        "gaussian": pld.from_gaussian_mechanism,
        "laplace": pld.from_laplace_mechanism,
        "randomized response": pld.from_randomized_response,
        "profile": _from_profile,
    }
    distribution = laws[losses.law](**losses.parameters, value_discretization_interval=interval)
    if losses.uses is None:
        return distribution
    return distribution.self_compose(losses.uses)


def _from_profile(
    profile: Callable[[Floats], Floats], width: float, value_discretization_interval: float
) -> Any:
    """Return the loss distribution of a privacy profile that is the same in both directions.

    Losses are from -width to width.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    last = math.ceil(width / value_discretization_interval)
    losses = np.arange(-last, last + 1) * value_discretization_interval
    deltas = profile(np.clip(losses, -width, width))

    # at and below -width the profile is 1 - e^loss
    deltas[0] = -np.expm1(losses[0])

    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        value_discretization_interval, -last, last, deltas
    )
    return pld.PrivacyLossDistribution(pmf)
