"""Folders of parts, and files of many kinds, read as one file does."""

import gzip
import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from messages import stating
from tacit.data.embeddings import EmbeddingStore
from tacit.data.ids import read_ids
from tacit.data.imports import identity_of, read_data
from tacit.data.locations import splits
from tacit.data.matrices import read_matrix
from tacit.data.streams import StreamedRows
from tacit.data.tables import is_table, open_table
from tacit.errors import InputError

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2.0, size=(400, 4)).astype(np.float32)
CLASSES = ["ant", "bee", "cat", "dog"]
LABELS = np.array(CLASSES)[np.arange(400) // 100]
NUMBERS = np.arange(400) % 37
# texts: ids in a CSV file are texts, so numbers would be stored as another type than in Parquet
PERSONS = np.char.add("p", NUMBERS.astype(str))
SQUARES = X.reshape(400, 2, 2)


def whole():
    vectors = pa.array(X.tolist(), pa.list_(pa.float32()))
    return pa.table({"x": vectors, "label": LABELS, "who": PERSONS})


def stored_hash(folder, path, **options):
    """Return the hash of the store that an import of a path makes."""
    data = read_data(path, check=False, stream=True, persons="who", **options)
    store = EmbeddingStore.write(folder, data.x, data.labels, persons=data.persons, classes=CLASSES)
    return store.content_hash


@pytest.fixture
def expected(tmp_path):
    """The hash of the store of one Parquet file."""
    pq.write_table(whole(), tmp_path / "one.parquet")
    return stored_hash(tmp_path / "expected", tmp_path / "one.parquet")


def test_a_folder_of_200_parts_is_one_file(tmp_path, expected):
    folder = tmp_path / "parts"
    folder.mkdir()
    # as Dask names them: by their paths as texts, part.10 would come before part.2
    for number in range(200):
        pq.write_table(whole().slice(2 * number, 2), folder / f"part.{number}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part.0.parquet.crc").touch()
    assert identity_of(folder) == "parts"
    assert stored_hash(tmp_path / "store", folder) == expected


def test_partitions_state_labels_and_persons(tmp_path, expected):
    folder = tmp_path / "by_label"
    hive = {"format": "parquet", "partitioning_flavor": "hive"}
    ds.write_dataset(whole(), folder, partitioning=["label"], **hive)
    assert stored_hash(tmp_path / "store", folder) == expected

    by_person = tmp_path / "by_person"
    ds.write_dataset(whole(), by_person, partitioning=["who"], **hive)
    data = read_data(by_person, persons="who")
    order = np.argsort(NUMBERS, kind="stable")
    assert np.array_equal(data.x, X[order])
    assert data.persons.tolist() == PERSONS[order].tolist()


def test_codes_of_partitions_stay_texts(tmp_path):
    for code in ["01", "1"]:
        (tmp_path / f"label={code}").mkdir()
        pq.write_table(whole().select(["x"]).slice(0, 2), tmp_path / f"label={code}" / "a.parquet")
    assert read_data(tmp_path).labels.tolist() == ["01", "01", "1", "1"]


def test_rows_without_a_partition_have_no_label(tmp_path):
    for value in ["ant", "__HIVE_DEFAULT_PARTITION__"]:
        (tmp_path / f"label={value}").mkdir()
        pq.write_table(whole().select(["x"]).slice(0, 1), tmp_path / f"label={value}" / "a.parquet")
    with pytest.raises(InputError, match="has no label"):
        read_data(tmp_path)


@pytest.mark.parametrize("compression", ["lz4", "uncompressed"])
def test_feather_and_arrow_files(tmp_path, expected, compression):
    path = tmp_path / "table.feather"
    pyarrow.feather.write_feather(whole(), path, compression=compression, chunksize=64)
    assert stored_hash(tmp_path / "store", path) == expected
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match=stating("table.feather", "truncated or not an Arrow")):
        read_data(path)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(X.tolist(), pa.list_view(pa.float32())),
        pa.FixedShapeTensorArray.from_numpy_ndarray(SQUARES),
        pa.array(SQUARES.tolist(), pa.list_(pa.list_(pa.float32()))),
        pa.array(SQUARES.tolist(), pa.list_(pa.list_(pa.float32(), 2), 2)),
    ],
    ids=["list view", "tensor", "Array2D", "lists of fixed size"],
)
def test_kinds_of_lists(tmp_path, expected, column):
    path = tmp_path / "table.arrow"
    pyarrow.feather.write_feather(whole().set_column(0, "x", column), path)
    assert stored_hash(tmp_path / "store", path) == expected


def test_tensors_of_bytes_are_pictures(tmp_path):
    pixels = rng.integers(0, 256, size=(5, 3, 4, 2), dtype=np.uint8)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)
    pq.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    data = read_data(tmp_path / "t.parquet")
    assert data.card["shape"] == [3, 4, 2]
    assert np.array_equal(data.x, pixels.reshape(5, 24))


def test_splits_of_a_folder_are_not_read_together(tmp_path):
    for name, start in {"train-00000-of-00002": 0, "train-00001-of-00002": 2, "test": 4}.items():
        pq.write_table(whole().slice(start, 2), tmp_path / f"{name}.parquet")
    assert splits(tmp_path) == ["test", "train"]
    with pytest.raises(InputError, match=stating("several splits", "never learn from test")):
        read_data(tmp_path)
    data = read_data(f"{tmp_path}#train")
    assert np.array_equal(data.x, X[:4])
    assert data.identity == f"{tmp_path.name}-train"

    pq.write_table(whole(), tmp_path / "more.parquet")
    with pytest.raises(InputError, match="parts of none"):
        read_data(tmp_path, split="train")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"v": [[1.0]], "label": ["ant"]}, stating("b.parquet", "no column 'x'")),
        ({"x": [[1.0]], "label": ["ant"]}, stating("row 2", "1 values", "first row", "4")),
        ({"x": [[1.0] * 4], "label": [1]}, stating("'label'", "several types")),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path, second, message):
    pq.write_table(whole().slice(0, 2), tmp_path / "a.parquet")
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=message):
        read_data(tmp_path)


def test_parts_of_several_precisions_lose_none(tmp_path):
    doubles = [0.1, 0.2, 0.3, 0.4]
    pq.write_table(whole().slice(0, 2), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [doubles], "label": ["ant"]}), tmp_path / "b.parquet")
    data = read_data(tmp_path)
    assert data.x.dtype == np.float64
    assert data.x[2].tolist() == doubles


def test_streamed_rows_are_read_once_in_order_and_again_on_demand():
    passes = []

    def blocks():
        passes.append(0)
        for start in range(0, 400, 7):
            yield X[start : start + 7]

    rows = StreamedRows(blocks, X.shape, X.dtype)
    pieces = [rows[start : start + 33] for start in range(0, 400, 33)]
    assert np.array_equal(np.concatenate(pieces), X)
    assert len(passes) == 1
    assert np.array_equal(rows[100:110], X[100:110])
    assert len(passes) == 2


def test_rows_beyond_the_memory_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.streams.MOST_IN_MEMORY", 100)
    pq.write_table(whole(), tmp_path / "t.parquet")
    rows = read_data(tmp_path / "t.parquet").x
    assert isinstance(rows, np.memmap)
    assert np.array_equal(rows, X)


def lines_of(separator):
    """Return the table as text."""
    lines = [separator.join(["a", "b", "c", "d", "label", "who"])]
    for row, label, person in zip(X.tolist(), LABELS.tolist(), PERSONS.tolist(), strict=True):
        lines.append(separator.join([*map(repr, row), label, str(person)]))
    return "\n".join(lines) + "\n"


def json_lines():
    """Return the table as an object a line."""
    return "".join(json.dumps(row) + "\n" for row in whole().to_pylist())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.CSV", lines_of(",")),
        ("t.csv.gz", lines_of(",")),
        ("t.tsv", lines_of("\t")),
        ("t.jsonl", json_lines()),
        ("t.jsonl.gz", json_lines()),
    ],
)
def test_texts_are_the_same_store(tmp_path, expected, name, content):
    content = content.encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    path = tmp_path / name
    path.write_bytes(content)
    assert identity_of(path) == "t"
    assert stored_hash(tmp_path / "store", path) == expected

    path.write_bytes(content[:-20])
    with pytest.raises(InputError, match=name) as caught:
        read_data(path)
    assert "ant" not in str(caught.value)


def test_a_packed_text_may_not_unpack_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.sizes.FREE", 1 << 10)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 100_000))
    with pytest.raises(InputError, match="would unpack to 400000"):
        read_data(tmp_path / "t.csv.gz")


def test_hdf5_is_read_like_npz(tmp_path, expected):
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("embeddings", data=X, compression="gzip")
        file["labels"] = LABELS.tolist()
        file["who"] = PERSONS.tolist()
    assert stored_hash(tmp_path / "store", path) == expected
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="truncated or not an HDF5 file"):
        read_data(path)


def test_links_of_hdf5_to_other_files_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = X
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "x")
    with pytest.raises(InputError, match="no array with a usual name"):
        read_data(tmp_path / "t.h5")


def texts_of(ending, start, stop):
    """Return rows as the lines of a text file."""
    if ending == ".jsonl":
        keys = ["x", "label", "who"]
        lines = []
        for row in range(start, stop):
            values = [X[row].tolist(), str(LABELS[row]), str(PERSONS[row])]
            lines.append(json.dumps(dict(zip(keys, values, strict=True))))
    else:
        lines = ["a,b,c,d,label,who"]
        for row in range(start, stop):
            lines.append(",".join([*map(str, X[row].tolist()), LABELS[row], PERSONS[row]]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl"])
def test_a_folder_of_texts_is_one_file(tmp_path, monkeypatch, expected, ending):
    # several blocks a part, and rows in a temporary file
    monkeypatch.setattr("tacit.data.formats.text.BLOCK", 1 << 11)
    monkeypatch.setattr("tacit.data.formats.json_lines.BLOCK", 1 << 11)
    monkeypatch.setattr("tacit.data.streams.MOST_IN_MEMORY", 1 << 10)
    pack = gzip.compress if ending.endswith(".gz") else bytes
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(12):
        content = texts_of(ending.removesuffix(".gz"), 40 * number, min(400, 40 * (number + 1)))
        if number == 11:
            content = ""
        path = folder / f"part-{number}{ending}"
        path.write_bytes(pack(content.encode()))
    (folder / "_SUCCESS").touch()
    assert identity_of(folder) == "parts"
    assert stored_hash(tmp_path / "store", folder) == expected
    assert isinstance(read_data(folder, persons="who").x, np.memmap)


def test_json_of_types_that_a_later_block_shows(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.formats.json_lines.BLOCK", 1 << 8)
    rows = [{"a": row, "b": row / 2 + 1, "label": row % 2} for row in range(40)]
    rows[39] = {"b": 0.5, "a": 0.25, "label": 1, "more": "text"}
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    data = read_data(path)
    assert data.card["columns"] == ["a", "b"]
    assert data.x[:, 0].tolist() == [*range(39), 0.25]
    assert data.labels.tolist() == [row["label"] for row in rows]
    assert data.left_out == (
        "'more' (string; features are columns of floats: convert it to use it)",
    )

    rows[39]["label"] = "one"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match="names hold one type"):
        read_data(path)


def test_texts_that_do_not_fit_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text(texts_of(".csv", 0, 2))
    (tmp_path / "b.csv").write_text("a,b,c,label,d,who\n1,2,3,ant,4,p0\n")
    with pytest.raises(InputError, match=stating("b.csv", "other columns", "same header")):
        read_data(tmp_path)
    (tmp_path / "b.csv").unlink()
    (tmp_path / "b.tsv").write_text("a\n")
    with pytest.raises(InputError, match="same format"):
        read_data(tmp_path)
    (tmp_path / "b.tsv").unlink()
    (tmp_path / "label=ant").mkdir()
    (tmp_path / "a.csv").rename(tmp_path / "label=ant" / "a.csv")
    with pytest.raises(InputError, match="write the column into the parts"):
        read_data(tmp_path)


def test_tables_of_texts_in_parts_and_other_files(tmp_path):
    table = pa.table({"text": np.char.add("note ", NUMBERS.astype(str)), "who": PERSONS})
    folders = {name: tmp_path / name for name in ["parquet", "hive", "csv", "jsonl"]}
    for folder in folders.values():
        folder.mkdir()
    for number in range(3):
        part = table.slice(150 * number, 150)
        pq.write_table(part, folders["parquet"] / f"part.{number}.parquet")
        pyarrow.csv.write_csv(part, folders["csv"] / f"part-{number}.csv")
        lines = "".join(json.dumps(row) + "\n" for row in part.to_pylist())
        (folders["jsonl"] / f"part-{number}.jsonl").write_text(lines)
    (folders["csv"] / "part-3.csv").touch()
    (folders["csv"] / "_SUCCESS").touch()
    (folders["hive"] / "who=p1").mkdir()
    pq.write_table(table.select(["text"]), folders["hive"] / "who=p1" / "a.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for name in table.column_names:
            file[name] = table[name].to_pylist()
        file["x"] = X

    for path in [*folders.values(), tmp_path / "t.feather", tmp_path / "t.h5"]:
        assert is_table(path)
        read = open_table(path)
        who = ["p1"] * 400 if path.name == "hive" else table["who"].to_pylist()
        assert read.column("text") == table["text"].to_pylist()
        assert read.count("text") == 400
        assert read_ids(f"{path}#who") == who
        chunks = list(read.records(["text", "who"], 64))
        assert [len(chunk["who"]) for chunk in chunks] == [64] * 6 + [16]

    # a folder of pictures may hold a table
    (folders["csv"] / "a.png").touch()
    assert not is_table(folders["csv"])
    (folders["jsonl"] / "part-4.jsonl").write_text('{"other": "a"}\n')
    with pytest.raises(InputError, match="other columns"):
        open_table(folders["jsonl"])


def test_votes_in_parts(tmp_path):
    votes = pa.table({"anna": NUMBERS % 3, "bert": NUMBERS % 2})
    (tmp_path / "parts").mkdir()
    for number in range(2):
        pq.write_table(votes.slice(200 * number, 200), tmp_path / "parts" / f"{number}.parquet")
    pyarrow.feather.write_feather(votes, tmp_path / "votes.feather")
    for path in [tmp_path / "parts", tmp_path / "votes.feather"]:
        matrix = read_matrix(path, "votes")
        assert np.array_equal(matrix, np.column_stack([NUMBERS % 3, NUMBERS % 2]))
        assert matrix.dtype == np.int64
