"""`tacit choose`: the better release, what it costs, and what is refused."""

import json

import numpy as np
import pytest

from cli.conftest import CLASSES, rows
from messages import lacking
from tacit.data.embeddings import EmbeddingStore

LINE = "choose good bad --on test --budget epsilon=1"


@pytest.fixture
def fitted(stores, run):
    """A good release, and one that learned wrong labels; `narrow` is of another encoder."""
    rng = np.random.default_rng(1)
    x, y = rows(rng, 90)
    EmbeddingStore.write("wrong", x, (y + 1) % 3, classes=CLASSES, labels="index")
    test = EmbeddingStore.open("test")
    EmbeddingStore.write("narrow", x[:, :4], y, classes=CLASSES, labels="index")
    for name, labels in (("narrow-test", test.y), ("narrow-other", (test.y + 1) % 3)):
        EmbeddingStore.write(name, test.x[:, :4], labels, classes=CLASSES, labels="index")
    EmbeddingStore.write("short", test.x[:20, :4], test.y[:20], classes=CLASSES, labels="index")
    for name, store in (("good", "private"), ("bad", "wrong"), ("small", "narrow")):
        assert run(f"fit noisy-sum {store} --budget rho=5 --out {name}")[0] == 0
    return stores


def test_the_better_one_is_chosen_and_nothing_else_is_said_of_the_rows(fitted, run):
    # without a ledger, whose unit would have to be that of the choice
    out = run(f"{LINE} --unit replace --noise research --seed 0")[1]
    assert out.startswith("good: chosen")
    assert "This choice hides the value of any one record" in out
    assert "Not for release: research noise is seeded." in out

    assert run("ledger test --allow epsilon=5")[0] == 0
    status, out, _ = run(LINE)
    assert status == 0
    assert out.startswith("good: chosen among 2 releases by permute-and-flip\n")
    for words in ("epsilon = 1 (pure)", "The fits of all candidates count", "the ledger of"):
        assert words in out
    assert "60 rows" not in out
    assert "No ledger counts" not in out

    status, out, _ = run(f"{LINE} --json")
    facts = json.loads(out)
    assert (status, facts["chosen"], facts["index"], facts["pure_epsilon"]) == (0, "good", 0, 1)
    assert facts["charged"] is True
    assert "epsilon=2 of epsilon=5 spent in 2 charges" in run("ledger test")[1]
    assert float(json.loads(run("ledger test --json")[1])["left"]) == pytest.approx(3)


def test_releases_of_two_encoders(fitted, run):
    line = "choose bad small --on test --on narrow-test --budget rho=1"
    status, out, _ = run(line)
    assert status == 0
    assert out.startswith("small: chosen among 2 releases by exponential\n")
    assert "No ledger counts this run" in out

    # ledgers of both stores: one must be named
    assert run("ledger test --allow rho=5")[0] == 0
    assert run(line)[0] == 0
    assert run("ledger narrow-test --allow rho=5")[0] == 0
    status, _, err = run(line)
    assert status == 2
    assert not lacking(err, "several ledgers", "--ledger")
    assert run(f"{line} --ledger test.ledger.jsonl")[0] == 0
    assert float(json.loads(run("ledger test --json")[1])["left"]) == pytest.approx(3)


BAD = (
    ("choose good bad --on test", ("--budget epsilon=0.4",)),
    ("choose good --on test --budget epsilon=1", ("name two or more",)),
    ("choose good bad small --on test --on test --budget epsilon=1", ("2 times for 3",)),
    ("choose good small --on test --on short --budget rho=1", ("60 rows", "20", "order")),
    (
        "choose good small --on test --on narrow-other --budget rho=1",
        ("differ in their labels",),
    ),
    ("choose good small --on test --budget rho=1", ("test", "5", "4")),
    ("choose good nowhere --on test --budget rho=1", ("nowhere",)),
    ("choose good bad --on public --budget rho=1", ("public holds no labels",)),
    (f"{LINE} --noise research", ("--seed 0",)),
    (f"{LINE} --unit add-remove-person", ("persons",)),
)


def test_bad_input_is_one_line(fitted, run):
    for line, words in BAD:
        status, out, err = run(line)
        assert (status, out) == (2, ""), line
        assert not lacking(err, *words), line
        assert "Traceback" not in err
