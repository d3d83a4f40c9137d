"""`tacit sweep`: the cells of a plan."""

from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from tacit.cli.common import say
from tacit.cli.options import Out
from tacit.compute.progress_display import shown_progress
from tacit.errors import PartlyFailedError


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
    """Run an experiment plan; resumes if interrupted.

    Every result is written as soon as its cell is done. After an interrupt, a kill or a change of
    the plan, the same command computes the missing cells. Noise is for research: results compare
    methods, they release nothing.
    Exit status 1 says that cells failed.

    Parameters
    ----------
    plan
        A plan file (YAML).
    out
        Folder of the results; it may hold those of earlier runs and other plans.
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
    from tacit.experiments.run import prepare
    from tacit.experiments.run import sweep as run_sweep
    from tacit.report.words import imbalance_words

    if dry_run:
        whole("--jobs", jobs)
        state = prepare(plan, out, data)
        missing = state.missing(retry_failed)
        for cell in missing:
            place = f"{cell.data} ({cell.encoder}), {imbalance_words(cell.imbalance)}"
            say(f"{cell.key}  {cell.learner}  {place}  {cell.shown_budget}  seed {cell.seed}")
        say(f"{len(missing)} of {len(state.cells)} cells to compute")
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
