import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from tacit.models import posterior as module
from tacit.models.posterior import (
    ABOUT_NEIGHBOURHOOD,
    ELSEWHERE,
    FLOOR,
    ISOTROPIC,
    SIZES,
    SOFTNESS,
    WITHIN,
    ClassPosterior,
    PublicPrior,
    _expectation_maximisation,
    _Family,
    _grand_mean,
    class_posterior,
    density,
    public_prior,
)
from tacit.models.rows import unit_rows_about

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(300, 8)) * np.linspace(2, 0.2, 8) + 1
CENTRE = (PUBLIC / np.linalg.norm(PUBLIC, axis=1, keepdims=True)).mean(axis=0)


def simulated(n_elsewhere, seed=0, n_classes=200, width=20, sizes=None, noise=2.0, count_noise=3.0):
    """A prior, and what is released of classes that follow it, the first of them elsewhere."""
    rng = np.random.default_rng(seed)
    variances = np.linspace(1.5, 0.5, width) / width
    points = rng.normal(size=(50, width)) * np.sqrt(1.5 * variances)
    prior = PublicPrior(np.eye(width), variances, points - points.mean(axis=0) + 0.05)
    elsewhere = np.arange(n_classes) < n_elsewhere
    about = np.where(elsewhere[:, None], 0.0, prior.neighbourhoods[rng.integers(0, 50, n_classes)])
    spread = np.where(elsewhere, ELSEWHERE, ABOUT_NEIGHBOURHOOD)[:, None]
    means = about + rng.normal(size=about.shape) * np.sqrt(spread * variances)
    n = np.full(n_classes, 100.0) if sizes is None else sizes
    sums = n[:, None] * means + rng.normal(size=means.shape) * np.sqrt(n[:, None] * WITHIN * variances + noise**2)
    return prior, means, n, (sums, noise, n + count_noise * rng.normal(size=n_classes), count_noise)


@pytest.mark.parametrize("noise", [0.0, 0.7, 30.0])
@pytest.mark.parametrize("spread", [ABOUT_NEIGHBOURHOOD, ELSEWHERE])
def test_a_family_in_one_dimension_is_what_integration_gives(noise, spread):
    w, means, sums, sizes = 0.4, np.array([[-1.0], [0.3], [2.0]]), np.array([[-3.0], [1.0], [9.0]]), np.array([3, 1, 7])
    family = _Family(PublicPrior(np.eye(1), np.array([w]), means), means, spread)
    evidence, mean, variance = family.posterior(sums, sizes, noise)
    grid = np.linspace(-9, 9, 200_001)
    step = grid[1] - grid[0]
    of_mean = norm.pdf(grid, means, np.sqrt(spread * w)).mean(axis=0)
    for c in range(3):
        joint = of_mean * norm.pdf(sums[c, 0], sizes[c] * grid, np.sqrt(sizes[c] * WITHIN * w + noise**2))
        assert evidence[c] == pytest.approx(np.log(joint.sum() * step) + 0.5 * np.log(2 * np.pi), abs=1e-8)
        assert family.evidence(sums, sizes[c], noise)[c] == pytest.approx(evidence[c], abs=1e-12)
        first = (joint @ grid) / joint.sum()
        assert mean[c, 0] == pytest.approx(first, abs=1e-8)
        assert variance[c, 0] == pytest.approx((joint @ (grid - first) ** 2) / joint.sum(), abs=1e-8)


def test_a_family_in_several_dimensions_is_a_mixture_of_gaussians():
    rng = np.random.default_rng(1)
    prior = PublicPrior(np.eye(3), np.array([0.5, 0.3, 0.1]), rng.normal(size=(4, 3)))
    family = _Family(prior, prior.neighbourhoods, ABOUT_NEIGHBOURHOOD)
    sums, sizes, noise = rng.normal(size=(5, 3)) * 4, np.array([1.0, 2.0, 5.0, 20.0, 3.0]), 1.5
    evidence, mean, variance = family.posterior(sums, sizes, noise)
    for c, n in enumerate(sizes):
        of_sum = n**2 * ABOUT_NEIGHBOURHOOD * prior.variances + n * WITHIN * prior.variances + noise**2
        each = np.array([multivariate_normal(n * m, np.diag(of_sum)).pdf(sums[c]) for m in prior.neighbourhoods])
        assert evidence[c] == pytest.approx(np.log(each.mean()) + 1.5 * np.log(2 * np.pi))
        about = ABOUT_NEIGHBOURHOOD * prior.variances
        precision = 1 / about + n**2 / (n * WITHIN * prior.variances + noise**2)
        own = (prior.neighbourhoods / about + n * sums[c] / (n * WITHIN * prior.variances + noise**2)) / precision
        shares = each / each.sum()
        assert np.allclose(mean[c], shares @ own)
        assert np.allclose(variance[c], 1 / precision + shares @ own**2 - (shares @ own) ** 2)


def test_expectation_maximisation_finds_the_shares_of_families_and_sizes():
    evidence = np.full((100, SIZES, 3), -1e3)
    evidence[:70, 5, 0] = evidence[70:, 30, 2] = 0.0
    of_sizes, of_families = _expectation_maximisation(evidence)
    assert np.allclose(of_families, 0.98 * np.array([0.7, 0, 0.3]) + 0.02 / 3)
    assert np.allclose(of_sizes.argmax(axis=1), [5] * 70 + [30] * 30)
    assert np.allclose(of_sizes.sum(axis=1), 1)


def test_sizes_that_the_evidence_leaves_open_are_those_of_the_other_classes():
    evidence = np.full((100, SIZES, 3), -1e3)
    evidence[:99, 20] = 0.0
    evidence[99] = 0.0
    of_sizes, of_families = _expectation_maximisation(evidence)
    assert of_sizes[99].argmax() == 20
    assert of_sizes[99, 17:24].sum() > 0.9
    assert np.allclose(of_families, 1 / 3)


@pytest.mark.parametrize(("n_elsewhere", "trust"), [(0, 0.99), (100, 0.5), (200, 0.01)])
def test_trust_is_the_share_of_classes_that_look_like_public_rows(n_elsewhere, trust):
    prior, _, _, released = simulated(n_elsewhere)
    assert class_posterior(prior, *released).trust == pytest.approx(trust, abs=0.06)


def test_means_are_nearer_than_those_of_the_sums_and_as_far_as_said():
    prior, means, n, released = simulated(100, noise=10.0)
    found = class_posterior(prior, *released)
    errors = (found.mean - means) ** 2
    assert errors.mean() < 0.75 * ((released[0] / n[:, None] - means) ** 2).mean()
    assert (errors / found.variance).mean() == pytest.approx(1, abs=0.15)


def test_sizes_are_nearer_than_noisy_counts_unless_those_are_good():
    sizes = np.random.default_rng(5).permutation(np.geomspace(20, 1000, 200))
    prior, _, _, (sums, noise, counts, count_noise) = simulated(0, sizes=sizes, noise=5.0, count_noise=100.0)
    found = class_posterior(prior, sums, noise, counts, count_noise).sizes
    off = np.abs(np.log(found / sizes))
    assert off.mean() < 0.5 * np.abs(np.log(np.maximum(counts, 1.0) / sizes)).mean()
    good = np.where(np.arange(200) == 7, -3.0, sizes)
    assert np.array_equal(class_posterior(prior, sums, noise, good, 1.0).sizes, np.maximum(good, 1.0))


def test_without_noise_a_mean_is_shrunk_by_the_variance_within_its_class_alone():
    prior = PublicPrior(np.eye(2), np.array([0.6, 0.2]), np.array([[0.1, -0.2]]))
    sums, sizes = np.array([[4.0, 1.0], [500.0, 900.0]]), np.array([5.0, 1000.0])
    _, mean, variance = _Family(prior, prior.neighbourhoods, 0.3).posterior(sums, sizes, 0.0)
    shrunk = (WITHIN / sizes / (0.3 + WITHIN / sizes))[:, None]
    assert np.allclose(mean, sums / sizes[:, None] + shrunk * (prior.neighbourhoods - sums / sizes[:, None]))
    assert np.allclose(variance, shrunk * 0.3 * prior.variances)
    released = 1e9 * sums, 0.0, 1e9 * sizes, 0.0
    assert np.allclose(class_posterior(prior, *released).mean, sums / sizes[:, None], atol=1e-6)


def test_in_much_noise_a_mean_is_that_of_the_prior():
    prior = public_prior(PUBLIC + 3 * (np.arange(300) < 40)[:, None], CENTRE)
    found = class_posterior(prior, np.zeros((5, 8)), 1e9, np.full(5, 100.0), 1.0)
    assert np.linalg.norm(prior.neighbourhoods.mean(axis=0)) > 0.1
    assert np.allclose(found.mean, prior.neighbourhoods.mean(axis=0) / 3, atol=1e-6)  # two of three families: about 0
    each = [prior.neighbourhoods, prior.neighbourhoods - prior.neighbourhoods.mean(axis=0), np.zeros((1, 8))]
    spreads = (ABOUT_NEIGHBOURHOOD, ABOUT_NEIGHBOURHOOD, ELSEWHERE)
    second = np.mean(
        [(own**2).mean(axis=0) + s * prior.variances for own, s in zip(each, spreads, strict=True)], axis=0
    )
    assert np.allclose(found.variance, second - found.mean**2, atol=1e-6)
    assert found.trust == pytest.approx(2 / 3)


def test_the_grand_mean_is_shrunk_by_the_share_of_its_energy_that_is_noise():
    rng = np.random.default_rng(2)
    counts, noise = np.full(10, 50.0), 40.0
    drawn = noise * rng.normal(size=(10, 2000))
    plain = drawn.sum(axis=0) / 500
    assert np.linalg.norm(_grand_mean(drawn, noise, counts, 1.0)) < 0.15 * np.linalg.norm(plain)
    signal = rng.normal(size=2000) * 0.3
    drawn = 50 * signal + noise * rng.normal(size=(10, 2000))
    found, plain = _grand_mean(drawn, noise, counts, 1.0), drawn.sum(axis=0) / 500
    assert np.allclose(found / plain, (found / plain)[0])
    assert found[0] / plain[0] == pytest.approx((signal @ signal) / (plain @ plain), rel=0.1)
    assert np.allclose(_grand_mean(drawn, 0.0, counts, 0.0), plain)
    assert np.array_equal(_grand_mean(np.zeros((3, 2)), 0.0, np.zeros(3), 0.0), np.zeros(2))


@pytest.mark.parametrize("widening", [0.0, 0.5, 2.0])
def test_the_density_is_that_of_a_gaussian_up_to_a_constant_that_classes_share(widening):
    prior = public_prior(PUBLIC, CENTRE)
    rng = np.random.default_rng(3)
    posterior = ClassPosterior(rng.normal(size=(4, 8)) / 3, rng.random((4, 8)) / 5, np.ones(4), 0.5)
    squares, slopes, offsets = density(prior, posterior, widening)
    rows = rng.normal(size=(20, 8))
    found = rows**2 @ squares.T + rows @ slopes.T + offsets
    covariances = [np.diag(prior.within + widening * variance) for variance in posterior.variance]
    each = zip(posterior.mean, covariances, strict=True)
    expected = np.stack([multivariate_normal(mean, covariance).logpdf(rows) for mean, covariance in each], axis=1)
    assert np.allclose(found - expected, 4 * np.log(2 * np.pi))


def test_the_prior_of_public_rows():
    prior = public_prior(PUBLIC, CENTRE)
    rows = unit_rows_about(PUBLIC, CENTRE)
    moments = rows.T @ rows / 300
    spread = ISOTROPIC * np.trace(moments) / 8
    assert np.allclose(prior.axes.T @ prior.axes, np.eye(8))
    assert np.allclose(prior.axes.T @ moments @ prior.axes, np.diag((prior.variances - spread) / (1 - ISOTROPIC)))
    assert (np.diff(prior.variances) <= 0).all()
    within = WITHIN * prior.variances + FLOOR * prior.variances.max()
    assert np.mean(within / prior.within) == pytest.approx(1)
    assert np.allclose(np.diff(np.log(prior.within)), SOFTNESS * np.diff(np.log(within)))


@pytest.mark.parametrize(("rows", "anchors"), [(16_384, 2_048), (200, 50), (300, 299)])
def test_neighbourhoods_are_means_of_the_nearest_public_rows(monkeypatch, rows, anchors):
    monkeypatch.setattr(module, "ROWS", rows)
    monkeypatch.setattr(module, "ANCHORS", anchors)
    used = unit_rows_about(PUBLIC if rows >= 300 else PUBLIC[np.linspace(0, 299, rows).astype(int)], CENTRE)
    about = used if anchors >= len(used) else used[np.linspace(0, len(used) - 1, anchors).astype(int)]
    prior = public_prior(PUBLIC, CENTRE)
    nearest = len(used) // 100
    expected = [used[sorted(range(len(used)), key=lambda i: -(row @ used[i]))[:nearest]].mean(axis=0) for row in about]
    assert np.allclose(prior.neighbourhoods, np.array(expected) @ prior.axes, atol=1e-12)


@pytest.mark.parametrize("public", [np.ones((1, 3)), np.ones((50, 3)), np.eye(3), np.eye(3)[:, :1] + 1, -np.eye(2)])
def test_any_public_rows_give_a_prior(public):
    centre = (public / np.linalg.norm(public, axis=1, keepdims=True)).mean(axis=0)
    prior = public_prior(public, centre)
    assert (prior.variances > 0).all()
    assert (prior.within > 0).all()
    assert np.isfinite(prior.neighbourhoods).all()


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("n_classes", [1, 7])
def test_no_variance_is_negative_and_nothing_overflows(noise, size, n_classes):
    prior = public_prior(PUBLIC, CENTRE)
    rng = np.random.default_rng(4)
    sums = size * unit_rows_about(rng.normal(size=(n_classes, 8)), None) + noise * rng.normal(size=(n_classes, 8))
    counts = size + 3 * noise * rng.normal(size=n_classes)
    found = class_posterior(prior, sums, noise, counts, 3 * noise)
    assert (found.variance > 0).all()
    assert (found.sizes >= 1).all()
    assert 0 <= found.trust <= 1
    assert all(np.isfinite(array).all() for array in (found.mean, found.variance, *density(prior, found, 2.0)))
