"""Tables with one column of lists (or several numeric columns) as features: Parquet, and Arrow
tables in general.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, choose, features_missing, make_arrays
from tacit.data.formats.arrow import as_numpy, check_once, open_parquet
from tacit.data.formats.footer import value_counts
from tacit.data.sizes import check_unpacked, check_width
from tacit.errors import InputError, excerpt, quoted

# usual names of a column of labels
LABELS = ("label", "labels", "y", "target", "class")

# labels read at a time, since the footer does not state the size of texts
LABELS_READ = 4096


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read the features, labels and ids of persons of a Parquet file; other columns are not
    loaded.
    """
    with open_parquet(path) as file:
        features, label = columns(file.schema_arrow, x, y, persons, path)
        other_columns = [name for name in (label, persons) if name is not None]
        check_sizes(file, features, other_columns, path, width)
        rows = matrix(file.read(columns=features), features, path)
        labels = None if label is None else labels_of(_column(file, label, path))
        ids = None if persons is None else as_numpy(_column(file, persons, path))
        return make_arrays(rows, labels, (path,), path.stem, persons=ids)


def check_sizes(
    file: Any, features: list[str], other_columns: list[str], path: Path, width: int | None
) -> None:
    """Refuse a file with too many values, or rows of another width (for lists, their mean
    length).
    """
    n_rows = file.metadata.num_rows
    counts = value_counts(path)

    # eight bytes a value, and a value at least in each row
    n_values = sum(max(counts.get(name, 0), n_rows) for name in (*features, *other_columns))
    check_unpacked(path, 8 * n_values)

    if not _is_list(file.schema_arrow.field(features[0]).type):
        check_width(path, (n_rows, len(features)), width)
        return
    n_list_values = counts.get(features[0], 0)
    if n_rows and width is not None and n_list_values != n_rows * width:
        mean_length = -(-n_list_values // n_rows)
        check_width(path, (n_rows, mean_length), width)


def labels_of(column: Any) -> NDArray[Any]:
    """Return a column of labels as numpy; truth values are the texts False and True."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        values = [None if value is None else str(value) for value in column.to_pylist()]
        return np.array(values, dtype=object)
    return as_numpy(column)


def _column(file: Any, name: str, path: Path) -> Any:
    """Read a column in batches, until they exceed what `check_unpacked` allows."""
    import pyarrow as pa

    batches = []
    n_bytes = 0
    for batch in file.iter_batches(LABELS_READ, columns=[name]):
        batches.append(batch)
        n_bytes += batch.nbytes
        check_unpacked(path, n_bytes)
    return pa.Table.from_batches(batches, file.schema_arrow.empty_table().select([name]).schema)[
        name
    ]


def columns(
    schema: Any, x: str | None, y: str | None, persons: str | None, path: Path
) -> tuple[list[str], str | None]:
    """Return the feature columns (one of lists, or all of floats) and the label column of a schema;
    `persons` is neither.
    """
    import pyarrow as pa

    names = schema.names
    label = choose(names, y, LABELS, "y", path)
    choose(names, persons, (), "persons", path)

    candidates = [field for field in schema if field.name not in (label, persons)]
    lists = [field.name for field in candidates if _is_list(field.type)]
    floats = [field.name for field in candidates if pa.types.is_floating(field.type)]
    if x is not None:
        choose(names, x, (), "x", path)
        features = [x]
    elif len(lists) > 1:
        choices = excerpt(", ".join(sorted(lists)))
        raise InputError(f"{path} has several columns of lists; choose x from: {choices}")
    elif lists:
        features = lists
    elif floats:
        features = floats
    else:
        raise features_missing(names, path)

    # checking each feature takes time where there are many: only if some name repeats
    if len(set(names)) < len(names):
        for name in features:
            check_once(names, name, path)
    if label is not None:
        check_once(names, label, path)
    if persons is not None:
        check_once(names, persons, path)
    return features, label


def matrix(table: Any, features: list[str], path: Path) -> NDArray[Any]:
    """Return feature columns as one array of shape (rows, columns)."""
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; check how it was made")
    if not _is_list(table.schema.field(features[0]).type):
        return np.column_stack([as_numpy(table[name]) for name in features])
    return _matrix_of_lists(table[features[0]], features[0], path)


def _matrix_of_lists(column: Any, name: str, path: Path) -> NDArray[Any]:
    """Return a column of lists of one length as an array of shape (rows, length)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        row = int(column.is_null().to_numpy().argmax())
        raise InputError(f"{path} row {row} has no value in column {quoted(name)}; drop that row")
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    is_other_length = lengths != width
    if is_other_length.any():
        row = int(is_other_length.argmax())
        raise InputError(
            f"{path} row {row} has {lengths[row]} values in {quoted(name)}, row 0 has {width}; make"
            " them equal"
        )

    values = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    return as_numpy(values).reshape(-1, width)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
