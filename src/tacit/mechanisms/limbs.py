"""Random bits for exact samplers: streams of limbs, which are uniformly random integers of a few
bits.

Source of the bits: OpenSSL's generator (`ssl.RAND_bytes`), AES-256 in counter mode with a key that
changes after each request [NIST SP 800-90A, CTR_DRBG]. Each thread has an instance, seeded by one
of the process, which the operating system seeds with 256 bits. A forked process seeds them again
[OpenSSL, `RAND(7)` and `EVP_RAND(7)`]. It gives 1.3 to 3 GB/s on one core, where the operating
system's `getrandom` gives 0.2 to 0.4 GB/s, which would take longer than the samplers themselves.

No bit is used twice. A stream lives within one call in one thread, and the bits that it has left
are dropped with it. So no stream can be inherited by a forked process or shared by two threads.
(Bits that a program keeps for later calls must be discarded after each fork.) What tacit does not
defend against is a virtual machine that is copied while it runs: both copies may continue with the
same state of OpenSSL's generator, until it is seeded again.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

WIDTH = 16
"""Bits of a limb. Narrow limbs take fewer random bits and tie more often: two limbs of 16 bits are
equal with probability 2^-16."""

Block = NDArray[np.uint16]
Source = Callable[[int], Block]
"""Maps n to n fresh limbs."""

# Limbs that are drawn when a stream has run out.
_MORE = 64


def random_limbs(n: int) -> Block:
    """Draw n limbs of 16 bits, of shape (n,)."""
    from ssl import RAND_bytes

    return np.frombuffer(RAND_bytes(2 * n), dtype=np.uint16)


class Limbs:
    """A stream of limbs, which are drawn in blocks and read in order.

    Parameters
    ----------
    n : int
        Limbs of the first block, above 0; more are drawn when they are read.
    width : int, default=WIDTH
        Bits of a limb, up to 16.
    source : callable, default=random_limbs
        Draws blocks of limbs of this width.

    Attributes
    ----------
    block : ndarray of shape (n,)
        The current block.
    position : int
        Of the first limb of the block that has not been read.
    drawn : int
        Limbs of all blocks so far.
    """

    def __init__(self, n: int, width: int = WIDTH, source: Source = random_limbs) -> None:
        self.width = width
        self._source = source
        self.block = source(n)
        self.position = 0
        self.drawn = n

    def read(self) -> int:
        """The next limb."""
        if self.position == len(self.block):
            self.block = self._source(_MORE)
            self.position = 0
            self.drawn += _MORE
        limb = int(self.block[self.position])
        self.position += 1
        return limb
