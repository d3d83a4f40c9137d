"""`tacit label-public`: the folder that it writes, what it refuses, and its check."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.test_bad_input import refused
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.releases.public_labels import PublicLabels
from tacit.releases.release import Release

FILES = ["CARD.md", "labels.csv", "labels.json", "release.json"]


@pytest.fixture
def here(stores, run):
    assert run("fit noisy-sum private --budget rho=2 --out release")[0] == 0
    return stores


def test_it_writes_labels_that_are_checked_and_joined(here, run):
    status, out, err = run(
        "label-public release public --at-least .7 --out labelled --private private --curator Ada"
    )
    assert (status, err) == (0, "")
    assert sorted(path.name for path in Path("labelled").iterdir()) == FILES
    labels = PublicLabels.load("labelled").verify()
    selection = labels.document.selection
    assert 0 < selection.left_out < 40
    assert not lacking(out, f"{selection.labelled} of 40", f"{selection.left_out}", "0.7")
    assert labels.document.product.curator == "Ada"
    assert labels.document.pool.declared_public == "not stated"

    store = EmbeddingStore.open("public")
    X, y = labels.join(store)
    assert np.array_equal(y, Release.load("release").predict(X))
    # and any method learns from them
    EmbeddingStore.write("for_others", X, y, classes=["ant", "bee", "cow"])
    assert run("fit noisy-sum for_others --budget rho=2 --out other")[0] == 0


def test_inspect_checks_labels_and_prints_their_card(here, run):
    assert run("label-public release test --out labelled --date 2026-01-02")[0] == 0
    status, out, _ = run("inspect labelled")
    assert status == 0
    assert out.startswith("labelled: verified; ")
    assert "not signed" in out.splitlines()[1]
    assert Path("labelled/CARD.md").read_text(encoding="utf-8") in out
    assert "- labels: not used\n" in out
    assert "- declared public: by the owner of the store\n" in out

    printed = json.loads(run("inspect labelled --json")[1])
    of_release = json.loads(run("inspect release --json")[1])
    assert printed["verified"] is True
    assert printed["epsilon"] == of_release["epsilon"]
    assert printed["release"] == of_release["document"]
    assert printed["document"]["pool"]["rows"] == 60

    refused(run, "inspect labelled --registry r.yaml", "--registry does not apply to labelled")
    with Path("labelled/labels.csv").open("a") as table:
        table.write('59,"ant",1.0\n')
    refused(run, "inspect labelled", "labels.csv")


def test_files_and_tables_will_do(here, run):
    x = EmbeddingStore.open("public").x[:]
    np.save("pool.npy", x)
    assert run("label-public release pool.npy --out labelled")[0] == 0
    assert np.array_equal(PublicLabels.load("labelled").join("pool.npy")[0], x)


def test_private_pools_are_refused(here, run):
    command = "label-public release {} --out labelled"
    run("ledger private --allow rho=3")
    refused(run, command.format("private"), "counts what is spent on 'private'", "public rows")
    assert run("fit noisy-sum private --budget rho=2 --out charged")[0] == 0
    Path("elsewhere").mkdir()
    shutil.move("private.ledger.jsonl", "elsewhere/kept.jsonl")
    refused(run, command.format("private"), "notes a ledger of 'private'", "public rows")
    # another ledger, which knows nothing of the pool, does not make it public
    run("ledger test --allow rho=1")
    other = " --ledger test.ledger.jsonl"
    refused(run, command.format("private") + other, "notes a ledger of 'private'", "public rows")
    shutil.copy("test.ledger.jsonl", "private.ledger.jsonl")
    refused(run, command.format("private"), "notes a ledger of 'private'", "public rows")

    np.save("copy.npy", EmbeddingStore.open("private").x[:])
    refused(
        run,
        command.format("copy.npy") + " --private private",
        "copy.npy has the same or nearly the same rows as 90 records of --private private",
    )
    refused(
        run, command.format("private") + " --private private", "is the private data; give public"
    )
    shutil.copy("elsewhere/kept.jsonl", "kept.jsonl")
    EmbeddingStore.write("renamed", np.eye(5), identity="private")
    refused(
        run,
        command.format("renamed") + " --ledger kept.jsonl",
        "kept.jsonl counts what is spent on 'private'",
    )
    assert not Path("labelled").exists()


def test_bad_input(here, run):
    command = "label-public release public --out labelled"
    refused(run, "label-public release public", "--out")
    refused(run, "label-public release absent --out labelled", "absent does not exist")
    refused(run, "label-public public public --out labelled", "and not a release")
    refused(run, f"{command} --at-least 80", "at_least=80.0 must be a probability")
    refused(run, f"{command} --at-least 1", "no row of the pool has a label of probability 1")
    refused(run, f"{command} --refuse 5", "refuse=5.0 must be above 0 and below 1")
    refused(run, f"{command} --refuse .05", "release carries no posterior", "fit with auto")
    refused(run, "label-public release public --out public --force", "holds something else")
    refused(run, "label-public release public --out release/labels", "is inside the release")
    np.save("wide.npy", np.ones((9, 6)))
    refused(run, "label-public release wide.npy --out labelled", "has 6 columns")
    refused(run, f"{command} --date today", "date", "today")
    assert run(command)[0] == 0
    refused(run, command, "labelled exists; choose another name, or overwrite it with --force")
    refused(run, "predict labelled public --out p.csv", "holds labels of public rows and not a")
    assert run(f"{command} --force")[0] == 0


def test_a_release_of_research_noise_is_refused(here, run):
    fit = "fit noisy-sum private --budget rho=2 --noise research --seed 0 --allow-research"
    assert run(f"{fit} --out seeded")[0] == 0
    command = "label-public seeded public --out labelled"
    refused(run, command, "NOT FOR RELEASE", "--allow-research")
    assert not Path("labelled").exists()
    status, out, _ = run(f"{command} --allow-research")
    assert status == 0
    assert "stamped NOT FOR RELEASE" in out


def test_an_interrupt_leaves_nothing(here, run, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    before = sorted(path.name for path in here.iterdir())
    monkeypatch.setattr("tacit.releases.labelling.labels_card", stop)
    assert run("label-public release public --out labelled")[0] == 130
    assert sorted(path.name for path in here.iterdir()) == before


def test_the_help_states_the_premise(run):
    shown = " ".join(run("label-public --help")[1].replace("│", " ").split())
    assert not lacking(shown, "private record", "public", "privacy")


def test_the_names_are_public():
    assert tacit.PublicLabels is PublicLabels
    assert tacit.label_public.__name__ == "label_public"
