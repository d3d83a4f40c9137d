"""Progress of long work, sent to a reporter.

The library prints nothing unless `tacit.progress(True)` asks for it. The command line installs a
reporter with `reporting`; it gets a label, the amount done and the total, and may draw a bar.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Reporter = Callable[[str, int, int], None]

_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)
_default: Reporter | None = None


def progress(
    items: Iterable[T], label: str, total: int, size: Callable[[T], int] = lambda item: 1
) -> Iterator[T]:
    """Yield `items`, reporting after each how much of `total` is done; `size` measures an item."""
    amount = 0
    report = _reporter.get() or _default
    for item in items:
        yield item
        amount += size(item)
        if report is not None:
            report(label, amount, total)


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """Send progress to `reporter` within the block."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


@contextmanager
def unreported() -> Iterator[None]:
    """Report no progress within the block, of which the caller reports the end."""
    with reporting(_nothing):
        yield


def _nothing(label: str, amount: int, total: int) -> None:
    """Take a report, and do nothing."""


def report_by_default(reporter: Reporter | None) -> None:
    """Send progress to `reporter` wherever no `reporting` block says otherwise, in all threads."""
    global _default
    _default = reporter
