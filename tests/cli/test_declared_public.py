"""Figures go into a card only if they are of rows that were declared public and that no ledger
covers.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import CLASSES, rows
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data

FIT = "fit noisy-sum private --budget rho=2 --out release"


def utility(folder="release"):
    return json.loads(Path(folder, "release.json").read_text())["utility"]


def refused(run, line):
    status, out, err = run(line)
    assert (status, out) == (2, "")
    return err


@pytest.fixture
def fitted(stores, run):
    """Stores and a release; the store `unstated` and the file `rows.npz` hold rows that nobody
    declared public.
    """
    x, y = rows(np.random.default_rng(1), 60)
    EmbeddingStore.write("unstated", x, y, classes=CLASSES, labels="index")
    np.savez("rows.npz", x=x, y=np.array(CLASSES)[y])
    assert run(FIT)[0] == 0
    return stores


def test_figures_on_the_training_store_are_not_recorded(fitted, run):
    err = refused(run, "evaluate release private --record")
    assert not lacking(err, "private", "declared public", "figures")
    assert "leave --record out" in err
    assert utility() == "not stated"
    assert run("evaluate release private")[0] == 0


def test_a_store_states_whether_its_rows_are_public(fitted, run):
    for option in ("", " --public-test"):
        err = refused(run, f"evaluate release unstated --record{option}")
        assert not lacking(err, "tacit import unstated --out COPY")
    assert utility() == "not stated"
    assert run("import unstated --out stated --declare-public")[0] == 0
    assert run("evaluate release stated --record")[0] == 0
    assert (utility()["rows"], utility()["protection"]) == (60, "public test set")


def test_a_plain_file_needs_the_statement(fitted, run):
    err = refused(run, "evaluate release rows.npz --record")
    assert not lacking(err, "--record", "--public-test")
    assert run("evaluate release rows.npz --record --public-test")[0] == 0
    assert utility()["protection"] == "public test set"


@pytest.mark.parametrize("data", ["rows.npz --public-test", "test"])
def test_rows_that_a_ledger_covers_are_private_whatever_was_declared(fitted, run, data):
    name = data.split()[0]
    assert run(f"ledger {name} --allow rho=1")[0] == 0
    err = refused(run, f"evaluate release {data} --record")
    assert f"{name} holds private rows: " in err
    assert not lacking(err, "--record", "recorded", "pay for figures with --budget")
    assert utility() == "not stated"
    assert run(f"evaluate release {name}")[0] == 0


def test_figures_on_rows_that_are_not_declared_public_are_stamped(fitted, run):
    stamp = "outside the guarantee: these rows are not declared public"
    for name in ("private", "unstated", "rows.npz"):
        line = run(f"evaluate release {name}")[1].splitlines()[1]
        assert stamp in line
        assert "--budget rho=.05 pays for figures" in line
        assert json.loads(run(f"evaluate release {name} --json")[1])["outside_guarantee"] is True

    assert stamp not in run("evaluate release test")[1]
    assert json.loads(run("evaluate release test --json")[1])["outside_guarantee"] is False
    assert stamp not in run("evaluate release rows.npz --record --public-test")[1]

    # a ledger outweighs a declaration
    assert run("ledger test --allow rho=1")[0] == 0
    assert stamp in run("evaluate release test")[1]


def test_rows_that_a_ledger_covers_cannot_be_declared_public(fitted, run):
    run("ledger private --allow rho=1")
    for line in (
        "import private --out copy --declare-public",
        "split private --n-public 30 --out copy --declare-public",
        "subset private --imbalance 3 --out copy --declare-public",
    ):
        assert not lacking(refused(run, line), "--declare-public", "private")
        assert not Path("copy").exists()


def test_parts_and_subsets_of_a_public_store_are_public(stores, run):
    for line in (
        "import test --out copy",
        "split test --n-public 20 --n-test 20 --out parts",
        "subset test --imbalance 3 --out part",
    ):
        assert run(line)[0] == 0
    for name in ("copy", "parts/private", "parts/public", "parts/test", "part"):
        assert EmbeddingStore.open(name).declared_public, name


def test_the_parts_that_split_declares(stores, run):
    assert run("split private --n-public 20 --n-test 20 --out parts --declare-public")[0] == 0
    stated = {
        name: EmbeddingStore.open(f"parts/{name}").declared_public
        for name in ("private", "public", "test")
    }
    assert stated == {"private": False, "public": True, "test": True}
    assert run("subset private --imbalance 3 --out part --declare-public")[0] == 0
    assert EmbeddingStore.open("part").declared_public
    assert "declared public" in repr(EmbeddingStore.open("part"))


def test_what_is_not_declared_is_not_public(stores, run):
    """The manifest of such a store is that of earlier versions."""
    for line in (
        "import private --out copy",
        "split private --n-public 20 --n-test 20 --out parts",
    ):
        assert run(line)[0] == 0
    for name in ("private", "copy", "parts/private", "parts/public", "parts/test"):
        assert not EmbeddingStore.open(name).declared_public
        assert "declared_public" not in Path(name, "manifest.json").read_text()


def test_encoded_rows_may_be_declared_public(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 8), dtype=np.uint8)
    np.savez("pictures.npz", x=pixels, y=np.arange(8) % 2)
    assert run("encode pictures.npz --encoder edges:8 --out stated --declare-public")[0] == 0
    assert run("encode pictures.npz --encoder edges:8 --out unstated")[0] == 0
    assert EmbeddingStore.open("stated").declared_public
    assert not EmbeddingStore.open("unstated").declared_public


def test_ids_beside_a_store_leave_its_statement(stores):
    Path("ids.txt").write_text("".join(f"{number}\n" for number in range(60)))
    assert read_data("test", persons="ids.txt").declared_public
    Path("ids.txt").write_text("".join(f"{number}\n" for number in range(90)))
    assert not read_data("private", persons="ids.txt").declared_public
