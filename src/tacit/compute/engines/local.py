"""Items run on this machine: in this process, or in several through joblib."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tacit.compute.engines import Engine
from tacit.compute.engines.workers import shielding_workers

T = TypeVar("T")
R = TypeVar("R")


class Joblib(Engine):
    """One job is this process; more are processes of joblib, which batches short items.

    Processes stay for the next map when all results were taken, and end after five minutes without one.

    Parameters
    ----------
    jobs : int
        Number of processes, at least 1.
    """

    def _run(self, task: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        return (task(item) for item in items) if self.jobs == 1 else self._parallel(task, items)

    def _parallel(self, task: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        from joblib import Parallel, delayed

        parallel = Parallel(self.jobs, backend="loky", return_as="generator_unordered")
        results: Any = None
        try:
            with shielding_workers():  # it starts the processes
                results = parallel(delayed(task)(item) for item in items)
            for result in results:  # noqa: UP028 - it would close them before the warning is off
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*(have been cancelled|but not used)")
                if results is not None:
                    results.close()
