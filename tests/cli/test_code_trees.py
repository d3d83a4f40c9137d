"""Trees on the command line: a fit that carries one, answers, and their figures and picture."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import CLASSES, rows
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.releases.release import Release

TREE = "class,parent\nant,insect\nbee,insect\n"


@pytest.fixture
def release(stores, run):
    Path("tree.csv").write_text(TREE)
    fit = "fit noisy-sum private --budget rho=5 --out release --tree tree.csv"
    assert run(fit)[0] == 0
    return Path("release")


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_answers_fall_back_and_are_counted(release, run):
    assert run("predict release test --out labels.csv --at-least 0.6 --probabilities")[0] == 0
    answers = table("labels.csv")
    assert list(answers[0]) == ["row", "label", "level", "probability", "ant", "bee", "cow"]
    levels = {line["label"]: line["level"] for line in answers}
    possible = {"ant": "2", "bee": "2", "insect": "1", "cow": "1", "": "0"}
    assert levels.items() <= possible.items()
    assert {"ant", "insect"} <= set(levels)
    for line in answers:
        shares = {name: float(line[name]) for name in ("ant", "bee", "cow")}
        if line["label"] == "insect":
            assert max(shares.values()) < 0.6
            assert shares["ant"] + shares["bee"] == pytest.approx(float(line["probability"]))

    status, out, _ = run("evaluate release test --at-least 0.6 --json")
    assert status == 0
    figures = json.loads(out)["answers"]
    answered = [line for line in answers if line["level"] != "0"]
    assert figures["answered"] == len(answered) / len(answers)
    truth = ["ant", "bee", "cow"] * 20
    right_for = {"ant": {"ant", "insect"}, "bee": {"bee", "insect"}, "cow": {"cow"}}
    n_right = sum(line["label"] in right_for[truth[int(line["row"])]] for line in answers)
    assert figures["right"] == pytest.approx(n_right / len(answered))
    assert [level["level"] for level in figures["levels"]] == [1, 2]

    _, out, _ = run("evaluate release test")
    assert "answered at probability 0.9 or more: " in out
    assert "  at level 2: " in out


def test_the_picture_of_coverage_against_accuracy(release, run):
    status, out, _ = run("evaluate release test --out coverage.svg")
    assert status == 0
    assert "coverage.svg: coverage against accuracy" in out
    picture = Path("coverage.svg").read_text()
    for text in ("with fall-back", "classes alone", "answered (% of rows)"):
        assert text in picture
    assert run("evaluate release test --out coverage.svg")[0] == 2


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("predict release test --out a.csv --at-least 0.5", ("at_least=0.5", "above 0.5")),
        ("evaluate release test --out a.txt", ("a.txt must end in .pdf, .svg, .png",)),
        ("fit noisy-sum private --budget rho=5 --out r --tree no.csv", ("no.csv cannot be read",)),
        ("fit noisy-sum private --budget rho=5 --out r --tree prefix:3", ("prefix:3", "no class")),
    ],
)
def test_what_cannot_be_answered_is_refused(release, run, command, parts):
    status, _, err = run(command)
    assert status == 2
    assert not lacking(err, *parts)


def test_a_tree_of_other_classes_is_refused_before_the_ledger_is_charged(stores, run):
    run("ledger private --new --allow rho=10")
    Path("tree.csv").write_text("class,parent\nfly,insect\n")
    status, _, err = run("fit noisy-sum private --budget rho=5 --out r --tree tree.csv")
    assert status == 2
    assert not lacking(err, "'fly'", "not among the 3 classes")
    assert "0 charges" in run("ledger private")[1]


def test_records_may_be_labelled_with_an_inner_node(stores, run):
    rng = np.random.default_rng(0)
    X, y = rows(rng, 90)
    labels = np.array(CLASSES, dtype="U6")[y]
    labels[:20] = np.where(labels[:20] == "cow", "cow", "insect")
    EmbeddingStore.write("coded", X, labels, classes=[*CLASSES, "insect"])
    Path("tree.csv").write_text(TREE)

    fit = "--budget rho=5 --out release --tree tree.csv --force"
    for method in ("noisy-sum", "gradient-descent"):
        assert run(f"fit {method} coded {fit}")[0] == 0
        release = Release.load("release").verify()
        assert release.classes.tolist() == CLASSES
        assert release.tree.parents == {"ant": "insect", "bee": "insect"}

    status, _, err = run(f"fit coinpress coded {fit}")
    assert status == 2
    assert not lacking(err, "class 'insect' is the parent of others")
