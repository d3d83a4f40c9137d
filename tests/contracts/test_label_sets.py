"""Every learner of several labels a record: promises, predictions, ledgers and persons.

`test_replay.py` replays them on neighbouring data.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from contracts.learners import SETS, SEVERAL_CASES, WIDTH, X, Y, budget_of, finite, make, same
from messages import stating
from tacit.errors import InputError, LedgerError
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

ALL = pytest.mark.parametrize(("method", "variant"), SEVERAL_CASES)
SEEDED = {"noise": "research", "random_state": 0}
LISTS = [np.flatnonzero(labels).tolist() for labels in SETS[Y]]
PERSONS = np.random.default_rng(4).integers(0, 20, 120)


def without_names(variant):
    """The parameters without rows of names, which fit one class list alone."""
    return {name: value for name, value in variant.items() if name != "names"}


@ALL
@pytest.mark.parametrize("unit", list(Unit))
def test_the_promise_is_kept_and_spends_the_budget(method, variant, unit):
    learner = make(method, variant, unit=unit, **SEEDED)
    promise = learner.promise()
    assert promise.rho == pytest.approx(0.5, rel=1e-6)
    assert Budget.parse("rho=0.5").permits(promise.event)
    persons = PERSONS if unit.per_person else None
    fitted = learner.fit(X, SETS[Y], persons=persons)
    assert fitted.guarantee_ == fitted.spent_ == promise
    assert finite(fitted)
    assert set(np.unique(fitted.predict(X))) <= {0, 1}


@ALL
@pytest.mark.parametrize("unit", ["add-remove", "change-label", "add-remove-person"])
def test_the_price_does_not_depend_on_the_labels(method, variant, unit):
    """Neither on their number nor on the most labels that a record may have."""
    without_tables = {
        name: value for name, value in variant.items() if name not in ("names", "counts")
    }
    few = make(method, without_tables, unit=unit).promise()
    many = make(method, without_tables | {"most_labels": 50}, unit=unit, classes=1000).promise()
    assert many.event == few.event


@ALL
def test_predictions_have_a_column_a_label(method, variant):
    model = make(method, variant, **SEEDED).fit(X, SETS[Y])
    probabilities = model.predict_proba(X)
    assert probabilities.shape == model.decision_function(X).shape == (120, 3)
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1
    thresholds = model.released_.label_sets.thresholds
    expected = (probabilities >= thresholds).astype(np.int64)
    np.testing.assert_array_equal(model.predict(X), expected)
    whole_sets = (expected == SETS[Y]).all(axis=1).mean()
    assert model.score(X, SETS[Y]) == model.score(X, LISTS) == whole_sets
    of_two = make(method, without_names(variant), classes=2, **SEEDED).fit(X, SETS[Y, :2])
    assert of_two.decision_function(X).shape == of_two.predict_proba(X).shape == (120, 2)


@ALL
def test_every_form_of_y_gives_the_same_release(method, variant, tmp_path):
    names = np.array(["wolf", "ant", "mole"])
    of_matrix = make(method, variant, **SEEDED).fit(X, SETS[Y])
    of_lists = make(method, variant, classes=names, **SEEDED)
    of_lists.fit(X, [list(names[labels]) for labels in LISTS])
    assert same(of_matrix, of_lists)
    assert same(of_matrix, make(method, variant, **SEEDED).fit(X, SETS[Y].astype(float)))

    release = tacit.Release.of(pickle.loads(pickle.dumps(of_lists)))
    assert release.several
    release.save(tmp_path / "release", allow_research=True)
    loaded = tacit.Release.load(tmp_path / "release")
    assert loaded.verify()
    np.testing.assert_array_equal(loaded.predict(X), of_matrix.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), of_matrix.predict_proba(X))


@ALL
def test_rows_of_zeros_and_the_order_of_records_change_nothing(method, variant):
    order = np.random.default_rng(1).permutation(120)
    zeros = np.concatenate([X, np.zeros((5, WIDTH))])
    model = make(method, variant, **SEEDED).fit(X, SETS[Y])
    with_zeros = make(method, variant, **SEEDED)
    with_zeros.fit(zeros, np.concatenate([SETS[Y], SETS[:1].repeat(5, axis=0)]))
    assert same(model, with_zeros)
    assert same(model, make(method, variant, **SEEDED).fit(X[order], SETS[Y][order]))

    per_person = make(method, variant, unit="add-remove-person", **SEEDED)
    first = clone(per_person).fit(X, SETS[Y], persons=PERSONS)
    assert same(first, per_person.fit(X[order], SETS[Y][order], persons=PERSONS[order]))


@ALL
def test_an_infinite_budget_has_no_randomness(method, variant):
    fits = [make(method, variant, budget="epsilon=inf").fit(X, SETS[Y]) for _ in range(2)]
    assert fits[0].guarantee_.rho is None
    assert same(*fits)


@ALL
@pytest.mark.parametrize("labels", [SETS[[0]], SETS[[2] * 3], np.ones((120, 3))])
def test_labels_without_records_or_of_all_records_work(method, variant, labels):
    for budget in ("rho=0.5", "rho=inf"):
        model = make(method, variant, budget=budget).fit(X[: len(labels)], labels)
        assert finite(model)
        assert model.predict(X).shape == (120, 3)


@ALL
def test_bad_labels_are_one_line_and_cost_nothing(method, variant, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    learner = make(method, variant, ledger=ledger)
    learner.check(*X.shape)
    cases = [
        (Y, stating("one label a record", "leave most_labels out")),
        (Y.tolist(), stating("one label a record", "leave most_labels out")),
        (SETS[Y, :2], stating("shape (120, 2)", "3 classes")),
        (SETS[Y][:-1], stating("y has 119 rows beside 120 of X")),
        ([*LISTS[:-1], [7]], stating("row 119 of y has label 7")),
    ]
    for labels, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            learner.fit(X, labels)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"pass most_labels=m"):
        make(method, variant | {"most_labels": None}, ledger=ledger).fit(X, SETS[Y])
    with pytest.raises(InputError, match=r"classes=None .* pass classes="):
        make(method, without_names(variant), classes=None, ledger=ledger).fit(X, SETS[Y])
    assert not ledger.path.exists()


@ALL
def test_the_ledger_is_charged_the_promise(method, variant, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=0.5")
    learner = make(method, variant, ledger=ledger).fit(X, SETS[Y])
    assert ledger.account().charges[0].guarantee == learner.promise()
    with pytest.raises(LedgerError, match="would overdraw"):
        clone(learner).fit(X, SETS[Y])


@ALL
def test_one_record_a_person_gives_what_records_give(method, variant):
    of_records = make(method, variant, **SEEDED).fit(X, SETS[Y])
    of_persons = make(method, variant, unit="add-remove-person", **SEEDED)
    of_persons.fit(X, SETS[Y], persons=np.arange(120))
    assert replace(of_persons.guarantee_, unit=of_records.guarantee_.unit).rho == pytest.approx(
        of_records.guarantee_.rho
    )
    for name, array in of_records.released_.arrays.items():
        np.testing.assert_allclose(
            of_persons.released_.arrays[name], array, rtol=1e-5, atol=1e-5 * np.abs(array).max()
        )


LEARNERS_OF_ONE = {
    "global-adapt": "learns one label a record",
    "label-private": "randomizes one label per record",
    "pate": "votes for one class",
}


@pytest.mark.parametrize("method", LEARNERS_OF_ONE)
def test_learners_of_one_label_say_why(method):
    with pytest.raises(InputError, match=LEARNERS_OF_ONE[method]) as caught:
        make(method, budget=budget_of(method)).fit(X, SETS[Y])
    assert "\n" not in str(caught.value)
