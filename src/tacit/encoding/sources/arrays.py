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
from tacit.data.formats.npy import Header, map_npy
from tacit.data.formats.npz import Archive
from tacit.data.labels import ClassValue
from tacit.data.sizes import FREE
from tacit.encoding.sources import base
from tacit.encoding.sources.base import Faults, Record, Rows, Source, file_stamp, stamp
from tacit.encoding.sources.columns import choose_column
from tacit.encoding.sources.tree import read_arrays
from tacit.errors import InputError, excerpt

# usual names of arrays
PICTURES = (*FEATURES, "images", "image", "data")
LABELS = (*USUAL_LABELS, "label", "target")


def splits(path: Path) -> list[str]:
    """Return the splits of an archive whose arrays are called train_x or x_train, and so on."""
    if path.suffix != ".npz":
        return []
    names = set()
    for name in Archive(path).names:
        if name.endswith("_x"):
            names.add(name.removesuffix("_x"))
        if name.startswith("x_"):
            names.add(name.removeprefix("x_"))
    return sorted(names)


def read(
    path: Path,
    split: str | None,
    labels: Path | None,
    x: str | None,
    y: str | None,
    persons: str | None,
    faults: Faults | None = None,
) -> Source:
    """Read pictures of an array; labels are another array of the archive, or another file."""
    if path.suffix == ".npy":
        if persons is not None:
            raise InputError(f"--persons {persons} is not a file; give a file with one id per line")
        return _read_npy(path, labels, faults)
    return _read_npz(path, split, x, y, persons, faults)


def _read_npz(
    path: Path,
    split: str | None,
    x: str | None,
    y: str | None,
    persons: str | None,
    faults: Faults | None,
) -> Source:
    """Read pictures of an archive, and labels and ids of persons if it has them."""
    archive = Archive(path)
    picture_names: tuple[str, ...] = PICTURES
    label_names: tuple[str, ...] = LABELS
    if split is not None:
        picture_names = (f"{split}_x", f"x_{split}")
        label_names = (f"{split}_y", f"y_{split}")
    pictures = choose_column(archive.names, x, picture_names, "x", path)
    if pictures is None:
        array_names = excerpt(", ".join(archive.names))
        raise InputError(
            f"{path} holds the arrays {array_names}; name the one of pictures with --x"
        )
    label_array = choose_column(archive.names, y, label_names, "y", path)
    person_array = choose_column(archive.names, persons, (), "persons", path)

    header = _checked_header(archive, pictures)
    n_pictures = header.shape[0]
    values, classes = _labels_and_classes(archive, label_array, n_pictures, faults)
    stored_pictures = read_arrays(lambda: archive.open(pictures), header.length, header.shape, path)

    def records(start: int) -> Iterator[Record]:
        return (picture(pixels) for pixels in stored_pictures(start))

    ids = None
    if person_array is not None:
        (person_ids,) = archive.read([person_array])
        ids = base.persons_of(person_ids, n_pictures, path, faults)
    return Source(
        "picture",
        Rows(n_pictures),
        records,
        stamp(file_stamp(path), pictures, label_array),
        values,
        classes,
        classes_declared=classes is not None,
        persons=ids,
        faults=faults or {},
    )


def _checked_header(archive: Archive, name: str) -> Header:
    """Return the header of an array of pictures that can be read one after another."""
    header = archive.header(name)
    if header.fortran:
        raise InputError(
            f"{archive.path} is stored column by column; save it again after"
            " numpy.ascontiguousarray"
        )
    check_pixels(header.shape, header.dtype, archive.path)
    picture_bytes = math.prod(header.shape[1:])
    if picture_bytes > FREE:
        raise InputError(
            f"{archive.path} has pictures of {picture_bytes} bytes, at most {FREE} are read; cut"
            " them"
        )
    return header


def _labels_and_classes(
    archive: Archive, label_array: str | None, n_pictures: int, faults: Faults | None
) -> tuple[NDArray[Any] | None, list[ClassValue] | None]:
    """Read the labels, (n_pictures,), and the class list (an array `classes`), whichever are
    there.
    """
    classes = None
    if "classes" in archive.names:
        (class_values,) = archive.read(["classes"])
        classes = base.named_classes(class_values.tolist(), archive.path)
    labels = None
    if label_array is not None:
        (label_values,) = archive.read([label_array])
        labels = base.labels_of(label_values, n_pictures, archive.path, classes, faults)
    return labels, classes


def _read_npy(path: Path, labels: Path | None, faults: Faults | None) -> Source:
    """Read pictures of NAME_x.npy; labels are in a file that is named, or in NAME_y.npy beside
    it.
    """
    pixels = map_npy(path)
    check_pixels(pixels.shape, pixels.dtype, path)
    n_pictures = len(pixels)
    if labels is None and path.stem.endswith("_x"):
        labels_beside = path.with_name(f"{path.stem.removesuffix('_x')}_y.npy")
        if labels_beside.is_file():
            labels = labels_beside

    def records(start: int) -> Iterator[Record]:
        return (picture(np.asarray(pixels[row])) for row in range(start, n_pictures))

    values = None
    if labels is not None:
        values = base.labels_of(map_npy(labels), n_pictures, labels, faults=faults)
    return Source(
        "picture", Rows(n_pictures), records, file_stamp(path), values, faults=faults or {}
    )


def check_pixels(shape: tuple[int, ...], dtype: np.dtype[Any], where: Path | str) -> None:
    """Refuse an array that does not hold pictures."""
    if dtype != np.uint8:
        remedy = "give pixels as bytes: (255 * x).round().astype('uint8') for x in 0..1"
        raise InputError(f"{where} holds {dtype}; {remedy}")
    if 0 in shape:
        raise base.empty(where, "pictures")
    if not are_pictures(shape):
        fault = f"{where} has shape {shape}"
        raise InputError(
            f"{fault}; give (rows, height, width), or with 1 or 3 channels last or first"
        )


def are_pictures(shape: tuple[int, ...]) -> bool:
    """Tell whether an array of a shape holds pictures in a usual order of rows, sides and
    channels.
    """
    if 0 in shape:
        return False
    if len(shape) == 3:
        return True
    if len(shape) != 4:
        return False
    channels_last = shape[3] in (1, 3, 4)
    channels_first = shape[1] in (1, 3)
    return channels_last or channels_first


def picture(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture as (height, width) or (height, width, channels)."""
    if pixels.ndim == 2:
        return pixels
    if pixels.shape[2] not in (1, 3, 4):
        # channels come first
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2] == 1:
        return pixels[:, :, 0]
    return pixels
