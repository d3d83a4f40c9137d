"""What a document says about privacy, as functions of the recorded guarantee alone.

`Release.of` writes these items and `Release.verify` computes them again, so no stated number stands on its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from tacit.privacy import accounting
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee, rounded_up
from tacit.privacy.unit import Unit
from tacit.releases.schema import (
    NOT_FOR_RELEASE,
    Accesses,
    Accounting,
    AttackRate,
    Converted,
    Document,
    EpsilonAtDelta,
    Group,
    Model,
    Number,
    Numbers,
    Parameters,
    PrivacyUnit,
    Profile,
    Variant,
)

DELTAS = (1e-6, 1e-9)
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
TOLERANCE = 1e-6
MOST_WORK = 2e6  # microseconds, about: what may be spent on the numbers of a release

_IMPLIED = {
    Unit.ADD_REMOVE: (Unit.REPLACE, Unit.CHANGE_LABEL),
    Unit.REPLACE: (Unit.CHANGE_LABEL,),
    Unit.CHANGE_LABEL: (),
}
_PUBLIC_UNDER = {
    Unit.ADD_REMOVE: (),
    Unit.REPLACE: ("number of records",),
    Unit.CHANGE_LABEL: ("features", "order of records", "number of records"),
}


def stamp(guarantee: Guarantee, noise: str) -> str | None:
    """The stamp of what may not be published: seeded noise, or no bound at all."""
    return NOT_FOR_RELEASE if noise == "research" or not guarantee.bounded else None


def privacy_items(guarantee: Guarantee) -> dict[str, Model]:
    """Items 2 and 4 to 7."""
    with np.errstate(all="ignore"):
        return _plain_items(guarantee) | {"parameters": _parameters(guarantee), "profile": _profile(guarantee)}


def _plain_items(guarantee: Guarantee) -> dict[str, Model]:
    """Those that take no time."""
    return {
        "variant": _variant(guarantee),
        "privacy_unit": PrivacyUnit(
            adjacency=guarantee.unit.value,
            hides=f"whether {guarantee.unit.sentence}",
            contribution_bound="one record; who has several records is protected for one of them at a time",
        ),
        "accesses": Accesses(
            covered=guarantee.scope,
            outside="anything fitted or tuned on private rows before it, and any figure computed from them after it",
        ),
    }


def accounting_item(guarantee: Guarantee, parameters: Parameters, noise: str) -> Accounting:
    """Item 9; its sentence repeats the numbers of item 5."""
    return Accounting(
        method="the smallest of the valid bounds: sum of pure epsilons, exact Gaussian curve, Renyi divergence, "
        "privacy loss distribution",
        composition=guarantee.event.describe(),
        assumptions=_assumptions(guarantee, noise),
        statement=formal_statement(guarantee.unit, parameters, noise),
    )


def formal_statement(unit: Unit, parameters: Parameters, noise: str) -> str:
    """The guarantee in one formal sentence, its numbers rounded up."""
    pairs = [(parameters.pure_epsilon, 0.0)] + [(point.epsilon, point.delta) for point in parameters.epsilons]
    if all(epsilon == "inf" for epsilon, _ in pairs):
        return "No bound holds on what the release shows about a record: it is not private."
    stated = ", ".join(f"({rounded_up(epsilon)}, {delta:g})" for epsilon, delta in pairs if epsilon != "inf")
    premise = "Were its seeded noise secret and exact: for" if noise == "research" else "For"
    return (
        f"{premise} any two data sets D and D' that differ in whether {unit.sentence}, and any set S of releases, "
        f"P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta for each (epsilon, delta) of {stated}"
        + ("." if parameters.rho == "inf" else f", and M is {rounded_up(parameters.rho)}-zCDP.")
    )


def first_difference(stated: Any, computed: Any, place: str) -> str | None:
    """Where two plain values differ, numbers by more than the tolerance; None if nowhere."""
    if isinstance(stated, float) and isinstance(computed, float):
        agree = math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=1e-12)
        return None if agree else f"{place} is stated as {stated:.10g} and the events give {computed:.10g}"
    if isinstance(stated, dict) and isinstance(computed, dict) and stated.keys() == computed.keys():
        pairs = [(stated[key], computed[key], f"{place}.{key}") for key in stated]
    elif isinstance(stated, tuple) and isinstance(computed, tuple) and len(stated) == len(computed):
        pairs = [(one, other, f"{place}[{i}]") for i, (one, other) in enumerate(zip(stated, computed, strict=True))]
    else:
        fault = f"{place} is stated as {stated!r:.80} and the events give {computed!r:.80}"
        return None if stated == computed else fault
    return next((found for pair in pairs if (found := first_difference(*pair))), None)


def work(guarantee: Guarantee) -> float:
    """About how many microseconds it takes to compute every stated number; stops beyond MOST_WORK."""
    total = 0.0
    with np.errstate(all="ignore"):
        for event, delta in _evaluations(guarantee):
            total += accounting.work(event, delta)
            if total > MOST_WORK:
                break
    return total


def _evaluations(guarantee: Guarantee) -> Iterator[tuple[Event, float]]:
    """The sums of events, and the deltas, at which epsilon is needed."""
    attacks = {delta for rate in FALSE_POSITIVE_RATES for delta in accounting.attack_deltas(rate)}
    for unit in (guarantee.unit, *_IMPLIED[guarantee.unit]):
        own = guarantee.to(unit)
        for event in set(own.totals()):
            yield from ((event, delta) for delta in {*DELTAS, *(attacks if own is guarantee else ())})


def first_untrue(document: Document, guarantee: Guarantee) -> str | None:
    """The first statement about privacy that the recorded events do not bear out; None if there is none.

    Numbers that take no time are compared first, and the others one at a time.
    """
    with np.errstate(all="ignore"):
        found = _difference_in(document, _plain_items(guarantee))
        if found:
            return found
        for place, stated, computed in _numbers_one_by_one(document, guarantee):
            found = first_difference(stated, computed, place)
            if found:
                return found
        items = privacy_items(guarantee)
        items["accounting"] = accounting_item(guarantee, document.parameters, document.mechanisms.noise)
    return _difference_in(document, items)


def _difference_in(document: Document, items: dict[str, Model]) -> str | None:
    pairs = ((getattr(document, name).model_dump(), item.model_dump(), name) for name, item in items.items())
    return next((found for pair in pairs if (found := first_difference(*pair))), None)


def _numbers_one_by_one(document: Document, guarantee: Guarantee) -> Iterator[tuple[str, Number, Number]]:
    """Where a number is, what is stated and what is computed, the quickest first; without those of groups."""
    parameters, profile = document.parameters, document.profile
    implied = [guarantee.to(unit) for unit in _IMPLIED[guarantee.unit]]
    stated: list[tuple[str, Parameters | Converted, Guarantee]] = [("parameters", parameters, guarantee)]
    stated += [
        (f"parameters.conversions[{i}]", *pair)
        for i, pair in enumerate(zip(parameters.conversions, implied, strict=False))
    ]
    for place, numbers, own in stated:
        yield f"{place}.rho", numbers.rho, _number(own.rho)
        yield f"{place}.pure_epsilon", numbers.pure_epsilon, _number(own.epsilon(0.0))
    yield "profile.mu", profile.mu, _number(guarantee.mu)
    for place, numbers, own in stated:
        for i, (point, delta) in enumerate(zip(numbers.epsilons, DELTAS, strict=False)):
            yield f"{place}.epsilons[{i}].epsilon", point.epsilon, _number(own.epsilon(delta))
    for i, (rate, at) in enumerate(zip(profile.attack_rates, FALSE_POSITIVE_RATES, strict=False)):
        place = f"profile.attack_rates[{i}].true_positive_rate"
        yield place, rate.true_positive_rate, guarantee.attack_rate(at)


def _variant(guarantee: Guarantee) -> Variant:
    leaked = any(quantity.startswith("class list") for quantity in guarantee.unprotected)
    declared = () if leaked else ("class list",)
    variant: Literal["pure", "zCDP", "approximate", "none"] = "none"
    if guarantee.bounded:
        variant = "approximate" if guarantee.rho is None else "pure" if math.isfinite(guarantee.epsilon()) else "zCDP"
    return Variant(
        variant=variant,
        data_domain="one or more labelled rows of finite numbers, with labels from the class list",
        unprotected_quantities=tuple(dict.fromkeys(guarantee.unprotected + _PUBLIC_UNDER[guarantee.unit])),
        public_arguments=(*declared, "number of columns", "parameters of the learner"),
    )


def _parameters(guarantee: Guarantee) -> Parameters:
    groups = tuple(Group(name=name, **vars(_numbers(guarantee, name))) for name, _ in guarantee.groups)
    return Parameters(
        **vars(_numbers(guarantee)),
        rho=_number(guarantee.rho),
        conversions=tuple(_converted(guarantee.to(unit)) for unit in _IMPLIED[guarantee.unit]),
        groups=groups,
        group_budgets="not stated whether they are public" if groups else "one budget for all records",
    )


def _converted(guarantee: Guarantee) -> Converted:
    return Converted(**vars(_numbers(guarantee)), unit=guarantee.unit.value, rho=_number(guarantee.rho))


def _numbers(guarantee: Guarantee, group: str | None = None) -> Numbers:
    points = [EpsilonAtDelta(epsilon=_number(guarantee.epsilon(delta, group)), delta=delta) for delta in DELTAS]
    return Numbers(pure_epsilon=_number(guarantee.epsilon(0.0, group)), epsilons=tuple(points))


def _profile(guarantee: Guarantee) -> Profile:
    rates = [
        AttackRate(false_positive_rate=rate, true_positive_rate=guarantee.attack_rate(rate))
        for rate in FALSE_POSITIVE_RATES
    ]
    return Profile(mu=_number(guarantee.mu), attack_rates=tuple(rates))


def _assumptions(guarantee: Guarantee, noise: str) -> tuple[str, ...]:
    if noise == "research":
        return ("noise is secret and exact: does not hold, it is drawn in floating point from a seed",)
    held = "noise is secret and exact: holds, it is drawn on whole numbers from the operating system's randomness"
    parts = [part for total in guarantee.totals() for part, _ in total.contained()]
    return tuple(dict.fromkeys((held, *(part.assumption for part in parts if part.assumption))))


def _number(value: float | None) -> Number:
    return "inf" if value is None or math.isinf(value) else float(value)
