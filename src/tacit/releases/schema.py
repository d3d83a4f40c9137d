"""The document of a release: one strict model per item of what a release must say.

An unknown fact is "not stated"; `fields.py` has the types of fields. A changed field or wording
adds a version: `Release.verify` computes again what a document says of its guarantee, as documents
of that version say it (`tacit.privacy.older`). Versions 1 and 2 are no longer read. Version 7
states the columns of the table that a release takes; a release of rows without named columns was
still written as version 6. Version 8 states the task where records may have several labels or
classes form a tree. Version 9, in which all releases of a fit are written, states all of this
always, and also the learner with its public parameters, the head of the ledger, prediction sets,
and how many records each class was declared to have at least. Version 10 is that of releases that
were made of summaries, and states their parts. Secure noise of documents before version 6 is
discrete and came from OpenDP, which is "opendp" since. Documents of version 4 do not say whether
attacks reach the rates of item 6, nor the recipe of the encoder. Those of version 3 also lack
epsilon at 1e-5, the advantage and the words of item 9; their cards lack how to predict without
tacit.

A type `Literal` and its default repeat the same text, also that of a constant: type checkers accept
only the text itself there.
"""

from dataclasses import fields
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from tacit.models.decisions import AnyDecision
from tacit.models.label_sets import RareBy
from tacit.releases.audited import AuditResult
from tacit.releases.combination import Combination, Source
from tacit.releases.fields import (
    NOT_STATED,
    Day,
    DType,
    Fact,
    Label,
    Model,
    Number,
    Numbers,
    Positive,
    Recorded,
    Share,
    Text,
    UnitName,
)
from tacit.releases.measured import (
    PAID_SINCE,
    CombinedUtility,
    PaidUtility,
    PredictionSets,
)

FORMAT = "tacit-release"
Version = Literal[3, 4, 5, 6, 7, 8, 9, 10]
VERSIONS = get_args(Version)
VERSION: Literal[9] = 9
"""That of releases of a fit."""
COMBINED_VERSION: Literal[10] = 10
"""That of releases that were made of summaries, or state paid figures of several parts."""
NOT_FOR_RELEASE = "NOT FOR RELEASE"

# the unprotected quantity that a release lists where it states a minority accuracy
CLASS_SIZES = "training class sizes (through minority accuracy)"
LABEL_COUNTS = "training counts of labels (through the rare third)"

# what the scope of a guarantee says where more fits were made than it covers
COVERS_ONE_FIT = "the statement covers one"

# `protection` of figures that were measured on public rows
PUBLIC_TEST_SET = "public test set"

FOREIGN_UTILITY = (
    "a release of several labels has a mean average precision as its utility, and others have an"
    " accuracy"
)


class Product(Model):
    """Item 1."""

    name: Text
    curator: Text
    description: Text
    intended_use: Text
    date: Day


class Variant(Model):
    """Item 2."""

    variant: Literal["pure", "zCDP", "approximate", "none"]
    data_domain: Text
    unprotected_quantities: tuple[Text, ...]
    public_arguments: tuple[Text, ...]


class Trust(Model):
    """Item 3."""

    setting: Literal["central", "local"]
    who_sees_what: Text


class PrivacyUnit(Model):
    """Item 4."""

    adjacency: UnitName
    hides: Text
    contribution_bound: Text


class Converted(Numbers):
    """The same release under another unit."""

    unit: UnitName
    rho: Number


class Group(Numbers):
    """One group of personal budgets."""

    name: Text


class Parameters(Numbers):
    """Item 5."""

    rho: Number
    conversions: tuple[Converted, ...]
    groups: tuple[Group, ...]
    group_budgets: Text


class AttackRate(Model):
    """The most that any membership attack reaches."""

    false_positive_rate: Share
    true_positive_rate: Share


class OlderProfile(Model):
    """Item 6 of version 3."""

    mu: Number  # that of Gaussian differential privacy
    attack_rates: tuple[AttackRate, ...]


class ProfileOf4(OlderProfile):
    """Item 6 of version 4."""

    advantage: Share


class Profile(ProfileOf4):
    """Item 6."""

    rates_are: Literal["those of the best attack", "at most so large"]


class Accesses(Model):
    """Item 7."""

    covered: Text
    outside: Text


class Array(Model):
    """One array of the file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_.]{1,80}$")]
    dtype: DType
    shape: tuple[Positive, ...]


class Contents(Model):
    """Item 8."""

    what: Text
    classes: Annotated[tuple[Label, ...], Field(min_length=1)]
    width: Positive
    decision: Annotated[AnyDecision, Field(discriminator="rule")]
    arrays: tuple[Array, ...]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    @field_validator("decision", mode="before")
    @classmethod
    def _check_complete(cls, decision: Any) -> Any:
        """Refuse a decision that leaves out a field with a default, and read lists as tuples.

        A document must state every field: a default could change in a later version.
        """
        # a decision that was built here is complete, and pydantic refuses anything else
        if not isinstance(decision, dict):
            return decision

        for kind in get_args(AnyDecision):
            if decision.get("rule") != kind.rule:
                continue
            missing = {field.name for field in fields(kind)} - set(decision)
            if missing:
                raise ValueError(f"Field required: {', '.join(sorted(missing))}")

        # JSON has no tuples, and strict types take no lists for them
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in decision.items()
        }

    @field_validator("classes")
    @classmethod
    def _check_labels(cls, classes: tuple[Label, ...]) -> tuple[Label, ...]:
        """Refuse labels of several types, and a label twice."""
        if len({type(label) for label in classes}) > 1:
            raise ValueError("labels must be all ints, all floats, all strings or all bools")
        if len(set(classes)) < len(classes):
            raise ValueError("a label is named twice")
        return classes


# a value of a declared column, such as its levels
Declared = int | float | Text | list[int | float | Text]


class TableContents(Contents):
    """Item 8 of a release that takes tables: its columns, by which new tables are matched.

    Names alone are those of features that are taken as they are. Columns with declarations are
    those of a schema, as `tacit.models.table_schema.TableSchema.declaration` writes them, with the
    texts that stand for missing values, and the name of the column of labels.
    """

    columns: tuple[Text, ...] | dict[Text, dict[Text, Declared]]
    missing_texts: tuple[Text, ...] = ()
    label: Text = NOT_STATED
    about_columns: Literal[
        "names of columns are facts of the data's layout, which its owner publishes with the"
        " release; bounds and levels were declared from public knowledge"
    ] = (
        "names of columns are facts of the data's layout, which its owner publishes with the"
        " release; bounds and levels were declared from public knowledge"
    )


class Task(Model):
    """What the classes are to each other and to a record, where a record does not just have one of
    them.

    With `labels` "several", a record may have any set of the classes. `tree` has the parent of each
    node of a tree of classes, as texts; it is empty without a tree.
    """

    labels: Literal["one", "several"]
    tree: dict[Text, Text]


class TaskContents(TableContents):
    """Item 8 of a release that states its task; without the columns of a table these are empty."""

    task: Task


class CompleteContents(TaskContents):
    """Item 8 since version 9; what does not apply is empty, "none" or "not stated".

    `least_records` is the number of records that the owner declared each class to have at least.
    """

    sets: PredictionSets | Literal["none"]
    least_records: Positive | Literal["not stated"]


def declared_least_records(number: int) -> str:
    """Name the unprotected quantity of a release that states `least_records`."""
    return f"that each class has at least {number} records (declared)"


def stated_least_records(contents: Contents) -> int | None:
    """Return the number of records that each class was declared to have at least, if any."""
    if isinstance(contents, CompleteContents) and isinstance(contents.least_records, int):
        return contents.least_records
    return None


def has_several_labels(contents: Contents) -> bool:
    """Tell whether a record may have several of the classes, none included."""
    return isinstance(contents, TaskContents) and contents.task.labels == "several"


def sets_of(contents: Contents) -> PredictionSets | None:
    """Return the prediction sets that a release carries; None if it carries none."""
    if isinstance(contents, CompleteContents) and isinstance(contents.sets, PredictionSets):
        return contents.sets
    return None


class OlderAccounting(Model):
    """Item 9 of version 3."""

    method: Text
    composition: Text
    assumptions: tuple[Text, ...]
    statement: Text


class Accounting(OlderAccounting):
    """Item 9."""

    in_words: Text


class Mechanisms(Model):
    """Item 10."""

    noise: Literal["secure", "opendp", "research"]
    seed: Text
    facts: dict[Text, Fact | tuple[Fact, ...]]


class RecordedLearner(Model):
    """The learner, so that others can fit it to rows of their own.

    `method` is its name on the command line. `parameters` are public arguments of the fit.
    `left_out` names those that were passed and that a document cannot state, such as arrays.
    `inputs` are those of "public" and "names" that were passed: public rows, which item 16 names.
    """

    method: Text
    parameters: dict[Text, Fact | tuple[Fact, ...] | None]
    left_out: tuple[Text, ...]
    inputs: tuple[Literal["public", "names"], ...]


class LearnerMechanisms(Mechanisms):
    """Item 10 since version 9."""

    learner: RecordedLearner


class DataDependentBounds(Model):
    """Item 11."""

    bounds: Text


class Pattern(Model):
    """Item 12."""

    pattern: Text
    ledger: Text


class LedgerPattern(Pattern):
    """Item 12 since version 9.

    `ledger_since` is the day of the first line of the ledger, and `ledger_head` the hash of its
    last line when the release was made.
    """

    ledger_since: Day
    ledger_head: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | Literal["not stated"]


class CombinedPattern(LedgerPattern):
    """Item 12 of a release that was made of summaries, since version 10.

    Each owner's ledger counts what their summaries cost, so no ledger is stated here. `sources` say
    what of the recipe of the summaries was computed from earlier releases.
    """

    combination: Combination
    sources: tuple[Source, ...] = ()


class PostProcessing(Model):
    """Item 13."""

    post_processing: Text


class Adaptation(PostProcessing):
    """Item 13 of a release that was adapted to unlabelled rows: how many rows, whose, and what
    makes them usable.
    """

    rows: Positive
    name: Text = NOT_STATED
    hash: Text = NOT_STATED
    held_out_gain: float  # of the log likelihood of a row, in nats
    premise: Literal[
        "the rows are public, or no guarantee covers their records, and no private record that a"
        " guarantee covers is among them; otherwise no statement here holds"
    ] = (
        "the rows are public, or no guarantee covers their records, and no private record that a"
        " guarantee covers is among them; otherwise no statement here holds"
    )


class Implementation(Model):
    """Item 14."""

    versions: dict[Text, Text]
    commit: Text
    float_defences: Text
    randomness: Text


class Utility(Model):
    """Item 15: what was measured on a named test set.

    A minority accuracy, on the rarest training classes, needs the class sizes and lists them as
    unprotected.
    """

    test_set: Text
    rows: Positive
    accuracy: Share
    balanced_accuracy: Share
    per_class: dict[Text, Share]  # of the classes that occur in the test set
    interval: tuple[Share, Share]  # at 95 %
    interval_of: Literal["balanced accuracy", "accuracy", "balanced accuracy over persons"]
    minority_accuracy: Share | None = None
    protection: Text = NOT_STATED
    seeds: Text = "this one release; the interval is over test rows"

    @model_validator(mode="after")
    def _check_interval(self) -> "Utility":
        """Refuse an interval whose ends are exchanged."""
        if self.interval[0] > self.interval[1]:
            raise ValueError("the interval's lower end is above its upper end")
        return self


class LabelSetUtility(Model):
    """Item 15 of a release of several labels: what was measured on a named test set.

    `rare_third` is the mean average precision over the rarest third of the labels, which are rare
    by the counts that `rare_by` names. Exact training counts are listed as unprotected.
    """

    test_set: Text
    rows: Positive
    mean_average_precision: Share
    interval: tuple[Share, Share]  # at 95 %
    interval_of: Literal["mean average precision", "mean average precision over persons"]
    micro_f1: Share
    macro_f1: Share
    exact_match: Share
    calibration_error: Share
    rare_third: Share | None = None
    rare_by: RareBy
    per_label: dict[Text, Share]  # average precision of the labels that occur in the test set
    protection: Text = NOT_STATED
    seeds: Text = "this one release; the interval is over test rows"

    @model_validator(mode="after")
    def _check_interval(self) -> "LabelSetUtility":
        """Refuse an interval whose ends are exchanged."""
        if self.interval[0] > self.interval[1]:
            raise ValueError("the interval's lower end is above its upper end")
        return self

    @property
    def tells_training_counts(self) -> bool:
        """Whether which labels are rare follows from exact counts of the private records."""
        return self.rare_third is not None and self.rare_by == "training counts"


class Provenance(Model):
    """A public input by name, revision and hash."""

    name: Text = NOT_STATED
    revision: Text = NOT_STATED
    hash: Text = NOT_STATED


class EncoderProvenance(Provenance):
    """The encoder of the rows, and its recipe: how records are prepared for it, and what is done
    with its features.
    """

    recipe: Text


class PublicData(Provenance):
    """The public rows, what is known of their overlap with the private rows, and what makes them
    public.
    """

    overlap: Text = NOT_STATED
    premise: Literal[
        "no private record is among the public rows or chose them; otherwise no statement here"
        " holds"
    ] = (
        "no private record is among the public rows or chose them; otherwise no statement here"
        " holds"
    )


class Names(Model):
    """The rows of class names: how many, of which data, and what makes them public."""

    rows: Positive
    name: Text = NOT_STATED
    hash: Text = NOT_STATED
    encoder: Text = NOT_STATED
    templates: tuple[Text, ...] = ()
    premise: Literal[
        "they follow from the task's description and cost nothing; if any came from private"
        " records, no statement here holds"
    ] = (
        "they follow from the task's description and cost nothing; if any came from private"
        " records, no statement here holds"
    )


class PublicInputs(Model):
    """Item 16."""

    public_data: PublicData
    class_names: Names | Literal["none"]
    encoder: EncoderProvenance | Provenance


class Audit(Model):
    """Item 17."""

    result: Text = NOT_STATED
    meaning: Text = "a lower bound on the privacy loss, where one is stated"


ROWS = "contents of rows"
TABLE = "contents of a table"
TASK = "contents with a task"
COMPLETE = "contents with all fields"
CONTENT_TAGS = (ROWS, TABLE, TASK, COMPLETE)
"""Tags of the types of item 8, which pydantic puts into the places of faults."""


def _takes(contents: Any) -> str:
    """Return the tag of item 8, from its values or its model."""
    if isinstance(contents, dict):
        fields = set(contents)
    else:
        # a file may hold text or a list here
        fields = set(getattr(type(contents), "model_fields", ()))
    if "sets" in fields:
        return COMPLETE
    if "task" in fields:
        return TASK
    return TABLE if "columns" in fields else ROWS


CLASSES = "figures of classes"
LABEL_SETS = "figures of label sets"
PAID = "figures that were paid for"
PAID_BY_PARTS = "figures that several parts paid for"
NO_FIGURES = "no figures"
UTILITY_TAGS = (CLASSES, LABEL_SETS, PAID, PAID_BY_PARTS, NO_FIGURES)
"""Tags of the types of item 15."""

TYPE_NAMES = ("LearnerMechanisms", "Mechanisms", "CombinedPattern", "LedgerPattern", "Pattern")
"""Types of items 10 and 12, which pydantic puts into the places of faults too."""


def _measured(utility: Any) -> str:
    """Return the tag of item 15, from its values or its model."""
    if isinstance(utility, LabelSetUtility):
        return LABEL_SETS
    if isinstance(utility, Utility):
        return CLASSES
    if isinstance(utility, CombinedUtility):
        return PAID_BY_PARTS
    if isinstance(utility, PaidUtility):
        return PAID
    if not isinstance(utility, dict):
        return NO_FIGURES
    if "combination" in utility:
        return PAID_BY_PARTS
    if "guarantee" in utility:
        return PAID
    return LABEL_SETS if "mean_average_precision" in utility else CLASSES


class Document(Model):
    """All of `release.json`; each item's title is its heading in the card.

    Where an item has several types, their fields decide which of them it is: no type takes a field
    that it does not have, and the version must go with the type.
    """

    format: Literal["tacit-release"] = "tacit-release"
    version: Version
    stamp: Literal["NOT FOR RELEASE"] | None
    guarantee: Recorded
    product: Product = Field(title="Product")
    variant: Variant = Field(title="Variant")
    trust: Trust = Field(title="Trust setting")
    privacy_unit: PrivacyUnit = Field(title="Privacy unit")
    parameters: Parameters = Field(title="Privacy parameters")
    profile: Profile | ProfileOf4 | OlderProfile = Field(title="Privacy profile")
    accesses: Accesses = Field(title="Data accesses covered")
    contents: Annotated[
        Annotated[CompleteContents, Tag(COMPLETE)]
        | Annotated[TaskContents, Tag(TASK)]
        | Annotated[TableContents, Tag(TABLE)]
        | Annotated[Contents, Tag(ROWS)],
        Discriminator(_takes),
    ] = Field(title="What is released")
    accounting: Accounting | OlderAccounting = Field(title="Accounting")
    mechanisms: LearnerMechanisms | Mechanisms = Field(title="Mechanisms")
    data_dependent_bounds: DataDependentBounds = Field(title="Data-dependent bounds")
    pattern: CombinedPattern | LedgerPattern | Pattern = Field(title="Release pattern")
    post_processing: Adaptation | PostProcessing = Field(title="Post-processing")
    implementation: Implementation = Field(title="Implementation")
    utility: Annotated[
        Annotated[LabelSetUtility, Tag(LABEL_SETS)]
        | Annotated[Utility, Tag(CLASSES)]
        | Annotated[PaidUtility, Tag(PAID)]
        | Annotated[CombinedUtility, Tag(PAID_BY_PARTS)]
        | Annotated[Literal["not stated"], Tag(NO_FIGURES)],
        Discriminator(_measured),
    ] = Field(title="Utility")
    public_inputs: PublicInputs = Field(title="Public data and encoder")
    audit: AuditResult | Audit = Field(title="Empirical audit")

    @model_validator(mode="after")
    def _check_version(self) -> "Document":
        """Refuse statements that documents of this version do not have, and the lack of those that
        they have.
        """
        from_version_4 = self.version >= 4
        from_version_5 = self.version >= 5

        if isinstance(self.profile, Profile) != from_version_5:
            raise ValueError("rates_are is stated from version 5 on, and there always")

        # a `Profile` is a `ProfileOf4` as well
        states_advantage = isinstance(self.profile, ProfileOf4)
        states_guarantee_in_words = isinstance(self.accounting, Accounting)
        if states_advantage != from_version_4 or states_guarantee_in_words != from_version_4:
            raise ValueError(
                "advantage and in_words are stated from version 4 on, and there always"
            )

        if isinstance(self.public_inputs.encoder, EncoderProvenance) != from_version_5:
            raise ValueError(
                "the recipe of the encoder is stated from version 5 on, and there always"
            )
        if self.mechanisms.noise == "opendp" and self.version < 6:
            raise ValueError("noise opendp is stated from version 6 on; before, secure meant it")
        if isinstance(self.contents, TableContents) != (self.version >= 7):
            raise ValueError("columns are stated from version 7 on, and there always")
        if isinstance(self.contents, TaskContents) != (self.version >= 8):
            raise ValueError("the task is stated from version 8 on, and there always")
        complete = (
            isinstance(self.contents, CompleteContents),
            isinstance(self.mechanisms, LearnerMechanisms),
            isinstance(self.pattern, LedgerPattern),
        )
        if set(complete) != {self.version >= 9}:
            raise ValueError(
                "sets, least_records, the learner and the ledger's head are stated from version 9"
                " on, and there always"
            )

        if states_parts(self.pattern, self.utility) != (self.version >= COMBINED_VERSION):
            raise ValueError("parts are stated from version 10 on, and there always")

        if isinstance(self.audit, AuditResult) and self.version < 9:
            raise ValueError("bounds of an audit are stated from version 9 on")
        if self.version >= 9 and isinstance(self.audit, Audit) and self.audit != Audit():
            raise ValueError("an audit is stated by its bounds, or not stated")
        if isinstance(self.utility, PaidUtility) and self.version < PAID_SINCE:
            raise ValueError("figures that were paid for are stated from version 9 on")

        several = has_several_labels(self.contents)
        if several and sets_of(self.contents) is not None:
            raise ValueError("prediction sets are for releases of one label a row")
        foreign = Utility | PaidUtility if several else LabelSetUtility
        if isinstance(self.utility, foreign):
            raise ValueError(FOREIGN_UTILITY)
        return self


def states_parts(pattern: Pattern, utility: Any) -> bool:
    """Tell whether item 12 or item 15 states parts, as documents since version 10 do."""
    return isinstance(pattern, CombinedPattern) or isinstance(utility, CombinedUtility)


# the title of each item, by its field's name
ITEMS: dict[str, str] = {
    name: field.title for name, field in Document.model_fields.items() if field.title
}
