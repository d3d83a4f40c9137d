"""Answers with blocks: exact matrices, the stated epsilon, samples, and what they tell."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

import tacit
from messages import stating
from tacit.errors import InputError
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.randomizers import RR
from tacit.mechanisms.noise import ResearchNoise, SecureNoise

SIZES = (2, 3, 4, 7, 20, 64, 150)


def priors_of(size, count, seed=0):
    """Priors from nearly certain to nearly flat."""
    rng = np.random.default_rng([seed, size])
    rows = rng.gamma(rng.choice([0.02, 0.2, 1.0, 30.0], (count, 1)), size=(count, size)) + 1e-12
    return rows / rows.sum(axis=1, keepdims=True)


def matrices(blocks):
    """The matrix of each prior, without blocks that it does not have."""
    for matrix, g in zip(
        blocks.matrix().reshape(blocks.n_priors, blocks.n_classes, -1), blocks.n_blocks, strict=True
    ):
        assert not matrix[:, g:].any()
        yield matrix[:, :g]


def check_epsilon(epsilon, size, count):
    blocks = Blocks(epsilon, priors_of(size, count))
    for matrix in matrices(blocks):
        assert matrix.sum(axis=1) == pytest.approx(1, abs=1e-12)
        ratio = np.log(matrix.max(axis=0) / matrix.min(axis=0))
        assert ratio.max() <= epsilon * (1 + 1e-12)
        assert ratio == pytest.approx(epsilon, rel=1e-9)
    assert blocks.realised_epsilon <= epsilon * (1 + 1e-12)
    return count


def test_no_answer_is_likelier_than_the_stated_epsilon_allows():
    """By the matrices of ten thousand priors."""
    assert (
        sum(check_epsilon(epsilon, size, 500) for size in SIZES for epsilon in (0.3, 1.0, 4.0))
        == 10_500
    )


@pytest.mark.thorough
@pytest.mark.slow
def test_no_answer_is_likelier_for_any_number_of_classes():
    for size in range(2, 151):
        for epsilon in (0.01, 0.5, 1.0, 2.0, 8.0):
            check_epsilon(epsilon, size, 100)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_matrix_says_where_blocks_are(epsilon):
    rows = priors_of(20, 50)
    blocks = Blocks(epsilon, rows)
    for matrix, own in zip(matrices(blocks), blocks.partitions, strict=True):
        assert np.array_equal(matrix.argmax(axis=1), own)


def fits(blocks, labels, answers, which):
    """p-value of the answers under the matrix; impossible answers give 0."""
    matrix = blocks.matrix().reshape(blocks.n_priors, blocks.n_classes, -1)
    places = np.ravel_multi_index((which, labels, answers), matrix.shape)
    seen = np.bincount(places, minlength=matrix.size).reshape(matrix.shape).astype(float)
    expected = seen.sum(axis=2, keepdims=True) * matrix
    possible = expected > 0
    if (seen[~possible] > 0).any():
        return 0.0
    statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
    return chi2.sf(statistic, possible.sum() - (seen.sum(axis=2) > 0).sum())


@pytest.mark.parametrize("noise", [ResearchNoise(0), SecureNoise()], ids=["research", "secure"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("count", [1, 12])
def test_samples_follow_the_matrix(noise, epsilon, count):
    rng = np.random.default_rng(1)
    blocks = Blocks(epsilon, priors_of(8, count))
    labels, which = rng.integers(0, 8, 300_000), rng.integers(0, count, 300_000)
    answers = blocks.sample(labels, noise, which if count > 1 else None)
    assert fits(blocks, labels, answers, which) > 1e-6


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("noise", ["research", "secure"])
def test_ten_million_draws_of_randomize_follow_the_matrix(noise):
    rng = np.random.default_rng(2)
    labels, which = rng.integers(0, 20, 10**7), rng.integers(0, 30, 10**7)
    seed = {"random_state": 3} if noise == "research" else {}
    out = tacit.label_dp.randomize(
        labels,
        classes=20,
        randomizer="blocks",
        prior=priors_of(20, 30),
        which=which,
        noise=noise,
        **seed,
    )
    assert fits(out.randomizer, labels, out.labels, out.which) > 1e-6


def test_answers_carry_the_information_of_their_partition():
    """Mutual information by the prior and the matrix; more than that of plain randomized
    response.
    """
    rng = np.random.default_rng(0)
    for prior in rng.dirichlet(np.full(30, 0.3), 20):
        told = []
        for matrix in (Blocks(1.0, prior).matrix(), RR(1.0, 30).matrix()):
            joint = prior[:, None] * matrix
            told.append((joint * np.log(matrix / joint.sum(axis=0))).sum())
        assert told[0] > 3 * told[1]


@pytest.mark.parametrize("epsilon", [0.7, math.inf])
def test_log_likelihoods_are_columns_of_the_matrix(epsilon):
    blocks = Blocks(epsilon, priors_of(7, 40))
    which = np.repeat(np.arange(40), 2)
    outputs = np.tile([0, 1], 40)
    assert len(set(blocks.n_blocks.tolist())) > 1 or epsilon == math.inf
    expected = blocks.matrix()[which, :, outputs]
    assert np.exp(blocks.log_likelihood(outputs, which)) == pytest.approx(expected, rel=1e-12)
    alone = Blocks(epsilon, [0.5, 0.3, 0.2])
    assert np.exp(alone.log_likelihood(np.array([1, 0]))) == pytest.approx(
        alone.matrix()[:, [1, 0]].T, rel=1e-12
    )


def test_single_classes_as_blocks_are_plain_randomized_response():
    blocks, rr = Blocks(6.0, np.full(5, 0.2)), RR(6.0, 5)
    labels = np.arange(1000) % 5
    assert np.array_equal(blocks.matrix(), rr.matrix())
    assert blocks.event == rr.event
    assert np.array_equal(
        blocks.sample(labels, ResearchNoise(0)), rr.sample(labels, ResearchNoise(0))
    )
    assert np.array_equal(blocks.unbiased(labels), rr.unbiased(labels))


def test_there_is_no_unbiased_estimate_from_blocks():
    with pytest.raises(InputError, match=stating("2 blocks", "4 classes", "inverse")):
        Blocks(0.5, np.full((3, 4), 0.25)).unbiased(np.zeros(3, dtype=np.int64))


def test_infinite_epsilon_keeps_labels():
    labels = np.array([0, 2, 1])
    blocks = Blocks(math.inf, [0.9, 0.1, 0.0])
    assert np.array_equal(blocks.sample(labels, SecureNoise()), labels)
    assert np.array_equal(blocks.matrix(), np.eye(3))
    assert not blocks.event.bounded
    assert blocks.realised_epsilon == math.inf


def test_a_single_class_is_answered_with_its_block():
    blocks = Blocks(1.0, [1.0])
    assert blocks.sample(np.zeros(3, dtype=np.int64), SecureNoise()).tolist() == [0, 0, 0]
    assert blocks.event.pure == 1.0


def test_float32_priors_mean_the_same():
    rows = priors_of(20, 50)
    wide, narrow = Blocks(1.0, rows), Blocks(1.0, rows.astype(np.float32))
    assert np.mean(wide.partitions == narrow.partitions) > 0.99


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Blocks(0, [0.5, 0.5]), "epsilon=0"),
        (lambda: Blocks(1, [0.5, 0.6]), stating("prior row 0", "1.1")),
        (lambda: Blocks(1, [[0.5, 0.5], [1.5, -0.5]]), stating("prior row 1", "NaN")),
        (
            lambda: Blocks(1, np.array([[0.5, 0.5], [np.nan, 1]], np.float32)),
            stating("prior row 1", "NaN"),
        ),
        (lambda: Blocks(1, np.ones((2, 3, 1))), r"prior has shape \(2, 3, 1\)"),
        (lambda: Blocks(1, np.ones((0, 3))), r"prior has shape \(0, 3\)"),
        (
            lambda: Blocks(1, np.full((2, 2), 0.5)).sample(np.array([0]), SecureNoise()),
            "has 2 priors; pass which=",
        ),
        (
            lambda: Blocks(1, np.full((2, 2), 0.5)).log_likelihood(np.array([0]), np.array([2])),
            "which=2 must be",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
