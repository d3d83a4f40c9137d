from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tacit.models.posterior import ClassPosterior
from tacit.models.quadratic import (
    FLOOR,
    NAMES,
    ROOT,
    SOFTNESS,
    STEEP,
    WIDENING,
    QuadraticScores,
    blended,
    cosine,
    density,
)
from tacit.models.rows import unit_rows

RNG = np.random.default_rng(0)
VARIANCES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
SAMPLE, ROWS = unit_rows(RNG.normal(size=(40, 5))), unit_rows(RNG.normal(size=(30, 5)))
POSTERIOR = ClassPosterior(
    RNG.normal(size=(4, 5)) / 3,
    RNG.random((4, 5)) / 5,
    np.array([9.0, 40.0, 5.0, 70.0]),
    trust=0.4,
    within=0.7,
)
NAME_ROWS = unit_rows(RNG.normal(size=(4, 5)))
W = 0.7 * VARIANCES + FLOOR * 0.4


def direct_density(rows):
    """Log densities up to a constant that classes share."""
    softened = W**SOFTNESS * np.mean(W / W**SOFTNESS)
    each = zip(POSTERIOR.mean, POSTERIOR.variance, strict=True)
    return np.stack(
        [multivariate_normal(m, np.diag(softened + WIDENING * v)).logpdf(rows) for m, v in each],
        axis=1,
    )


def direct_cosine(rows, trust):
    """The cosine after division by (h w)^(a/2), times the length of the row; lengths of means as
    expected.
    """
    a = min(ROOT, STEEP * 0.3**0.5)
    means, own, variance = (
        POSTERIOR.mean / W ** (a / 2),
        rows / W ** (a / 2),
        POSTERIOR.variance / W**a,
    )
    lengths = np.sqrt((means**2).sum(axis=1) + 2 * trust / 4**2 * variance.sum(axis=1))
    return np.stack(
        [own @ mean / length for mean, length in zip(means, lengths, strict=True)], axis=1
    )


def standard(scores):
    """Of the first 40 rows, standard deviation 1 about the mean of each row."""
    first = scores[:40]
    return scores / (first - first.mean(axis=1, keepdims=True)).std()


def decided(scores):
    """Less a constant of each row, which decides nothing."""
    return scores - scores.mean(axis=1, keepdims=True)


def test_scores_are_squares_slopes_and_offsets():
    squares, slopes, offsets = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=2)
    row = np.array([0.5, -2.0, 1.0])
    scores = QuadraticScores(squares, slopes, offsets)
    expected = [sum(squares[c] * row**2) + sum(slopes[c] * row) + offsets[c] for c in range(2)]
    assert np.allclose(scores.of(row[None])[0], expected)
    assert np.allclose(scores.times(-3.0).of(row[None])[0], -3 * np.array(expected))
    both = scores.plus(QuadraticScores(slopes, squares, 2 * offsets)).of(row[None])[0]
    swapped = [sum(slopes[c] * row**2) + sum(squares[c] * row) + 2 * offsets[c] for c in range(2)]
    assert np.allclose(both, np.array(expected) + swapped)


def test_standardised_scores_have_deviation_1_about_the_mean_of_each_row():
    scores = QuadraticScores(
        RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3) * 9
    )
    found = scores.standardised(SAMPLE)
    of_rows = decided(found.of(SAMPLE))
    assert (of_rows**2).mean() == pytest.approx(1)
    assert np.allclose(found.of(ROWS) / scores.of(ROWS), (found.of(ROWS) / scores.of(ROWS))[0, 0])
    assert found.offsets[0] / scores.offsets[0] > 0
    of_all = QuadraticScores(scores.squares, scores.slopes, scores.offsets + 7).standardised(SAMPLE)
    assert np.allclose(decided(of_all.of(SAMPLE)), of_rows)


@pytest.mark.parametrize("alike", [np.zeros((3, 5)), np.repeat(RNG.normal(size=(1, 5)), 3, axis=0)])
def test_scores_that_do_not_differ_are_not_standardised(alike):
    slopes = alike * (1 + 1e-16 * np.arange(3)[:, None])
    scores = QuadraticScores(np.zeros((3, 5)), slopes, np.zeros(3))
    assert np.array_equal(scores.standardised(SAMPLE).slopes, slopes)


def test_the_density_is_that_of_a_gaussian_up_to_a_constant_that_classes_share():
    scores = density(POSTERIOR, VARIANCES)
    assert np.allclose(scores.of(ROWS) - direct_density(ROWS), 2.5 * np.log(2 * np.pi))


def test_a_class_known_poorly_is_wide():
    """Far from both, rows are of the class with the larger variance; near to its mean, of the class
    known well.
    """
    variance = np.stack([np.full(5, 1e-6), np.full(5, 0.5)])
    posterior = ClassPosterior(np.zeros((2, 5)), variance, np.ones(2), 0.5, 0.7)
    near, far = density(posterior, VARIANCES).of(np.stack([0.01 * np.ones(5), np.ones(5)]))
    assert near.argmax() == 0
    assert far.argmax() == 1


def test_the_density_keeps_the_mean_of_precisions():
    """Softening changes the shape of the variance within classes, not the mean of its ratio to the
    unsoftened one.
    """
    certain = replace(POSTERIOR, variance=np.zeros((4, 5)))
    softened = -0.5 / density(certain, VARIANCES).squares[0]
    assert np.mean(W / softened) == pytest.approx(1)
    assert np.allclose(np.diff(np.log(softened)), SOFTNESS * np.diff(np.log(W)))


@pytest.mark.parametrize("weights", [1.0, RNG.random(5) + 0.5])
def test_the_cosine_of_weighted_rows(weights):
    means = RNG.normal(size=(4, 5)) * np.array([[0.1], [1.0], [5.0], [0.0]])
    scores = cosine(means, weights)
    assert not scores.squares.any()
    assert not scores.offsets.any()
    root = np.sqrt(weights) * np.ones(5)
    found = scores.of(ROWS) / np.linalg.norm(root * ROWS, axis=1, keepdims=True)
    for c in range(3):
        of_mean = root * means[c] / np.linalg.norm(root * means[c])
        of_rows = root * ROWS / np.linalg.norm(root * ROWS, axis=1, keepdims=True)
        assert np.allclose(found[:, c], of_rows @ of_mean)
    assert not found[:, 3].any()


def test_the_variance_of_means_adds_to_their_squared_length():
    means, variance, weights = RNG.normal(size=(3, 5)), RNG.random((3, 5)), RNG.random(5) + 0.5
    found, plain = cosine(means, weights, variance).slopes, cosine(means, weights).slopes
    lengths = (weights * means**2).sum(axis=1)
    shorter = np.sqrt(lengths / (lengths + (weights * variance).sum(axis=1)))
    assert np.allclose(found, shorter[:, None] * plain)


@pytest.mark.parametrize(("within", "power"), [(0.4, ROOT), (0.7, ROOT), (0.96, STEEP * 0.2)])
def test_diffuse_classes_are_whitened_less(within, power):
    posterior = replace(POSTERIOR, within=within, variance=np.zeros((4, 5)))
    scores = blended(posterior, VARIANCES, SAMPLE, np.ones(4), None, linear=True)
    expected = posterior.mean * (within * VARIANCES + FLOOR * 0.4) ** -power
    assert np.allclose(unit_rows(scores.slopes), unit_rows(expected))


def direct_blend(rows, trust, f, names, linear):
    """Scores of rows, the first 40 being those that standardise."""
    scores = standard(direct_cosine(rows, trust))
    if not linear:
        scores = standard(trust * scores + (1 - trust) * standard(direct_density(rows)))
    if names is not None:
        share = f / (f + NAMES)
        scores = standard(share * scores + (1 - share) * standard(rows @ names.T))
    return scores


@pytest.mark.parametrize("trust", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("clarity", [np.zeros(4), np.array([0.01, 0.02, 0.05, 0.1]), np.ones(4)])
@pytest.mark.parametrize("names", [None, NAME_ROWS])
@pytest.mark.parametrize("linear", [False, True])
def test_the_blend_is_the_direct_formula(trust, clarity, names, linear):
    posterior = replace(POSTERIOR, trust=trust)
    scores = blended(posterior, VARIANCES, SAMPLE, clarity, names, linear=linear)
    rows = np.concatenate([SAMPLE, ROWS])
    expected = direct_blend(rows, trust, clarity.mean(), names, linear)
    assert np.allclose(decided(scores.of(rows)), decided(expected), rtol=1e-9, atol=1e-12)
    assert scores.squares.any() == (not linear and trust < 1 and (clarity.any() or names is None))
    if linear:
        assert not scores.offsets.any()


def test_without_clarity_names_decide_and_with_it_the_posterior_does():
    unclear = blended(POSTERIOR, VARIANCES, SAMPLE, np.zeros(4), NAME_ROWS).of(ROWS)
    assert np.array_equal(unclear.argmax(axis=1), (ROWS @ NAME_ROWS.T).argmax(axis=1))
    alone = blended(POSTERIOR, VARIANCES, SAMPLE, np.ones(4), None).of(ROWS)
    names = cosine(NAME_ROWS).standardised(SAMPLE).of(ROWS)
    for clarity in (1.0, NAMES):  # names have the weight of NAMES to clarity
        both = blended(POSTERIOR, VARIANCES, SAMPLE, np.full(4, clarity), NAME_ROWS).of(ROWS)
        ratio = both / (clarity * alone + NAMES * names)
        assert np.allclose(ratio, ratio[0, 0])
