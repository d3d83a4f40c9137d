"""Prediction sets without noise against those of MAPIE, whose thresholds have no edges."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from tacit.measure.prediction_sets import paid_threshold
from tacit.mechanisms.noise import ResearchNoise
from tacit.models.prediction_sets import SetRule, scores_of_labels
from tacit.privacy.events import Gaussian
from tacit.privacy.unit import Unit


class Shares(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are the probabilities."""

    classes_ = np.arange(6)
    n_features_in_ = 6

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


def test_sets_without_noise_are_those_of_mapie():
    mapie = pytest.importorskip("mapie.classification", reason="MAPIE is not installed")

    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(6), size=1000)
    labels = np.array([rng.choice(6, p=row) for row in shares])
    calibration, new = slice(0, 400), slice(400, 1000)

    reference = mapie.SplitConformalClassifier(
        Shares(), confidence_level=0.9, conformity_score="lac", prefit=True
    )
    reference.conformalize(shares[calibration], labels[calibration])
    _, sets = reference.predict_set(shares[new])

    # edges at the scores themselves, so that the threshold is not rounded up
    scores = scores_of_labels(shares[calibration], labels[calibration], "probability")
    threshold = paid_threshold(
        scores,
        np.unique(scores),
        level=0.9,
        cost=Gaussian(0.0),
        unit=Unit.ADD_REMOVE,
        noise=ResearchNoise(0),
    )
    members = SetRule("probability", threshold).of(shares[new])

    # sets of tacit also hold the likeliest class
    expected = sets[:, :, 0].copy()
    expected[np.arange(600), shares[new].argmax(axis=1)] = True
    assert members.tolist() == expected.tolist()
    assert members.mean() == pytest.approx(sets.mean(), abs=0.02)
