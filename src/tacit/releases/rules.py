"""The rules of a gate: what each key of a policy compares.

A rule is a function of the policy and the evidence. It returns the line that says why it is met,
and raises `Unmet` with the line that names the value, the rule and the remedy.

A fact that nothing proves, such as the date of a line in a ledger, the fewest records of a class, a
measured figure or an audit, is worth as much as the signature of whoever states it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from itertools import product

import numpy as np

from tacit.errors import InputError, excerpt, quoted
from tacit.privacy import accounting, attack_rates
from tacit.privacy.account import Account
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee, implied_units, rounded_up
from tacit.privacy.unit import Unit
from tacit.releases import reading
from tacit.releases.audited import AuditResult
from tacit.releases.evidence import Evidence, is_charged_to, same_cost
from tacit.releases.fields import NOT_STATED
from tacit.releases.measured import PaidUtility, PredictionSets
from tacit.releases.policy import KNOWN, Policy
from tacit.releases.schema import (
    COVERS_ONE_FIT,
    PUBLIC_TEST_SET,
    CompleteContents,
    Document,
    LabelSetUtility,
    Utility,
    declared_least_records,
    stated_least_records,
)

# Relative error of a number, which other processors round otherwise.
TOLERANCE = 1e-9

# Choices of one budget group for each charge of a ledger, of which the most expensive counts.
MOST_CHOICES = 256

# Most microseconds, about, in which the events of a ledger may be accounted at one delta.
MOST_WORK = 6e7

CLASS_LIST = "class list"


class Unmet(Exception):
    """A rule is not met; the message is its line."""


def check_stamp(evidence: Evidence) -> str:
    """Refuse seeded noise, a release without a bound, and one whose audit broke the promise."""
    stamp = evidence.document.stamp
    if stamp is not None:
        raise Unmet(
            f"the release is stamped {stamp}; fit with secure noise and a finite budget, whatever"
            " the policy says"
        )
    audit = evidence.document.audit
    if isinstance(audit, AuditResult) and not audit.passed:
        raise Unmet(
            f"the audit of {audit.date} says: {audit.result}; find the fault, and fit again"
        )
    return "the release has no stamp that keeps it from being handed out"


def _unit(policy: Policy, evidence: Evidence) -> str:
    """Compare the neighbouring relation: it must be the policy's, or imply it, also that of paid
    figures and sets.
    """
    assert policy.unit is not None
    for other in _of_other_records(evidence.document):
        if other.unit is not policy.unit and policy.unit not in implied_units(other.unit):
            raise Unmet(
                f"paid figures or sets hold under {other.unit}, which does not imply {policy.unit};"
                f" pay for them under --unit {policy.unit}"
            )

    unit = evidence.guarantee.unit
    if unit is policy.unit:
        return f"the guarantee holds under {unit}, as required"
    if policy.unit in implied_units(unit):
        return f"the guarantee holds under {unit}, which implies {policy.unit}, as required"
    raise Unmet(
        f"the guarantee holds under {unit}, which does not imply {policy.unit}; fit with --unit"
        f" {policy.unit}"
    )


def _epsilon(policy: Policy, evidence: Evidence) -> str:
    """Compare epsilon at the policy's delta, under its unit, of all charges that are known."""
    assert policy.epsilon is not None
    assert policy.delta is not None
    delta = policy.delta
    guarantees, counted = _counted(policy, evidence)
    epsilon = largest(guarantees, lambda event: accounting.epsilon(event, delta), (delta,))
    place = f"at delta {rounded_up(delta)} under {policy.unit}"
    value = f"epsilon is {rounded_up(epsilon)} {place}, of {counted}"
    return _at_most(value, epsilon, policy.epsilon)


def _advantage(policy: Policy, evidence: Evidence) -> str:
    """Compare the largest advantage of an attack, under the policy's unit."""
    assert policy.advantage is not None
    guarantees, counted = _counted(policy, evidence)
    deltas = (0.1, 0.03, 0.01, 0.001)
    advantage = largest(guarantees, attack_rates.advantage, deltas)
    value = f"advantage is {rounded_up(advantage)} under {policy.unit}, of {counted}"
    return _at_most(value, advantage, policy.advantage)


def _at_most(value: str, number: float, most: float) -> str:
    """Compare a number that `value` names with the most that it may be."""
    if number > most * (1 + TOLERANCE):
        raise Unmet(f"{value}; at most {most:g} is allowed, so fit at a smaller budget")
    return f"{value}; at most {most:g} is allowed"


def _counted(policy: Policy, evidence: Evidence) -> tuple[list[Guarantee], str]:
    """Return the guarantees that add up for one person or record, under the policy's unit, and say
    of what they are.

    With a ledger they are those of all its charges, those after the release included: what is spent
    counts, whether or not it leaves. Charges of declared parts count as one, of the most expensive
    part. Paid figures and thresholds are of other records; nothing
    proves that nobody is among both, so they are added, unless the ledger has them.
    """
    assert policy.unit is not None
    if COVERS_ONE_FIT in evidence.guarantee.scope:
        raise Unmet(
            f"no number of the release covers all its fits ({excerpt(evidence.guarantee.scope)});"
            " pay for the choice by a search, or charge each fit to a ledger"
        )

    account = evidence.ledger.account
    if account is not None:
        guarantees = account.adding_up(policy.unit)
        n_charges = len(account.charges)
        counted = f"all {n_charges} charges of the ledger"
        if n_charges == 1:
            counted = "the only charge of the ledger"
        elif len(guarantees) < n_charges:
            counted += ", those of declared parts at the most expensive part"
    elif evidence.ledger.given:
        raise Unmet(f"the ledger does not count: {evidence.ledger.fault}")
    else:
        guarantees = [evidence.guarantee]
        counted = "this release alone, without other uses of the data (no ledger was given)"

    further = _not_charged(evidence)
    if further:
        counted += ", and of its paid figures and sets, for somebody among both"
    converted = [_under(policy.unit, one, account) for one in (*guarantees, *further)]
    return converted, counted


def _not_charged(evidence: Evidence) -> list[Guarantee]:
    """Return the guarantees of paid figures and of sets that the ledger does not count.

    Their charges follow the release, and each stands for one use.
    """
    charges = list(evidence.ledger.later)
    further = []
    for other in _of_other_records(evidence.document):
        matching = [charge for charge in charges if same_cost(charge, other)]
        if matching and is_charged_to(evidence.ledger.identity, other.scope):
            charges.remove(matching[0])
        else:
            further.append(other)
    return further


def _of_other_records(document: Document) -> list[Guarantee]:
    """Return the guarantees of paid figures and of prediction sets."""
    name = document.product.name
    return [reading.read_guarantee(part.guarantee, name) for part in _paid_parts(document)]


def _paid_parts(document: Document) -> list[PaidUtility | PredictionSets]:
    """Return the figures (item 15) and the prediction sets (item 8) that other records paid for."""
    sets = None
    if isinstance(document.contents, CompleteContents):
        sets = document.contents.sets
    parts = (document.utility, sets)
    return [part for part in parts if isinstance(part, PaidUtility | PredictionSets)]


def _under(unit: Unit, guarantee: Guarantee, account: Account | None) -> Guarantee:
    """Convert a guarantee to the policy's unit.

    The ledger of a unit per person may declare the most records of a person, by which charges per
    record convert.
    """
    try:
        return guarantee.to(unit)
    except InputError as error:
        fault = error
    if account is not None:
        try:
            return account.converted(guarantee).to(unit)
        except InputError as error:
            fault = error
    raise Unmet(f"{fault}; the policy requires {unit}")


def largest(
    guarantees: Sequence[Guarantee], number: Callable[[Event], float], deltas: Sequence[float]
) -> float:
    """Return the largest number over all choices of one budget group for each guarantee."""
    totals = [guarantee.totals() for guarantee in guarantees]
    if math.prod(map(len, totals)) > MOST_CHOICES:
        raise Unmet(
            f"the budget groups of its charges have more than {MOST_CHOICES} combinations; keep a"
            " ledger of fewer charges with groups"
        )

    numbers = []
    for events in product(*totals):
        event = compose(events)
        try:
            # numbers of extreme events overflow to infinity
            with np.errstate(all="ignore"):
                if sum(accounting.work(event, delta) for delta in deltas) > MOST_WORK:
                    raise Unmet("its events take too long to account; fit by fewer or coarser ones")
                numbers.append(number(event))
        except ArithmeticError as error:
            raise Unmet(f"its events cannot be accounted ({excerpt(str(error))})") from error
    return max(numbers)


def _ledger_since(policy: Policy, evidence: Evidence) -> str:
    """Compare the day of the first line about these data in the ledger."""
    assert policy.ledger_since is not None
    if evidence.ledger.account is None:
        raise Unmet(f"ledger: {evidence.ledger.fault}")
    since = _day(evidence.ledger.account.since[:10])
    if since > policy.ledger_since:
        raise Unmet(
            f"the ledger begins on {since}, and must begin by {policy.ledger_since}; uses of the"
            " data before it are not known"
        )
    return (
        f"the ledger begins on {since}, by {policy.ledger_since}, and still has the line that the"
        " release states as its last"
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Unmet(f"the day {quoted(text)} cannot be read; it must be as 2026-01-31") from error


def _unprotected(policy: Policy, evidence: Evidence) -> str:
    """Compare what the release lists as unprotected with what the policy allows."""
    assert policy.unprotected is not None
    allowed = [CLASS_LIST, *policy.unprotected]
    declared = stated_least_records(evidence.document.contents)
    if policy.least_records is not None and declared is not None:
        # the policy asks for this declaration
        allowed.append(declared_least_records(declared))

    quantities = list(evidence.document.variant.unprotected_quantities)
    for other in _of_other_records(evidence.document):
        quantities += other.unprotected
    others = [quantity for quantity in quantities if not _is_allowed(quantity, allowed)]
    if others:
        listed = "; ".join(map(repr, others))
        raise Unmet(
            f"unprotected is also {excerpt(listed)}; fit without, or allow it in the policy by"
            " these words"
        )
    if not quantities:
        return "nothing is listed as unprotected"
    return f"nothing is unprotected but {excerpt('; '.join(quantities))}"


def _is_allowed(quantity: str, allowed: Sequence[str]) -> bool:
    """Tell whether a quantity is allowed, by its words, with or without those in brackets."""
    return any(quantity == words or quantity.startswith(f"{words} (") for words in allowed)


def _least_records(policy: Policy, evidence: Evidence) -> str:
    """Compare the fewest records of a class that the owner declared."""
    declared = stated_least_records(evidence.document.contents)
    if declared is None:
        raise Unmet(
            f"not stated, and {policy.least_records} records of each class are required; declare"
            " them by fit --least-records"
        )
    assert policy.least_records is not None
    if declared < policy.least_records:
        raise Unmet(
            f"each class is declared to have at least {declared} records, and"
            f" {policy.least_records} are required; leave out smaller classes"
        )
    return (
        f"each class is declared to have at least {declared} records, and"
        f" {policy.least_records} are required"
    )


def _evaluation(policy: Policy, evidence: Evidence) -> str:
    """Compare how the stated figures were measured."""
    assert policy.evaluation is not None
    if evidence.labels:
        raise Unmet(
            "does not apply to labels of public rows, of which nothing was measured; gate them by a"
            " policy without it"
        )
    measured = _measured(evidence.document)
    if measured not in policy.evaluation.split(" or "):
        stated = f"is {measured}" if measured else "is not stated"
        raise Unmet(
            f"the evaluation {stated}, and must be {policy.evaluation}; measure it by tacit"
            " evaluate --record"
        )
    return f"the evaluation is {measured}, and must be {policy.evaluation}"


def _measured(document: Document) -> str:
    """Say how the stated figures were measured: "paid" or "public"; empty if not stated."""
    utility = document.utility
    if isinstance(utility, PaidUtility):
        return "paid"
    if isinstance(utility, Utility | LabelSetUtility) and utility.protection == PUBLIC_TEST_SET:
        return "public"
    return ""


def _signature(policy: Policy, evidence: Evidence) -> str:
    """Require that the owner of the key signed all files."""
    if not evidence.signer:
        raise Unmet(evidence.signature_fault)
    return f"all files are signed by the key {evidence.signer}"


def _encoder(policy: Policy, evidence: Evidence) -> str:
    """Require that the encoder is identified, or that it is one of those of the policy."""
    encoder = evidence.document.public_inputs.encoder
    facts = f"encoder {encoder.name}, revision {encoder.revision}, hash {encoder.hash}"
    if policy.encoder == KNOWN:
        is_named = encoder.name != NOT_STATED
        is_fixed = encoder.revision != NOT_STATED or encoder.hash != NOT_STATED
        if not is_named or not is_fixed:
            raise Unmet(
                f"{facts}: name, and revision or hash, must be stated; make the store by tacit"
                " encode, or state them in its card"
            )
        return facts

    assert policy.encoder is not None
    stated = {encoder.name, f"{encoder.name}@{encoder.revision}", encoder.hash}
    if not (stated - {NOT_STATED}) & set(policy.encoder):
        raise Unmet(f"{facts}: must be one of {excerpt(', '.join(policy.encoder))}")
    return f"{facts}: one of the policy's"


def _audit_days(policy: Policy, evidence: Evidence) -> str:
    """Compare the age of the stated audit, which counts only under a signature: whoever writes the
    document states the day and the result.
    """
    assert policy.audit_days is not None
    audit = evidence.document.audit
    if not isinstance(audit, AuditResult):
        raise Unmet("the release states no audit; audit it by tacit audit --public ROWS --record")
    if not evidence.signer:
        raise Unmet(f"an audit counts only under a signature: {evidence.signature_fault}")

    age = (evidence.today - _day(audit.date)).days
    if age < 0:
        raise Unmet(f"the audit is of {audit.date}, which is still to come; audit it again")
    if age >= policy.audit_days:
        raise Unmet(
            f"the audit of {audit.date} is {age} days old, and must be younger than"
            f" {policy.audit_days}; audit it again"
        )
    return (
        f"the audit of {audit.date} is {age} days old, younger than {policy.audit_days}, and signed"
    )


# What each key of a policy compares, in the order of the lines; `delta` is part of `epsilon`.
RULES: dict[str, Callable[[Policy, Evidence], str]] = {
    "unit": _unit,
    "epsilon": _epsilon,
    "ledger_since": _ledger_since,
    "unprotected": _unprotected,
    "least_records": _least_records,
    "evaluation": _evaluation,
    "signature": _signature,
    "encoder": _encoder,
    "advantage": _advantage,
    "audit_days": _audit_days,
}
