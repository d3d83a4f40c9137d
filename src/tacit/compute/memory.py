"""An upper bound on the memory that is available to this process."""

import os
from pathlib import Path

MEMINFO, LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int | None:
    """Free bytes of the machine, at most the limit of a cgroup v2 container; None where the system does not say."""
    sizes = [_of_the_machine(), _of_the_container()]
    return min((size for size in sizes if size is not None), default=None)


def _of_the_machine() -> int | None:
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _of_the_container() -> int | None:
    try:
        return int(LIMIT.read_text(encoding="ascii"))  # "max" without a limit
    except (OSError, ValueError):
        return None
