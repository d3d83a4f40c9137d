"""Limits that are checked before rows are read: the unpacked size of a file, and the number of its
columns.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np

from tacit.errors import InputError

# bytes that any file may unpack to
FREE = 128 << 20

# largest ratio of the unpacked bytes to those of the file; features of any use pack far less
RATIO = 100


def check_unpacked(path: Path, unpacked: int) -> None:
    """Refuse a file whose `unpacked` bytes are more than 128 MiB and more than 100 times the
    file.
    """
    size = path.stat().st_size
    most = max(FREE, RATIO * size)
    if unpacked > most:
        fault = f"{path} has {size} bytes and would unpack to {unpacked}, at most {most} are read"
        raise InputError(f"{fault}; save plain .npy arrays, which are read from the disk")


def check_width(path: Path, shape: tuple[int, ...], width: int | None) -> None:
    """Refuse rows with another number of columns than `width`; None allows any number."""
    if width is not None and len(shape) == 2 and shape[1] != width:
        fault = (
            f"{path} has {shape[1]} columns, shape {shape}, and must have {width} columns, shape"
            f" (n, {width})"
        )
        raise InputError(f"{fault}; encode both the same way")


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of other libraries while they read a file from a stranger."""
    with catch_warnings(), np.errstate(all="ignore"):
        simplefilter("ignore")
        yield
