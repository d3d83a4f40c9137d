"""Every learner under units per person."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit
from contracts.learners import CASES, CLASSES, UNUSED, X, Y, make, same
from tacit.errors import InputError, LedgerError
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

PERSON_UNITS = [unit for unit in Unit if unit.per_person]
ALONE = [f"patient-{i}" for i in range(120)]
SEVERAL = np.random.default_rng(4).integers(0, 20, 120)
OFFERED = [
    (method, variant)
    for method, variant in CASES
    if Unit.ADD_REMOVE_PERSON in CLASSES[method].units
]
ALL = pytest.mark.parametrize(("method", "variant"), OFFERED)
SEEDED = {"noise": "research", "random_state": 0}


def budget_of(method, variant):
    return "epsilon=1" if variant.get("selection") == "permute-and-flip" else "rho=0.5"


def learner(method, variant, **parameters):
    budget = budget_of(method, variant)
    if parameters.get("unit", "add-remove") in PERSON_UNITS and method == "coinpress":
        variant = {name: value for name, value in variant.items() if name != "counts"}
    return make(method, variant, **({"budget": budget} | parameters))


@ALL
@pytest.mark.parametrize("unit", PERSON_UNITS)
def test_the_promise_is_kept_and_within_the_budget(method, variant, unit):
    model = learner(method, variant, unit=unit, **SEEDED)
    promise = model.promise()
    assert promise.unit is unit
    assert Budget.parse(model.budget).permits(promise.event)
    fitted = model.fit(X, Y, persons=SEVERAL)
    assert fitted.guarantee_ == promise
    assert set(fitted.predict(X)) <= {0, 1, 2}
    looser = learner(method, variant, unit=Unit.ADD_REMOVE_PERSON).promise()
    if unit is Unit.REPLACE_PERSON and method not in UNUSED:
        assert looser.to(unit).rho >= promise.rho * (1 - 1e-6)


@ALL
def test_one_record_a_person_gives_what_records_give(method, variant):
    if method == "coinpress":
        pytest.skip("under a unit per person each step carries its own weights")
    of_records = learner(method, variant, **SEEDED).fit(X, Y)
    of_persons = learner(method, variant, unit="add-remove-person", **SEEDED).fit(
        X, Y, persons=ALONE
    )
    assert of_persons.guarantee_.rho == of_records.guarantee_.rho
    arrays, others = of_records.released_.arrays, of_persons.released_.arrays
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert np.allclose(
            others[name], array, rtol=1e-6, atol=1e-6 * max(np.abs(array).max(), 1)
        ), name


@ALL
def test_the_order_of_records_makes_no_difference(method, variant):
    """Sums are exact, and what a person adds depends on their own records alone."""
    order = np.random.default_rng(1).permutation(120)
    first = learner(method, variant, unit="add-remove-person", **SEEDED).fit(X, Y, persons=SEVERAL)
    other = learner(method, variant, unit="add-remove-person", **SEEDED).fit(
        X[order], Y[order], persons=SEVERAL[order]
    )
    assert same(first, other)


@ALL
def test_a_class_of_one_person_and_classes_without_records_work(method, variant):
    keep = (Y == 0) | (np.arange(120) == 50)
    model = learner(method, variant, unit="add-remove-person", **SEEDED)
    model.fit(X[keep], Y[keep], persons=np.where(Y[keep] == 1, -1, SEVERAL[keep]))
    assert all(np.isfinite(array).all() for array in model.released_.arrays.values())


@ALL
def test_missing_and_bad_ids_are_refused_before_a_charge(method, variant, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("epsilon=9" if "selection" in variant else "rho=9", "add-remove-person")
    model = learner(method, variant, unit="add-remove-person", ledger=ledger, **SEEDED)
    bad = [
        None,
        ALONE[:-1],
        [*ALONE, "patient-0"],
        [*ALONE[:-1], None],
        [*ALONE[:-1], ""],
        np.full(120, np.nan),
    ]
    for ids in bad:
        with pytest.raises(InputError, match=r"persons") as caught:
            model.fit(X, Y, persons=ids)
        assert "patient" not in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not ledger.account().charges
    model.fit(X, Y, persons=ALONE)
    assert len(ledger.account().charges) == 1


@ALL
def test_ids_under_a_unit_per_record_warn_and_change_nothing(method, variant):
    expected = learner(method, variant, **SEEDED).fit(X, Y)
    with pytest.warns(UserWarning, match="protects one record at a time"):
        found = learner(method, variant, **SEEDED).fit(X, Y, persons=SEVERAL)
    assert same(expected, found)


@pytest.mark.parametrize("method", sorted({method for method, _ in OFFERED}))
def test_ids_go_through_pipelines(method):
    keep = FunctionTransformer()
    model = learner(method, {}, unit="add-remove-person", **SEEDED)
    direct = learner(method, {}, unit="add-remove-person", **SEEDED).fit(X, Y, persons=SEVERAL)
    step = type(model).__name__.lower()
    found = make_pipeline(keep, model).fit(X, Y, **{f"{step}__persons": SEVERAL})[-1]
    assert same(direct, found)
    with config_context(enable_metadata_routing=True):
        asked = learner(method, {}, unit="add-remove-person", **SEEDED).set_fit_request(
            persons=True
        )
        routed = make_pipeline(keep, asked).fit(X, Y, persons=SEVERAL)[-1]
    assert same(direct, routed)


def test_a_ledger_per_person_refuses_a_fit_per_record(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=1", "add-remove-person")
    with pytest.raises(LedgerError, match="learn under add-remove-person"):
        tacit.NoisySumPrototypes(classes=3, ledger=ledger).fit(X, Y)
    ledger.allow("rho=100", "add-remove-person")
    assert not ledger.account().charges


def test_a_person_who_dominates_a_class_moves_it_by_one_unit():
    """A thousand equal records of one person count as one."""
    rows, labels = (
        np.concatenate([X, np.tile(X[:1], (1000, 1))]),
        np.concatenate([Y, np.full(1000, 2)]),
    )
    ids = np.concatenate([np.arange(120), np.full(1000, 120)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tacit.NoisySumPrototypes("rho=1e6", classes=3, unit="add-remove-person", **SEEDED)
        with_person, without = (
            model.fit(rows, labels, persons=ids).prototypes_,
            model.fit(X, Y, persons=ids[:120]).prototypes_,
        )
    assert 0.99 < np.linalg.norm(with_person - without) < 1.01


@ALL
def test_the_release_says_how_a_person_is_bounded(method, variant):
    model = learner(method, variant, unit="add-remove-person", **SEEDED)
    facts = model.fit(X, Y, persons=SEVERAL).released_.mechanism
    assert facts["bound of a person"] == model.person_bound
    assert (
        "bound of a person" not in learner(method, variant, **SEEDED).fit(X, Y).released_.mechanism
    )


@ALL
def test_noise_does_not_show_that_all_rows_are_zeros(method, variant, monkeypatch):
    """Rows of zeros are left out, and without rows noise must be as with the rows of persons."""
    scales = []

    def seen(self, values, scale):
        scales[-1].append(scale)
        return np.zeros_like(values)

    monkeypatch.setattr("tacit.mechanisms.noise.ResearchNoise.gaussian", seen)
    one = np.zeros_like(X)
    one[0] = X[0]
    for rows in (np.zeros_like(X), one):
        scales.append([])
        learner(method, variant, unit="add-remove-person", **SEEDED).fit(rows, Y, persons=SEVERAL)
    assert scales[0] == scales[1]
