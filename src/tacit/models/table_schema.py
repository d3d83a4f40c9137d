"""The schema of a table: what its columns may hold, declared from public knowledge.

    columns:
      age: {kind: number, low: 17, high: 90, cells: 16, spacing: even}
      gain: {kind: number, low: 0, high: 99999, spacing: log}
      income: {kind: number, edges: [0, 10000, 50000, 200000]}
      grade: {kind: ordered, low: 1, high: 6}
      sex: {kind: category, levels: [Female, Male]}
      hired: {kind: date, parts: [year, month, weekday], years: [1990, 2026]}
      notes: {kind: text, encoder: "sentence-transformers:all-MiniLM-L6-v2"}
    label: {column: paid, classes: ["no", "yes"]}
    person: customer
    missing: ["?", NA]

A schema makes rows of a table: the blocks of `tacit.models.table_columns` side by side, in the
order of the columns. It is public. Bounds or levels that were read off private records would be
outside every guarantee, so a column without them is refused, and nothing here reads them off a
table.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.frames import column, column_names
from tacit.errors import InputError, excerpt, nearest, quoted
from tacit.models.table_columns import (
    CELLS,
    MISSING,
    OTHER,
    PARTS,
    Category,
    Codes,
    Column,
    Date,
    Embedded,
    Encode,
    Number,
    Ordered,
)
from tacit.models.table_values import plain_text

MOST_CELLS = 1000
MOST_LEVELS = 10_000
MOST_YEARS = 1000
LAST_YEAR = 9999
MOST_CHARACTERS = 4000  # of a name or a level
MOST_BYTES = 1 << 20  # of a file
PUBLIC_KNOWLEDGE = "declare it from public knowledge, such as a code book, not from the rows"


@dataclass(frozen=True)
class CodedTable:
    """Codes of the cells of a table, (n, c), and cells other than declared: by column, how many by
    fault.
    """

    codes: Codes
    faults: dict[str, dict[str, int]]

    def lines(self) -> list[str]:
        """Return a line for each column with cells other than declared."""
        lines = []
        for name, faults in self.faults.items():
            counts = [f"{count} {fault}" for fault, count in faults.items() if count]
            if counts:
                lines.append(f"column {quoted(name)}: {', '.join(counts)}")
        return lines


@dataclass(frozen=True)
class TableSchema:
    """Declared columns by name, and which columns are the label and the person.

    Attributes
    ----------
    columns : dict of str to Column
    label, person : str or None
        Columns that are no features.
    classes : tuple of str, or None
        The class list as a public fact.
    missing : tuple of str
        Texts that stand for a missing value.
    """

    columns: dict[str, Column]
    label: str | None = None
    person: str | None = None
    classes: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    source: str = field(default="schema", compare=False)

    @classmethod
    def of(cls, schema: TableSchema | Mapping[str, Any] | str | Path) -> TableSchema:
        """Return a schema from itself, its values, or the path of a YAML file.

        Raises
        ------
        InputError
            If it is incomplete or malformed.
        """
        if isinstance(schema, TableSchema):
            return schema
        if isinstance(schema, str | Path):
            return cls.read(Path(schema))
        return cls.parse(schema)

    @classmethod
    def read(cls, path: Path) -> TableSchema:
        """Read a YAML file, in which every value is a text: `no` and `01` stay as they are."""
        return cls.parse(_yaml(path), str(path))

    @classmethod
    def parse(cls, values: Any, source: str = "schema") -> TableSchema:
        """Return the schema of parsed YAML or JSON; `source` is its name in messages."""
        parser = _Parser(source)
        known = ("columns", "label", "person", "missing")
        declared = parser.mapping(values, "the schema", known)
        columns = declared.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise InputError(f"{source} declares no columns; write columns: and one line for each")

        label, classes = parser.label(declared.get("label"))
        person = parser.optional_text(declared.get("person"), "person")
        features = {str(name): parser.column(str(name), part) for name, part in columns.items()}
        for role, name in (("label", label), ("person", person)):
            if name in features:
                raise InputError(
                    f"{source}: {role} {quoted(name)} is among the columns too; leave it out there"
                )
        missing = parser.texts(declared.get("missing") or [])
        for name, part in features.items():
            if isinstance(part, Category):
                parser.check_levels(name, part.levels, missing)
        return cls(features, label, person, classes, missing, source)

    def declaration(self) -> dict[str, Any]:
        """Return the schema in values of JSON, which `parse` reads."""
        columns = {name: part.declaration() for name, part in self.columns.items()}
        declared: dict[str, Any] = {"columns": columns}
        if self.label is not None:
            declared["label"] = {"column": self.label}
            if self.classes is not None:
                declared["label"]["classes"] = list(self.classes)
        if self.person is not None:
            declared["person"] = self.person
        if self.missing:
            declared["missing"] = list(self.missing)
        return declared

    def of_features(self) -> TableSchema:
        """Return the schema without label and person, which a row does not depend on."""
        return replace(self, label=None, person=None, classes=None)

    def with_encoders(self, load: Callable[[Embedded], tuple[Encode, int]]) -> TableSchema:
        """Return the schema with encoders of texts and pictures loaded by `load`."""
        columns = dict(self.columns)
        for name, part in self.columns.items():
            if isinstance(part, Embedded) and part.encode is None:
                encode, dim = load(part)
                columns[name] = replace(part, encode=encode, dim=dim)
        return replace(self, columns=columns)

    @cached_property
    def width(self) -> int:
        """Number of columns of the rows."""
        return sum(part.width for part in self.columns.values())

    @cached_property
    def n_codes(self) -> int:
        """Number of codes of a record."""
        return sum(part.n_codes for part in self.columns.values())

    def feature_names(self) -> list[str]:
        """Name each entry of a row: its column, and what the cell holds."""
        return [
            f"{name} = {words}"
            for name, part in self.columns.items()
            for words in part.levels_in_words
        ]

    def check_table(self, table: Any) -> None:
        """Refuse a table that lacks a column, or is none."""
        names = column_names(table)
        if names is None:
            fault = f"X is {type(table).__name__}, which has no named columns"
            raise InputError(f"{fault}; pass a data frame, or a dict of columns")
        for name in self.columns:
            if name not in names:
                fault = f"the table lacks the column {quoted(name)} that {self.source} declares"
                listed = excerpt(", ".join(map(str, names)))
                raise InputError(f"{fault}; it has {listed}")
            if names.count(name) > 1:
                raise InputError(f"the table has {quoted(name)} twice; name its columns apart")

    def coded(self, table: Any) -> CodedTable:
        """Return the codes of a table's cells; its columns are matched by name."""
        self.check_table(table)
        blocks = []
        faults = {}
        for name, part in self.columns.items():
            values = column(table, name)
            try:
                coded = part.coded(values, self.missing)
            except InputError as error:
                raise InputError(f"column {quoted(name)}: {error}") from error
            blocks.append(coded.codes)
            faults[name] = coded.faults

        if len({len(block) for block in blocks}) > 1:
            raise InputError("the columns have different lengths; give one value for each record")
        return CodedTable(np.concatenate(blocks, axis=1), faults)

    def rows(self, codes: Codes) -> NDArray[np.float32]:
        """Return the rows of coded records, (n, width); each has norm sqrt(number of columns)."""
        rows = np.zeros((len(codes), self.width), dtype=np.float32)
        first = 0
        first_code = 0
        for part in self.columns.values():
            block = rows[:, first : first + part.width]
            part.fill(codes[:, first_code : first_code + part.n_codes], block)
            first += part.width
            first_code += part.n_codes
        return rows


class CodedRows:
    """Rows of coded records, (n, width), which are made block by block as they are read."""

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, schema: TableSchema, codes: Codes) -> None:
        self._schema = schema
        self._codes = codes
        self.shape = (len(codes), schema.width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return self._schema.rows(self._codes[rows])


@dataclass(frozen=True)
class _Parser:
    """Reads the values of a schema, which come from YAML as texts, or from JSON or Python."""

    source: str

    def error(self, name: str, fault: str) -> InputError:
        return InputError(f"{self.source}: column {quoted(name)} {fault}")

    def mapping(self, values: Any, what: str, known: Sequence[str]) -> Mapping[str, Any]:
        """Return a mapping with no other keys than the known ones."""
        if not isinstance(values, Mapping):
            rule = f"must be a mapping with {', '.join(known)}"
            raise InputError(f"{self.source}: {what} is {quoted(values)} and {rule}; correct it")
        for key in values:
            if key not in known:
                fault = f"{self.source}: {what} has the unknown key {quoted(key)}"
                raise InputError(f"{fault}; {nearest(str(key), known)}")
        return values

    def label(self, value: Any) -> tuple[str | None, tuple[str, ...] | None]:
        """Return the column of labels, and the declared classes, if there are some."""
        if not isinstance(value, Mapping):
            return self.optional_text(value, "label"), None
        declared = self.mapping(value, "label", ("column", "classes"))
        name = self.optional_text(declared.get("column"), "label")
        if name is None:
            raise InputError(f"{self.source}: label names no column; write label: {{column: NAME}}")
        if _is_empty(declared.get("classes")):
            return name, None
        return name, self.texts(declared["classes"])

    def optional_text(self, value: Any, key: str) -> str | None:
        """Return the name of a column, or None if there is none."""
        if _is_empty(value):
            return None
        if not isinstance(value, str):
            raise InputError(f"{self.source}: {key} {quoted(value)} must name a column; correct it")
        return self.one_line(value)

    def texts(self, values: Any) -> tuple[str, ...]:
        """Return a list of texts, each once."""
        if isinstance(values, str) or not isinstance(values, Sequence):
            fault = f"{self.source}: {quoted(values)} is no list"
            raise InputError(f"{fault}; write it as [first, second]")
        listed = tuple(self.one_line(plain_text(value)) for value in values)
        if len(set(listed)) < len(listed):
            text, _ = Counter(listed).most_common(1)[0]
            raise InputError(f"{self.source}: {quoted(text)} is listed twice; list it once")
        return listed

    def one_line(self, text: str) -> str:
        """Return a text that a release can state: on one line, without control characters."""
        if len(text) > MOST_CHARACTERS or any(map(_is_control, text)):
            rule = f"one line of {MOST_CHARACTERS} characters at most, without control characters"
            raise InputError(f"{self.source}: {quoted(text)} must be {rule}; correct it")
        return text

    def check_levels(self, name: str, levels: Sequence[str], missing: Sequence[str]) -> None:
        """Refuse levels that have the name of another one, or stand for a missing value."""
        for level in levels:
            if level in (MISSING, OTHER):
                raise self.error(name, f"has the level {level}, as all columns do; leave it out")
            if level in missing:
                fault = f"has the level {quoted(level)}, which stands for a missing value too"
                raise self.error(name, f"{fault}; leave it out here or under missing")

    def column(self, name: str, values: Any) -> Column:
        """Return a declared column."""
        self.one_line(name)
        kinds = {
            "number": self._number,
            "ordered": self._ordered,
            "category": self._category,
            "date": self._date,
            "text": self._embedded,
            "image": self._embedded,
        }
        kind = values.get("kind") if isinstance(values, Mapping) else None
        if isinstance(values, Mapping) and _is_empty(kind):
            raise self.error(name, f"has no kind; choose from: {', '.join(kinds)}")
        if not isinstance(kind, str) or kind not in kinds:
            raise self.error(name, f"has kind {quoted(kind)}; {nearest(str(kind), tuple(kinds))}")
        return kinds[kind](name, values)

    def _number(self, name: str, values: Mapping[str, Any]) -> Column:
        known = ("kind", "low", "high", "cells", "spacing", "edges")
        self.mapping(values, f"column {quoted(name)}", known)
        if _is_empty(values.get("edges")):
            low, high, spacing = self._bounds(name, values)
            cells = self._whole(name, values, "cells", 2, MOST_CELLS, CELLS)
            return Number(low, high, spacing, cells)

        for key in ("low", "high", "cells", "spacing"):
            if not _is_empty(values.get(key)):
                raise self.error(name, f"has edges and {key}; leave {key} out")
        edges = values["edges"]
        if isinstance(edges, str) or not isinstance(edges, Sequence) or len(edges) < 3:
            raise self.error(name, f"has edges {quoted(edges)}; list three numbers or more")
        numbers = tuple(self._finite(name, "edges", edge) for edge in edges)
        if any(left >= right for left, right in pairwise(numbers)):
            raise self.error(name, "has edges that do not increase; sort them, each once")
        return Number(numbers[0], numbers[-1], cells=len(numbers) - 1, declared_edges=numbers)

    def _ordered(self, name: str, values: Mapping[str, Any]) -> Column:
        self.mapping(values, f"column {quoted(name)}", ("kind", "low", "high", "spacing"))
        return Ordered(*self._bounds(name, values))

    def _bounds(self, name: str, values: Mapping[str, Any]) -> tuple[float, float, Any]:
        """Return low, high and spacing."""
        for key in ("low", "high"):
            if _is_empty(values.get(key)):
                raise self.error(name, f"has no {key}; {PUBLIC_KNOWLEDGE}")
        low = self._finite(name, "low", values["low"])
        high = self._finite(name, "high", values["high"])
        if low >= high:
            raise self.error(name, f"has low {low:g} and high {high:g}; low must be below high")
        if not math.isfinite(2 * (high - low)):
            raise self.error(name, f"has low {low:g} and high {high:g}, too far apart; correct one")
        spacing = values.get("spacing")
        if _is_empty(spacing):
            spacing = "even"
        if spacing not in ("even", "log"):
            raise self.error(name, f"has spacing {quoted(spacing)}; choose even or log")
        return low, high, spacing

    def _category(self, name: str, values: Mapping[str, Any]) -> Column:
        self.mapping(values, f"column {quoted(name)}", ("kind", "levels"))
        if _is_empty(values.get("levels")):
            raise self.error(name, f"has no levels; {PUBLIC_KNOWLEDGE}")
        levels = self.texts(values["levels"])
        if len(levels) > MOST_LEVELS:
            raise self.error(name, f"has more than {MOST_LEVELS} levels; declare fewer")
        if "" in levels:
            raise self.error(name, "has an empty level; missing values have a level already")
        return Category(levels)

    def _date(self, name: str, values: Mapping[str, Any]) -> Column:
        self.mapping(values, f"column {quoted(name)}", ("kind", "parts", "years", "format"))
        listed = ", ".join(PARTS)
        if _is_empty(values.get("parts")):
            raise self.error(name, f"has no parts; list some of {listed}")
        parts = self.texts(values["parts"])
        for part in parts:
            if part not in PARTS:
                raise self.error(name, f"has the part {quoted(part)}; {nearest(part, PARTS)}")

        years = values.get("years")
        bounds = None
        if "year" in parts:
            if _is_empty(years):
                raise self.error(name, f"has no years [first, last]; {PUBLIC_KNOWLEDGE}")
            if isinstance(years, str) or not isinstance(years, Sequence) or len(years) != 2:
                raise self.error(name, f"has years {quoted(years)}; write [first, last]")
            first, last = (int(self._finite(name, "years", year)) for year in years)
            if not (0 <= last - first < MOST_YEARS and first >= 1 and last <= LAST_YEAR):
                rule = f"list the earlier one first, both from 1 to {LAST_YEAR}"
                raise self.error(name, f"has years {first:g} to {last:g}; {rule}")
            bounds = (first, last)
        elif not _is_empty(years):
            raise self.error(name, "has years and no part year; leave years out")
        return Date(parts, bounds, self.optional_text(values.get("format"), "format"))

    def _embedded(self, name: str, values: Mapping[str, Any]) -> Column:
        self.mapping(values, f"column {quoted(name)}", ("kind", "encoder"))
        encoder = self.optional_text(values.get("encoder"), "encoder")
        if encoder is None or ":" not in encoder:
            raise self.error(name, "has no encoder; write encoder: FAMILY:NAME of tacit encode")
        return Embedded(str(values["kind"]), encoder)

    def _whole(
        self, name: str, values: Mapping[str, Any], key: str, least: int, most: int, default: int
    ) -> int:
        if _is_empty(values.get(key)):
            return default
        number = self._finite(name, key, values[key])
        if not number.is_integer() or not least <= number <= most:
            rule = f"must be a whole number from {least} to {most}"
            raise self.error(name, f"has {key} {quoted(values[key])}, which {rule}; correct it")
        return int(number)

    def _finite(self, name: str, key: str, value: Any) -> float:
        """Return a declared number."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number):
            raise self.error(name, f"has {key} {quoted(value)}, which is no number; correct it")
        return number


def _is_control(character: str) -> bool:
    """Tell whether a character controls a terminal, ends a line or turns the writing direction."""
    turns = "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
    return turns or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def _is_empty(value: Any) -> bool:
    """Tell whether a value was left out, or left empty by `tacit schema`."""
    return value is None or value == "" or value == []


def _yaml(path: Path) -> Any:
    """Return the values of a YAML file, all scalars as texts; a key that repeats is refused."""
    import yaml

    try:
        text = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} cannot be read ({reason}); check its name") from error
    if len(text) > MOST_BYTES:
        raise InputError(f"{path} has more than {MOST_BYTES} bytes; give the schema of a table")

    class Loader(yaml.BaseLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    line = node.start_mark.line + 1
                    raise InputError(
                        f"{path}, line {line}: {quoted(key)} is declared twice; declare it once"
                    )
            return dict(super().construct_mapping(node, deep=deep))

    try:
        return yaml.load(text, Loader)  # a BaseLoader makes texts, lists and dicts
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        fault = excerpt(" ".join(str(error).split()))
        raise InputError(f"{path} is not YAML ({fault}); correct it") from None
