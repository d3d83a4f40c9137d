"""The document of labels of public rows: a strict model of `labels.json`, and its card.

It names the release that voted and the pool of public rows, and repeats what the release states of
its guarantee. `release.json` beside it is the whole document of the release, from which the
guarantee is computed again.
"""

from typing import Annotated, Literal

from pydantic import Field

from tacit.releases.card import NOTHING_STATED, heading, item_lines
from tacit.releases.fields import NOT_STATED, Label, Model, Positive, Share, Text
from tacit.releases.labels_table import Columns
from tacit.releases.opening import (
    MOST_CLASSES,
    Opening,
    classes_words,
    protection_words,
    utility_words,
)
from tacit.releases.schema import Accounting, Document, Product, Provenance

FORMAT = "tacit-public-labels"
VERSION = 1

# items of the release's document that its labels' card repeats
REPEATED = (
    "variant",
    "trust",
    "privacy_unit",
    "parameters",
    "profile",
    "accesses",
    "accounting",
    "mechanisms",
)

# lines of the card that read the folder
_READING = [
    "Run in this folder, these lines check every statement here, and join labels to the rows of"
    " the pool.",
    "",
    "```python",
    "import tacit",
    'labels = tacit.PublicLabels.load(".").verify()',
    'X, y = labels.join(tacit.EmbeddingStore.open("POOL"))',
    "```",
]

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class SourceRelease(Model):
    """The release that labelled the rows."""

    name: Text
    document_sha256: Sha256
    arrays_sha256: Sha256


class Pool(Provenance):
    """The public rows that were labelled, and what makes them public."""

    rows: Positive
    rows_sha256: Sha256
    declared_public: Literal["by the owner of the store", "not stated"]
    labels: Literal["none", "not used"]
    premise: Literal[
        "no private record is among the rows or chose them; a private record among them would be"
        " shown here, with a label that follows from its row, and no statement here would hold"
    ] = (
        "no private record is among the rows or chose them; a private record among them would be"
        " shown here, with a label that follows from its row, and no statement here would hold"
    )


class Guarantee(Model):
    """What the release states, which holds for its labels too."""

    statement: Text
    in_words: Text
    unprotected: tuple[Text, ...]
    cost_of_labels: Literal[
        "none: they are computed from the release and public rows alone (post-processing)"
    ] = "none: they are computed from the release and public rows alone (post-processing)"


class ClassCount(Model):
    """How many rows the release puts into one class."""

    label: Label
    labelled: Count
    left_out: Count


class Selection(Model):
    """Which rows have a label: those that are not refused as rows of no class, and whose most
    likely class reaches a probability.
    """

    at_least: Annotated[float, Field(gt=0, le=1)] | Literal["none"]
    refuse: Annotated[float, Field(gt=0, lt=1)] | Literal["none"]
    labelled: Positive
    left_out: Count
    share_left_out: Share
    refused: Count
    share_refused: Share
    classes: Annotated[tuple[ClassCount, ...], Field(min_length=1)]


class Table(Model):
    """The file of labels."""

    columns: Columns
    sha256: Sha256
    row: Literal["position in the pool, from 0"] = "position in the pool, from 0"
    label: Literal["the most likely class", "the deepest node that reaches the least probability"]
    probability: Literal[
        "that of the label by the release, rounded down to four decimals; it may be above the share"
        " that is right, see docs/probabilities.md of tacit"
    ] = (
        "that of the label by the release, rounded down to four decimals; it may be above the share"
        " that is right, see docs/probabilities.md of tacit"
    )


class LabelsDocument(Model):
    """All of `labels.json`; each item's title is its heading in the card."""

    format: Literal["tacit-public-labels"] = "tacit-public-labels"
    version: Literal[1] = 1
    guarantee: Guarantee = Field(title="Guarantee")
    product: Product = Field(title="Product")
    release: SourceRelease = Field(title="Release that labelled the rows")
    pool: Pool = Field(title="Pool of public rows")
    selection: Selection = Field(title="Labelled rows")
    table: Table = Field(title="Table")


def repeated_guarantee(release: Document) -> Guarantee:
    """Return what the document of a release states of its guarantee."""
    accounting = release.accounting
    return Guarantee(
        statement=accounting.statement,
        in_words=accounting.in_words if isinstance(accounting, Accounting) else NOT_STATED,
        unprotected=release.guarantee.unprotected,
    )


def labels_opening(document: LabelsDocument, release: Document, signature: str) -> Opening:
    """Return the opening of labels; `release` is the document of their release."""
    pool = document.pool
    return Opening(
        task=(
            f"Labels of {document.selection.labelled:,} of {pool.rows:,} public rows of"
            f" {pool.name}, by the release {document.release.name}."
        ),
        classes=classes_words(release, MOST_CLASSES),
        utility=f"Of the release, on other rows: {utility_words(release)}",
        signature=f"Curator: {document.product.curator}. {signature}",
        protection=f"{protection_words(release)} That is of the release; the labels cost no more.",
    )


def labels_card(document: LabelsDocument, release: Document, opening: Opening | None = None) -> str:
    """Write the card of labels; `release` is the document of their release, and an `opening` comes
    before the guarantee.
    """
    lines = heading(document.product.name, release, opening)
    lines += [
        "The labels cost no further privacy: they are computed from a release with this guarantee"
        f" and from public rows alone. The premise is that {document.pool.premise}.",
        "",
        NOTHING_STATED,
    ]

    # the guarantee stands above
    for name in ("product", "release", "pool", "selection", "table"):
        title = LabelsDocument.model_fields[name].title
        lines += ["", f"## {title}", "", *item_lines(getattr(document, name))]
    lines += ["", "## Reading", "", *_READING]

    for name in REPEATED:
        title = Document.model_fields[name].title
        lines += ["", f"## {title} of the release", "", *item_lines(getattr(release, name))]
    return "\n".join(lines) + "\n"
