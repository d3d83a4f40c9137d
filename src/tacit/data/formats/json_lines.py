"""JSON lines (`.jsonl`, `.ndjson`, also with `.gz` after it): an object a line, columns as in
Parquet. No error shows a value.
"""

from pathlib import Path

from tacit.data.arrays import Arrays, make_arrays
from tacit.data.formats.arrow import as_numpy
from tacit.data.formats.table import columns, labels_of, matrix
from tacit.data.formats.text import check_text, stem
from tacit.data.sizes import check_width
from tacit.errors import InputError

# bytes that are parsed at once; no line may be longer
BLOCK = 1 << 24


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read features, labels and ids of persons, by the names that a Parquet file has for them."""
    import pyarrow as pa
    from pyarrow import json

    check_text(path)
    try:
        rows = json.read_json(path, json.ReadOptions(block_size=BLOCK))
    except (OSError, ValueError, pa.ArrowException) as error:
        # pyarrow's message may quote a value, which may be private
        fault = f"{path} is not JSON in UTF-8 with an object a line, whose names hold one type"
        raise InputError(f"{fault}; save it again") from error

    features, label = columns(rows.schema, x, y, persons, path)
    values = matrix(rows, features, path)
    check_width(path, values.shape, width)
    return make_arrays(
        values,
        None if label is None else labels_of(rows[label]),
        (path,),
        stem(path),
        persons=None if persons is None else as_numpy(rows[persons]),
    )
