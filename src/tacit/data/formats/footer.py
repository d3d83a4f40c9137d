"""Number of values in the columns of a Parquet file, read from its footer.

pyarrow reads the same footer, but aborts the process when the facts of a column are damaged in some
ways. The footer is one struct in Thrift's compact protocol
(https://github.com/apache/parquet-format, parquet.thrift).
"""

from pathlib import Path
from typing import Any

MAGIC = b"PAR1"
TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, _, STRUCT = range(1, 13)
# field numbers in parquet.thrift on the way to the number of values of a column
ROW_GROUPS, COLUMNS, FACTS, PATH, VALUES = 4, 1, 3, 3, 5


def value_counts(path: Path) -> dict[str, int]:
    """Values of each column over all row groups, by the first name of the column's path.

    Raises
    ------
    ValueError
        If the footer is damaged.
    """
    with path.open("rb") as file:
        file.seek(-8, 2)
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != MAGIC or length + 8 > file.tell():
            raise ValueError("its footer is cut off")
        file.seek(-8 - length, 2)
        footer = file.read(length)
    counts: dict[str, int] = {}
    try:
        for group in _value(footer, 0, STRUCT)[0][ROW_GROUPS]:
            for column in group[COLUMNS]:
                name, values = column[FACTS][PATH][0].decode(), column[FACTS][VALUES]
                counts[name] = counts.get(name, 0) + values
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its footer is damaged") from error
    return counts


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """Read a value at a position; return it and the next position. A struct becomes a dict by field
    number.
    """
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind in (BYTE, DOUBLE):
        return None, at + (1 if kind == BYTE else 8)
    if kind in (INT16, INT32, INT64):
        number, at = _unsigned(data, at)
        return (number >> 1) ^ -(number & 1), at
    if kind == BINARY:
        length, at = _unsigned(data, at)
        return data[at : at + length], at + length
    if kind in (LIST, SET):
        return _list(data, at)
    if kind == STRUCT:
        return _struct(data, at)
    raise ValueError(f"its footer holds a value of unknown type {kind}")


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    length, kind = data[at] >> 4, data[at] & 15
    at += 1
    if length == 15:
        length, at = _unsigned(data, at)
    values = []
    for _ in range(length):
        # a truth value in a list takes a byte
        value, at = _value(data, at, BYTE if kind in (TRUE, FALSE) else kind)
        values.append(value)
        if at > len(data):
            raise ValueError("its footer is damaged")
    return values, at


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _value(data, at, INT16)
        fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
    raise ValueError("its footer is damaged")
