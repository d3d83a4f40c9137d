"""Forecasts from public rows alone."""

import json

import numpy as np
import pytest

import tacit
from tacit.compute.progress import reporting
from tacit.errors import InputError
from tacit.measure import simulated_fits
from tacit.measure.enough import enough_records
from tacit.measure.forecast_arguments import split_budgets
from tacit.measure.simulated_fits import Accuracy, StatedTask
from tacit.privacy.budget import Budget


@pytest.fixture(scope="module")
def public():
    """Rows of ten public classes, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 40)
    return rng.normal(size=(10, 16))[labels] + 0.6 * rng.normal(size=(400, 16)), labels


@pytest.fixture(scope="module")
def found(public):
    rows, labels = public
    return tacit.forecast(
        "noisy-sum", public=rows, labels=labels, classes=4, records=60, imbalance=4,
        budgets="epsilon=0.05,epsilon=1", seeds=2,
    )  # fmt: skip


def test_both_kinds_of_pseudo_classes_are_shown(found):
    kinds = [(row.pseudo_classes, row.budget) for row in found.table]

    budgets = ["epsilon=0.05,delta=1e-06", "epsilon=1,delta=1e-06", "rho=inf"]
    assert kinds == [(kind, budget) for kind in ("labels", "clusters") for budget in budgets]
    assert found.basis == "labels"


def test_the_table_grows_with_the_budget_and_states_its_epsilon(found):
    weak, strong, baseline = found.rows("labels")

    assert weak.balanced < strong.balanced <= baseline.balanced
    assert weak.minority < weak.balanced
    assert weak.epsilon == pytest.approx(0.05)
    assert baseline.epsilon == np.inf
    assert weak.sd > 0


def test_small_classes_need_more_than_the_balanced_accuracy(found):
    weak, strong = found.enough_records.values()

    assert weak.records > strong.records
    assert weak.records_for_minority >= weak.records
    assert weak.budget_for_minority.epsilon > 0.05


def test_the_sentence_and_what_was_declared_and_guessed(found):
    best = max(row.balanced for row in found.rows("labels"))
    start = f"For a balanced accuracy within 5 points of the best in the table, {best:.2f}, 60 rec"
    assert found.sentence.startswith(start)
    assert "enough at epsilon=1 (" in found.sentence
    assert "but not enough at epsilon=0.05 (" in found.sentence
    assert "; small classes (" in found.sentence
    assert found.sentence.endswith(".")
    assert ". " not in found.sentence
    assert "imbalance 4" in found.declared
    assert any("stands for several" in guess for guess in found.guesses)


def test_the_facts_are_json(found):
    facts = json.loads(json.dumps(found.facts()))

    assert facts["table"][0]["pseudo_classes"] == "labels"
    assert set(facts["enough_records"]["epsilon=1,delta=1e-06"]) == {
        "records", "records_for_minority", "budget_for_minority",
    }  # fmt: skip


def test_the_figure_has_a_panel_for_each_kind(found):
    pytest.importorskip("altair")
    chart = found.figure().to_dict()

    titles = [panel["title"]["text"] for panel in chart["concat"]]
    assert titles == ["pseudo-classes: labels", "pseudo-classes: clusters"]
    values = [row["median"] for row in chart["concat"][0]["data"]["values"]]
    assert found.rows("labels")[0].balanced in values


def test_without_enough_public_classes_clusters_stand_in(public):
    rows, labels = public

    found = tacit.forecast(
        "noisy-sum", public=rows, labels=labels, classes=12, records=10, budgets="rho=1", seeds=1
    )

    assert found.basis == "clusters"
    assert {row.pseudo_classes for row in found.table} == {"clusters"}
    assert any("10 classes of 3 rows or more, fewer than 12" in guess for guess in found.guesses)
    assert any("a guess from other tasks" in guess for guess in found.guesses)


def test_a_learner_and_a_unit_per_person(public):
    rows, labels = public
    learner = tacit.NoisySumPrototypes()

    found = tacit.forecast(
        learner, public=rows, labels=labels, classes=range(3), records=50, records_per_person=5,
        unit="add-remove-person", budgets=["rho=0.5"], seeds=1, pseudo_classes="labels",
    )  # fmt: skip

    assert found.method == "NoisySumPrototypes"
    assert "5 records of each person" in found.declared
    assert len(found.table) == 2


def test_a_repeat_in_two_processes_gives_the_same_numbers(public):
    rows, labels = public
    arguments = {
        "public": rows, "labels": labels, "classes": 4, "records": 60, "imbalance": 3,
        "budgets": "rho=0.001,rho=0.1", "seeds": 2,
    }  # fmt: skip

    first = tacit.forecast("noisy-sum", **arguments, jobs=1)
    again = tacit.forecast("noisy-sum", **arguments, jobs=2)

    assert again.facts() == first.facts()


def test_only_the_progress_of_the_forecast_is_reported(public):
    rows, labels = public
    lines = []

    with reporting(lambda label, amount, total: lines.append((label, amount, total))):
        tacit.forecast(
            "noisy-sum", public=rows, labels=labels, classes=4, records=60, budgets="rho=0.1",
            seeds=2, pseudo_classes="labels",
        )  # fmt: skip

    # a step is the fits of one seed at each budget
    of_fits = [line for line in lines if line[0] == "fits on pseudo-classes"]
    assert [line[1:] for line in of_fits] == [(2, 4), (4, 4)]
    labels_of_lines = {label for label, _, _ in lines}
    assert labels_of_lines == {
        "checking rows", "fits on pseudo-classes", "search for enough records",
    }  # fmt: skip


def test_the_search_goes_to_64_times_the_largest_budget():
    def measure(budget, factor):
        # 0.9 is reached from rho 60 on, which is the rho of the weakest budget times 60,000
        right = 0.9 if budget.rho >= 60 else 0.2
        return Accuracy(right, right)

    task = StatedTask(4, 100, 1.0)
    budgets = [Budget.zcdp(0.001), Budget.zcdp(1.0)]

    weak, strong = enough_records(measure, budgets, Accuracy(0.9, 0.9), task).values()

    assert strong.records == pytest.approx(100 * 60**0.5, rel=0.5)
    assert weak.records == pytest.approx(strong.records * 1000**0.5, rel=0.01)


def test_what_64_times_the_largest_budget_does_not_reach_is_not_stated():
    def measure(budget, factor):
        return Accuracy(0.2, 0.2)

    task = StatedTask(4, 100, 1.0)

    (enough,) = enough_records(measure, [Budget.zcdp(1.0)], Accuracy(0.9, 0.9), task).values()

    assert enough == (None, None, None)


def test_large_tasks_are_made_smaller_with_their_noise(public, monkeypatch):
    rows, labels = public
    arguments = {
        "public": rows, "labels": labels, "classes": 4, "records": 400, "budgets": "rho=0.00001",
        "seeds": 3, "pseudo_classes": "labels",
    }  # fmt: skip

    whole = tacit.forecast("noisy-sum", **arguments)
    monkeypatch.setattr(simulated_fits, "MOST_RECORDS", 200)
    smaller = tacit.forecast("noisy-sum", **arguments)

    assert whole.table[0].balanced < 0.95
    assert smaller.table[0].balanced == pytest.approx(whole.table[0].balanced, abs=0.15)


def test_an_interrupted_forecast_resumes(public, tmp_path, monkeypatch):
    rows, labels = public
    arguments = {
        "public": rows, "labels": labels, "classes": 3, "records": 30, "budgets": "rho=0.1",
        "seeds": 2, "folder": tmp_path / "fits",
    }  # fmt: skip
    first = tacit.forecast("noisy-sum", **arguments)

    def fail(*_):
        raise AssertionError("this fit is in the folder")

    monkeypatch.setattr(simulated_fits.SimulatedFits, "_measure", fail)
    assert tacit.forecast("noisy-sum", **arguments).table == first.table
    with pytest.raises(InputError, match="choose another folder"):
        tacit.forecast("noisy-sum", **{**arguments, "records": 31})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "noisy-sun"}, "method 'noisy-sun' is not known"),
        ({"method": 3}, "method=3 must be a name or a learner"),
        ({"method": "names"}, "learns from class names"),
        ({"method": "dpsgd"}, "use it there"),
        ({"k": 3}, "k is not a parameter of noisy-sum"),
        ({"records": -5}, "records=-5 must be a whole number"),
        ({"records": True}, "records=True must be a whole number"),
        ({"imbalance": 0.5}, "imbalance=0.5 must be a number from 1"),
        ({"imbalance": float("nan")}, "imbalance=nan"),
        ({"imbalance": 1000}, "leaves the smallest class without rows"),
        ({"classes": 1}, "classes=1 must be a whole number from 2"),
        ({"classes": 500}, "classes=500 need 1500 public rows or more, and public has 400"),
        ({"classes": 20, "pseudo_classes": "labels"}, "fewer than 20; leave pseudo_classes out"),
        ({"pseudo_classes": "guess"}, "pseudo_classes='guess' must be one of"),
        ({"budgets": "rho=0"}, "rho"),
        ({"budgets": "rho=inf"}, "protects nothing, and is forecast anyway"),
        ({"budgets": []}, "budgets is empty"),
        ({"budgets": "rho=1,epsilon=1"}, r"several kinds \(rho=1 and epsilon=1,delta=1e-06\)"),
        ({"spread": 2}, "spread=2 must be a number from 0 to 1"),
        ({"unit": "person"}, "unit='person' must be one of"),
        ({"jobs": 0}, "jobs=0 must be a whole number"),
        ({"seeds": 0}, "seeds=0 must be a whole number"),
        ({"labels": np.zeros(3)}, "labels has shape"),
        ({"public": np.full((400, 16), np.nan)}, "public"),
    ],
)
def test_bad_input_is_one_line(public, change, message):
    rows, labels = public
    arguments = {
        "method": "noisy-sum", "public": rows, "labels": labels, "classes": 4, "records": 60,
        "budgets": "rho=0.5",
    }  # fmt: skip
    arguments |= change

    with pytest.raises(tacit.TacitError, match="(?s)" + message) as error:
        tacit.forecast(arguments.pop("method"), **arguments)
    assert "\n" not in str(error.value)


def test_a_store_that_a_ledger_covers_is_refused(public, tmp_path):
    rows, labels = public
    store = tacit.EmbeddingStore.write(tmp_path / "store", rows, labels, identity="patients")
    tacit.Ledger.beside(store.folder, "patients").allow(tacit.Budget.zcdp(1), "add-remove")

    with pytest.raises(InputError, match="is private"):
        tacit.forecast("noisy-sum", public=store, classes=4, records=60, budgets="rho=1")


def test_budgets_are_split_at_commas_that_no_delta_follows():
    text = "epsilon=1,delta=1e-6, epsilon=2,delta=1e-7"

    assert split_budgets(text) == ["epsilon=1,delta=1e-6", " epsilon=2,delta=1e-7"]
