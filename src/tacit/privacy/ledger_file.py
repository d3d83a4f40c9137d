"""The file of a ledger: whole lines, appended under a lock that is held from reading to writing."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tacit.compute.locks import lock
from tacit.errors import LedgerError

# Seconds to wait for the first entry of a file that another process creates.
_PATIENCE = 1.0


def check_exists(path: Path) -> None:
    """Refuse a file that does not exist."""
    if not path.exists():
        raise LedgerError(
            f"ledger {path} does not exist; check its name, or start it by tacit ledger DATA --new"
            f" --file {path.name} --allow ... (in Python Ledger.allow)"
        )


def check_file(path: Path) -> None:
    """Refuse what is not a plain file, and an empty file, unless another process is creating it."""
    if path.exists() and not path.is_file():
        raise LedgerError(f"ledger {path} is not a plain file; choose another")

    deadline = time.monotonic() + _PATIENCE
    while path.exists() and path.stat().st_size == 0:
        if time.monotonic() > deadline:
            remedy = "restore it from a copy, or delete it if nothing was ever charged"
            raise LedgerError(f"ledger {path} is empty, so its entries are lost; {remedy}")
        time.sleep(0.01)


@contextmanager
def locked(path: Path, *, create: bool) -> Iterator[IO[bytes]]:
    """The file, open for appending and locked; a file that is created here and gets no entry is
    removed again.
    """
    file, is_new = _opened(path, create=create)
    with file:
        try:
            # The lock is released when the file is closed, also by a crash.
            _lock(file, path)
            if not _is_at_path(file, path):
                raise LedgerError(f"ledger {path} was replaced while it was opened; try again")
            yield file
        finally:
            if is_new and os.fstat(file.fileno()).st_size == 0:
                path.unlink(missing_ok=True)


def append(file: IO[bytes], path: Path, line: bytes) -> None:
    """Append a line and wait until it is on disk; a line that is cut short is removed."""
    length = file.seek(0, os.SEEK_END)
    try:
        if file.write(line) != len(line):
            # a full disk takes a part of the line without an error
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError as error:
        os.truncate(file.fileno(), length)
        raise LedgerError(
            f"ledger {path} cannot be written ({error.strerror}); nothing is charged"
        ) from error


def _opened(path: Path, *, create: bool) -> tuple[IO[bytes], bool]:
    """Open the file for appending; return it, and True if it was created here."""
    try:
        if create:
            with suppress(FileExistsError):
                return path.open("xb+", buffering=0), True
        check_file(path)
        opener = None if create else _existing
        return open(path, "ab+", buffering=0, opener=opener), False
    except OSError as error:
        if not create:
            check_exists(path)
        raise LedgerError(
            f"ledger {path} cannot be written ({error.strerror}); choose another"
        ) from error


def _existing(path: str, flags: int) -> int:
    """Open a file as `open` does, but never create it."""
    return os.open(path, flags & ~os.O_CREAT)


def _is_at_path(file: IO[bytes], path: Path) -> bool:
    """Tell whether an open file is still the one at the path, and not a file it replaced."""
    if not path.exists():
        return False
    return os.path.samestat(os.fstat(file.fileno()), path.stat())


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        lock(file)
    except OSError as error:
        raise LedgerError(
            f"ledger {path} cannot be locked ({error.strerror}), so two processes could spend the"
            " same allowance; keep it on a file system with locks"
        ) from error
