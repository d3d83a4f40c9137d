"""Exact deviates of any precision, with limbs of 4 bits: each part's probabilities are enumerated
and compared with 60 digits of what the proof says.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mechanisms.scripted_limbs import Fixed, Rejected, Script, enumerated, seeded
from tacit.mechanisms import expansions

DIGITS = 60
REMAINDER = Fraction(1, 10**6)
CELLS = [(0,), (3, 8), (8,), (11, 5), (15, 15)]


def number(function, *values):
    """The value of a function of fractions, to 60 digits."""
    with mpmath.workdps(DIGITS):
        wide = [mpmath.mpf(value.numerator) / value.denominator for value in values]
        return Fraction(int(function(*wide) * mpmath.mpf(10) ** 55), 10**55)


def check(bounds, expected):
    """Lower bounds, which together lack a millionth, of all outcomes and no others."""
    assert set(bounds) <= set(expected)
    for outcome, probability in expected.items():
        bound = bounds.get(outcome, Fraction(0))
        # 60 digits were rounded to 55
        assert bound <= probability + Fraction(1, 10**50), outcome
        assert bound >= probability - REMAINDER, outcome


def coin(probability):
    return {True: probability, False: 1 - probability}


@pytest.mark.parametrize("limbs", CELLS)
def test_a_uniform_number_is_below_a_bound_with_the_probability_of_the_bound(limbs):
    bound = Fixed(limbs)
    check(enumerated(lambda stream: expansions.Expansion(stream) < bound), coin(bound.value))
    check(enumerated(lambda stream: bound < expansions.Expansion(stream)), coin(1 - bound.value))


def test_of_two_uniform_numbers_each_is_smaller_half_of_the_time():
    def first_is_smaller(stream):
        return expansions.Expansion(stream) < expansions.Expansion(stream)

    ties = Fraction(1, 16**2)
    bounds = enumerated(first_is_smaller, ties)
    assert bounds == {True: (1 - ties) / 2, False: (1 - ties) / 2}


class OfRun:
    """A number of a falling run below `bound`. If j - 1 numbers fell, they are uniform below the
    bound, and the j-th is below the smallest with probability bound/j.
    """

    def __init__(self, stream):
        self.stream = stream

    def __lt__(self, other):
        self.bound = other.bound
        self.place = other.place + 1
        return self.stream.flip(self.bound / self.place)


class Bound(OfRun):
    def __init__(self, value):
        self.bound = value
        self.place = 0


@pytest.mark.parametrize("limbs", CELLS)
def test_a_falling_run_is_even_with_probability_exp_of_minus_its_bound(limbs, monkeypatch):
    """Composed of comparisons, which are enumerated above."""
    x = Fixed(limbs).value
    monkeypatch.setattr(expansions, "Expansion", OfRun)
    bounds = enumerated(lambda stream: not expansions.run_is_odd(Bound(x), stream))
    check(bounds, coin(number(lambda v: mpmath.exp(-v), x)))


def test_a_half_coin_has_probability_exp_of_minus_a_half(monkeypatch):
    """Composed of falling runs."""

    def run_is_odd(bound, stream):
        low, high = bound.interval()
        even = number(lambda a, b: (mpmath.exp(-a) - mpmath.exp(-b)) / (b - a), low, high)
        return stream.flip(1 - even)

    monkeypatch.setattr(expansions, "run_is_odd", run_is_odd)
    check(enumerated(expansions.half_coin), coin(number(mpmath.exp, Fraction(-1, 2))))


@pytest.mark.parametrize("m", [1, 2, 3, 6, 7, 16, 17, 85])
def test_integers_below_m_are_uniform(m):
    """Limbs that are drawn again branch, so that these courses end at a few of them."""
    missing = Fraction(1, 200)
    bounds = enumerated(lambda stream: expansions.below(m, stream), missing)
    assert sorted(bounds) == list(range(m))
    for bound in bounds.values():
        assert Fraction(1, m) - missing <= bound <= Fraction(1, m)
    if m in (1, 2, 16):
        assert set(bounds.values()) == {Fraction(1, m)}


@pytest.mark.parametrize("k", [0, 1, 2, 9])
@pytest.mark.parametrize("limbs", CELLS)
def test_a_ratio_coin_has_its_probability(k, limbs, monkeypatch):
    """Composed of an integer below 2k + 2 and a comparison."""

    def below(m, stream):
        return stream.choose([(value, Fraction(1, m)) for value in range(m)])

    monkeypatch.setattr(expansions, "below", below)
    x = Fixed(limbs)
    bounds = enumerated(lambda stream: expansions.ratio_coin(k, x, stream))
    check(bounds, coin((2 * k + x.value) / (2 * k + 2)))


@pytest.mark.parametrize("k", [0, 1, 2, 9])
@pytest.mark.parametrize("limbs", CELLS)
def test_a_step_coin_has_its_probability(k, limbs, monkeypatch):
    """Composed of comparisons and ratio coins, which are enumerated above."""

    def ratio_coin(k, x, stream):
        return stream.flip((2 * k + x.bound) / (2 * k + 2))

    monkeypatch.setattr(expansions, "ratio_coin", ratio_coin)
    monkeypatch.setattr(expansions, "Expansion", OfRun)
    x = Fixed(limbs).value
    bounds = enumerated(lambda stream: expansions.step_coin(k, Bound(x), stream))
    check(bounds, coin(number(lambda v: mpmath.exp(-v * (2 * k + v) / (2 * k + 2)), x)))


def middle(x):
    """A number in the cell of the first limb of x."""
    return (Fraction(x.limb(0)) + Fraction(1, 2)) / 16


def test_a_round_of_a_normal_deviate_has_the_density_of_its_absolute_value(monkeypatch):
    """Composed of half coins and step coins. Step coins see the middle of the cell of x in place of
    x.
    """
    half = number(mpmath.exp, Fraction(-1, 2))

    def flip(stream, probability):
        """The second tail ends the round: the first one ended step 1."""
        heads = stream.flip(probability)
        stream.tails += not heads
        if stream.tails == 2:
            raise Rejected
        return heads

    def step_coin(k, x, stream):
        x = middle(x)
        return flip(stream, number(lambda v: mpmath.exp(-v * (2 * k + v) / (2 * k + 2)), x))

    monkeypatch.setattr(expansions, "half_coin", lambda stream: flip(stream, half))
    monkeypatch.setattr(expansions, "step_coin", step_coin)

    def cell(stream):
        k, x = expansions.normal_deviate(stream)
        return k, x.limb(0)

    bounds = enumerated(cell)
    assert set(bounds) >= {(k, limb) for k in range(3) for limb in range(16)}
    for (k, limb), bound in bounds.items():
        x = k + (limb + Fraction(1, 2)) / 16
        density = number(lambda v: mpmath.exp(-(v**2) / 2) * (1 - mpmath.exp(-0.5)) / 16, x)
        assert density - REMAINDER <= bound <= density + Fraction(1, 10**20)


def test_an_exponential_deviate_has_its_density(monkeypatch):
    """Composed of falling runs, which see the middle of the cell of x; for k = 0 and 1."""

    def run_is_odd(x, stream):
        odd = stream.flip(1 - number(lambda v: mpmath.exp(-v), middle(x)))
        stream.tails += odd
        if stream.tails == 2:
            raise Rejected
        return odd

    monkeypatch.setattr(expansions, "run_is_odd", run_is_odd)

    def cell(stream):
        k, x = expansions.exponential_deviate(stream)
        return k, x.limb(0)

    bounds = enumerated(cell)
    accepted = [
        number(lambda v: mpmath.exp(-v), (limb + Fraction(1, 2)) / 16) / 16 for limb in range(16)
    ]
    rejected = 1 - sum(accepted)
    # the error of the midpoint rule
    assert float(rejected) == pytest.approx(math.exp(-1), abs=2e-4)
    assert set(bounds) == {(k, limb) for k in (0, 1) for limb in range(16)}
    for (k, limb), bound in bounds.items():
        assert 0 <= rejected**k * accepted[limb] - bound <= REMAINDER


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3), Fraction(3.7), Fraction(1, 8)])
@pytest.mark.parametrize("k", [0, 1, 5])
def test_rounded_values_have_the_lengths_of_their_intervals(scale, k, monkeypatch):
    """x is uniform and nearly all of it undecided after one limb; a sign is fair."""
    monkeypatch.setattr(expansions, "LIMBS_OF_X", 1)

    def deviate(stream):
        return k, expansions.Expansion(stream)

    bounds = enumerated(lambda stream: expansions.rounded_noise(deviate, scale, stream))
    expected = {}
    low = scale * k + Fraction(1, 2)
    high = scale * (k + 1) + Fraction(1, 2)
    for value in range(math.floor(low), math.ceil(high)):
        length = (min(high, value + 1) - max(low, value)) / scale
        for signed in (value, -value):
            expected[signed] = expected.get(signed, 0) + length / 2
    assert sum(expected.values()) == 1
    check(bounds, expected)


def test_equal_limbs_do_not_decide_and_the_next_ones_do():
    stream = Script((7, 7, 3, 9))
    first = expansions.Expansion(stream)
    second = expansions.Expansion(stream)
    assert first < second
    assert (first.limb(1), second.limb(1)) == (3, 9)
    assert first.interval() == (Fraction(7 * 16 + 3, 256), Fraction(7 * 16 + 4, 256))


def test_the_upper_end_of_an_interval_does_not_count():
    """Numbers from 7/16 to below 8/16 round to 0; 8/16 itself rounds to 1."""
    assert expansions.rounded(Fraction(1), 0, expansions.Expansion(Script((7,)))) == 0
    assert expansions.rounded(Fraction(1), 0, expansions.Expansion(Script((8,)))) == 1
    # 13/12 times these numbers may round to either
    stream = Script((7, 7))
    assert expansions.rounded(Fraction(13, 12), 0, expansions.Expansion(stream)) == 1
    assert stream.position == 2


@pytest.mark.parametrize("name", ["normal_deviate", "exponential_deviate"])
def test_the_first_moments(name):
    stream = seeded(3)
    drawn = []
    for _ in range(20_000):
        k, x = getattr(expansions, name)(stream)
        drawn.append(k + float(sum(x.interval())) / 2)
    drawn = np.array(drawn)
    mean, square = {
        "normal_deviate": (math.sqrt(2 / math.pi), 1.0),
        "exponential_deviate": (1.0, 2.0),
    }[name]
    assert abs(drawn.mean() - mean) < 0.035
    assert abs((drawn**2).mean() - square) < 0.2
