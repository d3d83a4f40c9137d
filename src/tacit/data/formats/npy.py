"""`.npy` files: features, and labels in a second file; or a folder of `{split}_x.npy`, `{split}_y.npy`."""

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, make_arrays
from tacit.data.formats import card
from tacit.data.rows import one_line
from tacit.errors import InputError


def read(features: Path, labels: Path | None, *, identity: str | None = None) -> Arrays:
    """Memory-map the features and the labels; a card beside them is used if it lists the features."""
    classes, facts = card.beside(features)
    return make_arrays(
        map_npy(features),
        None if labels is None else map_npy(labels),
        classes=classes,
        files=(features,) if labels is None else (features, labels),
        identity=identity or features.stem,
        card=facts,
    )


def read_split(folder: Path, split: str) -> Arrays:
    """The features and, when there, the labels of one split of a folder."""
    labels = folder / f"{split}_y.npy"
    identity = f"{folder.absolute().name}-{split}"
    return read(folder / f"{split}_x.npy", labels if labels.is_file() else None, identity=identity)


def splits(folder: Path) -> list[str]:
    """Names of the splits in a folder."""
    return sorted(path.name.removesuffix("_x.npy") for path in folder.glob("*_x.npy"))


def map_npy(path: Path) -> NDArray[Any]:
    """Memory-map one array; pickled objects are never read."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, SyntaxError, TokenError) as error:  # the last two from a garbled header
        if "Python objects" in str(error):
            raise InputError(
                f"{path} holds pickled objects, which are never read; save plain numbers instead"
            ) from error
        raise InputError(
            f"{path} is truncated or not a .npy array ({one_line(error)}); save it again with numpy.save"
        ) from error
