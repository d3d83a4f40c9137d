import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import OpenDPNoise, ResearchNoise, SecureNoise
from tacit.privacy.events import Gaussian, Parallel

SOURCES = [SecureNoise(), ResearchNoise(0)]


def sums(rows, labels, n_classes=3):
    return gaussian.class_sums([(rows, labels)], n_classes=n_classes, width=rows.shape[1])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 40),
    scale=st.sampled_from([1e-3, 1.0, 1e3, 1e200]),
)
def test_the_sensitivity_of_the_table_is_one_unit(seed, width, scale):
    """Sensitivity in exact arithmetic, rows of any length, any order and block shape."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(30, width)) * scale, rng.integers(0, 3, 30)
    with_all, without = sums(rows, labels), sums(rows[1:], labels[1:])
    assert sum(int(value) ** 2 for value in (with_all - without).ravel()) <= gaussian.UNIT**2
    order = rng.permutation(30)
    blocks = [(rows[order[:11]], labels[order[:11]]), (rows[order[11:]], labels[order[11:]])]
    assert np.array_equal(gaussian.class_sums(blocks, n_classes=3, width=width), with_all)


def test_sums_are_those_of_the_rows_in_the_unit_ball():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    inside = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    expected = [inside[labels == c].sum(axis=0) for c in range(3)]
    assert np.allclose(sums(rows, labels) / gaussian.UNIT, expected, atol=1e-7)


def test_a_class_without_records_and_no_records_at_all_work():
    rows = np.ones((2, 2)) / 2
    assert not sums(rows, np.array([0, 2]))[1].any()
    assert not sums(rows[:0], np.array([], dtype=np.int64)).any()


@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("z", [0.4, 5.0])
def test_noise_has_the_stated_deviation_and_is_gaussian(noise, z):
    rows = np.array([[1.0] + [0.0] * 1999])
    table = gaussian.noisy_class_sums(
        [(rows, np.array([1]))], n_classes=3, width=2000, noise_multiplier=z, noise=noise
    )
    table[1, 0] -= 1
    values = table.ravel() / z
    assert stats.kstest(values, "norm").pvalue > 1e-6
    assert values.std() == pytest.approx(1, abs=0.05)  # 6000 values: 5 standard errors
    assert abs(np.corrcoef(table)[0, 1]) < 0.12  # fresh noise per class


def test_sums_and_counts_are_one_vector_with_the_noise_of_each():
    """A record has norm 1 in it; noise is that of two releases, and the costs of both are its
    cost.
    """
    seen = []

    class Spy(ResearchNoise):
        def gaussian(self, values, scale):
            seen.append((values, scale))
            return super().gaussian(values, scale)

    rows, labels = np.array([[0.6, 0.8] + [0.0] * 998] * 50), np.repeat([0, 2], [20, 30])
    facts = {"n_classes": 3, "width": 1000, "noise_multipliers": (2.0, 15.0)}
    sums, counts = gaussian.noisy_sums_and_counts(
        [(rows[:30], labels[:30]), (rows[30:], labels[30:])], noise=Spy(0), **facts
    )
    (of_rows, scale), (of_ones, same) = seen
    assert scale == same
    # not below the exact product
    assert Fraction(scale) ** 2 * (Fraction(1, 4) + Fraction(1, 225)) >= gaussian.UNIT**2
    one = np.hypot(np.linalg.norm(of_rows, axis=1), of_ones) / gaussian.UNIT
    assert one == pytest.approx([20, 0, 30])
    assert (gaussian.UNIT / scale) ** 2 == pytest.approx(1 / 2**2 + 1 / 15**2)
    exact = np.array([20.0, 0, 30])[:, None] * rows[0]
    assert ((sums - exact) / 2).std() == pytest.approx(1, abs=0.05)
    assert counts.shape == (3,)
    many = [
        gaussian.noisy_sums_and_counts([(rows, labels)], noise=ResearchNoise(i), **facts)[1]
        for i in range(500)
    ]
    assert (np.array(many) - [20, 0, 30]).std() == pytest.approx(15, rel=0.1)


@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
def test_every_call_draws_fresh_noise(noise):
    zeros = np.zeros((2, 50), dtype=np.int64)
    assert not np.array_equal(noise.gaussian(zeros, 1e9), noise.gaussian(zeros, 1e9))


def rounded(support, sigma):
    return np.diff(stats.norm.cdf(np.append(support, support[-1] + 1) - 0.5, scale=sigma))


def discrete(support, sigma):
    return np.exp(-(support**2) / (2 * sigma**2))


@pytest.mark.parametrize(("noise", "law"), [(SecureNoise(), rounded), (OpenDPNoise(), discrete)])
@pytest.mark.parametrize("sigma", [0.7, 3.0])
def test_secure_noise_is_rounded_and_that_of_opendp_discrete(noise, law, sigma):
    draws = noise.gaussian(np.zeros(20_000, dtype=np.int64), sigma)
    support = np.arange(-60, 61)
    weights = law(support, sigma)
    expected = 20_000 * weights / weights.sum()
    common = expected > 10
    observed = np.array([(draws == value).sum() for value in support[common]])
    rest = 20_000 - observed.sum()
    statistic = ((observed - expected[common]) ** 2 / expected[common]).sum()
    tail = 20_000 - expected[common].sum()
    statistic += (rest - tail) ** 2 / tail
    assert stats.chi2.sf(statistic, common.sum()) > 1e-6


def test_limits_are_those_of_64_bits_and_of_float64():
    # with noise below 2^62
    assert gaussian._MOST_ROWS * gaussian.UNIT <= 2**62
    assert gaussian._EXACT_ROWS * gaussian.UNIT <= 2**53  # whole numbers that float64 holds


def test_the_event_is_one_gaussian_on_disjoint_classes():
    assert gaussian.event(2.0) == Parallel(Gaussian(2.0), "classes")


def test_opendp_states_the_same_privacy_cost():
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    z = 1.7
    measurement = make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T=float), scale=z * gaussian.UNIT
    )
    assert measurement.map(float(gaussian.UNIT)) == pytest.approx(gaussian.event(z).rho, rel=1e-12)


LONG = np.array([[3.0, 4.0], [-3.0, -4.0], [0.1, 0.0]])


def table(rows, labels):
    return [int(value) for value in sums(np.asarray(rows), np.asarray(labels), 3).ravel()]


def test_other_neighbours_move_sums_and_counts_by_what_is_stated():
    """All pairs of one record, in exact integers, and that each bound is reached."""
    records = [(row, c) for row in range(len(LONG)) for c in range(3)]
    reached = {"replace": 0, "change-label": 0, "counts": 0}
    for (row, c), (other, k) in itertools.product(records, records):
        before, after = table(LONG[[row]], [c]), table(LONG[[other]], [k])
        distance = sum((a - b) ** 2 for a, b in zip(before, after, strict=True))
        reached["replace"] = max(reached["replace"], distance)
        if row == other:
            reached["change-label"] = max(reached["change-label"], distance)
        ones = table([[1.0]], [c]), table([[1.0]], [k])
        reached["counts"] = max(
            reached["counts"], sum((a - b) ** 2 for a, b in zip(*ones, strict=True))
        )
    stated = {
        "replace": gaussian.CLASS_SUMS.replace,
        "change-label": gaussian.CLASS_SUMS.change_label,
        "counts": gaussian.CLASS_COUNTS.replace,
    }
    assert gaussian.CLASS_COUNTS.change_label == gaussian.CLASS_COUNTS.replace
    for name, distance in reached.items():
        assert distance <= (stated[name] * gaussian.UNIT) ** 2
        assert distance / gaussian.UNIT**2 == pytest.approx(stated[name] ** 2, rel=1e-8)
