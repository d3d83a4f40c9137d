"""Files of a release, read as if an attacker had written them.

Only the three known names are opened, never a name or path that a file mentions; sizes are checked
before anything is parsed; nothing is unpickled. What model hubs, git and signers put beside the
three files is ignored, by name.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from tacit.compute.documents import parse_json
from tacit.errors import ReleaseError, excerpt, quoted
from tacit.privacy.guarantee import Guarantee
from tacit.releases.fields import ONE_LINE, Recorded
from tacit.releases.schema import CONTENT_TAGS, FORMAT, TYPE_NAMES, UTILITY_TAGS, VERSIONS, Document

DOCUMENT = "release.json"
ARRAYS = "arrays.safetensors"
CARD = "CARD.md"
README = "README.md"
SIGNATURE = "model.sig"
OF_TRANSPORT = (".git", ".gitattributes", ".cache")
"""Files that git and the clients of model hubs put into a folder."""
NEVER_OPENED = (README, "LICENSE", SIGNATURE, *OF_TRANSPORT)
LIMITS = {DOCUMENT: 4 * 2**20, ARRAYS: 4 * 2**30, CARD: 8 * 2**20}
FILES = tuple(LIMITS)
HEADER_LIMIT = 2**20

# The document of a folder of labels of public rows, see `tacit.releases.public_labels`.
LABELS_DOCUMENT = "labels.json"

# The document of a summary, see `tacit.releases.summary`.
SUMMARY_DOCUMENT = "summary.json"

# The beginning of a pointer of git-lfs, which stands for a large file.
LFS = b"version https://git-lfs"

# Events and uses of a guarantee that are accounted.
MAX_EVENTS = 50
MAX_USES = 10**6

# Bounds on the parameters of events, beside 0 and inf.
SMALLEST = 1e-30
LARGEST = 1e30
AGAIN = "get the release again from its owner"

Parsed = TypeVar("Parsed", bound=BaseModel)


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the bytes of the three files.

    Raises
    ------
    ReleaseError
        If a file is missing, unknown, too large or no plain file.
    """
    if not folder.is_dir():
        raise ReleaseError(f"{folder} is not a folder; give the folder of a release")
    if not (folder / DOCUMENT).exists() and any(folder.iterdir()):
        kind = kind_of_stores(folder)
        if kind is not None:
            fault = f"{folder} is {kind} and not a release"
            raise ReleaseError(f"{fault}; give the folder of a release")
    if (folder / LABELS_DOCUMENT).exists():
        fault = f"{folder} holds labels of public rows and not a release"
        raise ReleaseError(f"{fault}; check it with tacit inspect, read it with tacit.PublicLabels")
    if (folder / SUMMARY_DOCUMENT).exists():
        fault = f"{folder} holds a summary, which does not predict, and not a release"
        raise ReleaseError(f"{fault}; make one of it with tacit combine {folder} --out RELEASE")
    check_names(folder, besides=NEVER_OPENED)
    return {name: read_file(folder / name, LIMITS[name]) for name in FILES}


def kind_of_stores(folder: Path) -> str | None:
    """Say that a folder is a store or holds some; None if not."""
    # imported here, since predicting needs no code of stores
    from tacit.data.manifest import holds_stores, is_store

    if is_store(folder):
        return "an embedding store"
    return "a folder of embedding stores" if holds_stores(folder) else None


def check_names(
    folder: Path, besides: Collection[str] = (), files: Collection[str] = FILES
) -> None:
    """Refuse anything in the folder but `files`, by default those of a release, and the names in
    `besides`.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in besides:
                continue
            where = f"{folder}: {quoted(entry.name)}"
            if entry.name not in files:
                fault = f"{where} is not a file of a release ({', '.join(files)})"
                raise ReleaseError(f"{fault}; remove it, or {AGAIN}")
            if not entry.is_file(follow_symlinks=False):
                fault = f"{where} is a link or not a plain file"
                raise ReleaseError(f"{fault}; a release holds its own files, {AGAIN}")


def is_release(folder: Path, besides: Collection[str] = ()) -> bool:
    """Tell whether a folder holds a release, of plain files, and nothing else but `besides`."""
    return holds(folder, DOCUMENT, besides, FILES)


def holds(folder: Path, document: str, besides: Collection[str], files: Collection[str]) -> bool:
    """Tell whether a folder has the file `document`, and nothing but plain files of the names
    `files` or `besides`.
    """
    try:
        check_names(folder, besides, files)
    except ReleaseError:
        return False
    with os.scandir(folder) as entries:
        is_plain = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    return document in is_plain and all(is_plain.values())


def text_of(path: Path, data: bytes) -> str:
    """Decode a file of text; `path` names it in the error."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{path} is not UTF-8 text ({excerpt(str(error))}); {AGAIN}") from error


def parse_document(where: str, data: bytes) -> Document:
    """Parse `release.json`.

    Raises
    ------
    ReleaseError
        If it is not strict JSON, of another version, or off the schema.
    """
    return parse_model(
        Document,
        where,
        data,
        format=FORMAT,
        versions=VERSIONS,
        remedy="give the folder of a release",
    )


def parse_model(
    model: type[Parsed],
    where: str,
    data: bytes,
    *,
    format: str,
    versions: Sequence[int],
    remedy: str,
    again: str = AGAIN,
) -> Parsed:
    """Parse a document that states its format and version, by the model of these versions.

    Parameters
    ----------
    remedy : str
        What to give instead of a document of another format.
    again : str
        What to do about a damaged document.

    Raises
    ------
    ReleaseError
        If it is not strict JSON, of another format or version, or off the schema; `where` names it.
    """
    try:
        values = parse_json(data.decode("utf-8"))
    except ValueError as error:
        raise not_json(where, error, again) from error

    # format and version come first, since the schema of another version has other faults
    if not isinstance(values, dict) or values.get("format") != format:
        fault = f'{where} does not say "format": "{format}"'
        raise ReleaseError(f"{fault}; {remedy}")
    if values.get("version") not in versions:
        version = f"format version {quoted(values.get('version'))}"
        *earlier, last = map(str, versions)
        known = f"{', '.join(earlier)} and {last}" if earlier else last
        fault = f"{where} has {version}, this tacit reads {known}"
        raise ReleaseError(f"{fault}; use the tacit that wrote it")

    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise refusal(where, error, again) from error


def not_json(where: str, error: ValueError, again: str = AGAIN) -> ReleaseError:
    """The error of a text that is no JSON."""
    return ReleaseError(f"{where} is not valid JSON ({_one_line(error)}); {again}")


def parse_arrays(where: str, data: bytes) -> dict[str, NDArray[Any]]:
    """Parse `arrays.safetensors` into read-only arrays."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        fault = f"{where} is not a valid safetensors file ({_one_line(error)})"
        raise ReleaseError(f"{fault}; {AGAIN}") from error
    return {name: read_only(array) for name, array in arrays.items()}


def arrays_file(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of `arrays.safetensors`."""
    from safetensors.numpy import save

    return bytes(save(dict(arrays)))


def document_file(document: BaseModel) -> bytes:
    """Return the bytes of a document of JSON."""
    values = document.model_dump(mode="json")
    text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def check_sizes(files: Mapping[str, bytes], limits: Mapping[str, int], remedy: str) -> None:
    """Refuse files by name that are too large to be read again."""
    for name, data in files.items():
        if len(data) > limits[name]:
            fault = f"{name} has {len(data)} bytes, at most {limits[name]} are read"
            raise ReleaseError(f"{fault}; {remedy}")


def read_guarantee(recorded: Recorded, source: str) -> Guarantee:
    """Read the recorded guarantee, and refuse events that take too long to account."""
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
    parts = [part for event in events for part in event.contained()]
    n_events = max(len(parts), len(events))
    n_uses = sum(count for _, count in parts)
    if n_events > MAX_EVENTS or n_uses > MAX_USES:
        fault = f"more than {MAX_EVENTS} events or {MAX_USES} uses"
        raise ReleaseError(f"{fault}, which take too long to account")

    for event, _ in parts:
        for name, value in vars(event).items():
            is_number = isinstance(value, int | float) and 0 < value < math.inf
            if is_number and not SMALLEST <= value <= LARGEST:
                bounds = f"from {SMALLEST:g} to {LARGEST:g}"
                raise ReleaseError(f"{name} is {value:g}, not {bounds}, nor 0 or inf")


def refusal(where: str, error: ValidationError, remedy: str) -> ReleaseError:
    """Say in one line which value a model refused first."""
    first = error.errors()[0]
    tags = CONTENT_TAGS + UTILITY_TAGS + TYPE_NAMES
    parts = [str(part) for part in first["loc"] if part not in tags]
    place = ".".join(parts) or "document"
    rule = first["msg"]
    if first.get("ctx", {}).get("pattern") == ONE_LINE:
        rule = "must be one line, without control characters"
    fault = " ".join(f"{place} = {first['input']!r:.60}: {rule}".split())
    return ReleaseError(f"{where}: {fault}; {remedy}")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous copy in native byte order that cannot be written to."""
    copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    copy.flags.writeable = False
    return copy


def read_file(path: Path, limit: int) -> bytes:
    """Read one file, once it is known to be a plain file of at most `limit` bytes."""
    try:
        with open(path, "rb", opener=_open) as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                raise ReleaseError(f"{path} is not a plain file; {AGAIN}")
            if size > limit:
                raise ReleaseError(f"{path} has {size} bytes, at most {limit} are read; {AGAIN}")

            start = file.read(len(LFS))
            if start == LFS:
                fault = f"{path} is a pointer of git-lfs, not the file"
                raise ReleaseError(f"{fault}; install git-lfs and run git lfs pull")
            if path.name == ARRAYS:
                _check_header(path, start[:8], size)

            file.seek(0)
            return file.read(limit)
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read ({error.strerror}); {AGAIN}") from error


def _check_header(path: Path, start: bytes, size: int) -> None:
    """Check how long the header of a safetensors file says it is, since it is parsed whole."""
    header = int.from_bytes(start, "little")
    most = min(HEADER_LIMIT, max(size - len(start), 0))
    if header > most:
        fault = f"{path} states a header of {header} bytes, at most {most} can be"
        raise ReleaseError(f"{fault}; {AGAIN}")


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _one_line(error: Exception) -> str:
    return excerpt(str(error)) or type(error).__name__
