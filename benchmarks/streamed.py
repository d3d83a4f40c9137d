"""Sums of a stream of rows that never lie in memory together: time, memory, and a cost model.

python benchmarks/streamed.py [ROWS] [--quick]

Each part of 2^16 rows is summed by the recipe of a learner, as a partition of a cluster is, and the
total is fitted with secure noise. Beside each part stands the ceiling of this machine at that
moment: reading the same bytes for class sums, and the float64 product of the same rows with
themselves (BLAS, which takes half the operations of a general product) for second moments. All in
one thread, in processor time, to which other work matters least. Rows are synthetic and made
beforehand, so that only sums are timed.

Figures go to streamed.json, and the table of them to streamed.md. `make bench-scale` streams 10^8
rows. --quick streams 10^4 rows, for the tests, and stores nothing.
"""

import argparse
import hashlib
import json
import os
import resource
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from history import commit, machine
from threadpoolctl import threadpool_limits

import tacit

WIDTH = 256
N_CLASSES = 10
PART = 2**16

# of the model: records, and workers of one core each
RECORDS = 10**10
WORKERS = 100

LEARNERS = {
    "noisy-sum": tacit.NoisySumPrototypes("rho=0.5", classes=N_CLASSES),
    "least-squares": tacit.LeastSquares("rho=0.5", classes=N_CLASSES),
}
# what each is compared with
CEILINGS = {
    "noisy-sum": "reading the rows",
    "least-squares": "product of the rows with themselves",
}

FIGURES = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).with_suffix(".md")


def main() -> None:
    """Stream, print, and store unless quick."""
    parser = argparse.ArgumentParser(description="Sums of a stream of rows.")
    parser.add_argument("rows", type=float, nargs="?", default=1e6)
    parser.add_argument("--quick", action="store_true", help="10^4 rows, which are not stored")
    arguments = parser.parse_args()
    rows = 10**4 if arguments.quick else int(arguments.rows)

    figures = measured(rows)
    if not arguments.quick:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(figures), encoding="utf-8")
    print(page(figures))


def measured(rows: int, part: int = PART) -> dict[str, Any]:
    """Return the figures of a stream of so many rows, in parts."""
    load = os.getloadavg()[0]
    x, y = made(part)
    with threadpool_limits(1):
        methods = {name: streamed(name, x, y, rows) for name in LEARNERS}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "version": tacit.__version__,
        "machine": machine(),
        "load": round(load, 1),
        "rows": rows,
        "peak of memory, GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "methods": methods,
    }


def made(part: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and labels of a part, in float32."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, N_CLASSES, part)
    rows = generator.standard_normal((part, WIDTH), dtype=np.float32)
    rows += np.eye(N_CLASSES, WIDTH, dtype=np.float32)[labels] * 8
    return rows, labels


def streamed(name: str, part: np.ndarray, labels: np.ndarray, rows: int) -> dict[str, Any]:
    """Return the processor time of a million rows, that of the ceiling, and the hash of the
    sums.
    """
    learner = LEARNERS[name]
    recipe = learner.recipe(WIDTH)
    # compile the loops
    recipe.sums(part[:10], labels[:10])
    wide_part = part.astype(np.float64)

    total = recipe.zero()
    seconds = 0.0
    ceiling = 0.0
    for first in range(0, rows, len(part)):
        n = min(len(part), rows - first)
        sums, spent = timed(lambda n=n: recipe.sums(part[:n], labels[:n]))
        total = total + sums
        seconds += spent
        if name == "noisy-sum":
            _, spent = timed(lambda n=n: part[:n].max())
        else:
            _, spent = timed(lambda n=n: wide_part[:n].T @ wide_part[:n])
        ceiling += spent

    learner.fit_sums(total)
    return {
        "seconds of a million rows": round(seconds / rows * 1e6, 2),
        "ceiling, seconds": round(ceiling / rows * 1e6, 2),
        "bytes of the sums": len(total.packed()),
        "SHA-256": hashlib.sha256(total.packed()).hexdigest()[:16],
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the work does, and its seconds of processor time."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def model_minutes(seconds_of_a_million: float) -> float:
    """Return the minutes that 10^10 records take on 100 workers of one such core each."""
    return seconds_of_a_million * RECORDS / 1e6 / WORKERS / 60


def page(figures: dict[str, Any]) -> str:
    """Return the table of stored figures, as Markdown."""
    times = []
    model = []
    for name, method in figures["methods"].items():
        seconds = method["seconds of a million rows"]
        ceiling = method["ceiling, seconds"]
        times.append(
            f"| `{name}` | {seconds:.2f} s | {CEILINGS[name]}, {ceiling:.2f} s |"
            f" {ceiling / seconds:.0%} | `{method['SHA-256']}` |"
        )
        size = method["bytes of the sums"]
        model.append(f"| `{name}` | {model_minutes(seconds):.1f} min | {size / 1e3:.0f} kB |")

    return "\n".join(
        [
            f"### Sums of {figures['rows']:,} streamed rows of {WIDTH} float32 columns,"
            f" {N_CLASSES} classes",
            "",
            f"{figures['date']}, commit {figures['commit']}, tacit {figures['version']}, one thread"
            f" of {figures['machine']} at a load of {figures['load']:.1f}. Times are processor"
            f" times. Memory: at most {figures['peak of memory, GiB']:.2f} GiB.",
            "",
            "| method | a million rows | ceiling in the same run | share of it | SHA-256 of sums |",
            "|---|---|---|---|---|",
            *times,
            "",
            f"### Model: {RECORDS:,} rows on {WORKERS} workers of one such core each",
            "",
            "| method | sums of all rows, without reading them | sent by each partition |",
            "|---|---|---|",
            *model,
            "",
        ]
    )


if __name__ == "__main__":
    main()
