"""`tacit synthesize`: the store that it writes, its mark on copies, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.test_bad_input import refused
from messages import lacking
from tacit.data.embeddings import EmbeddingStore


@pytest.fixture
def here(stores, run):
    assert run("fit auto private --public public --budget rho=2 --out release")[0] == 0
    return stores


def written(folder):
    """The bytes of all files of a store."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def test_the_same_command_and_seed_give_the_same_bytes(here, run):
    line = "synthesize release --rows 31 --out drawn --force"
    assert run(line)[0] == 0
    first = written("drawn")
    assert run(line)[0] == 0
    assert written("drawn") == first
    assert run(f"{line} --seed 1")[0] == 0
    assert written("drawn") != first


def test_the_store_has_the_drawn_rows_and_the_statement_of_the_release(here, run):
    status, out, err = run("synthesize release --rows 31 --out drawn --seed 4")
    assert (status, err) == (0, "")
    assert not lacking(out, "drawn: 31 rows")
    assert "norm 1:" in out

    release = tacit.Release.load("release")
    store = EmbeddingStore.open("drawn")
    X, y = release.sample(31, random_state=4)
    assert np.array_equal(store.x, X)
    assert store.labels.tolist() == y.tolist()
    assert store.classes_declared
    assert not store.declared_public

    facts = store.card["synthetic"]
    assert facts["statement"] == release.guarantee.statement()
    assert (facts["release"], facts["sha256"]) == ("release", release.sha256)
    assert (facts["rows"], facts["seed"], facts["released_sizes"]) == (31, 4, False)


@pytest.mark.filterwarnings("default::tacit.PrivacyLeakWarning")
def test_copies_are_no_private_data_either(here, run):
    assert run("synthesize release --rows 40 --out drawn")[0] == 0
    assert run("import drawn --out copy --identity other")[0] == 0
    assert run("subset drawn --rows 30 --out few")[0] == 0
    assert run("split drawn --n-public 10 --out parts")[0] == 0
    for copy in ("drawn", "copy", "few", "parts/private"):
        words = (copy, "synthetic", "'release'", "public rows")
        refused(run, f"fit noisy-sum {copy} --budget rho=2 --out other", *words)
        refused(run, f"summarise {copy} --part A --budget rho=2 --out other", *words)
        refused(run, f"ledger {copy} --allow rho=1", *words)

    plan = {
        "name": "synthetic",
        "data": [{"name": "copy", "train": "copy", "test": "test"}],
        "learners": [{"name": "sums", "method": "noisy-sum"}],
        "budgets": ["rho=1"],
    }
    Path("plan.yaml").write_text(json.dumps(plan), encoding="utf-8")
    refused(run, "sweep plan.yaml --out runs", "copy", "synthetic")

    # nor a test set, whatever is declared
    assert run("import drawn --out open --declare-public")[0] == 0
    refused(run, "evaluate release open --record", "open", "synthetic", "--record")

    # public rows it may be, with a warning, and data of other models
    status, _, err = run("fit auto private --public copy --budget rho=2 --out other")
    assert status == 0
    assert not lacking(err, "warning", "synthetic", "'release'", "costs of both releases add")
    assert run("summarise private --public copy --part A --budget rho=2 --out s")[0] == 0
    (source,) = tacit.Summary.load("s").recipe.sources
    assert (source.what, source.release) == ("centre", "release")
    assert run("summarise private --part B --budget rho=2 --out b")[0] == 0
    assert run("summarise private --part C --budget rho=2 --out c")[0] == 0
    status, out, _ = run("combine b c --public copy --without C --out r")
    assert status == 0
    assert not lacking(out, "copy: its rows were computed from 'release'", "nothing shows")
    assert run("evaluate release drawn")[0] == 0


def test_nearest_rows_are_public_rows_with_their_names(here, run):
    public = EmbeddingStore.open("public")
    names = [f"text {i}" for i in range(public.rows)]
    origin = {"row": np.arange(5, 40), "record": names[5:]}
    EmbeddingStore.write("named", public.x[5:], metadata=origin)
    line = "synthesize release --rows 60 --nearest named --private private --out near"
    status, out, _ = run(line)
    assert status == 0

    near = EmbeddingStore.open("near")
    assert not lacking(out, f"near: {near.rows} rows of named", "60 rows drawn")
    rows = near.origin.rows
    assert len(set(rows.tolist())) == len(rows) > 3
    assert near.origin.names.tolist() == [f"text {row}" for row in rows]
    assert np.array_equal(near.x, public.x[rows])
    # a public row may be nearest to a draw of another class than its own
    assert np.mean(near.labels == tacit.Release.load("release").predict(near.x)) > 0.5
    facts = near.card["synthetic"]["nearest"]
    assert facts["hash"] == EmbeddingStore.open("named").content_hash
    refused(run, "fit noisy-sum near --budget rho=2 --out other", "near", "synthetic")


def test_covered_rows_are_not_taken_as_public(here, run):
    assert run("ledger public --allow rho=1")[0] == 0
    Path("public.ledger.jsonl").rename("elsewhere.jsonl")
    refused(run, "synthesize release --rows 9 --nearest public --out near", "public", "ledger")
    refused(
        run,
        "synthesize release --rows 9 --nearest private --private private --out near",
        "private",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--rows 0", ["--rows 0", "from 1 to"]),
        ("--rows -3", ["--rows -3", "from 1 to"]),
        (f"--rows {10**12}", [f"--rows {10**12}", "another seed"]),
        ("--rows 9 --seed -1", ["--seed -1"]),
        ("--rows 9 --out public", ["public", "--force"]),
        ("--rows 9 --out release/drawn", ["inside the release"]),
        ("--rows 9 --out none/drawn", ["none"]),
        ("--rows 9 --private private", ["--private private", "--nearest"]),
        ("--rows 9 --nearest public --out public --force", ["--out public"]),
    ],
)
def test_bad_options_are_refused(here, run, options, words):
    out = "" if "--out" in options else " --out drawn"
    refused(run, f"synthesize release {options}{out}", *words)


def test_releases_of_other_methods_and_for_research_are_refused(here, run):
    assert run("fit noisy-sum private --budget rho=2 --out sums")[0] == 0
    refused(run, "synthesize sums --rows 9 --out drawn", "sums", "no posterior", "auto")

    line = "fit auto private --public public --budget rho=2 --noise research --seed 0"
    assert run(f"{line} --allow-research --out seeded")[0] == 0
    line = "synthesize seeded --rows 9 --out drawn"
    refused(run, line, "seeded", "NOT FOR RELEASE", "--allow-research")
    assert run(f"{line} --allow-research")[0] == 0
    assert EmbeddingStore.open("drawn").card["synthetic"]["stamp"] == "NOT FOR RELEASE"
