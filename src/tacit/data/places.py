"""The places of rows in messages.

Rows of arrays, stores and binary tables count from 0: "row 3". Those of a text file are named by
the line of the file on which they begin, counted from 1, so that a header is line 1: "line 5".
"""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from tacit.errors import InputError, RowError


@dataclass(frozen=True)
class Places:
    """Places of data rows in text files that are read one after another.

    Parameters
    ----------
    paths : tuple of path
        CSV, TSV, JSON lines, or any other text with a row on each line; packed if they end in
        `.gz`. Without files, rows are numbers.
    has_header : bool
        Whether each file begins with a header.
    counts_empty : bool
        Whether an empty line is a row too.
    """

    paths: Sequence[Path] = ()
    has_header: bool = False
    counts_empty: bool = False

    def of(self, row: int) -> str:
        """Return the place of a data row, whose number counts from 0 through all files."""
        rows_left = row
        for path in self.paths:
            lines = self._first_lines(path)
            if self.has_header:
                next(lines, None)
            for line in lines:
                if rows_left == 0:
                    return f"line {line}" if len(self.paths) == 1 else f"line {line} of {path}"
                rows_left -= 1
        return f"row {row}"

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Name lines in errors of the block that name rows of these files."""
        try:
            yield
        except RowError as error:
            if not self.paths:
                raise
            place = self.of(error.row)
            raise InputError(f"{error.before}{place}{error.after}") from error

    def _first_lines(self, path: Path) -> Iterator[int]:
        """Yield the line on which each record of a text file begins, from 1."""
        is_packed = path.suffix.lower() == ".gz"
        ending = (path.with_suffix("") if is_packed else path).suffix.lower()
        with (
            gzip.open(path) if is_packed else path.open("rb") as file,
            TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
        ):
            if ending not in (".csv", ".tsv"):
                for number, line in enumerate(text, 1):
                    if line.strip() or self.counts_empty:
                        yield number
                return

            reader = csv.reader(text, delimiter="\t" if ending == ".tsv" else ",")
            line_number = 1
            for cells in reader:
                if cells:
                    yield line_number
                # a cell with a line break takes several lines
                line_number = reader.line_num + 1


ROWS = Places()
"""Rows of arrays, stores and binary tables, which are numbers."""
