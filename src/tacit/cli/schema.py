"""`tacit schema`: a draft of the schema of a table, from its names and types or a public sample."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import check_apart, say
from tacit.cli.options import Force, Out
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.tables import Table

HEAD = (
    "# Declare what each column may hold from public knowledge (a code book, a form, the law).",
    "# Bounds or levels that were read off private records are outside the guarantee.",
    "# A kind is number, ordered, category, date, text or image; docs/tables.md has all keys.",
    "# Delete the lines of columns that are no features.",
)
NOT_READ = "to be declared: nothing was read off the rows"
READ = "from the public sample"

MOST_LEVELS = 100  # of a category in a sample; more are taken for free text
SKEW = 100  # how far the largest amount is above the median, for log spacing


def schema(table: Path, /, *, out: Out, public: Path | None = None, force: Force = False) -> None:
    """Draft a schema of a table, to be completed and given to tacit encode --encoder table.

    Only names and types of columns are read off the table. What would have to be read off its
    values is left empty, with a comment; tacit refuses a schema until it is declared.

    Parameters
    ----------
    table
        The table: .csv, .tsv, .jsonl, .parquet, or a folder that Hugging Face datasets saved.
    out
        The YAML file to write.
    public
        A public sample of the same columns, whose values fill in bounds and levels. No private
        record may be in it.
    """
    from tacit.compute.atomic import atomic_file, check_writable
    from tacit.data.arrays import existing
    from tacit.data.formats.table import LABELS
    from tacit.data.tables import open_table

    check_writable(out, force=force)
    private = open_table(existing(table))
    sample = None
    if public is not None:
        _check_sample(public, table)
        sample = open_table(existing(public))

    label = next((name for name in private.names if name.strip().lower() in LABELS), None)
    lines = [*HEAD, "columns:"]
    n_open = 0
    for name in private.names:
        if name == label:
            continue
        declared, comment = _declared(private, sample, name)
        # `low: ,` and `levels: }` are to be filled in
        if ": }" in declared or ": ," in declared:
            n_open += 1
        lines.append(f"  {json.dumps(name, ensure_ascii=False)}: {declared}  # {comment}")

    lines += _label_lines(label)
    lines.append("person:  # the column of person ids, if a person may have several records")
    lines.append('missing: []  # texts that stand for a missing value, such as "?" or NA')
    with atomic_file(out, force=force) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    n_columns = len(private.names) - (label is not None)
    say(f"{out}: {n_columns} columns, of which {n_open} are to be declared")


def _check_sample(public: Path, table: Path) -> None:
    """Refuse the private table, a copy of it, or data that a ledger covers, as the sample."""
    from tacit.data.arrays import existing, file_hash

    why = "bounds and levels that are read off private rows are outside the guarantee"
    existing(public)
    check_apart("public", public, table, why)
    both_are_files = public.is_file() and table.is_file()
    if both_are_files and file_hash(public) == file_hash(table):
        raise InputError(f"--public {public} is a copy of {table}; {why}")
    ledger = _ledger_of_path(public)
    if ledger is not None:
        raise InputError(f"--public {public} is private: {ledger} counts its uses; {why}")


def _ledger_of_path(path: Path) -> Path | None:
    """Return the ledger that counts what is spent on a table, if there is one."""
    from tacit.privacy.ledger import Ledger

    ledger = Ledger.in_use(None, path, path.stem)
    return None if ledger is None else ledger.path


def _label_lines(label: str | None) -> list[str]:
    """Return the lines on the column of labels, whose classes are public knowledge too."""
    if label is None:
        return ["label:  # the column of labels, such as {column: NAME, classes: [first, second]}"]
    name = json.dumps(label, ensure_ascii=False)
    return [f"label: {{column: {name}, classes: }}  # {NOT_READ}, or give --classes"]


def _declared(private: "Table", sample: "Table | None", name: str) -> tuple[str, str]:
    """Return the declaration of a column, and the comment beside it."""
    if sample is not None and name in sample.names:
        return _of_values(sample.column(name)), READ

    kind = _kind_of_type(private, name)
    if kind == "number":
        return "{kind: number, low: , high: }", NOT_READ
    if kind == "category":
        return "{kind: category, levels: }", NOT_READ
    if kind == "truth":
        return "{kind: category, levels: [False, True]}", "from its type"
    if kind == "date":
        return "{kind: date, parts: [year, month, weekday], years: }", NOT_READ
    if kind == "image":
        return "{kind: image, encoder: }", "name an encoder of tacit encode"
    return "{kind: }", NOT_READ


def _kind_of_type(table: "Table", name: str) -> str | None:
    """Return what the type of a column says of it; text files have no types."""
    import pyarrow as pa

    arrow_schema = getattr(table, "schema", None)
    if arrow_schema is None:
        return None
    kind = arrow_schema.field(name).type
    if table.holds_bytes(name):
        return "image"
    if pa.types.is_boolean(kind):
        return "truth"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "date"
    return "category"


def _of_values(cells: list[Any]) -> str:
    """Return the declaration of a column from the cells of a public sample."""
    import numpy as np

    from tacit.models.table_values import numbers, texts, times

    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    present = [text for text in texts(values, ()) if text is not None]
    read, n_unreadable = numbers(values, ())
    read = read[np.isfinite(read)]
    if len(read) and not n_unreadable:
        low, high = float(read.min()), float(read.max())
        is_skewed = low >= 0 and high - low > SKEW * max(float(np.median(read)) - low, 1.0)
        spacing = "log" if is_skewed else "even"
        return f"{{kind: number, low: {low!r}, high: {high!r}, spacing: {spacing}}}"

    moments, n_unreadable = times(values, (), None)
    moments = moments[~np.isnat(moments)]
    if len(moments) and not n_unreadable:
        years = f"{str(moments.min())[:4]}, {str(moments.max())[:4]}"
        return f"{{kind: date, parts: [year, month, weekday], years: [{years}]}}"

    levels = sorted(set(present))
    if len(levels) > MOST_LEVELS:
        return "{kind: text, encoder: }"
    listed = ", ".join(json.dumps(level, ensure_ascii=False) for level in levels)
    return f"{{kind: category, levels: [{listed}]}}"
