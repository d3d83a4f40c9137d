"""Labels of persons: shares of a budget, by enumeration of all answers of one person."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.label_dp.persons import OfPersons, by_size, share_of
from tacit.learners.label_dp.randomize import RANDOMIZERS, randomize
from tacit.learners.label_dp.tables import randomize_table
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.one_hot import noisy_histogram
from tacit.privacy.budget import Budget
from tacit.privacy.events import PureDP
from tacit.privacy.ledger import Ledger

UNIT = "change-labels-of-person"
IDS = ["a", "b", "b", "c", "c", "c"]
LABELS = [0, 1, 2, 0, 1, 2]
SEEDED = {"noise": "research", "random_state": 0}


@given(amount=st.floats(1e-3, 50), m=st.integers(2, 1000), kind=st.sampled_from(["epsilon", "rho"]))
def test_shares_of_a_person_never_add_up_to_more_than_the_budget(amount, m, kind):
    budget = Budget.parse(f"{kind}={amount!r}")
    share = share_of(budget, m, "rr").epsilon
    assert Fraction(share) * m <= Fraction(budget.largest_pure())
    assert share * m == pytest.approx(budget.largest_pure(), rel=1e-12)
    if kind == "rho":
        rho = share_of(budget, m, "gaussian").rho
        assert rho * m == pytest.approx(amount, rel=1e-9)
        assert rho * m <= amount * (1 + 1e-12)


@pytest.mark.parametrize("budget", ["rho=0.1", "rho=0.5", "mu=0.7", "epsilon=1,delta=1e-6"])
def test_shares_of_gaussian_noise_cost_the_budget_at_most_in_exact_arithmetic(budget):
    budget = Budget.parse(budget)
    whole = 1 / Fraction(budget.gaussian()) ** 2
    for m in range(2, 200):
        share = m / Fraction(share_of(budget, m, "gaussian").gaussian()) ** 2
        assert (1 - Fraction(1, 10**14)) * whole < share <= whole


@pytest.mark.parametrize("randomizer", ["rr", "rr-with-prior", "blocks", "rr-top-k"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_all_answers_of_a_person_cost_the_budget(randomizer, m):
    """Every two lists of m labels of three classes, and every list of answers."""
    prior = None if randomizer == "rr" else [0.2, 0.3, 0.5]
    k = 2 if randomizer == "rr-top-k" else None
    out = randomize(
        [0] * m,
        classes=3,
        budget="epsilon=1.5",
        randomizer=randomizer,
        prior=prior,
        k=k,
        unit=UNIT,
        persons=["p"] * m,
    )
    own, rows = out.randomizer.randomizers[m], out.which
    worst = 0.0
    for one, other in product(product(range(3), repeat=m), repeat=2):
        ratios = []
        for i in range(m):
            row = None if rows is None else np.full(3, rows[i])
            answers = (
                np.arange(3)
                if randomizer != "blocks"
                else np.arange(3) % int(own.n_blocks[0 if row is None else row[0]])
            )
            logs = own.log_likelihood(answers, row)
            ratios.append(float((logs[:, one[i]] - logs[:, other[i]]).max()))
        worst = max(worst, sum(ratios))
    assert worst <= 1.5 + 1e-9
    if randomizer != "rr-with-prior":  # which answers with one class where little can be learned
        assert worst > 0.9 * 1.5
    assert out.guarantee_.event == PureDP(1.5)
    assert out.guarantee_.unit == UNIT


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_one_label_a_person_is_answered_as_labels_are(randomizer):
    values = (
        {"values": [0.0, 1.0, 2.0]} if randomizer in ("rr-on-bins", "unbiased") else {"classes": 3}
    )
    how = (
        values
        | {
            "randomizer": randomizer,
            "budget": "rho=1",
            "k": 2 if randomizer == "rr-top-k" else None,
        }
        | SEEDED
    )
    of_labels = randomize(LABELS, **how)
    of_persons = randomize(LABELS, **how, unit=UNIT, persons=range(6))
    assert np.array_equal(of_labels.labels, of_persons.labels)
    assert of_persons.guarantee_.rho >= of_labels.guarantee_.rho * (1 - 1e-9)
    several = randomize(LABELS, **how, unit=UNIT, persons=IDS)
    assert len(several.labels) == 6
    assert set(several.randomizer.randomizers) == {1, 2, 3}
    assert several.guarantee_ == of_persons.guarantee_


def test_each_answer_is_read_by_its_own_matrix():
    out = randomize(LABELS, classes=3, budget="epsilon=3", unit=UNIT, persons=IDS, **SEEDED)
    assert isinstance(out.randomizer, OfPersons)
    assert out.randomizer.sizes.tolist() == [1, 2, 2, 3, 3, 3]
    logs = out.randomizer.log_likelihood(out.labels, out.which)
    for i, m in enumerate([1, 2, 2, 3, 3, 3]):
        kept = logs[i, out.labels[i]] - np.delete(logs[i], out.labels[i])
        assert kept == pytest.approx(3 / m, rel=1e-6)
    assert [m for m, _ in by_size(out.randomizer.sizes)] == [1, 2, 3]


def test_a_person_changes_a_histogram_by_two():
    sizes, which = np.full(7, 7), np.arange(7)
    noise = ResearchNoise(0)
    one, other = (
        noisy_histogram(labels, which, (7, 2), PureDP(math.inf), noise, sizes)
        for labels in (np.zeros(7, int), np.ones(7, int))
    )
    assert 2 - 1e-6 < np.abs(one - other).sum() <= 2
    seen = []

    class Spy(ResearchNoise):
        def laplace(self, values, scale):
            seen.append(scale)
            return super().laplace(values, scale)

    noisy_histogram(np.zeros(7, int), which, (7, 2), PureDP(0.5), Spy(0), sizes)
    assert seen == [2 * 2**32 / 0.5]


@pytest.mark.parametrize("randomizer", ["blocks", "rr", "gaussian", "laplace"])
@pytest.mark.parametrize("prior", ["uniform", "clusters"])
def test_a_classifier_learns_from_labels_of_persons(randomizer, prior, tmp_path):
    if (randomizer, prior) == ("gaussian", "clusters"):
        return
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X, ids = np.eye(3)[y] + 0.1 * rng.normal(size=(900, 3)), rng.integers(0, 450, 900)
    budget = "rho=8" if randomizer == "gaussian" else "epsilon=6"
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow(budget, UNIT)
    model = tacit.LabelPrivate(
        budget, classes=3, randomizer=randomizer, prior=prior, unit=UNIT, ledger=ledger, **SEEDED
    )
    promise = model.promise()
    assert promise.unit == UNIT
    assert Budget.parse(budget).permits(promise.event)
    assert "whose each record is" in promise.unprotected
    model.fit(X, y, persons=ids)
    assert model.guarantee_ == promise
    assert np.mean(model.predict(X) == y) > 0.9
    assert len(ledger.account().charges) == 1
    with pytest.raises(InputError, match="persons"):
        tacit.LabelPrivate(budget, classes=3, unit=UNIT).fit(X, y)


@pytest.mark.parametrize("randomizer", ["blocks", "rr", "laplace", "gaussian"])
def test_a_share_that_is_too_small_is_refused_before_a_charge(randomizer, tmp_path):
    ledger, ids = Ledger(tmp_path / "ledger.jsonl", "data"), np.zeros(3000, int)
    X, y = np.random.default_rng(0).normal(size=(3000, 2)), ids.copy()
    budget = "rho=1e-6" if randomizer == "gaussian" else "epsilon=1e-6"
    model = tacit.LabelPrivate(
        budget, classes=3, randomizer=randomizer, unit=UNIT, ledger=ledger, **SEEDED
    )
    with pytest.raises(BudgetError, match="3.3.*e-10 is outside 1e-09"):
        model.fit(X, y, persons=ids)
    assert not ledger.path.exists()


def test_ids_are_needed_under_the_unit_per_person_and_unused_otherwise():
    with pytest.raises(InputError, match="whose each record is"):
        randomize(LABELS, classes=3, unit=UNIT)
    with pytest.raises(InputError, match="5 ids for 6 records"):
        randomize(LABELS, classes=3, unit=UNIT, persons=IDS[:5])
    with pytest.raises(InputError, match="not a unit of label privacy"):
        randomize(LABELS, classes=3, unit="add-remove-person", persons=IDS)
    with pytest.warns(
        UserWarning, match=stating("persons", "unused", "unit='change-labels-of-person'")
    ):
        randomize(LABELS, classes=3, persons=IDS)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("randomizer", ["rr", "blocks", "rr-with-prior"])
@pytest.mark.parametrize("each", [False, True])
def test_a_table_with_a_column_of_ids(tmp_path, ending, randomizer, each):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": IDS * 40, "label": LABELS * 40})
    frame["who"] += (np.arange(240) // 6).astype(str)
    table, out, prior = (tmp_path / name for name in (f"in{ending}", f"out{ending}", "prior.npy"))
    frame.to_csv(table, index=False) if ending == ".csv" else frame.to_parquet(table)
    np.save(prior, np.full((240, 3), 1 / 3) if each else np.array([0.2, 0.3, 0.5]))
    how = {"column": "label", "budget": "epsilon=30", "classes": 3, "randomizer": randomizer}
    how |= {} if randomizer == "rr" else {"prior": prior}
    count, guarantee = randomize_table(table, out, unit=UNIT, persons="who", **how)
    assert count == 240
    assert (guarantee.unit, guarantee.event) == (UNIT, PureDP(30.0))
    found = pandas.read_csv(out) if ending == ".csv" else pandas.read_parquet(out)
    assert found["who"].tolist() == frame["who"].tolist()
    facts = json.loads((tmp_path / f"out{ending}.tacit.json").read_text())
    assert facts["persons"].startswith("column who")
    assert "matrix" not in facts
    answers = found["label"].astype(int).to_numpy()
    kept = answers == frame["label"]
    if randomizer == "blocks":
        partitions = np.load(tmp_path / f"out{ending}.partitions.npy")
        assert partitions.shape == (240, 3)
        kept = partitions[np.arange(240), frame["label"]] == answers
    assert kept.mean() > 0.95  # epsilon 10 a label at least


def test_ids_of_a_table_are_checked_before_a_charge(tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("who,label\nann,0\n,1\n")
    how = {"column": "label", "budget": "epsilon=1", "classes": 2, "unit": UNIT}
    for persons, said in (
        (None, "whose each record is"),
        ("nobody", "is not in"),
        ("who", "empty id"),
        ("label", "column of the labels"),
    ):
        with pytest.raises(InputError, match=said):
            randomize_table(table, tmp_path / "out.csv", persons=persons, **how)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_share_of_a_table_that_is_too_small_is_refused_before_a_charge(tmp_path):
    table, prior = tmp_path / "in.csv", tmp_path / "prior.npy"
    table.write_text("who,label\n" + "ann,0\n" * 3000)
    np.save(prior, np.full((3000, 2), 0.5))
    book = tmp_path / "ledger.jsonl"
    how = {
        "column": "label",
        "budget": "epsilon=1e-6",
        "classes": 2,
        "randomizer": "rr-with-prior",
        "prior": prior,
    }
    with pytest.raises(BudgetError, match="3.3.*e-10 is outside 1e-09"):
        randomize_table(table, tmp_path / "out.csv", unit=UNIT, persons="who", ledger=book, **how)
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "prior.npy"}


def test_a_budget_that_is_not_pure_enough_is_refused():
    with pytest.raises(BudgetError, match="pure"):
        randomize(
            LABELS, classes=3, randomizer="gaussian", budget="epsilon=1", unit=UNIT, persons=IDS
        )
