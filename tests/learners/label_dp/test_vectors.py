"""Randomizers that answer with a vector: moments of noise, likelihoods, and unbiased estimates."""

import math

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.learners.label_dp.vectors import NoisyOneHot, OptimisedUnary, SymmetricUnary
from tacit.mechanisms import one_hot, unary
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.randomized_response import WORDS
from tacit.privacy.events import PureDP


@pytest.mark.parametrize(
    ("kind", "words"), [(SymmetricUnary, unary.symmetric), (OptimisedUnary, unary.optimised)]
)
def test_randomizers_of_bits_sample_and_price_their_words(kind, words):
    randomizer = kind(1.0, 7)
    assert randomizer.words == words(1.0)
    assert randomizer.event == PureDP(1.0)
    assert randomizer.realised_epsilon == unary.epsilon_of(randomizer.words)
    bits = randomizer.sample(np.array([2, 5]), ResearchNoise(0))
    assert np.array_equal(
        bits, unary.sample(np.array([2, 5]), 7, randomizer.words, ResearchNoise(0))
    )


@pytest.mark.parametrize(
    ("randomizer", "variance"),
    [
        (NoisyOneHot(3, epsilon=1.0), 2 * 2.0**2),
        (NoisyOneHot(3, rho=0.5), 1 / 0.5),
    ],
)
def test_noise_agrees_with_its_event(randomizer, variance):
    drawn = randomizer.sample(np.zeros(40_000, dtype=np.int64), ResearchNoise(0))
    assert drawn.mean(axis=0) == pytest.approx([1, 0, 0], abs=0.06)
    assert drawn.var() == pytest.approx(variance, rel=0.25)
    assert (drawn - np.eye(3)[0]).var() == pytest.approx(variance, rel=0.03)
    event = randomizer.event
    if isinstance(event, PureDP):
        assert event.epsilon == 2 / math.sqrt(variance / 2)
    else:
        assert event.rho == pytest.approx(1 / variance)


def test_likelihoods_are_log_densities_up_to_a_constant():
    z = np.array([[0.3, -2.0, 1.4]])
    laplace = NoisyOneHot(3, epsilon=0.8).log_likelihood(z)
    exact = np.array([[-np.abs(z[0] - np.eye(3)[c]).sum() * 0.8 / 2 for c in range(3)]])
    assert laplace - laplace[0, 0] == pytest.approx(exact - exact[0, 0])
    gaussian = NoisyOneHot(3, rho=0.7).log_likelihood(z)
    exact = np.array([[-np.square(z[0] - np.eye(3)[c]).sum() * 0.7 / 2 for c in range(3)]])
    assert gaussian - gaussian[0, 0] == pytest.approx(exact - exact[0, 0])
    unary_bits = np.array([[True, False, True]])
    randomizer = SymmetricUnary(1.2, 3)
    p, q = (count / WORDS for count in randomizer.words)
    exact = [
        math.prod(
            (r if bit else 1 - r)
            for bit, r in zip(unary_bits[0], np.where(np.eye(3)[c], p, q), strict=True)
        )
        for c in range(3)
    ]
    found = np.exp(randomizer.log_likelihood(unary_bits))[0]
    assert found / found[0] == pytest.approx(np.array(exact) / exact[0])


@pytest.mark.parametrize(
    "randomizer",
    [
        SymmetricUnary(1.0, 3),
        OptimisedUnary(1.0, 3),
        NoisyOneHot(3, epsilon=1.0),
        NoisyOneHot(3, rho=1.0),
    ],
)
def test_counts_are_right_on_average(randomizer):
    labels = np.repeat(np.arange(3), [30_000, 20_000, 10_000])
    counts = randomizer.counts(randomizer.sample(labels, ResearchNoise(0)))
    assert counts == pytest.approx([30_000, 20_000, 10_000], abs=3500)


def test_a_histogram_has_the_noise_of_two_cells():
    labels, which = np.zeros(100, dtype=np.int64), np.repeat([0, 1], 50)
    draws = np.stack(
        [
            one_hot.noisy_histogram(labels, which, (2, 3), PureDP(0.5), ResearchNoise(i))
            for i in range(4000)
        ]
    )
    assert draws.mean(axis=0) == pytest.approx(np.array([[50, 0, 0], [50, 0, 0]]), abs=0.6)
    t = math.exp(-0.5 / 2)
    assert draws.var(axis=0) == pytest.approx(np.full((2, 3), 2 * t / (1 - t) ** 2), rel=0.15)


def test_infinite_epsilon_is_the_label():
    labels = np.array([2, 0])
    assert np.array_equal(
        NoisyOneHot(3, epsilon=math.inf).sample(labels, SecureNoise()), np.eye(3)[labels]
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SymmetricUnary(0, 3), "epsilon=0"),
        (lambda: OptimisedUnary(float("nan"), 3), "epsilon=nan"),
        (lambda: NoisyOneHot(3), "rho=None"),
        (lambda: NoisyOneHot(3, epsilon=-1), "epsilon=-1"),
        (lambda: NoisyOneHot(1, epsilon=1), "n_classes=1"),
    ],
)
def test_what_is_out_of_range_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
