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
from tacit.report.words import unit_words

PLACE = ("data", "encoder", "unit")
NO_PRIVACY = "no privacy"
DISTINGUISHING = ("method", "parameters", "tuning", "public", "public_rows", "unit", "delta")
"""Fields that join a learner's label where the learner has more than one value of them."""
REALISED = "class counts (realised)"


def natural(value: Any) -> tuple[Any, ...]:
    """Sort key that compares numbers by value, also those inside text; None comes first."""
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", str(value))
    return (2, *(float(part) if place % 2 else part for place, part in enumerate(parts)))


def grouped(
    results: Iterable[Result], *of: str | Callable[[Result], Any]
) -> list[tuple[tuple[Any, ...], list[Result]]]:
    """Results by the values of fields or functions, in natural order."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for one in results:
        key = tuple(getattr(one, item) if isinstance(item, str) else item(one) for item in of)
        groups.setdefault(key, []).append(one)
    return sorted(groups.items(), key=lambda group: [natural(value) for value in group[0]])


def number(value: Any) -> float | None:
    """The value, if it is a finite number."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def loaded(text: str | None) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def parameters_of(result: Result) -> dict[str, Any]:
    """The learner's parameters, with values that can be compared and hashed."""
    return {
        name: value if isinstance(value, int | float | str) else json.dumps(value)
        for name, value in loaded(result.parameters).items()
    }


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
        done = tuple(one for one in results if one.status == "done")
        failed = tuple(one for one in results if one.status != "done")
        if not done:
            first = f"; the first error is: {failed[0].error}" if failed else ""
            fault = f"results hold {len(results)} cells but none that finished{first}"
            raise InputError(f"{fault}; fix the plan and sweep again, or choose other cells")
        return cls(done, failed, labels(done))

    def label(self, result: Result) -> str:
        """What figures call the result's learner."""
        return self.labels[result.key]

    @property
    def series(self) -> tuple[str, ...]:
        """All labels in order, so that a learner looks the same in every figure."""
        return tuple(sorted(set(self.labels.values()), key=natural))


def labels(results: Iterable[Result], without: str = "") -> dict[str, str]:
    """A label for the learner of each result: its name, and fields that tell its results apart,
    `without` one.

    The method as one types it follows in brackets where the learner's name is another.

    Whether class names were used, or counts are unprotected, is always said.
    """
    texts = {}
    for _, group in grouped(results, "learner"):
        fields = [
            name
            for name in DISTINGUISHING
            if name != without and len({getattr(one, name) for one in group}) > 1
        ]
        for one in group:
            names = ["class names"] if one.names else []
            counts = ["counts unprotected"] if REALISED in unprotected(one) else []
            words = [_in_words(name, one) for name in fields]
            texts[one.key] = ", ".join([_typed(one, "method" in fields), *words, *names, *counts])
    return texts


def _typed(result: Result, said: bool) -> str:
    known = said or result.method not in METHODS or method_called(result.learner) == result.method
    return result.learner if known else f"{result.learner} ({result.method})"


def _in_words(name: str, result: Result) -> str:
    value = getattr(result, name)
    if name == "parameters":
        return (
            " ".join(f"{key}={text}" for key, text in parameters_of(result).items())
            or "default parameters"
        )
    if name == "public_rows":
        return "all public rows" if value is None else f"{value} public rows"
    if name in ("tuning", "delta"):
        return f"{name}={value}"
    if name == "unit":
        return unit_words(value)
    return "no public set" if value is None else str(value)


def currency(result: Result) -> str | None:
    """The x axis of the guarantee: rho, or epsilon where rho is not finite; None if neither is
    above 0.
    """
    if number(result.rho):
        return "rho"
    if number(result.epsilon):
        return "epsilon" if result.delta is None else f"epsilon at delta={result.delta:g}"
    return None


def cost(result: Result) -> float:
    """The guarantee's cost in its `currency`; inf where it has none."""
    return number(result.rho) or number(result.epsilon) or math.inf


def median_cost(results: Iterable[Result]) -> float:
    """The cost of a budget whose results spent slightly different amounts over seeds."""
    return median(cost(one) for one in results)


def not_private(result: Result) -> bool:
    """Whether nothing is protected."""
    return currency(result) is None and math.inf in (result.rho, result.epsilon)


def without_cost(results: Iterable[Result]) -> int:
    """How many private results state no cost above 0, and so have no place on an axis of costs."""
    return sum(currency(one) is None and not not_private(one) for one in results)


def budget_of(result: Result) -> str:
    """The budget as planned; all infinite budgets have one name."""
    return NO_PRIVACY if not_private(result) else result.budget


def budgets(results: Iterable[Result]) -> list[tuple[str, list[Result]]]:
    """Results by budget: the smallest cost first, no privacy last."""
    groups = [(name, group) for (name,), group in grouped(results, budget_of)]
    return sorted(groups, key=lambda pair: (currency(pair[1][0]) or "~", median_cost(pair[1])))
