"""One voting read at smaller budgets: equal, label by label, to votings of those budgets."""

import math

import numpy as np
import pytest

import tacit
from messages import lacking, stating
from tacit.errors import BudgetError, InputError
from tacit.learners.pate.data_dependent import consensus
from tacit.privacy.budget import Budget

GROUPS = {"a": 1.0, "b": 2.0, "c": 3.0}
NOISE = {"sigma": 30.0, "sigma1": 60.0, "threshold": 80.0}
FACTS = {"classes": 5, "noise": "research", "random_state": 0}


def ballots(n_queries=1500, n_teachers=120):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, n_queries)
    return np.where(
        rng.random((n_queries, n_teachers)) < 0.8,
        truth[:, None],
        rng.integers(0, 5, (1, n_teachers)),
    )


VOTES = ballots()


def same(reading, voting):
    np.testing.assert_array_equal(reading.labels, voting.labels)
    assert (reading.asked, reading.answered) == (voting.asked, voting.answered)
    assert reading.spent_ == voting.spent_


@pytest.mark.parametrize("aggregator", ["confident", "gnmax"])
@pytest.mark.parametrize("collector", ["gnmax", "upsampling", "vanishing", "weighting"])
def test_a_reading_is_what_a_voting_of_that_budget_releases(collector, aggregator):
    noise = NOISE if aggregator == "confident" else {"sigma": 30.0}
    facts = (
        FACTS
        | noise
        | {
            "aggregator": aggregator,
            "collector": collector,
            "shares": {"a": 0.3, "b": 0.4, "c": 0.3},
        }
    )
    limits = [
        {group: share * epsilon for group, epsilon in GROUPS.items()} for share in (0.25, 0.5, 1.0)
    ]
    largest = tacit.pate.aggregate(VOTES, budgets=GROUPS, **facts)
    found = tacit.pate.readings(largest, limits)
    for limit, reading in zip(limits, found, strict=True):
        same(reading, tacit.pate.aggregate(VOTES, budgets=limit, **facts))
        for group, epsilon in limit.items():
            assert reading.spent_.epsilon(1e-5, group) <= epsilon
    assert found[0].asked < found[1].asked < found[2].asked == largest.asked < len(VOTES)
    assert found[0].limit == "a=0.25 b=0.5 c=0.75"


@pytest.mark.parametrize("aggregator", ["laplace", "gnmax"])
def test_a_reading_without_groups(aggregator):
    facts = (
        FACTS
        | {"aggregator": aggregator}
        | ({"sigma": 30.0} if aggregator == "gnmax" else {"gamma": 0.02})
    )
    largest = tacit.pate.aggregate(VOTES, budgets=1.0, **facts)
    (reading,) = tacit.pate.readings(largest, 0.4)
    same(reading, tacit.pate.aggregate(VOTES, budgets=0.4, **facts))
    assert tacit.pate.readings(largest, "epsilon=0.4,delta=1e-5")[0].asked == reading.asked
    (none,) = tacit.pate.readings(largest, 0.001)
    assert (none.asked, none.answered, none.labels.max()) == (0, 0, -1)


def test_a_voting_without_budgets_is_read_at_any():
    facts = FACTS | {"aggregator": "gnmax", "sigma": 30.0}
    unlimited = tacit.pate.aggregate(VOTES, **facts)
    assert unlimited.asked == len(VOTES)
    few, more = tacit.pate.readings(unlimited, [0.5, Budget.zcdp(0.1)])
    same(few, tacit.pate.aggregate(VOTES, budgets=0.5, **facts))
    assert more.answered == pytest.approx(0.1 * 30**2, abs=1)


def test_costs_end_at_what_was_spent():
    budgets = {"a": 1.0, "b": 2.0}
    facts = (
        FACTS
        | NOISE
        | {"collector": "weighting", "budgets": budgets, "shares": {"a": 0.5, "b": 0.5}}
    )
    out = tacit.pate.aggregate(VOTES, **facts)
    costs = out.costs
    assert [(one.asked, one.answered) for one in (costs[0], costs[-1])] == [
        (1, int(out.paid[0])),
        (out.asked, out.answered),
    ]
    for group, epsilon in budgets.items():
        spent = [one.epsilon[group] for one in costs]
        assert spent == sorted(spent)
        assert spent[-1] == pytest.approx(out.spent_.epsilon(1e-5, group))
        assert spent[-1] <= epsilon


def test_consensus_counts_queries_by_the_share_of_the_top_class():
    votes = np.array([[0] * 20, [0] * 19 + [1], [0] * 10 + [1] * 10, [0] * 11 + [2] * 9])
    expected = np.zeros(20, dtype=int)
    expected[[19, 18, 9, 10]] = 1
    np.testing.assert_array_equal(consensus(votes), expected)
    assert consensus(VOTES).sum() == len(VOTES)


GNMAX = FACTS | {"aggregator": "gnmax", "sigma": 30.0}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (1.5, ("epsilon=1.5,delta=1e-05", "epsilon=1,delta=1e-05")),
        ([0.5, "rho=0.1"], ("rho=0.1", "epsilon=1,delta=1e-05")),
        ("epsilon=0.5", ("of another kind",)),
        ([], ("limits is empty",)),
        (-1, ("-1", "'all'", "epsilon")),
        (math.nan, ("budget nan of group",)),
        (True, ("budget True",)),
        (None, ("budget None",)),
        ("much", ("budget",)),
        ({"a": 0.5}, ("budget",)),
    ],
)
def test_limits_that_no_prefix_tells_of_are_refused(limits, message):
    out = tacit.pate.aggregate(VOTES[:200], budgets=1.0, **GNMAX)
    with pytest.raises(BudgetError) as caught:
        tacit.pate.readings(out, limits)
    assert not lacking(str(caught.value), *message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("answers", [VOTES, tacit.PATE("rho=1"), None])
def test_only_answers_are_read(answers):
    with pytest.raises(
        InputError, match=stating(type(answers).__name__, "aggregate", "model.answers_")
    ):
        tacit.pate.readings(answers, 0.5)


def test_limits_name_every_group():
    facts = GNMAX | {
        "budgets": {"a": 1.0, "b": 2.0},
        "shares": {"a": 0.5, "b": 0.5},
        "collector": "weighting",
    }
    out = tacit.pate.aggregate(VOTES[:200], **facts)
    for limit in (0.5, {"a": 0.5}, {"a": 0.5, "z": 1.0}):
        with pytest.raises(BudgetError, match=stating("{'a': ..., 'b': ...}")):
            tacit.pate.readings(out, limit)
    with pytest.raises(BudgetError, match=stating("epsilon=2.5", "epsilon=2")):
        tacit.pate.readings(out, {"a": 0.5, "b": 2.5})


def test_a_voting_that_its_votes_stopped_is_not_read():
    out = tacit.pate.aggregate(VOTES, budgets=1.0, stopping="data-dependent", **GNMAX)
    with pytest.raises(BudgetError, match="stops by the filter"):
        tacit.pate.readings(out, 0.5)
