"""Priors: clusters of public features, noisy histograms, and the nearest probabilities."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from messages import stating
from tacit.errors import InputError
from tacit.learners.label_dp import priors
from tacit.mechanisms.noise import ResearchNoise, SecureNoise


def test_clusters_follow_features_and_a_public_seed():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    X = 20 * np.eye(3, 6)[group] + rng.normal(size=(300, 6))
    which = priors.clusters_of(X, 3, n_components=2)
    assert np.array_equal(which, priors.clusters_of(X, 3, n_components=2))
    assert len({(a, b) for a, b in zip(group.tolist(), which.tolist(), strict=True)}) == 3
    assert priors.clusters_of(X, 1).max() == 0


@pytest.mark.parametrize("noise", [ResearchNoise(0), SecureNoise()], ids=["research", "secure"])
def test_histograms_become_probabilities_close_to_the_shares(noise):
    which = np.repeat([0, 2], [900, 600])
    labels = np.where(which == 0, 1, 3)
    prior = priors.cluster_prior(labels, which, 4, 1.0, noise)
    assert prior.rows.sum(axis=1) == pytest.approx(np.ones(3))
    assert (prior.rows >= 0).all()
    assert prior.rows[[0, 2], [1, 3]].min() > 0.9
    assert prior.rows[1].tolist() == [0.25] * 4  # a cluster without records


def test_an_infinite_price_is_the_shares():
    which, labels = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    prior = priors.cluster_prior(labels, which, 2, math.inf, SecureNoise())
    assert prior.rows.tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, total = rng.normal(0, 5, 5), float(rng.uniform(0.5, 10))
        found = priors.onto_simplex(values[None], np.array([total]))[0]
        assert found.sum() == pytest.approx(total)
        best = minimize(
            lambda p, values=values: np.square(p - values).sum(),
            np.full(5, total / 5),
            bounds=[(0, None)] * 5,
            constraints={"type": "eq", "fun": lambda p, total=total: p.sum() - total},
            method="SLSQP",
        )
        assert found == pytest.approx(best.x, abs=2e-3)


def test_temperature_flattens_and_sharpens():
    log_p = np.log([[0.7, 0.2, 0.1]])
    assert priors.of_scores(log_p, 1.0).rows == pytest.approx(np.array([[0.7, 0.2, 0.1]]))
    assert priors.of_scores(log_p, 0.1).rows[0, 0] > 0.99
    assert priors.of_scores(log_p, 100.0).rows[0] == pytest.approx([1 / 3] * 3, abs=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.prior_of([0.5, 0.5], None, 3, 3), "2 columns for 3 classes"),
        (lambda: priors.prior_of(np.full((2, 2), 0.5), None, 3, 2), stating("one for each label")),
        (
            lambda: priors.prior_of(np.full((2, 2), 0.5), [0, 1, 2], 3, 2),
            "a row of the prior, 0 to 1",
        ),
        (lambda: priors.prior_of(np.full((2, 2), 0.5), [0, 1], 3, 2), "for each of 3 labels"),
        (lambda: priors.prior_of([0.0, 0.0], None, 3, 2), stating("prior row 0", "adds up to 0")),
        (
            lambda: priors.prior_of([1.0, np.inf], None, 3, 2),
            stating("prior row 0", "adds up to inf"),
        ),
        (lambda: priors.clusters_of(np.ones((3, 2)), 4), "n_clusters=4"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_clusters_are_as_many_as_their_counts_are_worth():
    assert priors.cluster_count(50_000, 0.2) == round(50_000 / (4 * np.sqrt(2) * 2 / 0.2))
    assert priors.cluster_count(50_000, 0.4) > priors.cluster_count(50_000, 0.2)
    assert priors.cluster_count(5_000, 100.0) == 625  # eight records each, whatever the budget
    assert priors.cluster_count(10**7, 100.0) == priors.MOST_CLUSTERS
    assert priors.cluster_count(1, 1e-6) == 1
