"""The utility table: method x e x imbalance x data set, balanced and minority accuracy, and a page
of figures.

python benchmarks/utility/run.py EMBEDDINGS --out FOLDER [--names FILE] [--workers 2] [--only
cifar10/10/auto ...]
    [--cells FILE]

EMBEDDINGS holds a folder per encoder, which holds a folder per data set with train_x.npy,
train_y.npy, test_x.npy and test_y.npy. FILE, which names.py writes, has rows of class names;
without it, methods that take names are left out. Every cell is a file in FOLDER/cells, written
atomically; an interrupted run resumes where it stopped. Cells hold for the code that wrote them:
after a change of a method, start a new folder or remove its cells. The run ends by writing
FOLDER/table.md, names.md, page.html, cells.csv and the pictures of the documentation from all
cells; --report only writes these files. `--cells FILE` starts from the cells.csv of an earlier run.
Without noise and imbalance all seeds give the same result, which is computed once. Noise is
`research`, since nothing is released. With as many workers as cores, each worker uses one thread.
"""

import argparse
import csv
import io
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from floor import beside_the_floor
from joblib import Parallel, delayed
from methods import METHODS, grid, needs_names
from problems import SETTINGS, problem
from table import PICTURES, Cell, drawn, html, markdown, summary, with_names

from tacit.compute.atomic import atomic_file
from tacit.models.metrics import evaluate

Task = tuple[str, int, str, int]


def tasks(only: list[str]) -> list[Task]:
    """Tasks (data set, imbalance, method, seed) whose "data set/imbalance/method" starts with a
    word of `only`.
    """
    found = [
        (dataset, ratio, method, seed)
        for method, dataset in product(METHODS, SETTINGS)
        for ratio in reversed(SETTINGS[dataset].ratios)
        for seed in range(grid(method, SETTINGS[dataset].few)[1])
    ]
    return sorted(
        (
            task
            for task in found
            if not only or any(f"{task[0]}/{task[1]}/{task[2]}".startswith(word) for word in only)
        ),
        key=lambda task: task[3],
    )


def cell_file(out: Path, task: Task, rough: float) -> Path:
    """The file of a cell."""
    dataset, ratio, method, seed = task
    return out / "cells" / f"{dataset}-{ratio}-{method}-{rough:g}-{seed}.json".replace(" ", "_")


def work(embeddings: Path, out: Path, task: Task, names: Path | None = None) -> str:
    """Compute the missing cells of a task; methods that take names are left out where there are
    none.
    """
    dataset, ratio, method, seed = task
    roughs = grid(method, SETTINGS[dataset].few)[0]
    roughs = [rough for rough in roughs if not cell_file(out, task, rough).exists()]
    if ratio == 1 and seed > 0:
        roughs = [rough for rough in roughs if not math.isinf(rough)]
    if not roughs:
        return ""
    started = time.perf_counter()
    data = problem(embeddings, dataset, ratio, seed, names)
    if needs_names(method) and data.names is None:
        return ""
    for rough, predicted in METHODS[method](data, seed, roughs):
        scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
        assert scores.minority is not None
        # rounded as in cells.csv, so that both give the same table
        cell = Cell(
            dataset,
            ratio,
            seed,
            method,
            rough,
            round(scores.balanced, 6),
            round(scores.minority, 6),
        )
        write_cell(out, cell)
    return (
        f"{'/'.join(map(str, task))}: {len(roughs)} cells in {time.perf_counter() - started:.0f} s"
    )


def read_cells(out: Path) -> list[Cell]:
    """All cells. If all seeds give the same result because nothing is random, copy the computed
    cell to every seed.
    """
    found = []
    for file in sorted((out / "cells").glob("*.json")):
        values = json.loads(file.read_text(encoding="utf-8"))
        cell = Cell(**values | {"rough": float(values["rough"])})
        if not alike(cell):
            found.append(cell)
        elif cell.seed == 0:
            seeds = range(grid(cell.method, SETTINGS[cell.dataset].few)[1])
            found += [replace(cell, seed=seed) for seed in seeds]
    return found


def alike(cell: Cell) -> bool:
    """Whether all seeds give this result: without noise and without imbalance nothing is random."""
    return cell.ratio == 1 and math.isinf(cell.rough)


def write_cell(out: Path, cell: Cell) -> None:
    """Write a cell to its file."""
    task = (cell.dataset, cell.ratio, cell.method, cell.seed)
    with atomic_file(cell_file(out, task, cell.rough), force=True) as part:
        part.write_text(json.dumps(asdict(cell) | {"rough": str(cell.rough)}), encoding="utf-8")


def unpack(out: Path, table: Path) -> None:
    """Write the cells of an earlier run's cells.csv to files, except cells that already have a
    file.
    """
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = Cell(**{field.name: field.type(row[field.name]) for field in fields(Cell)})
            if alike(cell) and cell.seed > 0:
                continue
            if not cell_file(
                out, (cell.dataset, cell.ratio, cell.method, cell.seed), cell.rough
            ).exists():
                write_cell(out, cell)


def csv_lines(cells: list[Cell]) -> Iterator[str]:
    """The lines of cells.csv; names of data sets have commas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Cell))
    for cell in cells:
        writer.writerow(
            f"{value:.6g}" if isinstance(value, float) else value for value in asdict(cell).values()
        )
    yield from text.getvalue().splitlines()


def report(out: Path) -> None:
    """Write the table, the page and the list of cells from all cell files."""
    cells = read_cells(out)
    table = [*summary(cells), *beside_the_floor(cells), *markdown(cells)]
    texts = {
        "table.md": table,
        "names.md": with_names(cells),
        "page.html": [html(cells)],
        "cells.csv": csv_lines(cells),
    }
    for name, lines in texts.items():
        content = "\n".join(lines) + "\n"
        with atomic_file(out / name, force=True) as part:
            part.write_text(content, encoding="utf-8")
    for name, (dataset, ratio, methods) in PICTURES.items():
        if any((cell.dataset, cell.ratio) == (dataset, ratio) for cell in cells):
            with atomic_file(out / name, force=True) as part:
                part.write_bytes(drawn(cells, dataset, ratio, methods))
    print("\n".join(summary(cells)))


def main() -> None:
    """Read the command line, compute the missing cells, and write the report."""
    parser = argparse.ArgumentParser(description="The utility table.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="starts of data set/imbalance/method")
    parser.add_argument(
        "--report", action="store_true", help="only write table and page from the cells there are"
    )
    parser.add_argument("--names", type=Path, help="rows of class names, written by names.py")
    parser.add_argument("--cells", type=Path, help="cells.csv of an earlier run to start from")
    given = parser.parse_args()
    if not given.embeddings.is_dir():
        raise SystemExit(
            f"{given.embeddings} is not a folder; pass the folder that holds the embeddings"
        )
    (given.out / "cells").mkdir(parents=True, exist_ok=True)
    if given.cells is not None:
        unpack(given.out, given.cells)
    if not given.report:
        todo = tasks(given.only)
        results = Parallel(given.workers, return_as="generator_unordered")(
            delayed(work)(given.embeddings, given.out, task, given.names) for task in todo
        )
        for number, line in enumerate(results, 1):
            if line:
                print(f"[{number}/{len(todo)}] {line}", file=sys.stderr, flush=True)
    report(given.out)


if __name__ == "__main__":
    main()
