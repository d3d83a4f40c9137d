"""Items run on this machine: in this process, or in several through joblib."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from tacit.compute.engines import Engine, WorkerDiedError
from tacit.compute.engines.workers import shielding_workers


class Joblib(Engine):
    """Runs items in this process (one job) or in processes of joblib, which batches short items.

    After the last result the processes wait five minutes for the next map.
    """

    def _run(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        if self.jobs == 1:
            yield from map(task, items)
            return
        from joblib import Parallel, delayed

        parallel = Parallel(self.jobs, backend="loky", return_as="generator_unordered")
        results: Any = None
        try:
            # this call starts the processes
            with shielding_workers():
                results = parallel(delayed(task)(item) for item in items)
            # `yield from` would close the results before warnings are off
            for result in results:  # noqa: UP028
                yield result
        except BrokenExecutor as error:
            raise WorkerDiedError(
                "a process of joblib was ended from outside, perhaps for lack of memory; run again,"
                " with fewer jobs if memory was short"
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*(have been cancelled|but not used)")
                if results is not None:
                    results.close()
