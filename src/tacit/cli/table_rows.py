"""Rows for a release that states columns: of a table on disk, or of data whose columns have
names.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import check_encoder, say, tell_of_columns
from tacit.compute.remote import RemotePath
from tacit.errors import InputError, excerpt, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.data.imports import Data
    from tacit.models.table_schema import TableSchema
    from tacit.releases.columns import ColumnNames, TableColumns
    from tacit.releases.release import Release


def columns_of_card(data: "Data") -> "TableColumns | None":
    """Return the columns that the rows of a store or a file were made of, if it states them."""
    from tacit.data.arrays import COLUMNS
    from tacit.models.table_schema import TableSchema
    from tacit.releases.columns import ColumnNames

    if isinstance(data.card.get("table"), dict):
        return TableSchema.parse(data.card["table"], f"the card of {data.identity}")
    names = data.card.get(COLUMNS)
    width = data.x.shape[1]
    if isinstance(names, list) and len(names) == width == len(set(names)):
        return ColumnNames(tuple(map(str, names)))
    return None


def data_for(
    release: "Release",
    path: Path,
    *,
    any_encoder: bool,
    x: str | None = None,
    y: str | None = None,
    persons: str | None = None,
    label_separator: str | None = None,
    split: str | None = None,
    group: str | None = None,
) -> "Data":
    """Read rows to classify: by the release's schema if `path` is a table with its columns, by the
    names of its columns, or by position.

    Cells that are other than declared are counted in what is printed. `group` is a column of a
    table that is no feature and becomes `groups` of the data.
    """
    from tacit.data.imports import read_data
    from tacit.models.table_schema import TableSchema
    from tacit.releases.columns import ColumnNames

    columns = release.columns
    if isinstance(columns, TableSchema) and isinstance(path, RemotePath) and path.is_file():
        # the table is opened several times below, and each time would copy it
        path = path.copied()
    if isinstance(columns, TableSchema) and _has_column_of(columns, path):
        return _encoded(release, columns, path, y, persons, label_separator, group)

    # columns are selected by name below, so a file may have more than the release takes
    width = None if isinstance(columns, ColumnNames) else release.width
    data = read_data(
        path,
        x=x,
        y=y,
        persons=persons,
        label_separator=label_separator,
        split=split,
        width=width,
        role="test",
        group=group,
    )
    check_encoder(release, data, path, any_encoder=any_encoder)
    tell_of_columns(data, path)
    given = columns_of_card(data)
    if isinstance(columns, ColumnNames) and isinstance(given, ColumnNames):
        return _in_order(columns, given, data, path)
    return data


def grouped_data_for(
    release: "Release", path: Path, column: str, **reading: Any
) -> "tuple[Data, NDArray[Any] | None]":
    """Read rows as `data_for` does, and the value of each row in a column by which figures are told
    apart: of the table, or of the metadata or the features of a store.

    A column that the release takes by name is both, a feature and the groups.
    """
    from tacit.data.locations import located
    from tacit.data.manifest import NAME
    from tacit.releases.columns import ColumnNames

    place = located(path, reading.get("split"))
    if (place / NAME).is_file():
        return data_for(release, path, **reading), _of_store(place, column)

    columns = release.columns
    if isinstance(columns, ColumnNames) and column in columns.names:
        data = data_for(release, path, **reading)
        return data, data.x[:, columns.names.index(column)]
    data = data_for(release, path, group=column, **reading)
    return data, getattr(data, "groups", None)


def _of_store(folder: Path, column: str) -> "NDArray[Any]":
    """Return a column of the metadata of a store, or else of its features, where they have
    names.
    """
    from tacit.data.arrays import COLUMNS
    from tacit.data.embeddings import EmbeddingStore

    store = EmbeddingStore.open(folder)
    table = store.metadata()
    if column in table.column_names:
        values: NDArray[Any] = table[column].to_numpy()
        return values
    features = store.card.get(COLUMNS)
    if isinstance(features, list) and column in features:
        return store.x[:, features.index(column)]
    raise InputError(
        f"--by {column} is no file, and {folder} has no such column (its columns are"
        f" {excerpt(', '.join(table.column_names))}); name one, or give TABLE#COLUMN of the table"
        " that it was made from, or a file with one value a row"
    )


def _has_column_of(schema: "TableSchema", path: Path) -> bool:
    """Tell whether a path is a table on disk that has some column of the schema."""
    from tacit.data.tables import is_table, open_table

    if not path.exists() or not is_table(path):
        return False
    return not set(schema.columns).isdisjoint(open_table(path).names)


def _encoded(
    release: "Release",
    schema: "TableSchema",
    path: Path,
    y: str | None,
    persons: str | None,
    label_separator: str | None,
    group: str | None,
) -> "Data":
    """Encode a table by the schema of a release."""
    import numpy as np

    from tacit.data.arrays import Arrays
    from tacit.data.formats.table import LABELS
    from tacit.data.ids import is_ids_file, places_of_ids, read_ids
    from tacit.data.persons import stored_ids
    from tacit.data.tables import open_table
    from tacit.encoding.table_file import read_records
    from tacit.releases.columns import loaded

    table = open_table(path)
    usual_names = [name for name in (schema.label, *LABELS) if name in table.names]
    label = y
    if label is None and usual_names and usual_names[0] not in schema.columns:
        label = usual_names[0]
    has_ids_file = persons is not None and is_ids_file(persons)

    schema = loaded(schema)
    records = read_records(
        path,
        schema,
        label=label,
        person=None if has_ids_file else persons,
        classes=release.classes.tolist(),
        label_separator=label_separator,
    )
    for line in records.coded.lines():
        say(f"{path}: {line}")

    ids = records.persons
    if has_ids_file and persons is not None:
        with places_of_ids(persons).in_errors():
            ids = stored_ids(read_ids(persons), len(records.coded.codes))
    several = records.labels is not None and records.labels.ndim == 2
    return Arrays(
        schema.rows(records.coded.codes),
        records.labels,
        release.classes.tolist() if several else None,
        path.stem,
        table.files,
        persons=ids,
        places=table.places,
        groups=None if group is None else np.array(table.column(group), dtype=object),
    )


def _in_order(columns: "ColumnNames", given: "ColumnNames", data: "Data", path: Path) -> "Data":
    """Return data with the columns of the release, in its order; `given` are those of the data."""
    import numpy as np

    from tacit.data.arrays import Arrays

    order = columns.order_in(given.names, str(path))
    surplus = [quoted(name) for name in given.names if name not in columns.names]
    if surplus:
        names = excerpt(", ".join(surplus))
        fault = f"columns left out, which the release does not take: {names}"
        print(f"tacit: {path}: {fault}", file=sys.stderr)
    if order == list(range(data.x.shape[1])):
        return data
    rows = np.asarray(data.x[:])[:, order]
    if isinstance(data, Arrays):
        return replace(data, x=rows)
    return Arrays(
        rows,
        data.labels,
        data.classes if data.classes_declared or data.several else None,
        data.identity,
        (data.folder / "manifest.json",),
        data.card,
        persons=data.persons,
        declared_public=data.declared_public,
        stated_origin=data.origin,
        classes_derived=not data.classes_declared,
    )
