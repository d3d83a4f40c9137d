import doctest
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from messages import stating
from tacit.compute.progress import reporting
from tacit.data import embeddings, manifest
from tacit.data.embeddings import EmbeddingStore
from tacit.data.rows import check_rows
from tacit.data.sharded import ShardedArray
from tacit.errors import InputError, StoreError


def rows_of(n, dim=3, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2.0, size=(n, dim)).astype(np.float16)


def with_row(row, n=5):
    x = np.ones((n, len(row)))
    x[3] = row
    return x


def files_of(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    )


def one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


class FailingRows:
    """An array whose source breaks after some rows."""

    shape = (10, 3)

    def __len__(self):
        return 10

    def __getitem__(self, key):
        if key.start >= 4:
            raise OSError("the disk went away")
        return rows_of(4)


@pytest.fixture
def store(tmp_path):
    return EmbeddingStore.write(
        tmp_path / "s", rows_of(7), list("abcabca"), classes=list("abcd"), shard_rows=3
    )


# Writing and reading


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(embeddings).failed == 0


def test_a_store_gives_back_what_was_written(tmp_path):
    x, y = rows_of(5), np.array([2, 0, 1, 1, 2])
    written = EmbeddingStore.write(
        tmp_path / "pets",
        x,
        y,
        classes=["cat", "dog", "fox"],
        labels="index",
        card={"encoder": "none"},
        metadata={"site": list("aabbc")},
    )
    for store in (
        written,
        EmbeddingStore.open(str(tmp_path / "pets")),
        pickle.loads(pickle.dumps(written)),
    ):
        assert isinstance(store.x, np.memmap)
        assert not store.x.flags.writeable
        assert np.array_equal(store.x, x)
        assert store.y.tolist() == y.tolist()
        assert store.labels.tolist() == ["fox", "cat", "dog", "dog", "fox"]
        assert store.classes == ["cat", "dog", "fox"]
        assert store.classes_declared
        assert store.card == {"encoder": "none"}
        assert (store.identity, store.rows, len(store), store.dim, store.dtype) == (
            "pets",
            5,
            5,
            3,
            np.float16,
        )
        assert store.metadata()["site"].to_pylist() == list("aabbc")
        assert store.metadata()["label"].type == pa.int32()
        assert repr(store) == "EmbeddingStore('pets': 5 x 3 float16, 3 declared classes)"
        store.verify()


def test_an_unlabelled_store_has_no_labels(tmp_path):
    store = EmbeddingStore.write(tmp_path / "s", rows_of(5), identity="my public rows")
    assert store.y is None
    assert store.labels is None
    assert store.classes is None
    assert store.identity == "my public rows"
    assert store.append(rows_of(2)).rows == 7
    assert "no labels" in repr(store)


def test_undeclared_names_are_derived_and_undeclared_numbers_are_kept(tmp_path):
    names = EmbeddingStore.write(tmp_path / "a", rows_of(3), ["b", "a", "b"])
    assert (names.classes, names.classes_declared, names.y.tolist()) == (
        ["a", "b"],
        False,
        [1, 0, 1],
    )
    numbers = EmbeddingStore.write(tmp_path / "b", rows_of(3), np.array([7, -2, 7], np.int16))
    assert (numbers.classes, numbers.classes_declared, numbers.y.tolist()) == (
        None,
        False,
        [7, -2, 7],
    )
    assert numbers.labels.tolist() == [7, -2, 7]


@pytest.mark.parametrize(
    ("classes", "y", "indexes", "labels"),
    [
        (10, [3, 9, 0], [3, 9, 0], [3, 9, 0]),
        ([20, 10], [10, 20, 10], [1, 0, 1], [10, 20, 10]),
        (["b", "a"], ["a", "b", "b"], [1, 0, 0], ["a", "b", "b"]),
        (list("12345"), [1, 2, 4], [0, 1, 3], ["1", "2", "4"]),
        ([2, 1], ["1", "2", "2"], [1, 0, 0], [1, 2, 2]),
        (["True", "False"], np.array([True, False, False]), [0, 1, 1], ["True", "False", "False"]),
        (range(3), np.array([1.0, 2.0, 0.0]), [1, 2, 0], [1, 2, 0]),
        (np.array(["b", "a"]), np.array(["a", "b", "b"], object), [1, 0, 0], ["a", "b", "b"]),
        (["b", "a"], np.array([b"a", b"b", b"b"]), [1, 0, 0], ["a", "b", "b"]),
    ],
)
def test_labels_are_values_or_indexes_of_declared_classes(tmp_path, classes, y, indexes, labels):
    store = EmbeddingStore.write(tmp_path / "s", rows_of(3), y, classes=classes)
    assert store.y.tolist() == indexes
    assert store.labels.tolist() == labels
    assert store.classes_declared


@pytest.mark.parametrize("y", [[1, 0, 0], np.array([True, False, False])])
def test_numbers_and_truth_values_are_no_positions_beside_names_unless_stated(tmp_path, y):
    for classes in (["b", "a"], ["yes", "no"]):
        with pytest.raises(InputError, match=stating("row 0", classes[0])):
            EmbeddingStore.write(tmp_path / "s", rows_of(3), y, classes=classes)
    with pytest.raises(InputError, match=stating("index", "--labels", "classes")):
        EmbeddingStore.write(tmp_path / "s", rows_of(3), [1, 0, 0], classes=["b", "a"])

    store = EmbeddingStore.write(
        tmp_path / "s", rows_of(3), [1, 0, 0], classes=["b", "a"], labels="index"
    )
    assert store.labels.tolist() == ["a", "b", "b"]
    with pytest.raises(InputError, match=stating("1", "index")):
        store.append(rows_of(1), [1])
    assert store.append(rows_of(1), [1], labels="index").labels.tolist() == ["a", "b", "b", "a"]
    with pytest.raises(InputError, match=stating("'place'", "value", "index")):
        EmbeddingStore.write(tmp_path / "t", rows_of(3), [1, 0, 0], classes=2, labels="place")


def test_labels_and_classes_are_compared_in_nfc(tmp_path):
    decomposed, composed = "caf\u0065\u0301", "caf\u00e9"
    for number, (y, classes) in enumerate(
        [(decomposed, composed), (composed, decomposed), (decomposed, decomposed)]
    ):
        store = EmbeddingStore.write(
            tmp_path / str(number), rows_of(2), ["tea", y], classes=["tea", classes]
        )
        assert store.labels.tolist() == ["tea", classes]
    with pytest.raises(InputError, match="twice"):
        EmbeddingStore.write(tmp_path / "s", rows_of(1), ["tea"], classes=[decomposed, composed])


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_the_type_of_the_rows_decides_how_they_are_stored(tmp_path, scale):
    rng = np.random.default_rng(0)
    for kind, stored in (
        ("f2", "float16"),
        ("f4", "float32"),
        ("f8", "float32"),
        ("i4", "float32"),
    ):
        x = (1e4 + rng.integers(-3, 4, size=(40, 8))).astype(kind)
        if kind[0] == "f":
            x = (x * scale).astype(kind)
        store = EmbeddingStore.write(tmp_path / f"{kind}{scale}", x)
        assert store.dtype == stored
        assert np.array_equal(store.x, x.astype(stored))
    # rows around a large number stay apart
    assert len(np.unique(np.asarray(store.x), axis=0)) > 30


def test_rows_that_do_not_fit_the_type_that_is_asked_for(tmp_path):
    for row, fact in (([1.0, 7e4], "exceeds"), ([1e-9, 0.0], "zeros")):
        with pytest.raises(InputError, match=stating("row 3", "float16", 'dtype="float32"', fact)):
            EmbeddingStore.write(tmp_path / "s", with_row(row), dtype="float16")


def test_any_array_like_is_accepted(tmp_path):
    x = rows_of(6).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    sources = [
        x.tolist(),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        np.asfortranarray(x),
        x.astype(">f4"),
    ]
    for number, source in enumerate(sources):
        assert np.array_equal(EmbeddingStore.write(tmp_path / str(number), source).x, rows_of(6))
    store = EmbeddingStore.write(tmp_path / "w", x * 1e6, dtype="float32", shard_rows=2)
    assert np.array_equal(
        EmbeddingStore.write(tmp_path / "again", store.x, dtype="float64").x, x * np.float32(1e6)
    )


def test_the_content_hash_follows_content_alone(tmp_path):
    first = EmbeddingStore.write(tmp_path / "a", rows_of(3), [0, 1, 1])
    same = EmbeddingStore.write(tmp_path / "b", rows_of(3), [0, 1, 1], card={"note": "x"})
    other = EmbeddingStore.write(tmp_path / "c", rows_of(3), [0, 1, 0])
    assert first.content_hash == same.content_hash != other.content_hash
    before = first.content_hash
    assert first.append(rows_of(1), [1]).content_hash != before


def test_progress_reaches_its_total(tmp_path):
    seen = []
    with reporting(lambda label, done, total: seen.append((label, done, total))):
        store = EmbeddingStore.write(tmp_path / "s", rows_of(7), shard_rows=3)
        store.verify()
    assert ("writing shards", 3, 3) in seen
    label, done, total = seen[-1]
    assert label == "verifying"
    assert done == total


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.data(),
)
def test_write_and_appends_read_back_as_one(tmp_path_factory, sizes, dim, shard_rows, data):
    folder = tmp_path_factory.mktemp("round") / "s"
    total = sum(sizes)
    x = rows_of(total, dim, seed=total)
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=total, max_size=total)))
    cuts = np.cumsum(sizes)
    store = EmbeddingStore.write(
        folder, x[: sizes[0]], y[: sizes[0]], classes=4, shard_rows=shard_rows
    )
    for start, stop in pairwise(cuts):
        extended = store.append(x[start:stop], y[start:stop], shard_rows=shard_rows)
        assert extended is store
    for reader in (store, EmbeddingStore.open(folder)):
        assert np.array_equal(np.asarray(reader.x), x)
        assert np.array_equal(reader.y, y)
    store.verify()
    start, stop, step = (data.draw(st.integers(-total - 1, total + 1)) for _ in range(3))
    assert np.array_equal(store.x[start : stop : step or 1], x[start : stop : step or 1])
    picked = data.draw(st.lists(st.integers(-total, total - 1), max_size=6))
    assert np.array_equal(store.x[picked], x[np.array(picked, int)])
    assert np.array_equal(store.x[y == 1], x[y == 1])
    assert np.array_equal(store.x[-1], x[-1])


def test_sharded_rows_are_indexed_like_an_array():
    x = rows_of(7)
    sharded = ShardedArray([x[:3], x[3:]])
    assert (sharded.shape, sharded.ndim, len(sharded), sharded.dtype) == ((7, 3), 2, 7, np.float16)
    assert np.shares_memory(sharded[3:6], x)
    assert np.array_equal(np.stack(list(sharded)), x)
    assert np.asarray(sharded, np.float64).dtype == np.float64
    with pytest.raises(IndexError, match="columns afterwards"):
        sharded[0, 1]
    with pytest.raises(IndexError):
        sharded[7]
    with pytest.raises(IndexError):
        sharded[[7]]
    with pytest.raises(ValueError, match="without a copy"):
        np.array(sharded, copy=False)


# Refusals


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (with_row([1.0, np.nan]), stating("X", "row 3", "finite")),
        (with_row([-np.inf, 1.0]), "X row 3 is not finite"),
        (with_row([0.0, 0.0]), stating("X", "row 3", "zeros")),
        (with_row([1.0, 1e39]), stating("X", "row 3", "float32", 'dtype="float64"')),
        (with_row([1e-60, 0.0]), stating("X", "row 3", "zeros", "float32", 'dtype="float64"')),
        (np.ones(4), "X has 1 dimension.s., not two"),
        (np.ones((2, 2, 2)), "X has 3 dimension"),
        (np.ones((0, 2)), "at least one row"),
        (np.ones((2, 0)), stating("one row", "one column")),
        (np.array([["a"], ["b"]]), stating("X", "texts", "numbers", "encode")),
        (np.array([[None], [1]]), "X has dtype object"),
        (np.ones((2, 2)) + 1j, "X has dtype complex128"),
        ([[1, 2], [3]], stating("X", "numeric")),
    ],
)
def test_bad_rows_are_refused_by_number(tmp_path, x, message):
    with pytest.raises(InputError, match=message) as error:
        EmbeddingStore.write(tmp_path / "s", x)
    one_line(error)
    assert list(tmp_path.iterdir()) == []


def test_values_too_large_for_float32_name_float64(tmp_path):
    with pytest.raises(InputError, match=stating("float32", 'dtype="float64"')):
        EmbeddingStore.write(tmp_path / "s", np.full((2, 2), 1e60), dtype="float32")


def test_the_offending_row_is_found_in_a_later_block(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.rows.BLOCK_VALUES", 4)
    with pytest.raises(InputError, match="row 3 is all zeros"):
        EmbeddingStore.write(tmp_path / "s", with_row([0.0, 0.0]), shard_rows=3)
    with pytest.raises(InputError, match=stating("rows of mine", "row 3", "zeros")):
        check_rows(with_row([0.0, 0.0]), name="rows of mine")
    check_rows(with_row([0.0, 1.0]))
    monkeypatch.undo()
    monkeypatch.setattr("tacit.data.rows.CACHED", 1)
    with pytest.raises(InputError, match="row 3 is all zeros"):
        check_rows(with_row([0.0, 0.0]))


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([0, 1], None, r"labels have shape \(2,\) beside 5 rows"),
        (np.zeros((5, 1), int), None, r"labels have shape \(5, 1\) beside 5 rows"),
        ([0, 1, None, 1, 0], None, "row 2 has no label"),
        (["a", "b", float("nan"), "a", "b"], None, "row 2 has no label"),
        (np.array([0, 1, np.nan, 1, 0]), None, "row 2 has no finite label"),
        ([0, 1, 0.5, 1, 0], None, "row 2 has a fractional label"),
        ([0, 1, "a", 1, 0], None, stating("row 2", "another type")),
        (["a", "b", 1, "a", "b"], None, stating("row 2", "another type")),
        (np.ones(5, complex), None, "labels have dtype complex128"),
        (np.full(5, 2**64 - 1, np.uint64), None, "row 0 has a label beyond 64 bits"),
        ([0, 1, 2**40, 1, 0], None, stating("row 2", "1099511627776", "32 bits")),
        ([0, 1, 3, 1, 0], 3, stating("row 2", "label 3", "3 classes", "(0, 1, 2)")),
        ([0, 1, -1, 1, 0], ["a", "b"], stating("row 0", "whole number 0", "(a, b)", "index")),
        ([0, 1, -1, 1, 0], ["0", "1"], stating("row 2", "label -1", "2 classes", "(0, 1)")),
        (list("abzab"), ["a", "b"], stating("row 2", "'z'", "2 classes")),
        (list("abzab"), 10, stating("row 0", "'a'", "10 classes", "(0, 1, 2, 3, 4, ...)")),
        ([0] * 5, [], "classes is empty"),
        ([0] * 5, 0, "classes is empty"),
        ([0] * 5, ["a", "a"], "class 'a' is listed twice"),
        ([0] * 5, ["a", 1], "mixes types"),
        ([0] * 5, "ab", stating("classes='ab'", "class list")),
        ([0] * 5, 1.5, "classes=1.5 is not a class list"),
        (5, None, "labels cannot be read"),
    ],
)
def test_bad_labels_are_refused(tmp_path, y, classes, message):
    with pytest.raises(InputError, match=message) as error:
        EmbeddingStore.write(tmp_path / "s", rows_of(5), y, classes=classes)
    one_line(error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, stating("dtype='int8'", "float16", "float32", "float64")),
        ({"shard_rows": 0}, "shard_rows=0 must be positive"),
        ({"card": {"x": object()}}, "card is not plain JSON"),
        ({"card": {"x": float("nan")}}, "card is not plain JSON"),
        ({"metadata": {"label": [1, 2]}}, "metadata column 'label' is taken"),
        ({"metadata": {"site": [1]}}, stating("'site'", "1 values", "2 rows")),
        ({"metadata": {"site": [1, "a"]}}, "metadata column 'site' mixes types"),
    ],
)
def test_bad_options_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        EmbeddingStore.write(tmp_path / "s", rows_of(2), **options)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused_without_force(store):
    with pytest.raises(InputError, match="exists; choose another name"):
        EmbeddingStore.write(store.folder, rows_of(2))
    assert EmbeddingStore.open(store.folder).rows == 7
    assert EmbeddingStore.write(store.folder, rows_of(2), force=True).rows == 2


def test_a_parent_that_cannot_be_written_is_refused():
    if not Path("/proc/self").exists():
        pytest.skip("no /proc, the folder that not even root can write to")
    with pytest.raises(InputError, match="cannot be written"):
        EmbeddingStore.write("/proc/store", rows_of(2))


# Opening a store that is not whole


@pytest.mark.parametrize("name", ["shards/00001.npy", "metadata.parquet"])
def test_a_short_or_missing_file_is_refused_at_open(store, name):
    path = store.folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match=stating(name, "bytes", "manifest")) as error:
        EmbeddingStore.open(store.folder)
    one_line(error)
    path.unlink()
    with pytest.raises(StoreError, match=stating(name, "missing")):
        EmbeddingStore.open(store.folder)


def test_what_is_not_a_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match=stating("nowhere", "folder", "tacit import")):
        EmbeddingStore.open(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=stating("manifest.json", "store")):
        EmbeddingStore.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(StoreError, match=stating("manifest", "store")):
        EmbeddingStore.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, stating("version 3", "1")),
        ({"version": 2}, stating("version 2", "several_labels")),
        ({"rows": 8}, stating("8 rows")),
        ({"rows": "7"}, "'7' is not a positive whole number"),
        ({"dim": 0}, "0 is not a positive whole number"),
        ({"dim": 300}, "cannot hold 3 rows"),
        ({"dtype": "object"}, stating("'object'", "dtype")),
        ({"shards": 3}, "is damaged"),
        ({"shards": []}, "do not add up"),
        ({"classes": ["a", 1]}, "mixes types"),
        ({"card": "text"}, stating("'text'", "dict")),
        ({"has_labels": 1}, "1 is not of type bool"),
    ],
)
def test_an_altered_manifest_is_refused(store, change, message):
    path = store.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StoreError, match=message) as error:
        EmbeddingStore.open(store.folder)
    one_line(error)


def test_a_truncated_manifest_is_refused(store):
    path = store.folder / "manifest.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(StoreError, match=stating("JSON", "restore")):
        EmbeddingStore.open(store.folder)
    path.write_text('{"format": "tacit-embeddings", "version": 1}')
    with pytest.raises(StoreError, match="lacks 'shards'"):
        EmbeddingStore.open(store.folder)


@pytest.mark.parametrize("name", ["../x.npy", "/etc/passwd", "shards/../../x", "", "c:\\x", ".", 3])
def test_names_outside_the_folder_are_refused(store, name):
    path = store.folder / "manifest.json"
    stated = json.loads(path.read_text())
    stated["shards"][0]["file"] = name
    path.write_text(json.dumps(stated))
    with pytest.raises(StoreError, match=r"outside the folder|not a plain file name"):
        EmbeddingStore.open(store.folder)


def test_opening_reads_no_rows(store, monkeypatch):
    monkeypatch.setattr(embeddings, "map_npy", None)
    monkeypatch.setattr(embeddings, "file_hash", None)
    assert EmbeddingStore.open(store.folder).content_hash == store.content_hash


def test_verify_names_the_file_that_changed(store):
    path = store.folder / "shards" / "00001.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    reader = EmbeddingStore.open(store.folder)
    with pytest.raises(StoreError, match=stating("00001.npy", "manifest")):
        reader.verify()


@pytest.mark.parametrize("start", [0, 20])
def test_content_that_does_not_match_the_manifest_is_refused_on_reading(store, start):
    for name in ("shards/00000.npy", "metadata.parquet"):
        path = store.folder / name
        content = path.read_bytes()
        path.write_bytes(content[:start] + b"?" * (len(content) - start))
    reader = EmbeddingStore.open(store.folder)
    with pytest.raises(StoreError, match=r"00000.npy is not what"):
        _ = reader.x
    with pytest.raises(StoreError, match=r"metadata.parquet is not what"):
        _ = reader.y


# Crashes and appends


def test_a_write_that_breaks_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.rows.BLOCK_VALUES", 12)
    with pytest.raises(OSError, match="the disk went away"):
        EmbeddingStore.write(tmp_path / "s", FailingRows())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_an_append_that_breaks_leaves_the_store_as_it_was(store, monkeypatch, step):
    before, x, steps = files_of(store.folder), np.asarray(store.x), iter(range(1, 9))
    sync = os.fsync

    def breaking_sync(descriptor):
        if next(steps) == step:
            raise KeyboardInterrupt
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", breaking_sync)
    with pytest.raises(KeyboardInterrupt):
        store.append(rows_of(2), ["a", "b"], shard_rows=1)
    assert files_of(store.folder) == before
    assert np.array_equal(np.asarray(EmbeddingStore.open(store.folder).x), x)
    assert store.y.tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_what_a_killed_append_left_is_ignored_and_then_removed(store):
    (store.folder / "shards" / "00003.npy").write_bytes(b"half a sha")
    (store.folder / "shards" / "00009.npy").write_bytes(b"half a sha")
    (store.folder / "metadata-00003.parquet").write_bytes(b"half")
    (store.folder / "metadata-notes.txt").write_text("the owner's own file")
    reader = EmbeddingStore.open(store.folder)
    assert np.array_equal(reader.append(rows_of(1), ["d"]).x[-1], rows_of(1)[0])
    assert files_of(store.folder) == [
        "manifest.json",
        "metadata-00003.parquet",
        "metadata-notes.txt",
        *(f"shards/0000{number}.npy" for number in range(4)),
    ]
    reader.verify()


def test_a_reader_from_before_an_append_keeps_its_rows(store):
    early, late = EmbeddingStore.open(store.folder), EmbeddingStore.open(store.folder)
    store.append(rows_of(1), ["a"])
    assert early.x.shape == (7, 3)
    with pytest.raises(StoreError, match="open the store again"):
        _ = early.y
    assert late.append(rows_of(1), ["b"]).labels.tolist() == list("abcabcaab")


def test_a_store_that_is_appended_to_while_it_is_opened(store, monkeypatch):
    read, calls = manifest.stated_values, []

    def read_then_append(folder):
        stated = read(folder)
        if not calls:
            calls.append(folder)
            EmbeddingStore.open(store.folder).append(rows_of(2, seed=1), ["a", "b"])
        return stated

    monkeypatch.setattr(manifest, "stated_values", read_then_append)
    assert EmbeddingStore.open(store.folder).rows == 9


def test_concurrent_appends_wait_for_each_other(store):
    def add(seed):
        return EmbeddingStore.open(store.folder).append(rows_of(2, seed=seed), ["a", "b"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(8)))
    grown = EmbeddingStore.open(store.folder)
    assert grown.rows == 7 + 16
    grown.verify()


@pytest.mark.parametrize(
    ("x", "y", "metadata", "message"),
    [
        (rows_of(2, 4), ["a", "b"], None, stating("4 columns", "store", "3")),
        (rows_of(2), None, None, stating("labels", "append")),
        (rows_of(2), ["a", "z"], None, stating("row 1", "'z'", "4 classes")),
        (rows_of(2), ["a"], None, "labels have shape"),
        (rows_of(2), ["a", "b"], {"site": [1, 2]}, stating("metadata columns", "same")),
        (np.zeros((2, 3)), ["a", "b"], None, "row 0 is all zeros"),
    ],
)
def test_rows_that_do_not_fit_are_not_appended(store, x, y, metadata, message):
    before = files_of(store.folder)
    with pytest.raises(InputError, match=message):
        store.append(x, y, metadata)
    assert files_of(store.folder) == before
    assert EmbeddingStore.open(store.folder).rows == 7


def test_appended_columns_keep_their_type(tmp_path):
    store = EmbeddingStore.write(
        tmp_path / "s", rows_of(2), metadata={"site": ["a", "b"], "age": [3, 4]}
    )
    store.append(rows_of(1), metadata={"age": [5], "site": ["c"]})
    assert store.metadata().to_pydict() == {"site": ["a", "b", "c"], "age": [3, 4, 5]}
    with pytest.raises(InputError, match="metadata is of another type"):
        store.append(rows_of(1), metadata={"age": ["old"], "site": ["c"]})


def test_labels_of_another_kind_are_not_appended(tmp_path):
    numbers = EmbeddingStore.write(tmp_path / "n", rows_of(2), [4, 5])
    with pytest.raises(InputError, match=stating("row 0", "'a'", "whole numbers")):
        numbers.append(rows_of(1), ["a"])
    with pytest.raises(InputError, match="has no labels"):
        EmbeddingStore.write(tmp_path / "u", rows_of(2)).append(rows_of(1), [1])
    names = EmbeddingStore.write(tmp_path / "d", rows_of(2), ["a", "b"])
    with pytest.raises(InputError, match=stating("'c'", "2 classes", "complete")):
        names.append(rows_of(1), ["c"])


def test_a_store_that_cannot_be_locked_is_not_appended_to(store):
    (store.folder / ".lock").mkdir()
    with pytest.raises(StoreError, match="cannot be appended to"):
        store.append(rows_of(1), ["a"])
