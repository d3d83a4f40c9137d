import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.mechanisms import counts
from tacit.mechanisms.noise import OpenDPNoise, ResearchNoise, SecureNoise
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, PureDP

SOURCES = [SecureNoise(), ResearchNoise(0)]
SOURCE = pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)


@SOURCE
@pytest.mark.parametrize("z", [0.5, 6.0])
def test_gaussian_counts_have_the_stated_deviation(noise, z):
    times = 2000
    values = np.array([counts.noisy_count(40, Gaussian(z), noise) for _ in range(times)])
    assert stats.kstest((values - 40) / z, "norm").pvalue > 1e-6


def discrete(support, epsilon):
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(support))


def rounded(support, epsilon):
    return np.diff(stats.laplace.cdf(np.append(support, support[-1] + 1) - 0.5, scale=1 / epsilon))


@pytest.mark.thorough
@pytest.mark.parametrize(("noise", "law"), [(SecureNoise(), rounded), (OpenDPNoise(), discrete)])
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_secure_pure_counts_are_rounded_and_those_of_opendp_discrete(noise, law, epsilon):
    values = np.array([counts.noisy_count(40, PureDP(epsilon), noise) for _ in range(1500)]) - 40
    support = np.arange(-3, 4)
    expected = law(support, epsilon)
    observed = [(values == k).sum() for k in support]
    rest = [1500 - sum(observed), 1500 * (1 - expected.sum())]
    assert stats.chisquare([*observed, rest[0]], [*(1500 * expected), rest[1]]).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_rounded_laplace_noise_loses_no_more_than_its_epsilon(epsilon):
    # up to 0, where differences of the distribution function are exact enough
    support = np.arange(-30, 1)
    losses = np.log(rounded(support, epsilon) / rounded(support - 1, epsilon))
    assert np.abs(losses).max() <= epsilon * (1 + 1e-9)


def test_research_pure_counts_are_about_laplace():
    values = [counts.noisy_count(0, PureDP(0.1), SOURCES[1]) for _ in range(4000)]
    assert np.std(values) == pytest.approx(math.sqrt(2) / 0.1, rel=0.1)


def test_neighbours_of_a_pure_count_lose_what_randomized_response_does():
    """P(k) against P(k-1) of the discrete Laplace distribution, summed exactly over k: not that of
    continuous noise.
    """
    epsilon, order = 0.8, 3.0
    k = np.arange(-400, 401)
    one = np.exp(-epsilon * np.abs(k)) * np.tanh(epsilon / 2)
    other = np.exp(-epsilon * np.abs(k - 1)) * np.tanh(epsilon / 2)
    exact = math.log((one**order * other ** (1 - order)).sum()) / (order - 1)
    assert PureDP(epsilon).renyi(np.array([order]))[0] == pytest.approx(exact)


@SOURCE
def test_without_a_bound_the_count_is_exact(noise):
    assert (
        counts.noisy_count(7, Gaussian(0.0), noise)
        == counts.noisy_count(7, PureDP(math.inf), noise)
        == 7
    )


def test_the_event_spends_the_budget():
    assert counts.event(Budget.pure(0.5)) == PureDP(0.5)
    assert counts.event(Budget.zcdp(0.5)) == Gaussian(1.0)
    assert counts.event(Budget.zcdp(math.inf)) == Gaussian(0.0)


def share(right):
    """The count of one person, of whose records these are right."""
    return counts.counted(np.array(right), np.array([len(right)])) if right else Fraction()


PEOPLE = [
    right for m in range(7) for right in itertools.combinations_with_replacement((False, True), m)
]


def test_a_person_and_a_record_of_a_person_move_the_count_by_one_at_most():
    """All persons with up to six records; whole numbers for Laplace noise too, whatever other
    persons add.
    """
    added = [(right, ()) for right in PEOPLE]
    joined = [((*right, new), right) for right in PEOPLE for new in (False, True)]
    moves = {
        name: [share(one) - share(other) for one, other in pairs]
        for name, pairs in (("p", added), ("r", joined))
    }
    assert max(moves["p"]) == max(moves["r"]) == 1
    assert min(moves["p"]) == 0
    assert min(moves["r"]) >= -1
    assert min(moves["r"]) < Fraction(-49, 100)  # a wrong record beside a right one
    for pairs in (added, joined):
        for others in (Fraction(0), Fraction(1, 3), Fraction(7, 2)):
            whole = [
                math.floor(others + share(one)) - math.floor(others + share(other))
                for one, other in pairs
            ]
            assert -1 <= min(whole) <= max(whole) == 1


def test_persons_count_by_their_shares():
    marks = np.array([True, False, True, True, False, False, True])
    assert counts.counted(marks) == 4
    found = counts.counted(marks, np.array([1, 4, 6, 7]))
    assert 0 <= 1 + Fraction(2, 3) + 0 + 1 - found < Fraction(4, 2**32)
    assert found.denominator <= 2**32


@SOURCE
def test_shares_are_released_as_they_are_or_rounded_down(noise):
    shares = Fraction(29, 8)
    assert (
        counts.noisy_count(shares, Gaussian(0.0), noise)
        == counts.noisy_count(shares, PureDP(math.inf), noise)
        == 3.625
    )
    assert counts.noisy_count(shares, Gaussian(1e-6), noise) == pytest.approx(3.625, abs=1e-4)
    assert counts.noisy_count(shares, PureDP(1e6), noise) == 3


def test_a_count_moves_by_one_if_a_record_or_person_is_another():
    """A record is counted or not; of two persons with other records each has a share between 0 and
    1.
    """
    marks = [
        np.array(bits)
        for size in (1, 2, 3)
        for bits in itertools.product([False, True], repeat=size)
    ]
    records = {counts.counted(own) for own in marks if len(own) == 1}
    shares = {counts.counted(own, np.array([len(own)])) for own in marks}
    for values, moved in ((records, counts.COUNT.replace), (shares, counts.COUNT.replace_person)):
        assert max(values) - min(values) == moved == 1
    assert counts.COUNT.change_label == counts.COUNT.change_labels_of_person == 1
