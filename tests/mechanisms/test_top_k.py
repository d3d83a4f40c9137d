"""Joint top-k: exact enumeration of P(S) over all neighbours, and the sampler against it."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from messages import stating
from tacit.errors import BudgetError
from tacit.mechanisms import top_k
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.privacy.events import Exponential, Parallel

UNIT = 2**20
SOURCES = [SecureNoise(), ResearchNoise(2)]


def log_probabilities(scores, k, epsilon):
    """ln P(S) of every set, from the shipped keys and scale: softmax over ranks, then a uniform
    fill.
    """
    ranked = top_k.best_first(scores)
    keys, scale = top_k.rank_keys(scores[ranked], k, sensitivity=UNIT, epsilon=epsilon)
    log_rank = keys / scale - logsumexp(keys / scale)
    position = {candidate: rank for rank, candidate in enumerate(ranked)}
    sets = {}
    for chosen in itertools.combinations(range(len(scores)), k):
        worst = max(position[candidate] for candidate in chosen)
        sets[chosen] = log_rank[worst - (k - 1)] - math.log(math.comb(worst, k - 1))
    return sets


def direct(scores, k, epsilon):
    """ln P(S) from the definition: exp(epsilon times the worst member's utility)."""
    sets = {
        s: epsilon * min(scores[i] for i in s) / UNIT
        for s in itertools.combinations(range(len(scores)), k)
    }
    total = logsumexp(list(sets.values()))
    return {s: value - total for s, value in sets.items()}


def neighbours(n):
    """Score vectors on a grid, with each way in which one record can raise them by 0, half or
    one.
    """
    grid = [np.array(base) * UNIT for base in itertools.product([0, 1, 3], repeat=n)]
    rises = [np.array(rise) * (UNIT // 2) for rise in itertools.product([0, 1, 2], repeat=n)]
    for base in grid:
        for rise in rises:
            yield base, base + rise


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (4, 3), (4, 4)])
@pytest.mark.parametrize("epsilon", [1.0])
def test_enumeration_over_all_neighbours(n, k, epsilon):
    known, worst = {}, 0.0

    def of(scores):
        key = tuple(scores)
        if key not in known:
            known[key] = np.array(list(log_probabilities(scores, k, epsilon).values()))
        return known[key]

    for scores, grown in neighbours(n):
        losses = of(scores) - of(grown)
        worst = max(worst, np.abs(losses).max())
        assert losses.max() - losses.min() <= epsilon  # bounded range
    assert worst <= epsilon


@pytest.mark.parametrize(("n", "k"), [(5, 1), (7, 2), (6, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_is_attained(n, k, epsilon):
    """One set stays behind while all the others, far ahead, rise."""
    scores = np.array([0] + [round(40 / epsilon)] * (n - 1)) * UNIT
    if k > 1:
        scores[: n - k] = 0
    grown = scores + UNIT * (scores > 0)
    a, b = log_probabilities(scores, k, epsilon), log_probabilities(grown, k, epsilon)
    worst = max(abs(a[s] - b[s]) for s in a)
    assert 0.9 * epsilon < worst <= epsilon


@pytest.mark.parametrize(("n", "k"), [(5, 1), (6, 2), (6, 3), (5, 5)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_it_is_the_mechanism_of_the_definition(n, k, epsilon):
    rng = np.random.default_rng(n * k)
    for _ in range(20):
        scores = rng.integers(0, 4 * UNIT, n)
        shipped, wanted = log_probabilities(scores, k, epsilon), direct(scores, k, epsilon)
        for chosen, value in wanted.items():
            assert shipped[chosen] == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(("n", "k", "ratio"), [(5, 1, 1.58), (7, 2, 1.25)])
def test_the_published_count_is_not_private(n, k, ratio):
    """C(y, k) in place of C(y-1, k-1) leaves a factor y/k: at epsilon 1, at least the
    specification's ratios.
    """

    def published(scores):
        ranked = sorted(range(n), key=lambda i: (-scores[i], i))
        sets = {}
        for chosen in itertools.combinations(range(n), k):
            y = max(ranked.index(i) for i in chosen) + 1
            sets[chosen] = scores[ranked[y - 1]] * 0.5 + math.log(
                math.comb(y, k) / math.comb(y - 1, k - 1)
            )
        total = logsumexp(list(sets.values()))
        return {s: value - total for s, value in sets.items()}

    tied = [0.0] * n
    # one record lifts the last k of tied candidates a little: rank n to rank k
    grown = [0.0] * (n - k) + [1e-3] * k
    last = tuple(range(n - k, n))
    assert published(tied)[last] - published(grown)[last] > ratio > 1


@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize(
    ("scores", "k"),
    [
        ([5, 4, 4, 0, 1], 2),
        ([0, 0, 0, 0], 3),
        ([60, 0, 1, 2], 2),
        ([2, 1, 0], 1),
        ([30, 29, 0, 28, 27.5], 3),
    ],
)
def test_samplers_have_the_stated_distribution(noise, scores, k):
    scores = np.round(np.array(scores) * UNIT).astype(np.int64)
    times = 2000 if isinstance(noise, ResearchNoise) else 1000  # secure noise is slow
    found = Counter(
        tuple(top_k.select_set(scores, k, sensitivity=UNIT, epsilon=1.0, noise=noise).tolist())
        for _ in range(times)
    )
    expected = {s: times * math.exp(value) for s, value in direct(scores, k, 1.0).items()}
    assert all(list(s) == sorted(set(s)) for s in found)
    likely = {s: e for s, e in expected.items() if e > 8}
    statistic = sum((found[s] - e) ** 2 / e for s, e in likely.items())
    assert stats.chi2.sf(statistic, max(1, len(likely) - 1)) > 1e-6
    assert sum(found[s] for s, e in expected.items() if e < 1e-6) == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize(("n", "k", "gap"), [(1_000_000, 3, 30.0), (200_000, 5, 25.0)])
def test_ranks_among_very_many_candidates(noise, n, k, gap):
    """k leaders `gap` ahead of n - k equal ones: the set of leaders against C(n, k) others."""
    scores = np.zeros(n, dtype=np.int64)
    leaders = np.arange(k) * 7
    scores[leaders] = round(gap * UNIT)
    log_sets = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    p = 1 / (1 + math.exp(log_sets - gap))
    times = 40
    wins = sum(
        np.array_equal(
            top_k.select_set(scores, k, sensitivity=UNIT, epsilon=1.0, noise=noise), leaders
        )
        for _ in range(times)
    )
    assert stats.binomtest(wins, times, p).pvalue > 1e-6


def test_the_other_members_are_uniform():
    noise = ResearchNoise(5)
    scores = np.array([9, 9, 9, 9, 9, 9, 1], dtype=np.int64) * UNIT
    counts = Counter()
    for _ in range(3000):
        counts.update(
            top_k.select_set(scores, 2, sensitivity=UNIT, epsilon=4.0, noise=noise).tolist()
        )
    leaders = [counts[i] for i in range(6)]
    assert stats.chisquare(leaders).pvalue > 1e-6


@pytest.mark.parametrize(("m", "k"), [(5, 1), (50, 7), (1_000_000, 4), (3000, 300), (400, 390)])
def test_log_binomials(m, k):
    import mpmath

    found = top_k.log_binomials(m, k)
    assert len(found) == m - k + 1
    for y in {k, k + 1, (k + m) // 2, m} & set(range(k, m + 1)):
        exact = mpmath.log(mpmath.binomial(y - 1, k - 1))
        eta = k * 2.0**-52 * (top_k.largest_partial_sum(m, k) + 32)
        assert abs(found[y - k] - float(exact)) <= eta + 1e-15


def test_extreme_scores_stay_in_range():
    scores = np.array([2**60, 0, 2**59, 5], dtype=np.int64)
    for noise in SOURCES:
        assert top_k.select_set(scores, 2, sensitivity=UNIT, epsilon=1.0, noise=noise).tolist() == [
            0,
            2,
        ]


def test_an_epsilon_below_the_float_error_is_refused():
    with pytest.raises(BudgetError, match="is too small"):
        top_k.rank_keys(np.zeros(100, dtype=np.int64), 3, sensitivity=UNIT, epsilon=1e-14)


@pytest.mark.parametrize(
    ("m", "k"), [(2, 2), (10, 3), (10, 9), (11, 6), (11, 10), (1000, 10), (1000, 990), (1001, 501)]
)
def test_the_bound_on_logarithms_holds_and_is_near(m, k):
    """Of ln C(y - 1, i) for all ranks y and all i below k, which is what the sums run through."""
    largest = max(math.log(math.comb(m - 1, i)) for i in range(k))
    assert largest + 0.9 <= top_k.largest_partial_sum(m, k) <= largest + 1.1


@pytest.mark.parametrize(("m", "k"), [(10, 1), (10, 3), (10_000, 700), (10**6, 10**5)])
@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_epsilon_includes_the_error_of_the_logarithms(m, k, epsilon):
    """(W + 2)/s + 4 eta is at most epsilon, eta the error of k additions and logarithms, each
    within an ulp.
    """
    scale = top_k.rank_scale(m, k, sensitivity=UNIT, epsilon=epsilon)
    longest = (
        math.log(math.comb(m - 1, min(k - 1, (m - 1) // 2)))
        if m < 10**5
        else top_k.largest_partial_sum(m, k)
    )
    eta = k * math.ulp(1.0) * (Fraction(longest) + 32)
    assert Fraction(UNIT + 2) / Fraction(scale) + 4 * eta <= Fraction(epsilon)


@pytest.mark.parametrize("bits", range(20, 60, 4))
def test_keys_beyond_64_bits_are_refused(bits):
    """A key reaches the scale times the largest logarithm, which may be too long where the scale
    alone is not.
    """
    m, k, sensitivity, epsilon = 10_000, 1000, 2**bits, 0.01
    if sensitivity / epsilon * top_k.log_binomials(m, k).max() >= 2**62:
        with pytest.raises(BudgetError, match="64-bit scores"):
            top_k.rank_scale(m, k, sensitivity=sensitivity, epsilon=epsilon)
    else:
        assert (
            top_k.rank_scale(m, k, sensitivity=sensitivity, epsilon=epsilon) > sensitivity / epsilon
        )


def test_event():
    assert top_k.event(0.5) == Parallel(Exponential(0.5), "classes")


def test_positions_are_those_of_a_sort_of_everything():
    """With many ties, for every set of ranks."""
    rng = np.random.default_rng(0)
    for size in (1, 2, 9, 60):
        for _ in range(30):
            scores = rng.integers(-3, 4, size)
            ranks = np.sort(rng.choice(size, rng.integers(1, size + 1), replace=False))
            wanted = np.sort(top_k.best_first(scores)[ranks])
            assert np.array_equal(top_k.positions(scores, -np.sort(-scores), ranks), wanted)


@pytest.mark.parametrize(("m", "k"), [(50, 2), (1000, 5), (10**6, 20)])
def test_the_scale_of_ranks_charges_rounding_and_is_never_below_the_exact_one(m, k):
    """(sensitivity + 2)/(epsilon - 4 eta), rounded up, in exact arithmetic; eta bounds the float
    error of the keys.
    """
    eta = k * 2.0**-52 * (top_k.largest_partial_sum(m, k) + 32)
    for epsilon in np.random.default_rng(0).uniform(0.01, 5, 100):
        for sensitivity in (1, 3, 2**24, 2**36 + 1):
            scale = top_k.rank_scale(m, k, sensitivity=sensitivity, epsilon=float(epsilon))
            wanted = (sensitivity + 2) / (Fraction(float(epsilon)) - 4 * Fraction(eta))
            assert wanted <= Fraction(scale) <= wanted * (1 + Fraction(1, 2**51))
    for refused in (1.5 * eta, 4 * eta, 6 * eta, 8 * eta):
        with pytest.raises(BudgetError, match=stating("float error")):
            top_k.rank_scale(m, k, sensitivity=1, epsilon=refused)


@pytest.mark.parametrize("k", [2, 3])
def test_every_class_in_which_a_person_sits_pays_for_its_rounding(k):
    """A person with 16 records in as many of 20 classes; each moves the scores of its class by 1,
    of a window of 16.
    """
    window, classes, epsilon, n = 16, 20, 1.0, 5

    def ranges(classes):
        """The widest losses in one class, over scores on a grid and all that one such record can
        make of them.
        """
        scale = top_k.rank_scale(n, k, sensitivity=window, epsilon=epsilon, classes=classes)
        logs = np.rint(scale * top_k.log_binomials(n, k))
        grid = np.array(list(itertools.combinations_with_replacement((40, 2, 1, 0), n)))
        widest = 0.0
        for scores in grid:
            one = keys(scores, logs, scale)
            for rise in itertools.product((0, 1), repeat=n):
                other = keys(scores + rise, logs, scale)
                widest = max(widest, np.ptp([one[s] - other[s] for s in one]))
        return widest

    def keys(scores, logs, scale):
        order = np.argsort(-scores, kind="stable")
        log_rank = (scores[order][k - 1 :] + logs) / scale
        log_rank -= logsumexp(log_rank)
        place = np.argsort(order)
        sets = itertools.combinations(range(n), k)
        return {
            s: log_rank[max(place[list(s)]) - k + 1]
            - math.log(math.comb(max(place[list(s)]), k - 1))
            for s in sets
        }

    assert window * ranges(classes) <= epsilon
    assert window * ranges(1) > 1.3 * epsilon


@pytest.mark.parametrize(("sensitivity", "classes"), [(16, 20), (1, 1000), (2**37, 100)])
def test_the_scale_for_persons_is_that_of_the_proof(sensitivity, classes):
    m, k = 1000, 5
    eta = Fraction(k * 2.0**-52 * (top_k.largest_partial_sum(m, k) + 32))
    for epsilon in (0.01, 1.0, 7.7):
        scale = Fraction(
            top_k.rank_scale(m, k, sensitivity=sensitivity, epsilon=epsilon, classes=classes)
        )
        wanted = (sensitivity + 2 * classes) / (Fraction(epsilon) - 4 * classes * eta)
        assert wanted <= scale <= wanted * (1 + Fraction(1, 10**12))
    with pytest.raises(BudgetError, match=stating("k=5", "smaller k")):
        top_k.rank_scale(
            m, k, sensitivity=sensitivity, epsilon=float(8 * classes * eta), classes=classes
        )
