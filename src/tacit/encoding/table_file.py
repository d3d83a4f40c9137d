"""A table on disk as coded records, by a declared schema, in chunks of records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.label_sets import holds_sets
from tacit.data.labels import ClassValue, class_list, clean_labels, values_of
from tacit.data.tables import open_table
from tacit.encoding.sources import base
from tacit.errors import InputError, excerpt, quoted
from tacit.models.table_schema import CodedTable, TableSchema

CHUNK = 1 << 14  # records


@dataclass(frozen=True)
class TableRecords:
    """Coded records of a table, the labels and the ids of persons beside them, and the columns that
    were left out.

    Labels are a matrix, (n, K), where a record may have several; `label_classes` are then those of
    its columns.
    """

    coded: CodedTable
    labels: NDArray[Any] | None
    persons: NDArray[Any] | None
    left_out: list[str]
    label_classes: list[ClassValue] | None = None


def read_records(
    path: Path,
    schema: TableSchema,
    *,
    label: str | None = None,
    person: str | None = None,
    classes: Any = None,
    label_separator: str | None = None,
) -> TableRecords:
    """Read the columns that a schema declares, and those of labels and persons, once.

    Parameters
    ----------
    path : Path
        A table: .csv, .tsv, .jsonl or .parquet, or a folder that Hugging Face datasets saved.
    schema : TableSchema
        With its encoders loaded.
    label, person : str, optional
        Columns of labels and of ids of persons.
    classes : list or int, optional
        The declared class list, with which labels are compared as texts.
    label_separator : str, optional
        What separates the labels of a record in a text; lists have several labels without it.

    Raises
    ------
    InputError
        If a column is missing, or a label or an id is missing or of another form.
    """
    table = open_table(path)
    names = list(schema.columns)
    beside = [name for name in (label, person) if name is not None]
    for name in [*names, *beside]:
        if name not in table.names:
            declared = f"{schema.source} declares"
            if name in beside:
                declared = "holds labels or persons"
            fault = f"{path} lacks the column {quoted(name)} that {declared}"
            raise InputError(f"{fault}; it has {excerpt(', '.join(table.names))}")

    codes = []
    faults: dict[str, Counter[str]] = {name: Counter() for name in names}
    values: dict[str, list[Any]] = {name: [] for name in beside}
    for chunk in table.records([*names, *beside], CHUNK):
        coded = schema.coded({name: chunk[name] for name in names})
        codes.append(coded.codes)
        for name, counts in coded.faults.items():
            faults[name].update(counts)
        for name in beside:
            values[name] += chunk[name]
    if not codes:
        raise base.empty(path, "rows")

    all_codes = np.concatenate(codes)
    labels = None
    label_classes = None
    persons = None
    with table.places.in_errors():
        if label is not None:
            labels, label_classes = _labels(values[label], classes, path, label_separator)
        if person is not None:
            persons = base.persons_of(values[person], len(all_codes), path)
    return TableRecords(
        CodedTable(all_codes, {name: dict(counts) for name, counts in faults.items()}),
        labels,
        persons,
        [name for name in table.names if name not in (*names, *beside)],
        label_classes,
    )


def _labels(
    values: list[Any], classes: Any, path: Path, separator: str | None
) -> tuple[NDArray[Any], list[ClassValue] | None]:
    """Return labels, (n,), as values of the declared classes, if there are some; or the matrix of
    several labels a record, (n, K), and the classes of its columns.
    """
    if separator is not None or holds_sets(values):
        listed = None if classes is None else class_list(classes)
        sets = base.label_sets(values, path, separator=separator, classes=listed)
        return sets.matrix, sets.classes
    if classes is None:
        return base.class_values(values, len(values), path), None
    listed = class_list(classes)
    texts = np.array([None if value == "" else value for value in values], dtype=object)
    return values_of(clean_labels(texts, len(values), listed), listed), None
