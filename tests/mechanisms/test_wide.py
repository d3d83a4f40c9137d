"""Integers beyond 64 bits, against Python's; sums that pass 64 bits, against sums that do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.compute.wide import Wide, added
from tacit.errors import InputError
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.wide import sums_of_runs, with_gaussian_noise

INT64 = st.integers(-(2**63), 2**63 - 1)


def integers(totals):
    return [int(high) * 2**32 + int(low) for high, low in zip(totals.high, totals.low, strict=True)]


# products stay below 2^85, up to which sums are held
@given(st.lists(INT64, min_size=1, max_size=6), st.integers(0, 2**19))
def test_sums_and_their_floats_are_those_of_python_integers(values, times):
    totals = Wide.of(np.zeros(1, dtype=np.int64))
    for value in values:
        totals = added(totals, np.array([value]))
    scaled = Wide(totals.high * times, totals.low * times) + np.array([0])

    assert integers(scaled) == [sum(values) * times]
    assert 0 <= int(scaled.low[0]) < 2**32
    assert (scaled / 2**36)[0] == float(sum(values) * times) / 2**36


@given(st.lists(INT64, min_size=1, max_size=6))
def test_floats_of_narrow_and_wide_sums_are_equal(values):
    narrow = np.array(values)
    assert np.array_equal(Wide.of(narrow) / 2**32, narrow / 2**32)


def test_noise_on_wide_sums_is_that_on_narrow_sums():
    values = np.array([[3, -(2**40)], [0, 2**61]])
    narrow = with_gaussian_noise(values, scale=2.0**33, noise=ResearchNoise(0))
    wide = with_gaussian_noise(Wide.of(values), scale=2.0**33, noise=ResearchNoise(0))
    assert integers(wide[0]) + integers(wide[1]) == narrow.ravel().tolist()
    secure = with_gaussian_noise(Wide.of(values), scale=4.0, noise=SecureNoise())
    assert np.abs((secure / 1) - values).max() <= 64


def rows_and_labels(seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(40, 3)), generator.integers(0, 2, 40)


def blocks(kind):
    rows, labels = rows_and_labels()
    ends = np.array([2, 3, 5]) if kind == "persons" else None
    return [
        Block(rows[start : start + 5], labels[start : start + 5], ends) for start in range(0, 40, 5)
    ]


SUMS = {
    "class sums": lambda given: gaussian.noisy_class_sums(
        given, n_classes=2, width=3, noise_multiplier=1.0, noise=ResearchNoise(1)
    ),
    "sums and counts": lambda given: gaussian.noisy_sums_and_counts(
        given, n_classes=2, width=3, noise_multipliers=(1.0, 2.0), noise=ResearchNoise(1)
    ),
    "second moments": lambda given: outer_products.noisy_second_moments(
        given, width=3, noise_multiplier=1.0, noise=ResearchNoise(1)
    ),
    "exact second moments": lambda given: outer_products.bounded_second_moments(given, width=3),
    "class moments": lambda given: outer_products.noisy_class_second_moments(
        given, n_classes=2, width=3, noise_multiplier=1.0, noise=ResearchNoise(1)
    ),
    "products": lambda given: outer_products.noisy_products(
        [Block(rows, rows[:, ::-1].copy(), ends) for rows, _, ends in given],
        shape=(3, 3),
        noise_multiplier=1.0,
        noise=ResearchNoise(1),
    ),
    "weighted moments": lambda given: outer_products.noisy_weighted_second_moments(
        [Block(rows, np.eye(2)[labels], ends) for rows, labels, ends in given],
        n_weights=2,
        width=3,
        noise_multiplier=1.0,
        noise=ResearchNoise(1),
    ),
}


@pytest.mark.parametrize("kind", ["records", "persons"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_more_records_than_64_bits_hold_are_the_same(name, kind, monkeypatch):
    narrow = entries(SUMS[name](blocks(kind)))
    for module in (gaussian, outer_products):
        monkeypatch.setattr(module, "_MOST_ROWS", 7)
    assert np.array_equal(entries(SUMS[name](blocks(kind))), narrow)


def entries(released):
    if isinstance(released, tuple):
        return np.concatenate([part.ravel() for part in released])
    return released.ravel()


def test_runs_hold_every_block_once_and_at_most_the_records():
    sizes = []

    def sums_of(run):
        labels = np.concatenate([block.beside for block in run] or [np.zeros(0, dtype=np.int64)])
        sizes.append(len(labels))
        return np.bincount(labels, minlength=40)

    given = [Block(np.ones((n, 1)), np.arange(start, start + n)) for start, n in PARTS]
    totals = sums_of_runs(given, 7, sums_of)
    assert np.array_equal(totals / 1, np.ones(40))
    assert sizes == [5, 7, 7, 4, 7, 7, 3]
    assert np.array_equal(sums_of_runs([], 7, sums_of), np.zeros(40))

    with pytest.raises(InputError, match="cut it into blocks of 7"):
        sums_of_runs([Block(np.ones((8, 1)), np.zeros(8, dtype=np.int64))], 7, sums_of)


PARTS = [(0, 5), (5, 3), (8, 4), (12, 7), (19, 1), (20, 3), (23, 7), (30, 7), (37, 3)]
