"""What a dossier says of a release, section by section, as values that the page and its JSON twin
share.

Every fact names its source: an item of the card, or the check that this program made. Nothing is
added to what the document states, and what nobody stated reads "not stated".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tacit.privacy.decimals import noise_rounded_down, rounded_up
from tacit.privacy.unit import Unit
from tacit.privacy.words import right_guesses
from tacit.releases.audited import AuditResult
from tacit.releases.fields import NOT_STATED, Numbers
from tacit.releases.gate import Verdict
from tacit.releases.measured import HIDDEN, PaidUtility
from tacit.releases.opening import MOST_CLASSES as MOST_AT_A_GLANCE
from tacit.releases.opening import (
    classes_words,
    opening,
    protection_words,
    stated_advantage,
    utility_words,
)
from tacit.releases.release import Release
from tacit.releases.schema import (
    Accounting,
    Adaptation,
    CompleteContents,
    Document,
    LabelSetUtility,
    LearnerMechanisms,
    LedgerPattern,
    Names,
    OlderProfile,
    Profile,
    Utility,
    sets_of,
)
from tacit.report import attack
from tacit.report.attack import percent_up
from tacit.version import __version__

# classes that a page names, and of which it shows the accuracy
MOST_CLASSES = 200

CONCLUSIONS = "What can be concluded about one person"
# numbers that are rounded up, so that a dossier promises no more than the document
_UPPER_BOUNDS = (
    "epsilon",
    "pure_epsilon",
    "rho",
    "mu",
    "true_positive_rate",
    "advantage",
    "promise",
    "delta",
)

THIS_CHECK = "this check"
IN_GENERAL = "holds for every such release"

_UNITS = {
    "record": "records; which of them are of one person was not used",
    "person": "persons, who may have several records each",
}
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


@dataclass(frozen=True)
class Fact:
    """A fact with its source."""

    name: str
    text: str
    source: str


@dataclass(frozen=True)
class Table:
    """A table, whose first column names its rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A question of the committee: its answer in a sentence, the facts and the tables."""

    title: str
    answer: str
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Checks:
    """What was checked of a release when its dossier was made.

    Parameters
    ----------
    day : date
    files : mapping of str to str
        SHA-256 of each file of the folder, by its name.
    signature : str
        A sentence on who signed the files, and whether that was checked.
    verdict : Verdict, optional
        Of a policy.
    """

    day: date
    files: Mapping[str, str]
    signature: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Dossier:
    """All that the page and its twin say.

    `curve` has points of the trade-off curve: rates of false alarms and of detection. `marked` are
    those that the release states.
    """

    title: str
    stamp: str
    tacit: str
    date: str
    files: dict[str, str]
    glance: tuple[Fact, ...]
    sections: tuple[Section, ...]
    right_guesses_of_100: float
    marked: tuple[tuple[float, float], ...]
    curve: tuple[tuple[float, float], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the dossier as JSON can state it."""
        return {"format": "tacit-dossier", "version": 1, **asdict(self)}


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
            _with_sets(_utility(document), document),
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
        Fact("From whom", _UNITS[unit.entity], "item 4"),
        Fact("Protected", document.privacy_unit.contribution_bound, "item 4"),
        Fact("Accesses to the data", document.accesses.covered, "item 7"),
        Fact("Noise, by use", document.accounting.composition, "item 9"),
        Fact("Method", _method(document), "item 10"),
        *_ledger(document),
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
    if not isinstance(document.mechanisms, LearnerMechanisms):
        return NOT_STATED
    learner = document.mechanisms.learner
    parameters = [
        f"{name} = {_plain(value)}"
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


def _class_names(document: Document) -> str:
    names = document.public_inputs.class_names
    if isinstance(names, Names):
        return f"{names.rows} rows; {_provenance(names)}"
    return "none were used"


def _provenance(model: BaseModel) -> str:
    """Return a public input by all that the document states of it, but its premise."""
    return _stated(model.model_dump(exclude={"premise", "rows"}))


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
        (f"epsilon at delta = {rounded_up(point.delta)}", _bound(point.epsilon))
        for point in parameters.epsilons
    ]
    rows += [
        ("pure epsilon", _bound(parameters.pure_epsilon)),
        ("rho (zCDP)", _bound(parameters.rho)),
        ("mu (Gaussian differential privacy)", _bound(document.profile.mu)),
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
    epsilons = [_bound(point.epsilon) for point in numbers.epsilons]
    return (_bound(numbers.pure_epsilon), *epsilons)


def _bound(value: float | str) -> str:
    if isinstance(value, str):
        return "none"
    return rounded_up(value)


_IN_TABLES = {"per_class", "per_label", "per_class_intervals", "groups", "guarantee"}


def _utility(document: Document) -> Section:
    """How well it works, and how that was measured."""
    utility = document.utility
    title = "How well it works, and how that was measured"
    answer = utility_words(document)
    if isinstance(utility, str):
        return Section(title, answer, ())

    shares: Mapping[str, float] = {}
    if isinstance(utility, Utility):
        shares = utility.per_class
    elif isinstance(utility, LabelSetUtility):
        shares = utility.per_label
    tables = []
    if shares:
        tables.append(_per_class(shares, isinstance(utility, LabelSetUtility)))
    stated = utility.model_dump(exclude=_IN_TABLES)
    if isinstance(utility, PaidUtility):
        tables = [_per_paid_class(utility)]
        if utility.groups:
            tables.append(_by_group(utility))
    facts = tuple(
        Fact(_words(name).capitalize(), _plain(value, name), "item 15")
        for name, value in stated.items()
    )
    return Section(title, answer, facts, tuple(tables))


def _per_paid_class(utility: PaidUtility) -> Table:
    """The accuracy of each class with its interval, the lowest first, then those that noise
    hides.
    """
    intervals = utility.per_class_intervals
    ordered = sorted(intervals, key=lambda name: utility.per_class.get(name, 2.0))
    rows = []
    for name in ordered[:MOST_CLASSES]:
        low, high = intervals[name]
        share = utility.per_class.get(name)
        shown = HIDDEN if share is None else f"{100 * share:.1f}"
        rows.append((name, shown, f"{100 * low:.1f} to {100 * high:.1f}"))
    header = ("class", "right, of 100", "95% interval")
    return Table(_caption_of_classes(len(ordered)), header, tuple(rows))


def _caption_of_classes(n_classes: int) -> str:
    """Return the caption of a table of classes, of which the first are shown."""
    caption = "Each class of the test set, the lowest first (item 15)"
    if n_classes > MOST_CLASSES:
        caption += f"; {MOST_CLASSES} of {n_classes}"
    return caption


def _by_group(utility: PaidUtility) -> Table:
    """The accuracy of each declared group, with its interval."""
    rows = []
    for group in utility.groups:
        figure = group.accuracy
        shown = figure if isinstance(figure, str) else f"{100 * figure:.1f}"
        low, high = group.accuracy_interval
        rows.append((group.name, shown, f"{100 * low:.1f} to {100 * high:.1f}"))
    caption = f"Groups by {utility.grouped_by} (item 15)"
    return Table(caption, ("group", "right, of 100", "95% interval"), tuple(rows))


def _per_class(shares: Mapping[str, float], several: bool) -> Table:
    """The figure of each class, the lowest first."""
    ordered = sorted(shares.items(), key=lambda pair: pair[1])
    rows = [(name, f"{100 * share:.1f}") for name, share in ordered[:MOST_CLASSES]]
    figure = "average precision, of 100" if several else "right, of 100"
    return Table(_caption_of_classes(len(ordered)), ("class", figure), tuple(rows))


def _with_sets(section: Section, document: Document) -> Section:
    """Add the prediction sets that a release carries, and what they cost."""
    sets = sets_of(document.contents)
    if sets is None:
        return section
    rule = f"{sets.rule}, for level {sets.level:g}; {sets.promise}"
    facts = (
        Fact("Prediction sets", rule, "item 8"),
        Fact("Price of the sets", f"{sets.statement} {sets.about}", "item 8"),
    )
    return replace(section, facts=section.facts + facts)


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
        unchecked = _listed(checks.verdict.unchecked)
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
        return _stated(audit.model_dump())

    further = audit.model_dump(include={"unit", "assumption", "attacks", "setup", "meaning"})
    return (
        f"{audit.result}; epsilon is at least {_plain(audit.lower_bound)} at delta"
        f" {rounded_up(audit.delta)} with confidence {audit.confidence:g}, and"
        f" {_bound(audit.promise)} is promised; made by tacit {audit.version} on {audit.date},"
        f" {_age(audit.date, day)}; {_stated(further)}; the maker's statement, which only a"
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
        Fact("Not protected", _listed(variant.unprotected_quantities), "item 2"),
        Fact("Taken as public", _listed(variant.public_arguments), "item 2"),
        Fact("Outside the guarantee", document.accesses.outside, "item 7"),
        Fact("Other releases", document.pattern.pattern, "item 12"),
        Fact("Premise on public data", inputs.public_data.premise, "item 16"),
    ]
    if isinstance(inputs.class_names, Names):
        facts.append(Fact("Premise on class names", inputs.class_names.premise, "item 16"))
    if isinstance(document.post_processing, Adaptation):
        facts.append(Fact("Premise on adaptation", document.post_processing.premise, "item 13"))
    facts += [
        Fact("Assumptions", _listed(document.accounting.assumptions), "item 9"),
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
        Fact("Mechanisms", _plain(mechanisms.facts), "item 10"),
        Fact("Later use", document.post_processing.post_processing, "item 13"),
        Fact("Versions", _plain(implementation.versions), "item 14"),
        Fact("Commit", implementation.commit, "item 14"),
        Fact("Floating point", implementation.float_defences, "item 14"),
        Fact("Randomness", implementation.randomness, "item 14"),
        Fact("Document", f"version {document.version}", "release.json"),
    ]
    answer = "For experts: the formal statement, and how the release was made."
    return Section("Details", answer, tuple(facts))


def _listed(parts: Sequence[str]) -> str:
    return "; ".join(parts) or "none listed"


def _stated(fields: Mapping[str, Any]) -> str:
    """Return fields of a document by their names."""
    return "; ".join(f"{_words(name)}: {_plain(value, name)}" for name, value in fields.items())


def _plain(value: Any, name: str = "") -> str:
    """Return a value of a document as text; `name` is that of its field."""
    if value is None:
        return NOT_STATED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(f"{key} = {_plain(part, key)}" for key, part in value.items()) or "none"
    if isinstance(value, tuple | list):
        return ", ".join(_plain(part, name) for part in value) or "none"
    if isinstance(value, float) and name.startswith("noise"):
        return noise_rounded_down(value)
    if isinstance(value, float):
        return rounded_up(value) if name in _UPPER_BOUNDS else f"{value:.6g}"
    return str(value)


def _words(name: str) -> str:
    """Return the name of a field as words."""
    return name.replace("_", " ")
