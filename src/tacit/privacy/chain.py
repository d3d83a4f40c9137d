"""Lines of JSON, each with a hash of itself and of the hash before it.

The hash finds accidents and careless edits. It does not stop an owner who recomputes all hashes,
and it does not show that lines are missing at the end.
"""

import hashlib
import json
from typing import Any

from tacit.compute.documents import parse_json

_HASH = b', "hash": "'

# stands for the hash of the line before the first
_NO_LINE = hashlib.sha256().hexdigest()


class Chain:
    """Reads the lines of a file in order, then makes the next line."""

    def __init__(self) -> None:
        self._previous = _NO_LINE

    def read(self, line: bytes, *, compare: bool = True) -> dict[str, Any]:
        """The entry of the next line, without its hash, which `compare=False` does not check.

        A line that is cut off, holds no JSON object or does not match its hash raises a ValueError.
        """
        if not line.endswith(b"\n"):
            raise ValueError("it is cut off")
        entry = parse_json(line.decode())
        if not isinstance(entry, dict):
            raise ValueError("it is not a JSON object")

        # The hash is of the line without its last member, `hash`, and of the hash before it.
        body, mark, ending = line.rpartition(_HASH)
        if not mark:
            raise ValueError(
                "it has no hash: it was added by hand, or by an earlier tacit, whose ledgers this"
                " version does not read: then start another that allows what it leaves"
            )
        if compare:
            self._previous = self._digest(body + b"}")
            if ending != f'{self._previous}"}}\n'.encode():
                raise ValueError("it does not match its hash: it was changed, or a line before it")
        return {name: value for name, value in entry.items() if name != "hash"}

    def next(self, entry: dict[str, Any]) -> bytes:
        """The line of a new entry after the lines that were read."""
        body = json.dumps(entry).encode()
        return body[:-1] + _HASH + self._digest(body).encode() + b'"}\n'

    @property
    def head(self) -> str:
        """The hash of the last line that was read; empty before the first."""
        return "" if self._previous == _NO_LINE else self._previous

    def _digest(self, body: bytes) -> str:
        return hashlib.sha256(self._previous.encode() + body).hexdigest()
