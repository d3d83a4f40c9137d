"""A release of a pipeline: it carries a PublicScaler, and refuses steps that may have seen private
rows.
"""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import tacit
from messages import lacking, stating
from tacit.data.overlap import OVERLAP
from tacit.errors import InputError, PrivacyLeakWarning, ReleaseError
from tacit.models.scaling import scaling_misfit
from tacit.releases.release import Release
from tacit.report.release_page import release_page

X = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
Y = np.repeat(range(3), 20)


def learner():
    return tacit.NoisySumPrototypes("rho=1", classes=3)


def pipeline(*steps):
    return Pipeline([*steps, ("clf", learner())]).fit(X, Y)


@pytest.mark.parametrize(
    "steps", [[], [("first", "passthrough")], [("first", None), ("second", "passthrough")]]
)
def test_steps_that_do_nothing_are_accepted(steps, tmp_path):
    fitted = pipeline(*steps)
    release = Release.load(Release.of(fitted, name="pets").save(tmp_path / "out")).verify()
    assert np.array_equal(release.predict(X), fitted.predict(X))
    assert release.guarantee == fitted["clf"].guarantee_
    alone = Release.of(fitted["clf"], name="pets")
    assert release.document == alone.document


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        PCA(2),
        FunctionTransformer(np.tanh),
        FeatureUnion([("scale", StandardScaler())]),
    ],
    ids=lambda step: type(step).__name__,
)
def test_any_other_step_is_refused_by_name_and_class(step):
    fitted = pipeline(("first", "passthrough"), ("prepare", step))
    with pytest.raises(ReleaseError) as caught:
        Release.of(fitted)
    said = str(caught.value)
    assert not lacking(said, "'prepare'", f"({type(step).__name__})")
    assert not lacking(said, "public rows", "learner alone")
    assert "\n" not in said


def test_a_step_within_a_pipeline_within_a_pipeline_is_refused():
    inner = Pipeline([("scale", StandardScaler()), ("clf", learner())])
    outer = Pipeline([("first", "passthrough"), ("inner", inner)]).fit(X, Y)
    with pytest.raises(ReleaseError, match="step 'scale'"):
        Release.of(outer)


PUBLIC = np.random.default_rng(1).normal(3, [1, 10, 100], size=(50, 3))
RAW = PUBLIC.mean(axis=0) + PUBLIC.std(axis=0) * X  # private rows on the scale of the public ones


def scaled_by_public(clf=None):
    steps = [
        ("first", "passthrough"),
        ("scale", tacit.PublicScaler(public=PUBLIC)),
        ("clf", clf or learner()),
    ]
    return Pipeline(steps).fit(RAW, Y)


def test_a_public_scaler_scales_by_public_rows_alone():
    scaler = tacit.PublicScaler(public=np.column_stack([PUBLIC, np.full(50, 0.1)]))
    rows = np.column_stack([RAW, RAW[:, 0]])
    assert scaler.fit(rows) is scaler
    assert np.allclose(scaler.mean_, [*PUBLIC.mean(axis=0), 0.1])
    assert np.allclose(scaler.scale_, [*PUBLIC.std(axis=0), 1.0])
    assert np.array_equal(scaler.transform(rows), clone(scaler).fit(rows[:2] + 5).transform(rows))
    assert np.allclose(scaler.fit_transform(scaler.public)[:, :3].std(axis=0), 1)


@pytest.mark.parametrize(
    ("public", "rows", "message"),
    [
        (None, RAW, stating("public=None", "rows")),
        (PUBLIC[:, :2], RAW, stating("X", "3 columns", "2 columns")),
        (np.full((4, 3), np.nan), RAW, "not finite"),
    ],
)
def test_a_scaler_names_what_is_wrong(public, rows, message):
    with pytest.raises(InputError, match=message):
        tacit.PublicScaler(public=public).fit(rows)


def test_public_rows_of_a_scaler_that_are_private_are_counted():
    with pytest.warns(PrivacyLeakWarning, match=stating("2 of 52", "public")):
        tacit.PublicScaler(public=np.concatenate([PUBLIC, RAW[:2]])).fit(RAW)
    tacit.PublicScaler(public=RAW, allow_overlap=True).fit(RAW[:5])


@pytest.mark.parametrize(
    "clf",
    [
        learner(),
        tacit.CoinPressPrototypes("rho=1", classes=3, counts=20),
        tacit.LeastSquares("rho=1", classes=3),
        tacit.AutoPrototypes(
            "rho=1", classes=3, public=(PUBLIC - PUBLIC.mean(axis=0)) / PUBLIC.std(axis=0)
        ),
    ],
    ids=lambda clf: type(clf).__name__,
)
def test_a_release_carries_the_scaler_and_takes_rows_as_the_pipeline_does(clf, tmp_path):
    fitted = scaled_by_public(clf)
    release = Release.load(Release.of(fitted, name="pets").save(tmp_path / "out")).verify()
    assert np.array_equal(release.predict(RAW), fitted.predict(RAW))
    assert np.allclose(release.predict_proba(RAW), fitted.predict_proba(RAW), atol=1e-6)
    assert OVERLAP in release.guarantee.unprotected
    assert release.guarantee.event == fitted["clf"].guarantee_.event
    assert "scaling of rows" in release.card()


def test_under_a_unit_that_leaves_rows_public_nothing_is_said_of_them():
    fitted = scaled_by_public(tacit.NoisySumPrototypes("rho=1", classes=3, unit="change-label"))
    assert Release.of(fitted).guarantee.unprotected == fitted["clf"].guarantee_.unprotected


def test_the_recipe_of_the_card_scales_rows(tmp_path, monkeypatch):
    fitted = scaled_by_public()
    folder = Release.of(fitted, name="pets").save(tmp_path / "out")
    lines = re.search(
        r"^```python\n(.*?)^```$", (folder / "CARD.md").read_text(), re.MULTILINE | re.DOTALL
    )[1]
    monkeypatch.chdir(folder)
    values = {"X": RAW}
    exec(lines, values)
    assert np.array_equal(values["labels"], fitted.predict(RAW))


def test_the_onnx_file_scales_rows(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    fitted = scaled_by_public()
    path = Release.of(fitted).to_onnx(tmp_path / "pets.onnx")
    (labels,) = onnxruntime.InferenceSession(path).run(
        ["label"], {"embeddings": RAW.astype(np.float32)}
    )
    assert np.array_equal(labels, fitted.predict(RAW))


def test_the_page_holds_the_scaling():
    page = release_page(Release.of(scaled_by_public(), name="pets"))
    assert '"input_mean"' in page
    assert '"input_scale"' in page
    assert '"input_mean"' not in release_page(Release.of(pipeline(), name="pets"))


def test_a_scaling_that_cannot_be_is_refused():
    release = Release.of(scaled_by_public())
    for name, value, fault in (
        ("input_scale", np.zeros(3), "input_scale must be above 0"),
        ("input_mean", np.zeros(2), "must be float64 of shape"),
        ("input_mean", np.zeros(3, np.float32), "must be float64 of shape"),
    ):
        assert fault in scaling_misfit(release.arrays | {name: value}, 3)
    alone = {"input_mean": np.zeros(3)}
    assert not lacking(scaling_misfit(alone, 3), "input_mean", "input_scale")
    changed = release.arrays | {"input_mean": np.ones(3)}
    with pytest.raises(ReleaseError, match="arrays were changed"):
        Release(release.document, changed, release.sha256, release.card_text).verify()


def test_only_the_scaler_itself_scaled_by_its_own_public_rows_is_carried():
    class Other(tacit.PublicScaler):
        def transform(self, X):
            return X - X.mean(axis=0)

    private = Pipeline([("scale", Other(public=PUBLIC)), ("clf", learner())]).fit(RAW, Y)
    with pytest.raises(ReleaseError, match=stating("'scale'", "(Other)")):
        Release.of(private)
    changed = scaled_by_public()
    changed["scale"].mean_ = RAW.mean(axis=0)
    with pytest.raises(ReleaseError, match=stating("public rows", "scale")):
        Release.of(changed)
    scalers = [(name, tacit.PublicScaler(public=PUBLIC)) for name in ("a", "b")]
    with pytest.raises(ReleaseError, match="step 'b'"):
        Release.of(Pipeline([*scalers, ("clf", learner())]).fit(RAW, Y))


def test_a_release_that_scales_is_not_adapted():
    public = (PUBLIC - PUBLIC.mean(axis=0)) / PUBLIC.std(axis=0)
    release = Release.of(scaled_by_public(tacit.AutoPrototypes("rho=1", classes=3, public=public)))
    with pytest.raises(ReleaseError, match=stating("scales", "public")):
        tacit.adapt(release, np.tile(RAW, (3, 1)))


def test_a_pipeline_that_ends_with_a_step_of_another_kind_is_refused():
    with pytest.raises(ReleaseError, match="StandardScaler is not a tacit learner"):
        Release.of(Pipeline([("scale", StandardScaler())]).fit(X))
