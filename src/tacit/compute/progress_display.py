"""Progress of long work, shown to a person: bars in a terminal or a notebook, lines in a log.

Work that takes less than two seconds shows nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

from tacit.compute.extras import is_installed
from tacit.compute.progress import report_by_default, reporting

if TYPE_CHECKING:
    from tacit.compute.progress import Reporter

QUICK_SECONDS = 2.0  # work that ends sooner shows no progress
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)

LONGEST_PAUSE = 300.0  # seconds between two lines of a log, at most


def progress(shown: bool = True) -> None:
    """Show the progress of long fits, encodings and sweeps in Python, or stop showing it.

    Bars are drawn on stderr, or as widgets of a notebook, by tqdm (extra `notebook`). Without tqdm
    there are lines, at growing intervals. Progress is off until this is called; the command line
    shows it without being asked.

    Parameters
    ----------
    shown : bool, default=True
        True shows progress from now on, in all threads; False stops that.

    Notes
    -----
    Labels and amounts come from public facts, such as the number of steps or of public rows, and
    from the number of private rows, which the owner of the data sees. They enter no release.

    Examples
    --------
    >>> import tacit
    >>> tacit.progress(True)
    >>> tacit.progress(False)
    """
    if not shown:
        report_by_default(None)
    elif is_installed("tqdm"):
        report_by_default(_bar_reporter())
    else:
        report_by_default(line_reporter())


def _bar_reporter() -> "Reporter":
    """A bar of tqdm for each label, which closes when its work is done."""
    from tqdm.auto import tqdm

    bars: dict[str, Any] = {}

    def report(label: str, done: int, total: int) -> None:
        if label not in bars:
            # tqdm draws nothing in its first `delay` seconds
            bars[label] = tqdm(total=total, desc=label, delay=QUICK_SECONDS)
        bar = bars[label]
        bar.update(done - bar.n)
        if done >= total:
            bars.pop(label).close()

    return report


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Let `shown_progress` show nothing within the block."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show progress of work within the block on stderr: a bar on a terminal, else lines at growing
    intervals.
    """
    if _hidden.get():
        yield
        return
    if not sys.stderr.isatty():
        with reporting(line_reporter()):
            yield
        return

    from rich.console import Console
    from rich.progress import Progress, TaskID

    bar = Progress(console=Console(stderr=True), transient=True)
    tasks: dict[str, TaskID] = {}
    started = monotonic()

    def report(label: str, done: int, total: int) -> None:
        if label not in tasks:
            tasks[label] = bar.add_task(label, total=total)
        bar.update(tasks[label], completed=done, total=total)
        if monotonic() - started >= QUICK_SECONDS:
            bar.start()

    try:
        with reporting(report):
            yield
    finally:
        if bar.live.is_started:
            bar.stop()


def line_reporter() -> "Reporter":
    """Progress for logs: a line after two seconds, then after twice the time each, up to five
    minutes; for work under another label again after two seconds.

    An hour of work prints about twenty lines.
    """
    last_line = monotonic()
    pauses: dict[str, float] = {}
    # when work of each label began, and how much of it was done at the last report
    state_by_label: dict[str, tuple[float, int]] = {}

    def report(label: str, done: int, total: int) -> None:
        nonlocal last_line
        now = monotonic()
        start, done_before = state_by_label.get(label, (now, 0))
        if done < done_before:
            # the same work again
            start = now
        state_by_label[label] = (start, done)
        pause = pauses.get(label, QUICK_SECONDS)
        if done >= total or now - last_line < pause:
            return

        last_line = now
        pauses[label] = min(2 * pause, LONGEST_PAUSE)
        seconds = now - start
        time_left = ""
        if done and seconds > 1:
            time_left = f", about {seconds / done * (total - done):.0f} s left"
        print(f"tacit: {label}: {done} of {total}{time_left}", file=sys.stderr)

    return report
