"""Statements of a document about privacy, as functions of the recorded guarantee alone.

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

from tacit.errors import ReleaseError, excerpt
from tacit.privacy import accounting, attack_rates
from tacit.privacy.events import Event
from tacit.privacy.events.base import CAUTIOUS, Rounding
from tacit.privacy.guarantee import (
    DELTAS,
    FALSE_POSITIVE_RATES,
    Guarantee,
    implied_units,
    rounded_up,
)
from tacit.privacy.older import TO_NEAREST, OlderNumbers, older_words
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE, in_words, most_expensive
from tacit.releases.audited import AuditResult, audit_fault
from tacit.releases.combination import other_noise, untrue_combination
from tacit.releases.fields import EpsilonAtDelta, Model, Number
from tacit.releases.measured import CombinedUtility, PaidUtility, PredictionSets
from tacit.releases.reading import read_guarantee
from tacit.releases.schema import (
    CLASS_SIZES,
    LABEL_COUNTS,
    NOT_FOR_RELEASE,
    VERSION,
    Accounting,
    CombinedPattern,
    Document,
    LabelSetUtility,
    LearnerMechanisms,
    OlderAccounting,
    OlderProfile,
    Parameters,
    Profile,
    ProfileOf4,
    Utility,
    declared_least_records,
    sets_of,
    stated_least_records,
)

# The deltas of documents of version 3.
OLDER_DELTAS = (1e-6, 1e-9)

# The version since which no composition reads as a smaller price than is paid.
CAUTIOUS_SINCE = 9

# `rates_are` of item 6: whether some attack reaches the rates
ATTAINED = "those of the best attack"
BOUNDS = "at most so large"

# Relative error of a stated number: other processors and libraries round otherwise. A bound may
# also be above the true one by EXCESS, since bounds have become tighter. ROUNDING is absolute, for
# numbers at 0.
TOLERANCE = 1e-6
EXCESS = 1e-4
ROUNDING = 1e-12

# Most microseconds, about, in which the numbers of a release may be computed.
MAX_WORK = 2e6

# What cards say of exact noise: of that of OpenDP, and of that of tacit.
_OF_DISCRETE_NOISE = (
    "noise is secret and exact: holds, it is drawn on whole numbers from the operating system's"
    " randomness"
)
_OF_ROUNDED_NOISE = (
    "noise is secret and exact: holds, it is drawn by random bits that the operating system makes"
    " or seeds, Gaussian and Laplace noise as exact real noise, rounded to whole numbers; the time"
    " of a draw is not constant"
)

# The premise of the numbers of research noise.
SEEDED = "Were its seeded noise secret and exact: "

# Item 4: whose data is hidden, by the entity of a unit.
_CONTRIBUTION_BOUNDS = {
    "record": (
        "one record; a person with several records is protected for only one of them at a time"
    ),
    "person": "one person with all their records, however many",
}
_OLDER_CONTRIBUTION_BOUNDS = _CONTRIBUTION_BOUNDS | {
    "record": "one record; who has several records is protected for one of them at a time"
}


@dataclass(frozen=True)
class Computation:
    """A number that is not computed yet.

    `function` computes it, from the epsilon of each of `events` at each of `deltas`; these two say
    how long that takes.
    """

    function: Callable[[], float | None]
    events: Sequence[Event] = ()
    deltas: Sequence[float] = ()

    def number(self) -> Number:
        """Compute the number, "inf" where no bound holds."""
        value = self.function()
        if value is None or math.isinf(value):
            return "inf"
        return float(value)


def stamp(guarantee: Guarantee, noise: str) -> str | None:
    """Return the stamp of what may not be published: seeded noise, or no bound at all."""
    if noise == "research" or not guarantee.bounded:
        return NOT_FOR_RELEASE
    return None


def privacy_items(guarantee: Guarantee, version: int = VERSION) -> dict[str, Model]:
    """Compute items 2 and 4 to 7: variant, privacy unit, parameters, profile and accesses."""
    # numbers of extreme events overflow to infinity, and are stated as such
    with np.errstate(all="ignore"):
        items = _computed(_items(guarantee, version))

    # not strict, as for a file: these values were made here, and may be of types that convert
    kinds: dict[str, Any] = {name: Document.model_fields[name].annotation for name in items}
    return {
        name: TypeAdapter(kinds[name]).validate_python(item, strict=False)
        for name, item in items.items()
    }


def accounting_item(
    guarantee: Guarantee,
    parameters: Parameters,
    profile: OlderProfile,
    noise: str,
    version: int = VERSION,
) -> Accounting | OlderAccounting:
    """Write item 9, whose sentences repeat the numbers of items 5 and 6."""
    # before version 9 the numbers of events were rounded to the nearest, some to a smaller price
    rounding = CAUTIOUS
    if version < CAUTIOUS_SINCE:
        rounding = TO_NEAREST

    item = OlderAccounting(
        method=(
            "the smallest of the valid bounds: sum of pure epsilons, exact Gaussian curve, Renyi"
            " divergence, privacy loss distribution"
        ),
        composition=guarantee.event.describe(rounding),
        assumptions=_assumptions(guarantee, noise, version),
        statement=formal_statement(guarantee.unit, parameters, noise),
    )
    if not isinstance(profile, ProfileOf4):
        return item

    # since version 4 the composition lists groups, and the numbers are put in words
    later_fields = {
        "composition": _composition(guarantee, rounding),
        "in_words": _in_words(guarantee.unit, parameters, profile, noise),
    }
    return Accounting(**(dict(item) | later_fields))


def _composition(guarantee: Guarantee, rounding: Rounding) -> str:
    """List what was added up: the events that count for everybody, then those of each group."""
    if not guarantee.groups:
        return guarantee.event.describe(rounding)

    parts = []
    if guarantee.event.counted():
        parts.append(f"for every record {guarantee.event.describe(rounding)}")
    for name, event in guarantee.groups:
        parts.append(f"for records of group {name} {event.describe(rounding)}")
    return "; ".join(parts)


def _in_words(unit: Unit, parameters: Parameters, profile: ProfileOf4, noise: str) -> str:
    """Say what the numbers mean for one record or person, and where they stand."""
    epsilon_of_groups = {group.name: _decisive(group.epsilons) for group in parameters.groups}
    pure = float(parameters.pure_epsilon)
    decisive = _decisive(parameters.epsilons)

    if isinstance(profile, Profile):
        group = most_expensive(epsilon_of_groups)
        attained = profile.rates_are == ATTAINED
        words = in_words(unit, decisive, pure, profile.advantage, group, attained=attained)
    else:
        words = older_words(unit, decisive, pure, profile.advantage, epsilon_of_groups)
    if noise == "research":
        return SEEDED + words
    return words


def _decisive(epsilons: Sequence[EpsilonAtDelta]) -> float:
    """Return epsilon at the delta by which a release is judged; infinity if it is not stated."""
    for point in epsilons:
        if point.delta == DECISIVE:
            return float(point.epsilon)
    return math.inf


def formal_statement(unit: Unit, parameters: Parameters, noise: str) -> str:
    """Write the guarantee in one formal sentence, its numbers rounded up."""
    pairs = [(parameters.pure_epsilon, 0.0)]
    pairs += [(point.epsilon, point.delta) for point in parameters.epsilons]
    bounds = [f"({rounded_up(epsilon)}, {delta:g})" for epsilon, delta in pairs if epsilon != "inf"]
    if not bounds:
        return "No bound holds on what the release shows about anybody: it is not private."

    premise = "For"
    if noise == "research":
        premise = f"{SEEDED}for"
    sentence = (
        f"{premise} any two data sets D and D' that differ in whether {unit.sentence}, and any set"
        " S of releases, P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta for each (epsilon,"
        f" delta) of {', '.join(bounds)}"
    )
    if parameters.rho == "inf":
        return f"{sentence}."
    return f"{sentence}, and M is {rounded_up(parameters.rho)}-zCDP."


def statement_of(guarantee: Guarantee, noise: str) -> str:
    """Compute the guarantee of other records than those of the release, in one formal sentence."""
    with np.errstate(all="ignore"):
        numbers = _computed(_parameters(guarantee, VERSION))
    parameters = TypeAdapter(Parameters).validate_python(numbers, strict=False)
    return formal_statement(guarantee.unit, parameters, noise)


def statement_of_figures(guarantee: Guarantee, noise: str) -> str:
    """Compute the guarantee of the test records of paid figures: a formal sentence, and what is
    declared of the parts of these records, if there are several.
    """
    sentence = statement_of(guarantee, noise)
    if not guarantee.unprotected:
        return sentence
    return f"{sentence} Not protected: {', '.join(guarantee.unprotected)}."


def stamp_of(document: Document, guarantee: Guarantee) -> str | None:
    """Return the stamp of a document, by its guarantee and that of its prediction sets."""
    stamps = [stamp(guarantee, document.mechanisms.noise)]
    sets = sets_of(document.contents)
    if sets is not None:
        guarantee_of_sets = Guarantee.from_json(sets.guarantee.model_dump())
        stamps.append(stamp(guarantee_of_sets, sets.noise))
    return NOT_FOR_RELEASE if any(stamps) else None


def check_work(guarantee: Guarantee, version: int = VERSION, deltas: Sequence[float] = ()) -> None:
    """Refuse events whose numbers, and epsilons at further deltas, would take too long to
    compute.
    """
    if work(guarantee, version, deltas) > MAX_WORK:
        fault = f"its events would take more than about {MAX_WORK / 1e6:g} s to account"
        raise ReleaseError(f"{fault}; use fewer or coarser ones")


def work(guarantee: Guarantee, version: int = VERSION, deltas: Sequence[float] = ()) -> float:
    """Estimate how many microseconds all stated numbers, and epsilons at further deltas, take to
    compute; stop beyond MAX_WORK.
    """
    # the values at the leaves; there is nothing to compare them with
    items = _items(guarantee, version)
    values = [value for _, _, value in _leaves(items, items, "")]
    numbers = [value for value in values if isinstance(value, Computation)]
    # the epsilon of an event at a delta is computed once, however many numbers take it
    pairs = dict.fromkeys(
        (event, delta) for number in numbers for event in number.events for delta in number.deltas
    )
    pairs |= dict.fromkeys((event, delta) for event in guarantee.totals() for delta in deltas)

    total = 0.0
    with np.errstate(all="ignore"):
        for event, delta in pairs:
            total += accounting.work(event, delta)
            if total > MAX_WORK:
                break
    return total


def check_statements(document: Document, guarantee: Guarantee) -> str | None:
    """Describe the first statement about privacy that the recorded events do not bear out, or why
    they cannot be accounted; None if all agree.
    """
    # events of a stranger's file may have any parameters, so accounting may fail in many ways
    try:
        deltas: tuple[float, ...] = ()
        if isinstance(document.audit, AuditResult):
            deltas = (document.audit.delta, document.audit.delta_at_alarm)
        check_work(guarantee, document.version, deltas)
        return first_untrue(document, guarantee)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return f"the recorded events cannot be accounted ({excerpt(str(error))})"


def first_untrue(document: Document, guarantee: Guarantee) -> str | None:
    """Find the first statement about privacy that the recorded events do not bear out.

    Statements that take no time are compared first, so that a forged file is mostly refused before
    the others.
    """
    noise = document.mechanisms.noise
    utility = document.utility
    if stamp_of(document, guarantee) != document.stamp:
        return f"stamp {document.stamp!r} does not agree with {noise} noise"
    # a minority accuracy tells which classes are the smallest
    states_minority = isinstance(utility, Utility) and utility.minority_accuracy is not None
    if states_minority and CLASS_SIZES not in guarantee.unprotected:
        return f"a minority accuracy is stated and {CLASS_SIZES!r} is not listed as unprotected"
    # so does a rare third by exact training counts
    states_counts = isinstance(utility, LabelSetUtility) and utility.tells_training_counts
    if states_counts and LABEL_COUNTS not in guarantee.unprotected:
        return f"a rare third is stated and {LABEL_COUNTS!r} is not listed as unprotected"

    least_records = stated_least_records(document.contents)
    if least_records is not None:
        quantity = declared_least_records(least_records)
        if quantity not in guarantee.unprotected:
            return f"least_records is stated and {quantity!r} is not listed as unprotected"

    if isinstance(document.pattern, CombinedPattern):
        combination = document.pattern.combination
        fault = other_noise(combination) or untrue_combination(combination, document.guarantee)
        if fault:
            return fault

    if isinstance(document.audit, AuditResult):
        fault = audit_fault(document.audit, guarantee)
        if fault:
            return fault

    untrue_of_others = _untrue_of_others(document)
    if untrue_of_others:
        return untrue_of_others

    items = _items(guarantee, document.version)
    stated_items = {name: getattr(document, name).model_dump() for name in items}
    leaves = _leaves(stated_items, items, "")
    numbers = sorted(leaves, key=lambda leaf: _epsilons_needed(expected=leaf[2]))

    # sentences repeat numbers, so they are compared last
    item = accounting_item(
        guarantee, document.parameters, document.profile, noise, document.version
    )
    stated_item = document.accounting.model_dump()
    sentences = _leaves(stated_item, item.model_dump(), ".accounting")

    with np.errstate(all="ignore"):
        for place, stated, expected in (*numbers, *sentences):
            true = _computed(expected)
            if isinstance(stated, float) and isinstance(true, float):
                # other numbers, such as deltas, are no bounds that may have become tighter
                excess = TOLERANCE
                if isinstance(expected, Computation):
                    excess = EXCESS
                lowest = true * (1 - TOLERANCE) - ROUNDING
                highest = true * (1 + excess) + ROUNDING
                if not lowest <= stated <= highest:
                    return f"{place[1:]} is stated as {stated:.10g} and the events give {true:.10g}"
            elif stated != true:
                # a text, or "inf" on one side alone
                return f"{place[1:]} is stated as {stated!r:.80} and the events give {true!r:.80}"
    return _other_unit(document, guarantee)


def _other_unit(document: Document, guarantee: Guarantee) -> str | None:
    """Say that the stated learner promises another unit than that of the guarantee; None if not."""
    if not isinstance(document.mechanisms, LearnerMechanisms):
        return None
    unit = document.mechanisms.learner.parameters.get("unit", guarantee.unit)
    if unit == guarantee.unit:
        return None
    stated = f"the learner is stated under unit {unit!r:.80}"
    return f"{stated} and the guarantee is under {guarantee.unit}"


def _untrue_of_others(document: Document) -> str | None:
    """Find a statement about the calibration records of prediction sets, or about the test records
    of paid figures, that their recorded events do not bear out.
    """
    fault = None
    sets = sets_of(document.contents)
    if sets is not None:
        fault = untrue_statement("contents.sets", sets)
    if isinstance(document.utility, PaidUtility):
        fault = fault or untrue_statement("utility", document.utility)
    if isinstance(document.utility, CombinedUtility):
        fault = fault or _untrue_parts(document.utility)
    return fault


def _untrue_parts(utility: CombinedUtility) -> str | None:
    """Say how the guarantee of paid figures differs from what their parts give; None if not."""
    for cost in utility.combination.costs:
        check_work(read_guarantee(cost.guarantee, "utility"))
    fault = untrue_combination(utility.combination, utility.guarantee)
    return None if fault is None else f"utility: {fault}"


def untrue_statement(place: str, measured: PredictionSets | PaidUtility) -> str | None:
    """Say how the statement about other records than those of the release differs from what their
    recorded events give; None if it does not.
    """
    guarantee = read_guarantee(measured.guarantee, place)
    check_work(guarantee)
    if isinstance(measured, PaidUtility) and not guarantee.bounded:
        return f"{place} states figures that were paid for, and no bound holds"
    if isinstance(measured, PaidUtility):
        true = statement_of_figures(guarantee, measured.noise)
    else:
        true = statement_of(guarantee, measured.noise)
    if measured.statement == true:
        return None
    stated = f"{place}.statement is stated as {measured.statement!r:.80}"
    return f"{stated} and the events give {true!r:.80}"


def _epsilons_needed(expected: Any) -> int:
    """Count what a statement takes to check: nothing for plain values, else its deltas."""
    if isinstance(expected, Computation):
        return 1 + len(expected.deltas)
    return 0


def _leaves(stated: Any, expected: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Walk through two trees: each leaf's place, the stated value and the expected one.

    Both trees come from the same models, so they have the same keys. Lists of different lengths
    differ in their lengths. A place begins with a dot.
    """
    if isinstance(expected, dict):
        for key in expected:
            yield from _leaves(stated[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, tuple) and len(stated) == len(expected):
        for i in range(len(expected)):
            yield from _leaves(stated[i], expected[i], f"{place}[{i}]")
    elif isinstance(expected, tuple):
        yield f"{place}.length", len(stated), len(expected)
    else:
        yield place, stated, expected


def _computed(value: Any) -> Any:
    """Return the same statements with every number computed."""
    if isinstance(value, dict):
        return {name: _computed(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_computed, value))
    if isinstance(value, Computation):
        return value.number()
    return value


def _items(guarantee: Guarantee, version: int = VERSION) -> dict[str, Any]:
    """Return items 2 and 4 to 7 as plain values, with their numbers not computed yet."""
    contribution_bounds = _CONTRIBUTION_BOUNDS
    if version < 4:
        contribution_bounds = _OLDER_CONTRIBUTION_BOUNDS

    return {
        "variant": _variant(guarantee),
        "privacy_unit": {
            "adjacency": guarantee.unit.value,
            "hides": f"whether {guarantee.unit.sentence}",
            "contribution_bound": contribution_bounds[guarantee.unit.entity],
        },
        "parameters": _parameters(guarantee, version),
        "profile": _profile(guarantee, version),
        "accesses": {
            "covered": guarantee.scope,
            "outside": (
                "anything fitted or tuned on private rows before it, and any figure computed from"
                " them after it"
            ),
        },
    }


def _parameters(guarantee: Guarantee, version: int) -> dict[str, Any]:
    """Item 5: the numbers, under this unit and those that follow from it, and of each group."""
    conversions = []
    for unit in implied_units(guarantee.unit):
        converted = guarantee.to(unit)
        unit_and_rho = {"unit": converted.unit.value, "rho": _rho(converted)}
        conversions.append(_numbers(converted, version) | unit_and_rho)

    groups = [{"name": name} | _numbers(guarantee, version, name) for name, _ in guarantee.groups]
    group_budgets = f"one budget for all {guarantee.unit.entity}s"
    if groups:
        group_budgets = "not stated whether they are public"
    return _numbers(guarantee, version) | {
        "rho": _rho(guarantee),
        "conversions": tuple(conversions),
        "groups": tuple(groups),
        "group_budgets": group_budgets,
    }


def _of_version(guarantee: Guarantee, version: int) -> Guarantee | OlderNumbers:
    """Return the object whose methods compute the numbers of a document of this version."""
    if version >= 5:
        return guarantee
    return OlderNumbers(guarantee, version)


def _profile(guarantee: Guarantee, version: int) -> dict[str, Any]:
    """Item 6: the success of attacks."""
    numbers = _of_version(guarantee, version)
    totals = guarantee.totals()

    rates = []
    for false_positive_rate in FALSE_POSITIVE_RATES:
        deltas = attack_rates.attack_deltas(false_positive_rate)
        attack = Computation(partial(numbers.attack_rate, false_positive_rate), totals, deltas)
        rates.append({"false_positive_rate": false_positive_rate, "true_positive_rate": attack})
    profile: dict[str, Any] = {
        "mu": Computation(lambda: guarantee.mu),
        "attack_rates": tuple(rates),
    }

    if version >= 4:
        deltas = []
        for total in totals:
            deltas += attack_rates.advantage_deltas(total.base())
        profile["advantage"] = Computation(lambda: numbers.advantage, totals, deltas)
    if version >= 5:
        profile["rates_are"] = ATTAINED if guarantee.attained else BOUNDS
    return profile


def _numbers(guarantee: Guarantee, version: int, group: str | None = None) -> dict[str, Any]:
    """Pure epsilon, and epsilon at each stated delta, of a unit or of a group."""
    totals = guarantee.totals(group)
    epsilon_at = _of_version(guarantee, version).epsilon
    deltas: tuple[float, ...] = DELTAS
    if version < 4:
        deltas = OLDER_DELTAS

    epsilons = []
    for delta in deltas:
        epsilon = Computation(partial(epsilon_at, delta, group), totals, (delta,))
        epsilons.append({"epsilon": epsilon, "delta": delta})
    return {
        # of all versions alike, in closed form
        "pure_epsilon": Computation(partial(guarantee.epsilon, 0.0, group)),
        "epsilons": tuple(epsilons),
    }


def _rho(guarantee: Guarantee) -> Computation:
    return Computation(lambda: guarantee.rho)


def _variant(guarantee: Guarantee) -> dict[str, Any]:
    """Item 2: the kind of differential privacy, and what it does not protect."""
    public_arguments = ["number of columns", "parameters of the learner"]
    # a class list that was read off private data is among what is unprotected, with its source
    reads_class_list = any(quantity.startswith("class list") for quantity in guarantee.unprotected)
    if not reads_class_list:
        public_arguments.insert(0, "class list")
    return {
        "variant": _kind(guarantee),
        "data_domain": (
            "one or more labelled rows of finite numbers, with labels from the class list"
        ),
        "unprotected_quantities": tuple(
            dict.fromkeys(guarantee.unprotected + guarantee.unit.public)
        ),
        "public_arguments": tuple(public_arguments),
    }


def _kind(guarantee: Guarantee) -> str:
    """Name the strongest kind of differential privacy of which a bound holds."""
    if not guarantee.bounded:
        return "none"
    if guarantee.rho is None:
        return "approximate"
    if math.isfinite(guarantee.epsilon()):
        return "pure"
    return "zCDP"


def _assumptions(guarantee: Guarantee, noise: str, version: int) -> tuple[str, ...]:
    """Return the assumption on the noise, then those of all events, nested ones too, each once."""
    if noise == "research":
        return (
            "noise is secret and exact: does not hold, it is drawn in floating point from a seed",
        )

    parts = [part for total in guarantee.totals() for part, _ in total.contained()]
    # before version 6 all secure noise was discrete, and drawn by OpenDP
    is_discrete = noise == "opendp" or version < 6
    if not is_discrete:
        parts = [part for part in parts if not part.assumes_discrete_noise]

    assumptions = [part.assumption for part in parts if part.assumption]
    premise = _OF_DISCRETE_NOISE if is_discrete else _OF_ROUNDED_NOISE
    return tuple(dict.fromkeys([premise, *assumptions]))
