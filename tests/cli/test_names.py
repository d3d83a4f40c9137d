"""`--names`: class names from stores and files, for methods that take them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tacit
from messages import lacking
from named_learner import Named
from tacit.learners.common.overlap import OVERLAP
from tacit.learners.methods import METHODS

ROWS = np.eye(3, 5) * 2


@pytest.fixture
def named(stores, monkeypatch):
    """Stores, and a method that takes names."""
    monkeypatch.setitem(METHODS, "noisy-sum", "named_learner:Named")
    monkeypatch.setattr(Named, "seen", None)
    card = {"encoder": {"name": "some:text"}, "names": {"templates": ["{}", "a {}"]}}
    tacit.EmbeddingStore.write("words", ROWS[::-1], ["cow", "bee", "ant"], card=card)
    return stores


FIT = "fit noisy-sum private --budget rho=1 --out release"
ITEM = "public_inputs"


def card_of(release):
    document = json.loads((release / "release.json").read_text())
    return document[ITEM]["class_names"], (release / "CARD.md").read_text()


def test_names_of_a_store_are_matched_by_label_and_stated(named, run):
    status, out, err = run(f"{FIT} --names words")
    assert status == 0, err
    assert not lacking(out, "Class names", "cost nothing", "3 rows", "words")
    assert Named.seen.tolist() == np.eye(3, 5).tolist()
    facts, card = card_of(named / "release")
    premise = (
        "they follow from the task's description and cost nothing; if any came from private records"
    )
    assert facts.pop("premise").startswith(premise)
    assert facts == {
        "rows": 3,
        "name": "words",
        "hash": tacit.EmbeddingStore.open("words").content_hash,
        "encoder": "some:text",
        "templates": ["{}", "a {}"],
    }
    assert "rows = 3, name = words" in card
    assert premise in card
    assert run("inspect release")[0] == 0


def test_names_cost_nothing(named, run):
    assert (
        run(f"{FIT} --names words")[0]
        == run("fit noisy-sum private --budget rho=1 --out plain")[0]
        == 0
    )
    with_names, without = (tacit.Release.load(name) for name in ("release", "plain"))
    assert with_names.guarantee == replace(without.guarantee, unprotected=(OVERLAP,))
    assert (card_of(named / "plain")[0], "- class names: none" in card_of(named / "plain")[1]) == (
        "none",
        True,
    )
    assert not lacking(card_of(named / "plain")[1], "premise", "private record", "public rows")


def test_the_names_method_takes_rows_without_labels(stores, run):
    tacit.EmbeddingStore.write("words", ROWS, ["ant", "bee", "cow"])
    Path("classes.txt").write_text("ant\nbee\ncow\n")
    status, _, err = run(
        "fit names public --classes classes.txt --names words --budget rho=1 --out release"
    )
    assert status == 0, err
    assert tacit.Release.load("release").guarantee.epsilon(0) == 0
    assert run("predict release test --out labels.csv")[0] == 0
    assert (
        "need a declared class list"
        in run("fit names public --names words --budget rho=1 --out other")[2]
    )


def test_names_that_the_store_carries_are_used_unless_left_out(named, run):
    assert run("import private --names words --out carrying")[0] == 0
    status, out, _ = run("fit noisy-sum carrying --budget rho=1 --out release")
    assert status == 0
    assert not lacking(out, "Class names", "cost nothing", "3 rows", "carrying")
    assert Named.seen.tolist() == np.eye(3, 5).tolist()
    assert card_of(named / "release")[0]["encoder"] == "some:text"
    Named.seen = None
    status, out, _ = run("fit noisy-sum carrying --names none --budget rho=1 --out left-out")
    assert (status, Named.seen) == (0, None)
    assert "names" not in out
    assert card_of(named / "left-out")[0] == "none"
    status, _, err = run("fit least-squares carrying --budget rho=1 --out other")
    assert status == 0, err  # a method without names
    (named / "fewer.txt").write_text("ant\nbee\ncow\ndog\n")
    status, _, err = run("fit noisy-sum carrying --classes fewer.txt --budget rho=1 --out refused")
    assert status == 2
    assert not lacking(err, "carrying", "'dog'")
    assert run("import carrying --names none --out dropped")[0] == 0
    assert tacit.EmbeddingStore.open("dropped").names is None


def test_a_file_without_labels_follows_the_class_list(named, run):
    np.save("rows.npy", ROWS)
    assert run(f"{FIT} --names rows.npy")[0] == 0
    assert Named.seen.tolist() == np.eye(3, 5).tolist()
    assert card_of(named / "release")[0]["name"] == "rows"
    np.savez("several.npz", x=np.concatenate([ROWS, ROWS]), y=["ant", "bee", "cow"] * 2)
    status, out, _ = run(f"{FIT} --force --names several.npz")
    assert status == 0
    assert "6 rows, of several.npz" in out


def refused(run, line):
    status, out, err = run(line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err


def test_names_that_are_refused(named, run):
    assert not lacking(
        refused(run, "fit least-squares private --names words --budget rho=1 --out release"),
        "--names",
        "least-squares",
    )
    assert not lacking(
        refused(run, f"{FIT} --names private"), "--names private is the private data", "public"
    )
    assert run("subset private --imbalance 2 --out few")[0] == 0
    assert not lacking(refused(run, f"{FIT} --names few"), "--names few", "private", "same records")
    whole = "fit noisy-sum few --budget rho=1 --out release --names private"
    assert not lacking(refused(run, whole), "--names private", "few", "same records")
    shutil.copytree("private", "copy")
    assert not lacking(
        refused(run, f"{FIT} --names copy"), "--names copy", "private", "same records"
    )
    np.save("rows.npy", ROWS[:2])
    assert not lacking(
        refused(run, f"{FIT} --names rows.npy"), "--names rows.npy", "2 rows", "3 classes"
    )
    np.save("rows.npy", np.ones((3, 4)))
    assert not lacking(
        refused(run, f"{FIT} --names rows.npy"), "rows.npy", "4 columns", "(3, 4)", "5 columns"
    )
    assert "gone does not exist" in refused(run, f"{FIT} --names gone")
    Path("words.txt").write_text("ant\nbee\ncow\n", encoding="utf-8")
    assert not lacking(
        refused(run, f"{FIT} --names words.txt"),
        "words",
        "--names",
        "tacit encode --texts words.txt",
    )
    tacit.EmbeddingStore.write("bees", ROWS[:2], ["ant", "bee"])
    assert not lacking(refused(run, f"{FIT} --names bees"), "--names bees", "'cow'")
    tacit.EmbeddingStore.write("dogs", ROWS, ["ant", "bee", "dog"])
    assert not lacking(refused(run, f"{FIT} --names dogs"), "--names dogs", "'dog'")
    tacit.EmbeddingStore.write("derived", np.ones((3, 5)), ["ant", "bee", "cow"])
    line = "fit noisy-sum derived --budget rho=1 --out release --names words"
    assert not lacking(refused(run, line), "--names words", "declared")
    card = {
        "names": {
            "through": {"name": "p", "hash": tacit.EmbeddingStore.open("private").content_hash}
        }
    }
    tacit.EmbeddingStore.write("leaky", ROWS, ["ant", "bee", "cow"], card=card)
    assert not lacking(refused(run, f"{FIT} --names leaky"), "--names leaky", "private", "public")
    card = {
        "names": {
            "through": {
                "name": tacit.EmbeddingStore.open("private").identity,
                "hash": "of more rows",
            }
        }
    }
    tacit.EmbeddingStore.write("leaking", ROWS, ["ant", "bee", "cow"], card=card)
    assert not lacking(refused(run, f"{FIT} --names leaking"), "--names leaking", "private")
    assert not (named / "release").exists()
    assert run("promise noisy-sum --budget rho=1 --names words")[0] == 0
    assert not lacking(
        refused(run, "promise newton --budget rho=1 --names words"), "--names", "newton"
    )


def test_another_encoder_is_warned_of(named, run):
    rng = np.random.default_rng(0)
    for name, weights in (("images", "a"), ("texts", "b")):
        card = {"encoder": {"name": name, "weights_sha256": weights}}
        labels = ["ant", "bee", "cow"] * 4
        tacit.EmbeddingStore.write(
            name, rng.normal(size=(12, 5)), labels, classes=["ant", "bee", "cow"], card=card
        )
    status, _, err = run("fit noisy-sum images --names texts --budget rho=1 --out release")
    assert status == 0
    assert not lacking(err, "--names texts", "images", "weights")


def test_private_records_among_carried_names_are_found(named, run):
    private = tacit.EmbeddingStore.open("private")
    tacit.EmbeddingStore.write(
        "leaky", private.x, private.labels, classes=private.classes, names=private.x[:3]
    )
    status, out, _ = run("overlap leaky --out pairs.csv")
    assert status == 0
    assert out.startswith("90 private records: 3 match a row of the class names that leaky")
    lines = (named / "pairs.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == [
        f"{n},{n},class name" for n in range(3)
    ]
    assert not lacking(refused(run, "overlap private"), "private", "class names")
    assert not lacking(refused(run, "overlap private private"), "private data")
    np.save("words.npy", np.asarray(tacit.EmbeddingStore.open("words").x))
    kept = (named / "words.npy").read_bytes()
    assert not lacking(
        refused(run, "overlap private words.npy --out words.npy --force"),
        "--out words.npy",
        "compared",
    )
    assert (named / "words.npy").read_bytes() == kept
    status, out, _ = run("overlap private words")
    assert out.startswith("90 private records: contents not compared (no hashes stored); ")
    assert "class names" not in out
