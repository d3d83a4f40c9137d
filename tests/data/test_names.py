"""Rows of class names: carried by a store, read from another, and matched to the class list."""

import json

import numpy as np
import pytest

from messages import lacking, stating
from tacit.cli.main import main
from tacit.data.arrays import make_arrays
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data
from tacit.data.names import carried_names, names_of
from tacit.errors import InputError, StoreError

CLASSES = ["ant", "bee", "cow"]
NAMES = [
    np.array([[1.0, 0, 0, 0], [2, 0, 0, 0]]),
    np.array([[0, 1.0, 0, 0]]),
    np.array([[0, 0, 1.0, 0]]),
]


def rows_of(n):
    return np.random.default_rng(0).normal(size=(n, 4))


@pytest.fixture
def store(tmp_path):
    card = {"name": "words", "encoder": {"name": "e"}, "templates": ["{}", "a {}"]}
    labels = CLASSES * 4
    return EmbeddingStore.write(
        tmp_path / "s", rows_of(12), labels, classes=CLASSES, names=NAMES, names_card=card
    )


def test_carried_names_follow_another_class_list_by_label(store):
    found = carried_names(store, CLASSES[::-1], "s")
    assert same(found.rows, NAMES[::-1])
    assert found.facts["name"] == "words"
    with pytest.raises(InputError, match=stating("s", "'dog'")):
        carried_names(store, [*CLASSES, "dog"], "s")


def same(found, wanted):
    return len(found) == len(wanted) and all(
        np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)
    )


def test_a_store_carries_names(store, tmp_path):
    opened = EmbeddingStore.open(store.folder).verify()
    assert same(opened.names, NAMES)
    assert {name: opened.names_card[name] for name in ("name", "templates")} == {
        "name": "words",
        "templates": ["{}", "a {}"],
    }
    assert not lacking(repr(opened), "12 x 4", "float32", "3 declared", "4 rows")
    one_each = EmbeddingStore.write(tmp_path / "t", rows_of(6), classes=CLASSES, names=np.eye(3, 4))
    assert same(one_each.names, [row[None] for row in np.eye(3, 4)])


def test_a_store_without_names_is_as_before(tmp_path, store):
    plain = EmbeddingStore.write(tmp_path / "p", rows_of(12), CLASSES * 4, classes=CLASSES)
    assert (plain.names, plain.names_card) == (None, {})
    assert "names" not in json.loads((plain.folder / "manifest.json").read_text())
    assert plain.content_hash == store.content_hash  # names are no records


def test_appended_rows_split_and_subset_keep_names(store, tmp_path, capsys):
    store.append(rows_of(3), CLASSES)
    assert same(EmbeddingStore.open(store.folder).verify().names, NAMES)
    assert (
        main(["split", str(store.folder), "--n-public", "2", "--out", str(tmp_path / "parts")]) == 0
    )
    assert (
        main(["subset", str(store.folder), "--imbalance", "2", "--out", str(tmp_path / "few")]) == 0
    )
    assert main(["import", str(store.folder), "--out", str(tmp_path / "again")]) == 0
    for name in ("parts/private", "parts/public", "few", "again"):
        part = EmbeddingStore.open(tmp_path / name)
        assert same(part.names, NAMES), name
        assert part.names_card["name"] == "words", name


@pytest.mark.parametrize(
    ("names", "classes", "said"),
    [
        (NAMES[:2], CLASSES, stating("names", "2 classes", "3")),
        ([*NAMES[:2], np.zeros((1, 4))], CLASSES, r"names\[2\] row 0 is all zeros"),
        ([*NAMES[:2], np.ones((1, 5))], CLASSES, stating("names[2]", "(1, 5)", "4 columns")),
        (NAMES, None, stating("names", "declared class list")),
        ([*NAMES[:2], np.full((1, 4), 1e40)], CLASSES, "names row 3"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_nothing_is_left(tmp_path, names, classes, said):
    with pytest.raises(InputError, match=said):
        EmbeddingStore.write(
            tmp_path / "s", rows_of(6), ["ant", "bee"] * 3, classes=classes, names=names
        )
    assert list(tmp_path.iterdir()) == []


def restated(store, change):
    path = store.folder / "manifest.json"
    stated = json.loads(path.read_text())
    change(stated["names"])
    path.write_text(json.dumps(stated))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda names: names.update(counts=[2, 1]), stating("4 rows", "3 declared classes")),
        (lambda names: names.update(counts=[3, 1, 1]), stating("4 rows", "fit")),
        (lambda names: names.update(counts=[4, 0, 0]), "0 is not a positive whole number"),
        (lambda names: names.update(counts=4), "4 is not of type list"),
        (lambda names: names.pop("card"), "lacks 'card'"),
        (lambda names: names["file"].update(file="../other.npy"), "points outside the folder"),
        (lambda names: names["file"].update(bytes=30), stating("names.npy", "4 rows", "30 bytes")),
        (lambda names: names["file"].update(bytes=161), stating("names.npy", "192 bytes", "161")),
        (
            lambda names: names["file"].update(file="gone.npy"),
            stating("gone.npy", "missing", "store"),
        ),
    ],
)
def test_a_manifest_that_states_other_names_is_refused(store, change, said):
    restated(store, change)
    with pytest.raises(StoreError, match=said):
        EmbeddingStore.open(store.folder)


def test_a_damaged_or_foreign_file_of_names_is_refused(store):
    path = store.folder / "names.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(StoreError, match=stating("names.npy", "191 bytes", "192")):
        EmbeddingStore.open(store.folder)
    path.write_bytes(bytes(192))
    with pytest.raises(StoreError, match=stating("names.npy", "manifest")):
        _ = EmbeddingStore.open(store.folder).names
    np.save(path, np.ones((2, 8), np.float32))
    with pytest.raises(StoreError, match=stating("names.npy", "manifest")):
        _ = EmbeddingStore.open(store.folder).names
    path.write_bytes(whole.replace(b"\x80?", b"\x80@"))
    with pytest.raises(StoreError, match=stating("names.npy", "manifest")):
        EmbeddingStore.open(store.folder).verify()


def test_names_follow_the_class_list_by_label(tmp_path):
    rows = rows_of(5)
    labels = ["cow", "ant", "bee", "cow", "ant"]
    card = {"encoder": {"name": "e"}, "names": {"templates": ["{}"]}}
    words = EmbeddingStore.write(
        tmp_path / "words", rows, labels, classes=CLASSES[::-1], dtype="float64", card=card
    )
    found = names_of(words, CLASSES, "words")
    assert same(found.rows, [rows[[1, 4]], rows[[2]], rows[[0, 3]]])
    assert found.count == 5
    assert found.facts == {
        "name": "words", "hash": words.content_hash, "encoder": {"name": "e"}, "templates": ["{}"]
    }  # fmt: skip


def test_names_without_labels_follow_their_order(tmp_path):
    np.save(tmp_path / "n.npy", np.eye(3))
    found = names_of(read_data(tmp_path / "n.npy"), CLASSES, "n.npy")
    assert same(found.rows, [row[None] for row in np.eye(3)])
    with pytest.raises(InputError, match=stating("n.npy", "labels", "declared")):
        names_of(read_data(tmp_path / "n.npy"), CLASSES, "n.npy", declared=False)
    with pytest.raises(InputError, match=stating("n.npy", "3 rows", "2 classes")):
        names_of(read_data(tmp_path / "n.npy"), CLASSES[:2], "n.npy")


def test_whole_numbers_are_positions_beside_names_and_else_values(tmp_path):
    arrays = make_arrays(np.eye(3), [2, 0, 1], (tmp_path / "n.npz",), "n")
    arrays.__dict__["content_hash"] = "0"
    assert same(
        names_of(arrays, CLASSES, "n").rows, [np.eye(3)[[1]], np.eye(3)[[2]], np.eye(3)[[0]]]
    )
    assert same(
        names_of(arrays, [1, 2, 0], "n").rows, [np.eye(3)[[2]], np.eye(3)[[0]], np.eye(3)[[1]]]
    )
    numbered = EmbeddingStore.write(tmp_path / "s", np.eye(3), [2, 0, 1], classes=3)
    with pytest.raises(InputError, match=stating("s", "class 0")):
        names_of(numbered, CLASSES, "s")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["ant", "bee", "bee"], stating("words", "'cow'")),
        (["ant", "fox", "cow"], stating("words", "'fox'")),
        (["ant", "bee", "cows"], stating("'cow'")),
    ],
)
def test_unknown_and_absent_classes_are_named(tmp_path, labels, said):
    words = EmbeddingStore.write(tmp_path / "words", np.eye(3), labels)
    with pytest.raises(InputError, match=said):
        names_of(words, CLASSES, "words")
