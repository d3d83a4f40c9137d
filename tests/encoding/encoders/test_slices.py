"""Slices of a batch over threads."""

import threading

import numpy as np
import pytest

from tacit.encoding.encoders.base import SLICE, in_slices

PICTURES = np.random.default_rng(0).random((11, 3, 4, 4), dtype=np.float32)


@pytest.mark.parametrize("n", [1, SLICE, SLICE + 1, 2 * SLICE, 11])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_in_order_and_every_slice_has_one_size(n, threads):
    sizes, prepared = [], []

    def run(pictures):
        sizes.append(len(pictures))
        return pictures.reshape(len(pictures), -1)[:, :5]

    rows = in_slices(run, PICTURES[:n], threads, lambda: prepared.append(threading.get_ident()))
    assert np.array_equal(rows, PICTURES[:n].reshape(n, -1)[:, :5])
    assert set(sizes) == {min(n, SLICE)}
    assert 1 <= len(set(prepared)) <= threads


def test_the_fault_of_a_slice_is_raised():
    def run(pictures):
        raise ValueError("too hot")

    with pytest.raises(ValueError, match="too hot"):
        in_slices(run, PICTURES, 2)
