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

AHEAD = 2  # items for each thread that are submitted before their results are needed


def thread_count() -> int:
    """Threads that this process should use: its cores, or OMP_NUM_THREADS if that is fewer."""
    from joblib import cpu_count

    stated = os.environ.get("OMP_NUM_THREADS", "")
    cores: int = cpu_count()
    return max(1, min(cores, int(stated))) if stated.isdecimal() else cores


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """Yield the result of `function` on each item, in order; this thread draws the items, a few
    ahead.
    """
    if (isinstance(items, Sized) and len(items) < 2) or (count := thread_count()) == 1:
        for item in items:
            yield function(item)
        return
    rest = iter(items)
    with one_thread_each(), ThreadPoolExecutor(count, initializer=one_torch_thread) as pool:
        waiting: deque[Future[R]] = deque(
            pool.submit(function, item) for item in islice(rest, AHEAD * count)
        )
        try:
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(rest, 1))
                yield result
        finally:
            for future in waiting:
                future.cancel()
