"""What a page or README of a release says first, in plain words: what the model does, its classes,
how well it works and how that was measured, who signed it, and one sentence of protection.

Every sentence follows from the document, so that it can be checked against the card. The texts of
a document may be anybody's: whoever shows these sentences escapes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.privacy.words import protection
from tacit.releases.fields import NOT_STATED, Label
from tacit.releases.measured import PaidUtility
from tacit.releases.schema import (
    Document,
    LabelSetUtility,
    ProfileOf4,
    TableContents,
    TaskContents,
    Utility,
    has_several_labels,
)

MOST_CLASSES = 20
MOST_COLUMNS = 10

NOT_MEASURED = "Not stated: nobody recorded how well it works."
NOT_SIGNED = "Not signed, so nothing shows who made it."
NOT_PRIVATE = "None: no bound holds, so it may show everything about the private data."
SEEDED = (
    "None: its noise was drawn from a seed, and whoever has the seed can take the noise off again."
)


@dataclass(frozen=True)
class Opening:
    """The first sentences on a release, one for each question."""

    task: str
    classes: str
    utility: str
    signature: str
    protection: str

    def facts(self) -> dict[str, str]:
        """Return the sentences by what they are about."""
        return {
            "What it does": self.task,
            "Classes": self.classes,
            "How well it works": self.utility,
            "Made and signed by": self.signature,
            "Protection": self.protection,
        }


def opening(document: Document, signature: str) -> Opening:
    """Return the opening of a release; `signature` says who signed it, and whether that was
    checked.
    """
    return Opening(
        task=" ".join([task_words(document), input_words(document), *_described(document)]),
        classes=classes_words(document, MOST_CLASSES),
        utility=utility_words(document),
        signature=f"Curator: {document.product.curator}. {signature}",
        protection=protection_words(document),
    )


def task_words(document: Document) -> str:
    """Say what the model does, without its classes."""
    contents = document.contents
    n_classes = len(contents.classes)
    if has_several_labels(contents):
        return f"It marks each record with any of {n_classes} labels, or with none."
    if isinstance(contents, TaskContents) and contents.task.tree:
        return (
            f"It assigns each record one of {n_classes} classes, or a group of them where it is"
            " not sure."
        )
    return f"It assigns each record one of {n_classes} classes."


def input_words(document: Document) -> str:
    """Say in which form the model takes a record."""
    contents = document.contents
    encoder = document.public_inputs.encoder.name
    if isinstance(contents, TableContents) and contents.columns:
        names = list(contents.columns)
        listing = ", ".join(names[:MOST_COLUMNS])
        if len(names) > MOST_COLUMNS:
            listing += f" and {len(names) - MOST_COLUMNS} more"
        return f"A record is a row of a table with the columns {listing}."
    if encoder == NOT_STATED:
        return f"A record is {contents.width} numbers; what makes them is not stated."
    return f"A record is {contents.width} numbers, made by {encoder}."


def _described(document: Document) -> list[str]:
    """Return what the maker says of the model, if anything."""
    product = document.product
    words = []
    if product.description != NOT_STATED:
        words.append(f"Its maker describes it as: {_sentence(product.description)}")
    if product.intended_use != NOT_STATED:
        words.append(f"Intended use: {_sentence(product.intended_use)}")
    return words


def _sentence(text: str) -> str:
    """Return a text that ends like a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def classes_words(document: Document, most: int) -> str:
    """Name the first classes, at most so many, and say how many there are."""
    classes = document.contents.classes
    listing = ", ".join(map(_label, classes[:most]))
    if len(classes) > most:
        listing += f" and {len(classes) - most} more"
    return f"{listing}."


def _label(label: Label) -> str:
    if isinstance(label, str):
        return label
    return json.dumps(label)


def utility_words(document: Document) -> str:
    """Say how well the model works, and how that was measured."""
    utility = document.utility
    if isinstance(utility, Utility):
        low, high = utility.interval
        return (
            f"{_of_100(utility.accuracy)} of 100 test records get the right class;"
            f" {_of_100(utility.balanced_accuracy)} of 100 on average over the classes."
            f" {_interval(utility.interval_of, low, high)} {_measured(utility)}"
        )
    if isinstance(utility, LabelSetUtility):
        low, high = utility.interval
        return (
            f"All labels of a record are right for {_of_100(utility.exact_match)} of 100 test"
            f" records; mean average precision {_of_100(utility.mean_average_precision)} of 100."
            f" {_interval(utility.interval_of, low, high)} {_measured(utility)}"
        )
    if isinstance(utility, PaidUtility):
        low, high = utility.interval
        price = Guarantee.from_json(utility.guarantee.model_dump()).figures()
        return (
            f"{_of_100(utility.accuracy)} of 100 test records get the right class;"
            f" {_of_100(utility.balanced_accuracy)} of 100 on average over the classes."
            f" {_interval('balanced accuracy', low, high)} Measured on about"
            f" {max(utility.records, 0):,.0f} records of {utility.test_set}: {utility.protection},"
            f" at {price}."
        )
    if isinstance(utility, str):
        return NOT_MEASURED
    return "Measured: item 15 has the figures, and how they were found."


def _interval(figure: str, low: float, high: float) -> str:
    return f"95% interval of the {figure}: {_of_100(low)} to {_of_100(high)}."


def _measured(utility: Utility | LabelSetUtility) -> str:
    """Say on which rows the figures were measured, and what protects these rows."""
    return f"Measured on {utility.rows:,} rows of {utility.test_set}: {utility.protection}."


def _of_100(share: float | str) -> str:
    if isinstance(share, str):
        return f"({share})"
    return f"{100 * share:.1f}"


def protection_words(document: Document) -> str:
    """Say in one sentence what the release hides, and up to what."""
    if document.variant.variant == "none":
        return NOT_PRIVATE
    if document.mechanisms.noise == "research":
        return SEEDED
    return protection(Unit(document.guarantee.unit), stated_advantage(document))


def stated_advantage(document: Document) -> float:
    """Return the most by which an attack's detections exceed its false alarms."""
    if isinstance(document.profile, ProfileOf4):
        return document.profile.advantage
    # documents of version 3 do not state it
    return Guarantee.from_json(document.guarantee.model_dump()).advantage
