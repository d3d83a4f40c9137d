"""A release is a fitted classifier to scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.validation import check_is_fitted

import tacit
from tacit.errors import InputError, ReleaseError
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
LABELS = np.array(["ant", "bee", "cow"])[np.arange(90) % 3]
ROWS = np.eye(3, 6)[np.arange(90) % 3] * 3 + RNG.normal(size=(90, 6))
LEARNER = tacit.NoisySumPrototypes("rho=50", classes=["ant", "bee", "cow"]).fit(ROWS, LABELS)
RELEASE = Release.of(LEARNER)
REFUSED = r"^a release is fitted and cannot be fitted or cross-validated; fit a learner, such as tacit.AutoPrototypes"


def test_it_is_a_fitted_classifier():
    check_is_fitted(RELEASE)
    assert is_classifier(RELEASE)
    assert RELEASE.classes_.tolist() == ["ant", "bee", "cow"]
    assert RELEASE.n_features_in_ == 6


def test_a_fitted_pipeline_predicts_by_it():
    pipeline = make_pipeline(Normalizer(), RELEASE)
    check_is_fitted(pipeline)
    assert np.array_equal(pipeline.predict(ROWS), LEARNER.predict(ROWS))
    assert pipeline.classes_.tolist() == ["ant", "bee", "cow"]
    assert pipeline.score(ROWS, LABELS) == LEARNER.score(ROWS, LABELS)


def test_scores_are_those_of_scikit_learn():
    weights = RNG.random(90)
    assert 0.5 < RELEASE.score(ROWS, LABELS) < 1
    assert RELEASE.score(ROWS, LABELS) == LEARNER.score(ROWS, LABELS)
    assert RELEASE.score(ROWS, LABELS, weights) == pytest.approx(LEARNER.score(ROWS, LABELS, weights))
    assert get_scorer("accuracy")(RELEASE, ROWS, LABELS) == RELEASE.score(ROWS, LABELS)
    assert permutation_importance(RELEASE, ROWS, LABELS, n_repeats=2).importances.shape == (6, 2)
    with pytest.raises(InputError, match=r"y has shape \(89,\) and must have shape \(90,\)"):
        RELEASE.score(ROWS, LABELS[1:])


def test_it_has_no_parameters_and_clones_to_itself():
    assert RELEASE.get_params() == {}
    assert clone(RELEASE) is RELEASE
    assert RELEASE.set_params() is RELEASE
    with pytest.raises(InputError, match="a release has no parameter 'budget'"):
        RELEASE.set_params(budget="rho=9")


def test_fitting_and_cross_validation_are_refused_in_one_line():
    with pytest.raises(ReleaseError, match=REFUSED):
        RELEASE.fit(ROWS, LABELS)
    with pytest.raises(ReleaseError, match=REFUSED) as error:
        cross_val_predict(RELEASE, ROWS, LABELS, cv=3)
    assert "\n" not in str(error.value)


def test_a_frozen_release_may_end_a_pipeline_that_is_fitted():
    pipeline = make_pipeline(StandardScaler(), FrozenEstimator(RELEASE)).fit(ROWS, LABELS)
    assert np.array_equal(pipeline.predict(ROWS), RELEASE.predict((ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0)))
