"""Streams of random limbs: uniform, and no two alike."""

import os
import threading

import numpy as np
from scipy.stats import chisquare

from mechanisms.scripted_limbs import in_new_process
from tacit.mechanisms.limbs import Limbs, random_limbs


def test_limbs_are_uniform():
    limbs = random_limbs(1_000_000)
    assert limbs.dtype == np.uint16
    for part in (limbs >> 8, limbs & 255):
        assert chisquare(np.bincount(part, minlength=256)).pvalue > 1e-6


def test_each_limb_is_read_once_and_in_order_across_blocks():
    drawn = []

    def source(n):
        drawn.extend(range(len(drawn), len(drawn) + n))
        return np.array(drawn[-n:], dtype=np.uint16)

    stream = Limbs(3, source=source)
    assert [stream.read() for _ in range(200)] == list(range(200))
    assert stream.drawn == len(drawn)


def numbers(_=None):
    """A thousand limbs, as bytes."""
    return random_limbs(1000).tobytes()


def test_threads_have_blocks_of_their_own():
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(numbers())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 16


def test_a_forked_process_draws_other_limbs_than_its_parent():
    numbers()  # OpenSSL's generator has a state that a fork copies
    ends = [os.pipe() for _ in range(3)]
    for _, end in ends:
        if os.fork() == 0:
            os.write(end, numbers())
            os._exit(0)
    drawn = [numbers(), numbers()]
    for start, _ in ends:
        drawn.append(os.read(start, 2000))
        os.wait()
    assert [len(part) for part in drawn] == [2000] * 5
    assert len(set(drawn)) == 5


def test_started_processes_draw_other_limbs():
    code = "print(limbs.random_limbs(1000).tobytes().hex())"
    drawn = [in_new_process("limbs", code) for _ in range(2)]
    assert len({*drawn, numbers()}) == 3
