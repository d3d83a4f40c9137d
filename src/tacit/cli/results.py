"""`tacit results`: the results of a sweep."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import STANDARD_OUTPUT, say, say_done, text_file
from tacit.cli.json_output import print_json
from tacit.cli.options import Json

if TYPE_CHECKING:
    import pyarrow as pa

ACCURACIES = ("balanced_accuracy", "minority_accuracy")
SHOWN = ("learner", "data", "encoder", "imbalance", "budget", "seed", *ACCURACIES, "status")
COSTS = ("epsilon", "delta", "rho", "mu")


def results(
    runs: Path,
    /,
    *,
    where: str = "",
    columns: str | None = None,
    csv: Path | None = None,
    hash: bool = False,
    json: Json = False,
    force: bool = False,
) -> None:
    """List the results in the folder of a sweep, of one plan or of several.

    Parameters
    ----------
    runs
        Folder of a sweep; results of several plans have a column `plan`.
    where
        A condition on the fields, in SQL, such as "method = 'newton' and rho < 1".
    columns
        Fields to show, separated by commas; by default the ones that tell cells apart and their
        accuracies.
    csv
        Write all fields to this file instead; - is standard output.
    hash
        Print the hash of the results, which two sweeps of the same cells share.
    force
        Overwrite the file.
    """
    from csv import writer
    from json import dumps

    from tacit.compute.atomic import check_writable
    from tacit.errors import InputError
    from tacit.experiments import results as stored

    if csv is not None and csv != STANDARD_OUTPUT:
        check_writable(csv, force=force)
    chosen = SHOWN if columns is None else tuple(name.strip() for name in columns.split(","))
    unknown = [name for name in chosen if name not in stored.FIELDS]
    if unknown:
        raise InputError(
            f"--columns names {unknown[0]!r}, not a field; choose from: {', '.join(stored.FIELDS)}"
        )
    if hash:
        say(stored.content_hash(stored.read_results(runs, where)))
        return
    if columns is None:
        chosen = _default_columns(stored.query(runs, where, ("plan", "unit")))
    if json:
        table = stored.query(runs, where, () if columns is None else chosen)
        print_json({"cells": table.to_pylist()})
        return
    if csv is None:
        table = stored.query(runs, where, chosen)
        for row in [chosen, *(row.values() for row in table.to_pylist())]:
            say("  ".join(_shown(name, value) for name, value in zip(chosen, row, strict=True)))
        say(f"{len(table)} cells")
        return
    table = stored.query(runs, where, () if columns is None else chosen)
    with (
        text_file(csv, force=force) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        lines = writer(file, lineterminator="\n")
        lines.writerow(table.column_names)
        for row in table.to_pylist():
            lines.writerow(
                dumps(value) if isinstance(value, list) else value for value in row.values()
            )
    say_done(csv, f"{len(table)} cells")


def _default_columns(facts: "pa.Table") -> tuple[str, ...]:
    """Return SHOWN, with the plan and the unit where results have several."""
    columns = list(SHOWN)
    if len(set(facts["unit"].to_pylist())) > 1:
        columns.insert(columns.index("seed"), "unit")
    if len(set(facts["plan"].to_pylist())) > 1:
        columns.insert(0, "plan")
    return tuple(columns)


def _shown(name: str, value: object) -> str:
    """A cost with all of its digits, so that a condition on what is shown finds it."""
    from tacit.privacy.decimals import rounded_up

    if not isinstance(value, float):
        return str(value)
    if name in COSTS:
        return rounded_up(value)
    return f"{value:.4g}"
