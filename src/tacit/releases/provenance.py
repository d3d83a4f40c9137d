"""What the card of a release states about the data and the encoder behind it, from the card of the
data.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.data.imports import Data
from tacit.data.names import ClassNames
from tacit.releases.schema import NOT_STATED, Provenance

MOST_LETTERS = 1000  # of a fact on a card
ENCODER_KEYS = {"name": "name", "revision": "weights_commit", "hash": "weights_sha256"}

# of an encoder's card: how records are prepared, which of its outputs is used, and what is done
# with its features;
# neither the library nor the precision, which change the last bits of a row alone
RECIPE_KEYS = ("files_sha256", "input", "mirror", "projection_sha256", "settings", "tensors")
OF_CARDS_BY_HAND = ("how", "pixel_size", "preprocessing")


def public_facts(public: Data) -> dict[str, str]:
    """Name, revision and hash of public data."""
    commit = public.card.get("source_commit", "not stated")
    revision = ", ".join(map(str, commit.values())) if isinstance(commit, dict) else str(commit)
    return {
        "name": one_line(public.identity),
        "revision": one_line(revision),
        "hash": public.content_hash,
    }


def names_facts(names: ClassNames) -> dict[str, Any]:
    """Name and hash of the data that rows of class names are from, the encoder's name, and the
    templates.
    """
    facts, encoder, through = names.facts, names.facts.get("encoder"), names.facts.get("through")
    templates = facts.get("templates")
    name = facts.get("name", "not stated")
    if isinstance(through, dict):
        name = f"{name}, through the public rows of {through.get('name')}"
    return {
        "name": one_line(name),
        "hash": one_line(facts.get("hash", "not stated")),
        "encoder": one_line(
            encoder.get("name", "not stated") if isinstance(encoder, dict) else "not stated"
        ),
        "templates": tuple(map(one_line, templates)) if isinstance(templates, list) else (),
    }


def encoder_facts(data: Data) -> dict[str, str] | None:
    """Name, revision, hash and recipe of the encoder that made the rows, if their card names
    one.
    """
    encoder = data.card.get("encoder")
    if not isinstance(encoder, dict):
        return None
    facts = {fact: one_line(encoder.get(key, NOT_STATED)) for fact, key in ENCODER_KEYS.items()}
    return facts | {"recipe": _recipe(encoder)}


def _recipe(encoder: Mapping[str, Any]) -> str:
    """The recipe as JSON of ASCII; the hash of a recipe that is too long for a card."""
    stated = {key: encoder[key] for key in (*RECIPE_KEYS, *OF_CARDS_BY_HAND) if key in encoder}
    if not stated:
        return NOT_STATED
    recipe = json.dumps(stated, sort_keys=True)
    if len(recipe) > MOST_LETTERS:
        return f"sha256 {hashlib.sha256(recipe.encode()).hexdigest()}"
    return recipe


@dataclass(frozen=True)
class EncoderComparison:
    """The encoder of a release beside that of rows to classify.

    `different` are lines with both values, `uncompared` are facts that only one of the two states.
    """

    different: tuple[str, ...]
    uncompared: tuple[str, ...]


def compare_encoders(stated: Provenance, data: Data) -> EncoderComparison:
    """Compare the encoder that a release states with that of rows.

    A release that names no encoder cannot be compared. One of a version before 5 states no recipe.
    """
    of_release = stated.model_dump()
    if of_release["name"] == NOT_STATED:
        return EncoderComparison((), ())
    of_rows = encoder_facts(data) or {}
    different = []
    uncompared = []
    for fact, value in of_release.items():
        other = of_rows.get(fact, NOT_STATED)
        if (value == NOT_STATED) != (other == NOT_STATED):
            uncompared.append(fact)
        elif value != other:
            different.append(f"{fact} {other!r} where the release states {value!r}")
    return EncoderComparison(tuple(different), tuple(uncompared))


def one_line(value: Any) -> str:
    """Text that a card can state: printable, on one line, at most 1000 characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))[:MOST_LETTERS]
