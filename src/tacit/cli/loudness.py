"""How much a command prints beside what it was asked for: `--quiet` and `--verbose`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""True while lines about what was written are left out."""


@contextmanager
def loudness_set(loudness: str, verb: str) -> Iterator[None]:
    """Run the command `verb` "quiet" or "verbose"; an empty `loudness` is the default."""
    from tacit.cli.verbs import PRINTS_FACTS
    from tacit.compute.progress_display import hidden_progress

    if loudness == "quiet":
        token = quiet.set(verb not in PRINTS_FACTS)
        try:
            with hidden_progress():
                yield
        finally:
            quiet.reset(token)
    elif loudness == "verbose":
        with _explained():
            yield
    else:
        yield


@contextmanager
def _explained() -> Iterator[None]:
    """Say on stderr where options came from, and how long the work took, by phase."""
    from tacit.cli import settings
    from tacit.compute.timing import timing

    start = monotonic()
    with timing() as seconds:
        yield
    for setting in settings.used:
        print(f"tacit: taken: {setting}", file=sys.stderr)
    phases = "".join(f"; {name} {spent:.1f} s" for name, spent in seconds.items())
    print(f"tacit: {monotonic() - start:.1f} s{phases}", file=sys.stderr)
