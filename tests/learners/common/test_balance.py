"""Class counts, as all learners that balance classes declare or buy them."""

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.learners.common.balance import COUNT_SHARE, ClassCounts, n_records
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import rounded
from tacit.privacy.events import Gaussian, Parallel

LEARNERS = [
    tacit.GradientDescent,
    tacit.GlobalAdapt,
    tacit.ProjectedPrototypes,
    tacit.FeatureCovariance,
    tacit.Newton,
]
SIZES = np.append(np.random.default_rng(0).integers(0, 700, 39), 0)
LABELS = np.repeat(np.arange(40), SIZES)
X = np.random.default_rng(1).normal(size=(80, 3))
Y = np.arange(80) % 40
PARTS = [Block(rounded(np.ones((len(own), 1))), own) for own in np.split(LABELS, [3000])]


def counts_of(monkeypatch, learner):
    """How a fit of this learner learns the number of records of each class."""
    found = []
    draw = ClassCounts.draw

    def noted(counts, *given):
        found.append(counts)
        return draw(counts, *given)

    with monkeypatch.context() as patch:
        patch.setattr(ClassCounts, "draw", noted)
        learner.set_params(noise="research", random_state=0).fit(X, Y)
    return found[0]


@pytest.mark.parametrize("kind", LEARNERS)
def test_noise_of_the_counts_agrees_with_their_event(monkeypatch, kind):
    """Over 250 draws, fresh for each of 40 classes."""
    learner = kind("rho=0.02", classes=40)
    counts = counts_of(monkeypatch, learner)
    (event,) = [
        event
        for event, _ in learner.promise().event.counted()
        if event == Parallel(Gaussian(counts.noise), "classes")
    ]
    assert event.event.noise_multiplier == pytest.approx(5 / COUNT_SHARE**0.5)
    noise = ResearchNoise(0)
    drawn = np.stack([counts.draw(PARTS, 40, noise) for _ in range(250)])
    assert np.allclose(drawn.mean(axis=0), SIZES, atol=16)
    assert (drawn - SIZES).var() == pytest.approx(event.event.noise_multiplier**2, rel=0.05)
    assert np.abs(np.corrcoef(drawn, rowvar=False) - np.eye(40)).max() < 0.5


@pytest.mark.parametrize("kind", LEARNERS)
def test_declared_counts_are_taken_and_listed(monkeypatch, kind):
    learner = kind("rho=0.02", classes=40, counts=range(1, 41))
    counts = counts_of(monkeypatch, learner)
    assert np.array_equal(counts.draw(PARTS, 40, None), np.arange(1, 41))
    assert learner.promise().unprotected == (
        *kind("rho=0.02", classes=40).promise().unprotected,
        "class counts (declared)",
    )
    facts = learner.released_.mechanism
    assert facts["noise multiplier of the counts"] == "counts are declared"


@pytest.mark.parametrize("kind", LEARNERS)
def test_without_noise_counts_are_exact(monkeypatch, kind):
    counts = counts_of(monkeypatch, kind("rho=inf", classes=40))
    assert np.array_equal(counts.draw(PARTS, 40, None), SIZES)


def test_balance_is_by_log_shares_none_taken_for_smaller_than_noise():
    counts = ClassCounts(None, noise=50.0)
    shares = np.array([1050.0, 50.0, 50.0, 60.0])
    assert np.allclose(
        counts.log_shares(shares - 50 - [0, 99, 0, 0]), np.log(shares / shares.mean())
    )
    assert not ClassCounts(None, noise=50.0, balanced=False).log_shares(shares).any()
    assert n_records(shares) == shares.sum()
    assert n_records(-shares) == 1


@pytest.mark.parametrize("kind", [tacit.FeatureCovariance, tacit.Newton])
def test_counts_that_are_neither_declared_nor_bought_are_not_read_off_the_records(kind):
    with pytest.raises(ValueError, match=stating("counts", "balanced=False")):
        ClassCounts(None, unused="balanced=False").draw(PARTS, 40, ResearchNoise(0))
    events = kind("rho=0.02", balanced=False).promise().event.counted()
    assert all(type(event) is Gaussian for event, _ in events)
