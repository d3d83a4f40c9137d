"""The card: a document as Markdown for people, and nothing that the document does not say."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from tacit.models.decisions import Decision
from tacit.privacy.guarantee import rounded_up
from tacit.releases.recipe import recipe
from tacit.releases.schema import ITEMS, Accounting, Document

_LABELS_SHOWN = 20
_UPPER_BOUNDS = ("epsilon", "pure_epsilon", "rho", "mu", "true_positive_rate", "advantage")
# characters that Markdown would read as code, emphasis, HTML or a link
_MARKUP = re.compile(r"[\\`*]|<(?=[A-Za-z/!?])|\](?=[(\[:])")


def render_card(document: Document) -> str:
    """Write the card: a heading for each of the 17 items, and since version 4 how to predict
    without tacit.
    """
    lines = [f"# {_text(document.product.name)}", ""]
    if document.stamp:
        lines += [f"**{document.stamp}**", ""]
    lines += [_text(document.accounting.statement), ""]
    if isinstance(document.accounting, Accounting):
        lines += [_text(document.accounting.in_words), ""]
        if document.guarantee.unprotected:
            lines += [
                _text(f"Not protected by it: {', '.join(document.guarantee.unprotected)}."),
                "",
            ]
    lines += ['What nobody has stated reads "not stated".']
    for number, (name, title) in enumerate(ITEMS.items(), 1):
        lines += ["", f"## {number}. {title}", "", *_item(getattr(document, name))]
    if document.version >= 4:
        lines += ["", "## Predicting without tacit", "", *_recipe(document)]
    return "\n".join(lines) + "\n"


def _recipe(document: Document) -> list[str]:
    rows = f"rows `X` of the same encoder, an array of shape (n, {document.contents.width})"
    needs = "They need numpy and safetensors alone."
    return [
        f"Run in the folder of the release, these lines find the `labels` of {rows}. {needs}",
        "",
        "```python",
        *recipe(document.contents),
        "```",
    ]


def _item(item: Any) -> list[str]:
    if not isinstance(item, BaseModel):
        return [f"- {_text(str(item))}"]
    return [line for name, value in item for line in _field(name, value)]


def _field(name: str, value: Any, indent: str = "") -> list[str]:
    label = f"{indent}- {name.replace('_', ' ')}:"
    if isinstance(value, dict):
        return [
            label,
            *(f"{indent}  - {_text(key)}: {_value(key, part)}" for key, part in value.items()),
        ]
    if _nested(value):
        return [label, *(line for part in value for line in _block(part, indent + "  "))]
    return [f"{label} {_value(name, value)}"]


def _block(model: BaseModel, indent: str) -> list[str]:
    lines = [f"{indent}- {_flat(model)}"]
    for name, value in model:
        if _nested(value):
            lines += _field(name, value, indent + "  ")
    return lines


def _flat(model: BaseModel | Decision) -> str:
    names = (
        type(model).model_fields
        if isinstance(model, BaseModel)
        else [field.name for field in fields(model)]
    )
    pairs = ((name, getattr(model, name)) for name in names)
    return ", ".join(
        f"{name.replace('_', ' ')} = {_value(name, value)}"
        for name, value in pairs
        if not _nested(value)
    )


def _nested(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _value(name: str, value: Any) -> str:
    if isinstance(value, BaseModel | Decision):
        return _flat(value)
    if name == "classes":
        return _labels(value)
    if isinstance(value, tuple):
        between = " x " if name == "shape" else "; "
        return between.join(_value("", part) for part in value) or "none"
    if isinstance(value, float):
        return rounded_up(value) if name in _UPPER_BOUNDS else f"{value:.6g}"
    if value == "inf":
        return "none (no bound holds)"
    return "not stated" if value is None else _text(str(value))


def _labels(labels: tuple[Any, ...]) -> str:
    shown = ", ".join(
        _text(json.dumps(label, ensure_ascii=False)) for label in labels[:_LABELS_SHOWN]
    )
    return f"{len(labels)}, namely {shown}" + (", ..." if len(labels) > _LABELS_SHOWN else "")


def _text(text: str) -> str:
    return _MARKUP.sub(lambda found: "\\" + found.group(), text)
