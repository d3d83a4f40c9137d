"""`tacit predict`: labels for new rows, from a release alone."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import STANDARD_OUTPUT, check_outside, say_done, text_file
from tacit.cli.options import AnyEncoder, Features, Force, Out, Split
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]


def predict(
    release: Path,
    store: Path,
    /,
    *,
    out: Out,
    x: Features = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    probabilities: bool = False,
    force: Force = False,
) -> None:
    """Predict the class of every row and write them as a table.

    Parameters
    ----------
    release
        Folder of a release.
    store
        Rows: a store's folder, or any file that `tacit import` reads. If the release states the
        columns of a table, a table, whose columns are matched by name.
    out
        A .parquet or .csv file with the columns row and label, or - for CSV on standard output. A
        row is the position in the source
        that the store was made from, counted before records were left out; metadata.parquet of the
        store has the name there, if any.
    probabilities
        Add a column for each class with its probability, named after the class.
    """
    import numpy as np

    from tacit.compute.atomic import check_writable
    from tacit.releases.release import Release

    kind = ".csv" if out == STANDARD_OUTPUT else out.suffix
    if kind not in WRITERS:
        raise InputError(
            f"{out} must end in {' or '.join(WRITERS)}; give a file name such as {out.stem}.parquet"
        )
    if out != STANDARD_OUTPUT:
        check_outside(out, release)
        check_writable(out, force=force)
    with shown_progress():
        loaded = Release.load(release).verify()
        data = data_for(loaded, store, x=x, split=split, any_encoder=any_encoder)
        # names in the source are left out, since folders may be labels or persons
        columns: dict[str, Any] = {"row": data.origin.rows}
        if probabilities:
            of_classes = loaded.predict_proba(data.x)
            names = [str(label) for label in loaded.classes]
            for name in {"row", "label"} & set(names):
                fault = f"class {name!r} has the name of another column of {out}"
                raise InputError(
                    f"{fault}; leave --probabilities out, or use Release.predict_proba"
                )
            columns["label"] = loaded.classes[np.argmax(of_classes, axis=1)]
            columns |= dict(zip(names, of_classes.T, strict=True))
        else:
            columns["label"] = loaded.predict(data.x)
        with text_file(out, force=force) as temporary:
            WRITERS[kind](columns, temporary)
    say_done(out, f"{len(data.x)} rows")


def _write_csv(columns: "Columns", path: Path) -> None:
    """Write a table as CSV; pyarrow, which would take longer to import than most tables to write,
    is not used.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_parquet(columns: "Columns", path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


WRITERS = {".parquet": _write_parquet, ".csv": _write_csv}
