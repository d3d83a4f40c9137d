"""`.npz` files: several named arrays."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Arrays, arrays, choose, features_missing
from tacit.data.rows import one_line
from tacit.errors import InputError

FEATURES = ("x", "X", "features", "embeddings")
LABELS = ("y", "labels", "targets")


def read(path: Path, x: str | None, y: str | None) -> Arrays:
    """Read features, labels and the class list (an array `classes`), whichever are there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return of_named(path, list(file.files), file.__getitem__, x, y)
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


def of_named(path: Path, names: list[str], get: Any, x: str | None, y: str | None) -> Arrays:
    """Arrays from a file of named arrays, of which `get(name)` reads one."""
    features = choose(names, x, FEATURES, "x", path)
    if features is None:
        raise features_missing(names, path)
    labels = choose(names, y, LABELS, "y", path)
    return arrays(
        get(features),
        None if labels is None else get(labels),
        classes=get("classes").tolist() if "classes" in names else None,
        files=(path,),
        identity=path.stem,
        card={},
    )
