"""Plans under units per person: ids reach the learner, decide the key, and what is missing is
refused.
"""

import json

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.cli.main import main
from tacit.experiments.plan import load
from tacit.experiments.results import CELLS
from tacit.experiments.run import prepare, sweep
from tacit.experiments.yaml_lines import PlanError

PLAN = """
name: people
unit: [add-remove, add-remove-person]
data:
  - {name: d, train: train, test: test}
learners:
  - {name: sums, method: noisy-sum}
budgets: [rho=1]
imbalance: [1, 3]
"""
OF_FILES = PLAN.replace(
    "train: train, test: test", "train: d.npz, test: d.npz, persons: who, test_persons: ids.txt"
)


@pytest.fixture
def folder(tmp_path):
    """Stores with ids, and files with the same rows: 200 records of 40 persons, and other persons
    in the test set.
    """
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    x = np.eye(3, 5)[y] * 3 + rng.normal(size=(200, 5))
    ids = np.array([f"patient-{number}" for number in rng.integers(0, 40, 200)])
    ids[0] = ids[1].upper()  # of which the owner is warned, and no result says so
    others = [f"test-{one}" for one in ids]
    for name, persons in (("train", ids), ("test", others)):
        tacit.EmbeddingStore.write(
            tmp_path / name, x, y, classes=3, persons=persons, dtype="float64"
        )
    np.savez(tmp_path / "d.npz", train_x=x, train_y=y, test_x=x, test_y=y, who=ids)
    (tmp_path / "ids.txt").write_text("\n".join(others))
    return tmp_path


def by_unit(results):
    return {(one.unit, one.imbalance): one for one in results}


def test_units_are_compared_on_the_same_data(plan, folder):
    found = by_unit(sweep(plan(PLAN), folder / "runs"))
    assert [one.error for one in found.values()] == [None] * 4
    assert set(found) == {
        (unit, ratio) for unit in ("add-remove", "add-remove-person") for ratio in (1.0, 3.0)
    }
    for (unit, _), one in found.items():
        assert json.loads(one.guarantee)["unit"] == unit
        assert one.rho == pytest.approx(1)
        assert "warnings" not in json.loads(one.extra)
    assert found["add-remove-person", 1.0].class_sizes == found["add-remove", 1.0].class_sizes
    for path in (folder / "runs" / CELLS).glob("*.parquet"):
        assert b"patient" not in path.read_bytes()


def test_results_of_several_units_name_them(plan, folder, capsys):
    sweep(plan(PLAN), folder / "runs")
    assert main(["results", str(folder / "runs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "budget  unit  seed" in lines[0]
    assert sum("rho=1  add-remove-person  0" in line for line in lines) == 2
    assert main(["results", str(folder / "runs"), "--where", "unit = 'add-remove'"]) == 0
    assert "unit" not in capsys.readouterr().out


def test_ids_of_the_subset_reach_the_learner(plan, folder, monkeypatch):
    seen = []
    fit = tacit.NoisySumPrototypes.fit

    def watched(self, X, y, persons=None):
        seen.append((self.unit, np.asarray(X), persons))
        return fit(self, X, y, persons)

    monkeypatch.setattr(tacit.NoisySumPrototypes, "fit", watched)
    store = tacit.EmbeddingStore.open(folder / "train")
    of_row = {
        row.tobytes(): one
        for row, one in zip(np.asarray(store.x), store.persons.tolist(), strict=True)
    }
    sweep(plan(PLAN), folder / "runs")
    lengths = set()
    for unit, rows, persons in seen:
        if unit == "add-remove":
            assert persons is None
        else:
            assert persons.tolist() == [of_row[row.tobytes()] for row in rows]
            lengths.add(len(persons))
    assert (len(seen), max(lengths)) == (4, 198)
    assert len(lengths) == 2
    text = PLAN.replace("imbalance: [1, 3]", "imbalance: [null, 3]")
    few = plan(text.replace("test: test", "test: test, rows: 50"))
    sweep(few, folder / "few")
    assert {len(persons) for _, _, persons in seen[4:] if persons is not None} >= {50}


def test_files_give_the_same_as_stores(plan, folder):
    stores, files = (
        by_unit(sweep(plan(text), folder / name)) for name, text in (("a", PLAN), ("b", OF_FILES))
    )
    assert files.keys() == stores.keys()
    assert all(one.status == "done" for one in files.values())
    assert {key: one.class_sizes for key, one in files.items()} == {
        key: one.class_sizes for key, one in stores.items()
    }


def test_ids_are_in_the_key_under_a_unit_per_person_alone(plan, folder):
    def keys():
        return {
            (cell.unit, cell.imbalance): cell.key
            for cell in prepare(plan(OF_FILES), folder / "runs").cells
        }

    before = keys()
    arrays = dict(np.load(folder / "d.npz"))
    (folder / "who.txt").write_text("\n".join(arrays["who"]))
    text = OF_FILES.replace("persons: who", "persons: who.txt")

    def keys_of_file():
        return {
            (cell.unit, cell.imbalance): cell.key
            for cell in prepare(plan(text), folder / "runs").cells
        }

    assert keys_of_file() == before
    (folder / "who.txt").write_text("\n".join(arrays["who"][::-1]))
    after = keys_of_file()
    assert after["add-remove", 1.0] == before["add-remove", 1.0]
    assert after["add-remove-person", 1.0] != before["add-remove-person", 1.0]


def test_one_unit_is_a_list_of_one(plan, folder):
    one = load(plan(PLAN.replace("[add-remove, add-remove-person]", "replace-person")))[0]
    assert one.unit == ["replace-person"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "train: train",
            "train: plain",
            stating("small.yaml", "line 3", "add-remove-person", "'d'"),
        ),
        (
            "test: test",
            "test: train",
            r"small.yaml, line 5: 4\d persons are both in .*train and in .*train; keep each in one",
        ),
        ("test: test", "test: test, persons: who", "has nothing named 'who'|carries person ids"),
        ("[add-remove, add-remove-person]", "[replace, replace]", "unit has 'replace' twice"),
        ("[add-remove, add-remove-person]", "[]", "unit"),
        ("[add-remove, add-remove-person]", "[add-person]", "add-person"),
        ("train: train, test: test", "builtin: digits, persons: ids.txt", stating("built in")),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(plan, folder, old, new, message):
    store = tacit.EmbeddingStore.open(folder / "train")
    tacit.EmbeddingStore.write(folder / "plain", store.x, store.labels, classes=3)
    with pytest.raises(PlanError, match=message) as caught:
        prepare(plan(PLAN.replace(old, new)), folder / "runs")
    assert "patient" not in str(caught.value)
    assert not (folder / "runs").exists()
