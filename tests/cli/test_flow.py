"""The main job by commands, as the README has it."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from sklearn.naive_bayes import GaussianNB

import tacit
from cli.conftest import CLASSES, rows
from messages import lacking, stating
from tacit.cli.main import INTERRUPTED
from tacit.cli.verbs import VERBS
from tacit.compute import progress_display
from tacit.data.embeddings import EmbeddingStore
from tacit.experiments.data import data_source, records
from tacit.experiments.plan import DataSet
from tacit.privacy.ledger import Ledger


def raw_splits():
    """A folder `raw` of .npy files with two splits."""
    x, y = rows(np.random.default_rng(1), 30)
    Path("raw").mkdir()
    for split in ("train", "test"):
        np.save(f"raw/{split}_x.npy", x)
        np.save(f"raw/{split}_y.npy", y)


# what takes more than two seconds
PROGRESS = re.compile(r"tacit: [a-z ]+: \d+ of \d+(, about \d+ s left)?")
FITS = [
    "noisy-sum --budget rho=0.5",
    "noisy-sum --budget epsilon=1,delta=1e-6",
    "coinpress --budget rho=8",
    "coinpress --budget rho=8 --counts 30 --public public --metric euclidean",
    "public --budget epsilon=2 --public public",
    "public --budget epsilon=2 --public public --k 5 --d-min 0 --d-max 2",
    (
        "public --budget epsilon=1 --public public --d-min 1.2 --d-max 1.9 --selection"
        " permute-and-flip"
    ),
    "pate --budget epsilon=8,delta=1e-5 --public public --n-teachers 30",
]


@pytest.mark.parametrize("fit", FITS)
def test_fit_inspect_evaluate_predict(stores, run, fit):
    method, *options = fit.split()
    status, out, err = run(f"fit {method} private --out release {' '.join(options)}")
    assert status == 0
    assert all(PROGRESS.fullmatch(line) for line in err.splitlines())
    promised = run(f"promise {method} {' '.join(options)}")[1]
    assert promised.strip() in out

    status, out, err = run("inspect release --registry entry.yaml")
    assert (status, err) == (0, "")
    assert "verified" in out
    assert "17." in out
    assert Path("entry.yaml").read_text().startswith("#")

    status, out, err = run("evaluate release test --json")
    scores = json.loads(out)
    assert status == 0
    assert scores["balanced"] > 0.5

    status, out, err = run("predict release test --out labels.parquet")
    assert (status, err) == (0, "")
    table = pyarrow.parquet.read_table("labels.parquet")
    test = tacit.EmbeddingStore.open("test")
    assert np.mean(table["label"].to_numpy(zero_copy_only=False) == test.labels) == pytest.approx(
        scores["accuracy"]
    )


def test_budgets_of_groups_are_promised_at_their_delta(run):
    out = run("promise pate --budgets a=1,b=2 --delta 1e-9 --n-teachers 60")[1]
    assert "a: epsilon = 1 at delta = 1e-09" in out
    assert "b: epsilon = 2 at delta = 1e-09" in out


def test_promise_is_printed_without_any_data(run):
    status, out, _ = run("promise public --budget epsilon=1 --k 5 --unit replace")
    assert status == 0
    assert not lacking(out, "one record", "replace")
    assert "epsilon = 1 (pure)" in out
    assert not lacking(out, "Not protected", "public rows")


@pytest.mark.filterwarnings("default::tacit.errors.PrivacyLeakWarning")
def test_a_file_instead_of_a_store(stores, run):
    x, y = rows(np.random.default_rng(1), 60)
    np.savez("data.npz", x=x, y=y)
    status, out, err = run("fit noisy-sum data.npz --budget rho=1 --classes 4 --out release")
    assert (status, err) == (0, "")
    assert "4 classes" in out
    assert tacit.Release.load("release").classes.tolist() == [0, 1, 2, 3]
    status, out, err = run("fit noisy-sum data.npz --budget rho=1 --out leaky")
    assert status == 0
    assert err.startswith("tacit: warning: the class list is read off the private labels")
    assert "class list" in out


def test_a_class_file_with_a_class_that_has_no_records(stores, run):
    Path("classes.txt").write_text("\n".join([*CLASSES, "dog"]) + "\n")
    assert run("fit noisy-sum private --budget rho=1 --classes classes.txt --out release")[0] == 0
    assert tacit.Release.load("release").classes.tolist() == [*CLASSES, "dog"]
    assert run("evaluate release test")[0] == 0


def test_research_noise_is_stamped_and_needs_a_flag(stores, run):
    line = "fit noisy-sum private --budget rho=1 --noise research --seed 3 --out release"
    status, _, err = run(line)
    assert status == 2
    assert "not for release" in err
    assert not Path("release").exists()
    assert run(line + " --allow-research")[0] == 0
    assert "NOT FOR RELEASE" in Path("release/CARD.md").read_text()
    assert "NOT FOR RELEASE" in run("inspect release")[1]
    assert run("fit noisy-sum private --budget rho=inf --out open")[0] == 2
    assert run("fit noisy-sum private --budget rho=inf --out open --allow-research")[0] == 0


def test_the_ledger_is_charged_and_refuses(stores, run):
    assert run("ledger private")[0] == 2
    assert not lacking(run("ledger private --allow rho=1")[1], "rho=0", "rho=1", "0 charges")
    assert "ledger of 'private'" in run("fit noisy-sum private --budget rho=0.6 --out first")[1]
    status, _, err = run("fit noisy-sum private --budget rho=0.6 --out second")
    assert status == 2
    assert "would overdraw" in err
    assert not Path("second").exists()
    assert run("fit noisy-sum private --budget rho=0.4 --out third")[0] == 0
    out = run("ledger private")[1]
    assert not lacking(out, "rho=1 of rho=1", "2 charges")
    assert not lacking(tacit.Release.load("third").card(), "rho=1 of rho=1", "2 charges")


def test_a_ledger_outlives_what_lies_beside_it(stores, run):
    """Importing again, or the demonstration, must not refund what was spent."""
    raw_splits()
    for make, store in (
        ("import raw --classes 3 --out both", "both/train"),
        ("demo --seeds 1", "demo/stores/private"),
    ):
        assert run(make)[0] == 0
        run(f"ledger {store} --allow rho=0.5")
        assert (
            run(f"fit noisy-sum {store} --budget rho=0.5 --out {store.replace('/', '-')}")[0] == 0
        )
        assert run(make + " --force")[0] == 0
        assert not lacking(run(f"ledger {store}")[1], "rho=0.5 of rho=0.5", "1 charge")
        assert "would overdraw" in run(f"fit noisy-sum {store} --budget rho=0.5 --out again")[2]


def test_force_replaces_only_its_own_kind(stores, run):
    Path("thesis").mkdir()
    Path("thesis/text").write_text("years of work")
    for line in (
        "import private --out thesis --force",
        "demo --out thesis --force --seeds 1",
        "fit noisy-sum private --budget rho=1 --out thesis --force",
        "demo --out private --force",
        "fit noisy-sum private --budget rho=1 --out test --force",
    ):
        status, _, err = run(line)
        assert status == 2
        assert not lacking(err, "not replaced")
    assert Path("thesis/text").read_text() == "years of work"


def test_nothing_is_written_into_the_folder_of_a_release(stores, run):
    assert run("fit noisy-sum private --budget rho=1 --out release")[0] == 0
    for line in (
        "page release --out release/page.html",
        "predict release test --out release/labels.csv",
        "export release --onnx release/head.onnx",
        "publish release --to release/hub",
        "inspect release --registry release/entry.yaml",
    ):
        status, _, err = run(line)
        assert status == 2
        assert not lacking(err, "inside", "release release")
    assert run("inspect release")[0] == 0


def test_a_fit_that_cannot_be_saved_costs_nothing(stores, run):
    run("ledger private --allow rho=1")
    Path("taken").mkdir()
    Path("taken/thesis.txt").write_text("years of work")
    for options in (
        "--out taken",
        "--out taken --force",
        "--out none/such",
        "--out /proc/release",
        "--out r --k 3",
        "--out r --noise research",
        "--out r --public private",
    ):
        status, _, err = run(f"fit noisy-sum private --budget rho=0.5 {options}")
        assert status == 2, options
        assert err.count("\n") == 1
    assert Path("taken/thesis.txt").read_text() == "years of work"
    assert Ledger.beside("private", "private").account().charges == ()


def test_a_ledger_is_only_kept_for_data_and_a_folder_of_stores_is_read_by_split(stores, run):
    for name in ("both/train", "both/test"):
        Path(name).parent.mkdir(exist_ok=True)
        tacit.EmbeddingStore.write(
            name,
            *rows(np.random.default_rng(2), 30),
            classes=CLASSES,
            labels="index",
            identity=name[5:],
        )
    Path("notes.txt").write_text("x")
    Path("empty").mkdir()
    assert run("fit noisy-sum private --budget rho=1 --out release")[0] == 0
    for path in ("both", "notes.txt", "empty", "release"):
        assert run(f"ledger {path} --allow rho=0.1")[0] == 2, path
        assert not Path(f"{path}.ledger.jsonl").exists()
    assert not lacking(
        run("fit noisy-sum both --budget rho=1 --out r")[2], "stores", "test", "train", "never"
    )
    assert run("ledger both --split train --allow rho=0.1")[0] == 0
    assert Path("both/train.ledger.jsonl").exists()
    for line in ("fit noisy-sum both --split train", "fit noisy-sum both/train"):
        assert "would overdraw" in run(f"{line} --budget rho=1 --out r")[2]
    assert run("fit noisy-sum both --split test --budget rho=1 --out r")[0] == 0
    assert run("evaluate r both --split train")[0] == 0


def test_mistakes_of_kind_are_named(stores):
    store = tacit.EmbeddingStore.write(
        "s", *rows(np.random.default_rng(2), 30), classes=CLASSES, labels="index"
    )
    with pytest.raises(tacit.TacitError, match=r"pass its rows, public=store.x"):
        tacit.PublicPrototypes(public=store, classes=CLASSES).fit(store.x, store.labels)
    with pytest.raises(tacit.TacitError, match=stating("Ledger", "tacit.Ledger.beside")):
        tacit.NoisySumPrototypes(ledger="s.ledger.jsonl").promise()
    with pytest.raises(
        tacit.TacitError, match=stating("store.labels", "np.asarray(classes)[y]", "classes")
    ):
        tacit.NoisySumPrototypes(classes=store.classes).fit(store.x, store.y)


def test_a_link_to_the_data_shares_their_ledger(stores, run):
    run("ledger private --allow rho=0.1")
    Path("elsewhere").symlink_to("private")
    assert "would overdraw" in run("fit noisy-sum elsewhere --budget rho=0.5 --out release")[2]
    Path("elsewhere").unlink()
    assert (
        "No ledger counts this run" in run("fit noisy-sum test --budget rho=0.5 --out release")[1]
    )


def test_two_fits_at_once_never_overdraw(stores, run):
    run("ledger private --allow rho=1")
    command = [
        sys.executable,
        "-m",
        "tacit.cli.main",
        "fit",
        "noisy-sum",
        "private",
        "--budget",
        "rho=0.7",
        "--out",
    ]
    workers = [
        subprocess.Popen([*command, f"r{i}"], stderr=subprocess.PIPE, text=True) for i in range(2)
    ]
    errors = [worker.communicate(timeout=600)[1] for worker in workers]
    assert sorted(worker.returncode for worker in workers) == [0, 2]
    assert sum("would overdraw" in error for error in errors) == 1
    assert Ledger.beside("private", "private").account().spent.rho == pytest.approx(0.7)


def test_figures_are_recorded_in_the_original_of_a_published_release(stores, run):
    assert run("fit noisy-sum private --budget rho=2 --out release")[0] == 0
    assert run("publish release --to hub")[0] == 0
    status, out, err = run("evaluate hub test --record")
    assert (status, out) == (2, "")
    assert not lacking(err, "hub", "git", "recorded")
    assert run("evaluate hub test")[0] == run("evaluate release test --record")[0] == 0


def test_minority_accuracy_needs_the_class_sizes_and_is_listed(stores, run):
    run("fit noisy-sum private --budget rho=2 --out release")
    assert "minority" not in run("evaluate release test")[1]
    assert "minority accuracy" in run("evaluate release test --class-sizes private --record")[1]
    assert run("evaluate release test --public-test")[0] == 2
    release = tacit.Release.load("release").verify()
    assert any("class sizes" in quantity for quantity in release.guarantee.unprotected)
    assert "public test set" in release.card()


def test_import_writes_one_store_per_split(stores, run):
    raw_splits()
    Path("raw/card.json").write_text(
        json.dumps({"classes": CLASSES, "files": {"train_x.npy": {}, "test_x.npy": {}}})
    )
    status, out, _ = run("import raw --out both")
    assert status == 0
    assert not lacking(out, "both/train", "30 rows", "width 5", "3 classes")
    assert run("import raw --split test --out one --identity survey")[0] == 0
    assert tacit.EmbeddingStore.open("one").identity == "survey"
    assert run("import raw/train_x.npy raw/train_y.npy --out pair")[0] == 0
    assert tacit.EmbeddingStore.open("pair").classes == CLASSES


def test_another_split_of_the_private_file_may_be_public(stores, run):
    x, y = rows(np.random.default_rng(1), 30)
    other, _ = rows(np.random.default_rng(2), 30)
    np.savez("both.npz", train_x=x, train_y=y, test_x=other, test_y=y)
    fit = "fit public both.npz --classes 3 --budget rho=0.4 --out release --public both.npz"
    test = "--public-split test"
    for same in (fit, f"{fit} --public-split train", f"{fit} {test} --x train_x --y train_y"):
        status, _, err = run(same)
        assert status == 2
        assert "is the private data" in err
    assert run(f"{fit} {test}")[0] == 0
    # the records themselves, under another name
    np.savez("both.npz", train_x=x, train_y=y, test_x=x, test_y=y)
    assert run(f"{fit} {test} --force")[0] == 2


def test_published_pairs_are_used_as_they_are(stores, run):
    Path("vit").mkdir()
    for split in ("train", "test"):
        x, y = rows(np.random.default_rng(1), 30)
        np.save(f"vit/pets_{split}.npy", x)
        np.save(f"vit/pets_{split}_targets.npy", y)
    np.save("vit/imagenet_train.npy", rows(np.random.default_rng(2), 30)[0])
    status, out, err = run("import vit --out both")
    assert (status, err) == (0, "")
    assert not lacking(out, "both/pets_train", "30 rows", "width 5", "no declared")
    assert run("import vit#pets_test --out one --classes 3")[0] == 0

    run("ledger vit#pets_train --allow rho=1")
    fit = "fit public vit#pets_train --classes 3 --public vit#imagenet_train --budget rho=0.4"
    assert run(f"{fit} --out release")[0] == 0
    assert run("fit noisy-sum vit/pets_train.npy --classes 3 --budget rho=0.6 --out second")[0] == 0
    assert not lacking(run("ledger vit --split pets_train")[1], "rho=1 of rho=1", "2 charges")
    for test in ("vit#pets_test", "vit#test", "vit --split test", "vit/pets_test.npy"):
        assert run(f"evaluate release {test}")[0] == 0
    assert run("predict release vit#pets_test --out labels.parquet")[0] == 0
    refused = run(f"{fit.replace('vit#imagenet_train', 'vit/pets_train.npy')} --out third")
    assert refused[0] == 2
    assert "is the private data" in refused[2]
    assert not lacking(
        run("fit noisy-sum vit#imagenet_train --budget rho=1 --out third")[2],
        "vit#imagenet_train",
        "labels",
    )
    assert not Path("third").exists()


@pytest.mark.slow
def test_split_makes_a_private_a_public_and_a_test_store(stores, run):
    status, out, err = run("split private --n-public 30 --n-test 20 --seed 1 --out parts")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "parts/private: 40 rows",
        "parts/public: 30 rows, no labels",
        "parts/test: 20 rows",
    ]
    parts = {
        name: EmbeddingStore.open(stores / "parts" / name) for name in ("private", "public", "test")
    }
    source = EmbeddingStore.open(stores / "private")
    assert parts["private"].identity == source.identity
    assert parts["public"].labels is None
    together = np.concatenate([np.asarray(part.x) for part in parts.values()])
    assert np.array_equal(np.sort(together, axis=0), np.sort(np.asarray(source.x), axis=0))
    fit = (
        "fit pate parts/private --public parts/public --budget epsilon=8,delta=1e-5 --n-teachers 10"
        " --out student"
    )
    assert run(fit)[0] == 0
    run("ledger private --allow epsilon=9,delta=1e-5 --unit replace")
    assert "private.ledger.jsonl" in run("split private --n-public 30 --out again")[1]
    assert run("split private --n-public 30 --out parts")[0] == 2
    assert run("split private --n-public 30 --out parts --force")[0] == 0
    assert not (stores / "parts" / "test").exists()


@pytest.mark.parametrize(("imbalance", "n"), [(1, 60), (6.5, None), (None, 60)])
def test_a_subset_holds_the_records_that_plans_use(stores, run, imbalance, n):
    options = "--seed 3"
    options += "" if imbalance is None else f" --imbalance {imbalance}"
    options += "" if n is None else f" --rows {n}"
    status, out, err = run(f"subset private {options} --out long-tailed")
    made, whole = (EmbeddingStore.open(stores / name) for name in ("long-tailed", "private"))
    assert (status, err) == (0, "")
    said = f"long-tailed: {made.rows} of 90 rows"
    if imbalance is None:
        assert out.splitlines() == [said]
    else:
        assert out.splitlines() == [
            f"{said}, imbalance {imbalance}",
            (
                "For research: class sizes were chosen by the private labels, and no guarantee"
                " covers that."
            ),
        ]
    source = data_source(DataSet(name="d", train="private", test="test", rows=n), stores)
    planned = records(source, imbalance, 3)
    assert np.array_equal(made.x, planned.x)
    assert np.array_equal(made.y, planned.y)
    sizes = np.bincount(made.y)
    assert (made.rows < (n or 90)) == (imbalance is not None)
    assert (sizes.min() == sizes.max()) == (imbalance == 1)
    assert (made.identity, made.dtype) == (whole.identity, whole.dtype)
    assert made.card == whole.card | {"subset": {"imbalance": imbalance, "seed": 3, "rows": n}}


def test_one_npz_file_is_learned_from_by_its_train_arrays_and_evaluated_by_its_test_arrays(
    stores, run
):
    arrays = {}
    for part, name in (("train", "private"), ("test", "test")):
        store = EmbeddingStore.open(name)
        np.savez(f"{part}.npz", x=store.x, y=store.y)
        arrays |= {f"{part}_x": store.x, f"{part}_y": store.y}
    np.savez("all.npz", **arrays)
    fit = "--budget rho=1e6 --classes 3 --noise research --seed 0 --allow-research"
    assert run(f"fit noisy-sum all.npz {fit} --out release")[0] == 0
    assert run(f"fit noisy-sum train.npz {fit} --out same")[0] == 0
    evaluations = [run("evaluate release all.npz"), run("evaluate same test.npz")]
    # the first line names the release and the data
    figures = [out.splitlines()[1:] for status, out, _ in evaluations if status == 0]
    assert figures[0] == figures[1]


def test_a_subset_of_data_without_declared_classes(stores, run):
    np.save("rows_train.npy", np.random.default_rng(0).normal(size=(60, 3)))
    np.save("rows_train_targets.npy", np.repeat([0, 1, 2], 20))
    status, _, err = run("subset rows_train.npy --imbalance 4 --out long-tailed")
    assert (status, err) == (0, "")
    assert sorted(np.bincount(tacit.EmbeddingStore.open("long-tailed").labels)) == [5, 10, 20]


@pytest.mark.filterwarnings("default::tacit.PrivacyLeakWarning")
def test_a_subset_of_the_private_rows_is_not_public(stores, run):
    assert run("subset private --imbalance 2 --out part")[0] == 0
    for method in ("public", "projected --prototypes public"):
        status, _, err = run(f"fit {method} private --public part --budget rho=1 --out leak")
        assert status == 2
        assert not lacking(err, "public", "private records", "released")
    assert not Path("leak").exists()
    fit = "fit noisy-sum private --public part --budget rho=1"
    number = EmbeddingStore.open("part").rows
    status, _, err = run(f"{fit} --out warned")
    assert status == 0
    assert not lacking(err, f"{number} of {number}", "public")
    assert run(f"{fit} --out meant --allow-overlap")[0] == 0
    err = run("fit label-private private --budget epsilon=1 --out none --allow-overlap")[2]
    assert not lacking(err, "--allow-overlap", "label-private")


def test_the_private_store_itself_is_public_only_where_rows_are(stores, run):
    fit = "fit noisy-sum private --public private --budget rho=1"
    status, _, err = run(f"{fit} --out leak")
    assert status == 2
    assert not lacking(err, "--public private", "private data")
    status, _, err = run(f"{fit} --out labels --unit change-label")
    assert status == 0
    assert "private records" not in err


def test_a_subset_is_charged_to_the_ledger_of_its_data(stores, run):
    run("ledger private --allow rho=1")
    subset = "subset private --imbalance 3 --out long-tailed"
    assert "private.ledger.jsonl" in run(subset)[1]
    for status in (0, 2):  # the second one would overdraw it
        fit = (
            "fit noisy-sum long-tailed --budget rho=0.6 --ledger private.ledger.jsonl --out"
            f" release{status}"
        )
        assert run(fit)[0] == status
    assert run(subset)[0] == 2
    assert run(f"{subset} --force")[0] == 0


def test_one_command_imports_each_set_of_the_shared_embeddings(embeddings, tmp_path, run):
    imported = 0
    for folder in sorted(path.parent for path in embeddings.glob("*/*/card.json")):
        out = tmp_path / folder.name
        assert run(f"import {folder} --out {out}")[0] == 0
        labels = {path.name.partition("_")[0]: np.load(path) for path in folder.glob("*_y.npy")}
        imported += 1
        card = json.loads((folder / "card.json").read_text())
        listed = card.get("files", {})  # a card is about the files that it lists alone
        for split, of_split in labels.items():
            store = tacit.EmbeddingStore.open(out / split).verify()
            assert np.array_equal(store.x, np.load(folder / f"{split}_x.npy"))
            assert np.array_equal(store.y, of_split)
            assert store.several == (of_split.ndim > 1)
            classes = card["classes"] if f"{split}_x.npy" in listed else None
            if store.several and classes is None:
                # the columns of a matrix are numbered
                classes = list(range(of_split.shape[1]))
            assert store.classes == classes
    assert imported > 0


def test_demo_makes_a_release_and_a_page(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("demo --out show --seeds 1")
    assert status == 0
    assert all(method in out for method in ("auto", "noisy-sum", "coinpress", "public"))
    assert {path.name for path in Path("show").iterdir()} == {
        "accuracy.png",
        "page.html",
        "release",
        "results.csv",
        "stores",
    }
    page = Path("show/page.html").read_text()
    assert tacit.Release.load("show/release").guarantee.in_words() in page
    assert "tacit inspect show/release" in page
    utility = tacit.Release.load("show/release").verify().document.utility
    assert (utility.test_set, utility.protection) == ("digits-demo-test", "public test set")
    assert f"balanced accuracy {utility.balanced_accuracy:.3f}" in out
    assert f"{utility.balanced_accuracy:.6g}" in page.partition("15. ")[2].partition("16. ")[0]
    assert run("inspect show/release")[0] == 0
    assert run("evaluate show/release show/stores/test")[0] == 0
    assert run("demo --out show --seeds 1")[0] == 2
    assert run("demo --out show --seeds 0 --force")[0] == 2


def start(command, **options):
    """Start a process that hears Ctrl-C even where the tests run in the background, which ignores
    it.
    """
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **heard, **options
    )


def interrupt_when(process, condition):
    while process.poll() is None:
        if condition():
            process.send_signal(signal.SIGINT)
            return
        time.sleep(0.05)
    raise AssertionError("nothing to interrupt")


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-m", "tacit.cli.main", "demo", "--out", "show", "--seeds", "2000"]
    process = start(command, cwd=tmp_path)
    interrupt_when(process, lambda: any(tmp_path.iterdir()))
    error = process.communicate(timeout=600)[1]
    assert process.returncode == 130
    assert error.splitlines()[-1].startswith("tacit: interrupted; no output was written")
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_inside_generated_code_is_heard_too(tmp_path):
    """Dataclasses run generated source; CPython then forgets that the interrupt was handled, under
    `python -m`.
    """
    (tmp_path / "interrupted.py").write_text(
        "import sys, tacit.cli.app as a, tacit.cli.main as m\n"
        "def run(*_, **__): exec('raise KeyboardInterrupt')\n"
        "a.app = run\n"
        "sys.exit(m.main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr.count("\n")) == (130, 1)


@pytest.mark.parametrize(
    "then",
    [
        "time.sleep(30); return 0",
        # as a compiler does, whose callback the interrupt left undone
        "raise RuntimeError('left undone')",
    ],
)
def test_an_interrupt_that_a_finalizer_swallows_is_heard_too(tmp_path, then):
    (tmp_path / "interrupted.py").write_text(
        "import os, signal, sys, time, tacit.cli.app as a, tacit.cli.main as m\n"
        "class Swallows:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(0.1)\n"
        f"def run(*_, **__): Swallows(); {then}\n"
        "a.app = run\n"
        "sys.exit(m.main([]))"
    )
    process = start([sys.executable, "-m", "interrupted"], cwd=tmp_path)
    error = process.communicate(timeout=600)[1]
    assert (process.returncode, error.count("\n")) == (130, 1)
    assert error.startswith("tacit: interrupted")


IN_SHUTDOWN = {
    "while the first is told of": (
        "m.print = lambda *given, **named: (interrupt(), print(*given, **named))"
    ),
    "while threads end": (
        "threading.Thread(target=lambda: (time.sleep(0.3), interrupt(), time.sleep(0.3))).start()"
    ),
    "in an exit handler": "atexit.register(interrupt)",
}


@pytest.mark.parametrize("moment", IN_SHUTDOWN)
def test_a_second_interrupt_ends_with_the_same_status(tmp_path, moment):
    (tmp_path / "interrupted.py").write_text(
        "import atexit, os, signal, sys, threading, time\n"
        "import tacit.cli.app as a, tacit.cli.main as m\n"
        "def interrupt(): os.kill(os.getpid(), signal.SIGINT)\n"
        "def run(*_, **__): interrupt(); time.sleep(5)\n"
        "a.app = run\n"
        f"{IN_SHUTDOWN[moment]}\n"
        "sys.exit(m.main())"
    )
    process = start([sys.executable, "-m", "interrupted"], cwd=tmp_path)
    error = process.communicate(timeout=600)[1]
    assert process.returncode == 130, error
    assert error in ("", f"tacit: {INTERRUPTED}\n")


def test_an_interrupted_fit_stays_charged_and_writes_nothing(stores, run):
    """A charge is never refunded: who interrupts cannot know what was already drawn."""
    run("ledger private --allow rho=1")
    rng = np.random.default_rng(0)
    tacit.EmbeddingStore.write("pool", np.abs(rng.normal(size=(1_000_000, 5))))
    command = [
        sys.executable,
        "-m",
        "tacit.cli.main",
        "fit",
        "public",
        "private",
        "--public",
        "pool",
        "--k",
        "2",
        "--d-min",
        "1",
        "--budget",
        "rho=0.5",
        "--out",
        "release",
    ]
    process = start(command)
    ledger = Ledger.beside("private", "private")
    interrupt_when(process, lambda: len(ledger.account().charges) == 1)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert not Path("release").exists()
    assert not [name for name in os.listdir() if name.endswith(".part")]


def test_help_is_light_and_complete():
    code = (
        "import sys; from tacit.cli.main import main; main(['--help']);heavy = {'numpy', 'sklearn',"
        " 'scipy', 'opendp', 'dp_accounting', 'pyarrow', 'pydantic', 'altair'};print('HEAVY',"
        " sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in run.stdout
    shown = " ".join(run.stdout.replace("│", " ").split())
    for verb, summary in VERBS.items():
        assert f"{verb} {summary[:30]}".replace("`", "") in shown


def test_predicting_from_a_command_loads_what_it_needs(stores, run):
    run("fit noisy-sum private --budget rho=0.5 --out release")
    np.save("rows.npy", np.eye(4, 5))
    code = (
        "import sys; from tacit.cli.main import main; main('predict release rows.npy --out"
        " labels.csv'.split());heavy = {'sklearn', 'numba', 'opendp', 'dp_accounting',"
        " 'scipy.stats', 'pyarrow', 'pandas', 'joblib'};print('HEAVY', sorted(heavy &"
        " set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "labels.csv: 4 rows\nHEAVY []\n"
    assert run("predict release rows.npy --out labels.parquet")[0] == 0
    labels = pyarrow.parquet.read_table("labels.parquet")["label"].to_pylist()
    written = Path("labels.csv").read_text()
    assert written == '"row","label"\n' + "".join(
        f'{row},"{label}"\n' for row, label in enumerate(labels)
    )


def test_published_names_are_understood_and_ours_are_kept(stores, run):
    promised = run("promise coinpress --budget rho=8")
    assert promised[0] == 0
    assert run("promise DPPL-Mean --budget rho=8") == promised
    status, out, _ = run("fit dppl-mean private --budget rho=8 --out release")
    assert status == 0
    assert "release: coinpress over 3 classes" in out
    status, out, _ = run("fit dppl_public private --public public --budget epsilon=2 --out other")
    assert status == 0
    assert "other: public over 3 classes" in out


def test_the_time_that_is_left_is_that_of_the_work_under_way(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(progress_display, "monotonic", lambda: now)
    report = progress_display.line_reporter()
    for start in (0.0, 1000.0):  # the same work twice: the second has its own start
        for done in range(10):
            now = start + 30.0 * done
            report("steps", done, 10)
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("tacit: steps: 9 of 10, about 30 s left") == 2


def test_the_package_runs_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "tacit", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == tacit.__version__


# naive Bayes divides by variances, which underflow in float16
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_teachers_by_name_measured_on_test_data(stores, run):
    line = (
        "fit pate private --public public --budget epsilon=30,delta=1e-5 --n-teachers 10 --teacher"
        " naive-bayes"
    )
    status, _, err = run(
        f"{line} --student logistic-regression --test test --folder run --out release"
    )
    assert (status, err) == (0, "")
    with Path("run/teachers.csv").open() as file:
        accuracies = [float(row["test_accuracy"]) for row in csv.DictReader(file)]
    test = EmbeddingStore.open("test")
    private, public = EmbeddingStore.open("private"), EmbeddingStore.open("public")
    model = tacit.PATE.of_flat(
        budget="epsilon=30,delta=1e-5", classes=CLASSES, n_teachers=10, teacher=GaussianNB()
    )
    model.fit(private.x, private.labels, public=public.x, test=(test.x, test.labels))
    np.testing.assert_allclose(model.votes_.accuracies, accuracies)
    assert run("evaluate release test")[0] == 0


@pytest.fixture
def pictures(run, tmp_path, monkeypatch):
    """Stores `private` and `public` that were imported from pictures, and the pictures of the
    first.
    """
    monkeypatch.chdir(tmp_path)
    pixels, y = (
        np.random.default_rng(0).integers(1, 255, (80, 8, 8), dtype=np.uint8),
        np.arange(80) % 2,
    )
    np.savez("private.npz", x=pixels[:60], y=y[:60])
    np.savez("public.npz", x=pixels[60:, None])
    assert (
        run("import private.npz --out private --classes 2")[1]
        == "private: 60 rows of width 64, 2 classes\n"
    )
    assert run("import public.npz --out public")[0] == 0
    return pixels[:60]


def test_imported_pictures_keep_their_shape(pictures, run):
    store = EmbeddingStore.open("private")
    assert store.card["shape"] == EmbeddingStore.open("public").card["shape"] == [1, 8, 8]
    np.testing.assert_allclose(store.x, pictures.reshape(60, 64) / 255, atol=3e-4)
    np.savez("last.npz", x=np.ones((5, 8, 8, 3), np.uint8))
    status, _, err = run("import last.npz --out last")
    assert (status, err.count("\n")) == (2, 1)
    assert not lacking(err, "(5, 8, 8, 3)", "channels", "x.transpose")


def test_networks_see_imported_pictures_in_their_shape(pictures, run):
    pytest.importorskip("torch", reason="networks need torch")
    line = (
        "fit pate private --public public --budget rho=100 --n-teachers 2 --teacher cnn"
        " --student cnn"
    )
    line += (
        " --aggregator gnmax --sigma 1 --teacher-training epochs=1 --student-training epochs=1"
        " --out release"
    )
    assert run(line)[0] == 0
    assert tacit.Release.load("release").decision.shape == (1, 8, 8)
    assert run("evaluate release private")[0] == 0
