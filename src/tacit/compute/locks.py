"""Exclusive locks on files, which the system releases however a process ends; only Linux and macOS
have them.
"""

from typing import IO, Any

try:
    import fcntl
except ModuleNotFoundError:
    raise ImportError(
        "tacit runs on Linux and macOS, since it locks ledgers and stores by flock; on Windows run"
        " it in WSL"
    ) from None


def lock(file: IO[Any], *, wait: bool = True) -> None:
    """Lock an open file until it is closed; BlockingIOError without `wait` if another process holds
    the lock.
    """
    operation = fcntl.LOCK_EX
    if not wait:
        operation |= fcntl.LOCK_NB
    fcntl.flock(file, operation)
