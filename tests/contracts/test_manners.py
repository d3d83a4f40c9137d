"""scikit-learn's manners beyond its own checks: kinds of arrays, named columns, weights, what a
notebook shows.
"""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier
from sklearn.utils.validation import has_fit_parameter

import tacit
from contracts.learners import (
    CENTRES,
    CLASSES,
    NEEDS,
    PUBLIC,
    WIDTH,
    X,
    Y,
    budget_of,
    make,
    same,
)
from messages import lacking, stating
from tacit.compute.foreign import SparseRows
from tacit.errors import InputError, InputTypeError
from tacit.learners.methods import METHODS
from tacit.models.rows import BLOCK_ENTRIES

METHOD = pytest.mark.parametrize("method", METHODS)
SEEDED = {"noise": "research", "random_state": 0}
SPARSE = [method for method, kind in CLASSES.items() if kind.takes_sparse]
NAMES = [f"c{i}" for i in range(WIDTH)]


def torch_tensors(rows):
    torch = pytest.importorskip("torch")
    return torch.tensor(rows, requires_grad=rows.dtype.kind == "f")


def polars_frames(rows):
    polars = pytest.importorskip("polars")
    return (
        polars.Series(rows)
        if rows.ndim == 1
        else polars.DataFrame(dict(zip(NAMES, rows.T, strict=True)))
    )


def pandas_frames(rows):
    return pd.Series(rows) if rows.ndim == 1 else pd.DataFrame(rows, columns=NAMES)


@METHOD
@pytest.mark.parametrize("kind", [torch_tensors, polars_frames, pandas_frames])
def test_tensors_and_frames_are_taken_as_the_arrays_that_they_hold(method, kind):
    public = {"public": kind(PUBLIC)} if "public" in NEEDS[method] else {}
    of_arrays = make(method, **SEEDED).fit(X, Y)
    other = make(method, **SEEDED, **public).fit(kind(X), kind(Y))
    assert same(of_arrays, other)
    assert np.array_equal(of_arrays.predict(X), other.predict(kind(X)))
    assert np.array_equal(
        tacit.Release.of(other, name="r").predict(kind(X)), other.predict(kind(X))
    )


def test_tensors_of_names_persons_and_a_type_that_numpy_lacks():
    torch = pytest.importorskip("torch")
    persons = np.arange(len(X)) // 3
    given = SEEDED | {"public": PUBLIC, "unit": "add-remove-person"}
    of_arrays = make("auto", names=CENTRES, **given).fit(X, Y, persons=persons)
    other = make("auto", names=torch.tensor(CENTRES), **given).fit(
        X, Y, persons=torch.tensor(persons)
    )
    assert same(of_arrays, other)
    half = torch.tensor(X, dtype=torch.bfloat16)
    assert same(
        make("noisy-sum", **SEEDED).fit(half, Y),
        make("noisy-sum", **SEEDED).fit(half.to(torch.float32).numpy(), Y),
    )


@pytest.mark.parametrize("amount", [0.5, "inf"])
@pytest.mark.parametrize(
    ("method", "unit"),
    [
        (method, unit)
        for method in SPARSE
        for unit in ("add-remove", "add-remove-person")
        if unit in CLASSES[method].units
    ],
)
def test_sparse_rows_are_learned_from_as_dense_ones(method, unit, amount):
    budget = budget_of(method, amount)
    thin = np.where(np.abs(X) > 1, X, 0.0)
    thin[7] = 0.0
    persons = None if unit == "add-remove" else np.random.default_rng(0).permutation(len(X)) // 3
    dense = make(method, budget=budget, unit=unit, **SEEDED).fit(thin, Y, persons)
    for kind in (sparse.csr_matrix, sparse.coo_array):
        other = make(method, budget=budget, unit=unit, **SEEDED).fit(kind(thin), Y, persons)
        assert same(dense, other)
        for ours, theirs in (
            (dense.predict, other.predict),
            (dense.predict_proba, other.predict_proba),
        ):
            assert np.array_equal(ours(thin), theirs(kind(thin)))
        release = tacit.Release.of(other, name="r")
        assert np.array_equal(release.predict(kind(thin)), dense.predict(thin))


def test_the_methods_of_sums_take_sparse_rows():
    assert {"noisy-sum", "coinpress", "least-squares", "auto", "names"} <= set(SPARSE)


def test_sparse_rows_are_dense_only_in_blocks(monkeypatch):
    read = []

    def spied(self, rows, original=SparseRows.__getitem__):
        read.append(original(self, rows))
        return read[-1]

    monkeypatch.setattr(SparseRows, "__getitem__", spied)
    y = np.arange(30_000) % 2
    rows = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), 1000))
    learner = make("noisy-sum", classes=2, **SEEDED).fit(rows, y)
    assert np.array_equal(learner.predict(rows), y)
    assert max(block.size for block in read) <= BLOCK_ENTRIES < rows.shape[0] * rows.shape[1]


@pytest.mark.parametrize("method", [method for method in METHODS if method not in SPARSE])
def test_sparse_rows_are_refused_with_the_remedy(method):
    with pytest.raises(InputError, match=stating("X", "sparse", "X.toarray()")) as caught:
        make(method, **SEEDED).fit(sparse.csr_matrix(X), Y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["public", "names"])
def test_sparse_public_rows_are_refused_with_the_remedy(name):
    given = {"public": PUBLIC, "names": CENTRES}
    with pytest.raises(InputError, match=stating(name, "sparse", f"{name}.toarray()")):
        make("auto", **given | {name: sparse.csr_matrix(given[name])}).fit(X, Y)


def spoiled(kind, part, place, value):
    rows = kind(X)
    getattr(rows, part)[place] = value
    return rows


@pytest.mark.parametrize(
    ("kind", "part", "place", "value"),
    [
        # would be written into row 3 of a dense block
        (sparse.csr_array, "indices", 0, 3 * WIDTH + 1),
        (sparse.csr_matrix, "indices", 0, -1),
        (sparse.csr_array, "indptr", -1, 0),
        (sparse.csr_array, "indptr", 1, 3 * WIDTH),
        (sparse.csc_array, "indices", 0, len(X)),
        (sparse.coo_array, "col", 0, WIDTH),
    ],
)
def test_sparse_indices_out_of_bounds_are_refused(kind, part, place, value):
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    release = tacit.Release.of(learner, name="r")
    message = (
        r"X is a sparse matrix with indices out of bounds .*; rebuild it by"
        r" scipy\.sparse\.csr_array\(\(values, "
    )
    for use in (
        lambda rows: make("noisy-sum").fit(rows, Y),
        learner.predict,
        release.predict,
        SparseRows,
    ):
        with pytest.raises(InputError, match=message):
            use(spoiled(kind, part, place, value))


def test_sparse_rows_of_one_dimension_are_refused():
    row = sparse.coo_array(np.ones(WIDTH))
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    for use in (
        learner.predict,
        tacit.Release.of(learner, name="r").predict,
        lambda rows: learner.fit(rows, Y),
    ):
        with pytest.raises(InputError, match=stating("X", "sparse", f"({WIDTH},)", "(n, d)")):
            use(row)


def test_a_sparse_matrix_with_duplicates_is_summed_and_stays_as_it_is():
    pairs, ends = np.ones(2 * len(X)), np.arange(0, 2 * len(X) + 1, 2)
    rows = sparse.csr_array(
        (pairs, np.tile([2, 1], len(X)) * np.repeat([0, 1], len(X)), ends), shape=X.shape
    )
    before = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    sparse_fit, dense_fit = (
        make("noisy-sum", **SEEDED).fit(kind, Y) for kind in (rows, rows.toarray())
    )
    assert same(sparse_fit, dense_fit)
    release = tacit.Release.of(sparse_fit, name="r")
    assert np.array_equal(release.predict(rows), dense_fit.predict(rows.toarray()))
    assert all(map(np.array_equal, before, (rows.data, rows.indices, rows.indptr)))


def odd_tensors():
    torch = pytest.importorskip("torch")
    rows = torch.tensor(X)
    return {
        "sparse_coo": rows.to_sparse(),
        "device meta": rows.to("meta"),
        "qint8": torch.quantize_per_tensor(rows.float(), 0.1, 0, torch.qint8),
    }


@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize("said", ["sparse_coo", "device meta", "qint8"])
def test_tensors_that_numpy_cannot_hold_are_refused(said):
    tensor = odd_tensors()[said]
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    release = tacit.Release.of(learner, name="r")
    public = make("auto", **SEEDED | {"public": tensor})
    for use in (
        lambda: public.fit(X, Y),
        lambda: learner.predict(tensor),
        lambda: release.predict(tensor),
    ):
        with pytest.raises(
            InputError,
            match=rf"a tensor \(.*{said}.*; pass a dense one, such as tensor.to_dense\(\)",
        ):
            use()


def test_tensors_of_float8_and_with_a_negative_bit_are_read():
    torch = pytest.importorskip("torch")
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    release, rows = tacit.Release.of(learner, name="r"), torch.tensor(X)
    short = rows.to(torch.float8_e4m3fn)
    assert np.array_equal(release.predict(short), release.predict(short.float().numpy()))
    turned = torch._neg_view(rows)
    assert np.array_equal(learner.predict(turned), learner.predict(-X))


def test_numbers_beyond_float64_are_refused_without_a_traceback():
    rows = X.astype(object)
    rows[3, 1] = 10**400
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    for use in (learner.predict, lambda given: make("noisy-sum").fit(given, Y)):
        with pytest.raises(InputError, match=stating("X", "float64", "finite")):
            use(rows)


def test_rows_of_different_lengths_are_refused_in_one_line():
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    for use in (learner.predict, lambda given: make("noisy-sum").fit(given, [0, 1])):
        with pytest.raises(InputError, match=stating("X", "lengths", "finite")):
            use([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("kind", [np.asarray, pandas_frames, polars_frames])
def test_dates_are_refused_as_features(kind):
    days = kind(np.full(X.shape, np.datetime64("2020-01-01", "ms")))
    learner = make("noisy-sum", **SEEDED).fit(X, Y)
    release, public = tacit.Release.of(learner, name="r"), make("auto", **SEEDED | {"public": days})
    uses = {"X": [learner.predict, release.predict, lambda rows: make("noisy-sum").fit(rows, Y)]}
    for name, those in (uses | {"public": [lambda rows: public.fit(X, Y)]}).items():
        for use in those:
            with pytest.raises(InputError, match=stating(name, "dates", "convert")):
                use(days)


def test_a_sparse_row_that_is_not_finite_is_named():
    rows = sparse.csr_matrix(np.eye(5))
    rows[3, 3] = np.nan
    with pytest.raises(InputError, match="row 3 of X is not finite"):
        make("noisy-sum").fit(rows, [0, 1, 2, 0, 1])


@METHOD
def test_weights_of_records_are_refused_with_the_reason(method):
    learner = make(method, **SEEDED)
    with pytest.raises(InputTypeError, match=stating("sample_weight", "supported")):
        learner.fit(X, Y, sample_weight=np.ones(len(Y)))
    assert not hasattr(learner, "classes_")
    with pytest.raises(InputTypeError, match=stating("'wieght'", "argument")):
        learner.fit(X, Y, wieght=1)
    assert not has_fit_parameter(learner, "sample_weight"), (
        "ensembles would weigh records, and not draw them"
    )


def test_no_weights_and_public_weights_of_a_score_are_fine():
    learner = make("noisy-sum", **SEEDED).fit(X, Y, sample_weight=None)
    right = learner.predict(X) == Y
    assert learner.score(X, Y, sample_weight=right) == 1
    bagged = BaggingClassifier(make("noisy-sum", **SEEDED), n_estimators=2, random_state=0).fit(
        X, Y
    )
    assert bagged.score(X, Y) > 0.9


@METHOD
def test_columns_by_other_names_or_in_another_order_are_named(method):
    frame = pandas_frames(X)
    learner = make(method, **SEEDED).fit(frame, Y)
    assert list(learner.feature_names_in_) == NAMES
    assert learner.n_features_in_ == WIDTH
    turned = (
        "X has the columns of the fit in another order: column 0 is 'c1' and was 'c0'; pass"
        " X[model.feature_names"
    )
    for rows, said in (
        (frame[["c1", "c0", *NAMES[2:]]], turned),
        (
            frame.drop(columns="c3"),
            "X lacks column 'c3'; pass the columns of the fit (feature_names_in_)",
        ),
        (frame.rename(columns={"c0": "z"}), "X lacks column 'c0' and has unknown column 'z'; pass"),
        (frame.assign(extra=1.0), "X has unknown column 'extra'; pass"),
        (frame[[*NAMES, "c1"]], "X repeats column 'c1'; pass the columns of the fit"),
        (frame[["c5"]], "X lacks columns 'c0', 'c1', 'c2' and 2 more; pass"),
    ):
        for predict in (learner.predict, learner.predict_proba, learner.decision_function):
            with pytest.raises(InputError, match=re.escape(said)) as caught:
                predict(rows)
            assert "\n" not in str(caught.value)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert np.array_equal(learner.predict(X), learner.predict(frame))


@pytest.mark.parametrize("method", ["auto", "pate"])
def test_public_columns_stand_as_the_private_ones(method):
    turned = pandas_frames(PUBLIC)[NAMES[::-1]]
    with pytest.raises(InputError, match=stating("public", "column 0", "'c5'", "order")):
        make(method, public=turned).fit(pandas_frames(X), Y)
    if method == "pate":
        with pytest.raises(InputError, match=stating("public", "columns", "order")):
            make(method).fit(pandas_frames(X), Y, public=turned)


def shown(learner):
    """The text of what a notebook shows, styles and the diagram's parameters left out."""
    html = learner._repr_html_()
    assert learner._repr_mimebundle_()["text/html"].startswith("<table>")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("</table>")[0]))


@METHOD
def test_a_notebook_shows_the_promise_before_and_after_a_fit(method):
    learner = make(method, **SEEDED)
    promise = learner.promise()
    for title in ("Promise of a fit", "Guarantee of this fit"):
        text = shown(learner)
        for part in (
            title,
            f"budget {learner.budget}",
            promise.figures(),
            f"{promise.unit}: hides {promise.unit.hidden}",
        ):
            assert part in text
        assert "noise research: not for release" in text
        learner.fit(X, Y)
    assert "sk-estimator" in learner._repr_html_()


def test_a_notebook_shows_what_is_not_protected_personal_budgets_and_mistakes():
    assert not lacking(shown(tacit.NoisySumPrototypes()), "class list", "private labels")
    assert "noise" not in shown(tacit.NoisySumPrototypes(classes=2)).split("covers")[1]
    assert "epsilon = 4.377" in shown(
        tacit.NoisySumPrototypes("epsilon=4.3771775,delta=1e-5", classes=2)
    )
    assert "{&#x27;a&#x27;: 1.0}" in shown(tacit.PATE(budgets={"a": 1.0}, classes=2))
    assert "no promise budget &#x27;&lt;b&gt;&#x27; cannot be read" in shown(
        tacit.NoisySumPrototypes("<b>")
    )
