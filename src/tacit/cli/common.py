"""What several verbs share: learners from text, data from paths, progress on the terminal."""

import ast
import inspect
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tacit.errors import InputError
from tacit.learners.methods import METHODS, load, method_called, setting_called

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.learners.base import PrivateClassifier

Method = Annotated[
    str, Parameter(help=f"One of: {', '.join(METHODS)}. Published names, such as dppl-mean, are understood.")
]
OWN = ("budget", "classes", "noise", "random_state", "unit", "ledger", "public")  # options with a flag of their own


def known_method(name: str) -> str:
    """The name in METHODS of the method that is called `name`."""
    method = method_called(name)
    if method in METHODS:
        return method
    setting = setting_called(name)
    if setting is None:
        raise InputError(f"method {name!r} is not known; choose from: {', '.join(METHODS)}")
    flags = "".join(f" --{flag.replace('_', '-')} {value}" for flag, value in setting[1].items())
    raise InputError(f"method {name!r} is {setting[0]} with an option; did you mean {setting[0] + flags!r}?")


def make_learner(method: str, parameters: dict[str, str], **own: Any) -> "PrivateClassifier":
    """The learner in METHODS of that name, its further parameters read from text as Python literals."""
    make = load(METHODS[method])
    accepted = inspect.signature(make).parameters
    free = [name for name in accepted if name not in OWN]
    own = {key: value for key, value in own.items() if value is not None}
    if "budget" in own and "budgets" in parameters:
        raise InputError(f"--budget {own['budget']} and --budgets {parameters['budgets']} are both given; give one")
    if "budget" not in own and "budgets" not in parameters:
        raise InputError("--budget is missing; give --budget rho=0.5, or epsilon=1,delta=1e-6")
    values = {}
    for flag, text in parameters.items():
        name = flag.replace("-", "_")
        if name not in free:
            listed = ", ".join("--" + name.replace("_", "-") for name in free) or "none"
            raise InputError(f"--{flag} is not an option of {method}; beyond the common ones it has: {listed}")
        values[name] = _literal(text)
    if own.get("public") is not None and "public" not in accepted:
        raise InputError(f"--public does not apply to {method}; leave it out")
    learner: PrivateClassifier = make(**values, **own)
    return learner


def stated_delta(learner: "PrivateClassifier", default: float = 1e-6) -> float:
    """Where epsilon is stated: at the delta of the budget, where it has one."""
    from tacit.privacy.budget import Budget

    if getattr(learner, "budgets", None) is not None:
        return float(learner.delta)
    return Budget.parse(learner.budget).delta or default


def read_classes(text: str | None) -> Any:
    """The class list of `--classes`: a number N for 0..N-1, or a file with one class a line."""
    if text is None:
        return None
    if _is_number(text):
        return int(text)
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--classes {text} is neither a number nor a readable text file; give one of them") from error
    names = [line.strip() for line in lines if line.strip()]
    return [int(name) for name in names] if all(_is_number(name.removeprefix("-")) for name in names) else names


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def labels_of(data: "Data", path: Path | str) -> Any:
    """The labels, which must be there."""
    if data.labels is None:
        raise InputError(
            f"{path} holds no labels; name them with --y, put NAME_targets.npy beside NAME.npy, or import both together"
        )
    return data.labels


def tell_of_ledger(path: Path, data: "Data") -> None:
    """Say, where a ledger counts what is spent on the data, how fits on a part of them are charged to it."""
    from tacit.data.imports import located
    from tacit.privacy.ledger import Ledger

    ledger = Ledger.beside(located(path), data.identity)
    if ledger.path.exists():
        print(f"A ledger counts what is spent on {path}; charge it by fit --ledger {ledger.path}")


def one_line(value: Any) -> str:
    """Text that a card can state: printable, on one line, not endless."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))[:1000]


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show progress on stderr: a bar on a terminal, else a line every few seconds."""
    from tacit.compute.progress import reporting

    if not sys.stderr.isatty():
        with reporting(_Lines()):
            yield
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(label, total=total)
            bar.update(tasks[label], completed=done, total=total)

        with reporting(report):
            yield


class _Lines:
    """Progress for logs: at most one line every few seconds, and none for what is over before."""

    EVERY = 2.0

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.started: dict[str, float] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        first = self.started.setdefault(label, now)
        if done < total and now - self.last >= self.EVERY:
            self.last = now
            left = f", about {(now - first) / done * (total - done):.0f} s left" if done and now - first > 1 else ""
            print(f"tacit: {label}: {done} of {total}{left}", file=sys.stderr)


def _literal(text: str) -> Any:
    """A Python literal, true or false, or a dict of literals written a=1,b=2, or else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pairs = [item.partition("=") for item in text.split(",")]
        named = len(pairs) == len({name for name, equals, _ in pairs if name and equals})
        return {name.strip(): _literal(value) for name, _, value in pairs} if named else text
