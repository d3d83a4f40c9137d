"""The `card.json` beside arrays: the files that it describes, their class list and public facts."""

from pathlib import Path
from typing import Any, NamedTuple

from tacit.compute.documents import read_object
from tacit.data.rows import one_line
from tacit.errors import InputError, quoted

# Label counts and accuracies in a card are facts about records: they stay behind.
PUBLIC = (
    "dataset",
    "source_repository",
    "source_commit",
    "licence",
    "notes",
    "encoder",
    "order",
    "reduction",
    "class_words",
)


class Card(NamedTuple):
    """The declared classes, if any, and the public facts of a card."""

    classes: list[Any] | None
    facts: dict[str, Any]


def beside(path: Path) -> Card:
    """The card in the folder of `path` if it lists that file, else an empty card."""
    card = path.parent / "card.json"
    if not card.is_file():
        return Card(None, {})
    files = _load(card).get("files") or []
    if not isinstance(files, list | dict):
        raise InputError(
            f"{card}: files must be a list of names, not {quoted(files)}; correct the card"
        )
    if path.name not in files:
        return Card(None, {})
    return read(card)


def read(path: Path) -> Card:
    """Read a card; all but its class list and public facts is left out."""
    entries = _load(path)
    classes = entries.get("classes")
    if classes is not None and not isinstance(classes, list):
        raise InputError(
            f"{path}: classes must be a list of class values, not {quoted(classes)}; correct the"
            " card"
        )
    facts = {key: entries[key] for key in PUBLIC if entries.get(key) is not None}
    return Card(classes, facts)


def _load(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); check its name and permissions"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({one_line(error)}); correct or remove it") from error
