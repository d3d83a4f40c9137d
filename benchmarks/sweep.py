"""Sweeps: the time of a cell beyond its learner, and the time of a sweep over the sum of its fits
divided by workers.

python benchmarks/sweep.py [--data ../shared/data/embeddings/mobilenetv2-in1k-160/cifar100] [--jobs
2] [--quick]

Prints Markdown. Without --data, random records of the same shape are used. Fitting times are from
the same run.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from tacit.experiments.run import sweep

SMALL = """
name: small cells
data:
  - {name: digits, builtin: digits}
learners:
  - {name: sums, method: noisy-sum}
budgets: [rho=0.1, rho=0.2, rho=0.5, rho=1, rho=2]
seeds: SEEDS
"""
LARGE = """
name: large cells
data:
  - {name: d, train: TRAIN, test: TEST}
learners:
  - {name: sums, method: noisy-sum}
  - {name: CoinPress, method: coinpress}
  - {name: DP-LS, method: least-squares}
  - {name: DP-LS with intercept, method: least-squares, parameters: {intercept: 0.5}}
budgets: BUDGETS
imbalance: [1, 10, 50, 100]
seeds: SEEDS
"""
HEADER = (
    "| sweep | cells | workers | time | fits alone | time over fits by worker"
    " | beyond learners, a cell |\n|---|---|---|---|---|---|---|"
)
BUDGETS = [f"rho={rho}" for rho in (0.005, 0.02, 0.045, 0.125, 0.3, 0.5, 1, 2, 8, 32)]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Sweeps.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="few cells of few records, for the tests"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(f"### Small cells: what one costs beyond its learner\n\n{HEADER}")
        small = SMALL.replace("SEEDS", "4" if given.quick else "200")
        for jobs in (1, given.jobs):
            report("noisy sums of digits", small, place / f"small{jobs}", jobs)
        print(
            "\n### 4 methods x 10 budgets x 4 ratios x 5 seeds on records like"
            f" CIFAR-100's\n\n{HEADER}"
        )
        data = (
            drawn(place, 10_000 if given.quick else 50_000)
            if given.data is None
            else given.data.resolve()
        )
        large = LARGE.replace("TRAIN", f"{data}#train").replace("TEST", f"{data}#test")
        large = large.replace("BUDGETS", str(BUDGETS[:2] if given.quick else BUDGETS))
        large = large.replace("SEEDS", "1" if given.quick else "5")
        report("large cells", large, place / "large", given.jobs)


def report(name: str, plan: str, folder: Path, jobs: int) -> None:
    """Run a plan and print its line of the table."""
    path = folder.with_suffix(".yaml")
    path.write_text(plan, encoding="utf-8")
    started = time.perf_counter()
    found = sweep(path, folder, jobs=jobs)
    taken = time.perf_counter() - started
    fits = sum(one.fit_seconds for one in found)
    beyond = (taken * jobs - fits - sum(one.predict_seconds for one in found)) / len(found)
    ratio = taken / (fits / jobs)
    print(
        f"| {name} | {len(found)} | {jobs} | {taken:.1f} s | {fits:.1f} s | {ratio:.2f} |"
        f" {1000 * beyond:.1f} ms |"
    )


def drawn(folder: Path, n: int) -> Path:
    """Random embeddings of the same shape as those of CIFAR-100."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(100, 256))
    for part, rows in (("train", n), ("test", n // 5)):
        y = np.arange(rows) % 100
        np.save(
            folder / f"{part}_x.npy",
            (centres[y] + 2 * rng.normal(size=(rows, 256))).astype(np.float16),
        )
        np.save(folder / f"{part}_y.npy", y)
    return folder


if __name__ == "__main__":
    main()
