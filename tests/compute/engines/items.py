"""What the items of the engines' tests do; workers import it."""

import hashlib
import os
import signal
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info


def double(word):
    return 2 * word


def product(path, seed):
    """Digest of a matrix product, one factor read from a file."""
    left = np.load(path, mmap_mode="r")
    right = np.random.default_rng(seed).standard_normal(left.shape[::-1])
    return hashlib.sha256((left @ right).tobytes()).hexdigest()


def threads(item):
    """Most threads of any library, and what a library would read that is loaded now."""
    return max(library["num_threads"] for library in threadpool_info()), os.environ[
        "OMP_NUM_THREADS"
    ]


def hears_interrupts(item):
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def torch_threads(item):
    import torch

    return torch.get_num_threads()


def fails_on_3(item):
    if item == 3:
        raise ZeroDivisionError("item 3 is bad")
    return item


def sleeps_if_odd(folder, item):
    """Sleep for an hour on odd items: who waits for one sees that it was not cancelled, on any
    machine.
    """
    Path(folder, str(item)).touch()
    time.sleep(3600 * (item % 2))


def hears_and_sleeps_if_odd(folder, item):
    """Tell whether interrupts are heard here, after such a sleep."""
    sleeps_if_odd(folder, item)
    return hears_interrupts(item)


def dies(item):
    os._exit(1)


def dies_once(marker, item):
    """Ends its process on item 2, unless the marker is there."""
    if item == 2 and not marker.exists():
        marker.touch()
        os._exit(1)
    return item
