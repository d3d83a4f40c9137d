"""Lines of JSON, each with a hash of itself and of the hash before it.

The hash finds accidents and careless edits. It does not stop an owner who recomputes all hashes,
and it does not show that lines are missing at the end. Lines without a hash may come first (earlier
versions wrote none); the first hash covers them.
"""

import hashlib
import json
from typing import Any

from tacit.compute.documents import parse_json

_HASH = b', "hash": "'


class Chain:
    """Reads the lines of a file in order, then makes the next line."""

    def __init__(self) -> None:
        self._unhashed = hashlib.sha256()  # of the lines before the first hash
        self._previous = ""

    @property
    def hashed(self) -> bool:
        """Whether the last line that was read has a hash."""
        return bool(self._previous)

    def read(self, line: bytes, *, compare: bool = True) -> dict[str, Any]:
        """The entry of the next line, without its hash, which `compare=False` does not check.

        A line that is cut off, holds no JSON object or does not match its hash raises a ValueError.
        """
        if not line.endswith(b"\n"):
            raise ValueError("it is cut off")
        entry = parse_json(line.decode())
        if not isinstance(entry, dict):
            raise ValueError("it is not a JSON object")
        body, mark, stated = line.rpartition(_HASH)
        if mark and compare:
            self._previous = self._digest(body + b"}")
            if stated != f'{self._previous}"}}\n'.encode():
                raise ValueError("it does not match its hash: it was changed, or a line before it")
        elif self._previous:
            raise ValueError("it has no hash, and lines before it have")
        else:
            self._unhashed.update(line)
        return {name: value for name, value in entry.items() if name != "hash"}

    def next(self, entry: dict[str, Any]) -> bytes:
        """The line of a new entry after the lines that were read."""
        body = json.dumps(entry).encode()
        return body[:-1] + _HASH + self._digest(body).encode() + b'"}\n'

    def _digest(self, body: bytes) -> str:
        previous = self._previous or self._unhashed.hexdigest()
        return hashlib.sha256(previous.encode() + body).hexdigest()
