"""Cells of a table of results: frozen dataclasses, one a line of cells.csv.

A run appends each cell when it is done. An interrupted run resumes where it stopped. Cells hold for
the code that wrote them: after a change of the code, start a new folder or remove lines. Noise is
`research`, since benchmarks release nothing.
"""

import argparse
import csv
import importlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tacit.compute.atomic import atomic_file

Task = tuple[Any, ...]


def read_cells(path: Path, cell_class: type) -> list[Any]:
    """Return the cells of a file; none if the file is missing."""
    if not path.exists():
        return []
    cells = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values = {field.name: field.type(row[field.name]) for field in fields(cell_class)}
            cells.append(cell_class(**values))
    return cells


def add_cell(path: Path, cell: Any) -> None:
    """Append a cell; after an interrupt the file is complete, with or without this cell."""
    values = []
    for value in asdict(cell).values():
        values.append(f"{value:.6g}" if isinstance(value, float) else value)
    with atomic_file(path, force=True) as part:
        if path.exists():
            shutil.copyfile(path, part)
        with part.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not path.exists():
                writer.writerow(field.name for field in fields(cell))
            writer.writerow(values)


def _path(task: Task) -> str:
    """Return the parts of a task, joined by slashes and written as in the file of cells."""
    return "/".join(f"{part:g}" if isinstance(part, float) else str(part) for part in task)


def spread(values: Sequence[float], digits: int) -> str:
    """Return mean and standard deviation over seeds; the value alone if there is one seed."""
    mean = f"{np.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def command(
    description: str,
    cell_class: type,
    n_keys: int,
    tasks: Iterable[Task],
    work: Callable[[Path, Task], tuple[Any, float]],
    table: Callable[[Sequence[Any]], Iterator[str]],
    pictures: Mapping[str, Callable[[Sequence[Any]], bytes]] | None = None,
) -> None:
    """Read the command line, compute the missing cells, and write the table and pictures.

    The first `n_keys` fields of a cell are its task. `work` returns a cell and the seconds it took.
    `--only` takes prefixes of tasks, with their parts joined by slashes.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="starts of tasks, such as mnist/250")
    parser.add_argument(
        "--report", action="store_true", help="only write the table from the cells there are"
    )
    parser.add_argument("--cells", type=Path, help="cells.csv of an earlier run to start from")
    arguments = parser.parse_args()
    out = arguments.out
    if not arguments.data.is_dir():
        raise SystemExit(
            f"{arguments.data} is not a folder; pass the folder that holds the data sets"
        )

    out.mkdir(parents=True, exist_ok=True)
    cells_file = out / "cells.csv"
    if arguments.cells is not None and not cells_file.exists():
        shutil.copyfile(arguments.cells, cells_file)
    if not arguments.report:
        key_names = [field.name for field in fields(cell_class)][:n_keys]
        finished = {
            tuple(getattr(cell, name) for name in key_names)
            for cell in read_cells(cells_file, cell_class)
        }
        # every text begins with an empty prefix
        prefixes = tuple(arguments.only) or ("",)
        missing = [
            task for task in tasks if _path(task).startswith(prefixes) and task not in finished
        ]
        results = Parallel(arguments.workers, return_as="generator_unordered")(
            delayed(work)(arguments.data, task) for task in missing
        )
        for number, (cell, seconds) in enumerate(results, 1):
            add_cell(cells_file, cell)
            print(f"{number} of {len(missing)}: {cell} in {seconds:.0f} s", flush=True)

    cells = read_cells(cells_file, cell_class)
    with atomic_file(out / "table.md", force=True) as part:
        part.write_text("\n".join(table(cells)) + "\n", encoding="utf-8")
    for name, draw in (pictures or {}).items():
        with atomic_file(out / name, force=True) as part:
            part.write_bytes(draw(cells))


def run_by_name(script: str) -> None:
    """Run `main` of a script as that of a module, so that worker processes find by its name what
    the script caches.
    """
    importlib.import_module(Path(script).stem).main()
