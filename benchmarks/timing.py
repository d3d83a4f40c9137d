"""How long a call takes."""

import statistics
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median time of a call, after one that is not counted."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])
