"""What holds in the process that runs an item, whichever engine started it: one thread, and the caller's modules."""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Packed = tuple[list[str], bytes]

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def alone(function: Callable[[T], R], item: T) -> R:
    """`function(item)`, computed with one thread of BLAS, OpenMP and torch.

    What is loaded keeps its threads afterwards; a library that the function itself is the first to load stays at one.
    """
    with environment(ONE_THREAD), _torch_alone(), one_thread_each():
        return function(item)


_users = 0
_of_users = Lock()
_restore: list[Callable[[], None]] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """One thread for what is loaded of BLAS and OpenMP, within the block, and torch as it was afterwards.

    Limits hold for the whole process, so where blocks overlap the first sets them and the last takes them back.
    """
    global _users
    with _of_users:
        if _users == 0:
            torch: Any = sys.modules.get("torch")
            of_torch = [] if torch is None else [partial(torch.set_num_threads, torch.get_num_threads())]
            limited = _libraries(len(sys.modules)).limit(limits=1)
            _restore[:] = [limited.restore_original_limits, *of_torch]
        _users += 1
    try:
        yield
    finally:
        with _of_users:
            _users -= 1
            if _users == 0:
                for restore in _restore:
                    restore()


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set these variables of the environment within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def shielding_workers() -> Iterator[None]:
    """Let processes that are started in this block ignore Ctrl-C, which this process still gets.

    A terminal sends it to all processes of a command. Workers would print a traceback each; this process ends them.
    """
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # when it starts its process, it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _torch_alone() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """What threadpoolctl finds loaded; to look takes milliseconds, so only when the number of modules has changed."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def pack(task: Callable[[T], R]) -> Packed:
    """A task for a process that may not find its modules yet."""
    import cloudpickle  # unlike pickle, it takes functions of a script along

    return sys.path, cloudpickle.dumps(task)


def unpack(packed: Packed) -> Callable[[Any], Any]:
    """The task, its modules looked for where the caller finds them too."""
    path, task = packed
    sys.path.extend(folder for folder in path if folder not in sys.path)
    unpacked: Callable[[Any], Any] = pickle.loads(task)
    return unpacked
