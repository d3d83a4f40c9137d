from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.outer_products import (
    NORM,
    UNIT,
    class_product_sums,
    product_sums,
    rounded,
    weighted_product_sums,
)
from tacit.mechanisms.rounding import integer_rows
from tacit.privacy.events import Gaussian, Parallel

SOURCES = [SecureNoise(), ResearchNoise(0)]
BOTH = pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)


def products(left, right):
    return product_sums([(left, right)], shape=(left.shape[1], right.shape[1]))


def adversarial_rows(rng, n, width):
    """Rows of any length, some huge, tiny, not finite, or along one axis."""
    rows = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-200, 200, size=(n, 1))
    rows[rng.random(n) < 0.1] = np.nan
    rows[rng.random(n) < 0.1, 0] = np.inf
    rows[rng.random(n) < 0.2] = np.eye(width)[0] * 1e300
    return rows


def test_sums_are_those_of_python_integers():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(40, 3)), rng.normal(size=(40, 5))
    a, b = (integer_rows(rows, NORM).tolist() for rows in (left, right))
    expected = [
        [sum(p[i] * q[j] for p, q in zip(a, b, strict=True)) for j in range(5)] for i in range(3)
    ]
    assert products(left, right).tolist() == expected
    inside = [
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1) for rows in (left, right)
    ]
    assert np.allclose(products(left, right) / UNIT, inside[0].T @ inside[1], atol=1e-3)


def test_the_largest_sums_are_exact():
    """20,000 equal rows, more than one exact product takes, against Python integers."""
    rows = np.tile([[1.0, 1.0]], (20_000, 1))
    whole = int(integer_rows(rows[:1], NORM)[0, 0])
    assert products(rows, rows).tolist() == [[20_000 * whole**2] * 2] * 2
    axis = np.ones((400_001, 1))  # their sum is above 2^53
    assert products(axis, axis).item() == 400_001 * int(integer_rows(axis[:1], NORM)[0, 0]) ** 2


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), a=st.integers(1, 9), b=st.integers(1, 30))
def test_the_sensitivity_of_the_sum_is_one_unit(seed, a, b):
    """Sensitivity in exact arithmetic, whatever the rows, in any order and block shape."""
    rng = np.random.default_rng(seed)
    left, right = adversarial_rows(rng, 30, a), adversarial_rows(rng, 30, b)
    whole, without = products(left, right), products(left[1:], right[1:])
    assert sum(int(value) ** 2 for value in (whole - without).ravel()) <= UNIT**2
    order = rng.permutation(30)
    parts = [(left[chosen], right[chosen]) for chosen in (order[:11], order[11:])]
    assert np.array_equal(product_sums(parts, shape=(a, b)), whole)
    once = [(rows, rounded(others)) for rows, others in parts]
    assert np.array_equal(product_sums(once, shape=(a, b)), whole)


class Doubled:
    """Left rows that are twice the right ones, in units of the integers."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, part):
        return Doubled(len(range(*part.indices(self.n))))

    def of(self, right):
        assert right.shape[0] == self.n
        return 2 * right / NORM


@pytest.mark.parametrize("threads", [1, 3])
def test_left_rows_may_follow_from_the_right_rows(threads, monkeypatch):
    """Their sum is that of left rows known beforehand, whoever computes them and in how many
    pieces.
    """
    right = rounded(np.random.default_rng(0).normal(size=(50, 4)) / 9)
    expected = product_sums([(2 * right.values.astype(np.float64) / NORM, right)], shape=(4, 4))
    monkeypatch.setattr("tacit.compute.threads.thread_count", lambda: threads)
    monkeypatch.setattr(outer_products, "_CACHED_ROWS", 7)
    monkeypatch.setattr(outer_products, "_EXACT_ROWS", 20)
    assert np.array_equal(product_sums([(Doubled(50), right)], shape=(4, 4)), expected)


@pytest.mark.parametrize("strip", [1, 10, 30, 2**22])
def test_a_wide_matrix_is_computed_strip_by_strip(strip, monkeypatch):
    """Every entry is that of the whole product, and its noise that of one draw of the upper
    triangle.
    """
    rows = np.random.default_rng(0).normal(size=(40, 9))
    whole, upper = products(rows, rows), np.triu_indices(9)
    expected = ResearchNoise(0).gaussian(whole[upper], 2.0 * UNIT) / UNIT
    monkeypatch.setattr(outer_products, "_STRIP", strip)
    released = outer_products.noisy_second_moments(
        [rows], width=9, noise_multiplier=2.0, noise=ResearchNoise(0)
    )
    assert np.array_equal(released[upper], expected)
    assert np.array_equal(released, released.T)


def test_the_bound_is_reached():
    one = products(np.array([[5.0, 0.0]]), np.array([[0.0, 3.0]]))
    assert Fraction(int(np.abs(one).max()), UNIT) > Fraction(9999, 10000)


def test_class_moments_are_the_moments_of_each_class():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    found = class_product_sums(
        [(rows[:20], labels[:20]), (rows[20:], labels[20:])], n_classes=4, width=4
    )
    for c in range(3):
        assert np.array_equal(found[c], products(rows[labels == c], rows[labels == c]))
    assert not found[3].any()


def weighted(rows, weights):
    return weighted_product_sums(
        [(rounded(rows), weights)], n_weights=weights.shape[1], width=rows.shape[1]
    )


def test_weighted_moments_are_weighted():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights = rng.random((50, 3)) * [0.5, 0.3, 0.001]
    expected = np.einsum("nk,ni,nj->kij", weights, rows, rows)
    assert np.allclose(weighted(rows, weights) / UNIT, expected, rtol=1e-3, atol=1e-4)
    long = np.array([[30.0, 40.0, 0.0]])
    assert np.allclose(weighted(rows[:1], long), weighted(rows[:1], long / 50))
    assert not weighted(rows[:1], np.array([[-1.0, 0.0, np.nan]])).any()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), a=st.integers(1, 9), b=st.integers(1, 30))
def test_the_sensitivity_of_weighted_moments_is_one_unit(seed, a, b):
    rng = np.random.default_rng(seed)
    rows, weights = adversarial_rows(rng, 30, b), np.abs(adversarial_rows(rng, 30, a))
    whole, without = weighted(rows, weights), weighted(rows[1:], weights[1:])
    assert sum(int(value) ** 2 for value in (whole - without).ravel()) <= UNIT**2
    order = rng.permutation(30)
    parts = [(rounded(rows[chosen]), weights[chosen]) for chosen in (order[:11], order[11:])]
    assert np.array_equal(weighted_product_sums(parts, n_weights=a, width=b), whole)


def test_weighted_moments_do_not_lengthen_rows():
    """Positive rows and equal weights in the unit ball, where rounding could add up."""
    for seed in range(20):
        rows = np.random.default_rng(seed).random((1, 30)) + 0.1
        moved = weighted(rows, np.full((1, 9), 1 / 3))
        assert UNIT**2 * 0.99 < sum(int(value) ** 2 for value in moved.ravel()) <= UNIT**2


def test_noise_on_weighted_moments_over_many_draws():
    """Within 5 % over 2,000 draws, mirrored, and of its own for every weight and entry."""
    rows, weights, noise = rounded(np.array([[0.6, 0.8]])), np.array([[0.6, 0.8]]), ResearchNoise(1)
    drawn = np.stack(
        [
            outer_products.noisy_weighted_second_moments(
                [(rows, weights)], n_weights=2, width=2, noise_multiplier=3.0, noise=noise
            )
            for _ in range(2000)
        ]
    )
    assert np.array_equal(drawn, drawn.transpose(0, 1, 3, 2))
    upper = drawn[:, :, *np.triu_indices(2)].reshape(2000, 6)
    assert upper.var(axis=0).mean() == pytest.approx(9.0, rel=0.05)
    assert np.abs(np.corrcoef(upper, rowvar=False) - np.eye(6)).max() < 0.12
    expected = np.kron([0.6, 0.8], [0.36, 0.48, 0.64])
    assert np.allclose(upper.mean(axis=0), expected, atol=5 * 3 / np.sqrt(2000))


@BOTH
@pytest.mark.parametrize("z", [0.4, 5.0])
def test_noise_on_products_has_the_stated_deviation(noise, z):
    left, right = np.array([[1.0] + [0.0] * 49]), np.array([[1.0] + [0.0] * 39])
    table = outer_products.noisy_products(
        [(left, right)], shape=(50, 40), noise_multiplier=z, noise=noise
    )
    table[0, 0] -= 1
    values = table.ravel() / z
    assert stats.kstest(values, "norm").pvalue > 1e-6
    assert values.std() == pytest.approx(1, rel=0.08)  # 2000 values: 5 standard errors


def test_noise_of_each_release_over_many_draws():
    """Every entry's variance over 2,000 draws, averaged, within 5 %; mirrored entries are equal."""
    rows, labels = np.array([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0]]), np.array([0, 1])
    for z in (0.5, 3.0):
        noise = ResearchNoise(1)
        drawn = np.stack(
            [
                outer_products.noisy_second_moments(
                    [rows], width=3, noise_multiplier=z, noise=noise
                )
                for _ in range(2000)
            ]
        )
        by_class = np.stack(
            [
                outer_products.noisy_class_second_moments(
                    [(rows, labels)], n_classes=2, width=3, noise_multiplier=z, noise=noise
                )
                for _ in range(2000)
            ]
        )
        assert np.array_equal(drawn, drawn.transpose(0, 2, 1))
        assert np.array_equal(by_class, by_class.transpose(0, 1, 3, 2))
        upper = np.triu_indices(3)
        for table in (drawn[:, *upper], by_class[:, 0][:, *upper], by_class[:, 1][:, *upper]):
            assert table.var(axis=0).mean() == pytest.approx(z**2, rel=0.05)
            correlation = np.corrcoef(table, rowvar=False) - np.eye(6)
            assert np.abs(correlation).max() < 0.12  # each entry has noise of its own
        between = np.corrcoef(by_class[:, 0, 0, 1], by_class[:, 1, 0, 1])[0, 1]
        assert abs(between) < 0.12
        assert np.allclose(drawn.mean(axis=0), rows.T @ rows, atol=5 * z / np.sqrt(2000))
        assert np.allclose(
            by_class.mean(axis=0)[1], np.outer(rows[1], rows[1]), atol=5 * z / np.sqrt(2000)
        )


@BOTH
def test_secure_and_research_moments_are_symmetric_and_close_to_exact(noise):
    rows = np.tile([[0.6, 0.8]], (10_000, 1))
    found = outer_products.noisy_second_moments([rows], width=2, noise_multiplier=2.0, noise=noise)
    assert found[0, 1] == found[1, 0]
    assert np.allclose(found, rows.T @ rows, atol=20)


def test_events():
    assert outer_products.event(2.0) == Gaussian(2.0)
    assert outer_products.class_event(2.0) == Parallel(Gaussian(2.0), "classes")


def test_no_records():
    assert not products(np.zeros((0, 2)), np.zeros((0, 3))).any()


def test_limits_are_those_of_64_bits_and_of_float64():
    # with noise below 2^62
    assert outer_products._MOST_ROWS * outer_products.UNIT <= 2**62
    assert outer_products._EXACT_ROWS * outer_products.UNIT <= 2**53
    assert outer_products.NORM <= 2**24  # whole numbers that float32 holds
    assert outer_products.UNIT == outer_products.NORM**2


def test_opendp_states_the_same_privacy_cost():
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")

    measurement = make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T=float), scale=1.7 * UNIT
    )
    assert measurement.map(float(UNIT)) == pytest.approx(outer_products.event(1.7).rho, rel=1e-12)


# Other neighbouring relations: what the constants state, in exact integers.


def upper(sums):
    return [int(value) for value in np.triu(sums).ravel()]


def squared_distance(first, second):
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), width=st.integers(1, 9))
def test_a_replaced_record_moves_second_moments_by_the_root_of_two(seed, width):
    """Of unit rows, near and far from each other; with weights, and by class."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(1, width))
    b = rng.normal(size=(1, width)) * rng.choice([1e-3, 1.0]) + a * rng.choice([-1.0, 0.0, 1.0])
    a, b = (row / np.linalg.norm(row) for row in (a, b))
    rows = [upper(outer_products.triangle_sums([row], width=width)) for row in (a, b)]
    most = 2 * UNIT**2
    assert outer_products.MOMENTS.replace**2 >= 2
    assert squared_distance(*rows) <= most

    weights = np.abs(rng.normal(size=(2, 1, 3)))
    weighted = [
        outer_products.weighted_product_sums(
            [Block(outer_products.rounded(row), own)], n_weights=3, width=width
        )
        for row, own in zip(
            (a, b), weights / np.linalg.norm(weights, axis=2, keepdims=True), strict=True
        )
    ]
    assert squared_distance(*(upper(sums) for sums in weighted)) <= most
    by_class = [
        outer_products.class_product_sums([Block(row, np.array([c]))], n_classes=2, width=width)
        for row, c in ((a, 0), (b, 1))
    ]
    assert squared_distance(*(upper(sums) for sums in by_class)) <= most


def test_a_changed_label_moves_class_moments_by_the_root_of_two_and_second_moments_not_at_all():
    row = np.array([[0.6, 0.8]])
    by_class = [
        upper(outer_products.class_product_sums([Block(row, np.array([c]))], n_classes=2, width=2))
        for c in (0, 1)
    ]
    whole = upper(outer_products.triangle_sums([row], width=2))
    distance = squared_distance(*by_class)
    assert distance == 2 * squared_distance(whole, [0] * 4)
    assert 0 < distance <= (outer_products.CLASS_MOMENTS.change_label * UNIT) ** 2
    assert outer_products.CLASS_MOMENTS.change_label == pytest.approx(2**0.5)
    assert outer_products.CLASS_MOMENTS.change_labels_of_person == pytest.approx(2**0.5)
    assert (
        outer_products.MOMENTS.change_label == outer_products.MOMENTS.change_labels_of_person == 0
    )


def test_the_root_of_two_is_reached_by_rows_at_right_angles():
    sums = [upper(outer_products.triangle_sums([np.eye(2)[[i]]], width=2)) for i in range(2)]
    assert squared_distance(*sums) / UNIT**2 == pytest.approx(2, rel=1e-4)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    entries=st.integers(2, 12),
    clip=st.sampled_from([0.3, 0.8, 1.0, 2**0.5]),
)
def test_a_left_row_that_moves_moves_the_sum_by_its_distance(seed, entries, clip):
    """Residuals of softmax with two labels: sqrt(2) apart, in units of the clip norm."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(entries, rng.choice([0.05, 1.0])))
    right = rng.normal(size=(1, 5)) * 10
    sums = [
        outer_products.product_sums(
            [Block((shares - np.eye(entries)[c])[None] / clip, right)], shape=(entries, 5)
        )
        for c in (0, 1)
    ]
    moved = outer_products.moved_by_left_rows(2**0.5 / clip, entries)
    flat = [[int(value) for value in total.ravel()] for total in sums]
    assert squared_distance(*flat) <= (moved * UNIT) ** 2
    assert moved <= 2


def test_rounding_of_left_rows_may_lengthen_their_difference():
    """Two entries that are 2.01 units apart are rounded to whole numbers that are 3 apart."""
    right = np.array([[1.0, 0.0]])
    lefts = [np.array([[entry / NORM]]) for entry in (6.001, 3.991)]
    sums = [outer_products.product_sums([Block(left, right)], shape=(1, 2)) for left in lefts]
    moved = float(np.linalg.norm((sums[0] - sums[1]).astype(float))) / UNIT
    distance = float(np.linalg.norm(lefts[0] - lefts[1]))
    assert moved > 1.4 * distance
    assert moved <= outer_products.moved_by_left_rows(distance, 1)


def test_a_label_that_changes_a_certain_class_moves_the_gradient_by_the_root_of_two():
    """With all of the mass on a third class, residuals keep their norm below the clip norm: nothing
    is shortened.
    """
    shares = np.array([0.0, 0.0, 1.0])
    right = np.array([[1.0, 0.0]])
    sums = [
        outer_products.product_sums(
            [Block((shares - np.eye(3)[c])[None] / 2**0.5, right)], shape=(3, 2)
        )
        for c in (0, 1)
    ]
    distance = np.linalg.norm((sums[0] - sums[1]).astype(float)) / UNIT
    assert distance == pytest.approx(1, rel=1e-4)
    assert 1 < outer_products.moved_by_left_rows(1.0, 3) < 1 + 1e-5


def test_public_rows_are_summed_without_noise_as_they_are_with_it():
    rng = np.random.default_rng(0)
    rows, ends = rng.normal(size=(40, 4)), np.array([10, 11, 40])
    weights = np.abs(rng.normal(size=(40, 3)))
    quiet = {"noise_multiplier": 1e-9, "noise": ResearchNoise(0)}
    for block in (Block(rows, rows), Block(rows, rows, ends)):
        exact = outer_products.bounded_second_moments([block], width=4)
        assert np.allclose(
            exact, outer_products.noisy_second_moments([block], width=4, **quiet), atol=1e-6
        )
        assert np.array_equal(exact, exact.T)
        weighted = block._replace(beside=weights)
        exact = outer_products.bounded_weighted_second_moments([weighted], n_weights=3, width=4)
        noisy = outer_products.noisy_weighted_second_moments(
            [weighted], n_weights=3, width=4, **quiet
        )
        assert np.allclose(exact, noisy, atol=1e-6)
