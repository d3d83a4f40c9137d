"""Several labels a record on the command line: kept by every command, or refused with the reason."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.test_bad_input import refused
from messages import lacking
from tacit import EmbeddingStore

NAMES = ["fear", "joy", "pride"]
SETS = [["joy"], [], ["joy", "fear"], ["pride"], ["fear"], []]
MATRIX = [[name in labels for name in NAMES] for labels in SETS]
TEXTS = ["|".join(labels) for labels in SETS]
X = np.random.default_rng(0).normal(size=(6, 3))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{text},v{i % 3},{a},{b}" for i, (text, (a, b, _)) in enumerate(zip(TEXTS, X, strict=True))
    ]
    Path("t.csv").write_text("\n".join(["labels,who,a,b", *rows]) + "\n")
    EmbeddingStore.write("store", X, SETS, persons=list("aabbcc"), classes=NAMES)
    EmbeddingStore.write("single", X, ["joy"] * 6, classes=NAMES)
    return tmp_path


def stored(run, line, store="out"):
    status, out, err = run(line)
    assert status == 0, err
    assert not lacking(out, "several labels a record")
    return EmbeddingStore.open(store)


def test_import_names_what_separates_labels_and_keeps_persons(here, run):
    line = "import t.csv --persons who --label-separator | --out out"
    store = stored(run, line)
    assert (store.classes, store.classes_declared) == (NAMES, False)
    assert store.y.tolist() == MATRIX
    assert store.persons.tolist() == ["v0", "v1", "v2"] * 2

    store = stored(run, f"{line} --classes none,pride,joy,fear --force")
    assert store.classes_declared
    assert store.y[:, [3, 2, 1]].tolist() == MATRIX
    assert not store.y[:, 0].any()
    refused(run, f"{line} --classes joy,fear --force", "line 5", "'pride'", "2 classes")

    # a copy, under another list
    copy = stored(run, "import out --classes fear,joy,pride,other --out copy", "copy")
    assert copy.y[:, :3].tolist() == MATRIX


def test_numbers_in_lists_are_positions_only_where_it_is_stated(here, run):
    indexes = [[NAMES.index(name) for name in labels] for labels in SETS]
    pq.write_table(pa.table({"x": X.tolist(), "label": indexes}), "t.parquet")
    line = "import t.parquet --classes fear,joy,pride --out out"
    refused(run, line, "row 0", "whole number 1", "--labels index")
    assert stored(run, f"{line} --labels index").y.tolist() == MATRIX
    Path("ids.txt").write_text("\n".join("aabbcc"))
    store = stored(run, f"{line} --labels index --persons ids.txt --force")
    assert store.persons.tolist() == list("aabbcc")

    # ids that come beside a store
    EmbeddingStore.write("bare", X, SETS)
    store = stored(run, "import bare --persons ids.txt --out out --force")
    assert (store.classes, store.classes_declared) == (NAMES, False)
    assert (store.y.tolist(), store.persons.tolist()) == (MATRIX, list("aabbcc"))


def test_encode_reads_them_from_tables_beside_pictures_and_of_columns(here, run):
    pytest.importorskip("PIL")
    from PIL import Image

    Path("scans").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 8), dtype=np.uint8)
    for i in range(6):
        Image.fromarray(pixels[i]).save(f"scans/{i}.png")
    rows = [f"{i}.png,{text}" for i, text in enumerate(TEXTS)]
    Path("findings.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    line = "encode scans --encoder edges:8 --workers 0 --labels findings.csv --label-separator | --out out"
    assert stored(run, line).y.tolist() == MATRIX
    assert stored(run, f"{line} --classes pride,joy,fear --force").y[:, ::-1].tolist() == MATRIX
    refused(run, f"{line} --classes joy,fear --force", "line 5", "'pride'", "2 classes")
    refused(
        run,
        "encode scans --encoder edges:8 --workers 0 --label-separator | --out o",
        "--labels",
        "table",
    )

    np.savez("pixels.npz", x=pixels, y=MATRIX)
    store = stored(run, "encode pixels.npz --encoder edges:8 --workers 0 --out out --force")
    assert (store.classes, store.classes_declared, store.y.tolist()) == ([0, 1, 2], False, MATRIX)

    # lists need no separator; a record without labels is left out only if it is asked for
    pictures = [Path(f"scans/{i}.png").read_bytes() for i in range(6)]
    pq.write_table(pa.table({"image": pictures, "labels": SETS}), "p.parquet")
    assert (
        stored(run, "encode p.parquet --encoder edges:8 --workers 0 --out out --force").y.tolist()
        == MATRIX
    )
    pq.write_table(pa.table({"image": pictures, "labels": [None, *SETS[1:]]}), "p.parquet")
    refused(run, "encode p.parquet --encoder edges:8 --workers 0 --out o", "row 0", "empty list")
    store = stored(
        run, "encode p.parquet --encoder edges:8 --workers 0 --skip-bad --out out --force"
    )
    assert store.y.tolist() == MATRIX[1:]

    schema = "columns:\n  a: {kind: number, low: -3, high: 3}\nlabel: {column: labels, classes: [fear, joy, pride]}\n"
    Path("s.yaml").write_text(schema)
    line = "encode t.csv --encoder table --schema s.yaml --label-separator | --out out --force"
    store = stored(run, line)
    assert (store.y.tolist(), store.classes_declared) == (MATRIX, True)


def test_parts_and_subsets_keep_them_and_cuts_by_class_are_refused(here, run):
    assert run("split store --n-public 2 --n-test 2 --out parts")[0] == 0
    private = EmbeddingStore.open("parts/private")
    assert private.y.tolist() == [MATRIX[row] for row in private.origin.rows]
    assert (private.classes, private.classes_declared) == (NAMES, True)
    assert EmbeddingStore.open("parts/public").y is None

    assert run("subset store --rows 4 --out sub")[0] == 0
    subset = EmbeddingStore.open("sub")
    assert subset.y.tolist() == [MATRIX[row] for row in subset.origin.rows]
    refused(run, "subset store --imbalance 2 --out o", "--imbalance 2", "several labels", "--rows")

    # the classes that were read off the labels stay names
    assert run("subset t.csv --label-separator | --persons who --rows 4 --out of-text")[0] == 0
    subset = EmbeddingStore.open("of-text")
    names = [sorted(np.array(subset.classes)[row].tolist()) for row in subset.y]
    assert names == [sorted(SETS[row]) for row in subset.origin.rows]
    assert not subset.classes_declared


def test_commands_for_one_label_a_record_refuse_several(here, run):
    # the methods that do are named as they are typed
    others = ("gradient-descent", "least-squares", "noisy-sum", "auto")
    refused(
        run, "fit coinpress store --budget rho=1 --out r", "several labels", "coinpress", *others
    )
    refused(
        run,
        "fit coinpress store --budget rho=1 --most-labels 2 --out r",
        "--most-labels",
        "coinpress",
        "one label a record",
        *others,
    )
    plan = {
        "name": "p",
        "about": "sets",
        "data": [{"name": "d", "encoder": "e", "train": "store", "test": "store"}],
        "learners": [{"name": "sums", "method": "noisy-sum"}],
        "budgets": ["rho=1"],
        "seeds": 1,
    }
    Path("p.yaml").write_text(json.dumps(plan))
    refused(run, "sweep p.yaml --out runs", "store", "several labels", "--most-labels")
    EmbeddingStore.write("other", np.roll(X, 1, axis=1), SETS, classes=NAMES)
    refused(run, "import single --names other --out o", "other", "several labels", "one class")
    pq.write_table(pa.table({"id": range(6), "label": SETS}), "lists.parquet")
    line = "--column label --classes fear,joy,pride --budget epsilon=1 --out o.parquet"
    refused(run, f"privatize-labels lists.parquet {line}", "lists.parquet", "several labels")
    assert run("overlap single store --json")[0] == 0


def test_a_fit_needs_the_most_labels_and_the_class_list(here, run):
    line = "--steps 2 --budget rho=1 --most-labels 2 --allow-research --noise research --seed 0"
    fit = "fit gradient-descent"
    text = "t.csv --persons who --label-separator | --classes fear,joy,pride"
    assert run(f"{fit} {text} {line} --out of-text")[0] == 0

    refused(run, f"{fit} store --steps 2 --budget rho=1 --out o", "store", "--most-labels")
    refused(run, f"{fit} single {line} --out o", "one each", "--label-separator")
    undeclared = text.partition(" --classes")[0]
    refused(run, f"{fit} {undeclared} {line} --out o", "t.csv", "declared", "--classes")


def test_files_of_a_matrix_take_their_classes_in_order(here, run):
    np.savez("m.npz", x=X, y=MATRIX)
    store = stored(run, "import m.npz --classes pride,joy,fear --out out")
    assert (store.classes, store.y.tolist()) == (["pride", "joy", "fear"], MATRIX)
    refused(run, "import m.npz --classes pride,joy --out o", "3 columns", "2 classes")
    refused(run, "fit noisy-sum m.npz --budget rho=1 --card c.json --out r", "--card", "--classes")


def test_the_store_says_so_in_its_manifest_alone(here):
    assert json.loads(Path("store/manifest.json").read_text())["several_labels"] is True
    assert json.loads(Path("single/manifest.json").read_text())["version"] == 1
