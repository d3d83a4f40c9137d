"""Rows are joined to the records of their source, through every command that leaves some out."""

import zipfile

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cli.test_encode import png, raw
from tacit import EmbeddingStore
from tacit.data.imports import read_data

__all__ = ["raw"]


def features(folder):
    """The features of each row of a store, by its position in the source."""
    store = EmbeddingStore.open(folder)
    return dict(zip(store.origin.rows.tolist(), np.asarray(store.x).tolist(), strict=True))


@pytest.fixture
def pets(raw, run):
    """A store of pictures of which every fifth was left out as bad; returns the source's names, in
    order.
    """
    with zipfile.ZipFile("many.zip", "w") as archive:
        for number in range(120):
            colour = ((120, 20, 0), (0, 20, 120))[number % 2]
            content = b"no" if number % 5 == 0 else png(colour, number)
            archive.writestr(f"{('cat', 'dog')[number % 2]}/{number:03d}.png", content)
    status, _, err = run(
        "encode many.zip --encoder torch:means.Means --out pets --classes classes.txt --skip-bad"
    )
    assert status == 0, err
    return sorted(f"{('cat', 'dog')[number % 2]}/{number:03d}.png" for number in range(120))


def test_rows_of_predict_are_records_of_the_source(pets, run):
    store = EmbeddingStore.open("pets")
    assert store.rows == 96
    names = [pets[row] for row in store.origin.rows.tolist()]
    assert names == store.origin.names.tolist() == store.metadata()["record"].to_pylist()
    assert store.origin.rows.tolist() != list(range(96))
    by_row = features("pets")
    for line in (
        "import pets --out again",
        "split again --n-public 30 --n-test 30 --out parts",
        "subset parts/private --imbalance 3 --out sub",
        "split sub --n-public 5 --out twice",
        "fit noisy-sum parts/private --budget rho=1 --out release",
    ):
        status, _, err = run(line)
        assert status == 0, (line, err)
    for folder in (
        "again",
        "parts/private",
        "parts/public",
        "parts/test",
        "sub",
        "twice/private",
        "twice/public",
    ):
        part = EmbeddingStore.open(folder)
        assert all(by_row[row] == values for row, values in features(folder).items())
        full = [pets[row] for row in part.origin.rows.tolist()]
        if folder.endswith("public"):
            assert part.origin.names.tolist() == [name.rpartition("/")[2] for name in full]
        else:
            assert part.origin.names.tolist() == full
            assert part.labels.tolist() == [name.partition("/")[0] for name in full]
        for ending, read in (("parquet", pq.read_table), ("csv", pyarrow.csv.read_csv)):
            out = f"{folder.replace('/', '-')}.{ending}"
            assert run(f"predict release {folder} --out {out}")[0] == 0
            table = read(out)
            assert table.column_names == ["row", "label"]
            assert table["row"].to_pylist() == part.origin.rows.tolist()
            guessed = [pets[row].partition("/")[0] for row in table["row"].to_pylist()]
            assert np.mean(np.array(guessed) == np.array(table["label"].to_pylist())) > 0.9


def test_rows_of_a_file_are_their_own_position_and_keep_it(stores, run):
    x = np.arange(1, 241.0).reshape(60, 4)
    np.savez("d.npz", x=x, y=np.arange(60) % 3, classes=["a", "b", "c"])
    for line in (
        "import d.npz --out store --dtype float64",
        "split store --n-public 20 --n-test 20 --out parts",
    ):
        assert run(line)[0] == 0
    assert "row" not in EmbeddingStore.open("store").metadata().column_names
    rows = []
    for name in ("private", "public", "test"):
        part = EmbeddingStore.open(f"parts/{name}")
        assert part.origin.names is None
        assert np.array_equal(np.asarray(part.x), x[part.origin.rows])
        rows += part.origin.rows.tolist()
    assert sorted(rows) == list(range(60))


def test_a_store_that_states_no_rows_is_its_own_source(tmp_path):
    x = np.ones((3, 2))
    assert EmbeddingStore.write(tmp_path / "s", x).origin.rows.tolist() == [0, 1, 2]
    of_user = EmbeddingStore.write(
        tmp_path / "t", x, metadata={"row": ["x", "y", "z"], "record": [1, 2, 3]}
    )
    assert of_user.origin.rows.tolist() == [0, 1, 2]
    assert of_user.origin.names is None


def test_ids_from_a_file_leave_rows_as_they_are(tmp_path):
    stated = {"row": [5, 7, 9], "record": ["a", "b", "c"]}
    EmbeddingStore.write(tmp_path / "s", np.ones((3, 2)), metadata=stated)
    (tmp_path / "ids.txt").write_text("x\ny\nz\n")
    data = read_data(tmp_path / "s", persons=str(tmp_path / "ids.txt"))
    assert data.origin.rows.tolist() == [5, 7, 9]
    assert data.origin.names.tolist() == ["a", "b", "c"]


def test_appended_rows_come_after_those_of_the_source(tmp_path):
    store = EmbeddingStore.write(tmp_path / "s", np.ones((3, 2)), metadata={"row": [5, 9, 7]})
    assert store.append(np.ones((2, 2))).origin.rows.tolist() == [5, 9, 7, 10, 11]
    assert store.append(np.ones((1, 2)), metadata={"row": [3]}).origin.rows.tolist() == [
        5,
        9,
        7,
        10,
        11,
        3,
    ]
