"""An upper bound on the memory that is available to this process."""

import os
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
LIMIT = Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int | None:
    """Free bytes of the machine, at most the limit of a cgroup v2 container; None where the system
    does not say.
    """
    sizes = []
    with suppress(OSError, ValueError):
        sizes.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

    # MemAvailable also counts memory that caches would give back, so it replaces the free pages.
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        sizes = [int(line.split()[1]) * 1024]

    # The limit is "max", which is no number, if there is none.
    with suppress(OSError, ValueError):
        sizes.append(int(LIMIT.read_text(encoding="ascii")))
    return min(sizes, default=None)
