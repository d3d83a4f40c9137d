"""What a dossier says of a release, section by section, as values that the page and its JSON twin
share.

Every fact names its source: an item of the card, or the check that this program made. Nothing is
added to what the document states, and what nobody stated reads "not stated".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from pydantic import BaseModel

from tacit.privacy.decimals import rounded_up
from tacit.privacy.unit import Unit
from tacit.privacy.words import right_guesses
from tacit.releases.audited import AuditResult
from tacit.releases.combination import part_lines
from tacit.releases.fields import NOT_STATED, Numbers
from tacit.releases.gate import Verdict
from tacit.releases.opening import MOST_CLASSES as MOST_AT_A_GLANCE
from tacit.releases.opening import (
    classes_words,
    opening,
    protection_words,
    stated_advantage,
)
from tacit.releases.release import Release
from tacit.releases.schema import (
    Accounting,
    Adaptation,
    CombinedPattern,
    CompleteContents,
    Document,
    LearnerMechanisms,
    LedgerPattern,
    Names,
    OlderProfile,
    Profile,
)
from tacit.report import attack
from tacit.report.attack import percent_up
from tacit.report.dossier_parts import (
    MOST_CLASSES,
    Checks,
    Dossier,
    Fact,
    Section,
    Table,
    bound_text,
    listed,
    stated_fields,
    value_text,
)
from tacit.report.dossier_utility import utility_section, with_sets
from tacit.version import __version__

CONCLUSIONS = "What can be concluded about one person"

THIS_CHECK = "this check"

# parts, or sources of recipes, that are listed
MOST_PARTS = 20
IN_GENERAL = "holds for every such release"

_UNITS = {
    "record": "records; which of them are of one person was not used",
    "person": "persons, who may have several records each",
}
_OF_PERSONS_IN_SOME_PARTS = (
    "records; which of them are of one person was used in the parts whose rows state a unit per"
    " person, and not in the others"
)
_SEVERAL_RECORDS = (
    "The numbers here are about one record at a time. What they are for a person with several"
    " records is not stated."
)
_IN_COMMON = (
    "What many records have in common is what the model learns. It may be concluded about anybody"
    " who is like them, in the data or not."
)
_RAN_AS_STATED = (
    "That the stated code ran on the stated data, that its noise was secret, and that the public"
    " inputs were public: this is the maker's word. A signature shows whose word it is."
)


def dossier(release: Release, checks: Checks) -> Dossier:
    """Return the dossier of a release that was verified."""
    document = release.document
    rates = document.profile.attack_rates
    marked = tuple((rate.false_positive_rate, rate.true_positive_rate) for rate in rates)
    return Dossier(
        title=document.product.name,
        stamp=document.stamp or "",
        tacit=__version__,
        date=checks.day.isoformat(),
        files=dict(checks.files),
        glance=tuple(_glance(document, checks)),
        sections=(
            _learned(document),
            _conclusions(document),
            with_sets(utility_section(document), document),
            _checked(document, checks),
            _not_covered(document),
            _details(document),
        ),
        right_guesses_of_100=float(right_guesses(stated_advantage(document))),
        marked=marked,
        curve=tuple(attack.curve(release.guarantee, marked)),
    )


def _glance(document: Document, checks: Checks) -> Iterator[Fact]:
    """Yield the facts of the opening, and the answer of the policy."""
    sources = ("items 1, 8, 16", "item 8", "item 15", f"item 1, {THIS_CHECK}", "items 4, 6")
    facts = opening(document, checks.signature).facts()
    for (name, text), source in zip(facts.items(), sources, strict=True):
        yield Fact(name, text, source)
    yield Fact("Policy", _answer(checks.verdict), THIS_CHECK)


def _answer(verdict: Verdict | None) -> str:
    """Say whether the release meets the policy."""
    if verdict is None:
        return "None was given, so no rule decided whether it may leave."
    broken = [ruling.rule for ruling in verdict.rulings if not ruling.met]
    if broken:
        return f"{_policy(verdict)}: NO. Not met: {', '.join(broken)}."
    return f"{_policy(verdict)}: yes, all {len(verdict.rulings)} rules are met."


def _policy(verdict: Verdict) -> str:
    """Return the name of the policy's file, without its folder."""
    return Path(verdict.policy).name


def _learned(document: Document) -> Section:
    """What was learned, and from whom."""
    product = document.product
    unit = Unit(document.privacy_unit.adjacency)
    facts = [
        Fact("Maker, and day", f"{product.curator}, {product.date}", "item 1"),
        Fact("From whom", _from_whom(document, unit), "item 4"),
        Fact("Protected", document.privacy_unit.contribution_bound, "item 4"),
        Fact("Accesses to the data", document.accesses.covered, "item 7"),
        Fact("Noise, by use", document.accounting.composition, "item 9"),
        Fact("Method", _method(document), "item 10"),
        *_ledger(document),
        *_parts(document),
        Fact("Trust", f"{document.trust.setting}: {document.trust.who_sees_what}", "item 3"),
        Fact("What leaves", document.contents.what, "item 8"),
        Fact("Fewest records of a class", _least_records(document), "item 8"),
        Fact("Public data", _provenance(document.public_inputs.public_data), "item 16"),
        Fact("Encoder", _provenance(document.public_inputs.encoder), "item 16"),
        Fact("Names of classes", _class_names(document), "item 16"),
    ]
    n_classes = len(document.contents.classes)
    if n_classes > MOST_AT_A_GLANCE:
        # the facts at the top name the first of them
        facts.insert(1, Fact("Classes", classes_words(document, MOST_CLASSES), "item 8"))
    private = "records whose labels are private" if unit.rows_public else "private records"
    answer = (
        f"A model with {n_classes} classes was learned from {private}. How many records there were"
        " is not stated."
    )
    return Section("What was learned, and from whom", answer, tuple(facts))


def _method(document: Document) -> str:
    """Name the learner and its public parameters, if the document has them."""
    if isinstance(document.pattern, CombinedPattern):
        return "made of summaries, which were added up"
    if not isinstance(document.mechanisms, LearnerMechanisms):
        return NOT_STATED
    learner = document.mechanisms.learner
    parameters = [
        f"{name} = {value_text(value)}"
        for name, value in learner.parameters.items()
        if value is not None
    ]
    words = "; ".join([learner.method, *parameters])
    if learner.left_out:
        words += f"; not stated: {', '.join(learner.left_out)}"
    return words


def _least_records(document: Document) -> str:
    """Say how many records the owner declared each class to have at least."""
    least = NOT_STATED
    if isinstance(document.contents, CompleteContents):
        least = str(document.contents.least_records)
    if least == NOT_STATED:
        return least
    return f"{least}, as the owner declared"


def _ledger(document: Document) -> list[Fact]:
    """Return what the ledger says, since when, and the hash of its last line."""
    pattern = document.pattern
    since = NOT_STATED
    head = NOT_STATED
    if isinstance(pattern, LedgerPattern):
        since = pattern.ledger_since
        head = pattern.ledger_head
    return [
        Fact("Ledger", pattern.ledger, "item 12"),
        Fact("Ledger since", since, "item 12"),
        Fact("Ledger's last hash", head, "item 12"),
    ]


def _from_whom(document: Document, unit: Unit) -> str:
    """Records or persons. Parts under a unit per person used ids of persons, also where the release
    of all parts is stated per record.
    """
    pattern = document.pattern
    if isinstance(pattern, CombinedPattern) and unit.entity == "record":
        costs = pattern.combination.costs
        if any(cost.recorded().unit.per_person for cost in costs):
            return _OF_PERSONS_IN_SOME_PARTS
    return _UNITS[unit.entity]


def _parts(document: Document) -> list[Fact]:
    """The parts of a release that was made of summaries, and what these were computed from."""
    pattern = document.pattern
    if not isinstance(pattern, CombinedPattern):
        return []
    lines = part_lines(pattern.combination)
    facts = [Fact("Parts", _first_of(lines), "item 12")]
    if pattern.sources:
        sources = [
            f"{source.what} from {source.release} (of {', '.join(source.parts) or NOT_STATED})"
            for source in pattern.sources
        ]
        facts.append(Fact("Computed from earlier releases", _first_of(sources), "item 12"))
    return facts


def _first_of(lines: list[str]) -> str:
    """The first lines, and how many more there are."""
    more = f"; and {len(lines) - MOST_PARTS} more" if len(lines) > MOST_PARTS else ""
    return "; ".join(lines[:MOST_PARTS]) + more


def _class_names(document: Document) -> str:
    names = document.public_inputs.class_names
    if isinstance(names, Names):
        return f"{names.rows} rows; {_provenance(names)}"
    return "none were used"


def _provenance(model: BaseModel) -> str:
    """Return a public input by all that the document states of it, but its premise."""
    return stated_fields(model.model_dump(exclude={"premise", "rows"}))


def _conclusions(document: Document) -> Section:
    """What can be concluded about one person."""
    unit = Unit(document.privacy_unit.adjacency)
    accounting = document.accounting
    facts = []
    if isinstance(accounting, Accounting):
        facts.append(Fact("In words", accounting.in_words, "item 9"))
    if not unit.per_person:
        facts.append(Fact("Persons", _SEVERAL_RECORDS, "item 4"))
    facts += [
        Fact("Personal budgets", document.parameters.group_budgets, "item 5"),
        Fact("Not hidden", _IN_COMMON, IN_GENERAL),
    ]
    tables = [_attacks(document.profile), _epsilons(document)]
    if document.parameters.conversions or document.parameters.groups:
        tables.append(_other_units(document))
    return Section(
        CONCLUSIONS,
        protection_words(document),
        tuple(facts),
        tuple(tables),
    )


def _attacks(profile: OlderProfile) -> Table:
    """What attacks reach at the stated rates of false alarms."""
    rows = []
    for rate in profile.attack_rates:
        alarms = rate.true_positive_rate + rate.false_positive_rate
        right = rate.true_positive_rate / alarms
        rows.append(
            (
                f"{100 * rate.false_positive_rate:g}%",
                percent_up(rate.true_positive_rate),
                percent_up(right),
            )
        )
    caption = "What the best attack may reach, if it knows everything else (item 6)"
    if isinstance(profile, Profile):
        caption = f"Detection by attacks that know everything else: {profile.rates_are} (item 6)"
    header = ("false alarms", "detected, at most", "alarms that are right at even odds, at most")
    return Table(caption, header, tuple(rows))


def _epsilons(document: Document) -> Table:
    """The parameters of the guarantee."""
    parameters = document.parameters
    rows = [
        (f"epsilon at delta = {rounded_up(point.delta)}", bound_text(point.epsilon))
        for point in parameters.epsilons
    ]
    rows += [
        ("pure epsilon", bound_text(parameters.pure_epsilon)),
        ("rho (zCDP)", bound_text(parameters.rho)),
        ("mu (Gaussian differential privacy)", bound_text(document.profile.mu)),
    ]
    unit = document.privacy_unit.adjacency
    caption = f"The guarantee in numbers, under unit {unit} (item 5)"
    return Table(caption, ("", "bound"), tuple(rows))


def _other_units(document: Document) -> Table:
    """The numbers under other units, and of each group of personal budgets."""
    parameters = document.parameters
    deltas = [f"epsilon at {rounded_up(point.delta)}" for point in parameters.epsilons]
    rows = [(f"unit {part.unit}", *_row(part)) for part in parameters.conversions]
    rows += [(f"group {part.name}", *_row(part)) for part in parameters.groups]
    header = ("", "pure epsilon", *deltas)
    return Table("Under other units, and of groups (item 5)", header, tuple(rows))


def _row(numbers: Numbers) -> tuple[str, ...]:
    epsilons = [bound_text(point.epsilon) for point in numbers.epsilons]
    return (bound_text(numbers.pure_epsilon), *epsilons)


def _checked(document: Document, checks: Checks) -> Section:
    """What was checked, and by whom."""
    program = f"tacit {__version__} on {checks.day.isoformat()}"
    facts = [
        Fact("Hash of the arrays", f"{program}: agrees with item 8", THIS_CHECK),
        Fact(
            "Numbers and words about privacy",
            f"{program}: computed again from the recorded events, and all agree",
            THIS_CHECK,
        ),
        Fact("Card", f"{program}: says what the document says", THIS_CHECK),
        Fact("Signature", checks.signature, THIS_CHECK),
        Fact("Audit", _audit(document, checks.day), "item 17"),
        Fact("Not checked here", _RAN_AS_STATED, IN_GENERAL),
    ]
    hashes = tuple(checks.files.items())
    tables = [Table("SHA-256 of each file that was checked", ("file", "SHA-256"), hashes)]
    if checks.verdict is not None:
        tables.insert(0, _rules(checks.verdict))
        unchecked = listed(checks.verdict.unchecked)
        facts.append(Fact("Rules not in the policy", unchecked, THIS_CHECK))
    answer = f"The files and every stated number about privacy were checked by {program}."
    return Section("What was checked, and by whom", answer, tuple(facts), tuple(tables))


def _rules(verdict: Verdict) -> Table:
    """The answer of each rule of a policy."""
    rows = [
        (ruling.rule, "met" if ruling.met else "NOT MET", ruling.line) for ruling in verdict.rulings
    ]
    return Table(f"Rules of {_policy(verdict)}", ("rule", "answer", "why"), tuple(rows))


def _audit(document: Document, day: date) -> str:
    """Say what an audit found, and how old it is."""
    audit = document.audit
    if not isinstance(audit, AuditResult):
        return stated_fields(audit.model_dump())

    further = audit.model_dump(include={"unit", "assumption", "attacks", "setup", "meaning"})
    return (
        f"{audit.result}; epsilon is at least {value_text(audit.lower_bound)} at delta"
        f" {rounded_up(audit.delta)} with confidence {audit.confidence:g}, and"
        f" {bound_text(audit.promise)} is promised; made by tacit {audit.version} on {audit.date},"
        f" {_age(audit.date, day)}; {stated_fields(further)}; the maker's statement, which only a"
        " signature vouches for"
    )


def _age(made: str, day: date) -> str:
    """Say how old a result is, whatever its file says."""
    try:
        days = (day - date.fromisoformat(made)).days
    except ValueError:
        return "of a day that does not exist"
    if days < 0:
        return "dated after this check"
    return f"{days} days old"


def _not_covered(document: Document) -> Section:
    """What is not covered."""
    variant = document.variant
    inputs = document.public_inputs
    facts = [
        Fact("Not protected", listed(variant.unprotected_quantities), "item 2"),
        Fact("Taken as public", listed(variant.public_arguments), "item 2"),
        Fact("Outside the guarantee", document.accesses.outside, "item 7"),
        Fact("Other releases", document.pattern.pattern, "item 12"),
        Fact("Premise on public data", inputs.public_data.premise, "item 16"),
    ]
    if isinstance(inputs.class_names, Names):
        facts.append(Fact("Premise on class names", inputs.class_names.premise, "item 16"))
    if isinstance(document.post_processing, Adaptation):
        facts.append(Fact("Premise on adaptation", document.post_processing.premise, "item 13"))
    facts += [
        Fact("Assumptions", listed(document.accounting.assumptions), "item 9"),
        Fact("Bounds that depend on data", document.data_dependent_bounds.bounds, "item 11"),
    ]
    answer = (
        "The numbers hold for what is listed as covered, under the premises below, and for nothing"
        " else that is known about the same people."
    )
    return Section("What is not covered", answer, tuple(facts))


def _details(document: Document) -> Section:
    """What experts look up."""
    mechanisms = document.mechanisms
    implementation = document.implementation
    facts = [
        Fact("Statement", document.accounting.statement, "item 9"),
        Fact("Accounting", document.accounting.method, "item 9"),
        Fact("Noise, and its seed", f"{mechanisms.noise}; {mechanisms.seed}", "item 10"),
        Fact("Mechanisms", value_text(mechanisms.facts), "item 10"),
        Fact("Later use", document.post_processing.post_processing, "item 13"),
        Fact("Versions", value_text(implementation.versions), "item 14"),
        Fact("Commit", implementation.commit, "item 14"),
        Fact("Floating point", implementation.float_defences, "item 14"),
        Fact("Randomness", implementation.randomness, "item 14"),
        Fact("Document", f"version {document.version}", "release.json"),
    ]
    answer = "For experts: the formal statement, and how the release was made."
    return Section("Details", answer, tuple(facts))
