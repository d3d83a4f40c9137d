"""Time a call or a command, and print a table of results."""

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median time of a call in seconds, after a first call that is not counted."""
    return statistics.median(_times(work, runs, time.perf_counter))


def processor_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Least processor time of a call in seconds, of all threads, after a first call; other work
    matters least to it.
    """
    return min(_times(work, runs, time.process_time))


def _times(work: Callable[[], object], runs: int, clock: Callable[[], float]) -> list[float]:
    times = []
    for _ in range(runs + 1):
        started = clock()
        work()
        times.append(clock() - started)
    return times[1:]


def watched(line: list[str]) -> tuple[float, float]:
    """Run a command of tacit; return its seconds and its peak of anonymous memory in bytes."""
    peak = 0.0
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "tacit.cli.main", *line],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            for entry in status.read_text().splitlines() if status.exists() else []:
                if entry.startswith("RssAnon"):
                    peak = max(peak, 1024.0 * int(entry.split()[1]))
            threading.Event().wait(0.1)
    if process.returncode:
        raise SystemExit(f"tacit {' '.join(line)} ended with {process.returncode}")
    return time.perf_counter() - started, peak


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
