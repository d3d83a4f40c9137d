"""A release of a pipeline: steps that do nothing are accepted, steps that may have seen private rows are refused."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import tacit
from tacit.errors import ReleaseError
from tacit.releases.release import Release

X = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
Y = np.repeat(range(3), 20)


def learner():
    return tacit.NoisySumPrototypes("rho=1", classes=3)


def pipeline(*steps):
    return Pipeline([*steps, ("clf", learner())]).fit(X, Y)


@pytest.mark.parametrize("steps", [[], [("first", "passthrough")], [("first", None), ("second", "passthrough")]])
def test_steps_that_do_nothing_are_accepted(steps, tmp_path):
    fitted = pipeline(*steps)
    release = Release.load(Release.of(fitted, name="pets").save(tmp_path / "out")).verify()
    assert np.array_equal(release.predict(X), fitted.predict(X))
    assert release.guarantee == fitted["clf"].guarantee_
    alone = Release.of(fitted["clf"], name="pets")
    assert release.document == alone.document


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), PCA(2), FunctionTransformer(np.tanh), FeatureUnion([("scale", StandardScaler())])],
    ids=lambda step: type(step).__name__,
)
def test_any_other_step_is_refused_by_name_and_class(step):
    fitted = pipeline(("first", "passthrough"), ("prepare", step))
    with pytest.raises(ReleaseError) as caught:
        Release.of(fitted)
    said = str(caught.value)
    assert f"step 'prepare' of the pipeline ({type(step).__name__}) may have been fitted on private rows" in said
    assert "fit it on public rows, transform private and new rows by it, and fit and pass the learner alone" in said
    assert "\n" not in said


def test_a_step_within_a_pipeline_within_a_pipeline_is_refused():
    inner = Pipeline([("scale", StandardScaler()), ("clf", learner())])
    outer = Pipeline([("first", "passthrough"), ("inner", inner)]).fit(X, Y)
    with pytest.raises(ReleaseError, match="step 'scale'"):
        Release.of(outer)


def test_a_pipeline_that_ends_with_a_step_of_another_kind_is_refused():
    with pytest.raises(ReleaseError, match="StandardScaler is not a tacit learner"):
        Release.of(Pipeline([("scale", StandardScaler())]).fit(X))
