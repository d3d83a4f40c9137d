"""The document of a summary: a strict model of `summary.json`, and its card."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from tacit.errors import ReleaseError, quoted
from tacit.models.rows import Floats
from tacit.models.summarised import COUNT_SHARE, UNIT
from tacit.releases.card import NOTHING_STATED, card_text, item_lines, labels_text
from tacit.releases.combination import Combination, Sha256, Source, part_lines, united_classes
from tacit.releases.fields import NOT_STATED, Model, Positive, Recorded, Text
from tacit.releases.reading import refusal
from tacit.releases.schema import Array, EncoderProvenance, Product, Provenance

FORMAT = "tacit-summary"
VERSION = 1

NO_CENTRE: Literal["none"] = "none"

ClassType = Literal["bool", "int", "float", "str"]


class SummaryRecipe(Model):
    """How rows became sums: summaries add up only if this is the same for all of them.

    `centre_sha256` is the hash of the public centre, which lies among the arrays. `class_list` is a
    declared name of what the labels mean, such as "ICD-10 chapters". `scale` integers stand for 1.
    """

    width: Positive
    class_type: ClassType
    class_list: Text
    rows: Literal["unit rows", "unit rows about a public centre"]
    centre_sha256: Sha256 | Literal["none"]
    count_share: Annotated[float, Field(gt=0, lt=1)]
    scale: Positive | Literal[4294967296]
    encoder: EncoderProvenance
    public_data: Provenance
    sources: tuple[Source, ...]

    @model_validator(mode="after")
    def _check_constants(self) -> SummaryRecipe:
        """Refuse scales that this version does not know, and a centre that is not stated."""
        if self.count_share != COUNT_SHARE or self.scale != UNIT:
            raise ValueError(f"sums have a count share of {COUNT_SHARE} and a scale of 2^32")
        is_centred = self.rows == "unit rows about a public centre"
        if is_centred != (self.centre_sha256 != NO_CENTRE):
            raise ValueError("rows about a centre state its hash, and others none")
        return self

    def difference(self, other: SummaryRecipe) -> str | None:
        """Name the first difference because of which sums do not add up; None if they do.

        Centres are not compared here: they may be one and have other hashes, by their last bits.
        """
        if self.rows != other.rows:
            return (
                f"these are sums of {self.rows!r} and of {other.rows!r}, but all owners give the"
                " same public rows (--public), or none"
            )
        facts = {
            "width": (self.width, other.width),
            "encoder": (self.encoder.name, other.encoder.name),
            "encoder's revision": (self.encoder.revision, other.encoder.revision),
            "encoder's recipe": (self.encoder.recipe, other.encoder.recipe),
            "type of the labels": (self.class_type, other.class_type),
            "name of the class list": (self.class_list, other.class_list),
        }
        for name, (mine, theirs) in facts.items():
            if mine != theirs:
                return f"the {name} is {str(mine)!r:.80} and {str(theirs)!r:.80}"

        hashes = self.encoder.hash, other.encoder.hash
        # owners may know their encoder by its name and revision alone
        if NOT_STATED not in hashes and hashes[0] != hashes[1]:
            return f"the encoder's hash is {hashes[0]!r:.80} and {hashes[1]!r:.80}"
        return None


class ArraysItem(Model):
    """The arrays of a summary."""

    arrays: tuple[Array, ...]
    sha256: Sha256


class SummaryDocument(Model):
    """All of `summary.json`."""

    format: Literal["tacit-summary"] = "tacit-summary"
    version: Literal[1]
    stamp: Literal["NOT FOR RELEASE"] | None
    product: Product
    guarantee: Recorded
    statement: Text
    in_words: Text
    noise: Literal["secure", "opendp", "research"]
    recipe: SummaryRecipe
    combination: Combination
    arrays: tuple[Array, ...]
    sha256: Sha256

    @property
    def arrays_item(self) -> ArraysItem:
        """The arrays and their hash, as one item of the card."""
        return ArraysItem(arrays=self.arrays, sha256=self.sha256)


def different_centres(mine: str, theirs: str) -> str:
    """Say that two summaries have other public rows, by the first digits of their hashes."""
    return (
        "their public rows are not the same, since the hash of the centre is"
        f" {mine[:12]!r} and {theirs[:12]!r}"
    )


def class_type(classes: tuple[Any, ...]) -> ClassType:
    """Return the type of the labels, which all have one."""
    first = classes[0]
    # a bool is an int
    if isinstance(first, bool):
        return "bool"
    if isinstance(first, int):
        return "int"
    return "float" if isinstance(first, float) else "str"


def centre_hash(centre: Floats | None) -> str:
    """Return the hash of a public centre, (d,), as a recipe states it; "none" without one."""
    if centre is None:
        return NO_CENTRE
    return hashlib.sha256(np.ascontiguousarray(centre, np.float64).tobytes()).hexdigest()


def recipe_of(
    width: int,
    classes: tuple[Any, ...],
    centre: Floats | None,
    *,
    encoder: Mapping[str, str] | None = None,
    public: Mapping[str, str] | None = None,
    class_list: str | None = None,
    sources: Sequence[Source] = (),
) -> SummaryRecipe:
    """Return the recipe of a summary with these facts.

    Raises
    ------
    ReleaseError
        If a fact cannot stand in the card.
    """
    if class_list is not None and not class_list.strip():
        fault = f"class_list={quoted(class_list)} is empty"
        raise ReleaseError(f"{fault}; give one line of text, or leave it out")
    try:
        return SummaryRecipe(
            width=width,
            class_type=class_type(classes),
            class_list=NOT_STATED if class_list is None else class_list,
            rows="unit rows" if centre is None else "unit rows about a public centre",
            centre_sha256=centre_hash(centre),
            count_share=COUNT_SHARE,
            scale=UNIT,
            encoder=EncoderProvenance(**({"recipe": NOT_STATED} | dict(encoder or {}))),
            public_data=Provenance(**dict(public or {})),
            sources=tuple(sources),
        )
    except ValidationError as error:
        raise refusal("summary", error, "give one line of text") from error


def united_recipe(recipes: Sequence[SummaryRecipe], centre_sha256: str) -> SummaryRecipe:
    """Return the recipe of summaries that add up, which does not depend on their order.

    Names of public rows may differ between them, and some may state no hash of the encoder; the
    first in alphabetical order is stated.
    """
    by_text = {source.model_dump_json(): source for recipe in recipes for source in recipe.sources}
    return recipes[0].model_copy(
        update={
            "centre_sha256": centre_sha256,
            "sources": tuple(by_text[text] for text in sorted(by_text)),
            "encoder": _first([recipe.encoder for recipe in recipes]),
            "public_data": _first([recipe.public_data for recipe in recipes]),
        }
    )


def _first(values: Sequence[Provenance]) -> Provenance:
    """Return the first in the order of their JSON."""
    return min(values, key=lambda value: value.model_dump_json())


def summary_card(document: SummaryDocument) -> str:
    """Write the card of a summary: what it holds, what it costs, and a row for each part."""
    combination = document.combination
    declared = ", ".join(document.guarantee.unprotected) or "nothing beyond the public arguments"
    lines = [f"# {card_text(document.product.name)}", ""]
    if document.stamp:
        lines += [f"**{document.stamp}**", ""]
    lines += [
        card_text(document.statement),
        "",
        card_text(document.in_words),
        "",
        card_text(f"Not protected by it: {declared}."),
        "",
        (
            "A summary holds noisy sums of the rows of each class, and noisy counts. Whatever is"
            " computed from them costs nothing more. It adds up with summaries of other parts:"
            " `tacit combine A B --public P --out R` makes a classifier of them."
        ),
        "",
        NOTHING_STATED,
    ]
    sections = {
        "Product": item_lines(document.product),
        "Classes": [f"- {card_text(line)}" for line in _class_lines(combination)],
        "Recipe": item_lines(document.recipe),
        "Parts": [f"- {card_text(line)}" for line in part_lines(combination)],
        "Arrays": item_lines(document.arrays_item),
    }
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *section]
    return "\n".join(lines) + "\n"


def _class_lines(combination: Combination) -> list[str]:
    """Name the classes, and say how many lists of them there are."""
    lists = len(combination.class_lists)
    lines = [f"classes: {labels_text(united_classes(combination))}"]
    if lists > 1:
        lines.append(
            f"united from {lists} lists; a part adds nothing, and no noise, to classes that it does"
            " not list"
        )
    return lines
