"""Entry point, and how errors leave.

Exit status: 0 done; 2 the input was wrong (one line on stderr); 130 interrupted; 1 a fault of ours, or cells of a sweep
that failed. Nothing but the standard library is imported before `main`, so that an interrupt is heard from the start.
"""

import atexit
import io
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

INTERRUPTED = "interrupted; no output was written, and a charge already made to a ledger stays"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the console script, which passes no arguments, exits with what this returns."""
    try:
        return _status(arguments)
    except KeyboardInterrupt:  # a second one, while the first was told of
        return 130
    finally:
        if arguments is None:
            _exit_at_the_next_interrupt()


def _status(arguments: Sequence[str] | None) -> int:
    sys.unraisablehook = dropped = Dropped(sys.unraisablehook)
    try:
        return _run(arguments)
    except KeyboardInterrupt as stop:
        # under `python -m`, CPython notes an interrupt inside exec of a string, as in dataclasses, and dies by it later
        exec("")
        return _fail(str(stop) or INTERRUPTED, 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, as with `| head`
        return 0
    except OSError as error:
        fault = f"{error.filename or 'output'}: {error.strerror or error}"
        return _fail(f"{fault}; check the path, its permissions and the space left", 2)
    except Exception:
        if not dropped.again:
            raise
        dropped.cancel()
        return _fail(INTERRUPTED, 130)  # a library's code, whose callback the interrupt left undone
    finally:
        sys.unraisablehook = dropped.hook
        dropped.cancel()


def _exit_at_the_next_interrupt() -> None:
    """Only Python's own shutdown is left, in which an interrupt would print a traceback or kill by signal."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored, as in a shell's background job
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the end of the shutdown runs no handlers


def _run(arguments: Sequence[str] | None) -> int:
    from cyclopts import CycloptsError

    from tacit.cli.app import app
    from tacit.compute.extras import EXTRAS, missing
    from tacit.errors import PartlyFailedError, TacitError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            logging.getLogger("absl").setLevel(logging.ERROR)  # dp_accounting warns of rounding by it
            _print_any_text()
            app(arguments, exit_on_error=False, print_error=False)
    except TacitError as error:
        return _fail(str(error), 2)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        return _fail(str(missing(library)), 2)
    except PartlyFailedError as error:
        return _fail(str(error), 1)
    except CycloptsError as error:
        fault = str(error).replace("requires an argument.", "is missing or has no value;")
        return _fail(f"{fault} see --help", 2)
    return 0


class Dropped:
    """Python drops what a callback or a finalizer raises; an interrupt comes again, once Python has left this too.

    Parameters
    ----------
    hook : callable
        Takes whatever else is dropped.
    """

    def __init__(self, hook: Callable[[Any], Any]) -> None:
        self.hook = hook
        self.again: list[threading.Timer] = []

    def __call__(self, dropped: Any) -> None:
        """As `sys.unraisablehook`."""
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self.hook(dropped)
            return
        while True:
            again = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            self.again.append(again)
            try:
                again.start()
                return
            except KeyboardInterrupt:  # it came before `start` returned, on a busy machine, and would be dropped too
                continue

    def cancel(self) -> None:
        """Let none come that is no longer needed."""
        for timer in self.again:
            timer.cancel()


def _fail(message: str, status: int) -> int:
    print(f"tacit: {_on_one_line(message)}", file=sys.stderr)
    return status


def _show_warning(message: Warning | str, category: type[Warning], filename: str, *_: object, **__: object) -> None:
    """Print what tacit warns of, and nothing of other libraries."""
    if issubclass(category, UserWarning) and Path(filename).is_relative_to(Path(__file__).parents[1]):
        print(f"tacit: warning: {_on_one_line(str(message))}", file=sys.stderr)


def _on_one_line(message: str) -> str:
    from tacit.errors import printable

    return " ".join(printable(message).split())


def _print_any_text() -> None:
    """Print names that are no text, such as those of some files, by escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
