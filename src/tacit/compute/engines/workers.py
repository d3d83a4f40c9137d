"""Set-up of a process that runs an item, under any engine: one thread, no Ctrl-C, and the
caller's modules.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, cast

Packed = tuple[list[str], bytes]
"""The caller's `sys.path`, and the pickled task."""

# Read by libraries when they are loaded.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def alone(function: Callable[[Any], Any], item: Any) -> Any:
    """`function(item)`, computed with one thread of BLAS, OpenMP and torch.

    Loaded libraries get their threads back afterwards; a library that the function loads first
    reads its number of threads from the environment then, and stays at one.
    """
    with environment(ONE_THREAD), one_thread_each():
        return function(item)


# How many blocks of `one_thread_each` are running, and what undoes their limits at the end.
_users = 0
_restore: list[Callable[[], None]] = []
_lock = Lock()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Within the block, loaded libraries (BLAS, OpenMP, torch) compute with one thread for each
    thread that calls them.

    Limits hold for the whole process: where blocks overlap, the first sets them and the last
    restores them.
    """
    global _users
    with _lock:
        if _users == 0:
            _restore[:] = _limit_libraries()
        _users += 1
    try:
        # OpenMP keeps torch's number for each calling thread, so every block sets it in its own
        one_torch_thread()
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for restore in _restore:
                    restore()


def _limit_libraries() -> list[Callable[[], None]]:
    """Limit the loaded libraries to one thread; return the functions that undo it."""
    # only if it is loaded, since an import takes seconds
    torch: Any = sys.modules.get("torch")
    restore_torch = []
    if torch is not None:
        # read the number before the limits, which may change it
        restore_torch.append(partial(torch.set_num_threads, torch.get_num_threads()))

    # torch's number comes back last, since the limits may change it again
    limits = _libraries(len(sys.modules)).limit(limits=1)
    return [limits.restore_original_limits, *restore_torch]


def one_torch_thread() -> None:
    """Let torch, if it is loaded, compute with one thread when this thread calls it."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables within the block."""
    original_values = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in original_values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def in_directory(directory: Path) -> Iterator[None]:
    """Work in the caller's working folder, in which its relative paths start, if this machine has
    it; without it, absolute paths may still be found.
    """
    if not directory.is_dir() or directory == Path.cwd():
        yield
        return
    with chdir(directory):
        yield


@contextmanager
def shielding_workers() -> Iterator[None]:
    """Let processes that are started in this block ignore Ctrl-C, which this process still gets.

    A terminal sends Ctrl-C to all processes of a command: each worker would print a traceback. This
    process ends them.
    """
    from multiprocessing.resource_tracker import ensure_running

    # multiprocessing starts this helper with its first process, and unblocks the signal then. So it
    # is started before the signal is blocked here, which the workers inherit.
    ensure_running()
    original_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, original_mask)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """The libraries that threadpoolctl finds.

    The search takes milliseconds, so its result is cached until the number of imported modules
    changes: only an import loads another library.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def pack(task: Callable[[Any], Any]) -> Packed:
    """A task as bytes, with the paths on which a worker finds its modules."""
    # unlike pickle, it includes functions of a script
    import cloudpickle

    return sys.path, cloudpickle.dumps(task)


def unpack(packed: Packed) -> Callable[[Any], Any]:
    """The task, with modules imported from where the caller imports them."""
    path, task = packed
    for folder in path:
        if folder not in sys.path:
            sys.path.append(folder)
    return cast(Callable[[Any], Any], pickle.loads(task))
