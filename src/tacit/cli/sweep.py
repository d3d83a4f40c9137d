"""`tacit sweep`: the cells of a plan, or of each plan of a folder."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tacit.cli.common import say
from tacit.cli.options import Out
from tacit.compute.progress_display import shown_progress
from tacit.errors import PartlyFailedError

if TYPE_CHECKING:
    from tacit.experiments.run import PlanRun


def sweep(
    plan: Path,
    /,
    *,
    out: Out,
    data: Path | None = None,
    engine: Literal["joblib", "ray", "slurm"] = "joblib",
    jobs: int = 1,
    dry_run: bool = False,
    retry_failed: bool = False,
    address: str | None = None,
    cluster: str | None = None,
    partition: str | None = None,
    minutes: int | None = None,
    mlflow: str | None = None,
) -> None:
    """Run an experiment plan, or all plans of a folder; resumes if interrupted.

    Every result is written as soon as its cell is done. After an interrupt, a kill or a change of
    the plan, the same command computes the missing cells. Noise is for research: results compare
    methods, they release nothing.
    Exit status 1 says that cells failed.

    Parameters
    ----------
    plan
        A plan file (YAML), or a folder: every .yaml file in it is a plan. All plans are checked
        before any runs.
    out
        Folder of the results; it may hold those of earlier runs and other plans. Each plan of a
        folder has a sub-folder of its name.
    data
        Where the plan's paths start; by default the folder of the plan.
    engine
        Where cells are computed.
    jobs
        Workers.
    dry_run
        Check the plan, list the cells that would be computed, and compute nothing.
    retry_failed
        Compute cells that failed before once more.
    address
        Of a Ray cluster that is running; without it Ray starts here.
    cluster
        For slurm: "local" runs its jobs on this machine, to try it out.
    partition
        For slurm.
    minutes
        For slurm: the limit of a job.
    mlflow
        Log each result to this MLflow tracking address.
    """
    from tacit.compute.engines import whole
    from tacit.experiments.mlflow_hook import logging_to
    from tacit.experiments.run import prepare_all
    from tacit.experiments.run import sweep as run_sweep

    if dry_run:
        whole("--jobs", jobs)
        _list_missing(prepare_all(plan, out, data), retry_failed, several=plan.is_dir())
        return
    options = {"address": address, "cluster": cluster, "partition": partition, "minutes": minutes}
    with (
        shown_progress(),
        nullcontext() if mlflow is None else logging_to(mlflow, plan.stem) as hook,
    ):
        try:
            results = run_sweep(
                plan,
                out,
                data=data,
                engine=engine,
                jobs=jobs,
                retry_failed=retry_failed,
                hook=hook,
                **options,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; finished cells are kept in {out}, run it again to go on"
            ) from None
    failed = [one for one in results if one.status == "failed"]
    say(f"{out}: {len(results)} cells, {len(failed)} failed")
    for one in failed[:10]:
        say(f"  {one.key} {one.learner} on {one.data} at {one.budget}: {one.error}")
    if len(failed) > 10:
        say(f"  {len(failed) - 10} more")
    say(f"tacit report {out} --out page.html draws them; tacit results {out} lists them")
    if failed:
        raise PartlyFailedError(
            f"{len(failed)} of {len(results)} cells failed; tacit results {out} --columns"
            " learner,data,error --where \"status='failed'\" lists them, and --retry-failed"
            " computes them again"
        )


def _list_missing(plan_runs: "list[PlanRun]", retry_failed: bool, *, several: bool) -> None:
    """Print the cells that would be computed, below the file of their plan where there are
    several.
    """
    from tacit.report.words import imbalance_words

    n_missing = 0
    for plan_run in plan_runs:
        missing = plan_run.state.missing(retry_failed)
        n_missing += len(missing)
        if several:
            say(f"{plan_run.plan}: {len(missing)} of {len(plan_run.state.cells)} cells to compute")
        for cell in missing:
            place = f"{cell.data} ({cell.encoder}), {imbalance_words(cell.imbalance)}"
            say(f"{cell.key}  {cell.learner}  {place}  {cell.shown_budget}  seed {cell.seed}")

    n_cells = sum(len(plan_run.state.cells) for plan_run in plan_runs)
    plans = f" of {len(plan_runs)} plans" if several else ""
    say(f"{n_missing} of {n_cells} cells{plans} to compute")
