"""Units, ratios and names of files in words."""

from __future__ import annotations

import re

from tacit.privacy.unit import Unit

# letters of the name of a file or anchor
LONGEST_NAME = 120

UNITS = {
    Unit.ADD_REMOVE: "add/remove one record",
    Unit.REPLACE: "replace one record",
    Unit.CHANGE_LABEL: "change one label",
    Unit.ADD_REMOVE_PERSON: "add/remove one person",
    Unit.REPLACE_PERSON: "replace one person",
    Unit.CHANGE_LABELS_OF_PERSON: "change one person's labels",
}


def unit_words(unit: str) -> str:
    """Return a unit as axes and titles name it."""
    if unit not in UNITS:
        # results of a later version of tacit
        return unit
    return UNITS[Unit(unit)]


def unit_sentence(unit: str) -> str:
    """Return the fact that a unit hides, as the end of a sentence."""
    if unit not in UNITS:
        return f"what unit {unit} hides"
    return f"whether {Unit(unit).sentence} (unit: {unit_words(unit)})"


def ratio_words(ratio: float | None) -> str:
    """Return a ratio of the largest to the smallest class where "imbalance" stands beside it."""
    if ratio is None:
        return "none set"
    return f"{ratio:g}"


def imbalance_words(ratio: float | None) -> str:
    """Return a ratio of the largest to the smallest class in words."""
    if ratio is None:
        return "all records"
    return f"imbalance {ratio_words(ratio)}"


def slug(*parts: object) -> str:
    """Return a name for files and anchors; parts that are None are left out."""
    text = " ".join(str(part) for part in parts if part is not None)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()
    return name[:LONGEST_NAME] or "figure"
