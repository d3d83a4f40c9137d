"""Calibration: it keeps the budget, and what it expects is what happens."""

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetError, InputError
from tacit.learners.pate.calibrate import best
from tacit.learners.pate.filter import allowance_of
from tacit.privacy.budget import Budget

COUNTS = tacit.pate.simulated_counts(1500, 250, 10, accuracy=0.8)


def teacher_votes(counts):
    """Votes that add up to these counts."""
    return np.stack([np.repeat(np.arange(counts.shape[1]), row) for row in counts.astype(int)])


@pytest.mark.parametrize("aggregator", ["gnmax", "confident", None])
def test_what_it_expects_happens(aggregator):
    own = tacit.pate.calibrate(2.0, COUNTS, aggregator=aggregator, accuracy=0.97)
    assert aggregator in (None, own.aggregator)
    noise = {"sigma": own.sigma, "sigma1": own.sigma1, "threshold": own.threshold}
    fresh = tacit.pate.simulated_counts(1500, 250, 10, accuracy=0.8, seed=1)
    outs = [
        tacit.pate.aggregate(
            teacher_votes(fresh),
            classes=10,
            aggregator=own.aggregator,
            **noise,
            budgets=2.0,
            noise="research",
            random_state=seed,
        )
        for seed in range(5)
    ]
    answered = np.mean([out.answered for out in outs])
    assert answered == pytest.approx(own.labels, rel=0.15)
    accuracy = np.mean(np.concatenate([out.labels[out.paid] == 0 for out in outs]))
    assert accuracy == pytest.approx(own.accuracy, abs=0.03)
    assert own.accuracy >= 0.96


def test_it_beats_the_usual_noise_under_the_filter():
    own = tacit.pate.calibrate(1.0, COUNTS, accuracy=0.9)
    usual = tacit.pate.aggregate(
        teacher_votes(COUNTS),
        classes=10,
        sigma=40,
        sigma1=150,
        threshold=200,
        budgets=1.0,
        noise="research",
        random_state=0,
    )
    assert own.labels > 2 * usual.answered


def test_more_budget_means_more_labels():
    labels = [
        tacit.pate.calibrate(budget, COUNTS, accuracy=0.9).labels for budget in (0.5, 1.0, 2.0)
    ]
    assert labels == sorted(labels)
    assert tacit.pate.calibrate(2.0, COUNTS, n_queries=20, accuracy=0.9).labels <= 20


@pytest.mark.parametrize("aggregator", ["gnmax", "confident"])
def test_noise_is_for_the_payer_with_the_least(aggregator):
    small, large = (
        (allowance_of(Budget.approx(epsilon, 1e-5), None), 1.0) for epsilon in (0.5, 5.0)
    )
    poor, rich = (best([payer], COUNTS, None, aggregator, 0.9) for payer in (small, large))
    for payers in ([small, large], [large, small]):
        assert best(payers, COUNTS, None, aggregator, 0.9) == poor
    assert poor.labels < 0.5 * rich.labels


def test_two_classes():
    counts = tacit.pate.simulated_counts(200, 50, 2, accuracy=0.8)
    assert (counts.sum(axis=1) == 50).all()
    assert tacit.pate.calibrate(1.0, counts).accuracy > 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"counts": [1, 2]}, "counts have shape"),
        ({"counts": -COUNTS}, "counts have shape"),
        ({"budget": 0.0}, "budget=0.0"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"aggregator": "laplace"}, "aggregator='laplace'"),
        ({"accuracy": 2.0}, "accuracy=2.0"),
        ({"truth": [0]}, "truth has shape"),
        ({"n_queries": 0}, "n_queries=0"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(InputError, match=message):
        tacit.pate.calibrate(**({"budget": 1.0, "counts": COUNTS} | given))


def test_a_budget_for_nothing():
    with pytest.raises(BudgetError, match="allows no query"):
        tacit.pate.calibrate(0.001, COUNTS[:, :2] / 1000)


@pytest.mark.parametrize(
    ("labels", "accuracy", "n_classes", "bits"),
    [
        (300, 1.0, 8, 900),  # three bits each
        (5000, 1.0, 8, 3000),  # the first thousand
        (100, 0.5, 2, 0),
        (100, 0.05, 10, 0),  # worse than chance
        (200, 0.75, 4, 200 * (2 - 0.75 * np.log2(4 / 3) - 0.25 * 2 - 0.25 * np.log2(3))),
    ],
)
def test_what_labels_tell(labels, accuracy, n_classes, bits):
    choice = tacit.pate.Calibration("gnmax", 1.0, None, None, labels, accuracy)
    assert choice.bits(n_classes) == pytest.approx(bits, abs=1e-9)


def test_by_default_labels_tell_most():
    own = tacit.pate.calibrate(1.0, COUNTS, n_queries=9000)
    others = [
        tacit.pate.calibrate(1.0, COUNTS, n_queries=9000, accuracy=share)
        for share in (0.5, 0.8, 0.95)
    ]
    assert own.bits(10) >= max(other.bits(10) for other in others)
    assert own.bits(10) > 1.5 * others[2].bits(10)
    plenty = tacit.pate.calibrate(50.0, COUNTS, n_queries=9000)
    assert plenty.accuracy > 0.95  # more labels would not count, so these are the best
    assert plenty.labels >= 990
