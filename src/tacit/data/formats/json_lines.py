"""JSON lines (`.jsonl`, `.ndjson`, also with `.gz` after it): an object a line, columns as in
Parquet. No error shows a value.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.data.arrays import Arrays, make_arrays, named_columns
from tacit.data.formats.arrow import as_numpy, is_list
from tacit.data.formats.table import blocks_of, columns, labels_of, left_out
from tacit.data.formats.text import FAULTS, check_text, opened, stem
from tacit.data.places import Places
from tacit.data.sizes import check_width
from tacit.data.streams import Spool
from tacit.errors import InputError

# bytes that are parsed at once; no line may be longer
BLOCK = 1 << 24


def read(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read features, labels, ids of persons and groups, by the names that a Parquet file has for
    them.
    """
    return read_files([path], path, stem(path), x, y, persons, width, separator, group)


def read_files(
    paths: list[Path],
    path: Path,
    identity: str,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read files one after another, block by block.

    The first block shows the types of the columns. If later ones have others, such as fractions
    among whole numbers, all files are read again by the types of all.
    """
    for part in paths:
        check_text(part)
    first = next(_tables(paths, None), None)
    if first is None:
        raise _fault(path)
    names = (x, y, persons, separator, group)
    data = _collected(paths, path, identity, names, width, first.schema, None)
    if data is None:
        schema = _common_schema(paths, path)
        data = _collected(paths, path, identity, names, width, schema, schema)
    if data is None:
        raise _fault(path)
    return data


def _collected(
    paths: list[Path],
    path: Path,
    identity: str,
    names: tuple[str | None, ...],
    width: int | None,
    schema: Any,
    explicit_schema: Any,
) -> Arrays | None:
    """Return the data if all blocks have the columns of the schema, else None.

    `names` are x, y, persons, what separates labels, and the column of groups.
    """
    import pyarrow as pa

    x, y, persons, separator, group = names
    features, label = columns(schema, x, y, persons, path, group)
    other_columns = [name for name in (label, persons, group) if name is not None]
    types = _types(schema)
    rows = Spool()
    others: dict[str, list[Any]] = {name: [] for name in other_columns}

    def tables() -> Iterator[Any]:
        for table in _tables(paths, explicit_schema):
            if _types(table.schema) != types:
                raise _OtherTypesError
            for name, chunks in others.items():
                chunks.extend(table[name].chunks)
            yield from table.select(features).to_batches()

    places = Places(tuple(paths))
    try:
        dtype = None
        with places.in_errors():
            for block in blocks_of(tables(), features[0], path):
                dtype = dtype or block.dtype
                if block.dtype != dtype:
                    # a missing value among whole numbers
                    raise _fault(path)
                rows.append(block)
    except _OtherTypesError:
        return None

    values = rows.array()
    check_width(path, values.shape, width)
    found = {name: pa.chunked_array(chunks, types[name]) for name, chunks in others.items()}
    try:
        with places.in_errors():
            labels = None if label is None else labels_of(found[label], separator)
        ids = None if persons is None else as_numpy(found[persons])
        groups = None if group is None else as_numpy(found[group])
    except InputError:
        raise
    except (ValueError, pa.ArrowException) as error:
        # a text is not in UTF-8, which the parser does not check
        raise _fault(path) from error
    return make_arrays(
        values,
        labels,
        tuple(paths),
        identity,
        card=None if is_list(types[features[0]]) else named_columns(features),
        persons=ids,
        groups=groups,
        left_out=left_out(schema, features, other_columns),
        places=places,
    )


class _OtherTypesError(Exception):
    """A block has other columns, or columns of other types, than those before."""


def _types(schema: Any) -> dict[str, Any]:
    return {field.name: field.type for field in schema}


def _common_schema(paths: list[Path], path: Path) -> Any:
    """Return all columns of all blocks, each of a type that holds its values in every block."""
    import pyarrow as pa

    schema = pa.schema([])
    try:
        for table in _tables(paths, None):
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
    except pa.ArrowException as error:
        raise _fault(path) from error
    return schema


def _tables(paths: list[Path], schema: Any) -> Iterator[Any]:
    """Yield the rows of files as tables, of columns of the types in a schema, if there is one."""
    import pyarrow as pa
    from pyarrow import json

    for path in paths:
        try:
            for block in _blocks(path):
                table = json.read_json(
                    pa.BufferReader(block),
                    json.ReadOptions(block_size=BLOCK),
                    json.ParseOptions(explicit_schema=schema),
                )
                _refuse_lost_values(table, path)
                # decodes the names, which pyarrow does not check
                _types(table.schema)
                yield table
        except InputError:
            raise
        except (*FAULTS, ValueError, pa.ArrowException) as error:
            # pyarrow's message may quote a value, which may be private
            raise _fault(path) from error


def _refuse_lost_values(table: Any, path: Path) -> None:
    """Refuse a table in which pyarrow lost a null: one at the start of the first list that holds
    values, after which all values would belong to the record before.
    """
    import pyarrow as pa

    try:
        table.validate()
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{path} has a missing value (null) at the start of a list; give a value, or drop that"
            " record"
        ) from error


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the text of a file in blocks of whole lines."""
    rest = b""
    with opened(path) as file:
        while block := file.read(BLOCK):
            lines, newline, end = block.rpartition(b"\n")
            if newline:
                lines = rest + lines
                if lines.strip():
                    yield lines
                rest = b""
            rest += end
            if len(rest) > BLOCK:
                raise ValueError("a line is too long")
    if rest.strip():
        yield rest


def _fault(path: Path) -> InputError:
    fault = f"{path} is not JSON in UTF-8 with an object a line, whose names hold one type"
    return InputError(f"{fault}; save it again")
