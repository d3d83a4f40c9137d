"""Time a call, and print a table of results."""

import statistics
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median time of a call in seconds, after a first call that is not counted."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
