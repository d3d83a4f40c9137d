"""Columns of a table in memory, by name: data frames of pandas and polars, tables of Arrow, dicts
of columns. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, quoted


def column_names(table: Any) -> list[Any] | None:
    """Return the names of a table's columns in order; None for what is no table."""
    if isinstance(table, Mapping):
        return list(table)
    # a table of Arrow, or a batch of its rows
    if hasattr(table, "column_names") and hasattr(table, "num_rows"):
        return list(table.column_names)
    if hasattr(table, "to_numpy") and hasattr(table, "columns"):
        return list(table.columns)
    return None


def text_names(table: Any) -> list[str] | None:
    """Return the names of a table's columns if all of them are text, each once; otherwise None.

    Frames that were made of an array have numbers for names, which say no more than positions.
    """
    names = column_names(table)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) < len(names):
        return None
    return list(names)


def column(table: Any, name: str) -> NDArray[Any]:
    """Return a column as an array of shape (n,): numbers with NaN for missing ones, times as
    datetime64, and anything else as objects.
    """
    values = table[name]
    if hasattr(values, "to_pylist"):
        values = _of_arrow(values)
    elif hasattr(values, "dtype") and hasattr(values, "array"):
        values = _of_pandas(values)
    elif hasattr(values, "null_count"):
        values = _of_polars(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()

    if not isinstance(values, np.ndarray):
        # numpy would turn a list of numbers and texts into texts
        values = _objects(list(values))
    if values.ndim != 1:
        fault = f"column {quoted(name)} has {values.ndim} dimensions, not one"
        raise InputError(f"{fault}; give one value for each row")
    return np.asarray(values)


def reordered(table: Any, names: list[str]) -> Any:
    """Return the columns of these names, in this order, of a table that has them all."""
    if isinstance(table, Mapping) or hasattr(table, "column_names"):
        # lists of numbers come as objects
        return np.column_stack([np.array(column(table, name).tolist()) for name in names])
    return table[names]


def _of_pandas(series: Any) -> NDArray[Any]:
    """Return a series of pandas as an array."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return np.asarray(series.to_numpy())
    if getattr(dtype, "tz", None) is not None:
        # the time that a clock at that place showed
        return np.asarray(series.dt.tz_localize(None).to_numpy())
    if getattr(dtype, "kind", "O") in "iuf":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(dtype, "categories"):
        # the code of a missing value is -1
        categories = np.array([*dtype.categories, None], dtype=object)
        return np.asarray(categories[series.cat.codes.to_numpy()])
    return np.asarray(series.to_numpy(dtype=object))


def _of_arrow(values: Any) -> NDArray[Any]:
    """Return a column of Arrow as an array."""
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    if hasattr(values, "dictionary_decode"):
        values = values.dictionary_decode()
    # the time that a clock at that place showed
    is_zoned = getattr(values.type, "tz", None) is not None
    if is_zoned or _rounds(str(values.type), values.null_count):
        return _objects(values.to_pylist())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _of_polars(series: Any) -> NDArray[Any]:
    """Return a series of polars as an array."""
    if getattr(series.dtype, "time_zone", None) is not None:
        # the time that a clock at that place showed
        series = series.dt.replace_time_zone(None)
    if _rounds(str(series.dtype).lower(), series.null_count()):
        return _objects(series.to_list())
    return np.asarray(series.to_numpy())


def _rounds(dtype: str, nulls: int) -> bool:
    """Tell whether a missing value would turn whole numbers into floats, which round long ones: a
    record would then decide about the cells of others.
    """
    return nulls > 0 and dtype in ("int64", "uint64")


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return values as an array of objects, of shape (n,)."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects
