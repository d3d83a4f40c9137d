"""`.npy` files: features, and labels in a second file; or a folder of them, one pair for each
split.

| features | labels |
|---|---|
| `{split}_x.npy` | `{split}_y.npy` |
| `{split}.npy` | `{split}_targets.npy` |

Embeddings are often published as in the second line: `cifar10_train.npy`, for instance.
"""

import io
import math
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, make_arrays
from tacit.data.formats import card
from tacit.data.rows import one_line
from tacit.data.sizes import check_width, quiet
from tacit.errors import InputError

LONGEST_HEADER = 1 << 14  # bytes
TARGETS = "_targets.npy"
SPLITS = ("train", "test")  # last words of the names under which embeddings are published
# what a garbled header raises, beside OSError
FAULTS = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    SyntaxError,
    TokenError,
    RecursionError,
    MemoryError,
)


class Header(NamedTuple):
    """The header of a `.npy` file; `length` is that of the header, in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def bytes(self) -> int:
        """Bytes of the header and the array together."""
        return self.length + math.prod(self.shape) * self.dtype.itemsize


def read(
    features: Path, labels: Path | None, *, identity: str | None = None, width: int | None = None
) -> Arrays:
    """Memory-map the features and the labels; a card beside them is used if it lists the
    features.
    """
    classes, facts = card.beside(features)
    rows = map_npy(features)
    check_width(features, rows.shape, width)
    targets = None if labels is None else map_npy(labels)
    if targets is not None and rows.ndim == 2 and targets.shape != rows.shape[:1]:
        said = f"{labels}: labels have shape {targets.shape} beside {len(rows)} rows of {features}"
        raise InputError(f"{said}; give exactly one label per row")
    files = (features,) if labels is None else (features, labels)
    return make_arrays(rows, targets, files, identity or features.stem, classes, facts)


def targets_of(features: Path) -> Path | None:
    """The `{split}_targets.npy` beside `{split}.npy`, if there is one."""
    targets = features.with_name(f"{features.stem}{TARGETS}")
    return targets if targets.is_file() else None


def published(folder: Path, split: str) -> Path | None:
    """The features `{split}.npy` of a split, unless there are `{split}_x.npy`."""
    return None if (folder / f"{split}_x.npy").is_file() else folder / f"{split}.npy"


def splits(folder: Path) -> list[str]:
    """Names of the splits in a folder; `{split}.npy` without labels is one if its name ends in
    train or test.
    """
    pairs = {path.name.removesuffix("_x.npy") for path in folder.glob("*_x.npy")}
    others = [
        path
        for path in folder.glob("*.npy")
        if not path.name.endswith(("_x.npy", "_y.npy", TARGETS))
    ]
    published = {
        path.stem for path in others if targets_of(path) or path.stem.rpartition("_")[2] in SPLITS
    }
    return sorted(pairs | published)


def read_header(file: IO[bytes], size: int) -> Header:
    """The header of an array of numbers that must fit into `size` bytes; a fault raises ValueError
    or one of FAULTS.
    """
    start = io.BytesIO(file.read(LONGEST_HEADER))
    with quiet():  # numpy warns of headers that Python 2 wrote
        version = np.lib.format.read_magic(start)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"its format version is {version}")
        header = Header(*readers[version](start), start.tell())
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects")
    if header.dtype.itemsize == 0 or min(header.shape, default=0) < 0:
        raise ValueError(f"its shape is {header.shape} of {header.dtype}")
    if header.bytes > size:
        raise ValueError(f"its header states {header.bytes} bytes and it has {size}")
    return header


def map_npy(path: Path) -> NDArray[Any]:
    """Memory-map one array; pickled objects are never read."""
    try:
        with path.open("rb") as file:
            header = read_header(file, path.stat().st_size)
        order = "F" if header.fortran else "C"
        if math.prod(header.shape) == 0:  # nothing to map
            return np.empty(header.shape, header.dtype)
        return np.memmap(path, header.dtype, "r", header.length, header.shape, order)  # type: ignore[call-overload, no-any-return]
    except (OSError, *FAULTS) as error:
        raise broken(path, error, "a .npy array", "numpy.save") from error


def broken(path: Path, error: Exception, kind: str, writer: str) -> InputError:
    """The error for a file of arrays that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path} does not exist; check its name")
    if any(words in str(error) for words in ("Python objects", "Object arrays")):
        return InputError(
            f"{path} holds pickled objects, which are never read; save plain numbers instead"
        )
    return InputError(
        f"{path} is truncated or not {kind} ({one_line(error)}); save it again with {writer}"
    )
