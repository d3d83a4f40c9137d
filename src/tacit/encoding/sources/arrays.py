"""Arrays of pictures: `.npy`, memory-mapped, and `.npz`, read from its archive row by row.

Pixels are bytes, (rows, height, width), or with 1, 3 or 4 channels last, or 1 or 3 channels first.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import FEATURES
from tacit.data.arrays import LABELS as USUAL_LABELS
from tacit.data.formats.npy import map_npy
from tacit.data.formats.npz import Archive
from tacit.data.sizes import FREE
from tacit.encoding.sources import base
from tacit.encoding.sources.base import Record, Rows, Source, file_stamp, stamp
from tacit.encoding.sources.columns import choose_column
from tacit.encoding.sources.tree import read_arrays
from tacit.errors import InputError, excerpt

PICTURES = (*FEATURES, "images", "image", "data")
LABELS = (*USUAL_LABELS, "label", "target")


def splits(path: Path) -> list[str]:
    """Splits of an archive whose arrays are called train_x or x_train, and so on."""
    if path.suffix != ".npz":
        return []
    pairs = (
        (name, split)
        for name in Archive(path).names
        for split in (name.removesuffix("_x"), name.removeprefix("x_"))
    )
    return sorted({split for name, split in pairs if split != name})


def read(
    path: Path,
    split: str | None,
    labels: Path | None,
    x: str | None,
    y: str | None,
    persons: str | None,
) -> Source:
    """Pictures of an array; labels are another array of the archive, or another file."""
    if path.suffix == ".npy":
        if persons is not None:
            raise InputError(f"--persons {persons} is not a file; give a file with one id per line")
        return _read_npy(path, labels)
    archive = Archive(path)
    usual = (
        (PICTURES, LABELS)
        if split is None
        else ((f"{split}_x", f"x_{split}"), (f"{split}_y", f"y_{split}"))
    )
    content = choose_column(archive.names, x, usual[0], "x", path)
    if content is None:
        listed = excerpt(", ".join(archive.names))
        raise InputError(f"{path} holds the arrays {listed}; name the one of pictures with --x")
    label = choose_column(archive.names, y, usual[1], "y", path)
    person = choose_column(archive.names, persons, (), "persons", path)
    shape, fortran, dtype, start_of_data = archive.header(content)
    if fortran:
        raise InputError(
            f"{path} is stored column by column; save it again after numpy.ascontiguousarray"
        )
    check_pixels(shape, dtype, path)
    if math.prod(shape[1:]) > FREE:
        raise InputError(
            f"{path} has pictures of {math.prod(shape[1:])} bytes, at most {FREE} are read; cut"
            " them"
        )
    values = None if label is None else base.labels_of(archive.read([label])[0], shape[0], path)
    classes = (
        base.named_classes(archive.read(["classes"])[0].tolist(), path)
        if "classes" in archive.names
        else None
    )
    if (
        values is not None
        and classes is not None
        and values.dtype.kind != "U"
        and isinstance(classes[0], str)
    ):
        values = base.by_index(values, classes, path)
    stored = read_arrays(lambda: archive.open(content), start_of_data, shape, path)

    def records(start: int) -> Iterator[Record]:
        return (picture(pixels) for pixels in stored(start))

    changes = stamp(file_stamp(path), content, label)
    ids = None if person is None else base.persons_of(archive.read([person])[0], shape[0], path)
    return Source(
        "picture",
        Rows(shape[0]),
        records,
        changes,
        values,
        classes,
        classes is not None,
        persons=ids,
    )


def _read_npy(path: Path, labels: Path | None) -> Source:
    """Pictures of NAME_x.npy; labels are in a file that is named, or in NAME_y.npy beside it."""
    pixels = map_npy(path)
    check_pixels(pixels.shape, pixels.dtype, path)
    beside = path.with_name(f"{path.stem.removesuffix('_x')}_y.npy")
    if labels is None and path.stem.endswith("_x") and beside.is_file():
        labels = beside

    def records(start: int) -> Iterator[Record]:
        return (picture(np.asarray(pixels[row])) for row in range(start, len(pixels)))

    values = None if labels is None else base.labels_of(map_npy(labels), len(pixels), labels)
    return Source("picture", Rows(len(pixels)), records, file_stamp(path), values)


def check_pixels(shape: tuple[int, ...], dtype: np.dtype[Any], where: Path | str) -> None:
    """Refuse an array that does not hold pictures."""
    if dtype != np.uint8:
        remedy = "give pixels as bytes: (255 * x).round().astype('uint8') for x in 0..1"
        raise InputError(f"{where} holds {dtype}; {remedy}")
    if 0 in shape:
        raise base.empty(where, "pictures")
    if not are_pictures(shape):
        said = f"{where} has shape {shape}"
        raise InputError(
            f"{said}; give (rows, height, width), or with 1 or 3 channels last or first"
        )


def are_pictures(shape: tuple[int, ...]) -> bool:
    """Tell whether an array of a shape holds pictures in a usual order of rows, sides and
    channels.
    """
    coloured = len(shape) == 4 and (shape[3] in (1, 3, 4) or shape[1] in (1, 3))
    return 0 not in shape and (len(shape) == 3 or coloured)


def picture(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture as (height, width) or (height, width, channels)."""
    if pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    return pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
