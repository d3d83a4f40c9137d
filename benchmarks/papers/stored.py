"""Stored results of the papers' plans: one row for each cell of a plan, and one for each run.

Claims read rows, whether these come from cells.csv, from a sweep that has just run, or from the
cells of another benchmark.
"""

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tacit.compute.atomic import atomic_file
from tacit.experiments.results import Result

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
QUICK = ROOT / "plans" / "quick"

CELLS = FOLDER / "cells.csv"
RUNS = FOLDER / "runs.csv"

# cells of other benchmarks, by the name under which claims read them
BENCHMARKS = {
    "benchmarks/pate": ROOT / "benchmarks" / "pate" / "cells.csv",
    "benchmarks/label_dp": ROOT / "benchmarks" / "label_dp" / "cells.csv",
    "benchmarks/utility": ROOT / "benchmarks" / "utility" / "cells.csv",
}

# methods of the utility table whose scores claims read, by the names of the plans
UTILITY_METHODS = {
    "gradient-descent": "DP probe",
    "public": "DPPL-Public",
    "public-5": "DPPL-Public Top-5",
    "coinpress": "DPPL-Mean, one step",
    "noisy-sum": "noisy sums",
    "auto": "auto",
}


WHOLE_NUMBERS = ("cells", "of", "processor_seconds")


@dataclass(frozen=True)
class Row:
    """The scores of one cell; `more` has further measures by name, as JSON."""

    plan: str
    data: str
    encoder: str
    learner: str
    public: str
    public_rows: str
    budget: str
    imbalance: str
    seed: int
    balanced: float
    minority: float
    more: str = "{}"

    def measure(self, name: str) -> float:
        """Return a score: a field of the row or one of `more`."""
        if name in ("balanced", "minority"):
            return float(getattr(self, name))
        return float(json.loads(self.more)[name])


@dataclass(frozen=True)
class Run:
    """A plan that was run: its cells and the hash of its content, when and by which version.

    `of` is the number of its cells; an interrupted run has fewer.
    """

    plan: str
    cells: int
    of: int
    hash: str
    date: str
    version: str
    processor_seconds: int


class Cells:
    """Rows that claims ask for their scores."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def where(self, **values: Any) -> "Cells":
        """Return the rows whose fields have these values, which may be numbers for texts."""
        texts = {name: str(value) for name, value in values.items()}
        return Cells(
            row
            for row in self.rows
            if all(getattr(row, name) == text for name, text in texts.items())
        )

    def distinct(self, name: str) -> list[str]:
        """Return the values of a field, in order of appearance."""
        return list(dict.fromkeys(str(getattr(row, name)) for row in self.rows))

    def by_seed(self, measure: str, **values: Any) -> dict[int, float]:
        """Return the scores of one combination, by seed."""
        rows = self.where(**values).rows
        scores = {row.seed: row.measure(measure) for row in rows}
        if not rows or len(scores) != len(rows):
            raise LookupError(f"{len(rows)} rows, {len(scores)} seeds for {values}")
        return scores

    def mean(self, measure: str, **values: Any) -> float:
        """Return the mean score over seeds."""
        scores = self.by_seed(measure, **values)
        return sum(scores.values()) / len(scores)


def rows_of(plan: str, results: Sequence[Result]) -> list[Row]:
    """Return the rows of a plan's results."""
    rows = []
    for result in results:
        if result.status != "done":
            raise SystemExit(f"plan {plan}: {result.learner} failed: {result.error}")
        rows.append(
            Row(
                plan=plan,
                data=result.data,
                encoder=result.encoder,
                learner=result.learner,
                public=result.public or "",
                public_rows=str(result.public_rows or ""),
                budget=result.budget,
                imbalance=f"{result.imbalance or 1:g}",
                seed=result.seed,
                balanced=_rounded(result.balanced_accuracy),
                minority=_rounded(result.minority_accuracy),
                more=json.dumps(_further_measures(plan, result), sort_keys=True),
            )
        )
    return rows


def _rounded(score: float | None) -> float:
    return float("nan") if score is None else round(score, 4)


def _further_measures(plan: str, result: Result) -> dict[str, float]:
    """Return what the claims of a plan read beside accuracies."""
    extra = json.loads(result.extra)
    if "steps_" in extra:
        # the median radius over classes of CoinPress's first and last step
        radii = [sorted(step["radius"])[len(step["radius"]) // 2] for step in extra["steps_"]]
        return {"first radius": round(radii[0], 2), "last radius": round(radii[-1], 2)}
    if "answers_.answered" in extra:
        return {"labels": extra["answers_.answered"]}
    if plan == "run-times":
        phases = json.loads(result.phases)
        seconds = {name: round(value, 4) for name, value in phases.items()}
        return {"fit": round(result.fit_seconds, 4), **seconds}
    return {}


@lru_cache
def benchmark_rows(name: str) -> tuple[Row, ...]:
    """Return the cells of another benchmark as rows."""
    cells = _read(BENCHMARKS[name], dict)
    if name == "benchmarks/utility":
        return tuple(_utility_row(name, cell) for cell in cells if _is_of_the_paper(cell))
    row_of = _pate_row if name == "benchmarks/pate" else _label_row
    return tuple(row_of(name, cell) for cell in cells)


def _is_of_the_paper(cell: dict[str, str]) -> bool:
    """Return true for cells of a data set of the paper and of a method that claims read."""
    return cell["dataset"] in ("cifar10", "cifar100") and cell["method"] in UTILITY_METHODS


def _utility_row(name: str, cell: dict[str, str]) -> Row:
    rough_epsilon = float(cell["rough"])
    private = math.isfinite(rough_epsilon)
    return Row(
        plan=name,
        data=cell["dataset"],
        encoder="mobilenetv2",
        learner=UTILITY_METHODS[cell["method"]],
        public="",
        public_rows="",
        budget=f"rho={rough_epsilon**2 / 2:g}" if private else "inf",
        imbalance=cell["ratio"],
        seed=int(cell["seed"]),
        balanced=float(cell["balanced"]),
        minority=float(cell["minority"]),
    )


def _pate_row(name: str, cell: dict[str, str]) -> Row:
    """A voting and its student: the rule that stops it stands under `public`."""
    more = {key: float(cell[key]) for key in ("labels", "label_accuracy", "epsilon")}
    return Row(
        plan=name,
        data=cell["problem"],
        encoder="",
        learner=cell["collector"],
        public=cell["stopping"],
        public_rows=cell["teachers"],
        budget=cell["shares"],
        imbalance="1",
        seed=int(cell["seed"]),
        balanced=float(cell["supervised"]),
        minority=float("nan"),
        more=json.dumps(more),
    )


def _label_row(name: str, cell: dict[str, str]) -> Row:
    return Row(
        plan=name,
        data=cell["problem"],
        encoder="",
        learner=cell["method"],
        public="",
        public_rows="",
        budget=f"epsilon={float(cell['epsilon']):g}",
        imbalance="1",
        seed=int(cell["seed"]),
        balanced=float(cell["accuracy"]),
        minority=float("nan"),
        more=json.dumps({"flipped": float(cell["flipped"])}),
    )


def plan_hash(path: Path) -> str:
    """Return a hash of a plan's content, which comments do not change."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # the description changes no cell
    content.pop("about", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def file_hash(path: Path) -> str:
    """Return a hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def read_rows() -> list[Row]:
    """Return the stored rows."""
    return _read(CELLS, lambda row: Row(**{**row, **_numbers(row)}))


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    return {
        "seed": int(row["seed"]),
        "balanced": float(row["balanced"]),
        "minority": float(row["minority"]),
    }


def read_runs() -> dict[str, Run]:
    """Return the stored runs by plan."""
    runs = _read(
        RUNS,
        lambda row: Run(**{**row, **{name: int(row[name]) for name in WHOLE_NUMBERS}}),
    )
    return {run.plan: run for run in runs}


def write(rows: Sequence[Row], runs: Iterable[Run]) -> None:
    """Write both files, sorted by plan."""
    _write(CELLS, Row, sorted(rows, key=lambda row: row.plan))
    _write(RUNS, Run, sorted(runs, key=lambda run: run.plan))


def _read(path: Path, make: Callable[[dict[str, str]], Any]) -> list[Any]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [make(row) for row in csv.DictReader(file)]


def _write(path: Path, kind: type, items: Iterable[Any]) -> None:
    with (
        atomic_file(path, force=True) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))
        writer.writerows(asdict(item).values() for item in items)
