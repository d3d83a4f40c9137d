"""Every bad input: one line that names value, rule and remedy, status 2, nothing left behind."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import CLASSES, rows
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.learners.methods import METHODS

FIT = "fit noisy-sum private --budget rho=0.5 --out release"


def refused(run, line, *words):
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    status, out, err = run(line)
    assert status == 2, err
    assert out == ""
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1, "more than one line"
    assert not lacking(err, *words)
    after = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert after == before, "something was written"
    return err


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("rho=-0.5", ("rho=-0.5", "positive")),
        ("rho=0", ("must be positive",)),
        ("rho=nan", ("'rho=nan'", "read")),
        ("rho=1e400", ("cannot be read",)),
        ("rho=1e-320", ("outside 1e-09 to 1e+09",)),
        ("epsilon=1,delta=-1", ("delta=-1.0", "0 and 1")),
        ("epsilon=1", ("epsilon=1,delta=1e-6", "approximate")),
        ("five", ("write epsilon=1 (pure)",)),
        ("mu=-1", ("mu=-1.0 must be positive",)),
        ("tpr=0.01@fpr=0.1", ("0 < fpr < tpr < 1",)),
    ],
)
@pytest.mark.parametrize("verb", ["fit noisy-sum private --out release", "promise noisy-sum"])
def test_budgets(stores, run, verb, budget, words):
    refused(run, f"{verb} --budget {budget}", *words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("promise noisy-sum --budget rho=1_0", ("'rho=1_0'", "read")),
        (
            "promise noisy-sum --budget rho=1 --delta 1_0e-7",
            ("--delta", "'1_0e-7'", "plain number"),
        ),
        ("promise public --budget epsilon=1 --k 1_0", ("k='1_0' must be",)),
        ("promise pate --budgets a=1_0,b=2", ("'1_0'", "group 'a'", "epsilon")),
        ("split private --out parts --n-public 1_0", ("--n-public", "'1_0'", "plain number")),
        (
            "votes v.npy --out o --classes 3 --delta 1e-5 --sigma 5 --budgets a=1_0 --shares a=1",
            ("a=1_0 cannot be read",),
        ),
        (
            "votes v.npy --out o --classes 3 --sigma 1_0 --budgets 1",
            ("--sigma", "'1_0'", "plain number"),
        ),
    ],
)
def test_numbers_are_read_in_plain_digits_only(stores, run, line, words):
    np.save("v.npy", np.zeros((5, 20), dtype=int))
    refused(run, line, *words)


def test_names_may_hold_digits_and_underscores(stores, run):
    Path("private").rename("2024_01")
    assert run("fit noisy-sum 2024_01 --budget rho=8 --out 2024_02 --name 1_0")[0] == 0
    assert run("inspect 2024_02")[0] == 0


def test_groups(stores, run):
    fit = "fit pate private --public public --out release"
    Path("groups.txt").write_text("a\n" * 3)
    refused(run, f"{fit} --budgets a=1 --groups groups.txt", "one group for each of")
    refused(run, f"{fit} --budgets a=1 --groups absent.txt", "absent.txt")
    refused(run, f"{fit} --budgets a=0 --groups groups.txt", "budget 0")
    refused(run, f"{fit} --budgets a=1", "groups= of each record")
    refused(run, f"{fit} --budgets a=1,a=2 --groups groups.txt", "budget")
    refused(run, f"{fit}", "--budget is missing")
    refused(run, f"{fit} --budget rho=0.5 --budgets a=1 --groups groups.txt", "are both given")
    refused(
        run,
        "fit noisy-sum private --out r --budget rho=1 --groups groups.txt",
        "--groups does not apply",
    )
    refused(run, f"{fit} --budget rho=1 --unit add-remove", "does not imply")


def test_teachers_and_students_that_cannot_be(stores, run):
    run("ledger private --allow rho=100 --unit replace")
    fit = "fit pate private --public public --budget epsilon=8,delta=1e-5 --out release"
    known = (
        "choose one of logistic-regression, random-forest, gradient-boosting, knn, naive-bayes,"
        " linear-svm, linear,"
    )
    refused(run, f"{fit} --teacher forest", "model 'forest' is unknown", known)
    refused(run, f"{fit} --student forest", "model 'forest' is unknown", known)
    refused(
        run,
        f"{fit} --student random-forest",
        "a release cannot hold",
        "LogisticRegression or a network by name",
    )
    refused(
        run,
        f"{fit} --test test",
        "--test test is for the tables in a folder; name one with --folder",
    )
    refused(run, f"{FIT} --test test", "--test does not apply to NoisySumPrototypes")
    folder = f"{fit} --n-teachers 10 --folder"
    for test, message in (
        ("public", "public holds no labels"),
        ("nowhere", "nowhere does not exist"),
    ):
        refused(run, f"{folder} run{test} --test {test}", message)
    assert "0 charges" in run("ledger private")[1]


def test_engines_of_teachers_that_cannot_be(stores, run):
    run("ledger private --allow rho=100 --unit replace")
    fit = (
        "fit pate private --public public --budget epsilon=30,delta=1e-5 --n-teachers 10 --out"
        " release"
    )
    refused(
        run, f"{fit} --engine spark", "engine='spark' is unknown; choose one of joblib, ray, slurm"
    )
    refused(
        run,
        f"{fit} --engine slurm",
        "needs folder=... (--folder), which all workers must see; pass it",
    )
    refused(run, f"{fit} --engine joblib --jobs 0", "jobs=0")
    refused(run, f"{fit} --engine joblib --folder /proc/run", "folder /proc/run cannot be made")
    status, _, err = run(f"{fit} --engine ray:127.0.0.1:1 --folder run")
    assert (status, err.count("\n")) == (2, 1)
    assert not lacking(err, "address='127.0.0.1:1'", "Ray") or "ray is not installed" in err
    assert run(f"{fit} --jobs 2 --folder other")[0] == 0
    assert run("inspect release")[0] == 0
    refused(
        run,
        f"{fit} --force --engine joblib --folder other --teacher naive-bayes",
        "work on other records",
    )
    assert "1 charge" in run("ledger private")[1]


def test_folders_and_votes_of_odd_kinds(stores, run):
    fit = "fit pate private --public public --budget epsilon=8,delta=1e-5 --n-teachers 10"
    refused(run, f"{fit} --out release --folder release", "lie in one another")
    refused(run, f"{fit} --out release --folder release/run", "lie in one another")
    refused(run, f"{fit} --out release --folder 5", "as ./5")
    refused(run, f"{fit} --out release --seed -1", "seed=-1")
    Path("cut.npy").write_bytes(b"PK\x03\x04 cut")
    refused(run, "votes cut.npy --out labels --sigma 10 --aggregator gnmax", "not a .npy array")
    np.save("votes.npy", np.zeros((3, 4), dtype=int))
    for copies in ("a=nan,b=1", "a=inf,b=1"):
        refused(
            run,
            "votes votes.npy --out labels --sigma 10 --aggregator gnmax --collector upsampling"
            f" --budgets a=1,b=2 --shares a=.5,b=.5 --copies {copies}",
            "copies of group",
        )


def test_splits_that_ask_too_much(stores, run):
    refused(run, "split private --n-public 1000 --out parts", "too few for n_public=1000")
    refused(run, "split private --n-public -1 --out parts", "n_public=-1")
    refused(run, "split nowhere --n-public 5 --out parts", "nowhere does not exist")
    refused(run, "split private --n-public 5 --out private", "private")


def test_subsets_that_cannot_be(stores, run):
    for ratio in ("0.5", "nan", "inf", "-3"):
        refused(
            run,
            f"subset private --imbalance {ratio} --out s",
            "--imbalance",
            "must be a finite ratio >= 1",
        )
    refused(run, "subset private --imbalance ten --out s", "--imbalance")
    refused(run, "subset private --out s", "--imbalance or --rows")
    refused(run, "subset private --imbalance 10 --seed -1 --out s", "--seed -1 must be 0 or more")
    for n in (0, 91):
        refused(
            run,
            f"subset private --imbalance 10 --rows {n} --out s",
            f"--rows {n} must be from 1 to the 90 records",
        )
    refused(run, "subset public --imbalance 10 --out s", "public holds no labels")
    refused(run, "subset nowhere --imbalance 10 --out s", "nowhere does not exist")
    refused(
        run,
        "subset private --imbalance 10 --out private --force",
        "--out private is the data itself",
    )
    refused(
        run,
        "subset private --imbalance 10 --out private/inner",
        "--out private/inner is the data itself, or lies",
    )
    refused(run, "subset private --imbalance 10 --out test", "test")


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_rows_that_are_not_finite_or_all_zeros(stores, run, value):
    x, y = rows(np.random.default_rng(5), 9)
    x[4] = value
    np.savez("bad.npz", x=x, y=y)
    np.save("bad_x.npy", x)
    np.save("bad_y.npy", y)
    fault = "row 4 is all zeros" if value == 0 else "row 4 is not finite"
    refused(run, "fit noisy-sum bad.npz --classes 3 --budget rho=1 --out release", fault)
    refused(run, "import bad.npz --out store", fault)
    refused(run, "import bad_x.npy bad_y.npy --out store", fault)
    refused(run, "fit public private --public bad_x.npy --budget rho=1 --out release", fault)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_rows_spoiled_inside_a_store(stores, run, value):
    shard = np.load("private/shards/00000.npy")
    shard[7] = value
    np.save("private/shards/00000.npy", shard)
    refused(run, FIT, "row 7 is")


def test_labels_outside_the_class_list(stores, run):
    Path("classes.txt").write_text("ant\nbee\n")
    refused(
        run,
        FIT + " --classes classes.txt",
        "row 2 has label 'cow'",
        "2 classes (ant, bee)",
        "complete the list",
    )
    x, y = rows(np.random.default_rng(0), 9)
    np.savez("data.npz", x=x, y=y)
    refused(run, "import data.npz --classes 2 --out store", "row 2 has label 2", "2 classes")
    refused(run, FIT + " --classes none.txt", "neither a number nor a readable text file")
    Path("classes.txt").write_text("")
    refused(run, FIT + " --classes classes.txt", "declare at least one class")


def test_public_data_that_do_not_fit(stores, run):
    fit = "fit public private --budget epsilon=1 --out release"
    refused(run, fit, "--public is missing", "give --public STORE")
    refused(run, fit + " --public public --k 41", "k=41", "40 public rows")
    refused(run, fit + " --public public --k -1", "k=-1")
    np.save("narrow.npy", np.ones((9, 4)))
    refused(run, fit + " --public narrow.npy", "(9, 4)", "5 columns")
    refused(run, FIT + " --public narrow.npy", "(9, 4)", "5 columns")


def test_missing_and_damaged_stores(stores, run):
    refused(run, FIT.replace("private", "nowhere"), "nowhere does not exist")
    shard = Path("private/shards/00000.npy")
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-10])
    refused(run, FIT, "shards/00000.npy has", "restore it from a copy")
    shard.unlink()
    refused(run, FIT, "is missing from the store")
    shard.write_bytes(whole)
    manifest = Path("private/manifest.json")
    manifest.write_text(manifest.read_text()[:100])
    refused(run, FIT, "manifest.json is truncated")
    shutil.rmtree("private/shards")
    refused(run, FIT, "manifest.json")
    refused(run, "ledger nowhere --allow rho=1", "nowhere does not exist")
    Path("cut.npz").write_bytes(b"PK\x03\x04 cut")
    refused(run, "import cut.npz --out store", "cut.npz is truncated")


def test_facts_and_names_are_checked_before_anything_is_charged(stores, run):
    run("ledger private --allow rho=1")
    long = "x" * 250
    refused(run, FIT.replace("--out release", f"--out {long}"), "cannot be written")
    refused(run, FIT + " --description " + "x" * 5000, "description")
    refused(run, FIT + " --curator a\u202eb", "curator")
    refused(run, FIT + " --noise research --allow-research --seed -3", "random_state=-3")
    refused(
        run,
        "fit public private --public private --budget rho=0.5 --out release",
        "is the private data",
    )
    for options in (
        "--steps 0.5",
        "--steps ('a',)",
        "--radius abc",
        "--counts abc",
        "--counts {}",
        "--pooling 0.5",
    ):
        refused(
            run,
            f"fit coinpress private --budget rho=0.5 --out release {options}",
            options.split()[0][2:] + "=",
        )
    for options in (
        "--d-min nan",
        "--d-min abc",
        "--d-min []",
        "--d-max 1j",
        "--k banana",
        "--k -3",
        "--d-min 7",
    ):
        refused(run, f"promise public --budget rho=0.5 {options}")
    assert "0 charges" in run("ledger private")[1]


def test_odd_class_lists(stores, run):
    for text in ("²", "0", "99999999999999999999"):
        refused(run, FIT + f" --classes {text}")
    Path("classes.txt").write_text("ant\nbe\u202ee\n")
    refused(run, FIT + " --classes classes.txt", "printable")
    Path("classes.txt").write_text("9" * 5000)
    refused(run, FIT + " --classes classes.txt", "printable")
    Path("classes.txt").write_bytes(b"\xff\xfe")
    refused(run, FIT + " --classes classes.txt", "neither a number nor a readable text file")


@pytest.mark.parametrize("labels", [[0, 7], [0, -1], [0.5, 1.0], [0, None], [0]])
def test_labels_spoiled_inside_a_store(stores, run, labels):
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = rows(np.random.default_rng(0), 2)
    store = EmbeddingStore.write("spoiled", x, y, classes=3)
    pq.write_table(pa.table({"label": labels}), "new.parquet")
    size = (store.folder / "metadata.parquet").stat().st_size
    Path("spoiled/metadata.parquet").write_bytes(Path("new.parquet").read_bytes())
    manifest = Path("spoiled/manifest.json")
    new_size = Path("new.parquet").stat().st_size
    manifest.write_text(manifest.read_text().replace(f'"bytes": {size}', f'"bytes": {new_size}'))
    refused(run, FIT.replace("private", "spoiled"), "spoiled/metadata.parquet")


def test_what_is_neither_file_nor_folder(stores, run):
    os.mkfifo("pipe")
    Path("data.fifo").symlink_to("pipe")
    assert run(FIT.replace("private", "pipe"))[0] == 2
    assert run("ledger private --allow rho=1 --file /dev/full")[0] == 2


def test_unlabelled_data(stores, run):
    refused(run, FIT.replace("private", "public"), "public holds no labels")


def test_outputs_that_cannot_be_written(stores, run):
    Path("release").mkdir()
    Path("release/thesis.txt").write_text("years of work")
    Path("file").write_text("x")
    refused(run, FIT, "release exists", "--force")
    refused(run, FIT + " --force", "not replaced")
    refused(run, FIT.replace("--out release", "--out none/release"), "none is not a folder")
    refused(
        run, FIT.replace("--out release", "--out /proc/release"), "/proc/release cannot be written"
    )
    refused(run, FIT.replace("--out release", "--out file/release"), "is not a folder")
    refused(run, "import private --out test", "test exists")
    refused(run, "demo --out test", "test exists")


def test_predictions_and_evaluations_of_the_wrong_kind(stores, run):
    assert run(FIT)[0] == 0
    np.save("narrow.npy", np.ones((3, 4)))
    refused(run, "predict release narrow.npy --out labels.parquet", "(3, 4)", "(n, 5)")
    refused(run, "predict release test --out labels.txt", "must end in .parquet or .csv")
    refused(run, "predict release test --out none/labels.csv", "none is not a folder")
    refused(run, "evaluate release public", "public holds no labels")
    refused(run, "evaluate nowhere test", "nowhere")
    refused(
        run,
        "evaluate test release",
        "test is an embedding store and not a release; give the folder of a release",
    )
    refused(run, "inspect private", "private is an embedding store and not a release")
    Path("several").mkdir()
    shutil.copytree("test", "several/test")
    refused(
        run, "evaluate several release", "several is a folder of embedding stores and not a release"
    )
    x, _ = rows(np.random.default_rng(0), 9)
    EmbeddingStore.write("others", x, np.array(["yak"] * 9), classes=["yak"])
    refused(run, "evaluate release others", "row 0 has label 'yak'", "not a class of the release")
    card = Path("release/CARD.md")
    card.write_text(card.read_text().replace("rho", "tho"))
    for verb in (
        "inspect release",
        "evaluate release test",
        "predict release test --out labels.csv",
    ):
        refused(run, verb, "CARD.md does not say")


def test_words_that_are_not_known(stores, run):
    refused(run, "fit magic private --budget rho=1 --out r", "'magic'", ", ".join(METHODS))
    refused(run, "promise magic --budget rho=1", "'magic'")
    refused(
        run,
        "promise uGNMax --budget rho=1",
        "'uGNMax'",
        "did you mean 'pate --collector upsampling'?",
    )
    refused(run, "fit top-k private --budget rho=1 --out r", "did you mean 'public --k 5'?")
    refused(run, FIT + " --speed 3", "--speed is not an option of noisy-sum")
    refused(
        run,
        "fit coinpress private --budget rho=1 --out r --k 2",
        "--k is not",
        "--counts",
        "--pooling",
    )
    refused(run, FIT + " --noise fast", "fast")
    refused(run, FIT + " --unit person", "--unit", "add-remove")
    refused(run, FIT + " --seed x", "--seed")
    refused(run, "conjure", "conjure")
    refused(run, "fit noisy-sum private --out r", "--budget")
    refused(run, "fit noisy-sum private --budget rho=1", "--out")
    refused(run, "import --out store", "no files")
    refused(
        run, f"import private --out store --classes {len(CLASSES) - 1}", "not one of the 2 classes"
    )


def test_paths_that_are_no_text_are_printed(stores, run):
    np.savez("new.npz", x=np.eye(3))
    store = os.fsdecode(b"caf\xe9")
    assert run(f"import new.npz --out {store} --identity cafe")[:2] == (
        0, "caf\\udce9: 3 rows of width 3, no labels, no declared classes\n",
    )  # fmt: skip
    assert r"caf\udce9" in run(f"predict {store} {store} --out labels.csv")[2]
    assert run(f"ledger {store} --allow rho=1")[0] == 0
    refused(run, f"fit noisy-sum {store} --budget rho=1 --out r", r"caf\udce9 holds no labels")


def test_warnings_of_libraries_stay_within(run, monkeypatch, tmp_path):
    import warnings

    from tacit.cli import common

    def read(text):
        warnings.warn("old header", UserWarning, stacklevel=1)
        np.log(np.zeros(1))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(common, "read_classes", read)
    monkeypatch.setattr("tacit.cli.import_.read_classes", read)
    assert not lacking(run("import nothing.npz --out s")[2], "nothing.npz", "exist")


def test_votes_by_mistake_make_no_classes(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", np.array([[0, 2**31]]))
    refused(
        run,
        "votes votes.npy --out labels --sigma 10 --aggregator gnmax",
        "a vote is for class 2147483648",
    )
    whole = Path("votes.npy").read_bytes()
    Path("big.npy").write_bytes(
        whole.replace(b"(1, 2), }            ", b"(1099511627776, 2), }"[:21].ljust(18))
    )
    refused(run, "votes big.npy --out labels --sigma 10 --aggregator gnmax", "its header states")
