"""A sweep: the cells of a plan that have no result yet, run on an engine, into a folder.

A folder of plans is swept plan by plan, each into a sub-folder of its name. The folder of a plan
holds `cells/` (one result each, see `results.py`), `shared/` (work that cells share), `plans/` (a
copy of each plan) and `started/` (which process began which cell). A killed sweep loses the cells
that were running; the same command computes these and the cells that had not begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine
from tacit.compute.engines import engine as engine_of
from tacit.compute.extras import check_installed
from tacit.compute.progress import progress
from tacit.compute.shared import caching, digest, locked
from tacit.errors import InputError
from tacit.experiments import results
from tacit.experiments.cell import Cell
from tacit.experiments.cells import cells
from tacit.experiments.data import data_source
from tacit.experiments.plan import Plan, load
from tacit.experiments.results import CELLS, Result
from tacit.experiments.work import SHARED, STARTED, work

# folder within the folder of a sweep, and the file that a running sweep holds locked
PLANS = "plans"
LOCK = ".lock"

# seconds after which a leftover of a killed process is removed
LEFTOVER_AGE = 3600.0


@dataclass(frozen=True)
class SweepState:
    """The cells of a plan, and all results that the folder holds, by key."""

    cells: tuple[Cell, ...]
    results: Mapping[str, Result]

    def missing(self, retry_failed: bool = False) -> list[Cell]:
        """Return the cells without a result, and with `retry_failed` also those that failed."""
        missing_cells = []
        for cell in self.cells:
            result = self.results.get(cell.key)
            if result is None or (retry_failed and result.status == "failed"):
                missing_cells.append(cell)
        return missing_cells


class PlanRun(NamedTuple):
    """A plan file, the folder of its results, and the state of its sweep."""

    plan: Path
    folder: Path
    state: SweepState


def plans_in(path: Path | str) -> list[Path]:
    """Return the plan files of a folder, those that end in .yaml, in order; or the file itself.

    Raises InputError for a folder without any.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    plans = sorted(file for file in path.glob("*.yaml") if file.is_file())
    if not plans:
        raise InputError(
            f"folder {path} has no plans, which are files that end in .yaml; choose another folder,"
            " or name a plan"
        )
    return plans


def prepare_all(
    plans: Path | str, folder: Path | str, data: Path | str | None = None
) -> list[PlanRun]:
    """Prepare a plan, or each plan of a folder, whose results go into sub-folders of its name."""
    several = Path(plans).is_dir()
    runs = []
    for plan in plans_in(plans):
        plan_folder = Path(folder)
        if several:
            plan_folder /= plan.stem
        runs.append(PlanRun(plan, plan_folder, prepare(plan, plan_folder, data)))
    return runs


def prepare(plan: Path | str, folder: Path | str, data: Path | str | None = None) -> SweepState:
    """Read a plan, check it against the data, and read the results that the folder holds.

    The folder need not exist.
    """
    # before anything runs: results of finished cells are queried by duckdb
    check_installed("duckdb")
    plan_content, lines = load(plan)

    root = Path(plan).parent if data is None else Path(data)
    root = root.resolve()
    sources = []
    for number, data_set in enumerate(plan_content.data):
        with lines.placing_errors(("data", number)):
            sources.append(data_source(data_set, root))

    # each cell's learner is checked; with a cache they learn from the same public rows once
    with lines.placing_errors(), caching():
        plan_cells = cells(plan_content, sources)

    finished = results.results_of_one(Path(folder))
    return SweepState(tuple(plan_cells), {result.key: result for result in finished})


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
        A plan file, or a folder of plans, each of which ends in .yaml. All of them are checked
        before any runs.
    folder : path
        Where results go, and where those of earlier runs are. Each plan of a folder has a
        sub-folder of its name.
    data : path, optional
        Where the plan's paths start; by default the folder of the plan.
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
        Of all cells of the plan, or of all plans in order.

    Raises
    ------
    PlanError
        If anything in the plan is wrong; the message names the line, and nothing has run.
    InputError
        If another sweep is running into this folder, it cannot be written, or the extra
        `experiments` is missing.
    """
    plan_runs = prepare_all(plan, folder, data)
    all_results = []
    for plan_run in plan_runs:
        # workers may run in another working directory
        plan_run = plan_run._replace(folder=plan_run.folder.resolve())
        log_options = {}
        if engine == "slurm":
            log_options["folder"] = plan_run.folder / "slurm"
        runner = engine_of(engine, jobs, **options, **log_options)
        all_results += _sweep_plan(plan_run, runner, retry_failed, hook)
    return all_results


def _sweep_plan(plan_run: PlanRun, runner: Engine, retry_failed: bool, hook: Any) -> list[Result]:
    """Compute the missing cells of one plan; return the results of all its cells."""
    folder = plan_run.folder
    _make_folders(folder)
    try:
        with locked(folder / LOCK, wait=False):
            _copy_plan(plan_run.plan, folder)
            _remove_leftovers(folder / CELLS)
            _remove_leftovers(folder / SHARED)

            missing = plan_run.state.missing(retry_failed)
            results_by_key = dict(plan_run.state.results)
            # closing(): no worker outlives an interrupt
            with closing(runner.map(partial(work, folder), missing)) as new_results:
                for result in progress(new_results, "cells", len(missing)):
                    results_by_key[result.key] = result
                    if hook is not None:
                        hook(result)
    except BlockingIOError as error:
        raise InputError(
            f"another sweep is running into {folder}; wait for it, or choose another folder"
        ) from error
    return [results_by_key[cell.key] for cell in plan_run.state.cells]


def _make_folders(folder: Path) -> None:
    """Make the folders and the lock file of a sweep."""
    try:
        for name in (CELLS, STARTED, PLANS):
            (folder / name).mkdir(parents=True, exist_ok=True)

        # work that cells share may hold private data, so only its owner may read it
        (folder / SHARED).mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}); choose another folder"
        ) from error


def plan_of(folder: Path) -> Plan | None:
    """Return the plan of the newest sweep into a folder; None if there is no copy that this version
    reads.
    """
    copies = sorted((folder / PLANS).glob("*.yaml"), key=lambda path: path.stat().st_mtime)
    try:
        return load(copies[-1])[0] if copies else None
    except InputError:
        return None


def _copy_plan(plan: Path, folder: Path) -> None:
    """Keep a copy of the plan; a plan that was changed between runs has several."""
    text = plan.read_text(encoding="utf-8")
    name = f"{plan.stem}-{digest([text])[:8]}.yaml"
    Checkpoint(folder / PLANS).write(name, text.encode())


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of killed processes, here or on another host."""
    for path in folder.glob(".*.part"):
        age = time.time() - path.stat().st_mtime
        # a younger file may be that of a process which still writes it
        if age > LEFTOVER_AGE:
            path.unlink(missing_ok=True)
