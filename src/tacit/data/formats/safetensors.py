"""`.safetensors` files: several named arrays, named as in `.npz`."""

from pathlib import Path

from tacit.data.arrays import Arrays, from_named
from tacit.data.rows import one_line
from tacit.errors import InputError


def read(path: Path, x: str | None, y: str | None) -> Arrays:
    """Read features, labels and the class list, whichever are there."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return from_named(path, list(file.keys()), file.get_tensor, x, y)
    except InputError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is truncated or not a safetensors file numpy can read ({one_line(error)}); save it again"
        ) from error
