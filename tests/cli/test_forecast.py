"""`tacit forecast`, from the command line."""

import json

import numpy as np
import pytest

from tacit.data.embeddings import EmbeddingStore

LINE = "forecast noisy-sum --public classes --classes 3 --records 40 --imbalance 2 --seeds 1"


@pytest.fixture(autouse=True)
def classes(stores):
    """A public store of six classes."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 25)
    rows = 3 * np.eye(6, 8)[labels] + rng.normal(size=(150, 8))
    EmbeddingStore.write(stores / "classes", rows, labels, classes=6, declared_public=True)


def test_declared_facts_guesses_table_and_sentence_are_printed(run, stores):
    status, out, _ = run(f"{LINE} --budgets epsilon=.1,epsilon=2 --out picture.svg")

    assert status == 0
    for line in (
        "declared, and protected by nothing: 3 classes, 40 records of the largest class, imb",
        "guess: private classes are taken to be as far apart as the public classes\n",
        "forecast for noisy-sum, from public rows alone; epsilon at delta 1e-06\n",
        "classes (the last line goes by these):\n  epsilon=0.1: balanced accuracy 0.",
        "clusters of the public rows stand in for the private classes:\n  epsilon=0.1: balanced",
        "  no privacy: balanced accuracy ",
        "For a balanced accuracy within 5 points of the best in the table, ",
        "picture.svg: accuracy against epsilon",
    ):
        assert line in out
    # one seed tells nothing of the spread over seeds
    assert "(sd" not in out
    assert (stores / "picture.svg").read_bytes().startswith(b"<svg")


def test_json_has_the_table_and_what_is_enough(run):
    status, out, _ = run(f"{LINE} --budgets rho=1 --pseudo-classes clusters --json")

    facts = json.loads(out)
    assert status == 0
    assert [row["budget"] for row in facts["table"]] == ["rho=1", "rho=inf"]
    assert facts["table"][1]["epsilon"] is None
    assert facts["enough_records"]["rho=1"]["records"] <= 40


def test_rows_that_a_ledger_covers_are_refused(run):
    assert run("ledger classes --allow rho=1")[0] == 0

    status, _, err = run(f"{LINE} --budgets rho=1")

    assert status == 2
    assert "a guarantee covers these records" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--budgets rho=0", "rho=0"),
        ("--records -3", "records=-3"),
        ("--imbalance 0.5", "imbalance=0.5"),
        ("--classes 200", "classes=200 need 600 public rows or more, and public has 150"),
        ("--jobs 0", "jobs=0"),
        ("--k 5", "--k is not an option of noisy-sum"),
        ("--out picture.gif", "must end in"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, change, message):
    option = change.split()[0]
    words = LINE.split()
    if option in words:
        at = words.index(option)
        del words[at : at + 2]

    status, _, err = run(f"{' '.join(words)} {change}")

    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def test_an_unknown_method_is_named(run):
    status, _, err = run(LINE.replace("noisy-sum", "noisy-sun"))

    assert status == 2
    assert "method 'noisy-sun' is not known" in err
