"""`.safetensors` files: several named arrays, named as in `.npz`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, from_named
from tacit.data.rows import one_line
from tacit.errors import InputError


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read features, labels, ids of persons and the class list, whichever are there."""
    from safetensors import SafetensorError, safe_open

    faults = (
        SafetensorError,
        OSError,
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        OverflowError,
        MemoryError,
    )

    def shape(name: str) -> tuple[int, ...]:
        return tuple(file.get_slice(name).get_shape())

    def arrays(names: Sequence[str]) -> list[NDArray[Any]]:
        return [
            _bfloat16(path, name)
            if file.get_slice(name).get_dtype() == "BF16"
            else np.asarray(file.get_tensor(name))
            for name in names
        ]

    try:
        with safe_open(path, framework="numpy") as file:
            return from_named(
                path,
                list(file.keys()),
                shape,
                arrays,
                x,
                y,
                persons,
                width,
            )
    except InputError:
        raise
    except faults as error:
        fault = f"{path} is truncated or not a safetensors file numpy can read ({one_line(error)})"
        raise InputError(f"{fault}; save it again") from error


def _bfloat16(path: Path, name: str) -> NDArray[np.float32]:
    """Read an array of bfloat16, which numpy lacks, as float32, which has all its values.

    `safe_open` has checked the header and that the arrays are within the file.
    """
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header_bytes))[name]

    start, end = entry["data_offsets"]
    halves = np.fromfile(path, "<u2", (end - start) // 2, offset=8 + header_bytes + start)

    # a bfloat16 is the upper half of a float32
    values = (halves.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(entry["shape"])
