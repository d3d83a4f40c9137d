"""A budget: what may be spent, as text or as a value, and the noise that spends it.

`epsilon=1` is pure, `rho=0.5` is zCDP, `epsilon=1,delta=1e-6` is approximate and `mu=1` is Gaussian
differential privacy. `tpr=0.1@fpr=0.01` states what an attack may reach; it is the mu of the
Gaussian trade-off curve through that point. A budget is read under the unit of the learner that
spends it. Calibrations round to the safe side: the noise that they return costs no more than the
budget, in floats too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from tacit.compute.numbers import read_number
from tacit.errors import BudgetError, quoted
from tacit.privacy import accounting
from tacit.privacy.decimals import rounded_down
from tacit.privacy.events import Event, Exponential, Gaussian, PureDP, SampledGaussian
from tacit.privacy.unit import Unit

# Smallest and largest finite epsilon, rho or mu of a budget.
LEAST = 1e-9
MOST = 1e9
_LEAST_DELTA = 1e-30

_FORMS = (
    "write epsilon=1 (pure), rho=0.5 (zCDP), epsilon=1,delta=1e-6 (approximate), mu=1 (Gaussian DP)"
    " or tpr=0.1@fpr=0.01 (the most that an attack may reach)"
)

# Delta of the approximate budgets that errors propose.
_HINT_DELTA = "1e-6"

# Range in which to search the epsilon of a mechanism of which only a pure epsilon is known: from
# below what the smallest budget permits, to an epsilon that protects nothing.
_LEAST_PURE = 1e-10
_MOST_PURE = 1e6

# If a budget is split over several events, noise is larger by this factor, so that the costs of the
# events, added up in floats, stay within the budget. The factor exceeds the tolerance of the solver
# that finds epsilon, 1e-12.
_ROUNDING_FACTOR = 1 + 1e-11

# Cost under a unit divided by the cost under add/remove of a record or person, for one event on
# each of several classes: in sqrt(rho) (Gaussian sums, and selections under zCDP), and in pure
# epsilon.
#
# A replacement is a removal and an addition, perhaps in one class, so it costs what a group of
# two costs: twice the epsilon, four times the rho. A changed label removes a record from one class
# and adds it to another, so it changes two events by one record each. Their rho add up, which is
# sqrt(2) in sqrt(rho), and so do their pure epsilons. A person may be in several classes, so a
# change of their labels costs as much as another person.
_ROOT_RHO_FACTORS = {
    Unit.ADD_REMOVE: 1.0,
    Unit.REPLACE: 2.0,
    Unit.CHANGE_LABEL: math.sqrt(2),
    Unit.ADD_REMOVE_PERSON: 1.0,
    Unit.REPLACE_PERSON: 2.0,
    Unit.CHANGE_LABELS_OF_PERSON: 2.0,
}
_PURE_FACTORS = _ROOT_RHO_FACTORS | {Unit.CHANGE_LABEL: 2.0}


@dataclass(frozen=True)
class Budget:
    """A limit on the privacy cost, built by `pure`, `zcdp`, `approx`, `gdp`, `attack` or `parse`.

    Examples
    --------
    >>> Budget.parse("rho=0.5") == Budget.zcdp(0.5)
    True
    >>> str(Budget.approx(1, 1e-6))
    'epsilon=1,delta=1e-06'
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        # from Python any fields may be set together; only four sets of them are a budget
        parts = self._parts()
        if set(parts) not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}, {"mu"}):
            raise BudgetError(
                f"budget with {', '.join(parts) or 'nothing'} is not one of the four kinds;"
                f" {_FORMS}"
            )
        for name, value in parts.items():
            if name == "delta":
                _check_delta(value)
            else:
                _check_amount(name, value)

    def _parts(self) -> dict[str, float]:
        """The fields that are set, by name, in the order in which they are written."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def pure(cls, epsilon: float) -> Budget:
        """Pure differential privacy: epsilon, at delta 0."""
        return cls(epsilon=float(epsilon))

    @classmethod
    def zcdp(cls, rho: float) -> Budget:
        """Zero-concentrated differential privacy."""
        return cls(rho=float(rho))

    @classmethod
    def approx(cls, epsilon: float, delta: float) -> Budget:
        """Approximate differential privacy: epsilon at delta."""
        return cls(epsilon=float(epsilon), delta=float(delta))

    @classmethod
    def gdp(cls, mu: float) -> Budget:
        """Gaussian differential privacy: telling neighbours apart is as hard as telling N(0, 1)
        from N(mu, 1).
        """
        return cls(mu=float(mu))

    @classmethod
    def attack(cls, true_positive_rate: float, false_positive_rate: float) -> Budget:
        """The Gaussian DP budget of which no attack exceeds one true-positive rate at one
        false-positive rate.

        It is mu = Phi^-1(tpr) - Phi^-1(fpr), rounded down, and so bounds attacks at every other
        rate too.

        Raises
        ------
        BudgetError
            Unless 0 < false_positive_rate < true_positive_rate < 1.

        Examples
        --------
        >>> round(Budget.attack(0.1, 0.01).mu, 4)
        1.0448
        """
        tpr = float(true_positive_rate)
        fpr = float(false_positive_rate)
        if not 0 < fpr < tpr < 1:
            rule = "must have 0 < fpr < tpr < 1, since a blind guess reaches tpr = fpr"
            raise BudgetError(f"budget tpr={tpr:g}@fpr={fpr:g} {rule}; {_FORMS}")

        # The trade-off curve of N(0, 1) and N(mu, 1) is tpr = Phi(Phi^-1(fpr) + mu). Quantiles are
        # right to a few units in the last place, so this slack rounds mu down, also where the rates
        # are close and the difference of their quantiles is small.
        quantile = NormalDist().inv_cdf
        upper = quantile(tpr)
        lower = quantile(fpr)
        slack = 1e-14 * (1 + abs(upper) + abs(lower))
        mu = upper - lower - slack
        if mu <= 0:
            rule = f"are closer than {slack:.0e}, the precision of quantiles"
            raise BudgetError(f"budget tpr={tpr!r}@fpr={fpr!r} {rule}; give rates further apart")
        return cls(mu=mu)

    @classmethod
    def parse(cls, text: str | Budget) -> Budget:
        """Read a budget from text such as "epsilon=1", "rho=0.5", "epsilon=1,delta=1e-6" or
        "tpr=0.1@fpr=0.01".
        """
        if isinstance(text, Budget):
            return text
        # from Python an infinity may be a number, which does not name a kind either
        if text in ("inf", math.inf):
            raise BudgetError(
                f"budget {text} does not name a kind; write rho=inf, which asks for no protection"
            )
        if not isinstance(text, str):
            raise BudgetError(f"budget={quoted(text)} does not say of which kind it is; {_FORMS}")

        if "@" in text:
            rates = _read_parts(text, "@", ("tpr", "fpr"))
            return cls.attack(rates["tpr"], rates["fpr"])
        return cls(**_read_parts(text, ",", ("epsilon", "delta", "rho", "mu")))

    @property
    def kind(self) -> str:
        """One of "pure", "zcdp", "approx", "gdp"."""
        if self.mu is not None:
            return "gdp"
        if self.rho is not None:
            return "zcdp"
        if self.delta is not None:
            return "approx"
        return "pure"

    @property
    def infinite(self) -> bool:
        """True if the budget asks for no protection at all."""
        return math.inf in (self.epsilon, self.rho, self.mu)

    def __str__(self) -> str:
        return ",".join(
            f"{name}={value!r}".removesuffix(".0") for name, value in self._parts().items()
        )

    def permits(self, event: Event) -> bool:
        """Tell whether the privacy cost of `event` is within the budget."""
        if self.rho is not None:
            return event.rho <= self.rho
        if self.mu is not None:
            return event.mu <= self.mu
        # a pure budget has delta 0
        assert self.epsilon is not None
        return accounting.epsilon(event, self.delta or 0.0) <= self.epsilon

    def gaussian(self, unit: Unit = Unit.ADD_REMOVE, *, split: bool = False) -> float:
        """Noise multiplier of Gaussian events, one on each of several disjoint classes, that
        together spend the budget.

        Parameters
        ----------
        unit : Unit
            The unit in which the budget is read.
        split : bool, default=False
            Whether the budget is split over several such events: of multipliers z_i with
            sum 1/z_i^2 = 1/z^2, where z is the multiplier that is returned.

        Raises
        ------
        BudgetError
            If the budget is pure.
        """
        if self.infinite:
            return 0.0
        multiplier = self._gaussian_of_record() * _ROOT_RHO_FACTORS[unit]

        # A changed label is two events, since it changes the sums of two classes.
        several_events = split or unit is Unit.CHANGE_LABEL
        if several_events:
            multiplier *= _ROUNDING_FACTOR
        return multiplier

    def _gaussian_of_record(self) -> float:
        """Noise multiplier of one Gaussian event for one record added or removed.

        Noise that costs more than the budget by rounding is raised, float by float.
        """
        if self.rho is not None:
            # rho = 1/(2 z^2)
            multiplier = 1 / math.sqrt(2 * self.rho)
            while Gaussian(multiplier).rho > self.rho:
                multiplier = math.nextafter(multiplier, math.inf)
            return multiplier

        if self.mu is not None:
            # mu = 1/z
            multiplier = 1 / self.mu
            while Gaussian(multiplier).mu > self.mu:
                multiplier = math.nextafter(multiplier, math.inf)
            return multiplier

        assert self.epsilon is not None
        if self.delta is not None:
            return accounting.gaussian_multiplier(self.epsilon, self.delta)

        remedy = (
            f"pass {self.hint('approx')} (the same epsilon, but approximate: a weaker guarantee)"
        )
        raise BudgetError(f"budget {self} is pure and Gaussian noise has no pure epsilon; {remedy}")

    def exponential(self, unit: Unit = Unit.ADD_REMOVE) -> float:
        """Epsilon of exponential mechanisms, one on each of several disjoint classes, that together
        spend the budget.
        """
        if self.infinite:
            return math.inf
        if self.rho is not None:
            # An exponential mechanism has rho = epsilon^2 / 8.
            epsilon = math.sqrt(8 * self.rho)
            while Exponential(epsilon).rho > self.rho:
                epsilon = math.nextafter(epsilon, 0)
            epsilon /= _ROOT_RHO_FACTORS[unit]
            # a changed label is two events here too
            if unit is Unit.CHANGE_LABEL:
                epsilon /= _ROUNDING_FACTOR
            return epsilon
        if self.mu is not None:
            return calibrate(
                self, lambda epsilon: _exponential_under(epsilon, unit), _LEAST_PURE, _MOST_PURE
            )
        # exact in floats, since every pure factor is 1 or 2
        assert self.epsilon is not None
        return self.epsilon / _PURE_FACTORS[unit]

    def laplace(self, unit: Unit = Unit.ADD_REMOVE) -> float:
        """Noise multiplier of Laplace events, one on each of several disjoint classes, that
        together spend a pure budget.
        """
        if self.infinite:
            return 0.0
        if self.kind != "pure" or self.epsilon is None:
            remedy = f"pass {self.hint('pure')} (pure), or use Gaussian noise"
            raise BudgetError(f"budget {self} is not pure, as Laplace noise needs; {remedy}")

        # The quotient may be rounded down, so it is compared with the budget in exact fractions.
        multiplier = _PURE_FACTORS[unit] / self.epsilon
        while Fraction(multiplier) * Fraction(self.epsilon) < _PURE_FACTORS[unit]:
            multiplier = math.nextafter(multiplier, math.inf)
        return multiplier

    def sampled_gaussian(self, sampling_rate: float, count: int) -> float:
        """Noise multiplier at which `count` `SampledGaussian` events meet the budget, up to a
        thousandth too large.
        """
        if self.epsilon is None or self.delta is None:
            fault = f"budget {self} is not approximate, so sampling gains nothing"
            raise BudgetError(
                f"{fault}; pass {self.hint('approx')} (approximate: a weaker guarantee)"
            )
        if self.infinite:
            return 0.0

        def cost(inverse: float) -> Event:
            """Return the event at the inverse of a noise multiplier, with which the cost grows."""
            return count * SampledGaussian(1 / inverse, sampling_rate)

        # Without sampling, `count` Gaussians of multiplier z sqrt(count) cost as much as one of
        # multiplier z. Sampling permits a larger inverse; a tenth less leaves room for accounting
        # that is not exact. The upper end is beyond any gain of sampling, and costs the bisection,
        # which halves logarithms, only a few steps.
        unsampled = 1 / (
            accounting.gaussian_multiplier(self.epsilon, self.delta) * math.sqrt(count)
        )
        low = 0.9 * unsampled
        high = unsampled * math.exp(30)
        return 1 / calibrate(self, cost, low, high, precision=1e-3)

    def largest_pure(self) -> float:
        """The largest epsilon of a mechanism of which only a pure epsilon is known."""
        if self.infinite:
            return math.inf
        if self.kind == "pure":
            assert self.epsilon is not None
            return self.epsilon
        return calibrate(self, PureDP, _LEAST_PURE, _MOST_PURE)

    def hint(self, kind: str) -> str:
        """Return a budget of another kind, as text for an error, that costs no more than this one.

        From epsilon it is the same epsilon. From rho or mu it is what Gaussian noise within this
        budget satisfies ("approx", "zcdp"), or the largest pure epsilon within this budget
        ("pure"), rounded down to six digits.

        Parameters
        ----------
        kind : {"pure", "approx", "zcdp"}
            "zcdp" is for budgets in Gaussian DP alone.

        Examples
        --------
        >>> Budget.pure(1).hint("approx"), Budget.gdp(1).hint("zcdp"), Budget.zcdp(0.5).hint("pure")
        ('epsilon=1,delta=1e-6', 'rho=0.5', 'epsilon=1.04362')
        """
        if self.epsilon is not None:
            assert kind != "zcdp"
            amount = f"{self.epsilon!r}".removesuffix(".0")
        else:
            amount = _amount_text(self._converted(kind))

        if kind == "zcdp":
            return f"rho={amount}"
        if kind == "approx":
            return f"epsilon={amount},delta={_HINT_DELTA}"
        return f"epsilon={amount}"

    def _converted(self, kind: str) -> float:
        """The amount of another kind that a budget in rho or mu is worth."""
        if self.infinite:
            return math.inf
        if kind == "pure":
            return self.largest_pure()

        noise = Gaussian(self.gaussian())
        if kind == "zcdp":
            return noise.rho
        return accounting.epsilon(noise, float(_HINT_DELTA))


def _check_delta(delta: float) -> None:
    """Refuse a delta that is no probability, or too small for accounting."""
    if not 0 < delta < 1:
        raise BudgetError(f"budget delta={delta} must be between 0 and 1; {_FORMS}")
    if delta < _LEAST_DELTA:
        raise BudgetError(f"budget delta={delta} is outside {_LEAST_DELTA:g} to 1; {_FORMS}")


def _check_amount(name: str, amount: float) -> None:
    """Refuse an epsilon, rho or mu that is not positive, or finite and out of range."""
    if not amount > 0:
        raise BudgetError(f"budget {name}={amount} must be positive; {_FORMS}")
    if not LEAST <= amount <= MOST and not math.isinf(amount):
        raise BudgetError(f"budget {name}={amount} is outside {LEAST:g} to {MOST:g}; {_FORMS}")


def _read_parts(text: str, separator: str, names: tuple[str, ...]) -> dict[str, float]:
    """Read the parts of a budget, such as "epsilon=1"; each has another one of these names."""
    values: dict[str, float] = {}
    for part in text.split(separator):
        name, _, number = part.partition("=")
        name = name.strip()
        value = _read_amount(number.strip())
        if name not in names or name in values or math.isnan(value):
            raise BudgetError(
                f"budget {quoted(text)} cannot be read at {quoted(part.strip())}; {_FORMS}"
            )
        values[name] = value
    return values


def _read_amount(text: str) -> float:
    """Return the number that a text states; nan if it states none."""
    try:
        value = read_number(text)
    except ValueError:
        return math.nan

    # An overflow such as 1e400 is a mistake; only "inf" asks for no protection.
    if math.isinf(value) and "inf" not in text.lower():
        return math.nan
    return value


def _amount_text(amount: float) -> str:
    """An amount rounded down to six digits; "..." if no budget may state it."""
    if math.isinf(amount):
        return "inf"
    if not LEAST <= amount <= MOST:
        return "..."
    return rounded_down(amount)


def _exponential_under(epsilon: float, unit: Unit) -> Event:
    """The cost under a unit of exponential mechanisms, one on each of several disjoint classes."""
    if unit is Unit.CHANGE_LABEL:
        # the record leaves one class and enters another
        return 2 * Exponential(epsilon)
    return Exponential(_ROOT_RHO_FACTORS[unit] * epsilon)


def calibrate(
    budget: Budget,
    cost: Callable[[float], Event],
    low: float,
    high: float,
    precision: float = 1e-12,
) -> float:
    """Largest amount whose privacy cost the budget permits: the one bisection behind every
    calibrated parameter.

    Parameters
    ----------
    budget : Budget
    cost : callable
        From an amount, such as an epsilon or the inverse of a noise multiplier, to its event under
        the unit in which the budget is read. The privacy cost must grow with the amount.
    low, high : float
        Positive ends of the range to search.
    precision : float, default=1e-12
        Relative: the result is at most this much below the largest amount.

    Raises
    ------
    BudgetError
        If even `cost(low)` exceeds the budget.

    Examples
    --------
    >>> round(calibrate(Budget.zcdp(0.5), Exponential, 1e-3, 1e3), 9)
    2.0
    """
    if not budget.permits(cost(low)):
        fault = f"budget {budget} is too small: {cost(low).describe()} costs more"
        raise BudgetError(f"{fault}; use fewer steps, or another method")
    if budget.permits(cost(high)):
        return high

    # Bisect the logarithm. The budget always permits `low` and never `high`.
    while high > low * (1 + precision):
        # the geometric mean, by roots since the product of the ends could overflow
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            # no float lies between them
            break
        if budget.permits(cost(middle)):
            low = middle
        else:
            high = middle
    return low
