"""Evidence of labels: posteriors and likelihoods."""

import numpy as np
import pytest
from scipy.special import softmax

from tacit.learners.label_dp.evidence import Evidence

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(40, 4))


def test_posteriors_and_likelihoods():
    prior = np.log(softmax(RNG.normal(size=(40, 4)), axis=1))
    half = Evidence(np.where(np.arange(40)[:, None] < 20, 0.25, VALUES), np.arange(40) < 20)
    posterior = half.posterior(prior)
    assert posterior[:20] == pytest.approx(np.full((20, 4), 0.25))
    by_hand = np.exp(prior + VALUES)[20:]
    assert posterior[20:] == pytest.approx(by_hand / by_hand.sum(axis=1, keepdims=True))
    total = 0.25 * prior[:20].sum() + np.log(by_hand.sum(axis=1)).sum()
    assert half.mean_likelihood(prior) == pytest.approx(total / 40)
