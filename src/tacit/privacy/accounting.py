"""From events to epsilon(delta): the smallest of the bounds below, all of which are valid.

The only file that knows dp_accounting. Sensitivity is already folded into every event's parameters,
so the library's own neighbouring relations, which differ between its accountants, play no part.

Bounds, each an upper bound on epsilon at a given delta; the smallest is returned:

- the sum of pure epsilons, when all events have one;
- the exact curve of one Gaussian with mu^2 = sum 1/z_i^2, when all events are Gaussian
  [Balle and Wang 2018; Dong, Roth and Su 2019];
- the Renyi curve, optimised over orders, converted by Canonne, Kamath and Steinke 2020, Prop. 12;
- a composed privacy loss distribution, rounded up, for several events that are not all Gaussian, or sampled. The
  exponential mechanism enters by its bounded-range profile (Dong, Durfee and Rogers 2020):
  delta(e) = (exp(E/2) - exp(e/2))^2 / (exp(E) - 1) for |e| <= E.

A search (`RepeatAndSelect`) enters by its Renyi curve, from the curve R of one run, with m runs on average:

- truncated negative binomial of shape s and parameter g [Papernot and Steinke 2022, Theorem 2]: at order a
  R(a) + ln(m)/(a-1) + (1+s) min over orders b >= 1 of (1 - 1/b) R(b) + ln(1/g)/b;
- Poisson [Theorem 6]: R(a) + ln(m)/(a-1) + m delta, where one run is (ln(1 + 1/(a-1)), delta)-DP;
- where runs are pure, the curve of their pure epsilon, if that is smaller.
"""

import math
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.privacy.events import (
    ZCDP,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)

Floats = NDArray[np.float64]

_LEAST_DELTA_OF_CURVE = 1e-30  # below, neither the solver nor the discrete noise is exact enough; Renyi holds
_MOST_USES = 10**6  # that a loss distribution composes; beyond, the Renyi curve serves
_SLOW_CURVES = (RepeatAndSelect, SampledGaussian, Laplace)
_FINE_PARTS = 10  # up to so many distinct events are composed on the finer grid
MOST_POINTS = 4_000_000  # of a grid; where it would need more, epsilon is so small that the Renyi curve serves
_LEAST_DELTA_OF_GRID = 1e-13  # loss distributions lose about 1e-16 of their mass to rounding
# dp_accounting ignores orders up to 1.01; 10^8 serves the smallest rho, and steps of 6 % find the neighbourhood of the
# optimum, which `_renyi_epsilon` refines
_WIDE_ORDERS = 1 + np.logspace(np.log10(0.0101), 8, 400)


def check_delta(delta: float) -> None:
    """Refuse a delta outside [0, 1)."""
    if not 0 <= delta < 1:
        raise InputError(f"delta={delta} must be at least 0 and below 1; pass for example delta=1e-6")


@lru_cache(maxsize=1024)
def epsilon(event: Event, delta: float) -> float:
    """Epsilon of `event` at `delta`: the smallest of the bounds listed above.

    Parameters
    ----------
    event : Event
        A sum of events.
    delta : float
        Failure probability in [0, 1); at 0 the answer is the pure epsilon.

    Returns
    -------
    float
        inf where no bound exists.
    """
    check_delta(delta)
    event = _costly(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded:
        return event.pure
    if _has_exact_curve(event, delta):
        return _gaussian_epsilon(event.mu, delta)
    best = min(event.pure, _renyi_epsilon(event, delta))
    interval = _interval(event, delta, best)
    if interval > 0 and _points(event, interval) <= MOST_POINTS:
        best = min(best, _loss_distribution_epsilon(event, delta, interval))
    return best


def work(event: Event, delta: float) -> float:
    """About how many microseconds `epsilon` takes, found in a small part of them."""
    event = _costly(event.base())
    if delta == 0 or event.pure == 0 or not event.bounded or _has_exact_curve(event, delta):
        return 0.0
    interval = _interval(event, delta, min(event.pure, _renyi_epsilon(event, delta)))
    points = _points(event, interval) if interval > 0 else math.inf
    uses = [n for _, n in event.counted()]
    curves = sum(3000.0 if isinstance(part, _SLOW_CURVES) else 300.0 for part, _ in event.contained())
    return curves + points * max(1.0, len(uses) / 5) + sum(uses) if points <= MOST_POINTS else curves


def _has_exact_curve(event: Event, delta: float) -> bool:
    return delta >= _LEAST_DELTA_OF_CURVE and all(type(part) is Gaussian for part, _ in event.counted())


def _interval(event: Event, delta: float, best: float) -> float:
    """Of the grid of a loss distribution; 0 where none is used, since nothing is gained or too much is lost."""
    kinds = {type(part) for part, _ in event.counted()}
    uses = sum(n for _, n in event.counted())
    # beyond 100 nobody compares numbers, and the grid, fine enough for four digits, would grow without bound
    composed = uses > 1 or kinds == {SampledGaussian}
    if not (composed and kinds <= set(_LOSSES) and 0 < best < 100 and delta >= _LEAST_DELTA_OF_GRID):
        return 0.0
    if uses > _MOST_USES:
        return 0.0
    # losses of samples reach much further than epsilon, and each distinct event is one more convolution
    return best * (1e-3 if SampledGaussian in kinds or len(event.counted()) > _FINE_PARTS else 1e-4)


def _points(event: Event, interval: float) -> float:
    """About how many points of a grid the losses of an event cover."""
    return sum(_span(part, n) for part, n in event.counted()) / interval


def _span(event: Event, count: int) -> float:
    """About how far losses reach: ten standard deviations to both sides, or as far as there are any."""
    rho = event.rho
    if isinstance(event, SampledGaussian):
        composed = count * min(rho, event.sampling_rate**2 * math.expm1(min(2 * rho, 700.0)))
        rho = max(rho / count, composed / count)  # one use reaches as far as it does without sampling
    return min(2 * count * event.pure, 2 * count * rho + 20 * math.sqrt(2 * count * rho))


def attack_rate(event: Event, false_positive_rate: float) -> float:
    """Largest true-positive rate of any attack that tells two neighbours apart at this false-positive rate."""
    event = event.base()
    fpr = false_positive_rate
    if event.pure == 0:
        return fpr
    bounds = [math.exp(min(epsilon(event, delta), 700)) * fpr + delta for delta in attack_deltas(fpr)]
    bounds += [math.exp(min(event.pure, 700)) * fpr, 1 - math.exp(-event.pure) * (1 - fpr)]
    if math.isfinite(event.mu):
        from scipy.stats import norm

        bounds.append(float(norm.cdf(norm.ppf(fpr) + event.mu)))
    return min(1.0, *bounds)


def attack_deltas(false_positive_rate: float) -> list[float]:
    """Where `attack_rate` reads epsilon."""
    return [false_positive_rate * 10.0**-power for power in range(7)]


def gaussian_multiplier(epsilon_: float, delta: float) -> float:
    """Smallest noise multiplier, rounded up, such that one Gaussian is (epsilon, delta)-DP."""
    from dp_accounting import get_sigma_gaussian

    with np.errstate(divide="ignore"):  # its search starts far outside
        z = float(get_sigma_gaussian(epsilon_, delta))
    step = 1e-12
    while _gaussian_epsilon(1 / z, delta) > epsilon_:
        z, step = z * (1 + step), min(2 * step, 0.5)
    return z


@lru_cache(maxsize=1024)
def largest_rho(epsilon_: float, delta: float) -> float:
    """Largest rho, rounded down, such that rho-zCDP is (epsilon, delta)-DP by the bounds above.

    At order a the conversion of [Canonne, Kamath and Steinke 2020, Prop. 12] allows
    (epsilon - ln(1 - 1/a) + ln(delta a)/(a - 1))/a; the best order is as good as all.
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
    """The Renyi order at which rho-zCDP may be largest while it is (epsilon, delta)-DP, for 0 < delta < 1."""
    orders = _WIDE_ORDERS
    for _ in range(4):
        order = orders[np.argmax(_allowed(orders, epsilon_, delta) / orders)]
        orders = 1 + (order - 1) * np.linspace(0.9, 1.1, 201)
    return float(orders[np.argmax(_allowed(orders, epsilon_, delta) / orders)])


def largest_renyi(order: float, epsilon_: float, delta: float) -> float:
    """Largest Renyi divergence at this order, rounded down, that is (epsilon, delta)-DP by itself."""
    orders = np.array([order])
    value = max(float(_allowed(orders, epsilon_, delta)[0]), 0.0)
    while value > 0 and renyi_epsilons(np.array([value]), orders, delta) > epsilon_:
        value *= 1 - 1e-12
    return value


def _allowed(orders: Floats, epsilon_: float, delta: float) -> Floats:
    """Renyi divergence at each order that the conversion below turns into epsilon."""
    return np.asarray(epsilon_ - np.log1p(-1 / orders) + np.log(delta * orders) / (orders - 1))


def renyi_epsilons(values: Floats, orders: Floats, delta: float) -> Floats:
    """Epsilon at delta of Renyi curves of shape (..., orders), by the same conversion; of shape (...)."""
    check_delta(delta)
    slack = np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return np.asarray(np.maximum((values + slack).min(axis=-1), 0.0))


def renyi(event: Event, orders: Floats) -> Floats:
    """Renyi divergence bound of `event` at each order above 1."""
    parts = _costly(event.base()).counted()
    with np.errstate(over="ignore"):  # what overflows is infinite
        curve = sum((n * _RENYI[type(part)](part, orders) for part, n in parts), np.zeros(np.shape(orders)))
    return np.maximum(curve, 0.0)


def _costly(event: Event) -> Event:
    """Without the parts that cost nothing, such as infinite noise: libraries have no curves for them."""
    return compose(n * part for part, n in event.counted() if part.pure > 0)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian

    with np.errstate(divide="ignore"):
        return float(get_epsilon_gaussian(1 / mu, delta))


@lru_cache(maxsize=1024)
def _renyi_epsilon(event: Event, delta: float) -> float:
    from dp_accounting.rdp import compute_epsilon

    curve = renyi(event, _WIDE_ORDERS)
    finite = np.isfinite(curve)
    if not finite.any():
        return math.inf
    best, order = compute_epsilon(_WIDE_ORDERS[finite], curve[finite], delta)
    for width in (1e-1, 1e-3):  # the optimum is flat: two refinements leave a relative error below 1e-9
        if order > 1:
            near = 1 + (order - 1) * np.linspace(1 - width, 1 + width, 101)
            curve = renyi(event, near)
            finite = np.isfinite(curve)
            best, order = min((best, order), compute_epsilon(near[finite], curve[finite], delta))
    return float(best)


def _response_renyi(epsilon_: float, n_classes: int, orders: Floats) -> Floats:
    """Exact, without cancellation: 1 + q expm1(aE) expm1((a-1)E) exp(-(a-1)E) under the logarithm.

    Between two labels the sum is q e^(aE) + q e^((1-a)E) + (K-2) q, with q e^E + (K-1) q = 1.
    """
    t = (orders - 1) * epsilon_
    log_q = -np.logaddexp(epsilon_, math.log(n_classes - 1))
    rise = log_q + _log_expm1(orders * epsilon_) + _log_expm1(t) - t
    return np.asarray(np.logaddexp(0.0, rise) / (orders - 1))


def _log_expm1(x: Floats) -> Floats:
    return np.asarray(x + np.log(-np.expm1(-x)))


def _uniform_share(epsilon_: float, n_classes: int) -> float:
    """Randomized response as a mixture: the probability to draw uniformly from all labels."""
    return n_classes * math.exp(-epsilon_) / (1 + (n_classes - 1) * math.exp(-epsilon_))


def _laplace_renyi(event: Laplace, orders: Floats) -> Floats:
    from dp_accounting import LaplaceDpEvent, NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    if math.isinf(event.pure):
        return np.full(np.shape(orders), math.inf)
    accountant = RdpAccountant(list(orders), NeighboringRelation.ADD_OR_REMOVE_ONE)
    return np.asarray(np.maximum(accountant.compose(LaplaceDpEvent(event.noise_multiplier)).rdp, 0.0))


def _sampled_renyi(event: SampledGaussian, orders: Floats) -> Floats:
    """At the next whole order [Mironov, Talwar and Zhang 2019, section 3.3], or without sampling if that is smaller.

    A whole order a has E_Q (P/Q)^a = sum over k of binomial(a, k) (1-q)^(a-k) q^k exp(k (k-1)/(2 z^2)).
    """
    unsampled = event.rho * orders
    whole = np.ceil(orders)
    if event.sampling_rate == 1 or not 0 < event.noise_multiplier < math.inf:
        return np.asarray(unsampled)
    curve = {order: _sampled_moment(event, int(order)) / (order - 1) for order in np.unique(whole) if order <= 256}
    return np.minimum(unsampled, [curve.get(order, math.inf) for order in whole])


@lru_cache(maxsize=4096)
def _sampled_moment(event: SampledGaussian, order: int) -> float:
    from scipy.special import gammaln, logsumexp

    k, q = np.arange(order + 1), event.sampling_rate
    log_binomials = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    log_shares = (order - k) * math.log1p(-q) + k * math.log(q)
    return float(logsumexp(log_binomials + log_shares + k * (k - 1) * event.rho))


def _repeated_renyi(event: RepeatAndSelect, orders: Floats) -> Floats:
    bound = renyi(event.event, orders) + math.log(event.mean) / (orders - 1)
    if math.isinf(event.shape):
        bound += event.mean * _renyi_delta(event.event, np.log1p(1 / (orders - 1)))
    else:
        bound += (1 + event.shape) * _choice_divergence(event.event, event.halt)
    if math.isfinite(event.pure):
        bound = np.minimum(bound, _response_renyi(event.pure, 2, orders))
    return np.asarray(bound)


def _choice_divergence(event: Event, halt: float) -> float:
    """Smallest (1 - 1/b) R(b) + ln(1/halt)/b over orders b; at b = 1 it is ln(1/halt)."""
    orders = _WIDE_ORDERS
    for _ in range(3):
        values = (1 - 1 / orders) * renyi(event, orders) - math.log(halt) / orders
        order = orders[np.argmin(values)]
        orders = 1 + (order - 1) * np.linspace(0.9, 1.1, 101)
    return min(float(values.min()), -math.log(halt))


def _renyi_delta(event: Event, epsilons: Floats) -> Floats:
    """Delta of `event` at each epsilon, by its Renyi curve [Canonne, Kamath and Steinke 2020, Prop. 12]."""
    orders = _WIDE_ORDERS
    slack = renyi(event, orders)[:, None] - epsilons + np.log1p(-1 / orders)[:, None]
    return np.asarray(np.exp(np.minimum(((orders - 1)[:, None] * slack - np.log(orders)[:, None]).min(axis=0), 0.0)))


def _loss_distribution_epsilon(event: Event, delta: float, interval: float) -> float:
    parts = [_LOSSES[type(part)](part, n, interval) for part, n in event.counted()]
    return float(reduce(lambda total, part: total.compose(part), parts).get_epsilon_for_delta(delta))


def _gaussian_losses(event: Gaussian, count: int, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    z = event.noise_multiplier / math.sqrt(count)
    return pld.from_gaussian_mechanism(z, value_discretization_interval=interval)


def _sampled_losses(event: SampledGaussian, count: int, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(
        event.noise_multiplier, value_discretization_interval=interval, sampling_prob=event.sampling_rate
    )
    return one.self_compose(count)


def _laplace_losses(event: Laplace, count: int, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=interval)
    return one.self_compose(count)


def _response_losses(event: PureDP, count: int, interval: float) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    n_classes = event.n_classes if isinstance(event, RandomizedResponse) else 2  # the worst of all pure mechanisms
    one = pld.from_randomized_response(
        _uniform_share(event.epsilon, n_classes),
        n_classes,
        value_discretization_interval=interval,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    return one.self_compose(count)


def _bounded_range_losses(event: Exponential, count: int, interval: float) -> Any:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    epsilon_ = event.epsilon
    last = math.ceil(epsilon_ / interval)
    losses = np.arange(-last, last + 1) * interval
    inside = np.clip(losses, -epsilon_, epsilon_)
    deltas = (np.exp(epsilon_ / 2) - np.exp(inside / 2)) ** 2 / np.expm1(epsilon_)
    deltas[0] = -np.expm1(losses[0])  # at and below -epsilon
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -last, last, deltas)
    return pld.PrivacyLossDistribution(pmf).self_compose(count)


_RENYI: dict[type[Event], Callable[[Any, Floats], Floats]] = {
    Gaussian: lambda event, orders: event.rho * orders,
    ZCDP: lambda event, orders: event.rho * orders,
    Exponential: lambda event, orders: event.rho * orders,
    PureDP: lambda event, orders: _response_renyi(event.epsilon, 2, orders),
    RandomizedResponse: lambda event, orders: _response_renyi(event.epsilon, event.n_classes, orders),
    Laplace: _laplace_renyi,
    RepeatAndSelect: _repeated_renyi,
    SampledGaussian: _sampled_renyi,
}
_LOSSES: dict[type[Event], Callable[[Any, int, float], Any]] = {  # none where no more than the Renyi curve is known
    Gaussian: _gaussian_losses,
    SampledGaussian: _sampled_losses,
    Exponential: _bounded_range_losses,
    PureDP: _response_losses,
    RandomizedResponse: _response_losses,
    Laplace: _laplace_losses,
}
