"""The results of a sweep: in groups, in order, with a label for each learner and the cost of each
guarantee.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tacit.errors import InputError
from tacit.experiments.results import Result
from tacit.learners.methods import METHODS, method_called
from tacit.privacy.decimals import rounded_up
from tacit.report.words import unit_words

PLACE = ("data", "encoder", "unit")
NO_PRIVACY = "no privacy"

# tuning of a search outside the guarantee
UNPAID = "unpaid"
DISTINGUISHING = ("method", "parameters", "tuning", "public", "public_rows", "unit", "delta")
"""Fields that join a learner's label where the learner has more than one value of them."""

# The training class sizes, in the words of guarantees that do not cover them. Labels say so, since
# the learner was told what others must estimate.
REALISED_COUNTS = "class counts (realised)"


def natural(value: Any) -> tuple[Any, ...]:
    """Return a sort key that compares numbers by value, also those inside text; None comes
    first.
    """
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)

    # Splitting at a group gives text, number, text, number, ..., text.
    parts: list[str | float] = [*re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", str(value))]
    parts[1::2] = map(float, parts[1::2])
    return (2, *parts)


def grouped(
    results: Iterable[Result], *facts: str | Callable[[Result], Any]
) -> list[tuple[tuple[Any, ...], list[Result]]]:
    """Return results by the values of facts, which are fields or functions, in natural order."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        values = tuple(_fact(result, fact) for fact in facts)
        groups.setdefault(values, []).append(result)

    def order(item: tuple[tuple[Any, ...], list[Result]]) -> list[tuple[Any, ...]]:
        values, _ = item
        return [natural(value) for value in values]

    return sorted(groups.items(), key=order)


def _fact(result: Result, fact: str | Callable[[Result], Any]) -> Any:
    if isinstance(fact, str):
        return getattr(result, fact)
    return fact(result)


def number(value: Any) -> float | None:
    """Return the value, if it is a finite number."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def loaded(text: str | None) -> dict[str, Any]:
    """Return a JSON object; an empty one for a text that is none."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return value


def parameters_of(result: Result) -> dict[str, Any]:
    """Return the learner's parameters, with values that can be compared and hashed."""
    parameters = loaded(result.parameters)
    for name, value in parameters.items():
        if not isinstance(value, int | float | str):
            parameters[name] = json.dumps(value)
    return parameters


def unprotected(result: Result) -> str:
    """The quantities that the guarantee does not cover."""
    return ", ".join(map(str, loaded(result.guarantee).get("unprotected", ())))


@dataclass(frozen=True)
class SweepResults:
    """The results of a sweep, and a label for the learner of each, by the result's key."""

    done: tuple[Result, ...]
    failed: tuple[Result, ...]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, results: Sequence[Result]) -> SweepResults:
        """Separate done from failed, and label the learners; InputError if no cell was done."""
        done = tuple(result for result in results if result.status == "done")
        failed = tuple(result for result in results if result.status != "done")
        if not done:
            first_error = f"; the first error is: {failed[0].error}" if failed else ""
            fault = f"results hold {len(results)} cells but none that finished{first_error}"
            raise InputError(f"{fault}; fix the plan and sweep again, or choose other cells")
        return cls(done, failed, labels(done))

    def label(self, result: Result) -> str:
        """Return the name by which figures call the result's learner."""
        return self.labels[result.key]

    @property
    def series(self) -> tuple[str, ...]:
        """All labels in order, so that a learner looks the same in every figure."""
        return tuple(sorted(set(self.labels.values()), key=natural))


def labels(results: Iterable[Result], without: str = "") -> dict[str, str]:
    """Return a label for the learner of each result: its name, and the fields that tell its
    results apart, except the field `without`.

    Where the learner's name is not that of its method, the method follows in brackets as one types
    it. The use of class names, counts that are unprotected, and unpaid searches are always stated.
    """
    texts = {}
    for _, group in grouped(results, "learner"):
        fields = []
        for name in DISTINGUISHING:
            values = {getattr(result, name) for result in group}
            if name != without and len(values) > 1:
                fields.append(name)

        for result in group:
            words = [_learner_name(result, method_follows="method" in fields)]
            words += [_field_in_words(name, result) for name in fields]
            if result.names:
                words.append("class names")
            if rho_of_fits(result):
                words.append("search unpaid")
            if REALISED_COUNTS in unprotected(result):
                words.append("counts unprotected")
            texts[result.key] = ", ".join(words)
    return texts


def _learner_name(result: Result, *, method_follows: bool) -> str:
    """Return the learner's name, with its method in brackets where nothing else tells it."""
    is_method = method_called(result.learner) == result.method
    if method_follows or result.method not in METHODS or is_method:
        return result.learner
    return f"{result.learner} ({result.method})"


def _field_in_words(name: str, result: Result) -> str:
    value = getattr(result, name)
    if name == "parameters":
        words = [f"{key}={text}" for key, text in parameters_of(result).items()]
        return " ".join(words) or "default parameters"
    if name == "public_rows":
        return "all public rows" if value is None else f"{value} public rows"
    if name in ("tuning", "delta"):
        return f"{name}={value}"
    if name == "unit":
        return unit_words(value)

    # the public set, which may be none, or the method, which always has a name
    return "no public set" if value is None else str(value)


def currency(result: Result) -> str | None:
    """Return the x axis of the guarantee: rho, or epsilon where rho is not finite; None if neither
    is above 0.
    """
    # a cost of 0 does not count, as one that is missing or infinite does not
    if number(result.rho) or rho_of_fits(result):
        return "rho"
    if not number(result.epsilon):
        return None
    if result.delta is None:
        return "epsilon"
    return f"epsilon at delta={rounded_up(result.delta)}"


def cost(result: Result) -> float:
    """The guarantee's cost in its `currency`; inf where it has none.

    The results of an unpaid search are placed at the rho of each of its fits.
    """
    return number(result.rho) or rho_of_fits(result) or number(result.epsilon) or math.inf


def rho_of_fits(result: Result) -> float | None:
    """Return the rho of each fit of an unpaid search, whose guarantee has no bound; None for any
    other result.
    """
    if result.tuning != UNPAID or result.rho != math.inf:
        return None
    return _planned_rho(result.budget)


def median_cost(results: Iterable[Result]) -> float:
    """The cost of a budget whose results spent slightly different amounts over seeds."""
    return median(cost(result) for result in results)


def axis_cost(results: Iterable[Result]) -> float:
    """The place of a budget on the axis of its currency.

    Guarantees with a rho are drawn at the papers' epsilon e, where rho = e²/2.
    """
    results = list(results)
    if currency(results[0]) == "rho":
        return math.sqrt(2 * median_cost(results))
    return median_cost(results)


def not_private(result: Result) -> bool:
    """Return true if nothing is protected."""
    return currency(result) is None and math.inf in (result.rho, result.epsilon)


def without_cost(results: Iterable[Result]) -> int:
    """Count private results without a cost above 0, which have no place on an axis of costs."""
    return sum(currency(result) is None and not not_private(result) for result in results)


def budget_of(result: Result) -> str:
    """Return the budget as planned; all infinite budgets have one name."""
    if not_private(result):
        return NO_PRIVACY
    return result.budget


def budget_words(budget: str) -> str:
    """Return a budget as titles name it: a rho by the papers' epsilon, as axes do, as in "e = 0.5";
    any other as planned.
    """
    rho = _planned_rho(budget)
    if rho is None:
        return budget
    return f"e = {rounded_up(math.sqrt(2 * rho), 3)}"


def _planned_rho(budget: str) -> float | None:
    """Return the rho of a budget such as "rho=0.5"; None for any other."""
    match = re.fullmatch(r"rho=([0-9.e+-]+)", budget)
    return None if match is None else number(float(match[1]))


def budgets(results: Iterable[Result]) -> list[tuple[str, list[Result]]]:
    """Return results by budget: the smallest cost first, no privacy last."""

    def order(pair: tuple[str, list[Result]]) -> tuple[str, float]:
        _, group = pair
        # "~" comes after the name of every currency.
        return currency(group[0]) or "~", median_cost(group)

    by_budget = [(name, group) for (name,), group in grouped(results, budget_of)]
    return sorted(by_budget, key=order)
