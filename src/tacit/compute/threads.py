"""Work in threads of this process, each of which computes by itself.

Loops compiled by numba, products of numpy and torch, and reads from disk let go of Python's lock, so threads run side
by side. Libraries keep to one thread each meanwhile: their own threads would wait for each other.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from tacit.compute.engines.workers import one_thread_each

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 2  # items for each thread that are taken before their results are asked for


def thread_count() -> int:
    """Threads that this process should use: its cores, or OMP_NUM_THREADS where that is fewer."""
    from joblib import cpu_count

    stated = os.environ.get("OMP_NUM_THREADS", "")
    cores: int = cpu_count()
    return max(1, min(cores, int(stated))) if stated.isdecimal() else cores


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """Results of `function` on each item, in order; a few items ahead are taken, by this thread."""
    count = thread_count()
    if count == 1 or (isinstance(items, Sized) and len(items) < 2):
        for item in items:
            yield function(item)
        return
    rest = iter(items)
    with one_thread_each(), ThreadPoolExecutor(count, initializer=_alone) as pool:
        waiting: deque[Future[R]] = deque(pool.submit(function, item) for item in islice(rest, AHEAD * count))
        try:
            while waiting:
                found = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(rest, 1))
                yield found
        finally:
            for future in waiting:
                future.cancel()


def _alone() -> None:
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
