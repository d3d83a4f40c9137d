"""Several labels a record: every form in which they come is one matrix, in stores and in files."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix

from messages import stating
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data
from tacit.data.label_sets import Indicators
from tacit.errors import InputError, StoreError

X = np.random.default_rng(0).uniform(0.5, 2.0, size=(4, 3)).astype(np.float32)
NAMES = ["fear", "joy", "pride"]
SETS = [["joy"], [], ["joy", "fear"], ["pride"]]
MATRIX = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
TEXTS = ["|".join(labels) for labels in SETS]
INDEXES = [[NAMES.index(label) for label in labels] for labels in SETS]


def frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(MATRIX[:, ::-1], columns=NAMES[::-1])


# Stores


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (SETS, {}),
        ([set(labels) for labels in SETS], {}),
        ([[*labels, *labels] for labels in SETS], {}),
        (np.array([tuple(labels) for labels in SETS], dtype=object), {}),
        (INDEXES, {"labels": "index"}),
        (MATRIX, {}),
        (MATRIX.astype(float), {}),
        (MATRIX.tolist(), {}),
        (csr_matrix(MATRIX), {}),
        (frame, {}),
        (lambda: pl.DataFrame(MATRIX[:, ::-1], schema=NAMES[::-1]), {}),
        (lambda: pl.Series(SETS), {}),
    ],
)
def test_every_form_is_stored_as_one_matrix(tmp_path, y, options):
    y = y() if callable(y) else y
    store = EmbeddingStore.write(tmp_path / "s", X, y, classes=NAMES, **options)
    assert store.several
    assert store.classes == NAMES
    assert store.classes_declared
    assert store.labels is store.y
    assert store.y.dtype == bool
    assert store.y.tolist() == MATRIX.tolist()
    assert not store.y.flags.writeable
    assert "several labels a record" in repr(store)

    # indexes of the labels alone: what a record lacks takes no room
    assert store.metadata(["label"])["label"].to_pylist() == [sorted(row) for row in INDEXES]

    longer = store.append(X[:2], SETS[:2])
    assert longer.y.tolist() == [*MATRIX.tolist(), *MATRIX[:2].tolist()]
    assert store.verify() is store


def test_labels_and_classes_are_compared_in_nfc(tmp_path):
    store = EmbeddingStore.write(
        tmp_path / "s", X[:2], [["e\u0301"], ["a", "\u00e9"]], classes=["a", "é"]
    )
    assert store.y.tolist() == [[False, True], [True, True]]
    columns = Indicators(store.y, ["a", "e\u0301"])
    assert columns.recoded(["é", "a"]).matrix.tolist() == store.y[:, ::-1].tolist()


def test_undeclared_classes_are_those_that_occur(tmp_path):
    store = EmbeddingStore.write(tmp_path / "texts", X, SETS)
    assert (store.classes, store.classes_declared) == (NAMES, False)
    store = EmbeddingStore.write(tmp_path / "numbers", X[:2], [[7], [3, 7]])
    assert (store.classes, store.y.tolist()) == ([3, 7], [[False, True], [True, True]])
    store = EmbeddingStore.write(tmp_path / "columns", X, MATRIX)
    assert (store.classes, store.classes_declared) == ([0, 1, 2], False)


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([["joy"], None, [], []], NAMES, stating("row 1", "missing", "empty list")),
        ([["joy"], [None], [], []], NAMES, stating("row 1", "no label", "missing")),
        ([["joy"], "joy", [], []], NAMES, stating("row 1", "another type")),
        ([[], [], ["joy", 1], []], NAMES, stating("row 2", "another type")),
        ([[], [], [], ["fear", "rage"]], NAMES, stating("row 3", "'rage'", "3 classes")),
        ([[], [], [], [0]], NAMES, stating("row 3", "whole number 0", "--labels index")),
        ([[0.5], [], [], []], 3, stating("row 0", "fractional")),
        ([[1, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]], 3, stating("0 and 1", "truth values")),
        ([[True, False], [True], [False, False], [True, True]], 2, stating("row 1", "1", "2")),
        (SETS[:2], NAMES, stating("2 records", "4 rows")),
        (2 * MATRIX, NAMES, stating("row 0", "neither 0 nor 1")),
        (MATRIX, NAMES[:2], stating("3 columns", "2 classes")),
        (np.array(TEXTS * 3).reshape(4, 3), NAMES, stating("<U8", "lists of labels")),
        (["joy", "joy; fear", "joy", "joy"], NAMES, stating("row 1", '--label-separator ";"')),
        ([[]] * 4, None, stating("no record has a label", "class list")),
    ],
)
def test_bad_sets_are_refused_by_record(tmp_path, y, classes, message):
    with pytest.raises(InputError, match=message) as error:
        EmbeddingStore.write(tmp_path / "s", X, y, classes=classes)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.label_sets.available_memory", lambda: 11)
    with pytest.raises(InputError, match=stating("4 records", "3 classes", "12 bytes", "11")):
        EmbeddingStore.write(tmp_path / "s", X, SETS, classes=NAMES)


def test_sets_and_single_labels_are_not_mixed(tmp_path):
    sets = EmbeddingStore.write(tmp_path / "sets", X, SETS, classes=NAMES)
    with pytest.raises(InputError, match=stating("several labels a record", "list")):
        sets.append(X, ["joy"] * 4)
    single = EmbeddingStore.write(tmp_path / "single", X, ["joy"] * 4, classes=NAMES)
    with pytest.raises(InputError, match="one label a record"):
        single.append(X, SETS)
    assert "several_labels" not in json.loads((single.folder / "manifest.json").read_text())
    assert not single.several


def test_earlier_versions_refuse_the_store_by_its_version(tmp_path):
    store = EmbeddingStore.write(tmp_path / "s", X, SETS, classes=NAMES)
    path = store.folder / "manifest.json"
    facts = json.loads(path.read_text())
    assert (facts["version"], facts["several_labels"]) == (2, True)
    for change, message in [
        ({"version": 1}, stating("version 1", "several_labels True")),
        ({"classes": None}, stating("several labels", "classes")),
    ]:
        path.write_text(json.dumps(facts | change))
        with pytest.raises(StoreError, match=message):
            EmbeddingStore.open(store.folder)


@pytest.mark.parametrize("column", [[[0], [3]], [[0], [-1]], [[0], [None]], [[0], None], [0, 1]])
def test_a_column_of_labels_that_was_altered_is_refused(tmp_path, monkeypatch, column):
    store = EmbeddingStore.write(tmp_path / "s", X[:2], SETS[:2], classes=NAMES)
    monkeypatch.setattr(store, "metadata", lambda columns: pa.table({"label": pa.array(column)}))
    with pytest.raises(StoreError, match="not what this store's manifest describes"):
        _ = store.y


# One format after another


def parquet(folder):
    table = pa.table({"x": X.tolist(), "labels": SETS, "who": list("abab")})
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_of_dictionaries(folder):
    words = pa.array(SETS, pa.list_(pa.dictionary(pa.int8(), pa.string())))
    pq.write_table(pa.table({"x": X.tolist(), "label": words}), folder / "rows.parquet")
    return folder / "rows.parquet"


def arrow_of_truth(folder):
    truth = pa.array(MATRIX.tolist(), pa.list_(pa.bool_(), 3))
    feather.write_feather(pa.table({"x": X.tolist(), "y": truth}), str(folder / "rows.arrow"))
    return folder / "rows.arrow"


def lines(folder):
    # the first record has no label, so that the type of its list is not known yet
    rows = [json.dumps({"label": SETS[i], "x": X[i].tolist()}) for i in (1, 0, 2, 3)]
    (folder / "rows.jsonl").write_text("\n".join(rows))
    return folder / "rows.jsonl"


def saved_dataset(folder):
    (folder / "data").mkdir()
    table = pa.table({"x": X.tolist(), "labels": INDEXES})
    with (
        pa.OSFile(str(folder / "data" / "data.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    class_label = {"names": NAMES, "_type": "ClassLabel"}
    info = {"features": {"labels": {"feature": class_label, "_type": "List"}}}
    (folder / "data" / "dataset_info.json").write_text(json.dumps(info))
    state = {"_data_files": [{"filename": "data.arrow"}]}
    (folder / "data" / "state.json").write_text(json.dumps(state))
    return folder / "data"


def npz(folder):
    np.savez(folder / "rows.npz", x=X, y=MATRIX, classes=NAMES)
    return folder / "rows.npz"


def csv(folder):
    rows = [",".join([*map(str, X[i].tolist()), TEXTS[i].replace("|", " | ")]) for i in range(4)]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,labels", *rows]))
    return folder / "rows.csv"


def parquet_of_texts(folder):
    pq.write_table(pa.table({"x": X.tolist(), "labels": TEXTS}), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize(
    ("write", "options", "classes", "declared"),
    [
        (parquet, {"persons": "who"}, NAMES, False),
        (parquet_of_dictionaries, {}, NAMES, False),
        (arrow_of_truth, {}, None, False),
        (lines, {}, NAMES, False),
        (saved_dataset, {}, NAMES, True),
        (npz, {}, NAMES, True),
        (csv, {"label_separator": "|"}, NAMES, False),
        (parquet_of_texts, {"label_separator": "|"}, NAMES, False),
    ],
)
def test_every_format_gives_the_matrix(tmp_path, write, options, classes, declared):
    order = [1, 0, 2, 3] if write is lines else [0, 1, 2, 3]
    data = read_data(write(tmp_path), **options)
    assert data.several
    assert data.labels.tolist() == MATRIX[order].tolist()
    np.testing.assert_array_equal(np.asarray(data.x[:], np.float32), X[order])
    assert (data.classes, data.classes_declared) == (classes, declared)
    assert (data.persons is None) == ("persons" not in options)


def test_arrays_hold_a_matrix_whose_columns_a_card_or_list_names(tmp_path):
    save_file({"x": X, "y": MATRIX.astype(np.uint8)}, tmp_path / "rows.safetensors")
    data = read_data(tmp_path / "rows.safetensors")
    assert (data.labels.tolist(), data.classes) == (MATRIX.tolist(), None)

    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["x"] = X
        file["y"] = MATRIX
    assert read_data(tmp_path / "rows.h5").labels.tolist() == MATRIX.tolist()

    np.save(tmp_path / "train_x.npy", X)
    np.save(tmp_path / "train_y.npy", MATRIX)
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"classes": NAMES}))
    data = read_data(tmp_path / "train_x.npy")
    assert data.labels is None
    data = read_data([tmp_path / "train_x.npy", tmp_path / "train_y.npy"], card=card)
    assert (data.labels.tolist(), data.classes, data.classes_declared) == (
        MATRIX.tolist(),
        NAMES,
        True,
    )
    card.write_text(json.dumps({"classes": NAMES[:2]}))
    with pytest.raises(InputError, match=stating("3 columns", "2 classes")):
        read_data([tmp_path / "train_x.npy", tmp_path / "train_y.npy"], card=card)


@pytest.mark.parametrize(
    ("columns", "separator", "message"),
    [
        ({"labels": [["joy"], None]}, None, stating("row 1", "missing", "empty list")),
        ({"labels": [["joy"], [None]]}, None, stating("row 1", "missing")),
        ({"labels": [["joy"], []]}, "|", stating("'|'", "lists", "leave it out")),
        ({"labels": [1, 2]}, "|", stating("'|'", "int64", "leave it out")),
        ({"labels": ["joy", None]}, "|", stating("row 1", "no text")),
        ({"labels": ["joy", "joy||fear"]}, "|", stating("row 1", "empty label", "'|'")),
        ({"labels": ["joy", "fear"]}, " ", "label_separator=' ' is empty"),
    ],
)
def test_missing_labels_and_wrong_separators_are_refused(tmp_path, columns, separator, message):
    pq.write_table(pa.table({"x": X[:2].tolist(), **columns}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=message) as error:
        read_data(tmp_path / "rows.parquet", label_separator=separator)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("column", ["label", "x"])
def test_a_null_that_the_parser_of_json_loses_is_refused(tmp_path, column):
    rows = [{"x": X[i].tolist(), "label": SETS[i]} for i in (0, 2, 3)]
    rows[0][column] = [None, *rows[0][column][1:], "joy" if column == "label" else 1.5]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match=stating("rows.jsonl", "null", "start of a list")):
        read_data(tmp_path / "rows.jsonl")


def test_text_files_name_the_line_and_numbers_stay_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,label\n1.5,3|1\n2.5,\n3.5,1\n")
    data = read_data(path, label_separator="|")
    assert (data.classes, data.labels.tolist()) == (
        [1, 3],
        [[True, True], [False, False], [True, False]],
    )
    path.write_text("a,label\n1.5,3|1\n2.5,1|\n")
    with pytest.raises(InputError, match=stating("line 3", "empty label")):
        read_data(path, label_separator="|")
    for name in ("rows.npz", "store"):
        if name == "store":
            EmbeddingStore.write(tmp_path / name, X, SETS, classes=NAMES)
        else:
            np.savez(tmp_path / name, x=X, y=MATRIX)
        with pytest.raises(InputError, match=stating("label_separator=|", "does not apply")):
            read_data(tmp_path / name, label_separator="|")
