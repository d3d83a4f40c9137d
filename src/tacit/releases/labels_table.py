"""The table of labels of public rows, `labels.csv`: one line for each labelled row of the pool.

Its columns are `row`, the position in the pool; `source_row` and `name`, the position and the name
in the source of the pool, if the pool states them; `label`; `level`, the level of the label in the
tree of the release, if it carries one; and `probability`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.origin import Origin
from tacit.errors import ReleaseError, excerpt, quoted
from tacit.releases.reading import AGAIN

Column = Literal["row", "source_row", "name", "label", "level", "probability"]
Columns = tuple[Column, ...]

# columns of a pool that is the source itself, of one that states positions in its source, and of
# one that states names too
ORIGINS: tuple[Columns, ...] = ((), ("source_row",), ("source_row", "name"))


def _layout(origin: Columns, *, with_levels: bool) -> Columns:
    levels: Columns = ("level",) if with_levels else ()
    return ("row", *origin, "label", *levels, "probability")


LAYOUTS = tuple(_layout(origin, with_levels=flag) for origin in ORIGINS for flag in (False, True))


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels of some rows of a pool.

    Attributes
    ----------
    rows : int64 array of shape (n,)
        Position in the pool of each labelled row, ascending.
    labels : array of shape (n,)
        Labels of the class list.
    probabilities : float64 array of shape (n,)
        The probability of each label.
    origin : Origin or None
        Position and name of each labelled row in the source of the pool.
    levels : int64 array of shape (n,) or None
        The level of each label in the tree of the release.
    """

    rows: NDArray[np.int64]
    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    origin: Origin | None = None
    levels: NDArray[np.int64] | None = None

    @property
    def columns(self) -> Columns:
        """Names of the columns of the file."""
        origin = ORIGINS[0]
        if self.origin is not None:
            origin = ORIGINS[1] if self.origin.names is None else ORIGINS[2]
        return _layout(origin, with_levels=self.levels is not None)

    def file(self) -> bytes:
        """Return the bytes of the file."""
        columns = [self.rows.tolist()]
        if self.origin is not None:
            columns.append(self.origin.rows.tolist())
            if self.origin.names is not None:
                columns.append(self.origin.names.tolist())
        columns.append(self.labels.tolist())
        if self.levels is not None:
            columns.append(self.levels.tolist())
        columns.append(self.probabilities.tolist())

        text = io.StringIO(newline="")
        # texts are quoted, numbers are not
        writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue().encode("utf-8")

    @classmethod
    def parse(
        cls,
        where: str,
        text: str,
        columns: Columns,
        classes: Sequence[Any],
        n_pool: int,
    ) -> LabelTable:
        """Parse the file.

        Parameters
        ----------
        where : str
            The path, for messages.
        text : str
            The content.
        columns : tuple of str
            The columns that the document states.
        classes : sequence
            The labels that the release may give.
        n_pool : int
            Rows of the pool.

        Raises
        ------
        ReleaseError
            If the text is no table of these columns, a row is not of the pool or not after the row
            before it, a label is not of the class list, or a probability is not from 0 to 1.
        """
        if columns not in LAYOUTS:
            raise ReleaseError(f"{where} has columns {quoted(columns)} by its document; {AGAIN}")
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            values = _read_columns(lines, columns, classes)
            rows = np.array(values["row"], dtype=np.int64)
            probabilities = np.array(values["probability"], dtype=np.float64)
            _check_values(rows, probabilities, n_pool)
            origin = None
            if "source_row" in columns:
                names = np.array(values["name"], dtype=np.str_) if "name" in columns else None
                origin = Origin(np.array(values["source_row"], dtype=np.int64), names)
            levels = None
            if "level" in columns:
                levels = np.array(values["level"], dtype=np.int64)
        except (csv.Error, KeyError, OverflowError, ValueError) as error:
            fault = f"{where} is no table of labels, at line {lines.line_num}"
            raise ReleaseError(f"{fault} ({excerpt(str(error))}); {AGAIN}") from error

        indices = np.array(values["label"], dtype=np.int64)
        return cls(rows, np.array(classes)[indices], probabilities, origin, levels)


def _read_columns(lines: Any, columns: Columns, classes: Sequence[Any]) -> dict[Column, list[Any]]:
    """Return the values of each column; those of labels are positions in the class list."""
    index_by_text = {str(label): index for index, label in enumerate(classes)}
    readers: dict[Column, Callable[[str], Any]] = {
        "row": int,
        "source_row": int,
        "name": str,
        "label": index_by_text.__getitem__,
        "level": int,
        "probability": float,
    }
    header = tuple(next(lines, ()))
    if header != columns:
        raise ValueError(f"its columns are {quoted(header)}, not {', '.join(columns)}")

    values: dict[Column, list[Any]] = {name: [] for name in columns}
    for cells in lines:
        for name, cell in zip(columns, cells, strict=True):
            values[name].append(readers[name](cell))
    return values


def _check_values(rows: NDArray[np.int64], probabilities: NDArray[np.float64], n_pool: int) -> None:
    """Raise a ValueError for rows that are not ascending positions in the pool, or values that are
    no probabilities.
    """
    if len(rows) == 0:
        raise ValueError("it has no rows")
    if (np.diff(rows, prepend=-1) <= 0).any() or rows[-1] >= n_pool:
        raise ValueError(f"its rows are not ascending positions in a pool of {n_pool} rows")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ValueError("a probability is not from 0 to 1")
