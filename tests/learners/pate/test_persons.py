"""PATE per person: one person moves one vote, whatever their records; what is promised, stated and
refused.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import tacit
from mechanisms.exact_votes import log_check_chances, log_label_chances
from messages import lacking, stating
from tacit.data.persons import Persons
from tacit.errors import InputError, LedgerError
from tacit.learners.common.overlap import OVERLAP
from tacit.learners.pate.ensemble import Ensemble
from tacit.learners.pate.teachers import allocate
from tacit.mechanisms.noisy_argmax import label_event
from tacit.mechanisms.noisy_check import check_event
from tacit.privacy.unit import Unit

CENTRES = 3 * np.eye(3, 4)
BUDGETS = {"a": 1.0, "b": 2.0}
PERSONS = 300


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 4)), y


X, Y = records(1000, 0)
IDS = np.concatenate(
    [np.arange(PERSONS), np.random.default_rng(1).integers(0, PERSONS, 1000 - PERSONS)]
)
OF_PERSONS = np.random.default_rng(2).choice(["a", "b"], PERSONS)
PUBLIC = records(200, 3)[0]
PER_PERSON = {"classes": 3, "unit": "replace-person", "noise": "research", "random_state": 0}


def pate(budget=None, **parameters):
    return tacit.PATE.of_flat(
        **PER_PERSON | parameters | ({} if budget is None else {"budget": budget})
    )


def replaced(person, how):
    """X, labels and ids where a person has other records; the place in the list, the first
    record's, stays.
    """
    own = person == IDS
    rows = np.flatnonzero(own)
    if how == "values":
        return np.where(own[:, None], -X, X), Y, IDS
    if how == "labels":
        return X, np.where(own, (Y + 1) % 3, Y), IDS
    x, y, ids = (np.delete(array, rows[1:], axis=0) for array in (X, Y, IDS))
    if how == "fewer records":
        return x, y, ids
    more, labels = records(150, 9)
    x[rows[0]], y[rows[0]], ids[rows[0]] = more[0], labels[0], 10**6
    return (
        np.concatenate([x, more[1:]]),
        np.concatenate([y, labels[1:]]),
        np.append(ids, np.full(149, 10**6)),
    )


@pytest.mark.parametrize("teacher", [KNeighborsClassifier(1), "mlp"])
@pytest.mark.parametrize("how", ["values", "labels", "fewer records", "another person"])
def test_a_replaced_person_moves_one_vote(teacher, how):
    if isinstance(teacher, str):
        pytest.importorskip("torch", reason="networks need torch")

    def fit(x, y, ids):
        facts = {
            "n_teachers": 20,
            "teacher": teacher,
            "aggregator": "gnmax",
            "sigma": 5.0,
            "allow_overlap": True,
        }
        facts |= {"teacher_training": {"epochs": 4}} if isinstance(teacher, str) else {}
        return pate("rho=0.5", public=asked, **facts).fit(x, y, persons=ids).votes_.votes

    person = 5
    asked = np.concatenate([PUBLIC, X[person == IDS], -X[person == IDS]])
    before = fit(X, Y, IDS)
    assert (fit(*replaced(person, how)) != before).any(axis=0).sum() == 1


@pytest.mark.parametrize("collector", ["gnmax", "upsampling", "vanishing", "weighting"])
def test_with_budgets_a_replaced_person_moves_the_votes_that_are_paid_for(collector):
    def fit(x, y, ids, person=0):
        facts = {
            "collector": collector,
            "teacher": KNeighborsClassifier(1),
            "n_teachers": 20,
            "budgets": BUDGETS,
        }
        groups = OF_PERSONS[np.where(ids == 10**6, person, ids)]
        model = pate(**facts, allow_overlap=True)
        return model.fit(x, y, persons=ids, groups=groups, public=asked).votes_.votes

    asked = np.concatenate([PUBLIC, X[IDS < 4], -X[IDS < 4]])
    before = fit(X, Y, IDS)
    for person, how in itertools.product(range(4), ("values", "another person")):
        moved = int((fit(*replaced(person, how), person) != before).any(axis=0).sum())
        assert 1 <= moved <= (2 if collector == "upsampling" and OF_PERSONS[person] == "b" else 1)


def hockey_stick(log_p, log_q, epsilon):
    return float(np.maximum(np.exp(log_p) - math.exp(epsilon) * np.exp(log_q), 0).sum())


def test_all_neighbours_of_small_data_differ_by_one_vote_and_cost_what_is_stated():
    """Three persons with up to three records in up to three classes; each of them replaced in every
    way.
    """
    blocks = [
        block
        for size in (1, 2, 3)
        for block in itertools.combinations_with_replacement(range(3), size)
    ]
    some = [(0,), (1, 1, 2), (0, 2)]
    sigma, sigma1, threshold = 1.5, 2.0, 2.0

    def counts(data):
        """Votes of three teachers on one query, of shape (3,); the records of the persons
        alternate.
        """
        rows = [
            (place, label)
            for number in range(3)
            for place, b in enumerate(data)
            for label in b[number : number + 1]
        ]
        ids, y = (np.array(column) for column in zip(*rows, strict=True))
        parts = allocate(
            np.full(len(y), "all"), {"all": math.inf}, 3, "gnmax", 0, Persons.of(ids, len(y))
        ).parts
        x = np.eye(3)[y]
        ensemble = Ensemble(DummyClassifier(), parts, x, y, x[:1], n_classes=3, private_sizes=True)
        return np.bincount(ensemble.votes().votes[0], minlength=3)

    pairs = set()
    for place, others in itertools.product(range(3), itertools.product(some, repeat=2)):
        found = {
            tuple(counts([*others[:place], block, *others[place:]]).tolist()) for block in blocks
        }
        pairs |= set(itertools.permutations(found, 2))
    # one vote, from one class to another
    assert max(np.abs(np.subtract(*pair)).sum() for pair in pairs) == 2
    label, check = label_event(sigma, 1.0), check_event(sigma1, 1.0)
    for epsilon in (0.0, 0.5, 1.0):
        for event, chances in (
            (label, lambda own: log_label_chances(np.array(own), sigma)),
            (check, lambda own: log_check_chances(max(own), threshold, sigma1)),
        ):
            worst = max(hockey_stick(chances(one), chances(other), epsilon) for one, other in pairs)
            stated = norm.cdf(event.mu / 2 - epsilon / event.mu) - math.exp(epsilon) * norm.cdf(
                -event.mu / 2 - epsilon / event.mu
            )
            assert worst <= stated + 1e-9
            assert epsilon > 0 or worst > 0.9 * stated


def test_what_is_promised_per_person():
    model = pate("epsilon=2,delta=1e-5")
    promise = model.promise()
    assert promise.unit is Unit.REPLACE_PERSON
    assert promise.unprotected == ("number of persons", OVERLAP)
    assert promise.epsilon(1e-5) == pytest.approx(2, rel=1e-6)
    assert not lacking(promise.statement(), "one person", "replace")
    assert promise.to("replace").event == promise.to("change-label").event == promise.event
    with pytest.raises(InputError, match=stating("unit=replace-person", "unit=add-remove-person")):
        promise.to("add-remove-person")
    fitted = model.fit(X, Y, persons=IDS, public=PUBLIC)
    assert fitted.guarantee_ == promise == fitted.answers_.guarantee_
    assert fitted.spent_.unit is Unit.REPLACE_PERSON
    assert 0 < fitted.spent_.epsilon(1e-5) <= 2
    assert fitted.votes_.votes.shape[1] == PERSONS // 20  # not 1000 // 20
    with_groups = pate(budgets=BUDGETS).promise()
    assert with_groups.unprotected == (
        "number of persons",
        "which person is in which budget group",
        "budgets of the groups",
        OVERLAP,
    )
    assert with_groups.unit is Unit.REPLACE_PERSON
    per_record = pate("rho=1", unit="replace").promise()
    assert (per_record.unit, per_record.unprotected) == (
        Unit.REPLACE,
        ("number of records", OVERLAP),
    )


def test_a_release_says_that_it_is_about_persons():
    model = pate("epsilon=2,delta=1e-5", noise="secure", random_state=None).fit(
        X, Y, persons=IDS, public=PUBLIC
    )
    release = tacit.Release.of(model)
    release.verify()
    assert release.guarantee.unit is Unit.REPLACE_PERSON


def test_a_ledger_per_person_counts_it(tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger.jsonl", "people")
    ledger.allow("rho=0.6", unit="replace-person")
    pate("rho=0.5", ledger=ledger).fit(X, Y, persons=IDS, public=PUBLIC)
    assert ledger.account().spent.rho == pytest.approx(0.5)
    with pytest.raises(LedgerError, match=stating("under replace", "replace-person")):
        pate("rho=0.1", unit="replace", ledger=ledger).fit(X, Y, public=PUBLIC)


def test_with_one_record_each_persons_vote_as_records_do():
    facts = {"n_teachers": 30, "teacher": GaussianNB(), "aggregator": "gnmax", "sigma": 10.0}
    of_records = pate("rho=0.5", unit="replace", **facts).fit(X, Y, public=PUBLIC)
    of_persons = pate("rho=0.5", **facts).fit(X, Y, persons=np.arange(1000)[::-1], public=PUBLIC)
    assert np.array_equal(of_records.votes_.votes, of_persons.votes_.votes)
    assert np.array_equal(of_records.answers_.labels, of_persons.answers_.labels)
    assert of_records.guarantee_.event == of_persons.guarantee_.event


def test_ids_are_needed_per_person_and_unused_per_record():
    with pytest.raises(InputError, match=stating("unit=replace-person", "persons=")):
        pate("rho=0.5").fit(X, Y, public=PUBLIC)
    with pytest.raises(InputError, match="persons has 999 ids for 1000 records"):
        pate("rho=0.5").fit(X, Y, persons=IDS[1:], public=PUBLIC)
    with pytest.raises(InputError, match=stating("unit=add-remove-person", "PATE", "replace")):
        pate("rho=0.5", unit="add-remove-person").promise()
    with pytest.warns(
        UserWarning,
        match=stating("unit=replace", "unit='replace-person'", "unused"),
    ):
        given = pate("rho=0.5", unit="replace").fit(X, Y, persons=IDS, public=PUBLIC)
    assert np.array_equal(
        given.votes_.votes, pate("rho=0.5", unit="replace").fit(X, Y, public=PUBLIC).votes_.votes
    )
    mixed = np.where(np.arange(1000) < 700, "a", "b")
    with pytest.raises(InputError, match=stating("person", "several budget groups")):
        pate(budgets=BUDGETS).fit(X, Y, persons=IDS, groups=mixed, public=PUBLIC)


@pytest.mark.parametrize("budgets", [1.0, BUDGETS])
def test_votes_of_ones_own_may_be_of_persons(budgets):
    ballots = np.random.default_rng(0).integers(0, 3, (50, 200))
    facts = {
        "classes": 3,
        "aggregator": "gnmax",
        "sigma": 40.0,
        "budgets": budgets,
        "noise": "research",
    }
    facts |= {"shares": {"a": 0.5, "b": 0.5}} if isinstance(budgets, dict) else {}
    one, other = (
        tacit.pate.aggregate(ballots, unit=unit, random_state=0, **facts)
        for unit in Unit
        if "repl" in unit
    )
    assert (one.guarantee_.unit, other.guarantee_.unit) == (Unit.REPLACE, Unit.REPLACE_PERSON)
    assert np.array_equal(one.labels, other.labels)
    assert one.guarantee_.totals() == other.guarantee_.totals()
    with pytest.raises(InputError, match=stating("unit='add-remove'", "replace-person")):
        tacit.pate.aggregate(ballots, unit="add-remove", **facts)
