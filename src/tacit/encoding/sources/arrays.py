"""Arrays of pictures: `.npy`, memory-mapped, and `.npz`, read from its archive row by row.

Pixels are bytes, (rows, height, width), or with 1, 3 or 4 channels last, or 1 or 3 channels first.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import FEATURES
from tacit.data.arrays import LABELS as USUAL_LABELS
from tacit.data.formats.npy import map_npy
from tacit.data.formats.npz import Archive
from tacit.data.formats.sizes import FREE
from tacit.encoding.sources.base import (
    Record,
    Rows,
    Source,
    by_index,
    empty,
    file_stamp,
    labels_of,
    named_classes,
    stamp,
)
from tacit.encoding.sources.columns import choose_column
from tacit.encoding.sources.tree import read_exactly
from tacit.errors import InputError, excerpt

PICTURES = (*FEATURES, "images", "image", "data")
LABELS = (*USUAL_LABELS, "label", "target")


def splits(path: Path) -> list[str]:
    """Splits of an archive whose arrays are called train_x or x_train, and so on."""
    if path.suffix != ".npz":
        return []
    names = Archive(path).names
    found = {split for name in names for split in (name.removesuffix("_x"), name.removeprefix("x_")) if split != name}
    return sorted(found)


def read(path: Path, split: str | None, labels: Path | None, x: str | None, y: str | None) -> Source:
    """Pictures of an array; labels are another array of the archive, or a file of their own."""
    if path.suffix == ".npy":
        pixels = map_npy(path)
        check_pixels(pixels.shape, pixels.dtype, path)
        beside = path.with_name(f"{path.stem.removesuffix('_x')}_y.npy")
        found = labels or (beside if path.stem.endswith("_x") and beside.is_file() else None)

        def mapped(start: int) -> Iterator[Record]:
            return (picture(np.asarray(pixels[row])) for row in range(start, len(pixels)))

        own = None if found is None else labels_of(map_npy(found), len(pixels), found)
        return Source("picture", Rows(len(pixels)), mapped, file_stamp(path), own)
    archive = Archive(path)
    usual = (PICTURES, LABELS) if split is None else ((f"{split}_x", f"x_{split}"), (f"{split}_y", f"y_{split}"))
    content = choose_column(archive.names, x, usual[0], "x", path)
    if content is None:
        listed = excerpt(", ".join(archive.names))
        raise InputError(f"{path} holds the arrays {listed}; name the one of pictures with --x")
    label = choose_column(archive.names, y, usual[1], "y", path)
    shape, fortran, dtype, _ = archive.header(content)
    if fortran:
        raise InputError(f"{path} is stored column by column; save it again after numpy.ascontiguousarray")
    check_pixels(shape, dtype, path)
    if math.prod(shape[1:]) > FREE:
        raise InputError(f"{path} has pictures of {math.prod(shape[1:])} bytes, at most {FREE} are read; cut them")
    own = None if label is None else labels_of(archive.read([label])[0], shape[0], path)
    classes = named_classes(archive.read(["classes"])[0].tolist(), path) if "classes" in archive.names else None
    if own is not None and classes is not None and own.dtype.kind != "U" and isinstance(classes[0], str):
        own = by_index(own, classes, path)

    def streamed(start: int) -> Iterator[Record]:
        size = math.prod(shape[1:])
        with zipfile.ZipFile(path) as archived, archived.open(f"{content}.npy") as file:
            file.read(archive.header(content).length)
            for row in range(shape[0]):
                data = read_exactly(file, size, path)
                if row >= start:
                    yield picture(np.frombuffer(data, np.uint8).reshape(shape[1:]))

    return Source(
        "picture", Rows(shape[0]), streamed, stamp(file_stamp(path), content, label), own, classes, classes is not None
    )


def check_pixels(shape: tuple[int, ...], dtype: np.dtype[Any], where: Path | str) -> None:
    """Whether an array holds pictures: bytes, in one of the usual orders."""
    if dtype != np.uint8:
        raise InputError(
            f"{where} holds {dtype}; give pixels as bytes: (255 * x).round().astype('uint8') for x in 0..1"
        )
    if 0 in shape:
        raise empty(where, "pictures")
    channels = len(shape) == 4 and (shape[3] in (1, 3, 4) or shape[1] in (1, 3))
    if not (len(shape) == 3 or channels):
        raise InputError(
            f"{where} has shape {shape}; give (rows, height, width), or with 1 or 3 channels last or first"
        )


def picture(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """One picture as (height, width) or (height, width, channels)."""
    if pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    return pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
