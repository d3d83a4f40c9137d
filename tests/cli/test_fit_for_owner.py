"""`tacit fit pate` for the owner of the data: tables, figures, and one voting read at smaller
budgets.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import CLASSES, rows
from messages import lacking
from tacit.data.embeddings import EmbeddingStore

FIT = (
    "fit pate private --budget epsilon=8,delta=1e-5 --n-teachers 10 --aggregator gnmax --sigma 3"
    " --out release"
)


def table(name):
    return list(csv.DictReader(Path(f"run/{name}.csv").read_text().splitlines()))


@pytest.fixture
def labelled(stores):
    """Public records with labels."""
    EmbeddingStore.write(
        "labelled", *rows(np.random.default_rng(5), 40), classes=CLASSES, labels="index"
    )


def test_tables_figures_and_readings(labelled, run):
    line = (
        f"{FIT} --public labelled --folder run --test test --noise research --seed 0"
        " --allow-research"
    )
    status, out, err = run(f"{line} --figures figures --limits 3,6")
    assert (status, err) == (0, "")
    assert not lacking(out, "tacit ledger private --allow epsilon=8,delta=1e-05 --unit replace")
    assert not lacking(out, "figures: figures", "private")
    (voting,) = table("votings")
    assert (
        int(voting["labels of ant"]) + int(voting["labels of bee"]) + int(voting["labels of cow"])
        > 5
    )
    assert float(voting["label_accuracy of ant"]) > 0.5
    assert {row["label"] for row in table("queries")} <= set(CLASSES)
    few, more = table("readings")
    assert [few["limit"], more["limit"]] == ["epsilon=3,delta=1e-05", "epsilon=6,delta=1e-05"]
    assert 0 < int(few["answered"]) < int(more["answered"]) < int(voting["answered"])
    assert 0.5 < float(more["test_accuracy"]) <= 1
    assert sorted(path.name for path in Path("figures").iterdir()) == [
        "captions.txt",
        "consensus-private.svg",
        "cost.svg",
    ]
    assert Path("figures").stat().st_mode & 0o777 == 0o700
    assert not any("private" in path.name for path in Path("release").rglob("*"))
    assert run(f"{line} --limits 2 --force")[0] == 0
    assert [row["limit"] for row in table("readings")] == ["epsilon=2,delta=1e-05"]


def test_public_labels_of_other_classes_measure_nothing(stores, run):
    EmbeddingStore.write(
        "others", *rows(np.random.default_rng(5), 40), classes=["ant", "elk", "fox"], labels="index"
    )
    assert run(f"{FIT} --public others --folder run")[0] == 0
    assert not any(name.startswith("label_accuracy") for name in table("votings")[0])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            f"{FIT} --public public --figures release/figures",
            ("--figures release/figures", "--out release"),
        ),
        (
            f"{FIT} --public public --figures private/figures",
            ("--figures private/figures", "data"),
        ),
        (f"{FIT} --public public --limits 9", ("epsilon=9,delta=1e-05", "epsilon=8")),
        (f"{FIT} --public public --limits few", ("budget 'few'",)),
        (
            "fit noisy-sum private --budget rho=1 --out release --figures f",
            ("--figures", "NoisySumPrototypes"),
        ),
    ],
)
def test_bad_input_is_one_line_and_charges_nothing(stores, run, line, message):
    run("ledger private --allow rho=100 --unit replace")
    before = sorted(path.name for path in Path().iterdir())
    status, out, err = run(line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, *message)
    assert sorted(path.name for path in Path().iterdir()) == before
    assert "0 charges" in run("ledger private")[1]


def test_a_missing_ledger_is_told_without_an_amount(stores, run):
    assert not lacking(run("ledger private")[2], "--allow", "--unit", "add-remove")
