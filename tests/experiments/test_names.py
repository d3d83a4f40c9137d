"""Plans that use class names: the key of a cell, what is refused, and what is reported."""

import dataclasses
import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import tacit
from messages import lacking, stating
from named_learner import Named
from tacit.errors import InputError
from tacit.experiments.results import read_results
from tacit.experiments.run import prepare, sweep
from tacit.experiments.yaml_lines import PlanError
from tacit.learners.methods import METHODS

CLASSES = ["ant", "bee", "cow"]
ROWS = np.eye(3, 5) * 2
PLAN = """
name: words
data:
  - {name: d, train: train, test: test, names: names}
learners:
  - {name: plain, method: noisy-sum}
  - {name: words, method: noisy-sum, names: true}
budgets: [rho=1]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stores, and a method that takes names."""
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        y = np.arange(60) % 3
        x = np.eye(3, 5)[y] * 3 + rng.normal(size=(60, 5))
        tacit.EmbeddingStore.write(tmp_path / name, x, y, classes=CLASSES, labels="index")
    tacit.EmbeddingStore.write(tmp_path / "names", ROWS[::-1], CLASSES[::-1])
    monkeypatch.setitem(METHODS, "noisy-sum", "named_learner:Named")
    monkeypatch.setattr(Named, "seen", None)
    return tmp_path


def keys(path):
    return {cell.learner: cell.key for cell in prepare(path, path.parent / "runs").cells}


def test_names_reach_the_learner_and_the_results(plan, folder):
    found = {one.learner: one for one in sweep(plan(PLAN), folder / "runs")}
    assert {name: one.status for name, one in found.items()} == {"plain": "done", "words": "done"}
    assert Named.seen.tolist() == np.eye(3, 5).tolist()
    assert {name: one.names for name, one in found.items()} == {"plain": False, "words": True}
    assert [one.learner for one in read_results(folder / "runs", "names")] == ["words"]


def test_keys_follow_the_names_and_are_as_before_without(plan, folder):
    before = keys(plan(PLAN))
    cell = prepare(plan(PLAN), folder / "runs").cells[0]
    values = {one.name: getattr(cell, one.name) for one in dataclasses.fields(cell)}
    values = {
        name: value
        for name, value in values.items()
        if name not in ("plan", "source", "timed", "names", "balanced")
    }
    source = cell.source
    data = [[source.hash_of("train"), source.hash_of("test")], None, source.classes, None, None]
    text = json.dumps([tacit.__version__, data, values], sort_keys=True)
    assert cell.key == hashlib.sha256(text.encode()).hexdigest()[:20] == before["plain"]
    tacit.EmbeddingStore.write(folder / "names", ROWS[::-1] + 1, CLASSES[::-1], force=True)
    after = keys(plan(PLAN))
    assert after["plain"] == before["plain"]
    assert after["words"] != before["words"]


def test_names_that_the_training_store_carries(plan, folder):
    before = keys(plan(PLAN))
    train = tacit.EmbeddingStore.open(folder / "train")
    x, y = np.array(train.x), train.labels
    tacit.EmbeddingStore.write(
        folder / "train", x, y, classes=CLASSES, labels="index", names=ROWS, force=True
    )
    # the same rows, and no other records
    assert keys(plan(PLAN.replace(", names: names", ""))) == before
    assert [
        one.status for one in sweep(plan(PLAN.replace(", names: names", "")), folder / "runs")
    ] == ["done"] * 2
    assert Named.seen.tolist() == np.eye(3, 5).tolist()


def test_results_of_earlier_versions_are_refused(plan, folder):
    first, _ = sweep(plan(PLAN), folder / "runs")
    path = folder / "runs" / "cells" / f"{first.key}.parquet"
    pq.write_table(pq.read_table(path).drop_columns("names"), path)
    with pytest.raises(InputError, match=r"not a result of this version .*lacks names.*delete it"):
        read_results(folder / "runs")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("method: noisy-sum, names", "method: newton, names", 7, ("newton", "class names")),
        (", names: names", "", 7, ("names: PATH",)),
        (", names: names", ", names: train", 4, ("train", "private")),
        (", names: names", ", names: few", 4, ("few", "private")),
        (", names: names", ", names: gone", 4, ("gone",)),
        (", names: names", ", names: two.npy", 4, ("2 rows", "3 classes")),
        (
            "{name: d, train: train, test: test, names: names}",
            "{name: d, builtin: digits, names: names}",
            4,
            ("built in",),
        ),
        (
            "method: noisy-sum, names",
            "method: noisy-sum, parameters: {names: [1]}, names",
            7,
            ("names", "plan"),
        ),
    ],
)
def test_what_is_refused_before_anything_runs(plan, folder, old, new, line, said):
    np.save(folder / "two.npy", ROWS[:2])
    train = tacit.EmbeddingStore.open(folder / "train")
    card = {"subset": {}}
    tacit.EmbeddingStore.write(
        folder / "few", train.x[:9], train.labels[:9], card=card, identity="train"
    )
    with pytest.raises(PlanError) as error:
        prepare(plan(PLAN.replace(old, new)), folder / "runs")
    assert f"line {line}: " in str(error.value)
    assert not lacking(str(error.value), *said)


def test_rows_without_labels_need_a_declared_list(plan, folder):
    for name in ("train", "test"):
        store = tacit.EmbeddingStore.open(folder / name)
        np.savez(folder / f"{name}.npz", x=np.array(store.x), y=store.labels)
    np.save(folder / "rows.npy", ROWS)
    text = PLAN.replace("train: train, test: test", "train: train.npz, test: test.npz")
    with pytest.raises(PlanError, match=stating("labels", "declared class list")):
        prepare(plan(text.replace("names: names", "names: rows.npy")), folder / "runs")
    assert [one.status for one in sweep(plan(text), folder / "runs")] == ["done"] * 2
