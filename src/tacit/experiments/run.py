"""A sweep: the cells of a plan that have no result yet, on an engine, into a folder.

The folder holds `cells/` (one result each, see `results.py`), `shared/` (work that cells share), `plans/` (what was
asked for) and `started/` (which process began which cell). A killed sweep loses the cells in flight; running it again
computes those and the ones that were not begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from operator import mul
from pathlib import Path
from statistics import median
from typing import Any

from tacit.compute.atomic import atomic_file
from tacit.compute.engines import engine as engine_of
from tacit.compute.extras import check_installed
from tacit.compute.progress import progress
from tacit.compute.shared import digest, locked
from tacit.errors import InputError
from tacit.experiments import results
from tacit.experiments.cells import Cell, cells
from tacit.experiments.estimate import guess
from tacit.experiments.plan import Plan, load
from tacit.experiments.results import CELLS, Result
from tacit.experiments.sources import opened
from tacit.experiments.work import SHARED, STARTED, work

PLANS = "plans"
OLD = 3600.0  # seconds after which a part of a file that no process finished is removed


@dataclass(frozen=True)
class Sweep:
    """A plan that is about to run into a folder.

    Parameters
    ----------
    plan : Plan
    cells : tuple of Cell
        All of them.
    kept : dict
        Results that are there already, by key.
    """

    plan: Plan
    cells: tuple[Cell, ...]
    kept: Mapping[str, Result]

    def missing(self, retry_failed: bool = False) -> list[Cell]:
        """Cells to compute."""
        return [
            cell
            for cell in self.cells
            if cell.key not in self.kept or (retry_failed and self.kept[cell.key].status == "failed")
        ]

    def seconds(self, jobs: int = 1) -> tuple[float, bool]:
        """What the missing cells may take, and whether that follows from finished ones alone.

        A cell takes the median of the finished ones of its method on its data; where there are none, what a fit of its
        size took on the machine that RATES was measured on.
        """
        known: dict[tuple[str, str, str], list[float]] = {}
        for one in self.kept.values():
            if one.status == "done":
                known.setdefault((one.data, one.encoder, one.method), []).append(one.fit_seconds + one.predict_seconds)
        missing = self.missing()
        each = [known.get((cell.data, cell.encoder, cell.method)) for cell in missing]
        seconds = [median(own) if own else guess(cell) for cell, own in zip(missing, each, strict=True)]
        fits = [2 if cell.timed else 1 for cell in missing]
        return sum(map(mul, seconds, fits)) / jobs, None not in each


def prepare(plan: Path | str, folder: Path | str, data: Path | str | None = None) -> Sweep:
    """Read a plan, check it against the data, and see what the folder holds already.

    Parameters
    ----------
    plan : path
        A plan file.
    folder : path
        Of the sweep; it need not exist.
    data : path, optional
        Where the plan's paths start; by default the plan's own folder.

    Raises
    ------
    PlanError
        If anything in the plan is wrong; the message names the line.
    InputError
        If the extra `experiments` is not installed.
    """
    check_installed("duckdb")  # results of finished cells are queried by it
    read, lines = load(plan)
    root = (Path(plan).parent if data is None else Path(data)).resolve()
    sources = []
    for number, one in enumerate(read.data):
        with lines.placing_errors(("data", number)):
            sources.append(opened(one, root))
    with lines.placing_errors():
        found = cells(read, sources)
    kept = {one.key: one for one in _kept(Path(folder))}
    return Sweep(read, tuple(found), {cell.key: kept[cell.key] for cell in found if cell.key in kept})


def sweep(
    plan: Path | str,
    folder: Path | str,
    *,
    data: Path | str | None = None,
    engine: str = "joblib",
    jobs: int = 1,
    retry_failed: bool = False,
    hook: Any = None,
    **options: Any,
) -> list[Result]:
    """Compute the cells of a plan that have no result in the folder yet.

    Parameters
    ----------
    plan : path
        A plan file.
    folder : path
        Where results go, and where those of earlier runs are.
    data : path, optional
        Where the plan's paths start; by default the plan's own folder.
    engine : {"joblib", "ray", "slurm"}
    jobs : int
        Workers.
    retry_failed : bool
        Whether cells that failed before are computed again.
    hook : callable, optional
        Called with each new result, such as `mlflow_hook`.
    **options
        Of the engine; see `tacit.compute.engines`.

    Returns
    -------
    list of Result
        Of all cells of the plan.

    Raises
    ------
    PlanError
        If anything in the plan is wrong; nothing has run then.
    InputError
        If another sweep is running into this folder, or it cannot be written.
    """
    asked, folder = prepare(plan, folder, data), Path(folder).resolve()  # workers may be in another folder
    logs = {"folder": folder / "slurm"} if engine == "slurm" else {}
    runner = engine_of(engine, jobs, **options, **logs)
    _make(folder)
    try:
        with locked(folder / ".lock", wait=False):
            _keep_plan(folder, Path(plan))
            _remove_parts(folder / CELLS)
            _remove_parts(folder / SHARED)
            todo = asked.missing(retry_failed)
            new = {}
            with closing(runner.map(partial(work, folder), todo)) as found:  # no worker outlives an interrupt
                for _, result in progress(found, "cells", len(todo)):
                    new[result.key] = result
                    if hook is not None:
                        hook(result)
    except BlockingIOError as error:
        raise InputError(f"another sweep is running into {folder}; wait for it, or choose another folder") from error
    return [{**asked.kept, **new}[cell.key] for cell in asked.cells]


def _kept(folder: Path) -> Sequence[Result]:
    return results.read_results(folder) if results.files_of(folder) else []


def _make(folder: Path) -> None:
    try:
        for name in (CELLS, SHARED, STARTED, PLANS):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / ".lock").touch()
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); choose another folder") from error


def _keep_plan(folder: Path, plan: Path) -> None:
    """A copy of what was asked for, once for each content."""
    text = plan.read_text(encoding="utf-8")
    path = folder / PLANS / f"{plan.stem}-{digest([text])[:8]}.yaml"
    if not path.exists():
        with atomic_file(path) as part:
            part.write_text(text, encoding="utf-8")


def _remove_parts(folder: Path) -> None:
    """Parts of files that a killed process left behind."""
    for path in folder.glob(".*.part"):
        if time.time() - path.stat().st_mtime > OLD:
            path.unlink(missing_ok=True)
