"""Facts on the card of a release about its data and encoder, from the card of the data."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.data.imports import Data
from tacit.data.names import ClassNames
from tacit.data.synthetic import KEY, RELEASE
from tacit.privacy.guarantee import Guarantee
from tacit.releases.fields import NOT_STATED
from tacit.releases.schema import Document, EncoderProvenance, Provenance

# Most letters of a fact on a card.
MAX_LETTERS = 1000

# Facts of an encoder on the card of a release, and their keys on the card of the data.
ENCODER_KEYS = {"name": "name", "revision": "weights_commit", "hash": "weights_sha256"}

# Keys of an encoder's card that say how records are prepared, which of its outputs is used, and
# what is done with its features; neither the library nor the precision, which change only a row's
# last bits.
RECIPE_KEYS = ("files_sha256", "input", "mirror", "projection_sha256", "settings", "tensors")

# The same on cards that people wrote themselves.
KEYS_BY_HAND = ("how", "pixel_size", "preprocessing")


def public_facts(public: Data) -> dict[str, str]:
    """Return name, revision and hash of public data."""
    commit = public.card.get("source_commit", NOT_STATED)
    revision = str(commit)
    if isinstance(commit, dict):
        revision = ", ".join(map(str, commit.values()))
    return {
        "name": one_line(public.identity),
        "revision": one_line(revision),
        "hash": public.content_hash,
    }


def names_facts(names: ClassNames) -> dict[str, Any]:
    """Return name and hash of the data of class names, the encoder's name, and the templates."""
    facts = names.facts
    name = facts.get("name", NOT_STATED)
    through = facts.get("through")
    if isinstance(through, dict):
        name = f"{name}, through the public rows of {through.get('name')}"

    encoder_name = NOT_STATED
    encoder = facts.get("encoder")
    if isinstance(encoder, dict):
        encoder_name = encoder.get("name", NOT_STATED)

    templates = facts.get("templates")
    if not isinstance(templates, list):
        templates = []
    return {
        "name": one_line(name),
        "hash": one_line(facts.get("hash", NOT_STATED)),
        "encoder": one_line(encoder_name),
        "templates": tuple(map(one_line, templates)),
    }


def encoder_facts(data: Data) -> dict[str, str] | None:
    """Return name, revision, hash and recipe of the encoder of the rows, if their card names it."""
    encoder = data.card.get("encoder")
    if not isinstance(encoder, dict):
        return None
    facts = {fact: one_line(encoder.get(key, NOT_STATED)) for fact, key in ENCODER_KEYS.items()}
    return facts | {"recipe": _recipe(encoder)}


def encoder_card(stated: Provenance) -> dict[str, str]:
    """Return the facts of an encoder as a card of data has them: the inverse of `encoder_facts`.

    A recipe of which a release states only the hash is left out.
    """
    facts = stated.model_dump()
    card = {key: facts[fact] for fact, key in ENCODER_KEYS.items() if facts[fact] != NOT_STATED}
    if isinstance(stated, EncoderProvenance) and stated.recipe.startswith("{"):
        card |= json.loads(stated.recipe)
    return card


def synthetic_card(
    document: Document, sha256: str, guarantee: Guarantee, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the card of data that were drawn from a release: its statement, and how they were
    drawn.
    """
    card: dict[str, Any] = {
        KEY: {
            RELEASE: document.product.name,
            "sha256": sha256,
            "stamp": document.stamp,
            "statement": guarantee.statement(),
            "what": (
                "rows and labels drawn from the release alone, or chosen from public rows by such"
                " draws; no row is a record of the private data"
            ),
            **facts,
        }
    }
    encoder = encoder_card(document.public_inputs.encoder)
    if encoder:
        card["encoder"] = encoder
    return card


def _recipe(encoder: Mapping[str, Any]) -> str:
    """Write the recipe as JSON of ASCII; the hash of a recipe that is too long for a card."""
    keys = [key for key in (*RECIPE_KEYS, *KEYS_BY_HAND) if key in encoder]
    if not keys:
        return NOT_STATED
    recipe = json.dumps({key: encoder[key] for key in keys}, sort_keys=True)
    if len(recipe) > MAX_LETTERS:
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
    release_facts = stated.model_dump()
    if release_facts["name"] == NOT_STATED:
        return EncoderComparison((), ())

    row_facts = encoder_facts(data) or {}
    different = []
    uncompared = []
    for fact, value in release_facts.items():
        other = row_facts.get(fact, NOT_STATED)
        if (value == NOT_STATED) != (other == NOT_STATED):
            uncompared.append(fact)
        elif value != other:
            different.append(f"{fact} {other!r} where the release states {value!r}")
    return EncoderComparison(tuple(different), tuple(uncompared))


def one_line(value: Any) -> str:
    """Return text that a card can state: printable, on one line, at most 1000 characters."""
    letters = (letter if letter.isprintable() else " " for letter in str(value))
    return "".join(letters)[:MAX_LETTERS]
