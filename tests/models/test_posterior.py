from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from tacit.models import posterior as module
from tacit.models.name_length import LEAST_LENGTH, LENGTH_MEAN, LENGTH_SD
from tacit.models.named_posterior import name_length, named_centres, named_posterior
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import (
    ABOUT_NAME,
    ABOUT_NEIGHBOURHOOD,
    ELSEWHERE,
    LEAST_BETWEEN,
    LEAST_WITHIN,
    PRIOR_CLASSES,
    SIZES,
    ClassPosterior,
    Family,
    class_posterior,
    class_trust,
    expectation_maximisation,
    grand_mean,
    softmax,
    within_share,
)
from tacit.models.public_prior import PublicPrior, distinctness, public_prior
from tacit.models.rows import unit_rows, unit_rows_about

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(300, 8)) * np.linspace(2, 0.2, 8) + 1
CENTRE = (PUBLIC / np.linalg.norm(PUBLIC, axis=1, keepdims=True)).mean(axis=0)
WITHIN = 0.5  # of the simulations


def prior_of(variances, neighbourhoods):
    return PublicPrior(np.eye(len(variances)), np.array(variances), neighbourhoods, neighbourhoods)


def simulated(n_elsewhere, seed=0, n_classes=200, width=60, sizes=None, noise=2.0, count_noise=3.0):
    """A prior, and what is released of classes that follow it, the first of them elsewhere; rows
    have length 1.
    """
    rng = np.random.default_rng(seed)
    variances = np.linspace(1.5, 0.5, width) / width
    points = rng.normal(size=(50, width)) * np.sqrt((ELSEWHERE - ABOUT_NEIGHBOURHOOD) * variances)
    prior = prior_of(variances, points - points.mean(axis=0) + 0.01)
    elsewhere = np.arange(n_classes) < n_elsewhere
    about = np.where(elsewhere[:, None], 0.0, prior.neighbourhoods[rng.integers(0, 50, n_classes)])
    spread = np.where(elsewhere, ELSEWHERE, ABOUT_NEIGHBOURHOOD)[:, None]
    means = about + rng.normal(size=about.shape) * np.sqrt(spread * variances)
    n = np.full(n_classes, 100.0) if sizes is None else sizes
    sums = n[:, None] * means + rng.normal(size=means.shape) * np.sqrt(
        n[:, None] * WITHIN * variances + noise**2
    )
    return (
        prior,
        means,
        n,
        NoisySums(sums, noise, n + count_noise * rng.normal(size=n_classes), count_noise),
    )


def unit_records(rng, sizes, width=15):
    """Unit rows of classes about random means, one array for each class."""
    return [unit_rows(0.8 * rng.normal(size=width) + rng.normal(size=(n, width))) for n in sizes]


def test_the_within_class_share_is_1_less_the_mean_inner_product_of_two_records_of_a_class():
    classes = unit_records(RNG, [1, 2, 7, 40])
    pairs = [
        rows[i] @ rows[j]
        for rows in classes
        for i in range(len(rows))
        for j in range(len(rows))
        if i != j
    ]
    sums = NoisySums(
        np.stack([rows.sum(axis=0) for rows in classes]), 0.0, np.array([1.0, 2.0, 7.0, 40.0]), 0.0
    )
    assert LEAST_WITHIN < 1 - np.mean(pairs) < 1
    assert within_share(sums) == pytest.approx(1 - np.mean(pairs), rel=1e-12)


def test_noise_of_sums_and_counts_does_not_bias_the_within_class_share():
    rng = np.random.default_rng(1)
    sizes = np.array([20.0, 50.0, 90.0, 130.0])
    sums = np.stack([rows.sum(axis=0) for rows in unit_records(rng, sizes.astype(int))])
    exact = within_share(NoisySums(sums, 0.0, sizes, 0.0))
    drawn = [
        within_share(
            NoisySums(
                sums + 4 * rng.normal(size=sums.shape), 4.0, sizes + 2 * rng.normal(size=4), 2.0
            )
        )
        for _ in range(4000)
    ]
    error = np.std(drawn) / 4000**0.5
    assert LEAST_WITHIN < min(drawn) < max(drawn) < 1
    assert abs(np.mean(drawn) - exact) < 4 * error
    noise_forgotten = sums.size * 4**2 / (sizes * (sizes - 1)).sum()
    assert noise_forgotten > 40 * error


def test_noise_that_differs_by_class_does_not_bias_the_within_class_share():
    rng = np.random.default_rng(1)
    sizes = np.array([20.0, 50.0, 90.0, 130.0])
    noise = np.array([0.5, 1.0, 2.0, 3.0])
    sums = np.stack([rows.sum(axis=0) for rows in unit_records(rng, sizes.astype(int))])
    shares = []
    for _ in range(2000):
        noisy_sums = sums + noise[:, None] * rng.normal(size=sums.shape)
        counts = sizes + noise * rng.normal(size=4)
        release = NoisySums(noisy_sums, noise, counts, noise)
        shares.append(within_share(release))

    # the share is weighted by noise, and these classes differ
    lengths = (sums**2).sum(axis=1) - sizes
    pairs = sizes * (sizes - 1)
    weights = (pairs.mean() / (pairs.mean() + 15 * noise**2)) ** 2
    expected = 1 - weights @ lengths / (weights @ pairs)
    error = np.std(shares) / 2000**0.5
    assert LEAST_WITHIN < min(shares) < max(shares) < 1
    assert abs(np.mean(shares) - expected) < 4 * error
    noise_forgotten = weights @ (15 * noise**2) / (weights @ pairs)
    assert noise_forgotten > 10 * error


def test_the_grand_mean_is_shrunk_by_the_noise_of_all_classes_together():
    sums = np.array([[30.0, 10.0], [10.0, 70.0]])
    noise = np.array([1.0, 7.0])
    grand = grand_mean(NoisySums(sums, noise, np.array([50.0, 100.0]), noise))
    mean = sums.sum(axis=0) / 150
    energy = mean @ mean
    noise_energy = 2 * (noise**2).sum() / 150**2
    assert np.allclose(grand, mean * (1 - noise_energy / energy), rtol=1e-12)


def test_a_share_by_noise_of_each_class_takes_out_the_noise_of_counts():
    sums = np.array([[30.0, 0.0], [0.0, 70.0]])
    noise = np.array([1.0, 2.0])
    release = NoisySums(sums, noise, np.array([50.0, 100.0]), np.array([10.0, 30.0]))
    pairs = np.array([50 * 49 - 100.0, 100 * 99 - 900.0])
    weights = 1 / (pairs.mean() + 2 * noise**2) ** 2
    energy = np.array([900 - 2 * 1.0 - 50, 4900 - 2 * 4.0 - 100])
    assert within_share(release) == pytest.approx(1 - weights @ energy / (weights @ pairs))
    assert within_share(replace(release, count_noise=np.array([10.0, 200.0]))) == 1.0


def test_noise_that_is_the_same_for_all_classes_gives_the_same_bits_as_one_number():
    prior, _, _, release = simulated(50, n_classes=60, noise=7.0, count_noise=5.0)
    by_class = replace(release, noise=np.full(60, 7.0), count_noise=np.full(60, 5.0))
    assert (by_class.noise, by_class.count_noise) == (7.0, 5.0)
    names = RNG.normal(size=release.sums.shape)
    for names_or_none in (None, names):
        expected = class_posterior(prior, release, names_or_none)
        found = class_posterior(prior, by_class, names_or_none)
        assert np.array_equal(found.mean, expected.mean)
        assert np.array_equal(found.variance, expected.variance)
        assert np.array_equal(found.sizes, expected.sizes)


@pytest.mark.parametrize("per_class", [False, True])
def test_each_class_has_the_evidence_and_posterior_of_its_own_noise(per_class):
    prior, means, _, release = simulated(3, n_classes=6, width=5)
    points = means if per_class else prior.neighbourhoods
    family = Family(prior, points, ABOUT_NEIGHBOURHOOD, WITHIN, per_class=per_class)
    sizes = np.geomspace(2, 80, 6)
    noise = np.geomspace(0.1, 300, 6)
    found = family.posterior(release.sums, sizes, noise[:, None])
    found_evidence = family.evidence(release.sums, 40.0, noise[:, None])
    for c in range(6):
        expected = family.posterior(release.sums, sizes, noise[c])
        for found_part, expected_part in zip(found, expected, strict=True):
            assert np.allclose(found_part[c], expected_part[c], rtol=1e-12)
        expected_evidence = family.evidence(release.sums, 40.0, noise[c])
        assert found_evidence[c] == pytest.approx(expected_evidence[c], rel=1e-12)


def test_a_class_of_much_noise_is_shrunk_and_the_others_are_not():
    prior, means, _, release = simulated(0, noise=1.0, count_noise=1.0)
    noise = np.where(np.arange(200) < 20, 300.0, 1.0)
    draw = np.random.default_rng(3).normal(size=release.sums.shape)
    noisy_sums = release.sums + np.sqrt(noise**2 - 1)[:, None] * draw
    all_clear = class_posterior(prior, release)
    release = replace(release, sums=noisy_sums, noise=noise)
    found = class_posterior(prior, release)
    assert np.allclose(found.variance[20:], all_clear.variance[20:], rtol=0.2)
    assert found.variance[:20].min() > 5 * all_clear.variance[:20].max()
    calibrated = ((found.mean - means) ** 2 / found.variance).mean(axis=1)
    assert calibrated[:20].mean() == pytest.approx(1, abs=0.3)
    assert calibrated[20:].mean() == pytest.approx(1, abs=0.15)
    clarity = found.clarity(release.noise)
    energy = found.sizes**2 * found.between
    assert np.allclose(clarity, energy / (energy + 60 * noise**2), rtol=1e-9)


def test_sizes_are_counts_only_where_all_counts_are_precise():
    prior, _, _, release = simulated(0, n_classes=50, count_noise=1.0)
    one_noisy = np.where(np.arange(50) == 0, 60.0, 1.0)
    assert np.array_equal(class_posterior(prior, release).sizes, release.counts)
    counts = release.counts + np.where(np.arange(50) == 0, 150.0, 0.0)
    noisy = replace(release, counts=counts, count_noise=one_noisy)
    sizes = class_posterior(prior, noisy).sizes
    assert sizes[0] < 0.6 * counts[0]
    assert np.allclose(sizes[1:], counts[1:], rtol=0.15)


def test_the_within_class_share_is_clipped():
    alike, apart = np.array([[50.0, 0.0]]), np.array([[0.5, 0.0]])
    counts = np.array([50.0])
    assert within_share(NoisySums(alike, 0.0, counts, 0.0)) == LEAST_WITHIN
    assert within_share(NoisySums(apart, 0.0, counts, 0.0)) == 1.0
    assert within_share(NoisySums(alike, 1e6, counts, 0.0)) == 1.0
    assert within_share(NoisySums(alike, 0.0, counts, 60.0)) == 1.0  # counts say nothing
    assert within_share(NoisySums(alike, 0.0, np.array([1.0]), 0.0)) == 1.0


@pytest.mark.parametrize("noise", [0.0, 0.7, 30.0])
@pytest.mark.parametrize("spread", [ABOUT_NEIGHBOURHOOD, ELSEWHERE])
@pytest.mark.parametrize("per_class", [False, True])
def test_a_family_in_one_dimension_is_what_integration_gives(noise, spread, per_class):
    w, means, sums, sizes = (
        0.4,
        np.array([[-1.0], [0.3], [2.0]]),
        np.array([[-3.0], [1.0], [9.0]]),
        np.array([3, 1, 7]),
    )
    family = Family(prior_of([w], means), means, spread, WITHIN, per_class=per_class)
    evidence, mean, variance = family.posterior(sums, sizes, noise)
    grid = np.linspace(-9, 9, 200_001)
    step = grid[1] - grid[0]
    about = norm.pdf(grid, means, np.sqrt(spread * w))
    for c in range(3):
        of_mean = about[c] if per_class else about.mean(axis=0)
        joint = of_mean * norm.pdf(
            sums[c, 0], sizes[c] * grid, np.sqrt(sizes[c] * WITHIN * w + noise**2)
        )
        assert evidence[c] == pytest.approx(
            np.log(joint.sum() * step) + 0.5 * np.log(2 * np.pi), abs=1e-8
        )
        assert family.evidence(sums, sizes[c], noise)[c] == pytest.approx(evidence[c], abs=1e-12)
        first = (joint @ grid) / joint.sum()
        assert mean[c, 0] == pytest.approx(first, abs=1e-8)
        assert variance[c, 0] == pytest.approx(
            (joint @ (grid - first) ** 2) / joint.sum(), abs=1e-8
        )


@pytest.mark.parametrize("per_class", [False, True])
def test_a_family_in_several_dimensions_is_a_mixture_of_gaussians_or_one_for_each_class(per_class):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 3))
    prior = prior_of([0.5, 0.3, 0.1], points)
    family = Family(prior, points, ABOUT_NAME, WITHIN, per_class=per_class)
    sums, sizes, noise = rng.normal(size=(5, 3)) * 4, np.array([1.0, 2.0, 5.0, 20.0, 3.0]), 1.5
    evidence, mean, variance = family.posterior(sums, sizes, noise)
    for c, n in enumerate(sizes):
        centres = points[[c]] if per_class else points
        of_sum = n**2 * ABOUT_NAME * prior.variances + n * WITHIN * prior.variances + noise**2
        each = np.array([multivariate_normal(n * m, np.diag(of_sum)).pdf(sums[c]) for m in centres])
        assert evidence[c] == pytest.approx(np.log(each.mean()) + 1.5 * np.log(2 * np.pi))
        about = ABOUT_NAME * prior.variances
        precision = 1 / about + n**2 / (n * WITHIN * prior.variances + noise**2)
        of_class = (
            centres / about + n * sums[c] / (n * WITHIN * prior.variances + noise**2)
        ) / precision
        shares = each / each.sum()
        assert np.allclose(mean[c], shares @ of_class)
        assert np.allclose(
            variance[c], 1 / precision + shares @ of_class**2 - (shares @ of_class) ** 2
        )


def test_expectation_maximisation_finds_the_shares_of_families_and_sizes():
    evidence = np.full((100, SIZES, 3), -1e3)
    evidence[:70, 5, 0] = evidence[70:, 30, 2] = 0.0
    of_sizes, of_families = expectation_maximisation(evidence)
    assert np.allclose(of_families, 0.98 * np.array([0.7, 0, 0.3]) + 0.02 / 3)
    assert np.allclose(of_sizes.argmax(axis=1), [5] * 70 + [30] * 30)
    assert np.allclose(of_sizes.sum(axis=1), 1)


def test_sizes_that_the_evidence_leaves_open_are_those_of_the_other_classes():
    evidence = np.full((100, SIZES, 3), -1e3)
    evidence[:99, 20] = 0.0
    evidence[99] = 0.0
    of_sizes, of_families = expectation_maximisation(evidence)
    assert of_sizes[99].argmax() == 20
    assert of_sizes[99, 17:24].sum() > 0.9
    assert np.allclose(of_families, 1 / 3)


@pytest.mark.parametrize(("n_elsewhere", "trust"), [(0, 0.99), (100, 0.5), (200, 0.01)])
def test_trust_is_the_share_of_classes_that_look_like_public_rows(n_elsewhere, trust):
    prior, _, _, released = simulated(n_elsewhere)
    found = class_posterior(prior, released)
    assert found.trust == pytest.approx(trust, abs=0.06)
    assert found.within == within_share(released) == pytest.approx(WITHIN, abs=0.06)


def test_means_are_nearer_than_those_of_the_sums_and_as_far_as_said():
    prior, means, n, released = simulated(100, noise=10.0)
    found = class_posterior(prior, released)
    errors = (found.mean - means) ** 2
    assert errors.mean() < 0.75 * ((released.sums / n[:, None] - means) ** 2).mean()
    assert (errors / found.variance).mean() == pytest.approx(1, abs=0.15)


def test_sizes_are_nearer_than_noisy_counts_unless_those_are_good():
    sizes = np.random.default_rng(5).permutation(np.geomspace(20, 1000, 200))
    prior, _, _, released = simulated(0, sizes=sizes, noise=5.0, count_noise=100.0)
    found = class_posterior(prior, released).sizes
    off = np.abs(np.log(found / sizes))
    assert off.mean() < 0.5 * np.abs(np.log(np.maximum(released.counts, 1.0) / sizes)).mean()
    good = np.where(np.arange(200) == 7, -3.0, sizes)
    known = replace(released, counts=good, count_noise=1.0)
    assert np.array_equal(class_posterior(prior, known).sizes, np.maximum(good, 1.0))


@pytest.mark.parametrize("seed", range(5))
def test_sizes_are_in_all_no_more_than_the_counts_and_their_noise_say(seed):
    rng = np.random.default_rng(seed)
    prior, _, n, _ = simulated(0, seed=seed, n_classes=30)
    sums, counts = 1e4 * rng.normal(size=(30, 60)), n + 3e4 * rng.normal(size=30)
    found = class_posterior(prior, NoisySums(sums, 1e4, counts, 3e4)).sizes
    assert found.sum() <= max(counts.sum(), 3e4 * 30**0.5) * (1 + 1e-12)
    assert found.min() >= 1


def test_without_noise_a_mean_is_shrunk_by_the_variance_within_its_class_alone():
    prior = prior_of([0.6, 0.2], np.array([[0.1, -0.2]]))
    sums, sizes = np.array([[4.0, 1.0], [500.0, 900.0]]), np.array([5.0, 1000.0])
    _, mean, variance = Family(prior, prior.neighbourhoods, 0.3, WITHIN).posterior(sums, sizes, 0.0)
    shrunk = (WITHIN / sizes / (0.3 + WITHIN / sizes))[:, None]
    assert np.allclose(
        mean, sums / sizes[:, None] + shrunk * (prior.neighbourhoods - sums / sizes[:, None])
    )
    assert np.allclose(variance, shrunk * 0.3 * prior.variances)
    released = NoisySums(1e9 * sums, 0.0, 1e9 * sizes, 0.0)
    assert np.allclose(class_posterior(prior, released).mean, sums / sizes[:, None], atol=1e-6)


def test_in_much_noise_a_mean_is_that_of_the_prior():
    prior = public_prior(PUBLIC + 3 * (np.arange(300) < 40)[:, None], CENTRE)
    nothing = NoisySums(np.zeros((5, 8)), 1e9, np.full(5, 100.0), 1.0)
    centres = RNG.normal(size=(5, 8))
    assert np.linalg.norm(prior.neighbourhoods.mean(axis=0)) > 0.1
    public = [prior.neighbourhoods, prior.neighbourhoods - prior.neighbourhoods.mean(axis=0)]
    thirds = [
        (np.zeros((5, 8)), ELSEWHERE, None, (2 / 3 * 5 + PRIOR_CLASSES) / (5 + PRIOR_CLASSES)),
        (centres, ABOUT_NAME, centres, 1.0),
    ]
    for third, spread, given, trust in thirds:
        found = class_posterior(prior, nothing, given)
        assert np.allclose(found.mean, (prior.neighbourhoods.mean(axis=0) + third) / 3, atol=1e-6)
        squares = [
            (points**2).mean(axis=0) + ABOUT_NEIGHBOURHOOD * prior.variances for points in public
        ]
        squares.append(third**2 + spread * prior.variances)
        assert np.allclose(found.variance, sum(squares) / 3 - found.mean**2, atol=1e-6)
        assert found.trust == pytest.approx(trust)
        assert found.within == 1.0


def test_a_class_without_records_is_decided_by_its_name_alone():
    prior = public_prior(PUBLIC, CENTRE)
    centres = RNG.normal(size=(5, 8))
    counts = np.array([50.0, 50.0, 0.0, 0.0, 0.0])
    sums = counts[:, None] * centres + 0.1 * RNG.normal(size=(5, 8))
    found = class_posterior(prior, NoisySums(sums, 0.1, counts, 0.1), centres)
    assert found.sizes[:2] == pytest.approx([50.0, 50.0], rel=0.1)
    assert found.sizes[2:].max() < 0.2
    assert np.allclose(found.mean, centres, atol=0.1)
    assert np.allclose(found.variance[2:], ABOUT_NAME * prior.variances, rtol=0.2)


def test_thegrand_mean_is_shrunk_by_the_share_of_its_energy_that_is_noise():
    rng = np.random.default_rng(2)
    counts, noise = np.full(10, 50.0), 40.0
    drawn = noise * rng.normal(size=(10, 2000))
    plain = drawn.sum(axis=0) / 500
    assert np.linalg.norm(grand_mean(NoisySums(drawn, noise, counts, 1.0))) < 0.15 * np.linalg.norm(
        plain
    )
    signal = rng.normal(size=2000) * 0.3
    drawn = 50 * signal + noise * rng.normal(size=(10, 2000))
    found, plain = grand_mean(NoisySums(drawn, noise, counts, 1.0)), drawn.sum(axis=0) / 500
    assert np.allclose(found / plain, (found / plain)[0])
    assert found[0] / plain[0] == pytest.approx((signal @ signal) / (plain @ plain), rel=0.1)
    assert np.allclose(grand_mean(NoisySums(drawn, 0.0, counts, 0.0)), plain)
    assert np.array_equal(
        grand_mean(NoisySums(np.zeros((3, 2)), 0.0, np.zeros(3), 0.0)), np.zeros(2)
    )


def test_clarity_is_the_share_of_the_energy_of_a_sum_that_is_not_noise():
    sizes = np.array([1.0, 20.0, 500.0])
    posterior = ClassPosterior(np.zeros((3, 7)), np.ones((3, 7)), sizes, 0.5, 0.6)
    for noise in (0.5, 3.0, 40.0):
        energy = sizes**2 * 0.4
        assert np.allclose(posterior.clarity(noise), energy / (energy + 7 * noise**2))
    assert np.array_equal(posterior.clarity(0.0), np.ones(3))
    alike = replace(posterior, within=1.0)
    assert alike.between == LEAST_BETWEEN
    assert np.allclose(
        alike.clarity(3.0), sizes**2 * LEAST_BETWEEN / (sizes**2 * LEAST_BETWEEN + 63)
    )


def test_clarity_is_what_a_simulated_sum_has():
    rng = np.random.default_rng(3)
    means = np.repeat([[0.4, -0.3, 0.0, 0.2]], 20_000, axis=0)
    sums, noise = 30 * means, 11.0 * rng.normal(size=means.shape)
    posterior = ClassPosterior(
        means[:1], means[:1], np.array([30.0]), 0.5, 1 - float(means[0] @ means[0])
    )
    assert posterior.clarity(11.0)[0] == pytest.approx(
        (sums**2).sum() / ((sums + noise) ** 2).sum(), rel=0.02
    )


def named(b=0.6, seed=0, n_classes=50, width=60, noise=5.0, n=100):
    """Classes whose means are b times their names, beside a deviation; and what is released of
    them.
    """
    rng = np.random.default_rng(seed)
    variances = np.full(width, 1 / width)
    names = unit_rows(rng.normal(size=(n_classes, width)))
    means = 0.02 + b * names + rng.normal(size=names.shape) * np.sqrt(ABOUT_NAME * variances)
    sums = n * means + rng.normal(size=names.shape) * np.sqrt(n * WITHIN * variances + noise**2)
    prior = prior_of(variances, rng.normal(size=(50, width)) / width)
    released = NoisySums(sums, noise, np.full(n_classes, float(n)), 1.0)
    return prior, released, names, class_posterior(prior, released)


def length_of(centres, released, names, sizes):
    """The b of centres g + b (t - mean t), in which classes weigh by their sizes."""
    about, spread = centres - grand_mean(released), names - np.average(names, axis=0, weights=sizes)
    b = (about * spread).sum() / (spread**2).sum()
    assert np.allclose(about, b * spread)
    return b


@pytest.mark.parametrize("b", [0.3, 0.7])
@pytest.mark.parametrize("noise", [0.0, 5.0, 30.0])
def test_right_names_have_the_length_that_means_have_along_them(b, noise):
    found = []
    for seed in range(5):
        prior, released, names, plain = named(b, seed, noise=noise)
        found.append(
            length_of(named_centres(prior, released, plain, names), released, names, plain.sizes)
        )
    assert np.mean(found) == pytest.approx(b, abs=0.05)


def test_the_length_of_names_is_the_posterior_mean_of_a_weighted_regression():
    """Least squares with an intercept for each axis."""
    rng = np.random.default_rng(4)
    prior = prior_of([0.5, 0.3, 0.2], rng.normal(size=(4, 3)))
    names, sizes, noise = unit_rows(rng.normal(size=(6, 3))), rng.uniform(5, 50, 6), 2.0
    sums = sizes[:, None] * (0.4 * names + 0.3 * rng.normal(size=(6, 3)))
    released = NoisySums(sums, noise, sizes + 2, 20.0)
    plain = ClassPosterior(names, names, sizes + 1, 0.5, 0.7)
    total = (sizes + 1).sum()
    sure = (sizes + 1) * (1 - 6 * 20.0**2 / total**2) ** 0.5  # the total is a sum of six counts
    weights = 1 / (ELSEWHERE / 3 + 0.7 / 3 / sure + (noise / sure) ** 2)
    design = np.column_stack([np.kron(np.ones((6, 1)), np.eye(3)), names.ravel()])
    normal = design.T @ (np.repeat(weights, 3)[:, None] * design)
    fitted = np.linalg.solve(
        normal, design.T @ (np.repeat(weights, 3) * (sums / (sizes + 1)[:, None]).ravel())
    )
    precision = 1 / np.linalg.inv(normal)[-1, -1]
    prior_precision = 1 / LENGTH_SD**2
    expected = (fitted[-1] * precision + LENGTH_MEAN * prior_precision) / (
        precision + prior_precision
    )
    centred = named_centres(prior, released, plain, names)
    assert length_of(centred, released, names, plain.sizes) == pytest.approx(expected)


def test_means_that_are_their_names_are_found_whatever_the_sizes_of_classes():
    """Weighting all classes alike, as the derivation of the method had it, misses means by half of
    their length.
    """
    rng = np.random.default_rng(1)
    names, sizes = unit_rows(rng.normal(size=(4, 60))), np.array([1e4, 1e6, 1e5, 1e3])
    prior, means = (
        prior_of(np.full(60, 1 / 60), np.zeros((3, 60))),
        0.1 * rng.normal(size=60) / 8 + 0.5 * names,
    )
    released = NoisySums(sizes[:, None] * means, 1e-3, sizes, 1e-3)
    centres = named_centres(
        prior, released, ClassPosterior(means, 0 * means + 1e-9, sizes, 0.5, 0.5), names
    )
    assert np.linalg.norm(centres - means, axis=1).max() < 0.01
    alike = grand_mean(released) + 0.5 * (names - names.mean(axis=0))
    assert np.linalg.norm(alike - means, axis=1).min() > 0.25


@pytest.mark.parametrize("seed", range(10))
def test_names_of_other_classes_or_tasks_are_contradicted(seed):
    prior, released, names, plain = named(seed=seed, n_classes=300)
    assert named_centres(prior, released, plain, names) is not None
    assert named_centres(prior, released, plain, np.roll(names, 1, axis=0)) is None
    other_task = unit_rows(np.random.default_rng(seed + 100).normal(size=names.shape))
    assert named_centres(prior, released, plain, other_task) is None
    assert named_centres(prior, released, plain, -names) is None


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("n_classes", "noise"), [(9, 0), (10, 0), (50, 3e5)])
def test_names_are_contradicted_below_the_least_useful_length(n_classes, noise, sign):
    """At every number of classes: a mean of the length below .1 less two standard deviations."""
    prior, released, names, plain = named(b=0.0, noise=0.0, n=10**6, n_classes=n_classes)
    squares = ((names - names.mean(axis=0)) ** 2).sum()
    variance = ELSEWHERE / 60 + plain.within / 60 / 10**6 + (noise / 10**6) ** 2
    information = squares / variance
    prior_precision = 1 / LENGTH_SD**2
    least = LEAST_LENGTH - 2 * (information + prior_precision) ** -0.5
    edge = ((information + prior_precision) * least - LENGTH_MEAN * prior_precision) / information
    exact = replace(released, sums=1e6 * (edge + sign * 1e-4) * names, noise=noise)
    found = named_centres(prior, exact, plain, names)
    assert (found is not None) == (sign > 0)


def test_classes_without_records_are_no_evidence_against_their_names():
    """Ten records among 64 classes: the length is that of the ten, not of 64 of which most are
    zero.
    """
    rng = np.random.default_rng(5)
    names = unit_rows(rng.normal(size=(64, 60)))
    has_record = np.arange(64) < 10
    sums = np.where(has_record[:, None], LENGTH_MEAN * names, 0.0)
    prior = prior_of(np.full(60, 1 / 60), rng.normal(size=(50, 60)) / 60)
    counts = has_record.astype(float)
    for noise in (1e-6, 0.05):
        released = NoisySums(sums, noise, counts, noise)
        plain = class_posterior(prior, released)
        assert plain.sizes.sum() > 60
        length = name_length(prior, released, plain, names)
        assert not length.contradicted
        assert length.mean == pytest.approx(LENGTH_MEAN, abs=0.03)
        shuffled = name_length(prior, released, plain, names[rng.permutation(64)])
        assert shuffled.mean < LENGTH_MEAN / 2


def test_names_are_kept_at_their_usual_length_where_sums_say_nothing():
    prior, released, names, _ = named(noise=1e7)
    nothing = replace(released, sums=0 * released.sums)
    plain = class_posterior(prior, nothing)
    found = named_centres(prior, nothing, plain, names)
    assert length_of(found, nothing, names, plain.sizes) == pytest.approx(LENGTH_MEAN, rel=1e-4)


@pytest.mark.parametrize("noise", [1e3, 1e5, 1e7])
def test_noise_alone_contradicts_no_names(noise):
    for seed in range(60):
        prior, released, names, _ = named(seed=seed, noise=noise, n_classes=10, width=20)
        counts = released.counts + 5 * noise * np.random.default_rng(seed).normal(size=10)
        released = replace(released, counts=counts, count_noise=5 * noise)
        assert named_centres(prior, released, class_posterior(prior, released), names) is not None


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_most_names_are_told_apart_where_noise_does_not_hide_the_sums(noise):
    right, wrong = 0, 0
    for seed in range(25):
        prior, released, names, plain = named(b=0.4, seed=seed, noise=noise, n_classes=200)
        right += named_centres(prior, released, plain, names) is not None
        wrong += named_centres(prior, released, plain, np.roll(names, 1, axis=0)) is not None
    assert right == 25
    assert wrong <= 3


def test_names_that_do_not_differ_are_no_information():
    prior, released, names, plain = named()
    alike = np.repeat(names[:1], len(names), axis=0)
    assert named_centres(prior, released, plain, alike) is None
    assert named_posterior(prior, released, plain, alike) is None


@pytest.mark.parametrize("noise", [0.0, 5.0, 60.0, 1e6])
def test_clear_classes_rely_on_their_sums_and_others_on_their_names(noise):
    prior, released, names, _ = named(noise=noise)
    released = replace(released, counts=np.where(np.arange(50) < 25, 100.0, 40.0))
    plain = class_posterior(prior, released)
    about = class_posterior(prior, released, named_centres(prior, released, plain, names))
    found = named_posterior(prior, released, plain, names)
    f = np.sqrt(plain.sizes**2 * plain.between / (plain.sizes**2 * plain.between + 60 * noise**2))
    assert found is not None
    assert 0 < f.mean() <= 1
    assert about.trust == 1.0
    assert np.allclose(
        found.mean, f[:, None] * plain.mean + (1 - f)[:, None] * about.mean, rtol=1e-12, atol=1e-14
    )
    assert np.allclose(
        found.variance, f[:, None] * plain.variance + (1 - f)[:, None] * about.variance, rtol=1e-12
    )
    assert found.trust == pytest.approx(f.mean() * plain.trust + 1 - f.mean())
    assert np.array_equal(found.sizes, plain.sizes)
    assert found.within == plain.within


def test_right_names_bring_means_nearer_where_sums_are_noise():
    prior, released, names, plain = named(noise=60.0, n=100)
    truth = 0.02 + 0.6 * names  # beside a deviation that neither can know
    found = named_posterior(prior, released, plain, names)
    assert ((found.mean - truth) ** 2).sum() < 0.8 * ((plain.mean - truth) ** 2).sum()


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("n_classes", [1, 2, 7])
@pytest.mark.parametrize("given", [False, True])
def test_no_variance_is_negative_and_nothing_overflows(noise, size, n_classes, given):
    prior = public_prior(PUBLIC, CENTRE)
    rng = np.random.default_rng(4)
    rows = unit_rows_about(rng.normal(size=(n_classes, 8)), None)
    sums = size * rows + noise * rng.normal(size=(n_classes, 8))
    counts = size + 3 * noise * rng.normal(size=n_classes)
    release = NoisySums(sums, noise, counts, 3 * noise)
    plain = class_posterior(prior, release)
    found = (named_posterior(prior, release, plain, rows) if given else None) or plain
    assert (found.variance > 0).all()
    assert (found.sizes >= 1).all()
    assert 0 <= found.trust <= 1
    assert LEAST_WITHIN <= found.within <= 1
    assert ((found.clarity(noise) >= 0) & (found.clarity(noise) <= 1)).all()
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.variance).all()


def two_classes(seed, apart, width=30):
    """Public rows of two classes alike in number, the first of which is ten times as large here;
    `apart` moves both.
    """
    rng = np.random.default_rng(seed)
    middles = np.stack([3 * rng.normal(size=width), 3 * rng.normal(size=width)])
    rows = [middle + rng.normal(size=(200, width)) for middle in middles]
    public = unit_rows(np.concatenate(rows))
    centre = public.mean(axis=0)
    away = apart * rng.normal(size=width)
    private = [
        unit_rows_about(own[:n] + away, centre) for own, n in zip(rows, (200, 20), strict=True)
    ]
    prior = public_prior(public, centre)
    sums = np.stack([own.sum(axis=0) for own in private]) @ prior.axes
    return prior, NoisySums(sums + rng.normal(size=sums.shape), 1.0, np.array([200.0, 20.0]), 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_of_two_classes_tells_whether_public_rows_are_of_their_kind(seed):
    prior, release = two_classes(seed, apart=0.0)
    assert class_posterior(prior, release).trust > 0.9
    prior, release = two_classes(seed, apart=10.0)
    assert class_posterior(prior, release).trust < 0.1


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_grand_mean_is_multiplied_by_its_distinctness(monkeypatch, n_classes, share):
    prior, _, n, release = simulated(
        n_classes, n_classes=n_classes, sizes=np.geomspace(20, 500, n_classes)
    )
    release = replace(release, sums=release.sums + 0.05 * n[:, None])
    grand = grand_mean(release)
    monkeypatch.setattr(module, "distinctness", lambda *_: share)
    found = class_posterior(prior, release).mean
    monkeypatch.setattr(module, "distinctness", lambda *_: 1.0)
    assert not np.allclose(found, class_posterior(prior, release).mean, rtol=1e-3)
    monkeypatch.setattr(module, "grand_mean", lambda _: share * grand)
    assert np.allclose(found, class_posterior(prior, release).mean, rtol=1e-12, atol=1e-15)


def test_trust_is_that_of_the_classes_and_of_a_few_more_that_are_trusted():
    for weight in (0.0, 0.3, 1.0):
        assert class_trust(weight, 1.0, 7) == weight
        assert class_trust(weight, 0.0, 3) == pytest.approx((weight + 1) / 2)
        assert class_trust(weight, 0.0, 10**9) == pytest.approx(weight, abs=1e-8)
    assert [
        class_trust(1.0, apart, n) for apart in (0.0, 0.4, 1.0) for n in (1, 3, 9)
    ] == pytest.approx([1.0] * 9)
    assert (
        0.9 > class_trust(0.2, 0.0, 1) > class_trust(0.2, 0.5, 1) > class_trust(0.2, 0.9, 1) > 0.2
    )


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_trust_of_two_classes_is_what_distinctness_leaves(weight):
    assert [class_trust(weight, apart, 2) for apart in (0.0, 0.25, 1.0)] == [1.0, 0.75, 0.0]


@pytest.mark.parametrize("apart", [0.0, 0.5, 10.0])
def test_two_classes_have_their_trust_by_the_distinctness_of_their_mean_but_all_beside_names(apart):
    prior, release = two_classes(0, apart)
    found = class_posterior(prior, release)
    assert found.trust == pytest.approx(1 - distinctness(grand_mean(release), prior.variances))
    assert class_posterior(prior, release, found.mean).trust == 1.0


@pytest.mark.parametrize("apart", [0.0, 0.4, 1.0])
def test_trust_is_by_the_weight_of_the_families_and_by_distinctness(monkeypatch, apart):
    prior, _, _, release = simulated(20, n_classes=40)
    monkeypatch.setattr(module, "distinctness", lambda *_: apart)
    found = np.full((40, SIZES), 1 / SIZES), np.array([0.5, 0.25, 0.25])
    monkeypatch.setattr(module, "expectation_maximisation", lambda *_: found)
    assert class_posterior(prior, release).trust == pytest.approx(class_trust(0.75, apart, 40))


def test_normalising_large_logs():
    np.testing.assert_allclose(softmax(np.array([[1e4, 1e4 + np.log(3)]]), axis=1), [[0.25, 0.75]])
