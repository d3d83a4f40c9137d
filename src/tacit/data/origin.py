"""Where the rows of a store came from, so that results are joined to the records of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# columns of a store
ROW = "row"
RECORD = "record"
# a hash of the file or text that a row was encoded from
CONTENT = "content"


@dataclass(frozen=True, eq=False)
class Origin:
    """Positions of rows in their source, and their names there.

    Attributes
    ----------
    rows : int64 array of shape (n,)
        The position of each row in the source, from 0, counted before any record was left out.
    names : array of n texts or None
        What the source calls each record, such as the path of a file; None if it has no names.

    Examples
    --------
    >>> Origin.of_source(4).at([1, 3]).rows.tolist()
    [1, 3]
    """

    rows: NDArray[np.int64]
    names: NDArray[Any] | None = None

    @classmethod
    def of_source(cls, n: int) -> Origin:
        """The origin of n rows that are the source themselves."""
        return cls(np.arange(n))

    def at(self, places: Any) -> Origin:
        """The origin of some of the rows, by positions."""
        if self.names is None:
            return Origin(self.rows[places])
        return Origin(self.rows[places], self.names[places])

    def without_folders(self) -> Origin:
        """The origin with names without the folders of a path, which may be labels or persons."""
        if self.names is None:
            return self
        file_names = [without_folders(name) for name in self.names.tolist()]
        return Origin(self.rows, np.array(file_names))

    def columns(self) -> dict[str, Any]:
        """Columns of metadata; none for rows that are the source themselves, which need none."""
        if self.names is not None:
            return {ROW: self.rows, RECORD: self.names}
        if np.array_equal(self.rows, np.arange(len(self.rows))):
            return {}
        return {ROW: self.rows}


def without_folders(name: str) -> str:
    """The last part of a path."""
    return name.rpartition("/")[2]
