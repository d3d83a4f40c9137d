import math

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetError, InputError, LedgerError, RowError
from tacit.mechanisms import partition_tables
from tacit.privacy.events import Gaussian, Laplace
from tacit.privacy.unit import Unit

CLASSES = ["cat", "dog", "eel"]


class Fixed:
    """A classifier that predicts the class in the first column, with the confidence of the
    second.
    """

    classes_ = np.array(CLASSES)

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, 0].astype(int)]

    def predict_proba(self, X):
        X = np.asarray(X)
        table = np.repeat((1 - X[:, 1:2]) / 2, 3, axis=1)
        table[np.arange(len(X)), X[:, 0].astype(int)] = X[:, 1]
        return table


def records(n=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    predicted = np.where(rng.random(n) < 0.8, truth, (truth + 1) % 3)
    X = np.column_stack([predicted, rng.uniform(0.4, 1, n)])
    return X, np.array(CLASSES)[truth], truth, predicted


X, Y, TRUTH, PREDICTED = records()
HOSPITALS = np.array(["north", "south", "west"])[np.arange(600) % 3]


@pytest.fixture
def ledger(tmp_path):
    ledger = tacit.Ledger(tmp_path / "test.ledger.jsonl", identity="test records")
    ledger.allow("rho=1")
    return ledger


@pytest.mark.parametrize("tables", ["right", "predicted", "confidence"])
def test_without_noise_every_table_gives_the_exact_figures(tables):
    e = tacit.evaluate(Fixed(), X, Y, budget="rho=inf", tables=tables)
    right = PREDICTED == TRUTH
    shares = [right[c == TRUTH].mean() for c in range(3)]
    assert e.accuracy == pytest.approx(right.mean())
    assert e.balanced_accuracy == pytest.approx(np.mean(shares))
    assert list(e.per_class) == CLASSES
    assert list(e.per_class.values()) == pytest.approx(shares)
    low, high = e.interval("accuracy")
    assert low < right.mean() < high
    assert e.overall.records == 600
    assert not e.guarantee_.bounded


def test_groups_partition_the_records_and_undeclared_values_are_another_group():
    e = tacit.evaluate(
        Fixed(), X, Y, budget="rho=inf", by=HOSPITALS, groups=["south", "north", "east"]
    )
    assert list(e.groups) == ["south", "north", "east", "other"]
    right = PREDICTED == TRUTH
    for name, value in (("south", "south"), ("north", "north"), ("other", "west")):
        own = value == HOSPITALS
        assert e.groups[name].accuracy == pytest.approx(right[own].mean())
        assert e.groups[name].records == own.sum()
    assert math.isnan(e.groups["east"].accuracy)
    assert e.groups["east"].interval("accuracy") == (0, 1)
    assert e.accuracy == pytest.approx(right.mean())


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], ["1", "2"], [" 1", b"2"]])
def test_values_of_groups_are_compared_as_texts(values):
    by = np.array(values, dtype=object)[np.arange(600) % 2]
    e = tacit.evaluate(Fixed(), X, Y, budget="rho=inf", by=by, groups=[2, "1"])
    assert {name: figures.records for name, figures in e.groups.items()} == {
        "2": 300,
        "1": 300,
        "other": 0,
    }


def test_a_person_counts_one_whatever_their_number_of_records():
    """Half of the persons right twice, half once right and once wrong: .75 and not .707."""
    truth = np.zeros(400, dtype=int)
    predicted = np.where(np.arange(400) % 4 == 3, 1, 0)
    rows = np.column_stack([predicted, np.full(400, 0.9)])
    persons = np.arange(400) // 2
    e = tacit.evaluate(
        Fixed(),
        rows,
        np.array(CLASSES)[truth],
        budget="rho=inf",
        persons=persons,
        unit="add-remove-person",
    )
    assert e.overall.records == pytest.approx(200, abs=1e-6)
    assert e.accuracy == pytest.approx(0.75)


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("budget", ["rho=0.05", "epsilon=0.5", "epsilon=1,delta=1e-6", "mu=0.3"])
def test_the_guarantee_spends_the_budget_under_every_unit(unit, budget):
    persons = np.arange(600) // 2 if unit.per_person else None
    e = tacit.evaluate(
        Fixed(), X, Y, budget=budget, unit=unit, persons=persons, noise="research", random_state=0
    )
    expected = tacit.Budget.parse(budget)
    assert e.guarantee_.unit is unit
    assert expected.permits(e.guarantee_.event)
    assert isinstance(e.guarantee_.event, Laplace if expected.kind == "pure" else Gaussian)
    l1 = 1 if unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON) else 2
    sensitivity = l1 if expected.kind == "pure" else math.sqrt(l1)
    noise = sensitivity * e.guarantee_.event.noise_multiplier
    assert e.cell_noise.scale == pytest.approx(noise)
    low, high = e.interval("accuracy")
    assert low < 0.8 < high


def test_several_tables_share_the_budget_and_more_follows_from_them(ledger):
    e = tacit.evaluate(
        Fixed(),
        X,
        Y,
        budget="rho=0.5",
        tables=["predicted", "confidence"],
        by=HOSPITALS,
        groups=["north"],
        ledger=ledger,
    )
    assert ledger.account().spent.rho == pytest.approx(0.5)
    assert e.cell_noise.scale == pytest.approx(math.sqrt(2))
    exact = np.zeros((3, 3))
    np.add.at(exact, (TRUTH, PREDICTED), 1)
    assert np.abs(e.confusion - exact).max() < 12
    bins = e.calibration
    assert len(bins) == 10
    assert bins[9].high == 1
    assert sum(one.records for one in bins) == pytest.approx(600, abs=80)
    assert math.isnan(bins[0].accuracy)
    with pytest.raises(InputError, match="there is no table 'confidence' among right"):
        _ = tacit.evaluate(Fixed(), X, Y, budget="rho=1").calibration


def test_fits_and_evaluations_add_up_in_one_ledger(ledger):
    rows = np.eye(3)[TRUTH]
    model = tacit.NoisySumPrototypes("rho=0.5", classes=CLASSES, ledger=ledger).fit(rows, Y)
    release = tacit.Release.of(model)
    e = tacit.evaluate(release, rows, Y, budget="rho=0.25", ledger=ledger)
    assert ledger.account().spent.rho == pytest.approx(0.75)
    assert "charged to the ledger of 'test records'" in e.statement()
    assert "the costs add up" in e.statement()
    with pytest.raises(LedgerError, match="would overdraw"):
        tacit.evaluate(release, rows, Y, budget="rho=0.3", ledger=ledger)
    assert ledger.account().spent.rho == pytest.approx(0.75)


def test_the_ledger_is_charged_before_noise_is_drawn(ledger, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(partition_tables, "noisy_tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tacit.evaluate(Fixed(), X, Y, budget="rho=0.25", ledger=ledger)
    assert ledger.account().spent.rho == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"budget": "lots"}, BudgetError, "lots"),
        ({"y": np.append(Y[:-1], "fox")}, RowError, "row 599 has label 'fox'"),
        ({"y": Y[:-1]}, InputError, "X has 600 rows and y has 599 labels"),
        ({"X": X[:0], "y": Y[:0]}, InputError, "no test records"),
        ({"by": HOSPITALS}, InputError, "the groups must be declared"),
        ({"groups": ["north"]}, InputError, "pass by="),
        ({"by": HOSPITALS, "groups": "north"}, InputError, "must list values"),
        ({"by": HOSPITALS, "groups": ["a", "a"]}, InputError, "groups name 'a' twice"),
        ({"by": HOSPITALS[:5], "groups": ["a"]}, InputError, "must have shape"),
        ({"tables": "rights"}, InputError, "tables='rights' must be"),
        ({"unit": "add-remove-person"}, InputError, "pass persons="),
        ({"unit": "month"}, InputError, "unit='month'"),
        ({"noise": "pink"}, InputError, "noise='pink'"),
        ({"y": [["cat"], ["cat", "dog"]] * 300}, InputError, "one label a record"),
    ],
)
def test_bad_inputs_are_refused_before_a_charge(ledger, changes, error, message):
    arguments = {"X": X, "y": Y, "budget": "rho=0.1"} | changes
    with pytest.raises(error, match=message):
        tacit.evaluate(Fixed(), arguments.pop("X"), arguments.pop("y"), ledger=ledger, **arguments)
    assert ledger.account().untouched


def test_intervals_of_an_unknown_name_or_level_are_refused():
    e = tacit.evaluate(Fixed(), X, Y, budget="rho=1", noise="research", random_state=3)
    again = tacit.evaluate(Fixed(), X, Y, budget="rho=1", noise="research", random_state=3)
    assert e.accuracy == again.accuracy
    assert e.statement().endswith("Not for release: research noise is seeded.")
    assert e.overall.class_intervals(0.5)["cat"][0] > e.overall.class_intervals(0.99)["cat"][0]
    with pytest.raises(InputError, match="name='f1' is not one of"):
        e.interval("f1")
    with pytest.raises(InputError, match="level=95 must be between 0 and 1"):
        e.interval("accuracy", 95)
