"""A private search: many runs, of which only the best is released."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import InputError
from tacit.privacy.events.base import CAUTIOUS, ORDERS, Event, Floats, Rounding, check_event
from tacit.privacy.events.pure import PureDP


@dataclass(frozen=True)
class RepeatAndSelect(Event):
    """A private search: the same event in a random number of runs, of which only the best run's
    output is released.

    Parameters
    ----------
    event : Event
        What one run costs, its score included. Runs draw fresh noise, and nothing of the other runs
        is released.
    mean : float
        Mean number of runs, from 1 to 10^6; the number itself must stay secret.
    shape : float
        Its distribution: truncated negative binomial of this shape, from 0 to 1000 (0 is
        logarithmic, 1 geometric), or inf for Poisson, which may draw no run at all.

    Notes
    -----
    Renyi curve at order a, from the curve R of one run, with m runs on average:

    - truncated negative binomial of shape s and parameter g [Papernot and Steinke 2022, Theorem 2]:
      R(a) + ln(m)/(a-1) + (1+s) min over orders b >= 1 of (1 - 1/b) R(b) + ln(1/g)/b;
    - Poisson [Theorem 6]: R(a) + ln(m)/(a-1) + m delta, where one run is (ln(1 + 1/(a-1)),
      delta)-DP;
    - if runs are pure, the curve of the search's pure epsilon, if that is smaller.

    There is no rho and no mu unless runs are pure. Pure epsilon of runs that are epsilon-DP: for
    shape s at most (2 + s) epsilon [Corollary 3], and, in closed form, epsilon + (1 + s)
    ln((e^epsilon + g)/(1 + g e^epsilon)). For the density of an output y is q(y) f'(t) up to an
    average over t, the probability of outputs not better than y, with f the generating function of
    the number of runs, f'(t) proportional to (g + (1-g)(1-t))^-(1+s); and t and 1 - t change by a
    factor e^epsilon at most, so the worst case has 1 - t = 1/(1 + e^epsilon) and e^epsilon/(1 +
    e^epsilon). For Poisson epsilon + mean tanh(epsilon/2), as f'(t) is proportional to exp(mean t)
    and t changes by tanh(epsilon/2).
    """

    event: Event
    mean: float
    shape: float

    curve_work = 3000.0
    groups_of_any_size = False

    def __post_init__(self) -> None:
        check_event(self.event)
        if any(isinstance(part, RepeatAndSelect) for part, _ in self.event.contained()):
            raise InputError(
                "event holds a search inside a search; name all candidates in one RepeatAndSelect"
            )
        if not 1 <= self.mean <= 1e6:
            raise InputError(
                f"mean={self.mean} must be from 1 to 1e+06; pass the mean number of runs, such as"
                " mean=5"
            )
        if not (0 <= self.shape <= 1e3 or self.shape == math.inf):
            raise InputError(
                f"shape={self.shape} must be from 0 to 1000, or inf; pass for example shape=1"
                " (geometric)"
            )

    @property
    def halt(self) -> float:
        """The parameter g of the truncated negative binomial, which follows from its shape and
        mean.
        """
        return _halt(self.mean, self.shape)

    @property
    def pure(self) -> float:
        run = self.event.pure
        if not 0 < run < math.inf:
            return run
        if math.isinf(self.shape):
            return run + self.mean * math.tanh(run / 2)

        # ln((e^run + g)/(1 + g e^run)), without cancellation or overflow
        g = self.halt
        log_ratio = math.log1p((1 - g) * -math.expm1(-run) / (math.exp(-run) + g))
        return run + (1 + self.shape) * log_ratio

    @property
    def rho(self) -> float:
        return PureDP(self.pure).rho

    @property
    def mu(self) -> float:
        return PureDP(self.pure).mu

    @property
    def bounded(self) -> bool:
        return self.event.bounded

    def base(self) -> Event:
        return RepeatAndSelect(self.event.base(), self.mean, self.shape)

    def contained(self) -> tuple[tuple[Event, int], ...]:
        return ((self, 1), *self.event.contained())

    def for_group(self, size: int) -> Event:
        return RepeatAndSelect(self.event.for_group(size), self.mean, self.shape)

    def for_label_change(self) -> Event:
        return RepeatAndSelect(self.event.for_label_change(), self.mean, self.shape)

    def for_record_of_person(self) -> Event:
        return RepeatAndSelect(self.event.for_record_of_person(), self.mean, self.shape)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        distribution = f"truncated negative binomial of shape {self.shape:g}"
        if math.isinf(self.shape):
            distribution = "Poisson"
        mean = rounding.up(self.mean)
        return (
            f"the best of a secret number of runs ({distribution}, mean {mean}), each"
            f" ({self.event.describe(rounding)})"
        )

    def _renyi(self, orders: Floats) -> Floats:
        bound = self.event.renyi(orders) + math.log(self.mean) / (orders - 1)
        if math.isinf(self.shape):
            # Theorem 6
            bound += self.mean * _delta(self.event, np.log1p(1 / (orders - 1)))
        else:
            # Theorem 2
            bound += (1 + self.shape) * _choice_divergence(self.event, self.halt)

        if math.isfinite(self.pure):
            bound = np.minimum(bound, PureDP(self.pure)._renyi(orders))
        return np.asarray(bound)


@lru_cache(maxsize=1024)
def _halt(mean: float, shape: float) -> float:
    """Solve mean = shape (1/g - 1)/(1 - g^shape), or (1/g - 1)/ln(1/g) for shape 0, for g =
    exp(-x).

    The mean grows with x, so x is bisected until no float lies between its bounds.
    """
    if mean == 1:
        return 1.0

    low = 0.0
    high = 2 * math.log(mean) + 2
    x = (low + high) / 2
    while low < x < high:
        # the denominator (1 - g^shape)/shape, and its limit for shape 0
        if shape:
            denominator = -math.expm1(-shape * x) / shape
        else:
            denominator = x

        if math.expm1(x) < mean * denominator:
            low = x
        else:
            high = x
        x = (low + high) / 2

    # the side of the smaller mean
    return math.exp(-low)


def _choice_divergence(event: Event, halt: float) -> float:
    """Smallest (1 - 1/b) R(b) + ln(1/halt)/b over orders b; at b = 1 it is ln(1/halt)."""
    # Search all orders, then twice a finer grid around the best order.
    orders = ORDERS
    for _ in range(3):
        values = (1 - 1 / orders) * event.renyi(orders) - math.log(halt) / orders
        order = orders[np.argmin(values)]
        orders = 1 + (order - 1) * np.linspace(0.9, 1.1, 101)
    return min(float(values.min()), -math.log(halt))


def _delta(event: Event, epsilons: Floats) -> Floats:
    """Delta of `event` at each epsilon, by its Renyi curve [Canonne, Kamath and Steinke 2020, Prop.
    12].
    """
    # arrays of shape (orders, epsilons)
    slack = event.renyi(ORDERS)[:, None] - epsilons + np.log1p(-1 / ORDERS)[:, None]
    log_deltas = (ORDERS - 1)[:, None] * slack - np.log(ORDERS)[:, None]

    smallest = np.minimum(log_deltas.min(axis=0), 0.0)
    return np.asarray(np.exp(smallest))
