"""`.npy` files: features, and labels in a second file; or a folder of them, one pair for each
split.

| features | labels |
|---|---|
| `{split}_x.npy` | `{split}_y.npy` |
| `{split}.npy` | `{split}_targets.npy` |

Embeddings are often published as in the second line: `cifar10_train.npy`, for instance. Their
labels are positions in a class list, and so are labels beside a card that lists classes.
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

# bytes
LONGEST_HEADER = 1 << 14

TARGETS = "_targets.npy"

# last words of the names under which embeddings are published
SPLITS = ("train", "test")

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
    if targets is not None and rows.ndim == 2 and not _fit(targets.shape, len(rows)):
        fault = f"{labels}: labels have shape {targets.shape} beside {len(rows)} rows of {features}"
        raise InputError(f"{fault}; give exactly one label per row")
    files = (features,) if labels is None else (features, labels)
    states_positions = classes is not None or (labels is not None and labels.name.endswith(TARGETS))
    return make_arrays(
        rows,
        targets,
        files,
        identity or features.stem,
        classes,
        facts,
        label_kind="index" if states_positions else "value",
    )


def _fit(shape: tuple[int, ...], n_rows: int) -> bool:
    """Tell whether labels of a shape are one a row, or a matrix of several labels a row."""
    is_matrix = len(shape) == 2 and shape[1] > 1
    return shape == (n_rows,) or (is_matrix and shape[0] == n_rows)


def targets_of(features: Path) -> Path | None:
    """Return the `{split}_targets.npy` beside `{split}.npy`, if there is one."""
    targets = features.with_name(f"{features.stem}{TARGETS}")
    return targets if targets.is_file() else None


def published(folder: Path, split: str) -> Path | None:
    """Return the features `{split}.npy` of a split, unless there are `{split}_x.npy`."""
    if (folder / f"{split}_x.npy").is_file():
        return None
    return folder / f"{split}.npy"


def splits(folder: Path) -> list[str]:
    """Return the names of the splits in a folder; `{split}.npy` without labels is a split if its
    name ends in train or test.
    """
    names = {path.name.removesuffix("_x.npy") for path in folder.glob("*_x.npy")}
    for path in folder.glob("*.npy"):
        if path.name.endswith(("_x.npy", "_y.npy", TARGETS)):
            continue
        last_word = path.stem.rpartition("_")[2]
        if targets_of(path) or last_word in SPLITS:
            names.add(path.stem)
    return sorted(names)


def read_header(file: IO[bytes], size: int) -> Header:
    """Read the header of an array of numbers that must fit into `size` bytes; a fault raises one of
    FAULTS.
    """
    start = io.BytesIO(file.read(LONGEST_HEADER))

    # numpy warns of headers that Python 2 wrote
    with quiet():
        version = np.lib.format.read_magic(start)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"its format version is {version}")
        shape, fortran, dtype = readers[version](start)
        header = Header(shape, fortran, dtype, length=start.tell())

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
        if math.prod(header.shape) == 0:
            # there is nothing to map
            return np.empty(header.shape, header.dtype)
        order = "F" if header.fortran else "C"
        return np.memmap(path, header.dtype, "r", header.length, header.shape, order)  # type: ignore[call-overload, no-any-return]
    except (OSError, *FAULTS) as error:
        raise broken(path, error, "a .npy array", "numpy.save") from error


def broken(path: Path, error: Exception, kind: str, writer: str) -> InputError:
    """Return the error for a file of arrays that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path} does not exist; check its name")

    # words of `read_header` and of numpy
    message = str(error)
    if "Python objects" in message or "Object arrays" in message:
        return InputError(
            f"{path} holds pickled objects, which are never read; save plain numbers instead"
        )
    return InputError(
        f"{path} is truncated or not {kind} ({one_line(error)}); save it again with {writer}"
    )
