"""A release is a fitted classifier to scikit-learn."""

import copy
import pickle
from dataclasses import FrozenInstanceError

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
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
LABELS = np.array(["ant", "bee", "cow"])[np.arange(90) % 3]
ROWS = np.eye(3, 6)[np.arange(90) % 3] * 3 + RNG.normal(size=(90, 6))
LEARNER = tacit.NoisySumPrototypes("rho=50", classes=["ant", "bee", "cow"]).fit(ROWS, LABELS)
RELEASE = Release.of(LEARNER)
REFUSED = (
    r"^a release is fitted and cannot be fitted or cross-validated; fit a learner, such as"
    r" tacit.AutoPrototypes"
)


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
    assert RELEASE.score(ROWS, LABELS, weights) == pytest.approx(
        LEARNER.score(ROWS, LABELS, weights)
    )
    assert get_scorer("accuracy")(RELEASE, ROWS, LABELS) == RELEASE.score(ROWS, LABELS)
    assert permutation_importance(RELEASE, ROWS, LABELS, n_repeats=2).importances.shape == (6, 2)
    with pytest.raises(InputError, match=stating("y", "(89,)", "(90,)")):
        RELEASE.score(ROWS, LABELS[1:])


@pytest.mark.parametrize(
    ("classes", "labels", "fault"),
    [
        (["ant", "bee"], [0, 1], stating("y", "text", "'ant'")),
        ([0, 1], ["0", "1"], stating("y", "numbers", "0")),
        ([0, 1], np.array(["0", 1], dtype=object), "y holds numbers and text, and"),
        (["ant", "bee"], np.array(["ant", None], dtype=object), "y holds NoneType and text, and"),
        (["ant", "bee"], [b"ant", b"bee"], "y holds bytes_, and"),
    ],
)
def test_labels_of_another_type_than_the_classes_are_refused(classes, labels, fault):
    release = Release.of(tacit.NoisySumPrototypes(classes=classes).fit(np.eye(2), classes))
    with pytest.raises(InputError, match=fault):
        release.score(np.eye(2), labels)


def test_labels_of_the_same_kind_may_have_another_type():
    release = Release.of(
        tacit.NoisySumPrototypes(budget="rho=5000", classes=[0, 1]).fit(np.eye(2), [0, 1])
    )
    for labels in (
        [0.0, 1.0],
        [False, True],
        np.array([0, 1], dtype=object),
        np.array([0, 1], dtype=np.uint8),
    ):
        assert release.score(np.eye(2), labels) == 1.0


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
    assert np.array_equal(
        pipeline.predict(ROWS), RELEASE.predict((ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0))
    )


def test_a_pipeline_that_is_fitted_names_the_remedy():
    pipeline = make_pipeline(StandardScaler(), RELEASE)
    with pytest.raises(
        ReleaseError, match=rf"{REFUSED}, .* or wrap the release in sklearn.frozen.FrozenEstimator"
    ) as error:
        pipeline.fit(ROWS, LABELS)
    assert "\n" not in str(error.value)
    assert np.array_equal(RELEASE.predict(ROWS), LEARNER.predict(ROWS))


def test_what_a_release_holds_cannot_be_replaced():
    for name in ("document", "arrays", "sha256", "card_text", "source"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(RELEASE, name, None)


def test_methods_cannot_be_replaced_and_fields_cannot_be_deleted():
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'verify'"):
        RELEASE.verify = lambda: RELEASE
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'arrays'"):
        del RELEASE.arrays


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda release: pickle.loads(pickle.dumps(release))]
)
def test_copies_verify_until_their_arrays_change(copied, tmp_path):
    again = copied(RELEASE).verify()
    assert np.array_equal(again.predict(ROWS), RELEASE.predict(ROWS))
    again.arrays["prototypes"][:] = again.arrays["prototypes"][::-1].copy()
    for use in (
        again.verify,
        lambda: again.save(tmp_path / "changed"),
        lambda: tacit.publish(again, tmp_path / "hub"),
    ):
        with pytest.raises(ReleaseError, match=stating("arrays", "changed")):
            use()
    assert not any(tmp_path.iterdir())
