"""Items run on Ray, on this machine or on a running cluster."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tacit.compute.engines import Engine, WorkerDiedError
from tacit.compute.engines.workers import Packed, pack, unpack
from tacit.compute.extras import check_installed
from tacit.compute.libraries.ray import load_ray
from tacit.errors import InputError

# How often running batches are cancelled at the end.
CANCELS = 4

# How often a batch runs again whose worker died.
RETRIES = 3

# Seconds; batches grow until they take this long.
SHORT = 0.2


class Ray(Engine):
    """Runs batches of items as Ray tasks of one CPU; a batch whose worker dies runs again.

    If Ray is initialised in this process, it is used as it is and left running.

    Parameters
    ----------
    jobs : int
        Tasks that run at the same time, at least 1.
    address : str, optional
        A cluster to connect to: HOST:PORT, or "auto" for the cluster of this machine. By default a
        Ray of `jobs` CPUs is started here, and ended after the last result.
    """

    def __init__(self, jobs: int, address: str | None = None) -> None:
        super().__init__(jobs)
        check_installed("ray")
        self.address = address

    def _run(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        with _session(self.jobs, self.address) as most_batches:
            yield from _results(pack(task), items, most_batches)


@contextmanager
def _session(jobs: int, address: str | None) -> Iterator[int]:
    """Connect to Ray within the block, or start one; yield how many batches to submit at a time."""
    ray = load_ray()

    if ray.is_initialized():
        yield jobs
        return

    _connect(jobs, address)
    try:
        if address:
            yield jobs
        else:
            # a Ray started here has `jobs` CPUs: the second half waits in its queue
            yield 2 * jobs
    finally:
        ray.shutdown()


def _connect(jobs: int, address: str | None) -> None:
    """Connect to the Ray at an address, or start one of `jobs` CPUs on this machine."""
    ray = load_ray()

    options: dict[str, Any] = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    if address:
        options = {"address": address}
    try:
        if address and address != "auto":
            _check_answer(address)
        ray.init(**options, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, OverflowError) as error:
        if address is None and not isinstance(error, ConnectionError):
            raise
        remedy = (
            "pass 'auto' or HOST:PORT of a cluster that runs; set RAY_AUTH_MODE and its token if it"
            " needs a token"
        )
        raise InputError(f"cannot connect to a Ray at address={address!r}; {remedy}") from error


def _check_answer(address: str) -> None:
    """Raise an OSError if no server answers at HOST:PORT, for which Ray would wait forever."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def _results(task: Packed, items: Sequence[Any], most_batches: int) -> Iterator[Any]:
    """Yield results as batches end; at most `most_batches` are submitted at a time."""
    ray = load_ray()

    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_batch)
    shared_task = ray.put(task)
    remaining = iter(items)
    size = 1
    running: list[Any] = []
    try:
        while True:
            while len(running) < most_batches:
                batch = list(islice(remaining, size))
                if not batch:
                    break
                running.append(remote.remote(shared_task, batch))
            if not running:
                return

            [ready], running = ray.wait(running)
            try:
                results, seconds = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise WorkerDiedError(
                    f"Ray lost a task {1 + RETRIES} times ({type(error).__name__}), perhaps for"
                    " lack of memory; run again, with fewer jobs if memory was short"
                ) from error
            size = next_size(size, len(results), seconds)
            yield from results
    finally:
        # Ray may lose the cancellation of a batch that it is just sending to a worker
        for _ in range(CANCELS):
            for reference in running:
                ray.cancel(reference, force=True)
            if running:
                _, running = ray.wait(running, num_returns=len(running), timeout=5)


def next_size(size: int, n_results: int, seconds: float) -> int:
    """Twice the size after a full batch that was short, half the size after a long batch."""
    if seconds < SHORT and n_results == size:
        return 2 * size
    if seconds > 5 * SHORT:
        return max(1, size // 2)
    return size


def _batch(task: Packed, items: Sequence[Any]) -> tuple[list[Any], float]:
    """Results and the seconds they took; runs in the worker."""
    start = time.perf_counter()
    function = unpack(task)
    results = [function(item) for item in items]
    return results, time.perf_counter() - start
