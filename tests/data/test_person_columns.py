"""Ids of persons in stores and files: kept exactly, carried, and shown in no error."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

import tacit
from messages import lacking, stating
from tacit.data.embeddings import EmbeddingStore
from tacit.data.ids import is_ids_file, read_ids
from tacit.data.imports import read_data
from tacit.data.overlap import overlap, shared_persons
from tacit.errors import InputError, StoreError

SECRET = "patient-7731"
TEXTS = [SECRET, "p 2", "007", SECRET, "7"]
ROWS = np.random.default_rng(0).uniform(0.5, 2, size=(5, 3)).astype(np.float16)


def write(folder, persons=TEXTS, rows=ROWS, **more):
    return EmbeddingStore.write(folder, rows, persons=persons, **more)


@pytest.mark.parametrize(
    "ids",
    [
        TEXTS,
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pa.chunked_array([TEXTS]),
        [2**62, 1, -5, 2**62, 2**62 + 1],
        np.array([3, 1, 2, 3, 3], dtype=np.uint8),
    ],
)
def test_a_store_gives_back_the_ids_as_they_were(tmp_path, ids):
    written = write(tmp_path / "s", ids, y=[0, 1, 0, 1, 0])
    for store in (written, EmbeddingStore.open(tmp_path / "s")):
        assert store.persons.tolist() == np.asarray(ids).tolist()
        assert not store.persons.flags.writeable
        assert store.y.tolist() == [0, 1, 0, 1, 0]
        assert "with ids of persons" in repr(store)
        store.verify()


def test_ids_are_in_the_metadata_alone(tmp_path):
    store = write(tmp_path / "s")
    holding = [
        path.name
        for path in store.folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert holding == ["metadata.parquet"]
    assert SECRET not in repr(store)


def test_a_store_without_ids_is_written_and_read_as_ever(tmp_path):
    store = EmbeddingStore.write(tmp_path / "s", ROWS, metadata={"person": TEXTS})
    assert store.persons is None
    assert "has_persons" not in json.loads((store.folder / "manifest.json").read_text())
    store.append(ROWS[:1], metadata={"person": ["x"]})
    assert store.metadata()["person"].to_pylist() == [*TEXTS, "x"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([SECRET, None, "a", "b", "c"], ("persons", "missing", "row 1")),
        ([SECRET, "a", float("nan"), "b", "c"], ("(first: row 2)",)),
        ([SECRET, "a", 3, "b", "c"], ("(first: row 2)",)),
        ([SECRET, "a", "b", "", "c"], ("persons", "empty id", "row 3")),
        ([1, 2, None, 4, 5], ("(first: row 2)",)),
        (np.array([1.0, 2.0, np.nan, 4.0, 5.0]), ("(first: row 2)",)),
        ([True, False, True, True, True], ("persons", "missing", "several types")),
        (TEXTS[:4], ("persons has 4 ids for 5 records",)),
        ([*TEXTS, SECRET], ("persons has 6 ids for 5 records",)),
        (np.array([TEXTS]), ("persons has 2 dimensions",)),
        ([[name] for name in TEXTS], ("persons has several dimensions",)),
        (SECRET, ("persons is a str",)),
        ([*TEXTS[:4], SECRET + "\ud800"], ("persons", "id", "row 4")),
        ([*TEXTS[:4], SECRET + "\0"], ("persons", "id", "row 4")),
        ([*TEXTS[:4], SECRET * 50], ("persons", "id", "row 4")),
        ([1, 2, 3, 4, 2**64], ("persons", "id", "row 4")),
    ],
)
def test_bad_ids_are_refused_without_showing_one(tmp_path, ids, message):
    with pytest.raises(InputError) as caught:
        write(tmp_path / "s", ids)
    assert not lacking(str(caught.value), *message)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_column_of_that_name_cannot_be_given_besides(tmp_path):
    with pytest.raises(InputError, match=stating("'person'", "persons")):
        write(tmp_path / "s", metadata={"person": TEXTS})


def test_rows_are_appended_with_ids_if_and_only_if_the_store_has_some(tmp_path):
    store = write(tmp_path / "s", y=[0, 1, 0, 1, 0])
    assert store.append(ROWS[:2], [1, 1], persons=["new", SECRET]).persons.tolist() == [
        *TEXTS,
        "new",
        SECRET,
    ]
    EmbeddingStore.open(store.folder).verify()
    with pytest.raises(InputError, match="s has person ids; pass persons="):
        store.append(ROWS[:2], [1, 1])
    with pytest.raises(InputError, match="persons has 1 ids for 2 records"):
        store.append(ROWS[:2], [1, 1], persons=[SECRET])
    with pytest.raises(InputError, match=stating("person ids", "persons=")):
        EmbeddingStore.write(tmp_path / "t", ROWS).append(ROWS[:2], persons=TEXTS[:2])
    assert EmbeddingStore.open(store.folder).rows == 7


def test_numbers_and_texts_of_two_sources_are_the_same_persons(tmp_path):
    texts, numbers = (
        write(tmp_path / name, ids) for name, ids in (("a", TEXTS), ("b", [7, 8, 9, 7, 7]))
    )
    assert shared_persons(texts, numbers) == shared_persons(numbers, texts) == 1
    assert texts.append(ROWS[:2], persons=[7.0, 8.0]).persons.tolist() == [*TEXTS, "7", "8"]
    assert numbers.append(ROWS[:2], persons=["007", "7.0"]).persons.tolist() == [
        "7",
        "8",
        "9",
        "7",
        "7",
        "007",
        "7",
    ]
    for store in (texts, numbers):
        assert EmbeddingStore.open(store.folder).verify().rows == 7


def rewritten(store, table):
    """The store with other metadata, as another version may have written them."""
    path = store.folder / "metadata.parquet"
    pq.write_table(pa.table(table), path)
    manifest = json.loads((store.folder / "manifest.json").read_text())
    manifest["metadata"]["bytes"] = path.stat().st_size
    (store.folder / "manifest.json").write_text(json.dumps(manifest))
    return EmbeddingStore.open(store.folder)


def test_an_older_store_is_read_by_the_rule(tmp_path):
    store = rewritten(write(tmp_path / "s"), {"person": ["P1", "P1 ", "17.0", "17", "Zoe\u0301"]})
    assert store.persons.tolist() == ["P1", "P1", "17", "17", "Zo\u00e9"]
    parts = tacit.split(5, n_public=2, persons=["P1", "P1 ", "17.0", "17", "x"])
    assert {0, 1} <= set(parts.public.tolist()) or not {0, 1} & set(parts.public.tolist())


@pytest.mark.parametrize(
    "given", ["ids.txt", "ids.npy", "t.csv", "t.jsonl", "t.parquet", "f.parquet"]
)
def test_every_source_of_ids_has_one_rule(here, given):
    ids = [" 17", "17.0", "17", "17 ", "017"]
    (here / "ids.txt").write_text("\n".join(ids))
    np.save("ids.npy", ids)
    (here / "t.csv").write_text("person\n" + "\n".join(ids) + "\n")
    (here / "t.jsonl").write_text("".join(json.dumps({"person": name}) + "\n" for name in ids))
    pq.write_table(pa.table({"person": ids}), "t.parquet")
    pq.write_table(pa.table({"person": [17.0, 17.0, 17.0, 17.0, 18.0]}), "f.parquet")
    np.save("x.npy", ROWS)
    expected = [17] * 4 + [18] if given == "f.parquet" else ["17"] * 4 + ["017"]
    assert read_data("x.npy", persons=given).persons.tolist() == expected


@pytest.mark.parametrize(
    "table",
    [
        {"other": [1, 2, 3, 4, 5]},
        {"person": ["a", None, "b", "c", "d"]},
        {"person": ["a", "", "b", "c", "d"]},
        {"person": [0.5, 1, 2, 3, 4]},
        {"person": ["a", "b"]},
    ],
)
def test_metadata_that_do_not_hold_the_ids_are_refused(tmp_path, table):
    store = write(tmp_path / "s")
    path = store.folder / "metadata.parquet"
    pq.write_table(pa.table(table), path)
    manifest = json.loads((store.folder / "manifest.json").read_text())
    manifest["metadata"]["bytes"] = path.stat().st_size
    (store.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match=r"metadata.parquet is not what"):
        _ = EmbeddingStore.open(store.folder).persons


def test_a_manifest_says_plainly_whether_there_are_ids(tmp_path):
    store = write(tmp_path / "s")
    path = store.folder / "manifest.json"
    path.write_text(path.read_text().replace('"has_persons": true', '"has_persons": "yes"'))
    with pytest.raises(StoreError, match=stating("'yes'", "bool")):
        EmbeddingStore.open(store.folder)


# Files


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ids_come_from_a_text_an_array_or_a_column(here):
    (here / "ids.txt").write_text("".join(f"{name}\r\n" for name in TEXTS))
    np.save("ids.npy", TEXTS)
    (here / "one.csv").write_text("who\n" + "".join(f"{name}\n" for name in TEXTS))
    (here / "table.csv").write_text("age,Patient\n" + "".join(f"4,{name}\n" for name in TEXTS))
    pq.write_table(pa.table({"a": TEXTS, "b": [1, 2, 3, 4, 5]}), "table.parquet")
    for given in ("ids.txt", "ids.npy", "one.csv", "table.csv", "table.parquet#a"):
        assert is_ids_file(given)
        assert np.asarray(read_ids(given)).tolist() == TEXTS, given
    assert read_ids("table.parquet#b") == [1, 2, 3, 4, 5]
    assert not is_ids_file("who")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("who", ("persons=who is not a file",)),
        ("table.csv", ("table.csv", "0 columns", "table.csv#COLUMN")),
        ("table.csv#who", ("table.csv", "0 columns", "'who'", "table.csv#COLUMN")),
        ("bare.csv", ("bare.csv", "0 columns")),
        ("bare.csv#who", ("bare.csv has 0 columns 'who'",)),
        ("ids.txt#who", ("persons=ids.txt#who", "table")),
        ("latin.txt", ("persons=latin.txt", "UTF-8")),
    ],
)
def test_files_that_name_no_ids(here, given, message):
    (here / "ids.txt").write_text(f"{SECRET}\n")
    (here / "latin.txt").write_bytes(SECRET.encode() + b"\xe9\n")
    (here / "table.csv").write_text(f"age,size\n{SECRET},1\n")
    (here / "bare.csv").write_text(f"1,{SECRET}\n2,{SECRET}\n")
    with pytest.raises(InputError) as caught:
        read_ids(given)
    assert not lacking(str(caught.value), *message)
    assert SECRET not in str(caught.value)


def test_a_column_or_array_of_the_data_holds_the_ids(here):
    y = np.arange(5) % 2
    np.savez("d.npz", x=ROWS, y=y, who=TEXTS)
    pq.write_table(
        pa.table({"embedding": ROWS.astype(float).tolist(), "label": y, "who": TEXTS}), "d.parquet"
    )
    save_file({"x": ROWS, "y": y, "who": np.arange(5)}, "d.safetensors")
    EmbeddingStore.write("old", ROWS, y, metadata={"who": TEXTS})
    (here / "ids.txt").write_text("\n".join(TEXTS))
    np.save("x.npy", ROWS)
    for path in ("d.npz", "d.parquet", "old"):
        data = read_data(path, persons="who")
        assert data.persons.tolist() == TEXTS
        assert data.labels.tolist() == y.tolist()
        assert read_data(path).persons is None
    assert read_data("d.safetensors", persons="who").persons.tolist() == list(range(5))
    for path in ("d.npz", "x.npy", "old"):
        assert read_data(path, persons="ids.txt").persons.tolist() == TEXTS
    with pytest.raises(InputError, match=stating("persons=who", "x.npy", "columns")):
        read_data("x.npy", persons="who")
    with pytest.raises(InputError, match=stating("d.npz", "'whom'", "who, x, y")):
        read_data("d.npz", persons="whom")
    write("new")
    with pytest.raises(InputError, match=stating("new", "person ids", "persons")):
        read_data("new", persons="ids.txt")


def test_a_column_of_ids_that_are_numbers_is_no_feature(here):
    pq.write_table(
        pa.table(
            {"a": ROWS[:, 0].astype(float), "b": ROWS[:, 1].astype(float), "who": np.arange(5.0)}
        ),
        "f.parquet",
    )
    assert read_data("f.parquet").x.shape == (5, 3)
    assert read_data("f.parquet", persons="who").persons.tolist() == [0, 1, 2, 3, 4]


# Splits and overlaps


def test_no_person_is_in_two_parts():
    ids = np.random.default_rng(1).integers(0, 90, 1000)
    parts = tacit.split(1000, n_public=200, n_test=300, seed=3, persons=ids)
    together = [parts.private, parts.public, parts.test]
    assert sorted(np.concatenate(together).tolist()) == list(range(1000))
    of = [set(ids[part].tolist()) for part in together]
    assert [len(persons) for persons in of] == [45, 18, 27]
    assert len(set.union(*of)) == sum(map(len, of)) == 90
    assert all(np.all(np.diff(part) > 0) for part in together)
    few = tacit.split(1000, n_public=200, n_private=100, persons=ids)
    assert [len(set(ids[part].tolist())) for part in (few.private, few.public, few.test)] == [
        9,
        18,
        0,
    ]


@pytest.mark.parametrize("of", [int, "p{:d}".format])
@pytest.mark.parametrize("other", [-1, 17, 99])
def test_a_person_who_is_replaced_moves_nobody(of, other):
    numbers = np.random.default_rng(1).integers(0, 30, 200) * 2
    ids, changed = (
        np.array([of(int(one)) for one in given])
        for given in (numbers, np.where(numbers == 30, other, numbers))
    )
    parts, others = (
        tacit.split(200, n_public=60, n_test=60, persons=given) for given in (ids, changed)
    )
    for name in ("private", "public", "test"):
        assert getattr(parts, name).tolist() == getattr(others, name).tolist()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 1, 2, 2, 2, 2], stating("2 persons", "[1, 2, 3]")),
        ([1, 2, 3], "persons has 3 ids for 6 records"),
        ([1, 2, None, 4, 5, 6], "missing or of several types"),
    ],
)
def test_persons_that_cannot_be_split(ids, message):
    with pytest.raises(InputError, match=message):
        tacit.split(6, n_public=2, n_test=3, persons=ids)


def test_persons_of_two_stores_are_counted(tmp_path):
    one, other = write(tmp_path / "a"), write(tmp_path / "b", ["7", "x", "7", "007", "y"])
    assert overlap(one, other).persons == 2
    assert overlap(one, EmbeddingStore.write(tmp_path / "c", ROWS)).persons is None
