"""What the card of a release states about the data and the encoder behind it, from the card of the data."""

from typing import Any

from tacit.data.imports import Data
from tacit.data.names import ClassNames


def public_facts(public: Data) -> dict[str, str]:
    """Name, revision and hash of public data."""
    commit = public.card.get("source_commit", "not stated")
    revision = ", ".join(map(str, commit.values())) if isinstance(commit, dict) else str(commit)
    return {"name": one_line(public.identity), "revision": one_line(revision), "hash": public.content_hash}


def names_facts(names: ClassNames) -> dict[str, Any]:
    """Name and hash of the data that rows of class names are from, the encoder's name, and the templates."""
    facts, encoder, through = names.facts, names.facts.get("encoder"), names.facts.get("through")
    templates = facts.get("templates")
    name = facts.get("name", "not stated")
    if isinstance(through, dict):
        name = f"{name}, through the public rows of {through.get('name')}"
    return {
        "name": one_line(name),
        "hash": one_line(facts.get("hash", "not stated")),
        "encoder": one_line(encoder.get("name", "not stated") if isinstance(encoder, dict) else "not stated"),
        "templates": tuple(map(one_line, templates)) if isinstance(templates, list) else (),
    }


def encoder_facts(data: Data) -> dict[str, str] | None:
    """Name, revision and hash of the encoder that made the rows, if their card names one."""
    encoder = data.card.get("encoder")
    if not isinstance(encoder, dict):
        return None
    keys = {"name": "name", "revision": "weights_commit", "hash": "weights_sha256"}
    return {fact: one_line(encoder.get(key, "not stated")) for fact, key in keys.items()}


def one_line(value: Any) -> str:
    """Text that a card can state: printable, on one line, at most 1000 characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))[:1000]
