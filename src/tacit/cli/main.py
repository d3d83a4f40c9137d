"""The entry point of the command line: runs a command, and turns errors into one line and an exit
status.

Exit status: 0 done; 2 the input was wrong (one line on stderr); 130 interrupted; 1 a fault of ours,
cells of a sweep that failed, rows that do not suit a release (`tacit adapt`), or a gate or an audit
that answers no. Only the standard
library is imported before `main` runs, so that a Ctrl-C is caught from the start.
"""

import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import CycloptsError, MissingArgumentError

LEAST_COLUMNS = 20  # of a terminal; help for fewer does not end

INTERRUPTED = "interrupted; no output was written, and a charge already made to a ledger stays"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; the console script passes no arguments."""
    report = sys.unraisablehook
    swallowed: list[Any] = []

    def reraise(unraisable: Any) -> None:
        """Re-raise a Ctrl-C that Python swallowed in a finalizer or a callback, a moment after
        Python left that.
        """
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            report(unraisable)
            return
        swallowed.append(unraisable)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    sys.unraisablehook = reraise
    try:
        return _status(arguments, swallowed)
    except KeyboardInterrupt:  # a second one, while the first was reported
        return 130
    finally:
        sys.unraisablehook = report
        if swallowed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        # in Python's shutdown a Ctrl-C would print a traceback, or end with another status
        if arguments is None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _status(arguments: Sequence[str] | None, swallowed: Sequence[Any]) -> int:
    try:
        return _run(arguments)
    except KeyboardInterrupt as stop:
        # under `python -m`, CPython notes an interrupt inside exec of a string, as in dataclasses,
        # and dies by it later
        exec("")
        return _fail(str(stop) or INTERRUPTED, 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, as with `| head`
        return 0
    except OSError as error:
        fault = f"{error.filename or 'output'}: {error.strerror or error}"
        return _fail(f"{fault}; check the path, its permissions and the space left", 2)
    except Exception:
        if not swallowed:
            raise
        return _fail(INTERRUPTED, 130)  # the code of a library whose callback swallowed the Ctrl-C


def _run(arguments: Sequence[str] | None) -> int:
    try:
        import tacit.compute.locks  # noqa: F401
    except ImportError as error:
        return _fail(str(error), 2)
    from cyclopts import CycloptsError

    from tacit.cli.app import app
    from tacit.cli.loudness import loudness_set
    from tacit.compute.extras import EXTRAS, missing
    from tacit.errors import NothingDoneError, PartlyFailedError, TacitError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # dp_accounting warns of rounding by it
            logging.getLogger("absl").setLevel(logging.ERROR)
            _print_any_text()
            _ignore_width_of_no_terminal()
            tokens = sys.argv[1:] if arguments is None else list(arguments)
            tokens = _help_asked_for(tokens)
            tokens = _with_standard_output(tokens)
            tokens, loudness = _without_loudness(tokens)
            if _asks_for_method(tokens):
                from tacit.cli.method_help import print_method_help

                print_method_help(tokens[0], tokens[1])
            else:
                with loudness_set(loudness, tokens[0] if tokens else ""):
                    app(tokens, exit_on_error=False, print_error=False)
    except TacitError as error:
        return _fail(str(error), 2)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        return _fail(str(missing(library)), 2)
    except (PartlyFailedError, NothingDoneError) as error:
        return _fail(str(error), 1)
    except CycloptsError as error:
        return _fail(_fault(error, tokens), 2)
    return 0


def _ignore_width_of_no_terminal() -> None:
    """Leave out a COLUMNS of a few or no columns, which no terminal has: help would never end."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < LEAST_COLUMNS:
        del os.environ["COLUMNS"]


def _help_asked_for(tokens: list[str]) -> list[str]:
    """Read `tacit help COMMAND` as `tacit COMMAND --help`."""
    if tokens[:1] == ["help"]:
        return [*tokens[1:], "--help"]
    return tokens


def _with_standard_output(tokens: list[str]) -> list[str]:
    """Join a lone `-` to the option before it: the parser would take it for another option."""
    joined: list[str] = []
    for token in tokens:
        if token == "-" and joined and joined[-1].startswith("-"):
            joined[-1] += "=-"
        else:
            joined.append(token)
    return joined


def _without_loudness(tokens: list[str]) -> tuple[list[str], str]:
    """Take -q, --quiet, -v and --verbose, which every command has, out of a command line."""
    loudness = ""
    kept = []
    for token in tokens:
        if token in ("-q", "--quiet"):
            loudness = "quiet"
        elif token in ("-v", "--verbose"):
            loudness = "verbose"
        else:
            kept.append(token)
    return kept, loudness


def _asks_for_method(tokens: Sequence[str]) -> bool:
    """Tell whether the help of one method is asked for, as in `tacit fit noisy-sum --help`."""
    from tacit.cli.verbs import OF_A_METHOD

    named = len(tokens) > 2 and tokens[0] in OF_A_METHOD and not tokens[1].startswith("-")
    return named and any(token in ("--help", "-h") for token in tokens)


def _fault(error: "CycloptsError", tokens: Sequence[str]) -> str:
    """Say what is wrong with a command line, and what to write."""
    from cyclopts import MissingArgumentError, UnknownCommandError

    from tacit.cli.app import FLAGS
    from tacit.cli.verbs import VERBS
    from tacit.errors import nearest, quoted

    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        word = error.unused_tokens[0]
        return f"command {quoted(word)} is not known; {nearest(word, VERBS, *FLAGS)}"
    if isinstance(error, MissingArgumentError):
        return _missing(error, tokens)
    said = str(error)
    return (
        said if said.endswith("?") or "Choose from" in said else f"{said.rstrip('.')}; see --help"
    )


def _missing(error: "MissingArgumentError", tokens: Sequence[str]) -> str:
    """Name what a command line lacks; before that, a method or option that it misspells."""
    from tacit.cli.verbs import OF_A_METHOD
    from tacit.errors import InputError

    verb = tokens[0]
    if verb in OF_A_METHOD:
        from tacit.cli.learner import check_spelling

        try:
            check_spelling(verb, tokens[1:])
        except InputError as misspelt:
            return str(misspelt)
    _, asks, close = str(error).partition(" Did you mean ")
    name = error.argument.name if error.argument is not None else "an argument"
    if "[KEYWORD]" in name:  # an option of the method, which the command does not name
        name = tokens[-1]
    remedy = f"did you mean {close}" if asks else f"see tacit {verb} --help"
    return f"{name} {'has no value' if name in tokens else 'is missing'}; {remedy}"


def _fail(message: str, status: int) -> int:
    print(f"tacit: {_on_one_line(message)}", file=sys.stderr)
    return status


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, *_: object, **__: object
) -> None:
    """Print what tacit warns of, and nothing of other libraries."""
    if issubclass(category, UserWarning) and Path(filename).is_relative_to(
        Path(__file__).parents[1]
    ):
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
