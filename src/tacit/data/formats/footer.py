"""Number of values in the columns of a Parquet file, read from its footer.

pyarrow reads the same footer, but aborts the process when the facts of a column are damaged in some
ways. The footer is one struct in Thrift's compact protocol
(https://github.com/apache/parquet-format, parquet.thrift).
"""

from pathlib import Path
from typing import Any

MAGIC = b"PAR1"

# types of the compact protocol
TRUE = 1
FALSE = 2
BYTE = 3
INT16 = 4
INT32 = 5
INT64 = 6
DOUBLE = 7
BINARY = 8
LIST = 9
SET = 10
STRUCT = 12

# field numbers in parquet.thrift on the way to the number of values of a column
ROW_GROUPS = 4
COLUMNS = 1
FACTS = 3
PATH = 3
VALUES = 5


def value_counts(path: Path) -> dict[str, int]:
    """Count the values of each column over all row groups, by the first name of the column's path.

    Raises
    ------
    ValueError
        If the footer is damaged.
    """
    reader = _Reader(_footer(path))
    counts: dict[str, int] = {}
    try:
        for group in reader.struct()[ROW_GROUPS]:
            for column in group[COLUMNS]:
                facts = column[FACTS]
                name = facts[PATH][0].decode()
                n_values = facts[VALUES]
                counts[name] = counts.get(name, 0) + n_values
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its footer is damaged") from error
    return counts


def _footer(path: Path) -> bytes:
    """Read the footer; after it, the file ends with the footer's length and the magic bytes."""
    with path.open("rb") as file:
        file.seek(-8, 2)
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != MAGIC or length + 8 > file.tell():
            raise ValueError("its footer is cut off")
        file.seek(-8 - length, 2)
        return file.read(length)


class _Reader:
    """Reader of values in the compact protocol, one after another.

    An IndexError means that the data end too early.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def struct(self) -> dict[int, Any]:
        """Read a struct: its values by field number."""
        fields: dict[int, Any] = {}
        number = 0
        while True:
            header = self._byte()
            if header == 0:
                return fields

            # field numbers are stated as steps; a step of 0 means that the number itself follows
            step = header >> 4
            kind = header & 15
            if step:
                number += step
            else:
                number = self._integer()
            fields[number] = self._value(kind)

    def _value(self, kind: int) -> Any:
        """Read a value of some type; the values of bytes and floats are not needed."""
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            self._position += 1
            return None
        if kind == DOUBLE:
            self._position += 8
            return None
        if kind in (INT16, INT32, INT64):
            return self._integer()
        if kind == BINARY:
            return self._binary()
        if kind in (LIST, SET):
            return self._list()
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"its footer holds a value of unknown type {kind}")

    def _list(self) -> list[Any]:
        header = self._byte()
        length = header >> 4
        kind = header & 15
        if length == 15:
            length = self._unsigned()
        if kind in (TRUE, FALSE):
            # a truth value in a list takes a byte
            kind = BYTE

        values = []
        for _ in range(length):
            values.append(self._value(kind))
            # a list of bytes would not notice the end, however long it claims to be
            if self._position > len(self._data):
                raise ValueError("its footer is damaged")
        return values

    def _binary(self) -> bytes:
        length = self._unsigned()
        start = self._position
        self._position += length
        return self._data[start : self._position]

    def _integer(self) -> int:
        """Read a signed integer, whose lowest bit is the sign (zigzag)."""
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)

    def _unsigned(self) -> int:
        """Read seven bits from each byte, the lowest first; the last byte is below 128."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("its footer is damaged")

    def _byte(self) -> int:
        byte = self._data[self._position]
        self._position += 1
        return byte
