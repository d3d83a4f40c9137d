import json
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from messages import stating
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import identity_of, read_data, split_within
from tacit.data.locations import located, splits
from tacit.data.streams import StreamedRows
from tacit.errors import InputError, StoreError

X = np.random.default_rng(0).uniform(0.5, 2.0, size=(6, 4)).astype(np.float32)
Y = np.array([0, 1, 2, 2, 0, 1])
LABELS = Y.tolist()
NAMES = ["ant", "bee", "cat"]


def shared(name):
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is not here: the shared real data lie beside the repository")
    return path


def saved(path, array):
    np.save(path, array)
    return path


def refused(message, *args, error=InputError, **options):
    with pytest.raises(error, match=message) as caught:
        read_data(*args, **options)
    assert "\n" not in str(caught.value)


def check(data, labels=LABELS, classes=None):
    assert np.array_equal(data.x, X)
    assert (data.labels is None) == (labels is None)
    assert labels is None or data.labels.tolist() == labels
    assert data.classes == classes
    assert data.classes_declared == (classes is not None)
    assert len(data.content_hash) == 64


# One format after another


def csv(path, heading, rows=X, end="\n"):
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    path.write_bytes(
        ("\n" + end.join([*([heading] if heading else []), *lines]) + end + "\n").encode()
    )
    return path


@pytest.mark.parametrize("heading", ["", "a,b,c,d", "0,1,2,3", '\ufeffa,"b, c",d,e'])
def test_csv_is_rows_of_numbers_with_or_without_a_heading(tmp_path, heading):
    data = read_data(csv(tmp_path / "rows.csv", heading))
    check(data, labels=None)
    assert (data.x.dtype, data.identity) == (np.float64, "rows")
    check(read_data(csv(tmp_path / "rows.csv", heading, end="\r\n")), labels=None)


@pytest.mark.parametrize("label", ["label", "labels", "y", "target", "class"])
def test_csv_may_have_labels_and_ids(tmp_path, label):
    path = csv(tmp_path / "rows.csv", f"{label},a,b,c,d,who", np.column_stack([Y, X, Y]))
    named = read_data(path, persons="who")
    assert np.array_equal(named.x, X)
    assert named.labels.tolist() == LABELS
    # ids are texts; an integral number loses ".0"
    assert named.persons.tolist() == [f"{one}" for one in LABELS]
    path.write_text(
        "a,species\n" + "".join(f'{i}.5,"{NAMES[one]}, x"\n' for i, one in enumerate(Y))
    )
    texts = read_data(path, y="species", width=1)
    assert texts.labels.tolist() == [f"{NAMES[one]}, x" for one in Y]
    path = csv(tmp_path / "bare.csv", "", np.column_stack([X, Y]))
    check(read_data(path, y="4"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3\n", stating("t.csv", "line 2", "1 cells", "2")),
        ("a,b\n\n1,2\n3,secret\n", stating("t.csv", "line 4", "column 2", "number")),
        ("0,1\n1,2\n", stating("t.csv", "0,1", "header")),
        ("1,2\n3,\n", stating("t.csv", "line 2", "column 2", "number")),
        ("1,secret\n", stating("t.csv", "line 1", "column 2", "number")),
        ("1;2\n3;4\n", stating("t.csv", "line 2", "column 1", "number")),
        ("1,2\n0x10,4\n", stating("t.csv", "line 2", "column 1", "number")),
        ("a,b\n1,nan\n", "t.csv line 2 is not finite"),
        ("a,a\n1,2\n", stating("t.csv", "'a'", "several")),
        (",a\n0,2\n", stating("t.csv", "without a name")),
        ("label\n0\n", stating("t.csv", "features")),
        ("label,a\n0,2\n,3\n", "line 3 has no finite label"),
        ("a,b\n", stating("t.csv", "(0, 2)", "row")),
        ("\n\n", "t.csv is empty"),
        ("", "t.csv is empty"),
        ("\x001,2\n", stating("t.csv", "line 1", "column 1", "number")),
        (
            'a,label\n1,cat\n2,"secret\n3,cat\n',
            stating("t.csv", "line 3", "quotes"),
        ),
        ('a,label\n1,cat\n2,"secret\n3,cat"\n4,cat\n', stating("t.csv", "line 3", "quotes")),
        ('a,label\n"1\n",secret\n', stating("t.csv", "line 2", "quotes")),
        ('a,"la\nbel"\n1,secret\n', stating("t.csv", "line 1", "quotes")),
    ],
)
def test_csv_that_does_not_fit_is_refused_without_its_cells(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_data(path)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_csv_may_quote_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a","label"\n"1","cat"\n\n2,"the ""big"", dog"\n3,5" pipe\n')
    data = read_data(path)
    assert data.x.tolist() == [[1], [2], [3]]
    assert data.labels.tolist() == ["cat", 'the "big", dog', '5" pipe']


def test_csv_of_many_columns_is_read_in_seconds(tmp_path):
    path, names = tmp_path / "t.csv", [f"column{place}" for place in range(20_000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    start = process_time()
    assert read_data(path).x.shape == (1, len(names))
    path.write_text(",".join([*names, names[-1]]) + "\n")
    refused("has several columns 'column19999'; rename all but one", path)
    assert process_time() - start < 5


def test_csv_of_other_bytes_names_or_widths_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\xff\n")
    refused("t.csv is not a CSV file of numbers in UTF-8|t.csv line 2", path)
    path.write_text("a,b\n1,2\n")
    refused(
        "x=a does not apply to .*t.csv, whose columns are the features; leave it out", path, x="a"
    )
    refused("has nothing named 'z'; choose y from: a, b", path, y="z")
    refused("has 2 columns, shape .1, 2., and must have 3 columns", path, width=3)


def test_npy_files_are_features_then_labels(tmp_path):
    x, y = saved(tmp_path / "rows.npy", X), saved(tmp_path / "labels.npy", Y)
    check(read_data(str(x)), labels=None)
    pair = read_data([x, y])
    check(pair)
    assert isinstance(pair.x, np.memmap)
    assert pair.identity == "rows"
    before = pair.content_hash
    saved(y, Y[::-1])
    assert read_data([x, y]).content_hash != before


def test_npz_arrays_are_found_by_their_usual_names_or_by_the_names_given(tmp_path):
    path = tmp_path / "pets.npz"
    for x, y in [("x", "y"), ("X", "labels"), ("features", "targets"), ("embeddings", "y")]:
        np.savez(path, **{x: X, y: Y})
        check(read_data(path))
    np.savez_compressed(path, train_x=X, train_y=Y, classes=NAMES)
    data = read_data(path, x="train_x", y="train_y")
    check(data, [NAMES[i] for i in Y], NAMES)
    assert data.identity == "pets"
    refused(
        "no array with a usual name for features; choose x from: classes, train_x, train_y", path
    )
    refused("has nothing named 'z'; choose y from", path, x="train_x", y="z")
    np.savez(path, x=X, y=Y, classes=["ant"])
    refused("row 1 has label 1, not one of the 1 classes", path)


def test_npz_files_of_several_splits_are_read_by_role_or_by_name(tmp_path):
    path = tmp_path / "pets.npz"
    np.savez(path, train_x=X, train_y=Y, test_x=X[::-1], test_y=Y[::-1])
    check(read_data(path, role="train"))
    check(read_data(path, split="train"))
    test = read_data(path, role="test")
    assert np.array_equal(test.x, X[::-1])
    assert np.array_equal(test.labels, Y[::-1])
    assert (read_data(path, role="train").identity, test.identity) == ("pets", "pets-test")
    assert np.array_equal(read_data(path, split="test", role="train").x, X[::-1])
    assert split_within(path, "test", "train") == split_within(path, None, "test") == "test"
    # nothing is chosen for a caller that names neither
    refused("no array with a usual name for features; choose x from:", path)
    refused("no split 'dev'; choose split from: test, train", path, split="dev")
    np.savez(path, test_x=X, test_y=Y)
    refused("no array with a usual name for features", path, role="train")
    np.savez(path, x=X, y=Y, test_x=X[::-1])
    check(read_data(path, role="test"))


def test_safetensors_are_read_like_npz(tmp_path):
    path = tmp_path / "pets.safetensors"
    save_file({"embeddings": X, "labels": Y}, path)
    check(read_data(path))
    refused("has nothing named 'q'; choose x from: embeddings, labels", path, x="q")
    path.write_bytes(path.read_bytes()[:-4])
    refused("pets.safetensors is truncated or not a safetensors file", path)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 4), pa.large_list(pa.float32())]
)
@pytest.mark.parametrize("label", ["label", "labels", "y", "target", "class"])
def test_parquet_with_a_column_of_lists(tmp_path, kind, label):
    path = tmp_path / "t.parquet"
    table = pa.table({"id": np.arange(6.0), "vectors": pa.array(X.tolist(), kind), label: Y})
    pq.write_table(table, path, row_group_size=4)
    check(read_data(path))
    check(read_data(path, x="vectors", y=label))


def test_parquet_with_a_column_for_each_feature(tmp_path):
    path = tmp_path / "t.parquet"
    names = pa.array([NAMES[i] for i in Y]).dictionary_encode()
    columns = {f"f{i}": X[:, i] for i in range(4)}
    pq.write_table(pa.table({"count": np.arange(6), **columns, "species": names}), path)
    check(read_data(path), labels=None)
    check(read_data(path, y="species"), [NAMES[i] for i in Y])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": [[1.0], [2.0]], "b": [[1.0], [2.0]]},
            stating("several columns of lists", "a, b"),
        ),
        ({"a": [[1.0], [1.0, 2.0]]}, stating("row 1", "2 values", "'a'", "first row")),
        ({"a": [[1.0], None]}, stating("row 1", "no value", "column 'a'")),
        ({"a": [[1.0], [None]]}, "row 1 is not finite"),
        ({"a": [["p"], ["q"]]}, "encode texts first"),
        ({"a": ["p", "q"]}, stating("texts (a)", "tacit encode")),
        ({"a": [[1.0], [1.0]], "label": [1, None]}, "row 1 has no finite label"),
        ({"a": [[1.0], [1.0]], "label": ["p", None]}, "row 1 has no label"),
        ({"a": pa.array([], pa.list_(pa.float32()))}, "has no rows"),
    ],
)
def test_parquet_that_does_not_fit_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    refused(message, tmp_path / "t.parquet")


def test_a_saved_hugging_face_dataset(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is a development dependency")
    datasets.disable_progress_bars()
    features = datasets.Features(
        {
            "embedding": datasets.Sequence(datasets.Value("float32")),
            "label": datasets.ClassLabel(names=NAMES),
        }
    )
    data = datasets.Dataset.from_dict(
        {"embedding": X.tolist(), "label": Y.tolist()}, features=features
    )
    data.save_to_disk(tmp_path / "pets", num_shards=2)
    declared = [NAMES[i] for i in Y], NAMES
    check(read_data(tmp_path / "pets"), *declared)
    check(read_data(tmp_path / "pets", x="embedding", y="label"), *declared)

    assert isinstance(read_data(tmp_path / "pets", stream=True).x, StreamedRows)
    columns = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist(), "label": Y.tolist()}
    datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "columns")
    assert read_data(tmp_path / "columns").card["columns"] == ["a", "b"]

    both = tmp_path / "both"
    datasets.DatasetDict({"train": data, "test": data.select([2, 1])}).save_to_disk(both)
    assert splits(both) == ["train", "test"]
    train = read_data(both, split="train")
    check(train, *declared)
    assert train.identity == "both-train"
    assert read_data(both, split="test").labels.tolist() == ["cat", "bee"]
    refused("both has several splits; choose split from: train, test", both)
    refused("both has no split 'dev'; choose split from", both, split="dev")
    refused("split=train does not apply to .*pets", tmp_path / "pets", split="train")

    arrow = next((tmp_path / "pets").glob("*.arrow"))
    arrow.write_bytes(arrow.read_bytes()[:300])
    refused("pets is not a complete saved data set", tmp_path / "pets")
    arrow.unlink()
    refused("pets is not a complete saved data set", tmp_path / "pets")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"_data_files": [{"filename": "../x.arrow"}]}, "points outside the folder"),
        ({"_data_files": []}, "lists no data files"),
        ({}, "not a complete saved data set"),
        ({"_indices_data_files": [1]}, "flatten_indices"),
    ],
)
def test_a_damaged_hugging_face_dataset_is_refused(tmp_path, state, message):
    (tmp_path / "state.json").write_text(json.dumps(state))
    refused(message, tmp_path)


def test_a_folder_of_splits_with_its_card(tmp_path):
    folder = tmp_path / "pets"
    folder.mkdir()
    for split in ("train", "test"):
        saved(folder / f"{split}_x.npy", X)
        saved(folder / f"{split}_y.npy", Y.astype(np.int16))
    card = {
        "dataset": "pets",
        "classes": NAMES,
        "files": {"train_x.npy": {}},
        "label_counts": [2, 2, 2],
    }
    (folder / "card.json").write_text(json.dumps(card))
    assert splits(folder) == ["test", "train"]
    train = read_data(folder, split="train")
    check(train, [NAMES[i] for i in Y], NAMES)
    assert (train.identity, train.card) == ("pets-train", {"dataset": "pets"})
    check(read_data([folder / "train_x.npy", folder / "train_y.npy"]), [NAMES[i] for i in Y], NAMES)
    check(read_data(folder, split="test"))  # the card does not list its files
    refused("has several splits; choose split from: test, train", folder)
    (folder / "test_x.npy").unlink()
    check(read_data(folder), [NAMES[i] for i in Y], NAMES)


def published(folder, name="cifar10", parts=("train", "test")):
    folder.mkdir(exist_ok=True)
    for part in parts:
        saved(folder / f"{name}_{part}.npy", X)
        saved(folder / f"{name}_{part}_targets.npy", Y)
    return folder


def test_published_pairs_are_read_by_every_name_alike(tmp_path):
    folder = published(tmp_path / "vit")
    assert splits(folder) == ["cifar10_test", "cifar10_train"]
    asked = [
        (folder / "cifar10_train.npy", None),
        (f"{folder}#cifar10_train", None),
        (f"{folder}#train", None),
        (folder, "cifar10_train"),
        (folder, "train"),
    ]
    for path, split in asked:
        data = read_data(path, split=split)
        check(data)
        assert isinstance(data.x, np.memmap)
        assert data.identity == identity_of(path, split) == "cifar10_train"
        assert located(path, split) == folder / "cifar10_train.npy"
    before = data.content_hash
    saved(folder / "cifar10_train_targets.npy", Y[::-1])
    assert read_data(folder, split="train").content_hash != before
    refused("several splits; choose split from: cifar10_test, cifar10_train", folder)


def test_published_pairs_without_a_name(tmp_path):
    for part in ("train", "test"):
        saved(tmp_path / f"{part}.npy", X)
    saved(tmp_path / "train_targets.npy", Y)
    assert splits(tmp_path) == ["test", "train"]
    check(read_data(tmp_path, split="train"))
    check(read_data(f"{tmp_path}#test"), labels=None)


def test_a_folder_of_several_published_names_asks_which(tmp_path):
    folder = published(tmp_path / "vit")
    published(folder, "stl10")
    saved(folder / "imagenet_train.npy", X)
    saved(folder / "basis.npy", X)
    saved(folder / "extra.npy", X)
    saved(folder / "extra_targets.npy", Y)
    names = "cifar10_test, cifar10_train, extra, imagenet_train, stl10_test, stl10_train"
    assert ", ".join(splits(folder)) == names
    check(read_data(f"{folder}#imagenet_train"), labels=None)
    check(read_data(f"{folder}#extra"))
    training = "cifar10_train, imagenet_train, stl10_train"
    refused(
        f"vit has several splits for 'train'; choose split from: {training}$", f"{folder}#train"
    )
    refused(
        f"vit has no split 'cifar10'; choose split from: {names} .never learn from .*_test.$",
        f"{folder}#cifar10",
    )


def test_published_pairs_that_do_not_fit_are_refused(tmp_path):
    folder = published(tmp_path / "vit")
    path = folder / "cifar10_train.npy"
    for targets in (Y[:5], np.eye(3)[Y[:5]], Y[:, None]):
        saved(folder / "cifar10_train_targets.npy", targets)
        refused(
            r"cifar10_train_targets.npy: labels have shape \(.*\) beside 6 rows of .*; give"
            r" exactly one",
            path,
        )
    saved(folder / "cifar10_train_targets.npy", Y)
    saved(path, X[None])
    refused("cifar10_train.npy has 3 dimension", path)
    saved(path, X)
    refused("has 4 columns, .* must have 7 columns", path, width=7)
    path.unlink()
    refused("vit has no split 'train'; choose split from: cifar10_test", f"{folder}#train")
    refused("cifar10_train.npy does not exist", path)


def test_a_split_is_named_once_and_only_of_a_folder(tmp_path):
    folder = published(tmp_path / "vit")
    refused(
        "split=test does not apply to .*vit#cifar10_train, which names one",
        f"{folder}#cifar10_train",
        split="test",
    )
    refused(
        "cifar10_test.npy is not a folder with splits.*leave #train out",
        f"{folder / 'cifar10_test.npy'}#train",
    )
    (tmp_path / "stores").mkdir()
    EmbeddingStore.write(
        tmp_path / "stores" / "train", X, Y, classes=NAMES, labels="index", dtype="float32"
    )
    check(read_data(f"{tmp_path / 'stores'}#train"), [NAMES[i] for i in Y], NAMES)
    odd = saved(tmp_path / "a#b.npy", X)
    check(read_data(odd), labels=None)


def test_a_card_can_be_given(tmp_path):
    path, card = tmp_path / "pets.npz", tmp_path / "about.json"
    np.savez(path, x=X, y=Y)
    public = {"licence": "CC0", "class_words": ["a cat"]}
    card.write_text(json.dumps({"classes": NAMES, **public, "quality_nonprivate": {}}))
    data = read_data(path, card=card)
    check(data, [NAMES[i] for i in Y], NAMES)
    assert data.card == public
    card.write_text(json.dumps({"licence": "CC0"}))
    check(read_data(path, card=card))
    for text, message in [
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ('{"classes": 3}', "classes must"),
    ]:
        card.write_text(text)
        refused(message, path, card=card)
    refused("nowhere.json cannot be read", path, card=tmp_path / "nowhere.json")


def test_a_store_is_opened_in_place(tmp_path):
    store = EmbeddingStore.write(
        tmp_path / "s",
        X,
        Y,
        classes=NAMES,
        labels="index",
        dtype="float32",
        identity="pets",
    )
    data = read_data(tmp_path / "s")
    check(data, [NAMES[i] for i in Y], NAMES)
    assert (data.identity, data.content_hash) == ("pets", store.content_hash)
    refused("x=q does not apply to .*; leave it out", tmp_path / "s", x="q")
    refused("is a store, which has a card; leave card= out", tmp_path / "s", card="card.json")
    (tmp_path / "s" / "metadata.parquet").unlink()
    refused("metadata.parquet is missing", tmp_path / "s", error=StoreError)


# What cannot be read


def test_a_missing_or_unknown_file_is_refused(tmp_path):
    refused("nowhere.npy does not exist", tmp_path / "nowhere.npy")
    (tmp_path / "notes.txt").write_text("hello")
    refused("notes.txt has an unknown ending; give .npy", tmp_path / "notes.txt")
    refused("neither a store, a saved data set nor a folder", tmp_path)
    refused("cannot read .* together; give one file or folder", [])
    refused("cannot read .* together", [tmp_path / "notes.txt", tmp_path])


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet", "a.safetensors"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 20])
def test_files_that_are_not_what_they_are_called_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    refused(f"{name} is truncated or not a", tmp_path / name)


def test_truncated_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=X)
    saved(tmp_path / "a.npy", X)
    pq.write_table(pa.table({"x": X.tolist()}), tmp_path / "a.parquet")
    for path in sorted(tmp_path.iterdir()):
        path.write_bytes(path.read_bytes()[:-20])
        refused(f"{path.name} is truncated or not", path)


def test_a_garbled_header_is_refused(tmp_path):
    path = saved(tmp_path / "a.npy", X)
    path.write_bytes(path.read_bytes().replace(b"{'descr'", b"((((((((", 1))
    refused("a.npy is truncated or not a .npy array", path)


def test_pickles_are_never_read(tmp_path):
    objects = np.array([{"a": 1}, None], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=objects)
    for name in ("a.npy", "a.npz"):
        refused(f"{name} holds pickled objects, which are never read", tmp_path / name)


def test_rows_of_files_keep_the_rules_of_a_store(tmp_path):
    x = X.copy()
    x[4] = 0
    path = saved(tmp_path / "x.npy", x)
    refused("x.npy row 4 is all zeros", path)
    read_data(path, check=False)  # left to EmbeddingStore.write, which checks as it copies
    refused("x.npy has 3 dimension", saved(path, X[None]))
    refused(
        r"labels have shape \(5,\) beside 6 rows",
        [saved(path, X), saved(tmp_path / "y.npy", Y[:5])],
    )
    refused("x=a does not apply to .*x.npy", path, x="a")
    refused("split=a does not apply to .*x.npy", path, split="a")


# The real embeddings


def test_the_real_embeddings_become_a_store(tmp_path):
    folder = shared("embeddings/all-minilm-l6-v2/sst2")
    assert splits(folder) == ["dev", "test", "train"]
    data = read_data(folder, split="dev")
    assert (data.x.shape, data.classes) == ((872, 384), ["negative", "positive"])
    assert set(data.card) == {
        "dataset",
        "source_repository",
        "source_commit",
        "licence",
        "notes",
        "encoder",
        "order",
    }
    store = EmbeddingStore.write(
        tmp_path / "s", data.x, data.labels, classes=data.classes, card=data.card
    )
    assert np.array_equal(store.x, data.x)
    assert np.array_equal(store.y, np.load(folder / "dev_y.npy"))
    assert store.card["encoder"]["name"] == "sentence-transformers/all-MiniLM-L6-v2"


@pytest.mark.parametrize("shape", [(6, 4), (6, 1)])
def test_bfloat16_becomes_float32(tmp_path, shape):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    rows = torch.tensor(np.random.default_rng(0).normal(size=shape)).bfloat16()
    path = tmp_path / "rows.safetensors"
    # another array before it, so that it begins within the file
    save_file({"a": torch.ones(3), "labels": torch.tensor(Y), "features": rows}, path)
    data = read_data(path)
    assert data.labels.tolist() == LABELS
    assert data.x.dtype == np.float32
    assert np.array_equal(data.x, rows.float().numpy())


def test_lists_of_texts_are_no_features(tmp_path):
    path = tmp_path / "t.parquet"
    words = pa.array([["a", "b"]] * 6)
    pq.write_table(pa.table({"words": words, "label": LABELS}), path)
    refused(stating("words", "encode texts first", f"tacit encode {path}"), path)
    refused(stating("lists of texts", "encode"), path, x="words")

    # beside features they are left out, and printed
    pq.write_table(pa.table({"words": words, "label": LABELS, "a": X[:, 0], "b": X[:, 1]}), path)
    data = read_data(path)
    assert np.array_equal(data.x[:], X[:, :2])
    assert "words" in data.left_out[0]
