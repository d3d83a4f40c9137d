"""Private choices: by enumeration of neighbouring data, and by what they refuse."""

import math
from itertools import product

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.data.persons import Persons
from tacit.errors import BudgetError, InputError, LedgerError
from tacit.measure.choosing import SCALE, choice_among, guarantee_of, scores_of, selection_of
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

EPSILON = 0.8
# what two or three candidates may answer: right or wrong
ANSWERS = [np.array(answers, dtype=bool) for answers in product([0, 1], repeat=2)]


class Constant:
    """A classifier that says the same of every row."""

    def __init__(self, label, classes=("cat", "dog")):
        self.classes_ = np.array(classes)
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


CAT = Constant("cat")
DOG = Constant("dog")


def probabilities(scores, epsilon, selection, sensitivity=1):
    """Probability of each index, in closed form or by all orders of two candidates."""
    gaps = (scores.max() - scores) * epsilon / sensitivity
    if selection == "exponential":
        weights = np.exp(-gaps)
        return weights / weights.sum()
    # permute-and-flip of two: the one at the top is returned as soon as its turn comes
    heads = np.exp(-gaps)
    first = [heads[i] + (1 - heads[i]) * 0 for i in range(2)]
    of_zero = 0.5 * first[0] + 0.5 * (1 - first[1]) * 1
    return np.array([of_zero, 1 - of_zero])


def neighbours(unit):
    """Answers of two candidates on the records of two persons, and those of a neighbour."""
    ids = np.array([0, 1, 1])
    for before in product(ANSWERS, repeat=3):
        right = np.array(before).T
        members = Persons(ids)
        if unit is Unit.ADD_REMOVE:
            yield (right, None), (right[:, 1:], None)
        elif unit in (Unit.REPLACE, Unit.CHANGE_LABEL):
            for answers in ANSWERS:
                other = right.copy()
                other[:, 0] = answers
                yield (right, None), (other, None)
        elif unit is Unit.ADD_REMOVE_PERSON:
            yield (right, members), (right[:, :1], Persons(ids[:1]))
        else:
            for first, second in product(ANSWERS, repeat=2):
                other = right.copy()
                other[:, 1] = first
                other[:, 2] = second
                yield (right, members), (other, members)


@pytest.mark.parametrize("selection", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("unit", list(Unit))
def test_neighbours_are_as_alike_as_stated_and_no_more(unit, selection):
    budget = Budget.pure(EPSILON) if selection == "permute-and-flip" else Budget.zcdp(0.08)
    epsilon, mechanism = selection_of(budget, unit)
    assert mechanism == selection
    guarantee = guarantee_of(epsilon, selection, unit)
    assert guarantee.unit is unit
    assert budget.permits(guarantee.event)

    sensitivity = SCALE if unit.per_person else 1
    worst = 0.0
    widest = 0.0
    for one, other in neighbours(unit):
        p = probabilities(scores_of(*one), epsilon, selection, sensitivity)
        q = probabilities(scores_of(*other), epsilon, selection, sensitivity)
        losses = np.log(p / q)
        worst = max(worst, np.abs(losses).max())
        widest = max(widest, np.ptp(losses))

    stated = guarantee.epsilon(0.0)
    assert worst <= stated * (1 + 1e-9)
    if selection == "exponential":
        # bounded range, which some neighbours reach
        assert widest == pytest.approx(stated)
    else:
        assert worst > 0.6 * stated


def test_a_choice_is_drawn_with_these_probabilities():
    X = np.zeros((5, 1))
    y = ["cat"] * 3 + ["dog"] * 2
    for budget, selection in (("epsilon=0.8", "permute-and-flip"), ("rho=0.08", "exponential")):
        n = 500
        first = 0
        for seed in range(n):
            kwargs = {"budget": budget, "noise": "research", "random_state": seed}
            first += tacit.choose([CAT, DOG], X, y, **kwargs) == 0
        expected = probabilities(np.array([3, 2]), 0.8, selection)[0]
        deviation = math.sqrt(expected * (1 - expected) / n)
        assert first / n == pytest.approx(expected, abs=4 * deviation)


def test_persons_are_drawn_by_their_scale():
    # each of four persons has two records; one of them is a dog's
    y = ["cat"] * 6 + ["dog"] * 2
    ids = np.arange(8) // 2
    n = 300
    first = 0
    for seed in range(n):
        chosen = tacit.choose(
            [CAT, DOG],
            np.zeros((8, 1)),
            y,
            budget="rho=0.08",
            unit="add-remove-person",
            persons=ids,
            noise="research",
            random_state=seed,
        )
        first += chosen == 0
    expected = probabilities(np.array([3, 1]), 0.8, "exponential")[0]
    assert first / n == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))


def test_persons_count_one_each():
    # the first person is right twice by candidate 0, the second once of three by candidate 1
    right = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0]], dtype=bool)
    scores = scores_of(right, Persons(np.array([0, 0, 1, 1, 1])))
    assert scores.tolist() == [SCALE, SCALE // 2 + SCALE // 3]


def test_one_record_of_a_person_moves_scores_no_more_than_a_person():
    for m in range(1, 40):
        moves = set()
        for right in range(m + 1):
            for more in (0, 1):
                moves.add(SCALE * (right + more) // (m + 1) - SCALE * right // m)
        assert max(moves) - min(moves) <= SCALE


@pytest.mark.parametrize("unit", [Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON])
@pytest.mark.parametrize("budget", ["rho=0.1", "mu=0.3", "epsilon=0.4,delta=1e-6", "epsilon=0.4"])
def test_budgets_are_kept_under_every_unit(budget, unit):
    budget = Budget.parse(budget)
    spent = guarantee_of(*selection_of(budget, unit), unit)
    twice = Unit.REPLACE_PERSON if unit.per_person else Unit.CHANGE_LABEL
    dearer = guarantee_of(*selection_of(budget, twice), twice)
    for guarantee in (spent, dearer):
        assert budget.permits(guarantee.event)
    assert dearer.epsilon(0.0) == pytest.approx(spent.epsilon(0.0), rel=1e-6)


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path, monkeypatch):
    X, y = np.zeros((4, 1)), ["cat", "cat", "dog", "cat"]
    ledger = tacit.Ledger(tmp_path / "a.ledger.jsonl", "test records")
    ledger.allow("epsilon=1")
    choice = choice_among([DOG, CAT], X, y, budget="epsilon=0.6", ledger=ledger)
    (charge,) = ledger.account().charges
    assert charge.guarantee.event == choice.guarantee_.event
    assert "ledger of 'test records'" in choice.guarantee_.scope

    def no_noise(*_, **__):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("tacit.measure.choosing.select", no_noise)
    with pytest.raises(LedgerError, match="overdraw"):
        tacit.choose([DOG, CAT], X, y, budget="epsilon=0.6", ledger=ledger)
    with pytest.raises(AssertionError):
        tacit.choose([DOG, CAT], X, y, budget="epsilon=0.4", ledger=ledger)
    assert len(ledger.account().charges) == 2


def test_rows_of_several_encoders():
    learners = []
    tables = []
    for width in (2, 3):
        X = np.repeat(np.eye(2, width), 200, axis=0)
        y = np.repeat(["cat", "dog"], 200)
        learner = tacit.NoisySumPrototypes("rho=5", classes=["cat", "dog"])
        learners.append(learner.fit(-X if width == 2 else X, y))
        tables.append(X)
    assert tacit.choose(learners, tables, y, budget="epsilon=1") == 1
    with pytest.raises(InputError, match="rows of 1 encoders for 2 releases"):
        tacit.choose(learners, tables[:1], y, budget="epsilon=1")
    with pytest.raises(InputError, match="199 rows for release 1 and y has 400 labels"):
        tacit.choose(learners, [tables[0], tables[1][:199]], y, budget="epsilon=1")


@pytest.mark.parametrize(
    ("releases", "options", "words"),
    [
        ([CAT], {}, ("1 release leaves nothing to choose",)),
        ([CAT, Constant("cat", ("cat", "cow"))], {}, ("0 and 1 differ", "'dog'", "'cow'")),
        ([CAT, DOG], {"budget": "rho=inf"}, ("asks for no protection",)),
        ([CAT, DOG], {"budget": 3}, ("budget=3",)),
        ([CAT, DOG], {"unit": "add-remove-person"}, ("persons=...",)),
        ([CAT, DOG], {"unit": 3}, ("unit=3 must be text",)),
        ([CAT, DOG], {"ledger": "a"}, ("must be a Ledger",)),
        ([CAT, DOG], {"noise": "none"}, ("noise='none'",)),
        ([CAT, DOG], {"y": ["cat", "cow", "dog"]}, ("'cow'",)),
        ([CAT, DOG], {"y": []}, ("no test records",)),
        ([CAT, DOG], {"y": [["cat"], ["dog"], []]}, ("several labels",)),
    ],
)
def test_bad_arguments_are_refused(releases, options, words):
    arguments = {"X": np.zeros((3, 1)), "y": ["cat", "dog", "dog"], "budget": "epsilon=1"}
    with pytest.raises((InputError, BudgetError), match=stating(*words)):
        tacit.choose(releases, **(arguments | options))
