"""Exact normal and exponential deviates, multiplied by a number and rounded to integers, in
arithmetic of any precision.

A uniformly random real number u in [0, 1) is an `Expansion`: its limbs, which are its digits to the
base 2^w, are drawn as they are needed. Two expansions are compared limb by limb. While all limbs
are equal, both get one more, so a comparison is never decided by fewer limbs than decide it, and
it ends with probability 1. These are the only operations on real numbers here, and so what is
returned has exactly the law of the algorithm with real numbers.

`deviates.py` does the same with compiled loops, which stop at the numbers that they cannot decide;
those are drawn here, from the same limbs in the same order.

Falling runs. For a bound b, uniform numbers u_1, u_2, ... are drawn until b > u_1 > u_2 > ... fails
for the first time. At least j of them fall with probability b^j/j!, so the length of the run is
even with probability sum (-b)^j/j! = exp(-b) [von Neumann 1951].

Half coin: heads with probability exp(-1/2), if the run below 1/2 is even. (Karney's algorithm H.)
Whether u_1 < 1/2 is the first bit of u_1; if it is, the run below u_1 must be odd.

Step coin: heads with probability exp(-x (2k + x)/(2k + 2)), for an integer k >= 0 and an expansion
x. In a run below x each number that falls must also pass a coin of its own, of probability c = (2k
+ x)/(2k + 2), or the run ends. At least j fall and pass with probability (x c)^j/j!, so the length
is even with probability exp(-x c). (Karney's algorithm B.) The coin of probability c draws a
uniform integer f from 0 to 2k + 1. It passes if f < 2k, and if f = 2k and another uniform number is
below x.

Normal deviate, |N| = k + x (Karney's algorithm N):
1. k is the number of heads before the first tail of half coins: P(k) is proportional to exp(-k/2).
2. k (k - 1) half coins must all show heads, else go to 1: exp(-k (k - 1)/2).
3. x is uniform in [0, 1).
4. k + 1 step coins must all show heads, else go to 1: exp(-x (2k + x)/2).
The three factors multiply to exp(-k^2/2 - k x - x^2/2) = exp(-(k + x)^2/2), so k + x has the
density of |N|. A fair sign, one bit, makes it N.

Exponential deviate, E = k + x: x is uniform in [0, 1). If the run below x is even, which has
probability exp(-x), x is accepted. Otherwise k, which begins at 0, is raised by 1, and another x is
drawn. A rejection has probability 1/e, so k and x are independent, P(k) is proportional to exp(-k)
and the density of x to exp(-x). A fair sign makes it a Laplace deviate.

Rounding. The result is floor(s (k + x) + 1/2) with the sign, for a dyadic rational s. With n limbs
X of x known, x lies in [X, X + 1) 2^(-w n), and the floor is known if it is the same for all x in
that interval: if floor(low) = ceil(high) - 1 for s (k + x) + 1/2 in [low, high). If not, x gets one
more limb. This ends with probability 1.

Source: von Neumann 1951, "Various techniques used in connection with random digits"; Karney 2016,
"Sampling exactly from the normal distribution", ACM TOMS 42(1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tacit.mechanisms.limbs import Limbs

LIMBS_OF_X = 4
"""Limbs of x that are drawn before the sign; further limbs follow where rounding needs them."""


class Expansion:
    """A uniformly random real number in [0, 1), whose limbs are drawn as they are needed."""

    def __init__(self, stream: Limbs) -> None:
        self._stream = stream
        self._limbs = [stream.read()]

    def limb(self, i: int) -> int:
        """The limb at place i, the first at 0."""
        while len(self._limbs) <= i:
            self._limbs.append(self._stream.read())
        return self._limbs[i]

    def __lt__(self, other: Expansion) -> bool:
        i = 0
        while self.limb(i) == other.limb(i):
            i += 1
        return self.limb(i) < other.limb(i)

    def interval(self) -> tuple[Fraction, Fraction]:
        """The interval [low, high) of the numbers that begin with the limbs drawn so far."""
        limbs_value = 0
        for limb in self._limbs:
            limbs_value = (limbs_value << self._stream.width) + limb
        size = 1 << (self._stream.width * len(self._limbs))
        return Fraction(limbs_value, size), Fraction(limbs_value + 1, size)

    def extend(self) -> None:
        """Draw one more limb."""
        self.limb(len(self._limbs))


Deviate = Callable[[Limbs], tuple[int, Expansion]]
"""Draws the integer part k and the fraction x of a deviate."""


def run_is_odd(bound: Expansion, stream: Limbs) -> bool:
    """Draw a falling run below `bound`; tell whether its length is odd."""
    odd = False
    while (number := Expansion(stream)) < bound:
        bound = number
        odd = not odd
    return odd


def half_coin(stream: Limbs) -> bool:
    """Flip a coin that shows heads with probability exp(-1/2)."""
    first = Expansion(stream)
    half = 1 << (stream.width - 1)
    if first.limb(0) >= half:
        return True
    return run_is_odd(first, stream)


def below(m: int, stream: Limbs) -> int:
    """Draw a uniformly random integer from 0 to m - 1."""
    n_limbs = 1
    while m > 1 << (stream.width * n_limbs):
        n_limbs += 1
    size = 1 << (stream.width * n_limbs)

    while True:
        number = 0
        for _ in range(n_limbs):
            number = (number << stream.width) + stream.read()
        # numbers below a multiple of m are uniform modulo m; others are drawn again
        if number < size - size % m:
            return number % m


def ratio_coin(k: int, x: Expansion, stream: Limbs) -> bool:
    """Flip a coin that shows heads with probability (2k + x)/(2k + 2)."""
    number = below(2 * k + 2, stream)
    if number == 2 * k:
        return Expansion(stream) < x
    return number < 2 * k


def step_coin(k: int, x: Expansion, stream: Limbs) -> bool:
    """Flip a coin that shows heads with probability exp(-x (2k + x)/(2k + 2))."""
    even = True
    bound = x
    while (number := Expansion(stream)) < bound and ratio_coin(k, x, stream):
        bound = number
        even = not even
    return even


def normal_deviate(stream: Limbs) -> tuple[int, Expansion]:
    """Draw k and x such that k + x is the absolute value of a standard normal number."""
    while True:
        k = 0
        while half_coin(stream):
            k += 1
        if not all(half_coin(stream) for _ in range(k * (k - 1))):
            continue

        x = Expansion(stream)
        if all(step_coin(k, x, stream) for _ in range(k + 1)):
            return k, x


def exponential_deviate(stream: Limbs) -> tuple[int, Expansion]:
    """Draw k and x such that k + x is a standard exponential number."""
    k = 0
    while True:
        x = Expansion(stream)
        if not run_is_odd(x, stream):
            return k, x
        k += 1


def rounded_noise(deviate: Deviate, scale: Fraction, stream: Limbs) -> int:
    """Draw a deviate with a random sign, multiply it by a dyadic rational, and round it."""
    k, x = deviate(stream)
    x.limb(LIMBS_OF_X - 1)
    negative = stream.read() >> (stream.width - 1)

    size = rounded(scale, k, x)
    if negative:
        return -size
    return size


def rounded(scale: Fraction, k: int, x: Expansion) -> int:
    """floor(scale (k + x) + 1/2), for a scale above 0; extends x until it is certain."""
    while True:
        low, high = x.interval()
        least = math.floor(scale * (k + low) + Fraction(1, 2))
        most = math.ceil(scale * (k + high) + Fraction(1, 2)) - 1
        if least == most:
            return least
        x.extend()
