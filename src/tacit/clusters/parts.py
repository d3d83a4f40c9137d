"""The sums of parts of the records: workers compute them, and the driver takes each part once.

A part may run twice, after a failure or where a slow task has a second copy, and a result may be
lost.
The driver therefore knows which parts there are, and takes exactly one result of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, TacitError, quoted

Columns = str | list[str]
"""A column of lists of numbers, or several columns of one number each."""

PREDICTION = "prediction"
"""The column that predictions are added as."""


def refuse_person(person: str | None) -> None:
    """Refuse ids of persons: the bound of a person needs all their records at once."""
    if person is not None:
        raise InputError(
            f"person={person!r} is not taken on a cluster, where each record is bounded by itself;"
            " fit on one machine with persons=..., or leave it out under a unit per record"
        )


def total_of_parts(recipe: Any, results: Iterable[tuple[int, bytes]], parts: int) -> Any:
    """Add up one result of each part.

    Parameters
    ----------
    recipe : Recipe
        That of the learner.
    results : iterable of (int, bytes)
        The number of a part, from 0, and its packed sums, in any order.
    parts : int
        Number of parts.

    Returns
    -------
    Sums
        Private.

    Raises
    ------
    TacitError
        If a part has no result, or two that differ.
    """
    total = recipe.zero()
    # of packed sums, which are too large to keep for every part
    digests: dict[int, int] = {}
    for part, data in results:
        if not 0 <= part < parts:
            raise TacitError(f"part {part} is none of the {parts} planned ones; run it again")
        if part in digests:
            if digests[part] != hash(data):
                raise TacitError(
                    f"part {part} was computed twice with different sums, so its rows changed;"
                    " write the records to Parquet and read those"
                )
            continue
        digests[part] = hash(data)
        total = total + recipe.unpacked(data)

    missing = parts - len(digests)
    if missing:
        raise TacitError(f"{missing} of {parts} parts have no result; run it again")
    return total


def rows_of(table: Any, features: Columns) -> NDArray[Any]:
    """Rows (n, d) of an Arrow table or batch: float32 stays, other numbers become float64."""
    if isinstance(features, str):
        return _rows_of_lists(table.column(features), features)
    columns = [_numbers(table.column(name), name) for name in features]
    return np.column_stack(columns)


def _rows_of_lists(column: Any, name: str) -> NDArray[Any]:
    """Rows of a column of lists of one length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if not (is_list or pa.types.is_fixed_size_list(column.type)):
        raise InputError(
            f"column {quoted(name)} has type {column.type}; pass a column of lists of numbers, or"
            " the names of several columns"
        )
    if column.null_count:
        raise InputError(f"column {quoted(name)} has missing rows; drop them")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]

    parts = []
    for chunk in chunks:
        if len(chunk) == 0:
            continue
        values = _numbers(chunk.flatten(), name)
        width = len(values) // len(chunk)
        lengths = np.asarray(pc.list_value_length(chunk))
        if not (lengths == width).all():
            raise InputError(
                f"column {quoted(name)} has rows of different lengths; keep those of one encoder"
            )
        parts.append(values.reshape(len(chunk), width))
    return np.concatenate(parts) if parts else np.zeros((0, 1))


def _numbers(column: Any, name: str) -> NDArray[Any]:
    """Numbers of a column, none of which may be missing."""
    if column.null_count:
        raise InputError(f"column {quoted(name)} has missing numbers; drop or fill those rows")
    values = np.asarray(column)
    if values.dtype.kind not in "fiu":
        raise InputError(f"column {quoted(name)} has type {column.type}; pass numbers")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return values


def labels_of(table: Any, label: str) -> Any:
    """Labels (n,) of an Arrow table or batch, or a list of labels for each record."""
    column = table.column(label)
    if column.null_count:
        raise InputError(f"column {quoted(label)} has missing labels; drop those rows")
    labels = column.to_pylist()
    if labels and isinstance(labels[0], list):
        return labels
    return np.array(labels)


def sums_of_batches(recipe: Any, batches: Iterable[Any], features: Columns, label: str) -> Any:
    """Sum the records of Arrow batches or tables, which are one part."""
    total = recipe.zero()
    for batch in batches:
        if batch.num_rows:
            total = total + recipe.sums(rows_of(batch, features), labels_of(batch, label))
    return total


def predictions(release: Any, table: Any, features: Columns) -> Any:
    """The class of each row of an Arrow table or batch, as an Arrow array."""
    import pyarrow as pa

    kind = pa.string() if release.classes.dtype.kind == "U" else pa.int64()
    classes: list[Any] = []
    if table.num_rows:
        classes = release.predict(rows_of(table, features)).tolist()
    return pa.array(classes, kind)
