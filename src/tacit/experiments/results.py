"""Results of cells: one Parquet file of one row each, written whole, queried in place.

What was measured depends on the cell alone, so that two sweeps of one plan agree in `content_hash`.
Times, hosts and versions differ from run to run, and are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.extras import check_installed
from tacit.errors import InputError, excerpt, quoted

if TYPE_CHECKING:
    import pyarrow as pa

# folder within the folder of a sweep
CELLS = "cells"

# name of a file of results, without its ending
KEY = re.compile(r"[0-9a-f]{20}")

# fields that differ from run to run
RUN_FIELDS = (
    "fit_seconds",
    "predict_seconds",
    "phases",
    "started",
    "host",
    "processor",
    "versions",
)

# entries of `extra` beside the attributes that a plan keeps and the warnings
SETTINGS = "settings"
TRIALS = "trials"

# entries of `phases` beside those that a learner names
REST = "rest of the fit"
PREDICTION = "prediction"


@dataclass(frozen=True)
class Result:
    """The result of one cell.

    Parameters
    ----------
    key : str
        Hash of the cell's content.
    plan, data, encoder, learner : str
        Names in the plan; data and encoder name a data set, the learner a method with its
        parameters.
    method : str
        Name in `METHODS`.
    parameters : str
        Of the method, as JSON.
    public : str or None
        Name of the public set.
    public_rows : int or None
        Number of its rows that were used; None for all.
    budget : str
        As in the plan.
    imbalance : float or None
        Ratio of the largest to the smallest class, by which records were left out; None if all
        were used.
    seed : int
    unit : str
        Neighbouring relation of the guarantee.
    tuning : {"none", "paid", "unpaid"}
        How the parameters were chosen: before any data, on private records within the guarantee, or
        outside it.
    names : bool
        Whether rows of class names were used.
    status : {"done", "failed"}
    error : str or None
        Of a cell that failed, on one line; all fields below are then empty.
    accuracy, balanced_accuracy, minority_accuracy : float or None
        On the test set; the minority are the 25 % smallest training classes.
    recall : list of float or None
        Share of each class's test rows that is right, in class order; nan where there are none.
    class_sizes : list of int or None
        Training records of each class.
    n_train, n_test, width, n_classes : int or None
    delta : float or None
        At which `epsilon` is stated.
    epsilon, rho, mu : float or None
        Of the guarantee under `unit`, rounded up to six digits; inf where nothing is protected,
        None where there is no such number.
    guarantee : str or None
        In full, as JSON.
    extra : str
        As JSON: further attributes that the plan keeps; the hyperparameters that were used
        ("settings"); parameters and score of each run of a search ("trials"); and the learner's
        warnings ("warnings").
    fit_seconds, predict_seconds : float
    phases : str
        Of a timed cell: seconds of each phase of the fit, of the rest of it, and of the prediction,
        as JSON.
    started : str
        Time, UTC.
    host, processor : str
    versions : str
        Of tacit, Python and the libraries, as JSON.
    """

    key: str
    plan: str
    data: str
    encoder: str
    learner: str
    method: str
    parameters: str
    public: str | None
    public_rows: int | None
    budget: str
    imbalance: float | None
    seed: int
    unit: str
    tuning: str
    status: str
    names: bool = False
    error: str | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    minority_accuracy: float | None = None
    recall: list[float] | None = None
    class_sizes: list[int] | None = None
    n_train: int | None = None
    n_test: int | None = None
    width: int | None = None
    n_classes: int | None = None
    delta: float | None = None
    epsilon: float | None = None
    rho: float | None = None
    mu: float | None = None
    guarantee: str | None = None
    extra: str = "{}"
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    phases: str = "{}"
    started: str = ""
    host: str = ""
    processor: str = ""
    versions: str = "{}"


def write(folder: Path, result: Result) -> None:
    """Write a result; its file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([asdict(result)], schema=_schema())

    # into memory first: the writer makes many small writes, which take long to a file
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, use_dictionary=False)
    Checkpoint(folder / CELLS).write(f"{result.key}.parquet", buffer.getvalue().to_pybytes())


def read_results(folder: Path | str, where: str = "") -> list[Result]:
    """Return the results in a folder, in order of their keys.

    Parameters
    ----------
    folder : path
        Of a sweep of one plan, or of a folder of plans; results of several are in order of their
        plans.
    where : str, optional
        Condition on the fields, in SQL, such as "method = 'newton' and rho < 1".

    Raises
    ------
    InputError
        If there are no results, or the condition cannot be read.
    """
    return [Result(**row) for row in query(folder, where).to_pylist()]


def results_of_one(folder: Path, where: str = "") -> list[Result]:
    """Return the results in a folder without those of its sub-folders; there may be none."""
    files = files_of(folder)
    if not files:
        return []
    return [Result(**row) for row in _query(files, where).to_pylist()]


def query(folder: Path | str, where: str = "", columns: Sequence[str] = ()) -> pa.Table:
    """Return the results in a folder as a table; see `read_results`."""
    # before the folder is read, so that a missing library is named first, as by all commands
    check_installed("duckdb")
    folders = folders_of(Path(folder))
    if not folders:
        raise InputError(
            f"{folder} holds no results; pass the folder of a sweep (`tacit sweep PLAN --out"
            " FOLDER`)"
        )

    files = [path for folder_of_plan in folders for path in files_of(folder_of_plan)]
    # plans may have a cell in common, which each of them computed
    order = "plan, key" if len(folders) > 1 else "key"
    return _query(files, where, columns, order)


def _query(
    files: Sequence[Path], where: str, columns: Sequence[str] = (), order: str = "key"
) -> pa.Table:
    """Return the rows of files of which the condition is true."""
    check_installed("duckdb")
    import duckdb
    import pyarrow as pa

    selection = ", ".join(f'"{name}"' for name in columns) or "*"
    condition = f" WHERE ({where})" if where else ""
    with duckdb.connect() as connection:
        connection.register("results", pa.concat_tables(map(_row, files)))
        # a condition is the user's SQL: it must neither read nor write files
        connection.execute("SET enable_external_access = false")
        try:
            return connection.sql(
                f"SELECT {selection} FROM results{condition} ORDER BY {order}"
            ).to_arrow_table()
        # AttributeError: sql() returned None, since the condition makes it several statements
        except (duckdb.Error, AttributeError) as error:
            fault = excerpt(str(error))
            raise InputError(
                f"--where {quoted(where)} cannot be answered ({fault}); the fields are"
                f" {', '.join(FIELDS)}"
            ) from None


def files_of(folder: Path) -> list[Path]:
    """Return the files of results; other files in the folder are ignored."""
    return sorted(path for path in (folder / CELLS).glob("*.parquet") if KEY.fullmatch(path.stem))


def folders_of(folder: Path) -> list[Path]:
    """Return the folders with results: this one, then its sub-folders, one for each plan of a
    sweep of several.
    """
    candidates = [folder]
    if folder.is_dir():
        candidates += sorted(path for path in folder.iterdir() if path.is_dir())
    return [path for path in candidates if files_of(path)]


def _row(path: Path) -> pa.Table:
    """Read one file; refuse any file that is not one row of all fields in their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fault = "is damaged or not a result"
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows == 1 and file.schema_arrow.equals(_schema()):
                return file.read()

            missing_fields = set(FIELDS) - set(file.schema_arrow.names)
            if missing_fields:
                names = excerpt(", ".join(sorted(missing_fields)))
                fault += f" of this version of tacit (it lacks {names})"
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        # unreadable: the error below says that the file is damaged
        pass
    remedy = "delete it and run the sweep again, which computes that cell"
    raise InputError(f"{path} {fault}; {remedy}")


def content_hash(results: Sequence[Result]) -> str:
    """Return a hash of all fields but those that differ from run to run."""
    rows = []
    for result in sorted(results, key=lambda result: result.key):
        row = asdict(result)
        for name in RUN_FIELDS:
            del row[name]
        rows.append(row)
    text = json.dumps(rows, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


FIELDS = tuple(field.name for field in fields(Result))


@lru_cache(maxsize=1)
def _schema() -> pa.Schema:
    """Return the columns of a file of results: the fields of Result, all of which may be null."""
    import pyarrow as pa

    arrow_types: dict[str, Any] = {
        "str": pa.string(),
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "list[float]": pa.list_(pa.float64()),
        "list[int]": pa.list_(pa.int64()),
    }
    columns = []
    for field in fields(Result):
        # annotations are text, such as "float | None"
        type_name = str(field.type).removesuffix(" | None")
        columns.append((field.name, arrow_types[type_name]))
    return pa.schema(columns)
