"""Shared by readers of Parquet and Arrow: one-line errors, and columns as numpy or Python
values.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tacit.compute.remote import RemotePath
from tacit.data.rows import one_line
from tacit.errors import InputError, TacitError, quoted


@contextmanager
def arrow_faults(
    path: Path, fault: str = "is truncated or not a Parquet file", remedy: str = "save it again"
) -> Iterator[None]:
    """Turn what pyarrow raises for a damaged file into a one-line InputError."""
    import pyarrow as pa

    try:
        yield
    except TacitError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        MemoryError,
        struct.error,
        pa.ArrowException,
    ) as error:
        if not path.exists():
            raise InputError(f"{path} does not exist; check its name") from error
        if isinstance(path, RemotePath):
            # the error itself may hold credentials
            raise InputError(f"{path} {fault} ({path.reason(error)}); {remedy}") from None
        raise InputError(f"{path} {fault} ({one_line(error)}); {remedy}") from error


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; errors within the block become one-line InputErrors."""
    import pyarrow.parquet as pq

    with arrow_faults(path), pq.ParquetFile(path) as file:
        yield file


def check_once(names: list[str], name: str, path: Path) -> None:
    """Refuse a name that several columns share."""
    if names.count(name) > 1:
        raise InputError(f"{path} has several columns {quoted(name)}; rename all but one")


def decoded(column: Any) -> Any:
    """Return a column with dictionary-encoded values decoded."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def decoded_type(kind: Any) -> Any:
    """Return the type of a column's values once they are decoded."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_list(kind: Any) -> bool:
    """Tell whether values of a type are lists of one of Arrow's kinds, or tensors."""
    import pyarrow as pa

    kind = storage_type(kind)
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def storage_type(kind: Any) -> Any:
    """Return the type that stores an extension type; of others, the type itself."""
    return getattr(kind, "storage_type", kind)


def as_numpy(column: Any) -> NDArray[Any]:
    """Return a column as numpy."""
    values: NDArray[Any] = decoded(column).to_numpy()
    return values


def as_python(column: Any) -> list[Any]:
    """Return a column as Python values; a struct, as Hugging Face stores a picture, becomes its
    field `bytes`.
    """
    import pyarrow as pa

    values: list[Any] = decoded(column).to_pylist()
    if pa.types.is_struct(column.type):
        return [None if value is None else value.get("bytes") for value in values]
    return values


def holds_bytes(kind: Any) -> bool:
    """Tell whether values of a type are bytes, or structs with a field `bytes`."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
