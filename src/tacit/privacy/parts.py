"""Parts of the data, and the privacy cost of what several of them release.

A part is a declared name of the records that a release covers, such as "hospital A". Releases of
one part add up. Parts of other names are declared disjoint: they share no record, or under a unit
per person nobody has records in two of them.

Unit: add-remove and add-remove-person. Then a record, or a person, is in one part, and what the
other parts release does not depend on it. So the cost is that of an event that dominates every
part. This needs parts that follow from the record or person alone, or from a coin of its own. "The
first 10 records" is no such part: one more record at the front moves another record out of it.

Unit: replace and change-label, of records or persons. There the cost is that of the dominating
event if the part is public and stays the same. A record that moves to another part is removed
from one and added to another. A guarantee under these units says nothing of that: it may leave the
number of records of a part, or the features of each, in the open. So `moving` needs guarantees
under add-remove, whose conversion to the other units, group privacy for two, covers a record that
moves: two events at distance one are dominated by one event at distance two.

Theorem: parallel composition of adaptive releases [McSherry 2009, Theorem 4]. A release may choose
its parameters, noise included, by what other parts released, but not the budget that its part
spends: a maximum over budgets that were chosen later bounds nothing. So the budgets of a part are
declared as fixed beforehand, or the part counts at a fixed allowance, which a ledger enforces.

Source: McSherry 2009, "Privacy integrated queries"; Feldman and Zrnic 2021 for allowances.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from tacit.errors import InputError, excerpt, quoted
from tacit.privacy.budget import Budget
from tacit.privacy.domination import dominating
from tacit.privacy.events import ZCDP, Event, Gaussian, Parallel, PureDP, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

MOST_LETTERS = 100
"""The most letters of the name of a part."""

# kinds of events of a sum beyond which those of Gaussian noise become one
_MOST_TERMS = 20

# more than floats lose in such a sum
_ROUNDING = 1e-12

# Printable letters that nothing shows: joiners, fillers, the empty braille pattern, and selectors
# of variants.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)

# The most names of parts, or scopes of releases, that a sentence lists.
_LISTED = 5

# The change under which a part must stay the same, by unit.
_KEPT = {
    Unit.REPLACE: "where the record is replaced",
    Unit.CHANGE_LABEL: "where its label changes",
    Unit.REPLACE_PERSON: "where the person is replaced",
    Unit.CHANGE_LABELS_OF_PERSON: "where their labels change",
}


def part_name(value: object) -> str:
    """Return the name of a part: one line of printable text, without spaces at its ends.

    Raises
    ------
    InputError
        If it is no such text, has more than 100 letters, or is not in Unicode's form NFC.

    Examples
    --------
    >>> part_name("hospital A")
    'hospital A'
    """
    example = "pass for example 'hospital A'"
    if not isinstance(value, str) or not value:
        raise InputError(f"part={quoted(value)} must name the records of a release; {example}")
    if not value.isprintable():
        raise InputError(f"part={quoted(value)} must be one line of printable text; {example}")
    if value != value.strip():
        raise InputError(f"part={quoted(value)} has spaces at its ends; leave them out")
    if len(value) > MOST_LETTERS:
        raise InputError(
            f"part={quoted(value)} has {len(value)} letters, more than {MOST_LETTERS}; shorten it"
        )
    if value != unicodedata.normalize("NFC", value):
        raise InputError(
            f"part={quoted(value)} has letters in several pieces; pass"
            " unicodedata.normalize('NFC', part)"
        )
    return value


def part_key(name: str) -> str:
    """Return what decides whether two names are one part: letters without case and width, without
    runs of spaces, and without what cannot be seen.

    Examples
    --------
    >>> part_key("Hospital  A") == part_key("hospital a")
    True
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    # folding may compose letters anew
    seen = _INVISIBLE.sub("", unicodedata.normalize("NFKC", folded))
    return " ".join(seen.split())


def combined(
    costs: Sequence[tuple[str, Guarantee]],
    *,
    overlapping: bool = False,
    moving: bool = False,
    allowances: Mapping[str, Budget | str] | None = None,
) -> Guarantee:
    """Return the guarantee of several releases together, each of one part.

    It does not depend on the order of `costs`, and one release without an allowance keeps its
    guarantee.

    Parameters
    ----------
    costs : sequence of (str, Guarantee)
        Part and guarantee of each release. The guarantees are converted to one unit if they are of
        several.
    overlapping : bool, default=False
        Declare that parts may share records, so that the costs of all parts add up.
    moving : bool, default=False
        Declare that a replaced record may be in another part. It changes no number, but refuses
        guarantees under units that do not cover it.
    allowances : mapping of str to Budget or str, optional
        What may be spent on a part in all, fixed before its first release: rho, epsilon or mu. The
        part counts at that, and its budgets may have been chosen by what was released.

    Raises
    ------
    InputError
        If the guarantees convert to no common unit, `moving` is declared under a unit that does
        not cover it, or an allowance is of no part, of another kind, or below what was spent.

    Examples
    --------
    >>> costs = [("A", Guarantee(Unit.ADD_REMOVE, Gaussian(2.0)))]
    >>> costs += [("B", Guarantee(Unit.ADD_REMOVE, Gaussian(1.0)))]
    >>> combined(costs).mu, round(combined(costs, overlapping=True).mu, 3)
    (1.0, 1.118)
    """
    if not costs:
        raise InputError("costs=[] has no release to combine; pass (part, guarantee) of each")
    costs = sorted(costs, key=lambda cost: (part_key(cost[0]), cost[0], _guarantee_key(cost[1])))
    budgets = _budgets(costs, allowances or {})
    if len(costs) == 1 and not budgets:
        return costs[0][1]

    unit = _common_unit(costs)
    if moving:
        _check_moving(unit)

    names: dict[str, str] = {}
    events: dict[str, list[Event]] = {}
    for name, guarantee in costs:
        key = part_key(name)
        names.setdefault(key, name)
        # personal budgets count at the cost of the most expensive group
        events.setdefault(key, []).append(dominating(guarantee.to(unit).totals()))

    parts = [_of_part(names[key], of_part, budgets.get(key)) for key, of_part in events.items()]
    fixed = [name for key, name in names.items() if key not in budgets]
    declared = declaration(list(names.values()), unit, overlapping=overlapping, fixed=fixed)
    unprotected = [words for _, guarantee in costs for words in guarantee.to(unit).unprotected]
    if declared:
        unprotected.append(declared)

    deltas = {guarantee.delta for _, guarantee in costs}
    return Guarantee(
        unit,
        _of_parts(parts, unit, overlapping=overlapping),
        unprotected=tuple(dict.fromkeys(unprotected)),
        scope=_scope([guarantee.scope for _, guarantee in costs]),
        delta=deltas.pop() if len(deltas) == 1 else None,
    )


def declaration(
    names: Sequence[str],
    unit: Unit,
    *,
    overlapping: bool = False,
    fixed: Sequence[str] = (),
) -> str:
    """Return what a combination takes on trust, as words for `Guarantee.unprotected`.

    Parameters
    ----------
    names : sequence of str
        The parts, each once.
    unit : Unit
    overlapping : bool, default=False
        As in `combined`.
    fixed : sequence of str
        Parts that count at what they spent, and not at an allowance.

    Examples
    --------
    >>> declaration(["A"], Unit.ADD_REMOVE, fixed=["A"])
    "that the budgets of 'A' were fixed beforehand (declared)"
    """
    entity = unit.entity
    of_all = f"the {len(names)} parts {_listed(names)}"
    clauses = []
    if len(names) > 1 and not overlapping:
        disjoint = f"no record is in two of {of_all}"
        if unit.per_person:
            disjoint = f"nobody has records in two of {of_all}"
        clauses.append(f"that {disjoint}")
        if unit not in _KEPT:
            clauses.append(f"that the part of a {entity} follows from that {entity} alone")
    if len(names) > 1 and unit in _KEPT:
        clauses.append(f"that the part of a {entity} is public and the same {_KEPT[unit]}")

    if fixed:
        of_parts = _listed(fixed)
        if len(fixed) == len(names) > 1:
            of_parts = f"{of_all}, which may overlap," if overlapping else "every part"
        clauses.append(f"that the budgets of {of_parts} were fixed beforehand")
    if not clauses:
        return ""
    *first, last = clauses
    sentence = f"{', '.join(first)} and {last}" if first else last
    return f"{sentence} (declared)"


def _budgets(
    costs: Sequence[tuple[str, Guarantee]], allowances: Mapping[str, Budget | str]
) -> dict[str, Budget]:
    """The allowance of each part that has one, by the part's key."""
    keys = {part_key(name) for name, _ in costs}
    budgets = {}
    for name, allowance in allowances.items():
        key = part_key(name)
        if key not in keys:
            raise InputError(
                f"allowances name {quoted(name)}, which is no part of the releases; leave it out"
            )
        budget = Budget.parse(allowance)
        if key in budgets:
            raise InputError(f"allowances name {quoted(name)} twice; state one amount")
        if budget.kind == "approx":
            raise InputError(
                f"the allowance {budget} of {quoted(name)} bounds the cost at one delta only;"
                " state it as rho, mu or epsilon alone"
            )
        budgets[key] = budget
    return budgets


def _of_part(name: str, events: Sequence[Event], budget: Budget | None) -> Event:
    """The event of all releases of one part: their sum, or the allowance."""
    spent = _sum(events)
    if budget is None:
        return spent
    if not budget.permits(spent):
        raise InputError(
            f"the releases of part {quoted(name)}, {excerpt(spent.describe())}, cost more than its"
            f" allowance {budget}; state the allowance that was fixed for it"
        )
    if budget.rho is not None:
        return ZCDP(budget.rho)
    if budget.mu is not None:
        return Gaussian(1 / budget.mu)
    assert budget.epsilon is not None
    return PureDP(budget.epsilon)


def _sum(events: Sequence[Event]) -> Event:
    """The sum of events, in which Gaussian noise of many multipliers is one event of the same mu:
    documents hold few events.

    On each class separately there is the noise of every release, so its sum is on each class too.
    """
    total = compose(events)
    terms = total.counted()
    if len(terms) <= _MOST_TERMS:
        return total

    others: list[Event] = []
    squares: dict[bool, list[float]] = {False: [], True: []}
    for event, count in terms:
        by_class = isinstance(event, Parallel) and event.over == "classes"
        noise = event.event if isinstance(event, Parallel) and by_class else event
        if isinstance(noise, Gaussian):
            squares[by_class].append(count * noise.mu**2)
        else:
            others.append(count * event)

    for by_class, of_kind in squares.items():
        mu = math.sqrt(math.fsum(of_kind)) * (1 + _ROUNDING)
        if mu > 0:
            merged = Gaussian(1 / mu)
            others.append(Parallel(merged, over="classes") if by_class else merged)
    return compose(others)


def _of_parts(parts: Sequence[Event], unit: Unit, *, overlapping: bool) -> Event:
    """The event of all parts."""
    if overlapping or len(parts) == 1:
        event = _sum(parts)
        return event.base() if unit.per_person else event

    event = dominating(parts)
    if not unit.per_person:
        return Parallel(event, over="parts")
    if not all(kind.groups_of_any_size for kind, _ in event.contained()):
        # a replaced person may leave one search and enter another, at the cost of both
        return compose(part.base() for part in parts)
    return event.base()


def _common_unit(costs: Iterable[tuple[str, Guarantee]]) -> Unit:
    """The unit of all guarantees, or the first of their units to which all convert."""
    costs = list(costs)
    samples = {guarantee.unit: guarantee for _, guarantee in costs}
    units_in_order = [unit for unit in Unit if unit in samples]
    for unit in units_in_order:
        if all(_converts(guarantee, unit) for guarantee in samples.values()):
            return unit

    first_part = {guarantee.unit: name for name, guarantee in reversed(costs)}
    listing = ", ".join(f"{quoted(first_part[unit])} ({unit})" for unit in units_in_order)
    raise InputError(
        f"the guarantees of parts {listing} convert to no common unit; release all parts under one"
        " unit, such as add-remove"
    )


def _converts(guarantee: Guarantee, unit: Unit) -> bool:
    try:
        guarantee.to(unit)
    except InputError:
        return False
    return True


def _check_moving(unit: Unit) -> None:
    """Refuse units under which a guarantee says nothing of a record that leaves its part."""
    if unit not in _KEPT:
        return
    remedy = Unit.ADD_REMOVE_PERSON if unit.per_person else Unit.ADD_REMOVE
    raise InputError(
        f"moving=True needs guarantees that cover a {unit.entity} that leaves its part, which"
        f" unit={unit} does not; release the parts under unit={remedy}, which converts to it"
    )


def _scope(scopes: Sequence[str]) -> str:
    """The scope of several releases: all scopes that say more than of one run, and the first of
    the others.
    """
    distinct = sorted(set(scopes))
    if len(scopes) == 1:
        return scopes[0]
    if len(distinct) == 1:
        return f"all {len(scopes)} releases that were combined, of each {distinct[0]}"

    left_out = [scope for scope in distinct if ";" not in scope][_LISTED:]
    listed = [scope for scope in distinct if scope not in left_out]
    if left_out:
        listed.append(f"{len(left_out)} more such runs")
    return f"all {len(scopes)} releases that were combined: {'; '.join(listed)}"


def _listed(names: Sequence[str]) -> str:
    """The first five names in quotes, and how many more there are."""
    ordered = sorted(names)
    listing = ", ".join(repr(name) for name in ordered[:_LISTED])
    if len(ordered) > _LISTED:
        listing += f" and {len(ordered) - _LISTED} more"
    return listing


def _guarantee_key(guarantee: Guarantee) -> str:
    """The order of guarantees of one part."""
    return json.dumps([guarantee.to_json(), guarantee.delta])
