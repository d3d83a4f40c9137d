"""Units, ratios and names of files in words."""

from __future__ import annotations

import re

from tacit.privacy.unit import Unit

UNITS = {
    Unit.ADD_REMOVE: "add/remove one record",
    Unit.REPLACE: "replace one record",
    Unit.CHANGE_LABEL: "change one label",
    Unit.ADD_REMOVE_PERSON: "add/remove one person",
    Unit.REPLACE_PERSON: "replace one person",
    Unit.CHANGE_LABELS_OF_PERSON: "change one person's labels",
}


def unit_words(unit: str) -> str:
    """A unit as axes and titles name it."""
    return UNITS[Unit(unit)] if unit in UNITS else unit


def unit_sentence(unit: str) -> str:
    """Say what a unit hides."""
    return (
        f"whether {Unit(unit).sentence} (unit: {unit_words(unit)})"
        if unit in UNITS
        else f"what unit {unit} hides"
    )


def imbalance_words(ratio: float) -> str:
    """A ratio of the largest to the smallest class."""
    return f"imbalance {ratio:g}"


def slug(*parts: object) -> str:
    """A name for files and anchors; parts that are None are left out."""
    words = re.sub(
        r"[^A-Za-z0-9.]+", "-", " ".join(str(part) for part in parts if part is not None)
    )
    return words.strip("-.").lower()[:120] or "figure"
