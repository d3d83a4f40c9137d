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

LABELS = ("label", "labels", "y", "target", "class")
LABELS_READ = 4096  # labels read at a time, since the footer does not state the size of texts


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read the features, labels and ids of persons of a Parquet file; other columns are not
    loaded.
    """
    with open_parquet(path) as file:
        features, label = columns(file.schema_arrow, x, y, persons, path)
        read_too = [name for name in (label, persons) if name is not None]
        check_sizes(file, features, read_too, path, width)
        rows = matrix(file.read(columns=features), features, path)
        labels, ids = (
            None if name is None else _column(file, name, path) for name in (label, persons)
        )
        return make_arrays(rows, labels, (path,), path.stem, persons=ids)


def check_sizes(
    file: Any, features: list[str], others: list[str], path: Path, width: int | None
) -> None:
    """Refuse a file with too many values, or rows of another width (for lists, their mean
    length).
    """
    rows, counts = file.metadata.num_rows, value_counts(path)
    check_unpacked(path, 8 * sum(max(counts.get(name, 0), rows) for name in (*features, *others)))
    if not _is_list(file.schema_arrow.field(features[0]).type):
        check_width(path, (rows, len(features)), width)
        return
    stored = counts.get(features[0], 0)
    if rows and width is not None and stored != rows * width:
        check_width(path, (rows, -(-stored // rows)), width)


def _column(file: Any, name: str, path: Path) -> NDArray[Any]:
    """A column as numpy, read in batches until they exceed what `check_unpacked` allows."""
    import pyarrow as pa

    batches, unpacked = [], 0
    for batch in file.iter_batches(LABELS_READ, columns=[name]):
        batches.append(batch)
        unpacked += batch.nbytes
        check_unpacked(path, unpacked)
    return as_numpy(pa.Table.from_batches(batches)[name]) if batches else np.empty(0)


def columns(
    schema: Any, x: str | None, y: str | None, persons: str | None, path: Path
) -> tuple[list[str], str | None]:
    """The feature columns (one of lists, or all of floats) and the label column of a schema;
    `persons` is neither.
    """
    import pyarrow as pa

    names = schema.names
    label = choose(names, y, LABELS, "y", path)
    choose(names, persons, (), "persons", path)
    others = [field for field in schema if field.name not in (label, persons)]
    lists = [field.name for field in others if _is_list(field.type)]
    features = lists or [field.name for field in others if pa.types.is_floating(field.type)]
    if x is not None:
        choose(names, x, (), "x", path)
        features = [x]
    elif len(lists) > 1:
        raise InputError(
            f"{path} has several columns of lists; choose x from:"
            f" {excerpt(', '.join(sorted(lists)))}"
        )
    elif not features:
        raise features_missing(names, path)
    for name in features if len(set(names)) < len(names) else ():
        check_once(names, name, path)
    for given in (label, persons):
        if given is not None:
            check_once(names, given, path)
    return features, label


def matrix(table: Any, features: list[str], path: Path) -> NDArray[Any]:
    """Feature columns as one array of shape (rows, columns)."""
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; check how it was made")
    if not _is_list(table.schema.field(features[0]).type):
        return np.column_stack([as_numpy(table[name]) for name in features])
    import pyarrow as pa
    import pyarrow.compute as pc

    name, column = features[0], table[features[0]]
    if column.null_count:
        row = int(column.is_null().to_numpy().argmax())
        raise InputError(f"{path} row {row} has no value in column {quoted(name)}; drop that row")
    lengths = pc.list_value_length(column).to_numpy()
    width = int(lengths[0])
    if (lengths != width).any():
        row = int((lengths != width).argmax())
        said = f"{path} row {row} has {lengths[row]} values in {quoted(name)}, row 0 has {width}"
        raise InputError(f"{said}; make them equal")
    flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    return as_numpy(flat).reshape(-1, width)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
