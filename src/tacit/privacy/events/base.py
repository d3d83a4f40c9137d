"""Statements of every event about itself, and sums of events."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.privacy.decimals import noise_rounded_down, rounded_up

Floats = NDArray[np.float64]

# Renyi orders among which the best one is searched. dp_accounting ignores orders up to 1.01; 10^8
# serves the smallest rho, and steps of 6 % find the neighbourhood of the optimum, which the
# searches then refine.
ORDERS = 1 + np.logspace(np.log10(0.0101), 8, 400)


@dataclass(frozen=True)
class Rounding:
    """The direction in which the numbers of a phrase about an event are rounded."""

    up: Callable[[float], str] = rounded_up
    """For numbers that cost more the larger they are: an epsilon, a rate of sampling."""
    down: Callable[[float], str] = noise_rounded_down
    """For numbers that cost less the larger they are: a noise multiplier."""


# no phrase reads as a smaller price than is paid
CAUTIOUS = Rounding()


@dataclass(frozen=True)
class Losses:
    """Distribution of the privacy loss of several uses of an event, as data from which
    `accounting.py` builds it.

    Parameters
    ----------
    law : {"gaussian", "laplace", "randomized response", "profile"}
        "profile" serves events whose privacy profile is known in closed form and the same in both
        directions.
    parameters : dict
        Arguments of the law.
    uses : int or None
        How often the distribution is composed with itself; None if the parameters already stand for
        all uses.
    """

    law: str
    parameters: dict[str, Any]
    uses: int | None


class Event(ABC):
    """One use of the private data, or a sum of such uses.

    Attributes
    ----------
    pure : float
        Smallest epsilon such that the event is epsilon-DP; inf if there is none.
    rho : float
        A rho such that it is rho-zCDP; inf if none is known.
    mu : float
        A mu such that it is mu-GDP; inf if none is known.
    assumption : str or None
        What a card must say about this event: an assumption behind its privacy cost, and how far it
        holds.
    assumes_discrete_noise : bool
        Whether `assumption` is about discrete noise. Rounded noise, such as that of
        `tacit.mechanisms.deviates`, needs none.
    exact_mu : bool
        Whether mu gives the exact privacy profile, as it does for Gaussian noise.
    sampled : bool
        Whether a sample of the records was used, so that rho and mu, which ignore sampling, are
        loose.
    groups_of_any_size : bool
        Whether `for_group` holds for groups of any size, and so for all records of a person.
    curve_work : float
        Microseconds that the Renyi curve takes, about.
    attained : bool
        Whether some pair of neighbouring data sets reaches the `attack_rate` and `total_variation`
        that it states.
    best_orders : tuple of float
        Renyi orders at which the curve is lower than beside them; conversions to epsilon try these
        too.

    Notes
    -----
    Each fact is the best closed form that is known. An event may have none of pure, rho and mu and
    still a finite epsilon at every delta > 0, by its Renyi curve.
    """

    assumption: ClassVar[str | None] = None
    assumes_discrete_noise: ClassVar[bool] = False
    exact_mu: ClassVar[bool] = False
    attained: ClassVar[bool] = False
    sampled: ClassVar[bool] = False
    groups_of_any_size: ClassVar[bool] = True
    curve_work: ClassVar[float] = 300.0
    best_orders: ClassVar[tuple[float, ...]] = ()

    # declared for the type checker only, so that a field may state a fact (`ZCDP.rho`)
    if TYPE_CHECKING:

        @property
        def pure(self) -> float: ...
        @property
        def rho(self) -> float: ...
        @property
        def mu(self) -> float: ...

    @property
    def bounded(self) -> bool:
        """True if any bound on the privacy loss holds."""
        return math.isfinite(self.rho)

    @abstractmethod
    def for_group(self, size: int) -> Event:
        """The event under group privacy: for data sets that differ in `size` records."""

    def for_label_change(self) -> Event:
        """The event when one record changes its label: at most a removal and an addition."""
        return self.for_group(2)

    def for_record_of_person(self) -> Event:
        """The event when one record is added to a person or removed, where this event is that of a
        whole person.

        The same event by default: a person's part of a sum is projected on a ball, which lengthens
        no difference, and one more record moves scores by no more than a person does
        (`tacit.mechanisms.exponential`).
        """
        return self

    @abstractmethod
    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        """A phrase that names the event and its parameters, rounded so that it reads as no smaller
        price.
        """

    def renyi(self, orders: Floats) -> Floats:
        """Bound on the Renyi divergence at each order above 1."""
        total = np.zeros(np.shape(orders))
        # a divergence that overflows is infinite
        with np.errstate(over="ignore"):
            for event, n in self.base().counted():
                if event.pure > 0:
                    total = total + n * event._renyi(orders)
        return np.maximum(total, 0.0)

    def _renyi(self, orders: Floats) -> Floats:
        """The Renyi curve of one event of this kind that costs something; each kind fills it in."""
        raise NotImplementedError(f"{type(self).__name__} has no Renyi curve")

    def losses(self, uses: int) -> Losses | None:
        """Distribution of the privacy loss of so many uses; None if no more than the Renyi curve is
        known.
        """
        return None

    def exact_epsilon(self, uses: int, delta: float) -> float | None:
        """Exact epsilon of so many uses at delta, above 0 and below 1; None if no closed form is
        known.
        """
        return None

    def attack_rate(self, false_positive_rate: float) -> float | None:
        """Largest true-positive rate against one use: its trade-off function; None if no closed
        form is known.

        It holds for both orders of two neighbouring data sets.
        """
        return None

    def total_variation(self) -> float | None:
        """Largest difference between the two rates against one use; None if no closed form is
        known.
        """
        return None

    def reach(self, uses: int) -> float:
        """About how wide the interval is that losses of so many uses cover: 20 standard deviations,
        or all of it.
        """
        # Losses of a Gaussian of the same rho have the means rho and -rho, and variance 2 rho.
        gaussian_reach = 2 * uses * self.rho + 20 * math.sqrt(2 * uses * self.rho)
        return min(2 * uses * self.pure, gaussian_reach)

    def counted(self) -> tuple[tuple[Event, int], ...]:
        """The distinct events of this sum, and how often each was used."""
        return ((self, 1),)

    def base(self) -> Event:
        """The event as a single record sees it, without parallel composition."""
        return self

    def contained(self) -> tuple[tuple[Event, int], ...]:
        """The distinct events of `base`, those nested in them too, and how often each was used."""
        return ((self, 1),)

    def to_json(self) -> Any:
        """Plain JSON values: the type and its parameters; a sum is a list of {count, event}."""
        document: dict[str, Any] = {"type": type(self).__name__}
        for field in fields(self):  # type: ignore[arg-type]
            document[field.name] = _json_value(getattr(self, field.name))
        return document

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        return compose((self, other))

    def __mul__(self, count: int) -> Event:
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InputError(
                f"count={count!r} must be a whole number >= 0; pass for example 3 * event"
            )
        if count == 0:
            return compose(())
        return _canonical({event: n * count for event, n in self.counted()})

    __rmul__ = __mul__


@dataclass(frozen=True)
class Composition(Event):
    """Several events on the same data, adaptively; built by `compose` or `+`."""

    counts: tuple[tuple[Event, int], ...]
    """Distinct events in order of first use, and how often each was used."""

    @property
    def pure(self) -> float:
        return sum(n * event.pure for event, n in self.counts)

    @property
    def rho(self) -> float:
        return sum(n * event.rho for event, n in self.counts)

    @property
    def mu(self) -> float:
        return math.sqrt(sum(n * event.mu * event.mu for event, n in self.counts))

    @property
    def bounded(self) -> bool:
        return all(event.bounded for event, _ in self.counts)

    @property
    def best_orders(self) -> tuple[float, ...]:  # type: ignore[override]
        orders = (order for event, _ in self.counts for order in event.best_orders)
        # without repetitions, in order of first use
        return tuple(dict.fromkeys(orders))

    def counted(self) -> tuple[tuple[Event, int], ...]:
        return self.counts

    def base(self) -> Event:
        return compose(n * event.base() for event, n in self.counts)

    def contained(self) -> tuple[tuple[Event, int], ...]:
        contained = []
        for event, n in self.counts:
            for part, n_in_event in event.contained():
                contained.append((part, n * n_in_event))
        return tuple(contained)

    def for_group(self, size: int) -> Event:
        return compose(n * event.for_group(size) for event, n in self.counts)

    def for_label_change(self) -> Event:
        return compose(n * event.for_label_change() for event, n in self.counts)

    def for_record_of_person(self) -> Event:
        return compose(n * event.for_record_of_person() for event, n in self.counts)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        phrases = []
        for event, n in self.counts:
            phrase = event.describe(rounding)
            if n > 1:
                phrase = f"{n} x ({phrase})"
            phrases.append(phrase)
        return "; ".join(phrases) or "nothing"

    def to_json(self) -> Any:
        return [{"count": n, "event": event.to_json()} for event, n in self.counts]


def compose(events: Iterable[Event]) -> Event:
    """Add events up; a single event stays itself, and no event is the empty composition."""
    counts: dict[Event, int] = {}
    for event in events:
        for part, n in event.counted():
            counts[part] = counts.get(part, 0) + n
    return _canonical(counts)


def check_not_negative(name: str, value: float) -> None:
    """Refuse a parameter of an event that is negative or not a number."""
    if not value >= 0:
        raise InputError(
            f"{name}={value} must be zero or positive; pass a number such as {name}=1.0"
        )


def check_event(value: Any) -> None:
    """Refuse anything but an event as a part of another event."""
    if not isinstance(value, Event):
        raise InputError(f"event={value!r} must be an event; pass for example Gaussian(1.0)")


def _canonical(counts: dict[Event, int]) -> Event:
    """The sum of events with these counts; a single event once is itself, so that equal sums are
    equal values.
    """
    if list(counts.values()) == [1]:
        return next(iter(counts))
    return Composition(tuple(counts.items()))


def _json_value(value: Any) -> Any:
    """A parameter as JSON, which has no infinity."""
    if isinstance(value, Event):
        return value.to_json()
    if value == math.inf:
        return "inf"
    return value
