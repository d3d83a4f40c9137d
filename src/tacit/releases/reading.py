"""Files of a release, read as if an attacker had written them.

Only the three known names are opened, never a name or path that a file mentions; sizes are checked
before anything is parsed; nothing is unpickled. What model hubs, git and signers put beside the
three files is ignored, by name.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from tacit.compute.documents import parse_json
from tacit.errors import ReleaseError, excerpt, quoted
from tacit.privacy.guarantee import Guarantee
from tacit.releases.schema import FORMAT, ONE_LINE, VERSIONS, Document, Recorded

DOCUMENT, ARRAYS, CARD = "release.json", "arrays.safetensors", "CARD.md"
README, SIGNATURE = "README.md", "model.sig"
OF_TRANSPORT = (".git", ".gitattributes", ".cache")
"""What git and the clients of model hubs put into a folder."""
NEVER_OPENED = (README, "LICENSE", SIGNATURE, *OF_TRANSPORT)
LIMITS = {DOCUMENT: 4 * 2**20, ARRAYS: 4 * 2**30, CARD: 8 * 2**20}
HEADER_LIMIT = 2**20
LFS = b"version https://git-lfs"  # how such a pointer starts
MOST_EVENTS, MOST_USES = 50, 10**6
SMALLEST, LARGEST = 1e-30, 1e30  # parameters of events, beside 0 and inf
AGAIN = "get the release again from its owner"


def read_files(folder: Path) -> dict[str, bytes]:
    """The bytes of the three files; ReleaseError if a file is missing, unknown, too large or no
    plain file.
    """
    if not folder.is_dir():
        raise ReleaseError(f"{folder} is not a folder; give the folder of a release")
    if not (folder / DOCUMENT).exists() and any(folder.iterdir()):
        from tacit.data.manifest import holds_stores, is_store  # predicting needs no code of stores

        if is_store(folder) or holds_stores(folder):
            what = "an embedding store" if is_store(folder) else "a folder of embedding stores"
            raise ReleaseError(
                f"{folder} is {what} and not a release; give the folder of a release"
            )
    check_names(folder, besides=NEVER_OPENED)
    return {name: _read(folder / name, limit) for name, limit in LIMITS.items()}


def check_names(folder: Path, besides: Collection[str] = ()) -> None:
    """Refuse anything in the folder that is not one of the three files, but for the names
    `besides`.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in besides:
                continue
            where = f"{folder}: {quoted(entry.name)}"
            if entry.name not in LIMITS:
                raise ReleaseError(
                    f"{where} is not a file of a release ({', '.join(LIMITS)}); remove it, or"
                    f" {AGAIN}"
                )
            if not entry.is_file(follow_symlinks=False):
                raise ReleaseError(
                    f"{where} is a link or not a plain file; a release holds its own files, {AGAIN}"
                )


def is_release(folder: Path, besides: Collection[str] = ()) -> bool:
    """Whether a folder holds a release and nothing else but files named `besides`, all of them
    plain files.
    """
    try:
        check_names(folder, besides)
    except ReleaseError:
        return False
    with os.scandir(folder) as entries:
        plain = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    return DOCUMENT in plain and all(plain.values())


def parse_document(where: str, data: bytes) -> Document:
    """The document in `release.json`; ReleaseError if it is no strict JSON, of another version, or
    off the schema.
    """
    try:
        stated = parse_json(data.decode("utf-8"))
    except ValueError as error:
        raise ReleaseError(f"{where} is not valid JSON ({_one_line(error)}); {AGAIN}") from error
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise ReleaseError(
            f'{where} does not say "format": "{FORMAT}"; give the folder of a release'
        )
    if stated.get("version") not in VERSIONS:
        version = f"format version {stated.get('version')!r:.40}"
        *earlier, last = map(str, VERSIONS)
        known = f"{', '.join(earlier)} and {last}"
        raise ReleaseError(
            f"{where} has {version}, this tacit reads {known}; use the tacit that wrote it"
        )
    try:
        return Document.model_validate_json(data)
    except ValidationError as error:
        raise refusal(where, error, AGAIN) from error


def parse_arrays(where: str, data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays in `arrays.safetensors`, read-only."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReleaseError(
            f"{where} is not a valid safetensors file ({_one_line(error)}); {AGAIN}"
        ) from error
    return {name: read_only(array) for name, array in arrays.items()}


def arrays_file(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """What `arrays.safetensors` holds."""
    from safetensors.numpy import save

    return bytes(save(dict(arrays)))


def read_guarantee(recorded: Recorded, source: str) -> Guarantee:
    """The recorded guarantee; events that it would take too long to account are refused."""
    try:
        guarantee = Guarantee.from_json(recorded.model_dump())
        guarantee.rho, guarantee.mu, guarantee.event.describe()
        _check_countable(guarantee)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        fault = f"the recorded guarantee cannot be read ({excerpt(str(error))})"
        raise ReleaseError(f"{source}: {fault}; {AGAIN}") from error
    return guarantee


def _check_countable(guarantee: Guarantee) -> None:
    """Refuse too many events, and parameters beyond any use."""
    events = [guarantee.event, *(event for _, event in guarantee.groups)]
    contained = [part for event in events for part in event.contained()]
    if max(len(contained), len(events)) > MOST_EVENTS or sum(n for _, n in contained) > MOST_USES:
        raise ReleaseError(
            f"more than {MOST_EVENTS} events or {MOST_USES} uses, which take too long to account"
        )
    for event, _ in contained:
        for name, value in vars(event).items():
            number = isinstance(value, int | float) and 0 < value < math.inf
            if number and not SMALLEST <= value <= LARGEST:
                raise ReleaseError(
                    f"{name} is {value:g}, not from {SMALLEST:g} to {LARGEST:g}, nor 0 or inf"
                )


def refusal(where: str, error: ValidationError, remedy: str) -> ReleaseError:
    """One line about the first value that a model refused."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "document"
    of_lines = first.get("ctx", {}).get("pattern") == ONE_LINE
    rule = "must be one line, without control characters" if of_lines else first["msg"]
    fault = " ".join(f"{place} = {first['input']!r:.60}: {rule}".split())
    return ReleaseError(f"{where}: {fault}; {remedy}")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous copy in native byte order that cannot be written to."""
    copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    copy.flags.writeable = False
    return copy


def _read(path: Path, limit: int) -> bytes:
    try:
        with open(path, "rb", opener=_open) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ReleaseError(f"{path} is not a plain file; {AGAIN}")
            if status.st_size > limit:
                raise ReleaseError(
                    f"{path} has {status.st_size} bytes, at most {limit} are read; {AGAIN}"
                )
            if file.read(len(LFS)) == LFS:
                raise ReleaseError(
                    f"{path} is a pointer of git-lfs, not the file; install git-lfs and run git lfs"
                    " pull"
                )
            file.seek(0)
            # its header is parsed whole, so its length is checked before the rest is read
            if path.name == ARRAYS:
                header, most = (
                    int.from_bytes(file.read(8), "little"),
                    min(HEADER_LIMIT, max(status.st_size - 8, 0)),
                )
                if header > most:
                    raise ReleaseError(
                        f"{path} states a header of {header} bytes, at most {most} can be; {AGAIN}"
                    )
                file.seek(0)
            return file.read(limit)
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from error


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _one_line(error: Exception) -> str:
    return excerpt(str(error)) or type(error).__name__
