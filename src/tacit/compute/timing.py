"""Seconds of the phases of a fit, collected within `timing()`; elsewhere a phase costs nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SCORING = "scoring"
"""Scores of public rows."""
SET_UP = "set-up"
"""Sums over private rows."""
SELECTION = "selection"
"""Choice of public rows."""
SOLVING = "solving"
"""Matrices and gradient steps."""

_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """Collect the seconds of each phase within the block, by name."""
    seconds: dict[str, float] = {}
    token = _seconds.set(seconds)
    try:
        yield seconds
    finally:
        _seconds.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Add the seconds of a block, or of a decorated function, to a phase; nested phases count for
    the outermost.
    """
    seconds = _seconds.get()
    if seconds is None:
        yield
        return

    # phases inside this one collect nothing
    token = _seconds.set(None)
    start = time.perf_counter()
    try:
        yield
    finally:
        _seconds.reset(token)
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
