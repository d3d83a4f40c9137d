"""What a document says about privacy, as functions of the recorded guarantee alone.

`_items` lists every statement once: `Release.of` writes them, and `Release.verify` compares a file
with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from tacit.errors import ReleaseError
from tacit.privacy import accounting
from tacit.privacy.events import Event
from tacit.privacy.guarantee import (
    DELTAS,
    FALSE_POSITIVE_RATES,
    Guarantee,
    implied_units,
    rounded_up,
)
from tacit.privacy.older import OlderNumbers, older_words
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE, in_words, most_expensive
from tacit.releases.schema import (
    CLASS_SIZES,
    NOT_FOR_RELEASE,
    VERSION,
    Accounting,
    Document,
    EpsilonAtDelta,
    Model,
    Number,
    OlderAccounting,
    OlderProfile,
    Parameters,
    Profile,
    ProfileOf4,
    Utility,
)

OLDER_DELTAS = (1e-6, 1e-9)  # of documents of version 3
ATTAINED, BOUNDS = "those of the best attack", "at most so large"
TOLERANCE = 1e-6
EXCESS = 1e-4  # by which a stated bound may be above the true one, since bounds have become tighter
MOST_WORK = 2e6  # microseconds, about, to compute the numbers of a release

_BOUNDS = {
    "record": (
        "one record; a person with several records is protected for only one of them at a time"
    ),
    "person": "one person with all their records, however many",
}
_OLDER_BOUNDS = _BOUNDS | {
    "record": "one record; who has several records is protected for one of them at a time"
}


@dataclass(frozen=True)
class Computation:
    """A number that is not computed yet; it takes the epsilon of each event at each delta."""

    function: Callable[[], float | None]
    events: Sequence[Event] = ()
    deltas: Sequence[float] = ()

    def number(self) -> Number:
        """The number, "inf" where no bound holds."""
        value = self.function()
        return "inf" if value is None or math.isinf(value) else float(value)


def stamp(guarantee: Guarantee, noise: str) -> str | None:
    """The stamp of what may not be published: seeded noise, or no bound at all."""
    return NOT_FOR_RELEASE if noise == "research" or not guarantee.bounded else None


def privacy_items(guarantee: Guarantee, version: int = VERSION) -> dict[str, Model]:
    """Items 2 and 4 to 7."""
    with np.errstate(all="ignore"):
        items = _computed(_items(guarantee, version))
    kinds: dict[str, Any] = {name: Document.model_fields[name].annotation for name in items}
    return {
        name: TypeAdapter(kinds[name]).validate_python(item, strict=False)
        for name, item in items.items()
    }


def accounting_item(
    guarantee: Guarantee, parameters: Parameters, profile: OlderProfile, noise: str
) -> Accounting | OlderAccounting:
    """Item 9; its sentences repeat the numbers of items 5 and 6."""
    item = OlderAccounting(
        method=(
            "the smallest of the valid bounds: sum of pure epsilons, exact Gaussian curve, Renyi"
            " divergence, privacy loss distribution"
        ),
        composition=guarantee.event.describe(),
        assumptions=_assumptions(guarantee, noise),
        statement=formal_statement(guarantee.unit, parameters, noise),
    )
    if not isinstance(profile, ProfileOf4):
        return item
    said = _in_words(guarantee.unit, parameters, profile, noise)
    return Accounting(**dict(item) | {"composition": _composition(guarantee), "in_words": said})


def _composition(guarantee: Guarantee) -> str:
    """What was added up: the events that count for everybody, then those of each group."""
    shared = [f"for every record {guarantee.event.describe()}"] if guarantee.event.counted() else []
    of_groups = [
        f"for records of group {name} {event.describe()}" for name, event in guarantee.groups
    ]
    return "; ".join([*shared, *of_groups]) if of_groups else guarantee.event.describe()


def _in_words(unit: Unit, parameters: Parameters, profile: ProfileOf4, noise: str) -> str:
    """What the numbers mean for one record or person, and where they stand."""
    groups = {group.name: _decisive(group.epsilons) for group in parameters.groups}
    pure = float(parameters.pure_epsilon)
    decisive = _decisive(parameters.epsilons)
    if isinstance(profile, Profile):
        attained = profile.rates_are == ATTAINED
        said = in_words(
            unit, decisive, pure, profile.advantage, most_expensive(groups), attained=attained
        )
    else:
        said = older_words(unit, decisive, pure, profile.advantage, groups)
    premise = "Were its seeded noise secret and exact: " if noise == "research" else ""
    return premise + said


def _decisive(epsilons: Sequence[EpsilonAtDelta]) -> float:
    return float(next((point.epsilon for point in epsilons if point.delta == DECISIVE), math.inf))


def formal_statement(unit: Unit, parameters: Parameters, noise: str) -> str:
    """The guarantee in one formal sentence, its numbers rounded up."""
    pairs = [(parameters.pure_epsilon, 0.0)] + [
        (point.epsilon, point.delta) for point in parameters.epsilons
    ]
    if all(epsilon == "inf" for epsilon, _ in pairs):
        return "No bound holds on what the release shows about anybody: it is not private."
    stated = ", ".join(
        f"({rounded_up(epsilon)}, {delta:g})" for epsilon, delta in pairs if epsilon != "inf"
    )
    premise = "Were its seeded noise secret and exact: for" if noise == "research" else "For"
    return (
        f"{premise} any two data sets D and D' that differ in whether {unit.sentence}, and any set"
        " S of releases, P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta for each (epsilon,"
        f" delta) of {stated}"
        + ("." if parameters.rho == "inf" else f", and M is {rounded_up(parameters.rho)}-zCDP.")
    )


def check_work(guarantee: Guarantee, version: int = VERSION) -> None:
    """Refuse events whose numbers would take too long to compute."""
    if work(guarantee, version) > MOST_WORK:
        seconds = MOST_WORK / 1e6
        raise ReleaseError(
            f"its events would take more than about {seconds:g} s to account; use fewer or coarser"
            " ones"
        )


def work(guarantee: Guarantee, version: int = VERSION) -> float:
    """About how many microseconds it takes to compute every stated number; stops beyond
    MOST_WORK.
    """
    items, total = _items(guarantee, version), 0.0
    numbers = [value for _, _, value in _leaves(items, items, "") if isinstance(value, Computation)]
    needed = dict.fromkeys(
        (event, delta) for one in numbers for event in one.events for delta in one.deltas
    )
    with np.errstate(all="ignore"):
        for event, delta in needed:
            total += accounting.work(event, delta)
            if total > MOST_WORK:
                break
    return total


def first_untrue(document: Document, guarantee: Guarantee) -> str | None:
    """The first statement about privacy that the recorded events do not bear out; None if there is
    none.

    Statements that take no time are compared first, so that a forged file is mostly refused before
    the others.
    """
    noise, utility = document.mechanisms.noise, document.utility
    if stamp(guarantee, noise) != document.stamp:
        return f"stamp {document.stamp!r} does not agree with {noise} noise"
    minority = isinstance(utility, Utility) and utility.minority_accuracy is not None
    if minority and CLASS_SIZES not in guarantee.unprotected:
        return f"a minority accuracy is stated and {CLASS_SIZES!r} is not listed as unprotected"
    items = _items(guarantee, document.version)
    stated = {name: getattr(document, name).model_dump() for name in items}
    accounts = accounting_item(guarantee, document.parameters, document.profile, noise).model_dump()
    with np.errstate(all="ignore"):
        pairs = sorted(_leaves(stated, items, ""), key=lambda leaf: _epsilons_needed(leaf[2]))
        for place, value, expected in (
            *pairs,
            *_leaves(document.accounting.model_dump(), accounts, ".accounting"),
        ):
            true = _computed(expected)
            if isinstance(value, float) and isinstance(true, float):
                excess = EXCESS if isinstance(expected, Computation) else TOLERANCE
                if not true * (1 - TOLERANCE) - 1e-12 <= value <= true * (1 + excess) + 1e-12:
                    return f"{place[1:]} is stated as {value:.10g} and the events give {true:.10g}"
            elif value != true:
                return f"{place[1:]} is stated as {value!r:.80} and the events give {true!r:.80}"
    return None


def _epsilons_needed(expected: Any) -> int:
    return 1 + len(expected.deltas) if isinstance(expected, Computation) else 0


def _leaves(stated: Any, expected: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Where each value is, what is stated, and what should be; lists of different lengths by their
    lengths.
    """
    if isinstance(expected, dict):
        for key in expected:
            yield from _leaves(stated[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, tuple) and len(stated) == len(expected):
        for i, (one, other) in enumerate(zip(stated, expected, strict=True)):
            yield from _leaves(one, other, f"{place}[{i}]")
    elif isinstance(expected, tuple):
        yield f"{place}.length", len(stated), len(expected)
    else:
        yield place, stated, expected


def _computed(value: Any) -> Any:
    """The same statements with every number computed."""
    if isinstance(value, dict):
        return {name: _computed(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_computed, value))
    return value.number() if isinstance(value, Computation) else value


def _items(guarantee: Guarantee, version: int = VERSION) -> dict[str, Any]:
    """Items 2 and 4 to 7 as plain values, with their numbers not computed yet."""
    deltas, bounds = (DELTAS, _BOUNDS) if version >= 4 else (OLDER_DELTAS, _OLDER_BOUNDS)
    implied = [guarantee.to(unit) for unit in implied_units(guarantee.unit)]
    groups = tuple(
        {"name": name} | _numbers(guarantee, version, deltas, name) for name, _ in guarantee.groups
    )
    return {
        "variant": _variant(guarantee),
        "privacy_unit": {
            "adjacency": guarantee.unit.value,
            "hides": f"whether {guarantee.unit.sentence}",
            "contribution_bound": bounds[guarantee.unit.entity],
        },
        "parameters": (
            _numbers(guarantee, version, deltas)
            | {
                "rho": _rho(guarantee),
                "conversions": tuple(
                    _numbers(other, version, deltas)
                    | {
                        "unit": other.unit.value,
                        "rho": _rho(other),
                    }
                    for other in implied
                ),
                "groups": groups,
                "group_budgets": (
                    "not stated whether they are public"
                    if groups
                    else f"one budget for all {guarantee.unit.entity}s"
                ),
            }
        ),
        "profile": _profile(guarantee, version),
        "accesses": {
            "covered": guarantee.scope,
            "outside": (
                "anything fitted or tuned on private rows before it, and any figure computed from"
                " them after it"
            ),
        },
    }


def _of_version(guarantee: Guarantee, version: int) -> Guarantee | OlderNumbers:
    """Return the object whose methods compute the numbers of a document of this version."""
    return guarantee if version >= 5 else OlderNumbers(guarantee, version)


def _profile(guarantee: Guarantee, version: int) -> dict[str, Any]:
    """Item 6: what attacks reach."""
    numbers = _of_version(guarantee, version)
    totals = guarantee.totals()

    rates = []
    for false_positive_rate in FALSE_POSITIVE_RATES:
        deltas = accounting.attack_deltas(false_positive_rate)
        attack = Computation(partial(numbers.attack_rate, false_positive_rate), totals, deltas)
        rates.append({"false_positive_rate": false_positive_rate, "true_positive_rate": attack})
    profile: dict[str, Any] = {
        "mu": Computation(lambda: guarantee.mu),
        "attack_rates": tuple(rates),
    }

    if version >= 4:
        of_curve = [
            delta for total in totals for delta in accounting.advantage_deltas(total.base())
        ]
        profile["advantage"] = Computation(lambda: numbers.advantage, totals, of_curve)
    if version >= 5:
        profile["rates_are"] = ATTAINED if guarantee.attained else BOUNDS
    return profile


def _numbers(
    guarantee: Guarantee, version: int, deltas: Sequence[float], group: str | None = None
) -> dict[str, Any]:
    """What a unit or a group pays."""
    totals = guarantee.totals(group)
    epsilon_at = _of_version(guarantee, version).epsilon
    epsilons = {
        delta: Computation(partial(epsilon_at, delta, group), totals, (delta,)) for delta in deltas
    }
    return {
        "pure_epsilon": Computation(partial(guarantee.epsilon, 0.0, group)),
        "epsilons": tuple(
            {"epsilon": epsilon, "delta": delta} for delta, epsilon in epsilons.items()
        ),
    }


def _rho(guarantee: Guarantee) -> Computation:
    return Computation(lambda: guarantee.rho)


def _variant(guarantee: Guarantee) -> dict[str, Any]:
    leaked = any(quantity.startswith("class list") for quantity in guarantee.unprotected)
    declared = () if leaked else ("class list",)
    variant = "none"
    if guarantee.bounded:
        variant = (
            "approximate"
            if guarantee.rho is None
            else "pure"
            if math.isfinite(guarantee.epsilon())
            else "zCDP"
        )
    return {
        "variant": variant,
        "data_domain": (
            "one or more labelled rows of finite numbers, with labels from the class list"
        ),
        "unprotected_quantities": tuple(
            dict.fromkeys(guarantee.unprotected + guarantee.unit.public)
        ),
        "public_arguments": (*declared, "number of columns", "parameters of the learner"),
    }


def _assumptions(guarantee: Guarantee, noise: str) -> tuple[str, ...]:
    if noise == "research":
        return (
            "noise is secret and exact: does not hold, it is drawn in floating point from a seed",
        )
    held = (
        "noise is secret and exact: holds, it is drawn on whole numbers from the operating system's"
        " randomness"
    )
    parts = [part for total in guarantee.totals() for part, _ in total.contained()]
    return tuple(dict.fromkeys((held, *(part.assumption for part in parts if part.assumption))))
