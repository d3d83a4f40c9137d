"""Paid evaluation across owners: `tacit evaluate --part ... --out T.json` and `--tables`."""

import json
from pathlib import Path

import numpy as np
import pytest

import tacit
from cli.conftest import CLASSES, rows
from tacit.data.embeddings import EmbeddingStore

GROUPS = "--by ward --groups a,b"


@pytest.fixture
def tables(stores, run):
    """A release, the test stores of two owners with their ledgers, and a table of each."""
    assert run("fit noisy-sum private --budget rho=5 --out release")[0] == 0
    for seed, owner in enumerate(("A", "B")):
        x, y = rows(np.random.default_rng(seed), 300)
        wards = np.array(["a", "b"])[np.arange(300) % 2]
        EmbeddingStore.write(owner, x, y, classes=CLASSES, labels="index", metadata={"ward": wards})
        assert run(f"ledger {owner} --allow rho=1")[0] == 0
        status, out, err = run(
            f"evaluate release {owner} --budget rho=.{seed + 1} --part {owner} {GROUPS}"
            f" --out {owner}.json"
        )
        assert (status, err) == (0, "")
        assert f"{owner}.json: the noisy tables; tacit evaluate release --tables" in out
    return stores


def test_tables_of_two_owners_add_up_to_figures_of_both(tables, run):
    assert [charge.part for charge in tacit.Ledger.beside("A", "A").account().charges] == ["A"]
    status, out, err = run("evaluate release --tables A.json B.json --json")
    assert (status, err) == (0, "")
    facts = json.loads(out)
    assert [part["name"] for part in facts["parts"]] == ["A", "B"]
    assert facts["records"] == pytest.approx(600, abs=60)
    assert facts["groups"]["a"]["records"] == pytest.approx(300, abs=50)
    assert facts["rho"] == pytest.approx(0.2)

    status, out, err = run("evaluate release --tables B.json A.json --out both.json")
    assert (status, err) == (0, "")
    assert "release on tables of 2 parts (A, B): private rows, 3 classes" in out
    assert "no record is in two of the 2 parts" in out
    assert "No ledger counts" not in out
    assert tacit.Evaluation.load("both.json").interval("accuracy") == tuple(
        facts["accuracy_interval"]
    )

    status, out, _ = run("evaluate release --tables A.json B.json --overlapping --json")
    assert json.loads(out)["rho"] == pytest.approx(0.3)
    assert run("evaluate release --tables A.json B.json --out groups.svg")[0] == 0
    assert "balanced accuracy" in Path("groups.svg").read_text()


def forged(**changes):
    values = json.loads(Path("A.json").read_text()) | changes
    Path("forged.json").write_text(json.dumps(values))


# options, and what the refusal says
REFUSED = [
    ("--tables A.json A.json", "the table of part 'A' is there twice"),
    ("--tables A.json nowhere.json", "nowhere.json is not a file"),
    ("--tables A.json release/release.json", 'does not say "format": "tacit-evaluation"'),
    ("--tables A.json forged.json", "forged.json is of another release than release"),
    ("--tables A.json B.json --out A.json", "A.json exists"),
    ("--tables A.json B.json --seed 3", "--seed says how test rows are measured"),
    ("--tables A.json --at-least 0.9", "--at-least says how test rows are measured"),
    ("", "there is no test set"),
    ("A --tables A.json B.json", "takes no test set; leave the test set out"),
    ("A --budget rho=.1 --out T.json", 'add --part, such as --part "hospital A"'),
    ("A --part A --out T.json", "say by --budget"),
    ("A --part A --budget rho=.1 --noise research --seed 1 --out T.json", "finite budget"),
    ("A --budget rho=.1 --overlapping", "--overlapping is for tables of several parts"),
    ("A --budget rho=.1 --sets .9 --part A --record", "--part"),
]


def test_what_does_not_go_together_is_refused_in_one_line(tables, run):
    forged(release="0" * 64)
    for line, fault in REFUSED:
        status, out, err = run(f"evaluate release {line}")
        assert (status, out) == (2, ""), line
        assert fault in err
        assert err.count("\n") == 1
    assert "tacit evaluate RELEASE --tables A.json" in run("inspect A.json")[2]
    assert len(tacit.Ledger.beside("A", "A").account().charges) == 1


def test_figures_of_parts_are_recorded_and_verified(tables, run):
    line = "evaluate release --tables A.json B.json --record --by ward"
    status, out, err = run(line)
    assert (status, err) == (0, "")
    assert out.endswith("release: the figures are recorded in item 15 of its card\n")
    loaded = tacit.Release.load("release").verify()
    document = loaded.document
    assert document.version == 10
    utility = document.utility
    assert [row.name for row in utility.combination.parts] == ["A", "B"]
    assert utility.grouped_by == "ward"
    assert utility.test_set == "2 parts (A, B)"
    card = Path("release/CARD.md").read_text()
    assert "A: 3 classes, noise of its sums" in card
    assert "Not protected: that no record is in two of the 2 parts 'A', 'B'" in card
    assert run("inspect release --dossier dossier.html")[0] == 0
    assert "Parts of the test records" in Path("dossier.html").read_text()
    assert run("inspect release --registry entry.yaml")[0] == 0

    file = Path("release/release.json")
    original = file.read_text()
    for place, value, fault in (
        (("guarantee", "unprotected"), [], "utility.statement is stated as"),
        (("combination", "overlapping"), True, "do not give the recorded guarantee"),
        (("combination", "costs", 0, "rho"), 0.01, "is not that of its recorded guarantee"),
        (("combination", "class_lists"), [["ant"]], "parts of other classes"),
    ):
        values = json.loads(original)
        part = values["utility"]
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        file.write_text(json.dumps(values))
        status, _, err = run("inspect release")
        assert status == 2
        assert fault in err
    file.write_text(original.replace('"version": 10', '"version": 9'))
    assert "from version 10 on" in run("inspect release")[2]
    file.write_text(original)

    # figures of one part, or of one evaluation, need no parts
    assert run("evaluate release --tables A.json --record")[0] == 0
    document = tacit.Release.load("release").verify().document
    assert (document.version, document.utility.test_set) == (9, "1 part (A)")
