"""The card: a document as Markdown for people, and nothing that the document does not say."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from tacit.models.decisions import Decision
from tacit.privacy.decimals import noise_rounded_down, rounded_up
from tacit.privacy.words import rounded_down
from tacit.releases.combination import Combination, part_lines
from tacit.releases.fields import Recorded
from tacit.releases.measured import PredictionSets
from tacit.releases.opening import Opening
from tacit.releases.recipe import recipe
from tacit.releases.schema import (
    ITEMS,
    Accounting,
    CombinedPattern,
    CompleteContents,
    Contents,
    Document,
    LearnerMechanisms,
    TableContents,
    has_several_labels,
    sets_of,
)

NOTHING_STATED = 'What nobody has stated reads "not stated".'

# Labels of a class list that a card names.
_MOST_LABELS = 20

# Numbers that are rounded up, so that a card or a dossier promises no more than the document.
UPPER_BOUNDS = (
    "epsilon",
    "pure_epsilon",
    "rho",
    "mu",
    "true_positive_rate",
    "advantage",
    "promise",
    "promise_at_alarm",
    "delta",
    "delta_at_alarm",
)

# Numbers that are rounded down, so that the card claims no more was shown than was.
_LOWER_BOUNDS = ("lower_bound", "lower_bound_at_alarm")

# Fields of item 8 that say nothing where the release takes rows without named columns.
OF_COLUMNS = ("columns", "missing_texts", "label", "about_columns")

# Sentences on a release of several labels a record.
_SEVERAL = (
    "a record may have any set of the classes, none included, so the probabilities of a row need"
    " not add up to 1.",
    "a label is predicted where its probability reaches its threshold (array thresholds);"
    " thresholds follow from what was released and from public or simulated rows, and cost no"
    " privacy.",
)

# Characters that Markdown would read as code, emphasis, HTML or a link.
_MARKUP = re.compile(r"[\\`*]|<(?=[A-Za-z/!?])|\](?=[(\[:])")


def render_card(document: Document, opening: Opening | None = None) -> str:
    """Write the card: a heading for each of the 17 items, and since version 4 how to predict
    without tacit.

    With an `opening`, its sentences come before the guarantee, as in the README of a hub.
    """
    lines = [*heading(document.product.name, document, opening), NOTHING_STATED]

    for number, (name, title) in enumerate(ITEMS.items(), 1):
        lines += ["", f"## {number}. {title}", "", *item_lines(getattr(document, name))]
    if document.version >= 4:
        lines += ["", "## Predicting without tacit", "", *_recipe(document)]
    return "\n".join(lines) + "\n"


def heading(name: str, document: Document, opening: Opening | None = None) -> list[str]:
    """The first lines of a card: a name, the stamp, the opening if there is one, and the guarantee
    that `document` states.
    """
    lines = _title(name, document)
    if opening is not None:
        for question, sentence in opening.facts().items():
            lines += [f"**{question}.** {card_text(sentence)}", ""]
        lines += ["## The guarantee in full", ""]
    return lines + _guarantee(document)


def _title(name: str, document: Document) -> list[str]:
    """A name, and the stamp if there is one."""
    lines = [f"# {card_text(name)}", ""]
    if document.stamp:
        lines += [f"**{document.stamp}**", ""]
    return lines


def _guarantee(document: Document) -> list[str]:
    """The guarantee as a formal sentence and in words, and what it does not protect."""
    lines = [card_text(document.accounting.statement), ""]
    if isinstance(document.accounting, Accounting):
        lines += [card_text(document.accounting.in_words), ""]
        if document.guarantee.unprotected:
            unprotected = ", ".join(document.guarantee.unprotected)
            lines += [card_text(f"Not protected by it: {unprotected}."), ""]
    return lines


def _recipe(document: Document) -> list[str]:
    """The section on predicting without tacit."""
    rows = f"rows `X` of the same encoder, an array of shape (n, {document.contents.width})"
    contents = document.contents
    if isinstance(contents, TableContents) and contents.columns:
        rows += ", made of the columns above"
    result = "They need numpy and safetensors alone."
    if has_several_labels(contents):
        result = (
            "The result has a column for each of the `classes`, true where a row has that label."
            f" {result}"
        )
    sets = sets_of(contents)
    if sets is not None:
        result = (
            "`sets` has a column for each of the classes, true where the set of a row holds it:"
            f" {sets.rule}. {result}"
        )
    return [
        f"Run in the folder of the release, these lines find the `labels` of {rows}. {result}",
        "",
        "```python",
        *recipe(document.contents),
        "```",
    ]


def item_lines(item: Any) -> list[str]:
    """The lines of one item: a list of its fields, or the text of an item that is not stated."""
    if not isinstance(item, BaseModel):
        return [f"- {card_text(str(item))}"]

    left_out: tuple[str, ...] = ()
    if isinstance(item, CompleteContents) and not item.columns:
        left_out = OF_COLUMNS
    if isinstance(item, CombinedPattern) and not item.sources:
        left_out = ("sources",)
    if isinstance(item, LearnerMechanisms):
        item = item.model_copy(update={"facts": _noise_as_text(item.facts)})
    lines = []
    for name, value in item:
        if name not in left_out:
            lines += _field(name, value)
    if isinstance(item, Contents) and has_several_labels(item):
        lines += [f"- several labels: {sentence}" for sentence in _SEVERAL]
    return lines


def _noise_as_text(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts with noise multipliers as texts that are rounded down; cards before version 9 round
    them to the nearest number.
    """
    texts = {}
    for name, value in facts.items():
        if name.startswith("noise"):
            value = _noise_text(value)
        texts[name] = value
    return texts


def _noise_text(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_noise_text, value))
    if isinstance(value, float):
        return noise_rounded_down(value)
    return value


def _field(name: str, value: Any, indent: str = "") -> list[str]:
    """A list entry of a field, with entries below it for the parts of a dict or of models."""
    # a recorded guarantee is for programs; the field "statement" beside it says the same
    if isinstance(value, Recorded):
        return []

    label = f"{indent}- {name.replace('_', ' ')}:"
    if isinstance(value, dict):
        parts = [
            f"{indent}  - {card_text(key)}: {_value(key, part)}" for key, part in value.items()
        ]
        return [label, *parts]

    if isinstance(value, Combination):
        rows = [f"{indent}  - {card_text(row)}" for row in part_lines(value)]
        declared = {"overlapping": value.overlapping, "moving": value.moving}
        lines = [f"{indent}- {what}: {'yes' if true else 'no'}" for what, true in declared.items()]
        allowances = [f"{name} {budget}" for name, budget in value.allowances.items()]
        lines.append(f"{indent}- allowances: {card_text('; '.join(allowances)) or 'none'}")
        return [*lines, f"{indent}- parts:", *rows]

    if isinstance(value, PredictionSets):
        lines = [label]
        for part_name, part in value:
            lines += _field(part_name, part, indent + "  ")
        return lines

    if _holds_models(value):
        lines = [label]
        for model in value:
            lines += _block(model, indent + "  ")
        return lines
    return [f"{label} {_value(name, value)}"]


def _block(model: BaseModel, indent: str) -> list[str]:
    """A list entry of a model on one line, with entries below it for models that it holds."""
    lines = [f"{indent}- {_on_one_line(model)}"]
    for name, value in model:
        if _holds_models(value):
            lines += _field(name, value, indent + "  ")
    return lines


def _on_one_line(model: BaseModel | Decision) -> str:
    """The fields of a model as "name = value", without those that hold models."""
    if isinstance(model, BaseModel):
        names = list(type(model).model_fields)
    else:
        names = [field.name for field in fields(model)]

    pairs = []
    for name in names:
        value = getattr(model, name)
        if not _holds_models(value):
            pairs.append(f"{name.replace('_', ' ')} = {_value(name, value)}")
    return ", ".join(pairs)


def _holds_models(value: Any) -> bool:
    """Tell whether a value is a tuple of models."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _value(name: str, value: Any) -> str:
    """The text of a field's value on one line."""
    if isinstance(value, BaseModel | Decision):
        return _on_one_line(value)
    if name == "classes":
        return labels_text(value)
    if name == "tree":
        return _tree(value)
    if isinstance(value, dict):
        pairs = []
        for key, part in value.items():
            # a parameter that is None was stated: it is none
            shown = "none" if part is None else _value("", part)
            pairs.append(f"{card_text(key)} = {shown}")
        return ", ".join(pairs) or "none"
    if isinstance(value, tuple | list):
        separator = " x " if name == "shape" else "; "
        return separator.join(_value("", part) for part in value) or "none"
    if isinstance(value, float):
        if name in UPPER_BOUNDS:
            return rounded_up(value)
        if name in _LOWER_BOUNDS:
            return rounded_down(value)
        return f"{value:.6g}"
    if value == "inf":
        return "none (no bound holds)"
    if value is None:
        return "not stated"
    return card_text(str(value))


def labels_text(labels: tuple[Any, ...]) -> str:
    """The number of classes, and the first labels as JSON."""
    first_labels = [json.dumps(label, ensure_ascii=False) for label in labels[:_MOST_LABELS]]
    listing = ", ".join(map(card_text, first_labels))
    if len(labels) > _MOST_LABELS:
        listing += ", ..."
    return f"{len(labels)}, namely {listing}"


def _tree(parents: dict[str, str]) -> str:
    """The number of inner nodes, and the first of them as JSON."""
    if not parents:
        return "none"
    inner_nodes = tuple(dict.fromkeys(parents.values()))
    return f"{len(parents)} nodes below others; parents are {labels_text(inner_nodes)}"


def card_text(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKUP.sub(lambda match: "\\" + match.group(), text)
