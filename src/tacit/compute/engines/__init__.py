"""Engines run items of work, such as the cells of an experiment: in this process, in several, on
Ray or on Slurm.

`engine(name, jobs).map(function, items)` yields results as they arrive. Every engine keeps these
rules:

- Each item gives one result, in any order. Nothing starts before the first result is requested.
- An item computes with one thread of BLAS, OpenMP and torch, so results have the same bits under
  every engine and number of jobs, on processors of the same kind.
- Items and results are small picklable values, such as keys and paths. Workers map data from files
  into memory.
- The function is defined in a module, or is a `functools.partial` of one. Workers find modules
  where this process does.
- An exception of the function ends the map and is raised here. To continue after one, catch it
  inside the function.
- A worker that dies, and is not replaced, ends the map with a `WorkerDiedError`.
- An item may run again after its worker (Ray) or node (Slurm) has died, so the function must be
  safe to repeat.
- Closing the generator ends running items and cancels the others; no worker is left.
  `contextlib.closing` closes it however a loop over it ends.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from tacit.compute.engines.workers import alone
from tacit.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

ENGINES: dict[str, str] = {
    "joblib": "tacit.compute.engines.local:Joblib",
    "ray": "tacit.compute.engines.on_ray:Ray",
    "slurm": "tacit.compute.engines.slurm:Slurm",
}


class WorkerDiedError(InputError, RuntimeError):
    """A worker was ended from outside, and its items have no results."""


class Engine(ABC):
    """Runs a function on items, at most `jobs` >= 1 at a time; a subclass defines `_run`."""

    def __init__(self, jobs: int) -> None:
        self.jobs = whole("jobs", jobs)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Generator[R, None, None]:
        """Yield the result of each item, in any order; see the rules above."""
        if len(items):
            yield from self._run(partial(alone, function), items)

    @abstractmethod
    def _run(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of `task` on these items, at least one, in any order."""


def engine(name: str, jobs: int, **options: Any) -> Engine:
    """The engine of this name.

    Parameters
    ----------
    name : {"joblib", "ray", "slurm"}
    jobs : int
        Items that run at the same time, at least 1.
    **options
        What the engine's class takes beside `jobs`; None for an option that is left out.

    Raises
    ------
    InputError
        If the name or an option is unknown, a value is wrong or a library is not installed.

    Examples
    --------
    >>> from tacit.compute.engines import engine
    >>> sorted(engine("joblib", jobs=1).map(abs, [3, -4]))
    [3, 4]
    """
    if name not in ENGINES:
        raise InputError(f"engine={name!r} is unknown; choose one of {', '.join(ENGINES)}")

    engine_class = resolve_name(ENGINES[name])
    options = {option: value for option, value in options.items() if value is not None}
    for option, value in options.items():
        if option not in inspect.signature(engine_class).parameters:
            raise InputError(
                f"{option}={value!r} does not apply to the engine {name}; leave it out"
            )
    return cast(Engine, engine_class(jobs, **options))


def engine_from(
    text: Any, jobs: int, folder: Path | None, minutes: int | None = None
) -> Engine | None:
    """The engine of a learner's parameter: None, an `Engine`, or text such as "ray:ADDRESS" or
    "slurm:PARTITION".

    All workers must see the work folder, which is optional on this machine. `minutes` is the time
    limit of a task of Slurm.
    """
    if text is None or isinstance(text, Engine):
        return text

    name, _, target = str(text).partition(":")
    options: dict[str, Any] = {}
    if name == "ray":
        options["address"] = target or None
    elif name == "slurm":
        options["partition"] = target or None

    takes_no_target = bool(target) and not options
    if takes_no_target or str(text).endswith(":"):
        raise InputError(
            f"engine={text!r} must be joblib, ray, ray:ADDRESS, slurm or slurm:PARTITION;"
            " correct it"
        )
    works_elsewhere = name == "slurm" or bool(target)
    if folder is None and works_elsewhere:
        raise InputError(
            f"engine={text!r} needs folder=... (--folder), which all workers must see; pass it"
        )
    if name == "slurm" and folder is not None:
        options["folder"] = str(Path(folder) / "slurm")
    options["minutes"] = minutes
    return engine(name, jobs, **options)


def whole(name: str, value: Any) -> int:
    """`value` as an int; refuse anything but a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputError(f"{name}={value!r} must be a whole number of at least 1; correct it")
    return int(value)
