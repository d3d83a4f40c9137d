"""Columns of a table as blocks of a row, by declared bounds and levels.

A block has one unit of weight, whatever the cell holds: its Euclidean norm is 1. So a row of k
columns has norm sqrt k, and no record weighs more than another. A missing value is a level of its
own, the last entry of each block. A cell is first turned into codes, of which there are few, then
into a block, which is wide: so the codes of a large table fit the memory, where its rows would not.

Guarantee: bounds, edges, levels and years are declared, hence public, and a row follows from its
record alone. So encoding spends nothing and does not change what one record can move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.models.table_values import Floats, numbers, texts, times

Codes = NDArray[np.float32]
Encode = Callable[[list[Any]], tuple[NDArray[Any], int]]
"""A function from texts or pictures to features, (n, dim), and the number of texts of which the
encoder reads the beginning only.
"""
CUT_OFF = "longer than the encoder reads, cut off at its end"

Spacing = Literal["even", "log"]
CELLS = 16
MISSING = "(missing)"
OTHER = "(other)"
EXAMPLES = 9  # numbers of an ordered column whose blocks are shown

# number of entries of each part of a date; that of years is declared
PARTS = {"year": 0, "month": 12, "day": 31, "weekday": 7, "hour": 24}


@dataclass(frozen=True)
class Coded:
    """Codes of a column's cells, (n, c), and how many cells are other than declared, by fault."""

    codes: Codes
    faults: dict[str, int]


@dataclass(frozen=True)
class Column(ABC):
    """A declared column: how its cells become a block."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def levels_in_words(self) -> list[str]:
        """What each entry of the block stands for."""

    @property
    def width(self) -> int:
        """Number of entries of the block."""
        return len(self.levels_in_words)

    @property
    def n_codes(self) -> int:
        """Number of codes of a cell."""
        return 1

    @abstractmethod
    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        """Turn cells into codes."""

    def fill(self, codes: Codes, block: NDArray[np.float32]) -> None:
        """Write the blocks of cells into `block`, (n, width), which holds zeros."""
        block[np.arange(len(codes)), codes[:, 0].astype(np.int64)] = 1

    @abstractmethod
    def declaration(self) -> dict[str, Any]:
        """Return the column as a schema declares it, in values of JSON."""

    def example_blocks(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the levels in words, and the block of each, (levels, width)."""
        return self.levels_in_words, np.eye(self.width, dtype=np.float32)


@dataclass(frozen=True)
class Bounded(Column):
    """A column of numbers between `low` and `high`."""

    low: float
    high: float
    spacing: Spacing = "even"

    def _bounded(
        self, values: NDArray[Any], missing: Collection[str]
    ) -> tuple[Floats, NDArray[np.bool_], dict[str, int]]:
        """Return numbers moved into the bounds, where they are missing, and faults."""
        read, unreadable = numbers(values, missing)
        absent = np.isnan(read)
        faults = {
            f"below {self.low:g}": int((read < self.low).sum()),
            f"above {self.high:g}": int((read > self.high).sum()),
            "no number": unreadable,
        }
        inside = np.clip(np.where(absent, self.low, read), self.low, self.high)
        return inside, absent, faults


@dataclass(frozen=True)
class Number(Bounded):
    """Numbers in cells between declared edges, one entry for each cell.

    A cell holds its lower edge, and the last one its upper edge too. Numbers out of bounds go to
    the first or the last cell.
    """

    cells: int = CELLS
    declared_edges: tuple[float, ...] | None = None
    kind: ClassVar[str] = "number"

    @cached_property
    def edges(self) -> Floats:
        """Edges of the cells, of shape (cells + 1,)."""
        if self.declared_edges is not None:
            return np.array(self.declared_edges)
        if self.spacing == "even":
            return np.linspace(self.low, self.high, self.cells + 1)
        # evenly spaced in log(1 + distance from low), so that amounts from 0 have cells too
        edges = self.low + np.expm1(np.linspace(0, np.log1p(self.high - self.low), self.cells + 1))
        edges[-1] = self.high
        return np.asarray(edges)

    @property
    def levels_in_words(self) -> list[str]:
        words = _distinct_words(self.edges)
        return [*(f"{low} to {high}" for low, high in pairwise(words)), MISSING]

    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        inside, absent, faults = self._bounded(values, missing)
        cells = np.searchsorted(self.edges[1:-1], inside, side="right")
        codes = np.where(absent, self.width - 1, cells)
        return Coded(codes.astype(np.float32)[:, None], faults)

    def declaration(self) -> dict[str, Any]:
        if self.declared_edges is not None:
            return {"kind": self.kind, "edges": list(self.declared_edges)}
        bounds = {"kind": self.kind, "low": self.low, "high": self.high}
        return bounds | {"cells": self.cells, "spacing": self.spacing}


@dataclass(frozen=True)
class Ordered(Bounded):
    """Numbers that stay numbers: v from -1 at `low` to 1 at `high`, beside sqrt(1 - v^2).

    The second entry keeps the block's norm at 1. Numbers out of bounds become -1 or 1.
    """

    kind: ClassVar[str] = "ordered"

    @property
    def levels_in_words(self) -> list[str]:
        return ["value", "complement", MISSING]

    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        inside, absent, faults = self._bounded(values, missing)
        distance = inside - self.low
        span = self.high - self.low
        if self.spacing == "log":
            distance = np.log1p(distance)
            span = np.log1p(span)
        codes = np.where(absent, np.nan, 2 * distance / span - 1)
        return Coded(codes.astype(np.float32)[:, None], faults)

    def fill(self, codes: Codes, block: NDArray[np.float32]) -> None:
        value = codes[:, 0].astype(np.float64)
        absent = np.isnan(value)
        value[absent] = 0
        block[:, 0] = value
        block[:, 1] = np.where(absent, 0, np.sqrt(np.maximum(1 - value**2, 0)))
        block[:, 2] = absent

    def example_blocks(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return some numbers from `low` to `high` and a missing one, and the block of each."""
        codes = np.append(np.linspace(-1, 1, EXAMPLES), np.nan)[:, None]
        shares = np.linspace(0, 1, EXAMPLES)
        distances = shares * (self.high - self.low)
        if self.spacing == "log":
            distances = np.expm1(shares * np.log1p(self.high - self.low))
        blocks = np.zeros((len(codes), self.width), dtype=np.float32)
        self.fill(codes.astype(np.float32), blocks)
        return [*(f"{self.low + distance:g}" for distance in distances), MISSING], blocks

    def declaration(self) -> dict[str, Any]:
        bounds = {"kind": self.kind, "low": self.low, "high": self.high}
        return bounds | {"spacing": self.spacing}


@dataclass(frozen=True)
class Category(Column):
    """Declared levels, one entry for each; all other texts share one entry."""

    levels: tuple[str, ...]
    kind: ClassVar[str] = "category"

    @property
    def levels_in_words(self) -> list[str]:
        return [*self.levels, OTHER, MISSING]

    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        n_levels = len(self.levels)
        place_by_level: dict[str | None, int] = {
            level: place for place, level in enumerate(self.levels)
        }
        place_by_level[None] = n_levels + 1
        cells = texts(values, missing)
        codes = np.array([place_by_level.get(cell, n_levels) for cell in cells], dtype=np.float32)
        faults = {"of no declared level": int((codes == n_levels).sum())}
        return Coded(codes[:, None], faults)

    def declaration(self) -> dict[str, Any]:
        return {"kind": self.kind, "levels": list(self.levels)}


@dataclass(frozen=True)
class Date(Column):
    """Declared parts of a date or a time, an entry for each value of each part.

    `years` are the first and the last year, of which there is one if `year` is a part; years
    outside count as the nearest of them. Each of p parts has an entry of 1 / sqrt p.
    """

    parts: tuple[str, ...]
    years: tuple[int, int] | None = None
    form: str | None = None
    kind: ClassVar[str] = "date"

    def _sizes(self) -> list[int]:
        """Return the number of entries of each part."""
        sizes = []
        for part in self.parts:
            if part == "year" and self.years is not None:
                sizes.append(self.years[1] - self.years[0] + 1)
            else:
                sizes.append(PARTS[part])
        return sizes

    @property
    def levels_in_words(self) -> list[str]:
        words = []
        for part, size in zip(self.parts, self._sizes(), strict=True):
            first = 1 if part in ("month", "day") else 0
            if part == "year" and self.years is not None:
                first = self.years[0]
            words += [f"{part} {first + place}" for place in range(size)]
        return [*words, MISSING]

    @property
    def n_codes(self) -> int:
        return len(self.parts)

    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        read, unreadable = times(values, missing, self.form)
        absent = np.isnat(read)
        faults = {"no date": unreadable}
        read = np.where(absent, np.datetime64(0, "s"), read)
        days = read.astype("datetime64[D]")
        months = read.astype("datetime64[M]")
        codes = np.empty((len(values), self.n_codes), dtype=np.float32)

        for place, part in enumerate(self.parts):
            if part == "year" and self.years is not None:
                first, last = self.years
                year = read.astype("datetime64[Y]").astype(np.int64) + 1970
                year = np.where(absent, first, year)
                faults[f"before {first}"] = int((year < first).sum())
                faults[f"after {last}"] = int((year > last).sum())
                codes[:, place] = np.clip(year, first, last) - first
            elif part == "month":
                codes[:, place] = months.astype(np.int64) % 12
            elif part == "day":
                codes[:, place] = (days - months.astype("datetime64[D]")).astype(np.int64)
            elif part == "weekday":
                # 1970-01-01 was a Thursday, and Monday is 0
                codes[:, place] = (days.astype(np.int64) + 3) % 7
            else:
                codes[:, place] = read.astype("datetime64[h]").astype(np.int64) % 24
        codes[absent] = np.nan
        return Coded(codes, faults)

    def fill(self, codes: Codes, block: NDArray[np.float32]) -> None:
        absent = np.isnan(codes[:, 0])
        present = np.flatnonzero(~absent)
        weight = 1 / np.sqrt(len(self.parts))
        first = 0
        for place, size in enumerate(self._sizes()):
            block[present, first + codes[present, place].astype(np.int64)] = weight
            first += size
        block[absent, -1] = 1

    def example_blocks(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the values of each part, and the entry of each; a date has one of each part."""
        weights = np.full(self.width, 1 / np.sqrt(len(self.parts)), dtype=np.float32)
        weights[-1] = 1  # a missing date
        return self.levels_in_words, np.diag(weights)

    def declaration(self) -> dict[str, Any]:
        declared: dict[str, Any] = {"kind": self.kind, "parts": list(self.parts)}
        if self.years is not None:
            declared["years"] = list(self.years)
        if self.form is not None:
            declared["format"] = self.form
        return declared


@dataclass(frozen=True)
class Embedded(Column):
    """Texts or pictures as unit rows of features of a public encoder, which is declared by name.

    `encode` is the loaded encoder, and `dim` the number of its features; both are set before use.
    """

    kind: str = "text"  # type: ignore[misc]  # text or image, so it is a field here
    encoder: str = ""
    dim: int = 0
    encode: Encode | None = field(default=None, compare=False, repr=False)

    @property
    def levels_in_words(self) -> list[str]:
        if not self.dim:
            raise InputError(f"encoder {self.encoder!r} is not loaded; use tacit.TableEncoder")
        return [*map(str, range(self.dim)), MISSING]

    @property
    def n_codes(self) -> int:
        return self.width

    def coded(self, values: NDArray[Any], missing: Collection[str]) -> Coded:
        cells = values.tolist()
        absent = np.array([_is_absent(cell, missing) for cell in cells])
        codes = np.zeros((len(cells), self.width), dtype=np.float32)
        codes[absent, -1] = 1
        present = np.flatnonzero(~absent)
        n_cut = 0
        if len(present) and self.encode is not None:
            rows, n_cut = self.encode([cells[row] for row in present])
            features = np.asarray(rows, np.float64)
            lengths = np.linalg.norm(features, axis=1, keepdims=True)
            codes[present, :-1] = features / np.where(lengths > 0, lengths, 1)
        return Coded(codes, {CUT_OFF: n_cut})

    def fill(self, codes: Codes, block: NDArray[np.float32]) -> None:
        block[:] = codes

    def declaration(self) -> dict[str, Any]:
        return {"kind": self.kind, "encoder": self.encoder}


def _distinct_words(numbers: Floats) -> list[str]:
    """Write numbers with six digits, or as many more as tell them apart."""
    for digits in range(6, 18):
        words = [f"{number:.{digits}g}" for number in numbers]
        if len(set(words)) == len(words):
            break
    return words


def _is_absent(cell: Any, missing: Collection[str]) -> bool:
    """Tell whether a cell of texts or pictures has no value."""
    if isinstance(cell, str):
        return not cell.strip() or cell.strip() in missing
    is_nan = isinstance(cell, float) and cell != cell
    # by its name: comparing pandas.NA with anything gives no truth value
    is_pandas_na = type(cell).__name__ in ("NAType", "NaTType")
    return cell is None or is_nan or is_pandas_na
