"""Rounded Gaussian and rounded Laplace noise on integers, exact and fast.

Noise is sign floor(s (k + x) + 1/2), where k + x is the absolute value of an exactly normal, or an
exactly exponential, number, and s > 0 is a float64, a dyadic rational. Added to an integer T, it
gives T + sN rounded to an integer. So all that is released is a function of T + sN with a real
number N, and what holds for the continuous mechanism holds here without any correction.

`expansions.py` has the algorithms with their proof. The loops here, compiled by numba, run the same
steps on the first limb of each uniform number. They read the same limbs in the same order and
decide only what the first limbs decide. A loop stops
- where the limbs of two numbers that are compared are equal, and the next limb would decide;
- where the block of limbs ends;
- where floor(s (k + x) + 1/2) is not the same for all x that begin with the four limbs of x;
- where k is so large (64) that the arithmetic below might overflow.
It stops before it decides, and leaves the stream at the first limb of that number.
`expansions.py` then draws this number, from the same limbs and as many more as it needs. The number
is not discarded or drawn anew, which would bias it. So the two together are the algorithm of
`expansions.py` on one stream of limbs, each read once. With limbs of 16 bits about one number in
8,000 ends there.

Rounding in the loops. Let s = m 2^q with 2^52 <= m < 2^53, and let X be the limbs of x, as a
multiple of 2^-64 (limbs narrower than 16 bits leave the last bits 0). x lies in [X, L + 1) 2^-64,
where L has all those last bits 1. With t = 64 - q,
    s (k + x) + 1/2 = (m (k 2^64 + 2^64 x) + 2^(t-1)) / 2^t.
The integer part of m (k 2^64 + 2^64 x) takes all values from P = m (k 2^64 + X) to m (k 2^64 + L) +
m - 1, since x does not reach the upper end. 2^(t-1) is an integer, so the floor is certain exactly
if it is the same for these two integers. They are below m (k + 1) 2^64 <= 2^123 for k < 64. For t >
123 both floors are 0. Else all sums are below 2^124, and two words of 64 bits hold them. Scales up
to 2^55 have q <= 3, so t >= 61, and results up to 2^61.

The time that a number takes depends on its random bits, and so on the noise: tacit does not claim
constant time.

Source: as in `expansions.py`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.compiled import compiled
from tacit.mechanisms.expansions import (
    LIMBS_OF_X,
    Deviate,
    exponential_deviate,
    normal_deviate,
    rounded_noise,
)
from tacit.mechanisms.limbs import Limbs

Integers = NDArray[np.int64]

LIMBS_OF_NORMAL = 20.6
"""Limbs of 16 bits that a normal number takes on average: 41 bytes."""

LIMBS_OF_EXPONENTIAL = 8.4
"""Limbs of 16 bits that an exponential number takes on average: 17 bytes."""

_LARGE_K = 64

# What a loop returns for what it does not decide.
_STOP = -1

_WORD = np.uint64(2**32 - 1)
_HALF_WORD = np.uint64(32)
_WHOLE_WORD = np.uint64(64)
_ONE = np.uint64(1)

# The loops allocate nothing. Without counts of references to the block, which each call of a coin
# would change, they take a third of the time.
_loop = partial(compiled, _nrt=False)


@_loop
def run_is_odd(limbs: Any, at: int, bound: Any) -> tuple[int, int]:
    """Draw a falling run below a number whose first limb is `bound`; 1 if its length is odd, else
    0.
    """
    odd = 0
    while at < len(limbs):
        limb = np.int64(limbs[at])
        at += 1
        if limb == bound:
            break
        if limb > bound:
            return odd, at
        bound = limb
        odd = 1 - odd
    return _STOP, at


@_loop
def half_coin(limbs: Any, at: int, width: int) -> tuple[int, int]:
    """Flip a coin that shows heads, 1, with probability exp(-1/2)."""
    if at == len(limbs):
        return _STOP, at
    first = np.int64(limbs[at])
    if first >= 1 << (width - 1):
        return 1, at + 1
    odd, at = run_is_odd(limbs, at + 1, first)
    return odd, at


@_loop
def half_coins(limbs: Any, at: int, width: int, n: int) -> tuple[int, int]:
    """Flip half coins; 1 if all n show heads, else 0, after the first tail."""
    for _ in range(n):
        heads, at = half_coin(limbs, at, width)
        if heads != 1:
            return heads, at
    return 1, at


@_loop
def level(limbs: Any, at: int, width: int) -> tuple[int, int]:
    """Number of half coins that show heads before the first tail."""
    k = 0
    while True:
        heads, at = half_coin(limbs, at, width)
        if heads == _STOP:
            return _STOP, at
        if heads == 0:
            return k, at
        k += 1


@_loop
def below(limbs: Any, at: int, width: int, m: int) -> tuple[Any, int]:
    """Draw a uniformly random integer from 0 to m - 1, for m <= 2^width."""
    size = 1 << width
    end = size - size % m
    while at < len(limbs):
        limb = np.int64(limbs[at])
        at += 1
        if limb < end:
            return limb % m, at
    return _STOP, at


@_loop
def ratio_coin(limbs: Any, at: int, width: int, k: int, x: Any) -> tuple[int, int]:
    """Flip a coin that shows heads with probability (2k + x)/(2k + 2), x of this first limb."""
    number, at = below(limbs, at, width, 2 * k + 2)
    if number == _STOP:
        return _STOP, at
    if number < 2 * k:
        return 1, at
    if number > 2 * k:
        return 0, at

    if at == len(limbs):
        return _STOP, at
    limb = np.int64(limbs[at])
    at += 1
    if limb == x:
        return _STOP, at
    if limb < x:
        return 1, at
    return 0, at


@_loop
def step_coin(limbs: Any, at: int, width: int, k: int, x: Any) -> tuple[int, int]:
    """Flip a coin that shows heads with probability exp(-x (2k + x)/(2k + 2)), x of this first
    limb.
    """
    even = 1
    bound = x
    while at < len(limbs):
        limb = np.int64(limbs[at])
        at += 1
        if limb == bound:
            break
        if limb > bound:
            return even, at

        passes, at = ratio_coin(limbs, at, width, k, x)
        if passes == _STOP:
            break
        if passes == 0:
            return even, at
        bound = limb
        even = 1 - even
    return _STOP, at


@_loop
def step_coins(limbs: Any, at: int, width: int, k: int, x: Any) -> tuple[int, int]:
    """Flip step coins; 1 if all k + 1 show heads, else 0, after the first tail."""
    for _ in range(k + 1):
        heads, at = step_coin(limbs, at, width, k, x)
        if heads != 1:
            return heads, at
    return 1, at


@_loop
def normal(limbs: Any, at: int, width: int) -> tuple[int, Any, int]:
    """Draw the absolute value k + x of a standard normal number: k, the first limb of x, and the
    place after the last limb that was read; k is negative where the loop stops.
    """
    # 2k + 2 is at most 2^width
    largest = min(_LARGE_K, 1 << (width - 1))
    while True:
        k, at = level(limbs, at, width)
        if k == _STOP or k >= largest:
            return _STOP, 0, at
        accepted, at = half_coins(limbs, at, width, k * (k - 1))
        if accepted == _STOP:
            return _STOP, 0, at
        if accepted == 0:
            continue

        if at == len(limbs):
            return _STOP, 0, at
        x = np.int64(limbs[at])
        accepted, at = step_coins(limbs, at + 1, width, k, x)
        if accepted == _STOP:
            return _STOP, 0, at
        if accepted == 1:
            return k, x, at


@_loop
def exponential(limbs: Any, at: int) -> tuple[int, Any, int]:
    """Draw a standard exponential number k + x, in the form of `normal`."""
    for k in range(_LARGE_K):
        if at == len(limbs):
            break
        x = np.int64(limbs[at])
        odd, at = run_is_odd(limbs, at + 1, x)
        if odd == _STOP:
            break
        if odd == 0:
            return k, x, at
    return _STOP, 0, at


@_loop
def rounded(mantissa: Any, shift: Any, k: Any, fraction: Any, extra: Any) -> Any:
    """floor((m (k 2^64 + fraction) + extra + 2^(shift - 1)) / 2^shift); all arguments are uint64,
    and extra < m.
    """
    if shift > 123:
        return np.int64(0)

    # The product m * fraction in two words, by halves of words.
    m_high = mantissa >> _HALF_WORD
    m_low = mantissa & _WORD
    f_high = fraction >> _HALF_WORD
    f_low = fraction & _WORD
    lowest = f_low * m_low
    middle = f_high * m_low + (lowest >> _HALF_WORD)
    other = f_low * m_high + (middle & _WORD)
    high = f_high * m_high + (middle >> _HALF_WORD) + (other >> _HALF_WORD)
    low = (other << _HALF_WORD) | (lowest & _WORD)

    high += k * mantissa
    low += extra
    if low < extra:
        high += _ONE

    # Add 1/2 and take the floor.
    if shift > _WHOLE_WORD:
        high += _ONE << (shift - _WHOLE_WORD - _ONE)
        return np.int64(high >> (shift - _WHOLE_WORD))
    half = _ONE << (shift - _ONE)
    low += half
    if low < half:
        high += _ONE
    if shift == _WHOLE_WORD:
        return np.int64(high)
    return np.int64((high << (_WHOLE_WORD - shift)) | (low >> shift))


@_loop
def signed(
    limbs: Any, at: int, width: int, k: int, x: Any, mantissa: Any, shift: Any
) -> tuple[bool, Any, int]:
    """Read the other limbs of x and a sign, and round: whether the result is certain, the result,
    and the place after the last limb that was read.
    """
    if k == _STOP or at + LIMBS_OF_X > len(limbs):
        return False, 0, at
    fraction = np.uint64(x)
    for _ in range(LIMBS_OF_X - 1):
        fraction = (fraction << np.uint64(width)) | np.uint64(limbs[at])
        at += 1
    negative = limbs[at] >> (width - 1)
    at += 1

    unknown_bits = np.uint64(64 - LIMBS_OF_X * width)
    first = fraction << unknown_bits
    last = first | ((_ONE << unknown_bits) - _ONE)
    size = rounded(mantissa, shift, np.uint64(k), first, np.uint64(0))
    if size != rounded(mantissa, shift, np.uint64(k), last, mantissa - _ONE):
        return False, 0, at
    if negative:
        return True, -size, at
    return True, size, at


@_loop
def add_normal(
    limbs: Any, at: int, width: int, mantissa: Any, shift: Any, values: Any, done: int
) -> tuple[int, int]:
    """Add rounded Gaussian noise to values[done:], in place, until a number cannot be decided;
    return that number and the place of its first limb.
    """
    while done < len(values):
        k, x, end = normal(limbs, at, width)
        certain, noise, end = signed(limbs, end, width, k, x, mantissa, shift)
        if not certain:
            break
        values[done] += noise
        done += 1
        at = end
    return done, at


@_loop
def add_exponential(
    limbs: Any, at: int, width: int, mantissa: Any, shift: Any, values: Any, done: int
) -> tuple[int, int]:
    """Add rounded Laplace noise, as `add_normal` does."""
    while done < len(values):
        k, x, end = exponential(limbs, at)
        certain, noise, end = signed(limbs, end, width, k, x, mantissa, shift)
        if not certain:
            break
        values[done] += noise
        done += 1
        at = end
    return done, at


def add_gaussian_noise(values: Integers, scale: float, stream: Limbs | None = None) -> int:
    """Add Gaussian noise of standard deviation `scale`, rounded to integers, to each value, in
    place.

    Parameters
    ----------
    values : ndarray of shape (n,)
    scale : float
        Above 0 and at most 2^55.
    stream : Limbs, optional
        Random bits; by default a new stream of the length that n numbers take.

    Returns
    -------
    int
        Numbers that were drawn in arithmetic of any precision.
    """
    if stream is None:
        stream = Limbs(_expected(len(values), LIMBS_OF_NORMAL))
    return _add_noise(values, scale, add_normal, normal_deviate, stream)


def add_laplace_noise(values: Integers, scale: float, stream: Limbs | None = None) -> int:
    """Add Laplace noise of this scale, rounded to integers, as `add_gaussian_noise` does."""
    if stream is None:
        stream = Limbs(_expected(len(values), LIMBS_OF_EXPONENTIAL))
    return _add_noise(values, scale, add_exponential, exponential_deviate, stream)


def _expected(n: int, limbs: float) -> int:
    """Limbs of a block that suffice for n numbers in all but few cases."""
    # 5 standard deviations, which are below the mean for one number
    return math.ceil(n * limbs + 5 * limbs * math.sqrt(n))


def _add_noise(
    values: Integers, scale: float, kernel: Callable[..., Any], deviate: Deviate, stream: Limbs
) -> int:
    """Let the compiled loop add what it can decide, and draw the other numbers one by one."""
    fraction, exponent = math.frexp(scale)
    mantissa = np.uint64(math.ldexp(fraction, 53))
    # s = m 2^q with q = exponent - 53
    shift = np.uint64(64 + 53 - exponent)
    exact_scale = Fraction(scale)

    n_slow = 0
    done = 0
    while True:
        done, stream.position = kernel(
            stream.block, stream.position, stream.width, mantissa, shift, values, done
        )
        if done == len(values):
            return n_slow
        # an array of one number wraps in silence where it overflows, as the loop does
        values[done : done + 1] += rounded_noise(deviate, exact_scale, stream)
        done += 1
        n_slow += 1
