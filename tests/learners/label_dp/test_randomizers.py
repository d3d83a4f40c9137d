"""Randomizers: exact matrices, stated epsilons, optimality, and that samples follow the matrix."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chi2

import tacit
from tacit.errors import InputError
from tacit.learners.label_dp.randomizers import RR, RRTopK, RRWithPrior
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.randomized_response import WORDS, inside, outside, words_of

EPSILONS = (1e-6, 0.1, math.log(2), 1.0, 3.0, 20.0, 60.0)


def exact_exp(epsilon):
    """e^epsilon of a float, rounded down at the fortieth digit."""
    with mpmath.workdps(100):
        return Fraction(int(mpmath.floor(mpmath.exp(epsilon) * 10**40)), 10**40)


@pytest.mark.parametrize("epsilon", [*EPSILONS, *np.random.default_rng(0).uniform(0.1, 3, 10)])
@pytest.mark.parametrize("size", [2, 3, 10, 1000])
def test_words_keep_epsilon_exactly(epsilon, size):
    """By whole numbers: no ratio of two labels' words for an output exceeds e^epsilon."""
    bound = exact_exp(epsilon)
    for k in {1, 2, size // 2 or 1, size}:
        own, other = words_of(epsilon, k, size)
        assert sum(own) == WORDS
        assert len(own) == k
        if other:
            assert sum(other) == WORDS
        if k == 1:
            assert own == [WORDS]
            continue
        assert min(own) > 0
        for most, least in (
            (own[0], min(own[1:])),
            (own[0], min(other or own)),
            (max(other or own), min(own)),
        ):
            assert Fraction(most, least) <= bound
        if epsilon < 20:
            assert own[0] / own[1] == pytest.approx(math.exp(epsilon), rel=1e-9)


def randomizers(epsilon):
    rng = np.random.default_rng(0)
    priors = rng.dirichlet(np.full(5, 0.5), 6)
    yield RR(epsilon, 5)
    for k in (1, 2, 5):
        yield RRTopK(epsilon, priors, k)
    yield RRWithPrior(epsilon, priors)
    yield RRWithPrior(epsilon, np.eye(5)[0])
    yield RRWithPrior(epsilon, np.full(5, 0.2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_matrices_have_the_stated_epsilon(epsilon):
    for randomizer in randomizers(epsilon):
        for matrix in np.atleast_3d(randomizer.matrix()).reshape(-1, 5, 5):
            assert np.allclose(matrix.sum(axis=1), 1)
            used = matrix[:, matrix.max(axis=0) > 0]
            assert (used > 0).all()
            assert np.log(used.max(axis=0) / used.min(axis=0)).max() <= epsilon * (1 + 1e-12)
        assert randomizer.realised_epsilon <= epsilon * (1 + 1e-12)
        assert randomizer.event.pure == epsilon
    assert RR(epsilon, 5).realised_epsilon == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_private_randomizer_is_right_more_often(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(1000 if n_classes == 3 else 100):
        prior, epsilon = rng.dirichlet(np.full(n_classes, 0.7)), float(rng.uniform(0.05, 4))
        matrix = RRWithPrior(epsilon, prior).matrix()
        assert prior @ np.diag(matrix) == pytest.approx(
            best_by_linear_program(prior, epsilon), abs=1e-9
        )


def test_the_published_rule_for_k_loses_a_sixth_of_the_labels_and_ours_none():
    """At epsilon = ln 2, over all priors of 5 classes in twelfths."""
    lost = {}
    for parts in partitions(12, 5):
        prior = [Fraction(part, 12) for part in parts]
        best = max(Fraction(2, k + 1) * sum(prior[:k]) for k in range(1, 6))
        assert published_k(prior, 2) == 1  # the likeliest class, whatever the label
        lost[parts] = best - prior[0]
        matrix = RRWithPrior(math.log(2), np.array(prior, dtype=float)).matrix()
        assert np.array(prior, dtype=float) @ np.diag(matrix) == pytest.approx(
            float(best), abs=1e-12
        )
        assert best_by_linear_program(prior, math.log(2)) == pytest.approx(float(best), abs=1e-9)
    assert max(lost.values()) == Fraction(1, 6)
    assert lost[6, 6, 0, 0, 0] == lost[4, 4, 4, 0, 0] == Fraction(1, 6)


def published_k(prior, ratio):
    """Number of classes to answer with by the rule of the published code, whose denominator is off
    by one.
    """
    return 1 + int(
        np.argmax(
            [Fraction(ratio, ratio + k - 2) * sum(prior[:k]) for k in range(1, len(prior) + 1)]
        )
    )


def partitions(total, parts, most=None):
    """All falling ways to write a number as a sum of so many parts."""
    if parts == 0:
        return [()] if total == 0 else []
    largest = range(min(total, total if most is None else most), -1, -1)
    return [
        (first, *rest) for first in largest for rest in partitions(total - first, parts - 1, first)
    ]


def best_by_linear_program(prior, epsilon):
    """Largest probability to be right over all epsilon-DP matrices."""
    size = len(prior)
    rows = []
    for output in range(size):
        for one in range(size):
            for other in range(size):
                if one != other:
                    row = np.zeros((size, size))
                    row[one, output], row[other, output] = 1, -math.exp(epsilon)
                    rows.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(size))
    goal = -np.diag(prior).ravel()
    found = linprog(
        goal, rows, np.zeros(len(rows)), sums, np.ones(size), bounds=(0, 1), method="highs"
    )
    return -found.fun


@pytest.mark.parametrize("noise", [ResearchNoise(0), SecureNoise()], ids=["research", "secure"])
def test_samples_follow_the_matrix(noise):
    """Chi-square by prior and true class, at 300,000 draws for each randomizer."""
    rng = np.random.default_rng(1)
    for randomizer in randomizers(1.0):
        labels = rng.integers(0, 5, 300_000)
        which = rng.integers(0, len(randomizer.k), len(labels)) if len(randomizer.k) > 1 else None
        outputs = randomizer.sample(labels, noise, which)
        assert fits(randomizer, labels, outputs, which) > 1e-6


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("noise", ["research", "secure"])
@pytest.mark.parametrize("name", ["rr", "rr-with-prior"])
def test_ten_million_draws_of_randomize_follow_the_matrix(noise, name):
    """Cell by cell for each prior and true class."""
    rng = np.random.default_rng(2)
    labels, which = rng.integers(0, 20, 10**7), rng.integers(0, 30, 10**7)
    priors = (
        {"prior": rng.dirichlet(np.full(20, 0.3), 30), "which": which}
        if name == "rr-with-prior"
        else {}
    )
    seed = {"random_state": 3} if noise == "research" else {}
    out = tacit.label_dp.randomize(
        labels, classes=20, randomizer=name, budget="epsilon=1", noise=noise, **priors, **seed
    )
    assert fits(out.randomizer, labels, out.labels, out.which) > 1e-6


def fits(randomizer, labels, outputs, which):
    """p-value of the outputs under the matrix; impossible outputs give 0."""
    size, prior = randomizer.n_classes, np.zeros_like(labels) if which is None else which
    matrix = randomizer.matrix().reshape(-1, size, size)
    places = (prior * size + labels) * size + outputs
    seen = np.bincount(places, minlength=matrix.size).reshape(matrix.shape).astype(float)
    expected = seen.sum(axis=2, keepdims=True) * matrix
    if (seen[expected == 0] > 0).any():
        return 0.0
    possible = expected > 0
    statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - (seen.sum(axis=2) > 0).sum()
    return 1.0 if freedom == 0 else chi2.sf(statistic, freedom)


@pytest.mark.parametrize("randomizer", [RR(1.0, 4), RRTopK(1.0, [0.4, 0.3, 0.2, 0.1], 2)])
def test_log_likelihoods_are_rows_of_the_matrix(randomizer):
    outputs = np.array([0, 1, 0])
    expected = randomizer.matrix()[:, outputs].T
    assert np.exp(randomizer.log_likelihood(outputs)) == pytest.approx(expected)


def test_log_likelihoods_of_many_priors():
    for randomizer in randomizers(1.0):
        which = np.arange(len(randomizer.k))
        outputs = randomizer.orders[:, 0]
        expected = randomizer.matrix().reshape(-1, 5, 5)[which, :, outputs]
        assert np.exp(randomizer.log_likelihood(outputs, which)) == pytest.approx(expected)


def test_unbiased_counts_and_who_has_none():
    labels = np.repeat(np.arange(4), [40_000, 30_000, 20_000, 10_000])
    rr = RR(1.0, 4)
    counts = rr.counts(rr.sample(labels, ResearchNoise(0)))
    assert counts == pytest.approx([40_000, 30_000, 20_000, 10_000], abs=3000)
    assert rr.matrix() @ rr.unbiased(np.arange(4)) == pytest.approx(np.eye(4), abs=1e-12)
    with pytest.raises(InputError, match="has no inverse"):
        RRTopK(1.0, np.full(4, 0.25), 2).unbiased(labels)


def test_infinite_epsilon_keeps_labels():
    labels = np.array([0, 2, 1])
    for randomizer in (
        RR(math.inf, 3),
        RRWithPrior(math.inf, [0.9, 0.1, 0.0]),
        RRTopK(math.inf, [0.9, 0.1, 0.0], 1),
    ):
        assert np.array_equal(randomizer.sample(labels, SecureNoise()), labels)
        assert np.array_equal(randomizer.matrix(), np.eye(3))
        assert not randomizer.event.bounded


def test_ties_are_broken_by_class_index():
    assert RRTopK(1.0, [0.25, 0.25, 0.25, 0.25], 2).orders.tolist() == [[0, 1, 2, 3]]
    assert RRWithPrior(0.5, [0.0, 0.5, 0.5]).orders.tolist() == [[1, 2, 0]]


def test_the_places_of_words_are_within_the_order():
    for k in (2, 3, 7, 1000):
        assert k * outside(k) <= WORDS < (k + 1) * outside(k)
        assert WORDS - k * outside(k) < k
        assert inside(1.0, k) * (math.e + k - 1) >= WORDS


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RR(0, 3), "epsilon=0"),
        (lambda: RR(-1, 3), "epsilon=-1"),
        (lambda: RR(float("nan"), 3), "epsilon=nan"),
        (lambda: RR(1, 1), "n_classes=1"),
        (lambda: RRWithPrior(1, [0.5, 0.6]), "adds up to 1.1, not 1"),
        (lambda: RRWithPrior(1, [1.5, -0.5]), "negative or NaN"),
        (lambda: RRWithPrior(1, [float("nan"), 1]), "negative or NaN"),
        (lambda: RRWithPrior(1, [[[1.0]]]), "shape"),
        (lambda: RRWithPrior(1, "abc"), "not an array of numbers"),
        (lambda: RRTopK(1, [0.5, 0.5], 3), "k=3"),
        (
            lambda: RRTopK(1, np.full((2, 2), 0.5), 1).sample(np.array([0]), SecureNoise()),
            "has 2 priors",
        ),
        (
            lambda: RRTopK(1, [0.5, 0.5], 1).sample(np.array([0]), SecureNoise(), np.array([1])),
            "which=1",
        ),
        (
            lambda: RRTopK(1, [0.5, 0.5], 1).sample(np.array([0]), SecureNoise(), np.array([0, 0])),
            "2 entries for 1",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_many_classes_keep_epsilon_or_are_refused():
    """One word of 2^64 matters where k^2 is large beside epsilon."""
    from fractions import Fraction

    for epsilon, k in ((1e-9, 3000), (1e-6, 100_000), (1e-3, 1_000_000)):
        own, other = words_of(epsilon, k, k + 1)
        bound = 1 + Fraction(math.expm1(epsilon)) * (1 + Fraction(1, 2**51))
        assert sum(other) == WORDS
        for most, least in ((own[0], own[1]), (own[0], min(other)), (max(other), own[1])):
            assert Fraction(most, least) <= bound
    with pytest.raises(InputError, match="too small for 999999 of 1000000 classes"):
        RRTopK(5e-9, np.full(10**6, 1e-6), 10**6 - 1)


def test_public_names():
    assert tacit.label_dp.RRWithPrior is RRWithPrior


def test_the_last_word_keeps_no_label_outside():
    class Last(ResearchNoise):
        def words(self, n):
            return np.full(n, WORDS - 1, dtype=np.uint64)

    for k in (1, 2, 3):
        randomizer = RRTopK(1.0, [0.1, 0.2, 0.3, 0.4], k)
        outputs = randomizer.sample(np.arange(4), Last(0))
        assert set(outputs.tolist()) <= set(randomizer.orders[0, :k].tolist())
