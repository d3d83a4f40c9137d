"""The columns of the table that a release takes, stated in its document and matched by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.compute.frames import column_names, reordered, text_names
from tacit.errors import InputError, TacitError, excerpt, quoted
from tacit.models.table_columns import Embedded
from tacit.models.table_schema import CodedTable, TableSchema
from tacit.releases.fields import NOT_STATED
from tacit.releases.schema import Contents, TableContents

MOST_LISTED = 3  # columns that a message names

# families of encoders whose models are public ones, and the form of their names
BY_NAME = ("timm", "torchvision", "open_clip", "transformers", "sentence-transformers", "edges")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


@dataclass(frozen=True)
class ColumnNames:
    """Names of features that are taken as they are, in the order of the rows."""

    names: tuple[str, ...]

    def order_in(self, given: Sequence[str], what: str) -> list[int]:
        """Return the position of each name among the `given` ones; `what` has them."""
        place_by_name = {name: place for place, name in enumerate(given)}
        missing = [name for name in self.names if name not in place_by_name]
        if missing:
            listed = excerpt(", ".join(map(quoted, missing[:MOST_LISTED])))
            if len(missing) > MOST_LISTED:
                listed += f" and {len(missing) - MOST_LISTED} more"
            noun = "column" if len(missing) == 1 else "columns"
            fault = f"{what} lacks the {noun} {listed}, which the release was fitted on"
            raise InputError(f"{fault}; name the columns as in the fit (their order is free)")
        return [place_by_name[name] for name in self.names]


TableColumns = ColumnNames | TableSchema


def stated_columns(columns: TableColumns) -> dict[str, Any]:
    """Return what `TableContents` states about columns."""
    if isinstance(columns, ColumnNames):
        return {"columns": columns.names}
    return {
        "columns": {name: part.declaration() for name, part in columns.columns.items()},
        "missing_texts": columns.missing,
        "label": columns.label or NOT_STATED,
    }


def columns_of(contents: Contents) -> TableColumns | None:
    """Return the columns that a document states; None if it states none.

    Raises
    ------
    InputError
        If they cannot be read.
    """
    # a release that states its task may have no columns
    if not isinstance(contents, TableContents) or not contents.columns:
        return None
    if isinstance(contents.columns, tuple):
        return ColumnNames(contents.columns)
    declared: dict[str, Any] = {
        "columns": contents.columns,
        "missing": list(contents.missing_texts),
    }
    if contents.label != NOT_STATED:
        declared["label"] = contents.label
    return TableSchema.parse(declared, "the release")


def columns_misfit(contents: Contents) -> str | None:
    """Describe the fault of stated columns; None without one."""
    try:
        columns = columns_of(contents)
    except TacitError as error:
        return str(error)
    if columns is None:
        return None
    if isinstance(columns, ColumnNames):
        width = len(columns.names)
        fits = width == contents.width and len(set(columns.names)) == width
        return None if fits else f"{width} names of columns do not fit width {contents.width}"

    # the width of texts and pictures is that of their encoder
    plain = [part for part in columns.columns.values() if not isinstance(part, Embedded)]
    width = sum(part.width for part in plain)
    is_exact = len(plain) == len(columns.columns)
    if width > contents.width or (is_exact and width < contents.width):
        return f"columns of width {width} do not fit width {contents.width}"
    return None


def loaded(schema: TableSchema) -> TableSchema:
    """Return a schema with the encoders of its texts and pictures, if it has some.

    Raises
    ------
    InputError
        If an encoder is code or a file of this machine, which no document may choose to run.
    """
    if not any(isinstance(part, Embedded) for part in schema.columns.values()):
        return schema
    unsafe = unsafe_encoder(schema)
    if unsafe is not None:
        raise InputError(
            f"the release names the encoder {quoted(unsafe)}, and a release runs no code or file of"
            " this machine; if you trust it, encode the table with tacit.TableEncoder, and pass"
            " the rows"
        )
    from tacit.encoding.table_encoder import with_encoders

    return with_encoders(schema)


def unsafe_encoder(schema: TableSchema) -> str | None:
    """Return the first encoder that is no model of a public library by its name, but code or a file
    of this machine; None if there is none.
    """
    for part in schema.columns.values():
        if isinstance(part, Embedded):
            family, _, name = part.encoder.partition(":")
            is_name = NAME.fullmatch(name) is not None and ".." not in name
            if family not in BY_NAME or not is_name or Path(name).exists():
                return part.encoder
    return None


def rows_of(columns: TableColumns | None, X: Any, *, stacklevel: int) -> Any:
    """Return the rows of a table whose columns have names, and anything else as it is.

    Cells that are other than declared are counted in a warning.
    """
    if isinstance(columns, TableSchema) and column_names(X) is not None:
        schema = loaded(columns)
        coded = schema.coded(X)
        warn_of_cells(coded, stacklevel=stacklevel + 1)
        return schema.rows(coded.codes)

    if isinstance(columns, ColumnNames):
        names = text_names(X)
        if names is not None:
            columns.order_in(names, "X")
            return reordered(X, list(columns.names))
    return X


def warn_of_cells(coded: CodedTable, *, stacklevel: int) -> None:
    """Warn of cells that are other than declared, with their numbers."""
    lines = coded.lines()
    if lines:
        warnings.warn(
            "cells other than declared, taken as the nearest cell,"
            f" {quoted('(other)')}, missing or cut off:"
            f" {'; '.join(lines)}",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
