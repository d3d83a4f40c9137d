"""Tables with one column of lists (or several numeric columns) as features: Parquet, and Arrow tables in general."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, choose, features_missing, make_arrays
from tacit.data.rows import one_line
from tacit.errors import InputError

LABELS = ("label", "labels", "y", "target", "class")


def read(path: Path, x: str | None, y: str | None) -> Arrays:
    """Read the features and labels of a Parquet file; other columns are not loaded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            features, label = columns(file.schema_arrow, x, y, path)
            table = file.read(columns=features if label is None else [*features, label])
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is truncated or not a Parquet file ({one_line(error)}); save it again") from error
    return make_arrays(
        matrix(table, features, path),
        None if label is None else values(table[label]),
        classes=None,
        files=(path,),
        identity=path.stem,
        card={},
    )


def columns(schema: Any, x: str | None, y: str | None, path: Path) -> tuple[list[str], str | None]:
    """The feature columns (one of lists, or all of floats) and the label column of a schema."""
    label = choose(schema.names, y, LABELS, "y", path)
    if x is not None:
        choose(schema.names, x, (), "x", path)
        return [x], label
    others = [field for field in schema if field.name != label]
    lists = [field.name for field in others if _is_list(field.type)]
    if len(lists) > 1:
        raise InputError(f"{path} has several columns of lists; choose x from: {', '.join(sorted(lists))}")
    features = lists or [field.name for field in others if _is_float(field.type)]
    if not features:
        raise features_missing(schema.names, path)
    return features, label


def matrix(table: Any, features: list[str], path: Path) -> NDArray[Any]:
    """Feature columns as one array of shape (rows, columns)."""
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; check how it was made")
    if not _is_list(table.schema.field(features[0]).type):
        return np.column_stack([values(table[name]) for name in features])
    return _rows_of_lists(table[features[0]], features[0], path)


def values(column: Any) -> NDArray[Any]:
    """A column as numpy, with dictionary-coded values spelled out."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    plain: NDArray[Any] = column.to_numpy()
    return plain


def _rows_of_lists(column: Any, name: str, path: Path) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        row = int(column.is_null().to_numpy().argmax())
        raise InputError(f"{path} row {row} has no value in column {name!r}; drop that row")
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if (lengths != width).any():
        row = int((lengths != width).argmax())
        raise InputError(f"{path} row {row} has {lengths[row]} values in {name!r}, row 0 has {width}; make them equal")
    flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    return values(flat).reshape(-1, width)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_float(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind))
