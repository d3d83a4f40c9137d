"""Events: what was done to the data, as frozen values that add up.

An event records one use of the private data under its unit, with parameters that are public facts.
It is a value: equal parameters make equal events, nothing about it ever changes, and it never looks
at data. Events add: `a + b` is both, in any order and adaptively, and `n * a` is `a` done `n` times.
A guarantee is the sum of its events and nothing else.

Each base event tells the truth about itself in four facts, each the best closed form we know:

`pure`   the smallest epsilon such that it is epsilon-DP (inf when there is none)
`rho`    a rho such that it is rho-zCDP
`mu`     a mu such that it is mu-GDP (inf when there is none)
`twice`  the event that covers a change made of two unit changes (group privacy for two)

An event may have neither of the first three and still an epsilon at every delta above 0, by its Renyi curve
(`RepeatAndSelect`); `bounded` says whether any bound holds at all.

To add an event: a frozen dataclass with these facts, its curves in `accounting.py`, its name in
`serial.py`, and its line in `tests/privacy/test_events.py`, which checks every event against an independent formula.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from tacit.errors import InputError


def _check(name: str, value: float) -> None:
    if not value >= 0:
        raise InputError(f"{name}={value} must be zero or positive; pass a number such as {name}=1.0")


class Event(ABC):
    """One use of the private data, or a sum of such uses."""

    if TYPE_CHECKING:  # declared for the type checker only, so that a field (ZCDP.rho) may state a fact

        @property
        def pure(self) -> float: ...
        @property
        def rho(self) -> float: ...
        @property
        def mu(self) -> float: ...

    @property
    def bounded(self) -> bool:
        """Whether any bound on the privacy loss holds."""
        return math.isfinite(self.rho)

    @abstractmethod
    def twice(self) -> Event:
        """The event under a unit made of two changes of this one."""

    def relabelled(self) -> Event:
        """The event when one record changes its label: at most a removal and an addition."""
        return self.twice()

    @abstractmethod
    def describe(self) -> str:
        """One phrase for people."""

    def counted(self) -> tuple[tuple[Event, int], ...]:
        """The distinct events this one is a sum of, and how often each was used."""
        return ((self, 1),)

    def base(self) -> Event:
        """The event whose facts hold for one change of the unit; undoes parallel composition."""
        return self

    def contained(self) -> tuple[tuple[Event, int], ...]:
        """The distinct events of `base` and those inside them, and how often each was used."""
        return ((self, 1),)

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        return compose((self, other))

    def __mul__(self, count: int) -> Event:
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InputError(f"count={count!r} must be a whole number >= 0; pass for example 3 * event")
        return _canonical({event: n * count for event, n in self.counted() if count})

    __rmul__ = __mul__


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a sum of L2-bounded contributions.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation divided by L2 sensitivity; 0 is no noise at all.

    Notes
    -----
    rho = 1/(2 z^2) [Bun and Steinke 2016, Prop. 1.6]; mu = 1/z [Dong, Roth and Su 2019, Thm 2.7].
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier)

    @property
    def pure(self) -> float:
        return 0.0 if math.isinf(self.noise_multiplier) else math.inf

    @property
    def rho(self) -> float:
        return 0.5 * self.mu**2 if self.mu < 1e150 else math.inf

    @property
    def mu(self) -> float:
        return 1.0 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    def twice(self) -> Gaussian:
        return Gaussian(self.noise_multiplier / 2)

    def describe(self) -> str:
        return f"Gaussian noise of {self.noise_multiplier:.6g} times the L2 sensitivity"


@dataclass(frozen=True)
class SampledGaussian(Event):
    """Gaussian noise on a sum over a Poisson sample: each record is in it by a secret coin of its own.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation divided by L2 sensitivity; 0 is no noise at all.
    sampling_rate : float
        Probability of each record to be in the sample; above 0, at most 1.

    Notes
    -----
    `rho` and `mu` are those without sampling, which bound it; what sampling gains is in the Renyi curve and the loss
    distribution. With P = (1-q) N(0, z^2) + q N(1, z^2) and Q = N(0, z^2) the pair is (P, Q) or (Q, P) [Zhu, Dong and
    Wang 2022, Thm 11]. Two changes: two additions shift a sample by at most 2 with probability q (2 - q); and a
    replacement is no worse, since there both sides share the 1 - q of samples without the record [Balle, Barthe and
    Gaboardi 2018, Thm 2].
    """

    noise_multiplier: float
    sampling_rate: float

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier)
        if not 0 < self.sampling_rate <= 1:
            raise InputError(
                f"sampling_rate={self.sampling_rate} must be above 0 and at most 1; pass for example sampling_rate=0.01"
            )

    @property
    def pure(self) -> float:
        return Gaussian(self.noise_multiplier).pure

    @property
    def rho(self) -> float:
        return Gaussian(self.noise_multiplier).rho

    @property
    def mu(self) -> float:
        return Gaussian(self.noise_multiplier).mu

    def twice(self) -> SampledGaussian:
        return SampledGaussian(self.noise_multiplier / 2, min(self.sampling_rate * (2 - self.sampling_rate), 1.0))

    def describe(self) -> str:
        return (
            f"Gaussian noise of {self.noise_multiplier:.6g} times the L2 sensitivity on a Poisson sample of rate "
            f"{self.sampling_rate:.6g}"
        )


def _mu_of_pure(epsilon: float) -> float:
    """mu of epsilon-DP: the Gaussian trade-off curve through the corner of epsilon-DP's [DRS 2019]."""
    if epsilon > 700:
        return math.inf
    if epsilon < 0.02:  # by the series of the quantile, rounded up, where 1/(1 + e^epsilon) is too near to 1/2
        x = math.tanh(epsilon / 2)
        return math.sqrt(2 * math.pi) * (x + math.pi / 12 * x**3 + 0.2 * x**5) * (1 + 1e-15)
    return -2.0 * NormalDist().inv_cdf(1.0 / (1.0 + math.exp(epsilon)))


@dataclass(frozen=True)
class PureDP(Event):
    """Any epsilon-DP mechanism about which nothing more is known.

    Parameters
    ----------
    epsilon : float
        Its pure epsilon.

    Notes
    -----
    Binary randomized response is the worst case; its Renyi divergence of order a over a is largest
    as a -> 1, where it is epsilon tanh(epsilon/2) <= epsilon^2/2.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check("epsilon", self.epsilon)

    @property
    def pure(self) -> float:
        return self.epsilon

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def mu(self) -> float:
        return _mu_of_pure(self.epsilon)

    def twice(self) -> Event:
        return PureDP(2 * self.epsilon)

    def describe(self) -> str:
        return f"a mechanism that is {self.epsilon:.6g}-DP"


@dataclass(frozen=True)
class Exponential(PureDP):
    """An exponential mechanism: privacy losses lie in an interval of width epsilon (bounded range).

    Parameters
    ----------
    epsilon : float
        Width of the interval, which is also the pure epsilon.

    Notes
    -----
    epsilon-bounded range implies epsilon^2/8-zCDP [Cesar and Rogers 2021, Lemma 3.4]. Ranges add
    over two unit changes, so `twice` has 2 epsilon.
    """

    @property
    def rho(self) -> float:
        return self.epsilon * self.epsilon / 8  # a power would raise where this overflows to inf

    def twice(self) -> Event:
        return Exponential(2 * self.epsilon)

    def describe(self) -> str:
        return f"an exponential mechanism of epsilon {self.epsilon:.6g} (bounded range)"


@dataclass(frozen=True)
class RandomizedResponse(PureDP):
    """A label replaced by a uniform other one with a probability that makes it epsilon-DP.

    Parameters
    ----------
    epsilon : float
        Log ratio of the probability to keep a label and to become any given other one.
    n_classes : int
        Number of labels.
    """

    n_classes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes < 2:
            raise InputError(f"n_classes={self.n_classes} must be at least 2; pass the size of the class list")

    def describe(self) -> str:
        return f"randomized response over {self.n_classes} labels at epsilon {self.epsilon:.6g}"


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a sum of L1-bounded contributions.

    Parameters
    ----------
    noise_multiplier : float
        Scale divided by L1 sensitivity; 0 is no noise at all.

    Notes
    -----
    Pure epsilon 1/b; rho = epsilon + exp(-epsilon) - 1 [Harrison and Manurangsi 2025].
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier)

    @property
    def pure(self) -> float:
        return 1.0 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def rho(self) -> float:
        return self.pure + math.expm1(-self.pure)

    @property
    def mu(self) -> float:
        return _mu_of_pure(self.pure)

    def twice(self) -> Event:
        return Laplace(self.noise_multiplier / 2)

    def describe(self) -> str:
        return f"Laplace noise of {self.noise_multiplier:.6g} times the L1 sensitivity"


@dataclass(frozen=True)
class ZCDP(Event):
    """Any rho-zCDP mechanism about which nothing more is known.

    Parameters
    ----------
    rho : float
        Its zCDP parameter. Group privacy for two multiplies it by four.
    """

    rho: float

    def __post_init__(self) -> None:
        _check("rho", self.rho)

    @property
    def pure(self) -> float:
        return math.inf if self.rho > 0 else 0.0

    @property
    def mu(self) -> float:
        return math.inf if self.rho > 0 else 0.0

    def twice(self) -> ZCDP:
        return ZCDP(4 * self.rho)

    def describe(self) -> str:
        return f"a mechanism that is {self.rho:.6g}-zCDP"


@dataclass(frozen=True)
class Parallel(Event):
    """The same event on each of several disjoint parts of the data.

    Parameters
    ----------
    event : Event
        What is done to each part; for parts treated differently, the worst of them.
    over : {"classes", "splits"}
        What separates the parts: the label, or a public property of the record's position.

    Notes
    -----
    One record is in one part, so adding or removing it costs `event` once. A replaced record may
    leave one part and enter another: `event.twice()` covers both that and a change within a part,
    because for every event here two at distance one are dominated by one at distance two.
    """

    event: Event
    over: Literal["classes", "splits"]

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InputError(f"event={self.event!r} must be an event; pass for example Gaussian(1.0)")
        if self.over not in ("classes", "splits"):
            raise InputError(f"over={self.over!r} must be 'classes' or 'splits'; name what separates the parts")

    @property
    def pure(self) -> float:
        return self.event.pure

    @property
    def rho(self) -> float:
        return self.event.rho

    @property
    def mu(self) -> float:
        return self.event.mu

    @property
    def bounded(self) -> bool:
        return self.event.bounded

    def base(self) -> Event:
        return self.event.base()

    def contained(self) -> tuple[tuple[Event, int], ...]:
        return self.event.contained()

    def twice(self) -> Event:
        return Parallel(self.event.twice(), self.over)

    def relabelled(self) -> Event:
        return 2 * self if self.over == "classes" else self.twice()  # it leaves one class and enters another

    def describe(self) -> str:
        where = "class" if self.over == "classes" else "split"
        return f"{self.event.describe()}, on each {where} separately"


@dataclass(frozen=True)
class RepeatAndSelect(Event):
    """A private search: the same event in a random number of runs, of which only the best one's output leaves.

    Parameters
    ----------
    event : Event
        What one run costs, its score included. Runs draw fresh noise, and nothing of the others leaves.
    mean : float
        Mean number of runs, from 1 to 10^6; the number itself must stay secret.
    shape : float
        Its distribution: truncated negative binomial of this shape, from 0 to 1000 (0 is logarithmic, 1
        geometric), or inf for Poisson, which may draw no run at all.

    Notes
    -----
    Renyi curve: Papernot and Steinke 2022, Theorem 2 (finite shape) and Theorem 6 (Poisson); see `accounting.py`.
    No rho and no mu, but where runs are pure. Pure epsilon of runs that are epsilon-DP: for shape s at most
    (2 + s) epsilon [Corollary 3], and, in closed form, epsilon + (1 + s) ln((e^epsilon + g)/(1 + g e^epsilon)). For the
    density of an output y is q(y) f'(t) up to an average over t, the probability of outputs not better than y, with f
    the generating function of the number of runs, f'(t) proportional to (g + (1-g)(1-t))^-(1+s); and t and 1 - t change
    by a factor e^epsilon at most, so the worst case has 1 - t = 1/(1 + e^epsilon) and e^epsilon/(1 + e^epsilon). For
    Poisson epsilon + mean tanh(epsilon/2), as f'(t) is proportional to exp(mean t) and t changes by tanh(epsilon/2).
    """

    event: Event
    mean: float
    shape: float

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InputError(f"event={self.event!r} must be an event; pass for example Gaussian(1.0)")
        if any(isinstance(part, RepeatAndSelect) for part, _ in self.event.contained()):
            raise InputError(
                "event holds another RepeatAndSelect, a search inside a search; name all candidates in one"
            )
        if not 1 <= self.mean <= 1e6:
            raise InputError(f"mean={self.mean} must be from 1 to 1e+06; pass the mean number of runs, such as mean=5")
        if not (0 <= self.shape <= 1e3 or self.shape == math.inf):
            raise InputError(f"shape={self.shape} must be from 0 to 1000, or inf; pass for example shape=1 (geometric)")

    @property
    def halt(self) -> float:
        """The parameter g of the truncated negative binomial; its shape and mean determine it."""
        return _halt(self.mean, self.shape)

    @property
    def pure(self) -> float:
        one = self.event.pure
        if not 0 < one < math.inf:
            return one
        if math.isinf(self.shape):
            return one + self.mean * math.tanh(one / 2)
        g = self.halt
        rise = math.log1p((1 - g) * -math.expm1(-one) / (math.exp(-one) + g))
        return one + (1 + self.shape) * rise

    @property
    def rho(self) -> float:
        return PureDP(self.pure).rho

    @property
    def mu(self) -> float:
        return _mu_of_pure(self.pure)

    @property
    def bounded(self) -> bool:
        return self.event.bounded

    def base(self) -> Event:
        return RepeatAndSelect(self.event.base(), self.mean, self.shape)

    def contained(self) -> tuple[tuple[Event, int], ...]:
        return ((self, 1), *self.event.contained())

    def twice(self) -> Event:
        return RepeatAndSelect(self.event.twice(), self.mean, self.shape)

    def relabelled(self) -> Event:
        return RepeatAndSelect(self.event.relabelled(), self.mean, self.shape)

    def describe(self) -> str:
        kind = "Poisson" if math.isinf(self.shape) else f"truncated negative binomial of shape {self.shape:g}"
        return f"the best of a secret number of runs ({kind}, mean {self.mean:g}), each ({self.event.describe()})"


@lru_cache(maxsize=1024)
def _halt(mean: float, shape: float) -> float:
    """Solve mean = shape (1/g - 1)/(1 - g^shape), or (1/g - 1)/ln(1/g) for shape 0, for g = exp(-x)."""
    if mean == 1:
        return 1.0
    low, high = 0.0, 2 * math.log(mean) + 2
    while low < (x := (low + high) / 2) < high:
        of_shape = -math.expm1(-shape * x) / shape if shape else x
        low, high = (x, high) if math.expm1(x) < mean * of_shape else (low, x)
    return math.exp(-low)  # the side of the smaller mean


@dataclass(frozen=True)
class Composition(Event):
    """Several events on the same data, adaptively. Made by `compose` or `+`.

    Parameters
    ----------
    counts : tuple of (Event, int)
        Distinct events in order of first use, and how often each was used.
    """

    counts: tuple[tuple[Event, int], ...]

    @property
    def pure(self) -> float:
        return sum(n * event.pure for event, n in self.counts)

    @property
    def rho(self) -> float:
        return sum(n * event.rho for event, n in self.counts)

    @property
    def mu(self) -> float:
        return math.sqrt(sum(n * event.mu * event.mu for event, n in self.counts))

    def counted(self) -> tuple[tuple[Event, int], ...]:
        return self.counts

    @property
    def bounded(self) -> bool:
        return all(event.bounded for event, _ in self.counts)

    def base(self) -> Event:
        return compose(n * event.base() for event, n in self.counts)

    def contained(self) -> tuple[tuple[Event, int], ...]:
        return tuple((part, n * m) for event, n in self.counts for part, m in event.contained())

    def twice(self) -> Event:
        return compose(n * event.twice() for event, n in self.counts)

    def relabelled(self) -> Event:
        return compose(n * event.relabelled() for event, n in self.counts)

    def describe(self) -> str:
        each = (f"{n} x ({event.describe()})" if n > 1 else event.describe() for event, n in self.counts)
        return "; ".join(each) or "nothing"


def compose(events: Iterable[Event]) -> Event:
    """Add events up; one event alone stays itself, none at all is the empty composition."""
    counts: dict[Event, int] = {}
    for event in events:
        for part, n in event.counted():
            counts[part] = counts.get(part, 0) + n
    return _canonical(counts)


def _canonical(counts: dict[Event, int]) -> Event:
    if list(counts.values()) == [1]:
        return next(iter(counts))
    return Composition(tuple(counts.items()))
