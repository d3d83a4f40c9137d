"""Files of a summary, read as if an attacker had written them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.wide import Totals, Wide
from tacit.errors import ReleaseError
from tacit.models.summarised import triangle_size
from tacit.releases import reading
from tacit.releases.reading import CARD
from tacit.releases.summary_document import FORMAT, VERSION, SummaryDocument

AGAIN = "get the summary again from its owner"
DOCUMENT = reading.SUMMARY_DOCUMENT
ARRAYS = "sums.safetensors"
LIMITS = {DOCUMENT: 2**26, ARRAYS: reading.LIMITS[reading.ARRAYS], CARD: 2**26}

SUMS = "sums"
SUMS_HIGH = "sums_high"
MOMENTS = "moments"
MOMENTS_HIGH = "moments_high"
CENTRE = "centre"
DTYPES = {
    SUMS: np.int64,
    SUMS_HIGH: np.int64,
    MOMENTS: np.int64,
    MOMENTS_HIGH: np.int64,
    CENTRE: np.float64,
}

# integers, and the high words beside them where 64 bits do not hold them
WORDS = {SUMS: SUMS_HIGH, MOMENTS: MOMENTS_HIGH}


def holds_summary(folder: Path, besides: tuple[str, ...] = ()) -> bool:
    """Tell whether a folder holds a summary, in plain files, and nothing else but `besides`."""
    return reading.holds(folder, DOCUMENT, besides, tuple(LIMITS))


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the bytes of the three files.

    Raises
    ------
    ReleaseError
        If a file is missing, unknown, too large or no plain file.
    """
    _check_kind(folder)
    reading.check_names(folder, reading.NEVER_OPENED, tuple(LIMITS))
    return {name: reading.read_file(folder / name, limit) for name, limit in LIMITS.items()}


def stamp_of_files(folder: Path) -> list[tuple[int, int]]:
    """Return sizes and times of the three files, which change when a file does."""
    try:
        found = [(folder / name).stat() for name in LIMITS]
    except OSError as error:
        _check_kind(folder)
        fault = f"{folder} is no folder of a summary ({error.strerror})"
        raise ReleaseError(f"{fault}; give a folder that tacit summarise wrote") from error
    return [(status.st_size, status.st_mtime_ns) for status in found]


def read_document(folder: Path) -> SummaryDocument:
    """Read `summary.json` alone, without the sums."""
    _check_kind(folder)
    data = reading.read_file(folder / DOCUMENT, LIMITS[DOCUMENT])
    return parse_summary(str(folder / DOCUMENT), data)


def _check_kind(folder: Path) -> None:
    """Refuse what is no folder of a summary, and say what it is."""
    if not folder.is_dir():
        fault = "is not a folder" if folder.exists() else "does not exist"
        raise ReleaseError(f"{folder} {fault}; give the folder of a summary")
    if (folder / DOCUMENT).is_file():
        return
    if (folder / reading.LABELS_DOCUMENT).exists():
        raise ReleaseError(
            f"{folder} holds labels of public rows and not a summary; give the summaries that tacit"
            " summarise wrote"
        )
    if (folder / reading.DOCUMENT).exists():
        fault = f"{folder} is a release and not a summary, and releases do not add up"
        raise ReleaseError(f"{fault}; give the summaries that tacit summarise wrote")
    kind = reading.kind_of_stores(folder)
    if kind is not None:
        raise ReleaseError(
            f"{folder} is {kind} and not a summary; make one with tacit summarise {folder}"
        )
    fault = f"{folder} holds no {DOCUMENT}"
    raise ReleaseError(f"{fault}; give a folder that tacit summarise wrote")


def parse_summary(where: str, data: bytes) -> SummaryDocument:
    """Parse `summary.json`; ReleaseError if it is not strict JSON, of another version, or off the
    schema.
    """
    return reading.parse_model(
        SummaryDocument,
        where,
        data,
        format=FORMAT,
        versions=(VERSION,),
        remedy="give a folder that tacit summarise wrote",
    )


def misfit(arrays: Mapping[str, NDArray[Any]], n_classes: int, width: int) -> str | None:
    """Describe the first array that does not have the form of a summary's; None if all have."""
    shapes: dict[str, tuple[int, ...]] = {
        SUMS: (n_classes, width + 1),
        SUMS_HIGH: (n_classes, width + 1),
        MOMENTS: (triangle_size(width),),
        MOMENTS_HIGH: (triangle_size(width),),
        CENTRE: (width,),
    }
    if SUMS not in arrays:
        return f"array {SUMS!r} is missing"
    for name, array in arrays.items():
        if name not in shapes:
            return f"array {name!r:.60} is not of a summary"
        if array.dtype != DTYPES[name] or array.shape != shapes[name]:
            form = f"type {array.dtype} and shape {array.shape}"
            expected = f"{np.dtype(DTYPES[name])} of shape {shapes[name]}"
            return f"array {name!r} of {form} must be {expected}"
    if CENTRE in arrays and not np.isfinite(arrays[CENTRE]).all():
        return f"array {CENTRE!r} holds values that are not finite"
    for low, high in WORDS.items():
        if high not in arrays:
            continue
        if low not in arrays:
            return f"array {low!r} is missing beside {high!r}"
        low_words = arrays[low]
        if low_words.min() < 0 or low_words.max() >= 2**32:
            return f"array {low!r} beside {high!r} must lie from 0 to 2^32 - 1"
    return None


def stored_integers(totals: Totals, name: str) -> dict[str, NDArray[Any]]:
    """Return integers as arrays: in int64 if these hold them, else as low and high words."""
    wide = Wide.of(totals)
    # half of int64, so that two such sums add up in it
    if np.abs(wide.high).max(initial=0) < 2**30:
        return {name: (wide.high << 32) + wide.low}
    return {name: wide.low, WORDS[name]: wide.high}


def read_integers(arrays: Mapping[str, NDArray[Any]], name: str) -> Totals:
    """Return the integers that `stored_integers` stored."""
    if WORDS[name] in arrays:
        return Wide(arrays[WORDS[name]], arrays[name])
    return arrays[name]
