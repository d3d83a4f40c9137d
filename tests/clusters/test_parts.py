"""The driver takes each part once; columns of Arrow become rows."""

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.clusters.parts import labels_of, rows_of, sums_of_batches, total_of_parts
from tacit.errors import InputError, TacitError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = RNG.integers(0, 2, 30)
LEARNER = tacit.LeastSquares("rho=0.5", classes=2, noise="research", random_state=0)
RECIPE = LEARNER.recipe(4)
RESULTS = [(part, RECIPE.sums(X[part::3], Y[part::3]).packed()) for part in range(3)]
WHOLE = RECIPE.sums(X, Y).packed()


def test_a_part_that_was_computed_twice_is_added_once():
    results = [RESULTS[2], RESULTS[0], RESULTS[2], RESULTS[1], RESULTS[0]]
    assert total_of_parts(RECIPE, results, 3).packed() == WHOLE


def test_parts_that_are_lost_unknown_or_different_are_refused():
    with pytest.raises(TacitError, match="1 of 3 parts have no result"):
        total_of_parts(RECIPE, RESULTS[:2], 3)
    with pytest.raises(TacitError, match="part 2 is none of the 2"):
        total_of_parts(RECIPE, RESULTS, 2)
    with pytest.raises(TacitError, match="part 0 was computed twice with different sums"):
        total_of_parts(RECIPE, [*RESULTS, (0, RESULTS[1][1])], 3)


def lists(kind):
    return pa.array(X.tolist(), kind)


TABLES = {
    "lists": (pa.table({"x": lists(pa.list_(pa.float64()))}), "x"),
    "large lists": (pa.table({"x": lists(pa.large_list(pa.float64()))}), "x"),
    "fixed lists": (pa.table({"x": lists(pa.list_(pa.float64(), 4))}), "x"),
    "sliced": (pa.table({"x": pa.array([[0.0] * 4, *X.tolist()])})[1:], "x"),
    "chunks": (
        pa.concat_tables([pa.table({"x": X[:9].tolist()}), pa.table({"x": X[9:].tolist()})]),
        "x",
    ),
    "columns": (pa.table({str(k): X[:, k] for k in range(4)}), ["0", "1", "2", "3"]),
    "batch": (pa.RecordBatch.from_pydict({"x": lists(pa.list_(pa.float64()))}), "x"),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_become_the_same_rows(name):
    assert np.array_equal(rows_of(*TABLES[name]), X)


def test_float32_stays():
    table = pa.table({"x": lists(pa.list_(pa.float32()))})
    assert rows_of(table, "x").dtype == np.float32
    assert rows_of(table[:0], "x").shape[0] == 0


REFUSED = {
    "missing rows": ({"x": pa.array([[1.0], None])}, "x"),
    "missing numbers": ({"x": pa.array([[1.0], [None]], pa.list_(pa.float64()))}, "x"),
    "different lengths": ({"x": [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]]}, "x"),
    "a column of lists": ({"x": [1.0, 2.0]}, "x"),
    "pass numbers": ({"x": ["1", "2"]}, ["x"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_columns_that_are_no_rows_are_refused(fault):
    columns, features = REFUSED[fault]
    with pytest.raises(InputError, match=fault):
        rows_of(pa.table(columns), features)
    with pytest.raises(InputError, match="missing labels"):
        labels_of(pa.table({"y": [1, None]}), "y")


def test_batches_of_a_part_add_up():
    table = pa.table({"x": X.tolist(), "y": Y})
    batches = [*table.to_batches(max_chunksize=7), table.to_batches()[0][:0]]
    assert sums_of_batches(RECIPE, batches, "x", "y").packed() == WHOLE


def test_lists_of_labels_are_summed_as_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    lists = [[name for name, has in zip("ab", row > 0, strict=True) if has] for row in X]
    table = pa.table({"x": X[:, 0], "z": X[:, 1], "y": lists})
    learner = tacit.NoisySumPrototypes(
        "rho=1", classes=["a", "b"], most_labels=2, noise="research", random_state=0
    )
    sums = sums_of_batches(learner.recipe(2), [table], ["x", "z"], "y")
    of_parts = learner.fit_sums(sums).coefficients_
    np.testing.assert_array_equal(of_parts, learner.fit(X, lists).coefficients_)

    of_one = tacit.NoisySumPrototypes("rho=1", classes=["a", "b"])
    with pytest.raises(InputError, match="give one label per row"):
        sums_of_batches(of_one.recipe(2), [table], ["x", "z"], "y")
