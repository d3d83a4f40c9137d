"""Cells of a table of results: frozen dataclasses, one per line of cells.csv. A run appends each
cell when it is done.

An interrupted run resumes where it stopped. Cells hold for the code that wrote them: after a change
of the code, start a new folder or remove lines. Noise is `research`, since benchmarks release
nothing.
"""

import argparse
import csv
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tacit.compute.atomic import atomic_file

Task = tuple[Any, ...]


def read_cells(path: Path, kind: type) -> list[Any]:
    """The cells of a file; none if the file is missing."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return [
            kind(**{field.name: field.type(row[field.name]) for field in fields(kind)})
            for row in rows
        ]


def add_cell(path: Path, cell: Any) -> None:
    """Append a cell; after an interrupt the file is complete, with or without this cell."""
    values = [
        f"{value:.6g}" if isinstance(value, float) else value for value in asdict(cell).values()
    ]
    with atomic_file(path, force=True) as part:
        if path.exists():
            shutil.copyfile(path, part)
        with part.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not path.exists():
                writer.writerow(field.name for field in fields(cell))
            writer.writerow(values)


def _path(task: Task) -> str:
    """The parts of a task, joined by slashes and written as in the file of cells."""
    return "/".join(f"{part:g}" if isinstance(part, float) else str(part) for part in task)


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation over seeds; the value alone if there is one."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def command(
    description: str,
    kind: type,
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
    given = parser.parse_args()
    if not given.data.is_dir():
        raise SystemExit(f"{given.data} is not a folder; pass the folder that holds the data sets")
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "cells.csv"
    if given.cells is not None and not kept.exists():
        shutil.copyfile(given.cells, kept)
    if not given.report:
        names = [field.name for field in fields(kind)][:n_keys]
        done = {tuple(getattr(cell, name) for name in names) for cell in read_cells(kept, kind)}
        asked = [
            task for task in tasks if not given.only or _path(task).startswith(tuple(given.only))
        ]
        todo = [task for task in asked if task not in done]
        results = Parallel(given.workers, return_as="generator_unordered")(
            delayed(work)(given.data, task) for task in todo
        )
        for number, (cell, seconds) in enumerate(results, 1):
            add_cell(kept, cell)
            print(f"{number} of {len(todo)}: {cell} in {seconds:.0f} s", flush=True)
    cells = read_cells(kept, kind)
    with atomic_file(given.out / "table.md", force=True) as part:
        part.write_text("\n".join(table(cells)) + "\n", encoding="utf-8")
    for name, draw in (pictures or {}).items():
        with atomic_file(given.out / name, force=True) as part:
            part.write_bytes(draw(cells))
