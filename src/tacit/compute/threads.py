"""Work in threads of this process.

Loops compiled by numba, products of numpy and torch, and reads from disk release Python's lock, so
threads run in parallel. Libraries use one thread each meanwhile: their own threads would compete
with these.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from tacit.compute.engines.workers import one_thread_each, one_torch_thread

T = TypeVar("T")
R = TypeVar("R")

# Items for each thread that are submitted before their results are needed.
AHEAD = 2


def thread_count() -> int:
    """Threads that this process should use: its cores, or OMP_NUM_THREADS if that is fewer."""
    from joblib import cpu_count

    cores: int = cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if not limit.isdecimal():
        return cores
    return max(1, min(cores, int(limit)))


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """Yield the result of `function` on each item, in order; this thread draws the items, a few
    ahead.
    """
    # A single item needs no other thread.
    n_threads = 1
    if not isinstance(items, Sized) or len(items) > 1:
        n_threads = thread_count()
    if n_threads == 1:
        for item in items:
            yield function(item)
        return

    remaining = iter(items)
    with one_thread_each(), ThreadPoolExecutor(n_threads, initializer=one_torch_thread) as pool:
        first_items = islice(remaining, AHEAD * n_threads)
        futures: deque[Future[R]] = deque(pool.submit(function, item) for item in first_items)
        try:
            while futures:
                result = futures.popleft().result()
                for item in islice(remaining, 1):
                    futures.append(pool.submit(function, item))
                yield result
        finally:
            for future in futures:
                future.cancel()
