"""An attack on whole votings: queries are chosen by earlier answers, and what is learned stays
within the promise.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

import tacit
from mechanisms.exact_votes import log_label_chances
from tacit.errors import BudgetError
from tacit.learners.pate.data_dependent import Odometer
from tacit.learners.pate.scheme import scheme
from tacit.learners.pate.voting import Voting
from tacit.mechanisms.noise import noise_source

SIGMA, TEACHERS, CLASSES = 12.0, 60, 4
DELTA = 1e-5


def votes_of(counts):
    return np.repeat(np.arange(CLASSES), counts)[None]


def attack(epsilon, runs, seed):
    """Log likelihood ratios of whole votings about neighbours that differ in one vote, of shape (2,
    runs).

    The next query is the most telling one for what was answered so far: where the answers point to
    one neighbour, the two classes concerned are tied far above the rest, and else they are .74
    sigma above two others.
    """
    lead = round(0.74 * SIGMA)
    low = (TEACHERS - 2 * lead) // 4
    tied = [
        np.array([TEACHERS // 2, TEACHERS // 2, 0, 0]),
        np.array([low + lead, low + lead, low, TEACHERS - 3 * low - 2 * lead]),
    ]
    chances = [
        [
            log_label_chances((own + move).astype(float), SIGMA)
            for move in ([0, 0, 0, 0], [-1, 1, 0, 0])
        ]
        for own in tied
    ]
    ballots = [[votes_of(own + move) for move in ([0, 0, 0, 0], [-1, 1, 0, 0])] for own in tied]
    plan = scheme(
        400,
        TEACHERS,
        aggregator="gnmax",
        collector="gnmax",
        budgets=epsilon,
        shares=None,
        teacher_groups=None,
        copies=None,
        delta=DELTA,
        n_labels=None,
        sigma=SIGMA,
    )
    noise = noise_source("research", seed)
    ratios = np.zeros((2, runs))
    for world in (0, 1):
        for run in range(runs):
            voting, ratio = Voting(plan, np.arange(CLASSES)), 0.0
            while not voting.over:
                which = int(abs(ratio) < 0.5)
                asked = voting.asked
                voting.ask(ballots[which][world], noise)
                if voting.asked > asked:
                    label = voting.labels[asked]
                    ratio += chances[which][1][label] - chances[which][0][label]
            ratios[world, run] = ratio
    return ratios, voting


def largest_epsilon(ratios, confidence=1e-6):
    """Largest epsilon that some threshold proves, by exact binomial bounds on both rates."""
    runs, best = ratios.shape[1], 0.0
    for threshold in np.quantile(ratios[1], np.linspace(0.5, 0.999, 60)):
        false, true = (int(np.sum(row >= threshold)) for row in ratios)
        most = beta.ppf(1 - confidence, false + 1, runs - false)
        least = beta.ppf(confidence, true, runs - true + 1) if true else 0.0
        if least > DELTA:
            best = max(best, math.log((least - DELTA) / most))
    return best


@pytest.mark.thorough
def test_an_adaptive_attack_on_ten_thousand_votings_stays_within_the_promise(monkeypatch):
    # what the owner learns takes a third of the time
    monkeypatch.setattr(Odometer, "charge", lambda *_: None)
    ratios, voting = attack(1.0, 10_000, seed=0)
    promise = voting.answers().guarantee_.epsilon(DELTA)
    assert promise == pytest.approx(1.0, rel=1e-6)
    proven = largest_epsilon(ratios)
    assert 0.1 < proven <= promise
    rates = [float(np.mean(row >= np.quantile(ratios[0], 0.95))) for row in ratios]
    assert rates[1] <= voting.answers().guarantee_.attack_rate(rates[0]) + 5 * math.sqrt(
        0.25 / ratios.shape[1]
    )


def test_a_voting_that_an_attacker_leads_ends_at_the_same_number_of_queries():
    """Stopping follows from public facts: whatever is answered, as many queries are asked."""
    ended = {attack(2.0, 1, seed)[1].asked for seed in range(6)}
    assert len(ended) == 1
    with pytest.raises(BudgetError):
        tacit.pate.aggregate(
            votes_of([60, 0, 0, 0]), classes=CLASSES, aggregator="gnmax", sigma=2.0, budgets=0.1
        )
