"""`tacit audit RELEASE`: public rows alone, a record in the card, and an answer by exit status."""

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.data.embeddings import EmbeddingStore
from tacit.measure.auditing import of_release
from tacit.measure.auditing.result import FAIR_COINS, Bound
from tacit.releases.audited import BROKEN, WITHIN
from tacit.releases.release import Release

FIT = "fit noisy-sum private --budget rho=0.5 -o release"
AUDIT = "audit release --public test --refits 16"


@pytest.fixture
def released(stores, run):
    assert run(FIT)[0] == 0
    return stores


def test_a_release_is_audited_by_public_rows_and_the_result_is_recorded(released, run):
    status, out, _ = run(AUDIT)
    assert status == 0
    assert "their own labels" in out
    assert "epsilon is at least 0 at delta 1e-05" in out
    before = Path("release/CARD.md").read_text()

    facts = json.loads(run(f"{AUDIT} --json --predicted-labels")[1])
    assert facts["promise"] == Release.load("release").guarantee.epsilon(1e-5)
    assert "labels that the release predicts" in facts["setup"]
    assert Path("release/CARD.md").read_text() == before

    assert run(f"{AUDIT} --record --folder run")[0] == 0
    release = Release.load("release").verify()
    assert release.document.audit.result == WITHIN
    assert "lower bound: 0" in release.card_text
    # killed and run again, the audit resumes, unless the release has changed since
    assert len(list(Path("run").glob("signals-*"))) == 2
    assert run(f"{AUDIT} --folder run")[0] == 2


def test_private_rows_are_refused(released, run):
    for options, fault in (
        ("", "--public is missing"),
        ("--public private", "private is not declared public"),
        ("--public rows.npz", "add --public-rows"),
        ("--public test --budget rho=1", "--budget rho=1 is for a method"),
        ("--public test --refits 3", "refits=3 must be 16 or more"),
        ("--public test --delta 2", "delta=2"),
    ):
        x, y = np.ones((50, 5)), np.zeros(50, dtype=int)
        np.savez("rows.npz", x=x, y=y)
        status, out, err = run(f"audit release {options}")
        assert (status, out) == (2, ""), options
        assert fault in err
        assert err.count("\n") == 1

    assert run("ledger test --allow rho=1")[0] == 0
    assert "test holds private rows" in run(AUDIT)[2]
    assert run("audit nowhere --public test")[0] == 2


def test_rows_without_labels_and_a_published_release(released, run):
    rows = EmbeddingStore.open("test").x[:]
    EmbeddingStore.write("bare", rows, declared_public=True)
    status, out, _ = run("audit release --public bare --refits 16")
    assert status == 0
    assert "labels that the release predicts" in out
    Path("release/.git").mkdir()
    assert "nothing is recorded in it" in run(f"{AUDIT} --record")[2]


def test_a_broken_promise_ends_with_status_1_and_is_recorded_as_broken(released, run, monkeypatch):
    whole = of_release.black_box_audit

    def broken(*arguments, **options):
        audit = whole(*arguments, **options)
        return of_release.replace(audit, bounds=(Bound("LiRA, guesses", 9.0, 8.0, FAIR_COINS),))

    monkeypatch.setattr(of_release, "black_box_audit", broken)
    status, out, err = run(f"{AUDIT} --record")
    assert status == 1
    assert "THE PROMISE IS BROKEN" in out
    assert "exceeds the promise of epsilon 4.37718" in err
    assert Release.load("release").verify().document.audit.result == BROKEN
