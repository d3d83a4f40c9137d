"""Rounded Gaussian and Laplace noise: the compiled loops against arithmetic of any precision on the
same limbs, and the distribution.
"""

import itertools
import math
import os
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.scripted_limbs import Fixed, MoreNeeded, Script, block, in_new_process, seeded
from tacit.compute.threads import in_threads
from tacit.mechanisms import deviates, expansions
from tacit.mechanisms.limbs import Limbs

WIDTH = 4
SLOW = {
    "add_gaussian_noise": expansions.normal_deviate,
    "add_laplace_noise": expansions.exponential_deviate,
}
PARTS = {
    "run_is_odd": (
        lambda limbs: deviates.run_is_odd(limbs, 0, 9),
        lambda stream: expansions.run_is_odd(Fixed((9, 9, 9)), stream),
    ),
    "half_coin": (lambda limbs: deviates.half_coin(limbs, 0, WIDTH), expansions.half_coin),
    "below": (
        lambda limbs: deviates.below(limbs, 0, WIDTH, 6),
        lambda stream: expansions.below(6, stream),
    ),
    "ratio_coin": (
        lambda limbs: deviates.ratio_coin(limbs, 0, WIDTH, 1, 9),
        lambda stream: expansions.ratio_coin(1, Fixed((9, 9, 9)), stream),
    ),
    "step_coin": (
        lambda limbs: deviates.step_coin(limbs, 0, WIDTH, 1, 9),
        lambda stream: expansions.step_coin(1, Fixed((9, 9, 9)), stream),
    ),
}


class Tie(Exception):
    """Two numbers have the same first limb."""


@pytest.mark.parametrize("part", PARTS)
def test_a_loop_decides_what_the_first_limbs_decide_and_nothing_else(part, monkeypatch):
    """All courses of up to three limbs of 4 bits."""
    compiled, exact = PARTS[part]
    limb_of = expansions.Expansion.limb

    def first_limb(self, i):
        if i > 0:
            raise Tie
        return limb_of(self, i)

    monkeypatch.setattr(expansions.Expansion, "limb", first_limb)
    stops = 0
    for n in (1, 2, 3):
        for limbs in itertools.product(range(16), repeat=n):
            stream = Script(limbs, WIDTH)
            try:
                expected = exact(stream)
            except (MoreNeeded, Tie):
                expected = deviates._STOP
            outcome, end = compiled(block(limbs))
            assert outcome == expected, limbs
            stops += outcome == deviates._STOP
            assert outcome == deviates._STOP or end == stream.position
    assert 0 < stops < 16 + 16**2 + 16**3


@pytest.mark.parametrize("draw", SLOW)
@pytest.mark.parametrize("width", [4, 5, 8, 16])
@pytest.mark.parametrize("scale", [1.0, 3.7, 2.0**40, 2.0**55, 2.0**-3, 2.0**-9])
def test_loops_and_any_precision_draw_the_same_numbers_from_the_same_limbs(draw, width, scale):
    """Ties, ambiguous roundings and ends of blocks are common for narrow limbs and large scales."""
    n = 400
    values = np.arange(n) * 1000
    stream = seeded(7, width, 100)
    n_slow = getattr(deviates, draw)(values, scale, stream)

    other = seeded(7, width, 100)
    expected = [
        1000 * i + expansions.rounded_noise(SLOW[draw], Fraction(scale), other) for i in range(n)
    ]
    assert values.tolist() == expected
    assert (stream.drawn, stream.position) == (other.drawn, other.position)
    assert 0 < n_slow <= n


@pytest.mark.parametrize("draw", SLOW)
def test_a_number_may_end_with_its_block(draw):
    """Blocks of every length, so that they end at every place of a number."""
    for size in range(1, 60):
        values = np.zeros(20, dtype=np.int64)
        stream = seeded(size, 16, size)
        getattr(deviates, draw)(values, 100.0, stream)
        other = seeded(size, 16, size)
        noise = [expansions.rounded_noise(SLOW[draw], Fraction(100), other) for _ in range(20)]
        assert values.tolist() == noise
        assert stream.position == other.position


def test_two_words_round_as_integers_do():
    source = random.Random(2)
    edges = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    for _ in range(20_000):
        mantissa = source.choice([2**52, 2**53 - 1, source.randrange(2**52, 2**53)])
        shift = source.choice([62, 63, 64, 65, 66, 100, 123, 124, 200, source.randrange(62, 130)])
        k = source.choice([0, 1, 63, source.randrange(64)])
        fraction = source.choice([*edges, source.randrange(2**64)])
        extra = source.choice([0, mantissa - 1])
        words = map(np.uint64, (mantissa, shift, k, fraction, extra))
        exact = (mantissa * (k * 2**64 + fraction) + extra + 2 ** (shift - 1)) >> shift
        assert deviates.rounded(*words) == exact


@pytest.mark.parametrize("fraction", [0, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("scale", [1.0, 2.0**40, 3.7])
def test_a_result_is_certain_only_if_all_of_its_interval_rounds_alike(fraction, scale):
    """The first limbs of x end just before, at and after a half."""
    mantissa, exponent = math.frexp(scale)
    mantissa = np.uint64(mantissa * 2**53)
    shift = np.uint64(64 + 53 - exponent)
    limbs = [(fraction >> place) & 0xFFFF for place in (48, 32, 16, 0)]
    for k in (0, 1, 5):
        for sign in (0, 0x8000):
            rest = block([*limbs[1:], sign])
            x = np.int64(limbs[0])
            certain, result, end = deviates.signed(rest, 0, 16, k, x, mantissa, shift)
            low = Fraction(scale) * (k + Fraction(fraction, 2**64)) + Fraction(1, 2)
            high = low + Fraction(scale) / 2**64
            values = {math.floor(low), math.ceil(high) - 1}
            assert certain == (len(values) == 1)
            if certain:
                assert abs(result) in values
                assert result == 0 or (result < 0) == bool(sign)
                assert end == 4


LAWS = {"add_gaussian_noise": stats.norm, "add_laplace_noise": stats.laplace}


def ends_of_cells(law, scale):
    """About 200 cells whose ends are halves; of small scales a cell for each number."""
    if scale < 10:
        return np.arange(-40, 40) + 0.5
    return np.unique(np.floor(law.ppf(np.linspace(0, 1, 201)[1:-1]) * scale)) + 0.5


def counts_in_cells(values, law, scale):
    ends = ends_of_cells(law, scale)
    return np.bincount(np.searchsorted(ends, values), minlength=len(ends) + 1)


def pvalue(observed, law, scale):
    """Chi-square test of the counts of rounded numbers in cells."""
    ends = ends_of_cells(law, scale)
    probabilities = np.diff(law.cdf(np.concatenate([[-np.inf], ends / scale, [np.inf]])))
    cells = observed.sum() * probabilities
    large = cells > 20
    if not large.all():
        observed = np.append(observed[large], observed[~large].sum())
        cells = np.append(cells[large], cells[~large].sum())
    return stats.chisquare(observed, cells * observed.sum() / cells.sum()).pvalue


def drawn(draw, n, scale, stream=None):
    values = np.zeros(n, dtype=np.int64)
    getattr(deviates, draw)(values, scale, stream)
    return values


@pytest.mark.parametrize("draw", SLOW)
@pytest.mark.parametrize("scale", [1.0, 3.7, 100.0, 2.0**32])
def test_noise_has_the_law_of_rounded_continuous_noise(draw, scale):
    law = LAWS[draw]
    observed = counts_in_cells(drawn(draw, 1_000_000, scale), law, scale)
    assert pvalue(observed, law, scale) > 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("draw", SLOW)
@pytest.mark.parametrize("scale", [1.0, 3.7, 100.0, 2.0**32])
def test_a_hundred_million_numbers_have_it_too(draw, scale):
    law = LAWS[draw]
    parts = in_threads(
        lambda n: counts_in_cells(drawn(draw, n, scale), law, scale), [1_000_000] * 100
    )
    assert pvalue(sum(parts), law, scale) > 1e-6


@pytest.mark.parametrize("draw", SLOW)
@pytest.mark.parametrize("scale", [1.0, 3.7])
def test_narrow_limbs_that_tie_often_change_no_law(draw, scale):
    stream = seeded(11, 4, 1000)
    law = LAWS[draw]
    observed = counts_in_cells(drawn(draw, 30_000, scale, stream), law, scale)
    assert pvalue(observed, law, scale) > 1e-6


def test_the_moments_of_wide_noise():
    n = 1_000_000
    noise = drawn("add_gaussian_noise", n, 2.0**40) / 2.0**40
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((noise**power).mean() - moment) < 6 * math.sqrt(variance / n)
    noise = drawn("add_laplace_noise", n, 2.0**40) / 2.0**40
    for power, moment, variance in ((1, 0, 2), (2, 2, 20), (3, 0, 720)):
        assert abs((noise**power).mean() - moment) < 6 * math.sqrt(variance / n)


def test_a_block_takes_the_limbs_that_its_numbers_need():
    n = 20_000
    for draw, expected in (
        ("add_gaussian_noise", deviates.LIMBS_OF_NORMAL),
        ("add_laplace_noise", deviates.LIMBS_OF_EXPONENTIAL),
    ):
        stream = Limbs(40 * n)
        assert getattr(deviates, draw)(np.zeros(n, dtype=np.int64), 2.0**32, stream) < 30
        assert stream.position / n == pytest.approx(expected, abs=0.4)


NOISE = """
values = np.zeros(50, dtype=np.int64)
deviates.add_gaussian_noise(values, 2.0**40)
print(values.tobytes().hex())
"""


def noise_of(_=None):
    return drawn("add_gaussian_noise", 50, 2.0**40).tobytes()


def test_no_two_streams_are_alike():
    """Of threads, of forked processes and of processes that are started anew."""
    first = noise_of()
    start, end = os.pipe()
    if os.fork() == 0:
        os.write(end, noise_of())
        os._exit(0)
    results = [first, noise_of(), os.read(start, 400), *in_threads(noise_of, range(30))]
    os.wait()
    for _ in range(2):
        results.append(in_new_process("deviates", NOISE))
    assert len(set(results)) == len(results) == 35


@pytest.mark.parametrize("draw", SLOW)
def test_sums_that_overflow_wrap_alike_in_loops_and_at_any_precision(draw):
    """Wide limbs let the loop add, narrow ones leave nearly all to any precision."""
    n = 400
    for width in (4, 16):
        at_zero = np.zeros(n, dtype=np.int64)
        getattr(deviates, draw)(at_zero, 2.0**40, seeded(3, width, 100))
        values = np.full(n, 2**63 - 1)
        with np.errstate(all="raise"):
            getattr(deviates, draw)(values, 2.0**40, seeded(3, width, 100))
        assert np.array_equal(values, at_zero + np.full(n, 2**63 - 1))
        assert values.min() < 0 < values.max()
