"""Items run as the tasks of a Slurm job array, through submitit."""

import os
import shutil
import signal
import subprocess
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tacit.compute.engines import Engine, WorkerDiedError, whole
from tacit.compute.engines.workers import Packed, pack, shielding_workers, unpack
from tacit.compute.extras import check_installed
from tacit.errors import InputError

# Seconds between looks for tasks that ended, for each kind of cluster. On Slurm a look runs
# `sacct`, a service that all users share.
POLL = {"slurm": 5.0, "local": 0.1}


class Slurm(Engine):
    """Deals items to the tasks of one job array; a task returns its results when it has run all of
    its items.

    Dead tasks are found by `sacct`; a Slurm without accounting would be waited for forever.

    Parameters
    ----------
    jobs : int
        Most tasks of the array, at least 1; each asks for one CPU.
    folder : path
        For logs, and for the input and output of tasks; all nodes must see it. It is created if
        absent, never emptied.
    partition : str, optional
    minutes : int, default=60
        Time limit of a task, for all its items together.
    cluster : {"slurm", "local"}, default="slurm"
        "local" runs the tasks as processes of this machine, all at once, to try plans without
        Slurm.
    """

    def __init__(
        self,
        jobs: int,
        folder: Path | str | None = None,
        partition: str | None = None,
        minutes: int = 60,
        cluster: str = "slurm",
    ) -> None:
        super().__init__(jobs)
        check_installed("submitit")
        if cluster not in POLL:
            raise InputError(f"cluster={cluster!r} is unknown; choose one of {', '.join(POLL)}")
        if cluster == "slurm" and shutil.which("sbatch") is None:
            raise InputError(
                "sbatch is not found, so this is not a Slurm machine; log in to one, or pass"
                " cluster='local'"
            )
        if folder is None:
            raise InputError(
                "folder=None must be a folder that all nodes see; pass it, for logs and results of"
                " tasks"
            )

        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"folder={str(folder)!r} cannot be made ({error.strerror}); choose another"
            ) from error

        self.cluster = cluster
        self.partition = partition
        self.minutes = whole("minutes", minutes)  # at least 1

    def _run(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        from submitit import AutoExecutor
        from submitit.helpers import as_completed

        executor = AutoExecutor(self.folder, cluster=self.cluster)
        executor.update_parameters(
            name="tacit",
            timeout_min=self.minutes,  # in minutes
            nodes=1,
            tasks_per_node=1,
            cpus_per_task=1,
            slurm_partition=self.partition,
            # there are no more tasks than jobs; submitit's default would run 256 at a time
            slurm_array_parallelism=self.jobs,
        )

        # Items are dealt like cards: neighbours often take equally long.
        n_tasks = min(self.jobs, len(items))
        batches = [items[first::n_tasks] for first in range(n_tasks)]

        # The local cluster starts its processes here; they must not hear a Ctrl-C in the terminal,
        # since this process ends them.
        with shielding_workers():
            jobs = executor.map_array(_batch, [pack(task)] * len(batches), batches)

        running = set(jobs)
        try:
            for job in as_completed(jobs, poll_frequency=POLL[self.cluster]):
                running.remove(job)
                results, error = _outcome(job)
                yield from results
                if error is not None:
                    raise error
        finally:
            # tasks still run after an error, after a Ctrl-C, or if the caller wants no more results
            for job in running:
                if self.cluster == "local":
                    _end(job._process)
                else:
                    job.cancel(check=False)  # does not fail if the task has ended meanwhile


def _end(controller: subprocess.Popen[bytes]) -> None:
    """Kill a job on this machine: the task, then the controller, which is the process by which
    submitit starts the task.

    submitit would interrupt the controller, but a shielded process ignores that.
    """
    has_ended = controller.poll() is not None
    if has_ended:
        return

    # Stop the controller first, so that it starts no task meanwhile.
    with suppress(ProcessLookupError):
        os.kill(controller.pid, signal.SIGSTOP)

    # Linux lists the children of a process in this file. Where it is missing, the controller alone
    # is killed.
    tasks = []
    children = Path(f"/proc/{controller.pid}/task/{controller.pid}/children")
    if children.exists():
        tasks = [int(number) for number in children.read_text().split()]
    for process in (*tasks, controller.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    controller.wait()


def _outcome(job: Any) -> tuple[list[Any], Exception | None]:
    """Return the results of a task, and the exception of the function that ended it early, if any.

    Raises WorkerDiedError if the task died.
    """
    from submitit.core.utils import FailedJobError, UncompletedJobError

    try:
        return cast(tuple[list[Any], Exception | None], job.result())
    except (FailedJobError, UncompletedJobError) as error:
        # the log may be empty or missing, as of a task that was killed from outside
        log = (job.stderr() or "").strip() or str(error)
        last_line = log.splitlines()[-1]
        raise WorkerDiedError(
            f"task {job.job_id} failed: {last_line}; its log is {job.paths.stderr}"
        ) from error


def _batch(task: Packed, items: Sequence[Any]) -> tuple[list[Any], Exception | None]:
    """Run a task on items, in the process of the task; return the results up to the first
    exception, and that exception.

    submitit would return only the text of an exception.
    """
    results: list[Any] = []
    try:
        function = unpack(task)
        for item in items:
            results.append(function(item))
    except Exception as error:
        # a pickled exception loses its traceback, but keeps its notes
        error.add_note(traceback.format_exc())
        return results, error
    return results, None
