"""`tacit adapt`: what is written, what is refused, and what the exit status says."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.test_bad_input import refused
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.releases.release import Release

C, D = 6, 16
TRUE = np.random.default_rng(3).normal(size=(C, D)) / 2


def rows(seed, n):
    y = np.arange(n) % C
    return TRUE[y] + 0.7 * np.random.default_rng(seed).normal(size=(n, D)), y


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner = tacit.AutoPrototypes(
        "rho=0.02", public=rows(0, 300)[0], classes=C, noise="research", random_state=0
    ).fit(*rows(4, 240))
    Release.of(learner).save("release", allow_research=True)
    EmbeddingStore.write("private", *rows(4, 240), classes=range(C))
    EmbeddingStore.write("new", rows(1, 600)[0], identity="new")
    return tmp_path


def test_it_writes_a_release_that_names_the_rows(here, run):
    status, out, err = run("adapt release new --out adapted --private private")
    assert (status, err) == (0, "")
    assert out.startswith(
        "adapted: release adapted to 600 rows: the log likelihood of a held-out row rose by "
    )
    assert not lacking(out, "guarantee", "unchanged")
    status, card, _ = run("inspect adapted")
    assert status == 0
    assert f"- rows: 600\n- name: new\n- hash: {EmbeddingStore.open('new').content_hash}\n" in card
    assert "NOT FOR RELEASE" in card
    assert run("predict adapted new --out p.csv")[0] == 0


def test_files_will_do(here, run):
    np.save("new.npy", rows(1, 600)[0])
    assert run("adapt release new.npy --out adapted")[0] == 0


def test_rows_that_do_not_suit_it_leave_nothing_and_status_1(here, run):
    x, y = rows(1, 600)
    EmbeddingStore.write("few", x[y < 2])
    before = sorted(path.name for path in here.iterdir())
    status, out, err = run("adapt release few --out adapted")
    assert (status, out) == (1, "")
    assert err.startswith(
        "tacit: nothing adapted: few: the rows do not suit the release: they gather in few of the"
    )
    assert err.endswith("; keep release, adapted was not written\n")
    assert sorted(path.name for path in here.iterdir()) == before


def test_the_private_records_are_refused(here, run):
    adapt = "adapt release {} --out adapted --private private"
    refused(
        run,
        adapt.format("private"),
        "--private private is the private data; give rows that are public",
    )
    shutil.copytree("private", "copy")
    refused(
        run,
        adapt.format("copy"),
        "copy has the identity 'private' of --private private; give rows that",
    )
    mixed = np.concatenate([rows(1, 600)[0], rows(4, 240)[0][:7]])
    EmbeddingStore.write("mixed", mixed)
    refused(
        run,
        adapt.format("mixed"),
        "mixed has the same or nearly the same rows as 7 records of --private private; leave",
    )
    np.save("private.npy", rows(1, 600)[0])  # of the same name, and other rows
    np.save("mixed.npy", mixed)
    refused(
        run,
        adapt.format("mixed.npy"),
        "mixed.npy has the same or nearly the same rows as 7 records of",
    )
    assert run(adapt.format("private.npy"))[0] == 0


def test_rows_that_a_ledger_knows_are_refused(here, run):
    run("ledger private --allow rho=1")
    words = (
        "private.ledger.jsonl counts what is spent on 'private', so a guarantee covers these"
        " records; give rows"
    )
    refused(run, "adapt release private --out adapted", words)
    shutil.move("private.ledger.jsonl", "kept.jsonl")
    refused(
        run,
        "adapt release private --out adapted --ledger kept.jsonl",
        "kept.jsonl counts what is spent on",
    )
    assert run("adapt release new --out adapted --ledger kept.jsonl")[0] == 0


def test_bad_input(here, run):
    refused(run, "adapt release absent --out adapted", "absent does not exist")
    refused(run, "adapt new new --out adapted", "new is an embedding store and not a release")
    refused(
        run,
        "adapt release new --out release",
        "release exists; choose another name, or overwrite it with --force",
    )
    refused(
        run,
        "adapt release new --out new --force",
        "new holds something else, so it is not replaced",
    )
    refused(run, "adapt release new --out none/adapted", "none is not a folder")
    refused(run, "adapt release new", "--out")
    for name, x, words in (
        ("wide", np.ones((100, D + 1)), "has 17 columns"),
        (
            "short",
            rows(1, 60)[0],
            "X has 60 rows that are not zero, too few to adapt to; give 64 or more",
        ),
        ("nan", np.where(np.arange(D) == 2, np.nan, rows(1, 90)[0]), "nan.npy row 0 is not finite"),
        ("zero", np.where(np.arange(90)[:, None] == 5, 0, rows(1, 90)[0]), "zero.npy row 5"),
    ):
        np.save(f"{name}.npy", x)
        refused(run, f"adapt release {name}.npy --out adapted", words)
    noisy = tacit.NoisySumPrototypes(classes=C).fit(*rows(4, 240))
    Release.of(noisy).save("noisy")
    refused(
        run,
        "adapt noisy new --out adapted",
        "noisy carries no posterior of class means, which only releases of auto",
    )


def test_force_replaces_the_release_itself(here, run):
    assert run("adapt release new --out release --force")[0] == 0
    refused(
        run,
        "adapt release new --out again",
        "release was adapted already; adapt the release that it was made from",
    )


def test_an_interrupt_leaves_nothing(here, run, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    before = sorted(path.name for path in here.iterdir())
    monkeypatch.setattr("tacit.models.adapting.moved_means", stop)
    status, out, err = run("adapt release new --out adapted")
    assert (status, out) == (130, "")
    assert err.startswith("tacit: interrupted; no output was written")
    assert sorted(path.name for path in here.iterdir()) == before
    assert not Path("adapted").exists()


def test_the_help_states_the_premise(run):
    shown = " ".join(run("adapt --help")[1].replace("│", " ").split())
    assert not lacking(shown, "guarantee", "public")
    assert "the exit status is 1" in shown
