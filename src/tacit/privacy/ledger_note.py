"""The note in a store's manifest that a ledger counts what is spent on the store's records.

A store finds its ledger by its path. The note goes with the store when it is moved or renamed: a
fit that finds no ledger is then refused, where it would otherwise be charged to no ledger. Earlier
versions of tacit ignore the note.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit.compute.atomic import atomic_file
from tacit.compute.documents import read_object
from tacit.compute.shared import locked

# here and not in `data.manifest`, which imports them, since privacy may not import data
MANIFEST = "manifest.json"
FORMAT = "tacit-embeddings"
KEY = "has_ledger"


def has_note(data: Path) -> bool:
    """Return whether `data` is a store whose manifest notes a ledger; a manifest that is damaged
    notes none.
    """
    try:
        return _read(data).get(KEY) is True
    except (OSError, ValueError):
        return False


def note(data: Path) -> None:
    """Note a ledger in the manifest of `data`, if `data` is a store.

    Raises
    ------
    OSError, ValueError
        If the manifest cannot be read or written.
    """
    if not (data / MANIFEST).is_file():
        return
    manifest = _read(data)
    if manifest.get("format") != FORMAT or manifest.get(KEY) is True:
        return

    # An append to the store replaces the manifest too, so it is read again under the lock.
    with locked(data / ".lock"):
        text = json.dumps(_read(data) | {KEY: True}, indent=1, ensure_ascii=False)
        with atomic_file(data / MANIFEST, force=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")


def _read(data: Path) -> dict[str, Any]:
    return read_object(data / MANIFEST)
