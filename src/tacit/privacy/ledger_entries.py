"""New entries of a ledger: an allowance or a charge, or the error by which it is refused.

An entry is the part of a line that says what is allowed or charged, and what is left then. The file
at `path` is named by errors alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import InputError, LedgerError, excerpt, quoted
from tacit.privacy.account import Account, Left, balance, figure, left_after_all
from tacit.privacy.allowance import Allowance
from tacit.privacy.decimals import NONE_LEFT, written
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import part_key, part_name
from tacit.privacy.unit import Unit


def allow_entry(
    path: Path, account: Account, allowance: Allowance, parts: Sequence[str]
) -> dict[str, Any]:
    """The entry of an allowance, which must cover the charges so far in the same currency."""
    earlier = account.allowance
    if earlier is not None and not account.untouched and earlier.kind != allowance.kind:
        charges = f"{path} has charges against {earlier}, counted in {earlier.kind}"
        raise LedgerError(
            f"allowance {allowance} is counted in {allowance.kind}, and {charges}; state it in the"
            " same kind"
        )
    for charge in account.charges:
        _check_unit(path, allowance, charge.guarantee, charge.what)

    if parts:
        _check_charged_parts(path, account, parts)

    left = left_after_all(allowance, account.charges, parts)
    if left is None:
        # `spent` reads the unit and the parts, and not what is left
        none_left = Left(NONE_LEFT, dict.fromkeys(parts, NONE_LEFT))
        spent = account.with_allowance(allowance, none_left).spent
        figures = Guarantee(allowance.unit, spent).figures()
        raise LedgerError(
            f"allowance {allowance} is below what {path} records as spent: {figures}; it must cover"
            " what was spent"
        )

    entry: dict[str, Any] = {
        "kind": "allow",
        "budget": str(allowance.budget),
        "unit": allowance.unit.value,
        "currency": allowance.currency,
    }
    if allowance.most_records is not None:
        entry["most_records"] = allowance.most_records
    return entry | _left_members(left)


def charge_entry(
    path: Path,
    identity: str,
    account: Account,
    guarantee: Guarantee,
    what: str,
    part: str | None,
) -> dict[str, Any]:
    """The entry of a charge, which must fit the allowance if there is one."""
    what = excerpt(what)
    entry: dict[str, Any] = {"kind": "charge", "what": what, "guarantee": guarantee.to_json()}
    if part is not None:
        # recorded as it was declared, if it was
        part = part_name(part)
        part = _declared(path, account, part) or part
        entry["part"] = part
    if account.allowance is not None:
        left = _left_after(path, account, account.allowance, guarantee, what, part)
        return entry | _left_members(left)

    # Other data have an allowance in this file, or the file is theirs alone.
    if account.allowed or (account.empty and account.others):
        identities = excerpt(", ".join(account.allowed or account.others))
        raise LedgerError(
            f"ledger {path} is of {identities} and allows nothing for {identity!r}; name the ledger"
            " of these data, state what may be spent on them (tacit ledger DATA --new --file"
            " FILE --allow ...), or, if they are more records of the same data, import them under"
            " its name (tacit import --identity)"
        )
    return entry


def part_names(parts: Sequence[str]) -> tuple[str, ...]:
    """Declared names of parts, of which no two are one part."""
    if isinstance(parts, str):
        raise InputError(f"parts={quoted(parts)} must be a list; pass for example parts=['A', 'B']")
    names: dict[str, str] = {}
    for value in parts:
        name = part_name(value)
        key = part_key(name)
        if key in names:
            raise InputError(f"parts {quoted(names[key])} and {quoted(name)} are one; name it once")
        names[key] = name
    return tuple(names.values())


def _check_charged_parts(path: Path, account: Account, parts: Sequence[str]) -> None:
    """Refuse declared parts that leave out one with charges."""
    keys = {part_key(name) for name in parts}
    for charge in account.charges:
        if charge.part is not None and part_key(charge.part) not in keys:
            raise LedgerError(
                f"parts={excerpt(', '.join(parts))} leaves out {charge.part!r}, which {path} has"
                " charges of; name it too"
            )


def _declared(path: Path, account: Account, part: str) -> str | None:
    """The declared part of this name, if parts are declared."""
    try:
        return account.declared(part)
    except InputError as error:
        raise LedgerError(f"{path}: {error}") from error


def _check_unit(path: Path, allowance: Allowance, guarantee: Guarantee, what: str) -> None:
    """Refuse a charge that does not convert to the unit of the allowance."""
    try:
        allowance.converted(guarantee)
    except InputError as error:
        remedy = f"keep another ledger for it (--allow ... --unit {guarantee.unit})"
        record_to_person = allowance.unit.per_person and not guarantee.unit.per_person
        if record_to_person and allowance.most_records is None:
            remedy = (
                f"learn under {allowance.unit}, or declare the most records of a person"
                " (tacit ledger --most-records)"
            )
        raise LedgerError(
            f"{excerpt(what)} is private under {guarantee.unit}, which does not convert to"
            f" {allowance.unit}, the unit of {path}; {remedy}"
        ) from error


def _left_after(
    path: Path,
    account: Account,
    allowance: Allowance,
    guarantee: Guarantee,
    what: str,
    part: str | None,
) -> Left:
    """Return what the charge leaves of the allowance; an error if it does not fit."""
    _check_unit(path, allowance, guarantee, what)
    left = account.after(guarantee, part)
    if left is None:
        raise _overdrawn(path, account, allowance, guarantee, what, part)
    return left


def _overdrawn(
    path: Path,
    account: Account,
    allowance: Allowance,
    guarantee: Guarantee,
    what: str,
    part: str | None,
) -> LedgerError:
    """The error of a charge that does not fit, or has no finite cost in the currency."""
    declared = account.declared(part)
    ledger = f"the ledger {path}: {balance(account, declared)}"

    # The first charge to an approximate allowance counts by its exact curve.
    untouched = account.untouched if declared is None else account.untouched_part(declared)
    exact = untouched and allowance.budget.kind == "approx"
    if not exact:
        event = allowance.unpriced(guarantee)
        if event is not None and event.bounded:
            terms = "rho=... or epsilon=...,delta=..."
            if math.isinf(event.mu):
                terms += " with currency renyi"
            if allowance.unit is not Unit.ADD_REMOVE:
                terms += f" --unit {allowance.unit}"
            return LedgerError(
                f"{what}, {event.describe()}, has no finite privacy cost in {allowance.currency},"
                f" the currency of {ledger}; choose another method, or keep a ledger that allows"
                f" {terms}"
            )

    cost = figure(account, guarantee, exact=exact)
    return LedgerError(
        f"{what} at {cost} would overdraw {ledger}; spend less: an allowance that is raised after a"
        " charge is only a record and no limit"
    )


def _left_members(left: Left) -> dict[str, Any]:
    """What is left, as members of a line; by part too where parts are declared."""
    members: dict[str, Any] = {"left": written(left.least)}
    if left.of_parts:
        members["left_of_parts"] = {name: written(of) for name, of in left.of_parts.items()}
    return members
