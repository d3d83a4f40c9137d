"""Priors from files: one probability for each class, or a row of them for each label."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.formats.npy import map_npy
from tacit.data.imports import read_data
from tacit.data.places import ROWS, Places
from tacit.data.sizes import quiet
from tacit.errors import InputError

ARRAYS = (".npz", ".parquet", ".safetensors")


def read_prior(path: Path) -> NDArray[Any]:
    """A prior of shape (classes,), or (rows, classes) with a row for each label.

    `.npy` is memory-mapped; `.npz`, `.parquet` and `.safetensors` are read as features are. Any
    other file is text without a heading: one number a line, or a row of numbers a line, with commas
    between them. A single row is for all labels.
    """
    prior: Any
    if path.suffix == ".npy":
        prior = map_npy(path)
    else:
        prior = read_data(path, check=False).x if path.suffix in ARRAYS else _numbers(path)
    if prior.ndim not in (1, 2) or 0 in prior.shape or prior.dtype.kind not in "biuf":
        said = f"--prior {path} has shape {prior.shape} of {prior.dtype}"
        raise InputError(f"{said}; give one number for each class, or a row of them for each label")
    if prior.dtype == np.float16:
        raise InputError(
            f"--prior {path} has type float16, in which rows hardly add up to 1; give float32 or"
            " float64"
        )
    rows: NDArray[Any] = prior
    return rows[0] if rows.ndim == 2 and len(rows) == 1 else rows


def places_of_prior(path: Path) -> Places:
    """Return the places of the rows of a prior in its file."""
    return ROWS if path.suffix in (".npy", *ARRAYS) else Places((path,))


def _numbers(path: Path) -> NDArray[np.float64]:
    """Numbers of a text file; one number a line is a single row."""
    try:
        with quiet():  # numpy warns of empty files
            numbers = np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8", comments=None)
    except FileNotFoundError as error:
        raise InputError(f"--prior {path} does not exist; check its name") from error
    except (OSError, ValueError, MemoryError) as error:
        remedy = "give one per line, or a row of them for each label"
        raise InputError(f"--prior {path} is not a readable file of numbers; {remedy}") from error
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers
