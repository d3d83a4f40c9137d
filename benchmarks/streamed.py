"""Exact sums of a stream of rows that never lie in memory together: time, memory, and a cost model.

Every part of 2^16 rows is summed by the recipe of a learner, as a partition of a cluster is, and
the total is fitted with secure noise. Rows are synthetic and made beforehand, so that only sums are
timed. `make bench-scale` streams 10^8 rows; the table goes to `benchmarks/streamed.md`.
"""

import hashlib
import os
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import tacit

WIDTH = 256
N_CLASSES = 10
PART = 2**16

# of the model: 10^10 records on 100 workers
RECORDS = 10**10
WORKERS = 100

LEARNERS = {
    "noisy-sum": tacit.NoisySumPrototypes("rho=0.5", classes=N_CLASSES),
    "least-squares": tacit.LeastSquares("rho=0.5", classes=N_CLASSES),
}


def main() -> None:
    """Stream as many rows as the argument says, 10^6 by default."""
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    generator = np.random.default_rng(0)
    labels = generator.integers(0, N_CLASSES, PART)
    part = generator.standard_normal((PART, WIDTH), dtype=np.float32)
    part += np.eye(N_CLASSES, WIDTH, dtype=np.float32)[labels] * 8

    lines = []
    for name, learner in LEARNERS.items():
        seconds, digest = streamed(learner, part, labels, rows)
        per_million = seconds / (rows / 1e6)
        hours = per_million * RECORDS / 1e6 / WORKERS / 3600
        lines.append(f"| `{name}` | {per_million:.2f} s | {hours:.2f} h | `{digest[:16]}` |")

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    page = [
        f"{datetime.now(UTC):%Y-%m-%d}: {rows:.0e} rows of {WIDTH} float32 columns and"
        f" {N_CLASSES} classes, tacit {tacit.__version__}, {len(os.sched_getaffinity(0))} cores,"
        f" at most {peak:.2f} GiB of memory for both.",
        "",
        "| method | a million rows | 10^10 rows on 100 workers like this | SHA-256 of the sums |",
        "|---|---|---|---|",
        *lines,
        "",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page))


def streamed(
    learner: tacit.NoisySumPrototypes | tacit.LeastSquares,
    part: np.ndarray,
    labels: np.ndarray,
    rows: int,
) -> tuple[float, str]:
    """Return the seconds of the sums of so many rows, and their hash; fit them once."""
    recipe = learner.recipe(WIDTH)
    # compile the loops
    recipe.sums(part[:10], labels[:10])

    total = recipe.zero()
    start = time.perf_counter()
    for first in range(0, rows, PART):
        n = min(PART, rows - first)
        total = total + recipe.sums(part[:n], labels[:n])
    seconds = time.perf_counter() - start

    learner.fit_sums(total)
    return seconds, hashlib.sha256(total.packed()).hexdigest()


if __name__ == "__main__":
    main()
