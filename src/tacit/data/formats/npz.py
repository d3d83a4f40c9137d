"""`.npz` files: several named arrays."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from tacit.data.arrays import Arrays, from_named
from tacit.data.rows import one_line
from tacit.errors import InputError


def read(path: Path, x: str | None, y: str | None) -> Arrays:
    """Read features, labels and the class list (an array `classes`), whichever are there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return from_named(path, list(file.files), file.__getitem__, x, y)
    except InputError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if "Object arrays" in str(error):
            raise InputError(
                f"{path} holds pickled objects, which are never read; save plain numbers instead"
            ) from error
        raise InputError(
            f"{path} is truncated or not a .npz file ({one_line(error)}); save it again with numpy.savez"
        ) from error
