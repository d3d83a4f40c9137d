"""Parts of a dossier: facts, tables and sections, and how they write values of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from tacit.privacy.decimals import noise_rounded_down, rounded_up
from tacit.releases.card import UPPER_BOUNDS
from tacit.releases.fields import NOT_STATED
from tacit.releases.gate import Verdict

# classes that a page names, and of which it shows the accuracy
MOST_CLASSES = 200


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


def bound_text(value: float | str) -> str:
    """Return an upper bound, rounded up; none where the document has "inf"."""
    if isinstance(value, str):
        return "none"
    return rounded_up(value)


def listed(parts: Sequence[str]) -> str:
    """Return texts in one line."""
    return "; ".join(parts) or "none listed"


def stated_fields(fields: Mapping[str, Any]) -> str:
    """Return fields of a document by their names."""
    return "; ".join(
        f"{words_of_name(name)}: {value_text(value, name)}" for name, value in fields.items()
    )


def value_text(value: Any, name: str = "") -> str:
    """Return a value of a document as text; `name` is that of its field."""
    if value is None:
        return NOT_STATED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return (
            "; ".join(f"{key} = {value_text(part, key)}" for key, part in value.items()) or "none"
        )
    if isinstance(value, tuple | list):
        return ", ".join(value_text(part, name) for part in value) or "none"
    if isinstance(value, float) and name.startswith("noise"):
        return noise_rounded_down(value)
    if isinstance(value, float):
        return rounded_up(value) if name in UPPER_BOUNDS else f"{value:.6g}"
    return str(value)


def words_of_name(name: str) -> str:
    """Return the name of a field as words."""
    return name.replace("_", " ")
