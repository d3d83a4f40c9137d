"""Exact sums of integers beyond 64 bits, as pairs of int64, and Gaussian noise on them.

Sums in int64 have room for 2^30 records in class sums and 2^26 in second moments, and for noise.
Records are therefore summed in runs that int64 holds, and the sums of the runs are added as `Wide`
integers. These hold sums below 2^85: 2^53 records in class sums, and 2^49 in second moments.

Unit: that of the rows that are summed. A total is the same integer whatever the runs, so its
sensitivity is that of the integer rows, as `gaussian.py` and `outer_products.py` prove it.

Theorem: that of the noise, as these files state it. Noise is added to the integer, exactly. The
nearest float64 is released, which is post-processing of the noisy integer, and the float64 that a
sum in int64 is converted to.

Source: arithmetic in two words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tacit.compute.wide import Totals, Wide, added
from tacit.errors import InputError
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource


def sums_of_runs(
    blocks: Iterable[Block], most: int, sums_of: Callable[[Iterator[Block]], Integers]
) -> Totals:
    """Sum any number of records: `sums_of` sums up to `most` of them in int64.

    Under a unit per person `most` is a number of persons.
    """
    runs = _runs(iter(blocks), most)
    totals: Totals = sums_of(next(runs))
    for run in runs:
        totals = added(totals, sums_of(run))
    return totals


def _runs(blocks: Iterator[Block], most: int) -> Iterator[Iterator[Block]]:
    """Cut a stream of blocks into runs of at most `most` records; there is one run at least.

    A run must be read to its end before the next one is asked for.
    """
    # the first block of the next run, which `run` sets once a run is full
    first = next(blocks, None)
    if first is None:
        yield iter(())

    def run(block: Block) -> Iterator[Block]:
        nonlocal first
        first = None
        records = _n_records(block, most)
        yield block
        for following in blocks:
            records += _n_records(following, most)
            if records > most:
                first = following
                return
            yield following

    while first is not None:
        yield run(first)


def _n_records(block: Block, most: int) -> int:
    """Number of records, or persons, of a block; refuse more than `most`, which are no run."""
    n = len(block.rows if block.ends is None else block.ends)
    if n > most:
        raise InputError(
            f"a block of {n} records or persons passes 64-bit sums; cut it into blocks of {most}"
        )
    return n


def with_gaussian_noise(totals: Totals, *, scale: float, noise: NoiseSource) -> Totals:
    """Add independent Gaussian noise of this standard deviation, a whole number, to each
    integer.
    """
    if isinstance(totals, Wide):
        zeros = np.zeros(totals.shape, dtype=np.int64)
        return totals + noise.gaussian(zeros, scale=scale)
    return noise.gaussian(totals, scale=scale)
