"""The utility table: balanced and minority accuracy by method, e, imbalance and data set.

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
from table import PICTURES, Cell, figure, html, markdown, summary, with_names

from tacit.compute.atomic import atomic_file
from tacit.models.metrics import evaluate

# data set, imbalance, method, seed
Task = tuple[str, int, str, int]


def tasks(prefixes: list[str]) -> list[Task]:
    """Return the tasks whose "data set/imbalance/method" starts with one of the prefixes.

    Without prefixes, return all. The first seed of all tasks comes before the second.
    """
    all_tasks = []
    for method, dataset in product(METHODS, SETTINGS):
        setting = SETTINGS[dataset]
        _, n_seeds = grid(method, setting.few)
        for ratio, seed in product(reversed(setting.ratios), range(n_seeds)):
            name = f"{dataset}/{ratio}/{method}"
            if not prefixes or name.startswith(tuple(prefixes)):
                all_tasks.append((dataset, ratio, method, seed))
    return sorted(all_tasks, key=lambda task: task[3])


def cell_file(out: Path, task: Task, rough: float) -> Path:
    """Return the file of a cell."""
    dataset, ratio, method, seed = task
    name = f"{dataset}-{ratio}-{method}-{rough:g}-{seed}.json"
    return out / "cells" / name.replace(" ", "_")


def work(embeddings: Path, out: Path, task: Task, names: Path | None = None) -> str:
    """Compute the missing cells of a task, and return a line on them.

    Methods that take names are left out where there are none.
    """
    dataset, ratio, method, seed = task
    all_roughs, _ = grid(method, SETTINGS[dataset].few)
    roughs = []
    for rough in all_roughs:
        needs_cell = not nothing_random(ratio, rough) or seed == 0
        if needs_cell and not cell_file(out, task, rough).exists():
            roughs.append(rough)
    if not roughs:
        return ""

    start = time.perf_counter()
    data = problem(embeddings, dataset, ratio, seed, names)
    if needs_names(method) and data.names is None:
        return ""
    for rough, predicted in METHODS[method](data, seed, roughs):
        scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
        assert scores.minority is not None
        cell = Cell(
            dataset=dataset,
            ratio=ratio,
            seed=seed,
            method=method,
            rough=rough,
            # rounded as in cells.csv, so that both give the same table
            balanced=round(scores.balanced, 6),
            minority=round(scores.minority, 6),
        )
        write_cell(out, cell)
    seconds = time.perf_counter() - start
    return f"{'/'.join(map(str, task))}: {len(roughs)} cells in {seconds:.0f} s"


def nothing_random(ratio: int, rough: float) -> bool:
    """Return true without noise and without imbalance: then all seeds give the same result.

    Only the first seed has a cell then.
    """
    return ratio == 1 and math.isinf(rough)


def read_cells(out: Path) -> list[Cell]:
    """Return all cells; where nothing is random, the computed cell once for every seed."""
    cells = []
    for file in sorted((out / "cells").glob("*.json")):
        values = json.loads(file.read_text(encoding="utf-8"))
        cell = Cell(**values | {"rough": float(values["rough"])})
        if not nothing_random(cell.ratio, cell.rough):
            cells.append(cell)
        elif cell.seed == 0:
            _, n_seeds = grid(cell.method, SETTINGS[cell.dataset].few)
            cells += [replace(cell, seed=seed) for seed in range(n_seeds)]
    return cells


def write_cell(out: Path, cell: Cell) -> None:
    """Write a cell to its file."""
    # JSON has no infinity
    values = asdict(cell) | {"rough": str(cell.rough)}
    with atomic_file(cell_file(out, task_of(cell), cell.rough), force=True) as part:
        part.write_text(json.dumps(values), encoding="utf-8")


def task_of(cell: Cell) -> Task:
    """Return the task that computes a cell."""
    return cell.dataset, cell.ratio, cell.method, cell.seed


def unpack(out: Path, table: Path) -> None:
    """Write the cells of an earlier run's cells.csv to files, unless they have a file."""
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = Cell(**{field.name: field.type(row[field.name]) for field in fields(Cell)})
            if nothing_random(cell.ratio, cell.rough) and cell.seed > 0:
                continue
            if not cell_file(out, task_of(cell), cell.rough).exists():
                write_cell(out, cell)


def csv_lines(cells: list[Cell]) -> Iterator[str]:
    """Yield the lines of cells.csv."""
    # by the csv module, since names of data sets have commas
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Cell))
    for cell in cells:
        values = asdict(cell).values()
        writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in values)
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
                part.write_bytes(figure(cells, dataset, ratio, methods))
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
    arguments = parser.parse_args()
    embeddings = arguments.embeddings
    out = arguments.out
    if not embeddings.is_dir():
        raise SystemExit(f"{embeddings} is not a folder; pass the folder that holds the embeddings")

    (out / "cells").mkdir(parents=True, exist_ok=True)
    if arguments.cells is not None:
        unpack(out, arguments.cells)
    if not arguments.report:
        all_tasks = tasks(arguments.only)
        lines = Parallel(arguments.workers, return_as="generator_unordered")(
            delayed(work)(embeddings, out, task, arguments.names) for task in all_tasks
        )
        for number, line in enumerate(lines, 1):
            if line:
                print(f"[{number}/{len(all_tasks)}] {line}", file=sys.stderr, flush=True)
    report(out)


if __name__ == "__main__":
    main()
