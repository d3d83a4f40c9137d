"""A sweep: the cells of a plan that have no result yet, run on an engine, into a folder.

The folder holds `cells/` (one result each, see `results.py`), `shared/` (work that cells share),
`plans/` (a copy of each plan) and `started/` (which process began which cell). A killed sweep loses
the cells that were running; the same command computes these and the cells that had not begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import engine as engine_of
from tacit.compute.extras import check_installed
from tacit.compute.progress import progress
from tacit.compute.shared import caching, digest, locked
from tacit.errors import InputError
from tacit.experiments import results
from tacit.experiments.cell import Cell
from tacit.experiments.cells import cells
from tacit.experiments.data import data_source
from tacit.experiments.plan import load
from tacit.experiments.results import CELLS, Result
from tacit.experiments.work import SHARED, STARTED, work

PLANS = "plans"
OLD = 3600.0  # seconds after which a leftover of a killed process is removed


@dataclass(frozen=True)
class SweepState:
    """The cells of a plan, and all results that the folder holds, by key."""

    cells: tuple[Cell, ...]
    results: Mapping[str, Result]

    def missing(self, retry_failed: bool = False) -> list[Cell]:
        """Cells to compute."""
        skipped = {
            key
            for key, one in self.results.items()
            if not (retry_failed and one.status == "failed")
        }
        return [cell for cell in self.cells if cell.key not in skipped]


def prepare(plan: Path | str, folder: Path | str, data: Path | str | None = None) -> SweepState:
    """Read a plan, check it against the data, and read the results that the folder holds; it need
    not exist.
    """
    check_installed("duckdb")  # results of finished cells are queried by it
    read, lines = load(plan)
    root = (Path(plan).parent if data is None else Path(data)).resolve()
    sources = []
    for number, one in enumerate(read.data):
        with lines.placing_errors(("data", number)):
            sources.append(data_source(one, root))
    with lines.placing_errors(), caching():
        planned = cells(read, sources)
    folder = Path(folder)
    finished = results.read_results(folder) if results.files_of(folder) else []
    return SweepState(tuple(planned), {one.key: one for one in finished})


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
        Of all cells of the plan.

    Raises
    ------
    PlanError
        If anything in the plan is wrong; the message names the line, and nothing has run.
    InputError
        If another sweep is running into this folder, it cannot be written, or the extra
        `experiments` is missing.
    """
    # workers may be in another folder
    state, folder = prepare(plan, folder, data), Path(folder).resolve()
    logs = {"folder": folder / "slurm"} if engine == "slurm" else {}
    runner = engine_of(engine, jobs, **options, **logs)
    try:
        for name in (CELLS, SHARED, STARTED, PLANS):
            (folder / name).mkdir(
                mode=0o700 if name == SHARED else 0o777, parents=True, exist_ok=True
            )
        (folder / ".lock").touch()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}); choose another folder"
        ) from error
    try:
        with locked(folder / ".lock", wait=False):
            text = Path(plan).read_text(encoding="utf-8")
            Checkpoint(folder / PLANS).write(
                f"{Path(plan).stem}-{digest([text])[:8]}.yaml", text.encode()
            )
            _remove_leftovers(folder / CELLS)
            _remove_leftovers(folder / SHARED)
            missing, finished = state.missing(retry_failed), dict(state.results)
            # no worker outlives an interrupt
            with closing(runner.map(partial(work, folder), missing)) as new:
                for result in progress(new, "cells", len(missing)):
                    finished[result.key] = result
                    if hook is not None:
                        hook(result)
    except BlockingIOError as error:
        raise InputError(
            f"another sweep is running into {folder}; wait for it, or choose another folder"
        ) from error
    return [finished[cell.key] for cell in state.cells]


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of killed processes, here or on another host."""
    for path in folder.glob(".*.part"):
        if time.time() - path.stat().st_mtime > OLD:
            path.unlink(missing_ok=True)
