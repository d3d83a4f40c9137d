"""An owner's side of a round, whatever carries the messages.

python owner.py FOLDER REQUEST

The owner's folder holds what was agreed on (`recipe.json`, `public.npy`), the records (a store),
their ledger, and after the round the summary. The ledger is charged once, however often the server
asks and whenever the process dies:

- before the charge: nothing happened; the next request starts again.
- between the charge and the stored summary: the charge stands, and the summary is lost. It may have
  been seen, since nobody can tell a crash from a deleted folder. So the next request is refused: a
  second summary has other noise, and needs a second charge, which a person decides on.
- after the summary is stored: the next request gets the stored summary, to the bit.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from recipe import FILE, PUBLIC, Recipe, sha256

RECORDS = "records"
SUMMARY = "summary"
STARTED = "started.json"

# all that a server is told of an unexpected error
UNEXPECTED = b"the owner could not answer; its log says why"


class Refused(Exception):
    """The server asked for something else; the message holds nothing private and is sent."""


class Owner:
    """The owner of the records in a folder.

    Parameters
    ----------
    folder : Path
        Only the owner's processes may read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe = Recipe.of_json((folder / FILE).read_text(encoding="utf-8"))
        self.store = tacit.EmbeddingStore.open(folder / RECORDS)
        self.ledger = tacit.Ledger.beside(folder / RECORDS, self.store.identity)

    def answer(self, request: str) -> dict[str, bytes]:
        """Return the files of the summary, which is made at the first request.

        Raises
        ------
        Refused
            If the request is for another recipe than the one that was agreed on.
        """
        self._check(request)
        # a second request waits here, and then finds the summary
        with self._locked():
            started = self._started()
            if not self._has_summary():
                self._start(started)
                self._make()
            return self._stored()

    def _check(self, request: str) -> None:
        """Refuse a request for another recipe, and name the difference."""
        try:
            requested = Recipe.of_json(request)
        except (TypeError, ValueError) as error:
            raise Refused("the request is no recipe") from error
        difference = self.recipe.difference(requested)
        if difference is not None:
            raise Refused(difference)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the system releases however the process ends."""
        with (self.folder / ".lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _has_summary(self) -> bool:
        return (self.folder / SUMMARY).is_dir()

    def _stored(self) -> dict[str, bytes]:
        """Read the stored summary."""
        return tacit.Summary.load(self.folder / SUMMARY).verify().files()

    def _start(self, started: dict[str, Any] | None) -> None:
        """Note how many charges the ledger has, before the summary adds one.

        Raises
        ------
        RuntimeError
            If an earlier start was charged and left no summary.
        """
        charges = len(self.ledger.account().charges)
        if started is None:
            note = {"charges": charges, "recipe": self.recipe.to_json()}
            write_durably(self.folder / STARTED, json.dumps(note))
        elif started["charges"] != charges:
            raise RuntimeError(
                f"{self.ledger.path.name} has a charge since {STARTED} was written, and there is"
                " no summary: it was lost after it was paid for, and nothing refunds it. To make"
                f" and pay for another one, delete {STARTED}"
            )

    def _started(self) -> dict[str, Any] | None:
        """Read the note of an earlier start, which must be of the same recipe."""
        path = self.folder / STARTED
        if not path.exists():
            if self._has_summary():
                raise RuntimeError(f"{path} is missing beside a summary; restore it")
            return None
        note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        difference = self.recipe.difference(Recipe.of_json(note["recipe"]))
        if difference is not None:
            raise RuntimeError(
                f"{path} is of an earlier round: {difference}; answer each round from a folder of"
                f" its own, in which {RECORDS} is a link to the store"
            )
        return note

    def _make(self) -> None:
        """Charge the ledger, draw the noise and store the summary."""
        public = self.folder / PUBLIC
        if sha256(public) != self.recipe.public_sha256:
            raise RuntimeError(f"{public} is not the file that {FILE} names; fetch it again")

        with warnings_in(log_of(self.folder)):
            summary = self.recipe.summary_of(
                self.store.x,
                self.store.labels,
                persons=self.store.persons,
                part=self.store.identity,
                public=np.load(public),
                ledger=self.ledger,
            )
        summary.save(self.folder / SUMMARY)


def reply(folder: Path, request: str) -> dict[str, bytes]:
    """Return what is sent to the server: the files of the summary, or one entry `refused`.

    An unexpected error may quote private data, so it goes into the owner's log alone.
    """
    try:
        return Owner(folder).answer(request)
    except Refused as refusal:
        return {"refused": str(refusal).encode()}
    except Exception as error:
        log_of(folder).error("no summary was sent", exc_info=error)
        return {"refused": UNEXPECTED}


def log_of(folder: Path) -> logging.Logger:
    """Return the owner's log, which writes into the folder and nowhere else."""
    log = logging.getLogger(f"owner {folder.resolve()}")
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.FileHandler(folder / "owner.log", encoding="utf-8"))
    return log


@contextmanager
def warnings_in(log: logging.Logger) -> Iterator[None]:
    """Write warnings into a log: they may quote private numbers, and whoever runs the messages may
    send to the server what a process prints.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: log.warning("%s", message)
        yield


def write_durably(path: Path, text: str) -> None:
    """Write a file that is whole and on the disk, or not there."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    try:
        Owner(folder).answer(Path(sys.argv[2]).read_text(encoding="utf-8"))
    except (Refused, RuntimeError, tacit.TacitError) as error:
        sys.exit(f"no summary: {error}")
    print(f"{folder / SUMMARY}: the summary, which may be sent")
