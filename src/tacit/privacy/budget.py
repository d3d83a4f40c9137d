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

LEAST, MOST = 1e-9, 1e9  # of a finite epsilon, rho or mu
_FORMS = (
    "write epsilon=1 (pure), rho=0.5 (zCDP), epsilon=1,delta=1e-6 (approximate), mu=1 (Gaussian DP)"
    " or tpr=0.1@fpr=0.01 (the most that an attack may reach)"
)
_HINT_DELTA = "1e-6"  # of the approximate budgets that errors propose
_LEAST_PURE, _MOST_PURE = 1e-10, 1e6  # of a mechanism of which only a pure epsilon is known

# If a budget is split over several events, noise is larger by this factor, so that the costs of the
# events, added up
# in floats, stay within the budget. The factor exceeds the tolerance of the solver that finds
# epsilon, 1e-12.
_ROUNDED_UP = 1 + 1e-11

# By which factor the cost under a unit exceeds that under add/remove of a record or person, for one
# event on each of
# several classes: in sqrt(rho) (Gaussian sums, and selections under zCDP), and in pure epsilon.
# A person may be in several classes, so a change of their labels costs as much as another person.
_ROOT_RHO = {
    Unit.ADD_REMOVE: 1.0,
    Unit.REPLACE: 2.0,
    Unit.CHANGE_LABEL: math.sqrt(2),
    Unit.ADD_REMOVE_PERSON: 1.0,
    Unit.REPLACE_PERSON: 2.0,
    Unit.CHANGE_LABELS_OF_PERSON: 2.0,
}
_PURE = _ROOT_RHO | {Unit.CHANGE_LABEL: 2.0}


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
        parts = self._parts()
        if set(parts) not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}, {"mu"}):
            raise BudgetError(
                f"budget with {', '.join(parts) or 'nothing'} is not one of the four kinds;"
                f" {_FORMS}"
            )
        for name, value in parts.items():
            if not value > 0 or (name == "delta" and value >= 1):
                rule = "between 0 and 1" if name == "delta" else "positive"
                raise BudgetError(f"budget {name}={value} must be {rule}; {_FORMS}")
            low, high = (1e-30, 1) if name == "delta" else (LEAST, MOST)
            if not low <= value <= high and not math.isinf(value):
                raise BudgetError(f"budget {name}={value} is outside {low:g} to {high:g}; {_FORMS}")

    def _parts(self) -> dict[str, float]:
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
        tpr, fpr = float(true_positive_rate), float(false_positive_rate)
        if not 0 < fpr < tpr < 1:
            rule = "must have 0 < fpr < tpr < 1, since a blind guess reaches tpr = fpr"
            raise BudgetError(f"budget tpr={tpr:g}@fpr={fpr:g} {rule}; {_FORMS}")
        quantile = NormalDist().inv_cdf
        return cls(mu=(quantile(tpr) - quantile(fpr)) * (1 - 1e-12))

    @classmethod
    def parse(cls, text: str | Budget) -> Budget:
        """Read a budget from text such as "epsilon=1", "rho=0.5", "epsilon=1,delta=1e-6" or
        "tpr=0.1@fpr=0.01".
        """
        if isinstance(text, Budget):
            return text
        if text in ("inf", math.inf):
            raise BudgetError(
                f"budget {text} does not name a kind; write rho=inf, which asks for no protection"
            )
        if not isinstance(text, str):
            raise BudgetError(f"budget={quoted(text)} does not say of which kind it is; {_FORMS}")
        values: dict[str, float] = {}
        attack = "@" in text
        for item in text.split("@" if attack else ","):
            name, _, number = (part.strip() for part in item.partition("="))
            try:
                value = read_number(number)
            except ValueError:
                value = math.nan
            if math.isinf(value) and "inf" not in number.lower():
                # an overflow such as 1e400 is a mistake; only "inf" asks for no protection
                value = math.nan
            known = ("tpr", "fpr") if attack else ("epsilon", "delta", "rho", "mu")
            if name not in known or name in values or math.isnan(value):
                raise BudgetError(
                    f"budget {quoted(text)} cannot be read at {quoted(item.strip())}; {_FORMS}"
                )
            values[name] = value
        return cls.attack(values["tpr"], values["fpr"]) if attack else cls(**values)

    @property
    def kind(self) -> str:
        """One of "pure", "zcdp", "approx", "gdp"."""
        if self.mu is not None:
            return "gdp"
        if self.rho is not None:
            return "zcdp"
        return "pure" if self.delta is None else "approx"

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
        assert self.epsilon is not None
        return accounting.epsilon(event, self.delta or 0.0) <= self.epsilon

    def gaussian(self, unit: Unit = Unit.ADD_REMOVE, *, split: bool = False) -> float:
        """Noise multiplier of a Gaussian event, once on each of several disjoint classes, that
        spends the budget.

        Parameters
        ----------
        unit : Unit
            The unit in which the budget is read.
        split : bool, default=False
            Whether the budget is split over several such events, with sum 1/z_i^2 = 1/z^2.

        Raises
        ------
        BudgetError
            If the budget is pure.
        """
        if self.infinite:
            return 0.0
        if self.rho is not None:
            z = 1 / math.sqrt(2 * self.rho)
            while Gaussian(z).rho > self.rho:
                z = math.nextafter(z, math.inf)
        elif self.mu is not None:
            z = 1 / self.mu
            while Gaussian(z).mu > self.mu:
                z = math.nextafter(z, math.inf)
        elif self.delta is not None:
            assert self.epsilon is not None
            z = accounting.gaussian_multiplier(self.epsilon, self.delta)
        else:
            assert self.epsilon is not None
            remedy = (
                f"pass {self.hint('approx')} (the same epsilon, but approximate: a weaker"
                " guarantee)"
            )
            raise BudgetError(
                f"budget {self} is pure and Gaussian noise has no pure epsilon; {remedy}"
            )
        return z * _ROOT_RHO[unit] * (_ROUNDED_UP if split or unit is Unit.CHANGE_LABEL else 1.0)

    def exponential(self, unit: Unit = Unit.ADD_REMOVE) -> float:
        """Epsilon of an exponential mechanism, once on each of several disjoint classes, that
        spends the budget.
        """
        if self.infinite:
            return math.inf
        if self.rho is not None:
            epsilon = math.sqrt(8 * self.rho)
            while Exponential(epsilon).rho > self.rho:
                epsilon = math.nextafter(epsilon, 0)
            return epsilon / _ROOT_RHO[unit] / (_ROUNDED_UP if unit is Unit.CHANGE_LABEL else 1.0)
        if self.mu is not None:
            return calibrate(
                self, lambda epsilon: _exponential_under(epsilon, unit), _LEAST_PURE, _MOST_PURE
            )
        assert self.epsilon is not None
        return self.epsilon / _PURE[unit]

    def laplace(self, unit: Unit = Unit.ADD_REMOVE) -> float:
        """Noise multiplier of a Laplace event, once on each of several disjoint classes, that
        spends a pure budget.
        """
        if self.infinite:
            return 0.0
        if self.kind != "pure" or self.epsilon is None:
            remedy = f"pass {self.hint('pure')} (pure), or use Gaussian noise"
            raise BudgetError(f"budget {self} is not pure, as Laplace noise needs; {remedy}")
        multiplier = _PURE[unit] / self.epsilon
        while Fraction(multiplier) * Fraction(self.epsilon) < _PURE[unit]:
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
            return count * SampledGaussian(1 / inverse, sampling_rate)

        unsampled = 1 / (
            accounting.gaussian_multiplier(self.epsilon, self.delta) * math.sqrt(count)
        )
        return 1 / calibrate(self, cost, 0.9 * unsampled, unsampled * math.exp(30), precision=1e-3)

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
            shown = f"{self.epsilon!r}".removesuffix(".0")
        else:
            shown = _as_text(self._converted(kind))
        name = "rho" if kind == "zcdp" else "epsilon"
        delta = f",delta={_HINT_DELTA}" if kind == "approx" else ""
        return f"{name}={shown}{delta}"

    def _converted(self, kind: str) -> float:
        """The amount of another kind that a budget in rho or mu is worth."""
        if self.infinite:
            return math.inf
        if kind == "pure":
            return self.largest_pure()
        noise = Gaussian(self.gaussian())
        return noise.rho if kind == "zcdp" else accounting.epsilon(noise, float(_HINT_DELTA))


def _as_text(amount: float) -> str:
    """An amount rounded down to six digits; "..." if no budget may state it."""
    if math.isinf(amount):
        return "inf"
    if not LEAST <= amount <= MOST:
        return "..."
    return rounded_down(amount)


def _exponential_under(epsilon: float, unit: Unit) -> Event:
    """The cost under a unit of exponential mechanisms, one on each of several disjoint classes."""
    return (
        2 * Exponential(epsilon)
        if unit is Unit.CHANGE_LABEL
        else Exponential(_ROOT_RHO[unit] * epsilon)
    )


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
    while high > low * (1 + precision):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if budget.permits(cost(middle)) else (low, middle)
    return low
