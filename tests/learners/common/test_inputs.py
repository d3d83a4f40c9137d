"""Features and labels as data frames and other libraries hold them, in learners and releases."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.dtypes import StringDType
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier

import tacit
from messages import stating
from tacit.errors import InputError

X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[-2.0], [2.0]], 30, axis=0)
Y = np.repeat(["cat", "dog"], 30)
FRAME = pd.DataFrame(X, columns=list("abc"))


def learner(**parameters):
    options = {"classes": ["cat", "dog"], "noise": "research", "random_state": 0} | parameters
    return tacit.NoisySumPrototypes("rho=100", **options)


@pytest.fixture(scope="module")
def model():
    return learner().fit(X, Y)


COLUMNS = {
    "lists of pandas": pd.Series(X.tolist(), index=range(100, 160)),
    "arrays of pandas": pd.Series(list(X)),
    "lists of Arrow in pandas": pd.Series(X.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "lists of polars": pl.Series(X.tolist()),
    "arrays of polars": pl.Series(X, dtype=pl.Array(pl.Float64, 3)),
    "Arrow": pa.array(X.tolist()),
    "chunks of Arrow": pa.chunked_array([X[:7].tolist(), X[7:].tolist()]),
    "objects": pd.Series(list(X)).to_numpy(),
    "frame": pd.DataFrame({"embedding": X.tolist()}),
    "frame of polars": pl.DataFrame({"embedding": X.tolist()}),
    "table": pa.table({"embedding": X.tolist()}),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_vectors_is_rows(model, kind):
    column = COLUMNS[kind]
    assert np.array_equal(learner().fit(column, Y).prototypes_, model.prototypes_)
    assert np.array_equal(model.predict(column), Y)
    release = tacit.Release.of(model)
    assert np.array_equal(release.predict_proba(column), release.predict_proba(X))


def test_a_store_takes_columns_of_vectors_and_frames_of_any_type(tmp_path):
    store = tacit.EmbeddingStore.write(tmp_path / "vectors", COLUMNS["lists of pandas"], Y)
    assert np.array_equal(store.x[:], X.astype(np.float32))
    store = tacit.EmbeddingStore.write(tmp_path / "frame", FRAME.astype("Float64"), Y)
    assert np.array_equal(store.x[:], X.astype(np.float32))


@pytest.mark.parametrize(
    ("entry", "reason"), [([1.0], "shape"), (None, "no vector"), (["a"] * 3, "no vector")]
)
def test_a_column_with_something_else_is_refused_by_row(model, entry, reason):
    column = pd.Series([*X[:5].tolist(), entry])
    for use in (
        lambda: learner().fit(column, Y[:6]),
        lambda: tacit.Release.of(model).predict(column),
    ):
        with pytest.raises(InputError, match=stating("X row 5", reason)):
            use()


@pytest.mark.parametrize(
    "row", [FRAME.iloc[0], X[0], X[0].tolist(), pd.Series([1, 2.0, 3], dtype=object)]
)
def test_one_row_is_refused_with_the_remedy(model, row):
    for use in (model.predict, model.predict_proba, tacit.Release.of(model).predict):
        with pytest.raises(InputError, match=stating("X has one dimension", "df.iloc[[0]]")):
            use(row)


def test_the_remedy_for_one_row_is_right():
    named = learner().fit(FRAME, Y)
    assert named.predict(FRAME.iloc[[0]]) == tacit.Release.of(named).predict(FRAME.iloc[[0]])


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]"])
def test_releases_take_frames_of_types_that_numpy_lacks(model, dtype):
    named = tacit.Release.of(learner().fit(FRAME, Y))
    frame = FRAME.astype(dtype)
    for release in (named, tacit.Release.of(model)):
        assert np.array_equal(release.predict_proba(frame), release.predict_proba(X))

    frame.loc[4, "b"] = pd.NA
    with pytest.raises(InputError, match="row 4"):
        named.predict(frame)


def test_texts_of_any_length_are_labels(model, tmp_path):
    texts = Y.astype(StringDType())
    assert learner().fit(X, texts).score(X, texts) == 1
    assert tacit.Release.of(model).score(X, texts) == 1
    assert tacit.EmbeddingStore.write(tmp_path / "store", X, texts).labels.tolist() == Y.tolist()
    missing = np.array(["cat", None], dtype=StringDType(na_object=None))
    with pytest.raises(InputError, match=stating("row 1", "label")):
        tacit.EmbeddingStore.write(tmp_path / "other", X[:2], missing)


@pytest.mark.parametrize("composed_classes", [False, True])
def test_classes_and_labels_are_compared_in_nfc(composed_classes):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    classes = [composed if composed_classes else decomposed, "dog"]
    labels = np.where(Y == "cat", decomposed if composed_classes else composed, "dog")
    fitted = learner(classes=classes).fit(X, labels)
    assert fitted.classes_.tolist() == [composed, "dog"]
    assert fitted.score(X, labels.tolist()) == tacit.Release.of(fitted).score(X, labels) == 1


def test_a_voting_classifier_numbers_the_classes():
    def voting(**parameters):
        return VotingClassifier([(name, learner(**parameters)) for name in "ab"], voting="soft")

    assert voting(classes=2).fit(X, Y).score(X, Y) == 1
    with pytest.raises(InputError, match=stating("VotingClassifier", "classes=2")):
        voting().fit(X, Y)


def test_logarithms_of_probabilities(model):
    for fitted in (model, tacit.Release.of(model)):
        assert np.array_equal(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)))


def test_frames_that_are_not_computed_are_refused(model):
    lazy = pl.LazyFrame(FRAME)
    for use in (model.predict, tacit.Release.of(model).predict, lambda X: learner().fit(X, Y)):
        with pytest.raises(InputError, match=stating("X is a LazyFrame", "X.collect()")):
            use(lazy)
    with pytest.raises(InputError, match=stating("y is a LazyFrame", "y.collect()")):
        learner().fit(X, lazy)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_sets_of_labels_are_matched_by_name(frame):
    truth = np.random.default_rng(1).random((60, 2)) < 0.5
    parameters = {"classes": ["cat", "dog"], "noise": "research", "random_state": 0, "steps": 2}
    learner = tacit.GradientDescent("rho=5", most_labels=2, **parameters)
    model = learner.fit(X, truth)
    labels = frame({"dog": truth[:, 1], "cat": truth[:, 0]})
    assert np.array_equal(clone(learner).fit(X, labels).coefficients_, model.coefficients_)
    score = model.score(X, truth)
    assert model.score(X, labels) == model.score(X, csr_matrix(truth)) == score
    with pytest.raises(InputError, match=stating("cow", "2 classes")):
        clone(learner).fit(X, frame({"dog": truth[:, 1], "cow": truth[:, 0]}))
