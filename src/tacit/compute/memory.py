"""An upper bound on the memory that is available to this process."""

import os
from contextlib import suppress
from pathlib import Path

MEMINFO, LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int | None:
    """Free bytes of the machine, at most the limit of a cgroup v2 container; None where the system
    does not say.
    """
    sizes = []
    with suppress(OSError, ValueError):
        sizes.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    # also counts memory that caches would give back
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        sizes = [
            next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        ]
    with suppress(OSError, ValueError):  # the limit is "max" if there is none
        sizes.append(int(LIMIT.read_text(encoding="ascii")))
    return min(sizes, default=None)
