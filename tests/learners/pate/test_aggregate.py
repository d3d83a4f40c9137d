"""Voting: budgets are kept whatever the votes, by an account of our own; published counts are
reproduced.
"""

import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tacit
from mechanisms.exact_votes import (
    divergence,
    log_check_chances,
    log_label_chances,
    share_of_argmax,
    share_of_check,
)
from messages import stating
from tacit.errors import BudgetError, InputError
from tacit.learners.pate import collectors, voting
from tacit.learners.pate.aggregators import GNMax
from tacit.learners.pate.filter import Filter, allowance_of
from tacit.learners.pate.voting import Voting
from tacit.mechanisms.noise import SAMPLERS
from tacit.privacy.budget import Budget
from tacit.privacy.events import FilteredVotes

COLLECTORS = ("gnmax", "upsampling", "vanishing", "weighting")
DELTA = 1e-5


def ballots(n_queries, n_teachers, seed=0, n_classes=10):
    """Votes of teachers that are right most of the time, and the truth."""
    rng = np.random.RandomState(seed)
    truth = rng.randint(0, n_classes, n_queries)
    sure = rng.beta(8, 1.2, n_queries)
    right = rng.rand(n_teachers, n_queries) < sure
    wrong = (truth + rng.randint(1, n_classes, (n_teachers, n_queries))) % n_classes
    return np.where(right, truth, wrong).T, truth


def own_epsilon(divergence, order):
    """Renyi divergence at an order to epsilon at DELTA [Canonne, Kamath and Steinke 2020, Prop.
    12].
    """
    return divergence + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)


def own_order(epsilon):
    """The order that allows the largest rho, among many."""
    orders = 1 + np.exp(np.linspace(np.log(1e-3), np.log(1e5), 200_000))
    allowed = epsilon - np.log1p(-1 / orders) + np.log(DELTA * orders) / (orders - 1)
    return float(orders[np.argmax(allowed / orders)])


@cache
def own_costs(order, s, sigma, sigma1):
    """Renyi divergence of a label and of a check, by a search for the most expensive counts; 0 if
    nothing can move.
    """
    if s == 0:
        return 0.0, 0.0
    label = min(share_of_argmax(order, s / sigma), 1.0) * order * s**2 / sigma**2
    check = (
        0.0
        if math.isinf(sigma1)
        else min(share_of_check(order, s / sigma1), 1.0) * order * s**2 / (2 * sigma1**2)
    )
    return label, check


@st.composite
def votings(draw):
    n_groups = draw(st.integers(1, 4))
    names = [f"g{i}" for i in range(n_groups)]
    budgets = {name: draw(st.floats(0.3, 4)) for name in names}
    raw = {name: draw(st.integers(1, 20)) for name in names}
    shares = {name: part / sum(raw.values()) for name, part in raw.items()}
    return budgets, shares, draw(st.integers(40, 120)), draw(st.integers(0, 10**6))


@settings(max_examples=10, deadline=None)
@given(votings(), st.sampled_from(COLLECTORS), st.sampled_from(["gnmax", "confident"]))
def test_no_group_pays_more_than_its_budget(voting, collector, aggregator):
    check_a_voting(voting, collector, aggregator)


@pytest.mark.thorough
@pytest.mark.parametrize("aggregator", ["gnmax", "confident"])
@pytest.mark.parametrize("collector", COLLECTORS)
@settings(max_examples=125, deadline=None, suppress_health_check=list(HealthCheck))
@given(voting=votings())
def test_no_group_of_a_thousand_votings_pays_more_than_its_budget(collector, aggregator, voting):
    check_a_voting(voting, collector, aggregator)


@pytest.mark.parametrize("aggregator", ["gnmax", "confident"])
@pytest.mark.parametrize(
    ("budgets", "shares", "n_teachers", "seed"),
    [
        ((0.5, 0.3125), (1, 1), 40, 503),
        ((1.75, 0.625, 0.625), (1, 5, 1), 51, 0),
        ((1.0, 3.0, 0.3125), (3, 1, 1), 40, 1),
    ],
)
def test_few_queries_of_vanishing_teachers(budgets, shares, n_teachers, seed, aggregator):
    """A group of which no teacher takes part in any query pays nothing."""
    names = [f"g{i}" for i in range(len(budgets))]
    parts = {name: share / sum(shares) for name, share in zip(names, shares, strict=True)}
    check_a_voting(
        (dict(zip(names, budgets, strict=True)), parts, n_teachers, seed), "vanishing", aggregator
    )


def check_a_voting(voting, collector, aggregator):
    """Vote, and count what each group paid by code that shares nothing with the filter."""
    budgets, shares, n_teachers, seed = voting
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, 4, (300, n_teachers))
    sigma, sigma1 = rng.uniform(20, 60), rng.uniform(40, 120)
    own = {"sigma": sigma} | (
        {"sigma1": sigma1, "threshold": n_teachers / 3} if aggregator == "confident" else {}
    )
    facts = {
        "classes": 4,
        "aggregator": aggregator,
        "collector": collector,
        "budgets": budgets,
        "shares": shares,
    }
    try:
        out = tacit.pate.aggregate(votes, **facts, **own, noise="research", random_state=seed)
    # a small group has no teacher, a small budget no query
    except (BudgetError, InputError) as error:
        assume(
            not any(
                reason in str(error)
                for reason in ("no teacher", "copies of group", "not allow one query")
            )
        )
        raise
    bought = out.labels >= 0
    assert bought.sum() == out.answered
    assert not bought[out.asked :].any()
    spent = []
    for group, epsilon in budgets.items():
        order, sigmas = (
            own_order(epsilon),
            (sigma, sigma1 if aggregator == "confident" else math.inf),
        )
        s = np.broadcast_to(out.sensitivity[group], 300)[: out.asked]
        turns = (
            turns_of(votes.shape[1], budgets, shares, group, out)
            if collector == "vanishing"
            else s[None]
        )
        each = []
        for of_teacher in turns:
            costs = np.array([own_costs(order, value, *sigmas) for value in of_teacher])
            each.append(np.sum(costs[:, 0] * bought[: out.asked]) + np.sum(costs[:, 1]))
        paid = own_epsilon(max(each), order)
        assert paid <= epsilon
        assert out.spent_.epsilon(DELTA, group) <= epsilon
        assert out.guarantee_.epsilon(DELTA, group) <= epsilon
        rho = max(
            np.sum(row**2 * bought[: out.asked]) / sigma**2 + np.sum(row**2) / (2 * sigmas[1] ** 2)
            for row in turns
        )
        totals = dict(zip(budgets, out.spent_.totals(), strict=True))
        assert totals[group].rho == pytest.approx(rho, rel=1e-9)
        # of a query that was asked or might be next
        largest = float(np.max(out.sensitivity[group]))
        one_more = own_epsilon(max(each) + sum(own_costs(order, largest, *sigmas)), order)
        spent.append(one_more > 0.8 * epsilon)
    assert out.asked == 300 or any(spent)


def turns_of(n_teachers, budgets, shares, group, out):
    """What each teacher of a group could move at each query under vanishing."""
    sizes = collectors.teachers_of(shares, n_teachers)
    names = [name for name in shares for _ in range(sizes[name])]
    taking_part = collectors.VanishingCollector(
        budgets, collectors.holds_of(names, list(budgets))
    ).participation(slice(0, out.asked))
    weight = np.floor(2**20 * n_teachers / taking_part.sum(axis=1)) / 2**20
    each = (taking_part * weight[:, None]).T
    return np.unique([each[i] for i, name in enumerate(names) if name == group], axis=0)


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("order", [2.0, 8.0])
def test_each_record_is_charged_what_it_can_change(collector, order):
    """The noisy answer to one query, of neighbours that differ in the votes behind one record."""
    budgets, shares = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 0.5, "b": 0.25, "c": 0.25}
    sigma, sigma1, threshold = 4.0, 6.0, 7.0
    own = collectors.copies_for(budgets)
    scale = sum(shares[g] * own[g] for g in budgets) if collector == "upsampling" else 1.0
    n_teachers = round(12 * scale)
    names = [g for g, n in collectors.teachers_of(shares, 12).items() for _ in range(n)]
    rng = np.random.default_rng(0)
    for _ in range(10):
        votes = rng.integers(0, 3, (7, n_teachers))
        out = tacit.pate.aggregate(
            votes,
            classes=3,
            collector=collector,
            budgets=dict.fromkeys(budgets, 1e6) | {g: 1e3 * e for g, e in budgets.items()},
            shares=shares,
            sigma=sigma,
            sigma1=sigma1,
            threshold=threshold,
            noise="research",
            random_state=0,
        )
        for query in (0, 3, 6):
            weights = np.ones(n_teachers)
            if collector == "weighting":
                weights = np.array([budgets[name] for name in names])
                weights *= 12 / weights.sum()
            if collector == "vanishing":
                turns = collectors.VanishingCollector(
                    budgets, collectors.holds_of(names, list(budgets))
                )
                weights = turns.participation(slice(query, query + 1))[0].astype(float)
                weights *= 12 / weights.sum()
            for group in budgets:
                s = float(np.broadcast_to(out.sensitivity[group], 7)[query])
                if collector == "upsampling":
                    changed = rng.choice(n_teachers, own[group], replace=False)
                else:
                    changed = [rng.choice([i for i, name in enumerate(names) if name == group])]
                other = votes[query].copy()
                other[changed] = (votes[query][changed[0]] + 1) % 3
                tops = [
                    np.array([weights[row == c].sum() for c in range(3)])
                    for row in (votes[query], other)
                ]
                labels = [log_label_chances(counts, sigma * scale) for counts in tops]
                checks = [
                    log_check_chances(c.max(), threshold * scale, sigma1 * scale) for c in tops
                ]
                outputs = [
                    np.append(check[0] + label, check[1])
                    for check, label in zip(checks, labels, strict=True)
                ]
                charged = order * s**2 * (1 / sigma**2 + 1 / (2 * sigma1**2))
                assert divergence(*outputs, order) <= charged + 1e-9


@pytest.mark.parametrize(
    ("collector", "published", "n_teachers"),
    [("gnmax", 549, 250), ("upsampling", 1525, 472), ("weighting", 1492, 250)],
)
def test_published_counts_under_data_dependent_stopping(collector, published, n_teachers):
    rng = np.random.RandomState(1)
    truth = rng.randint(0, 10, 4000)
    sure = rng.beta(8, 1.2, 4000)
    right = rng.rand(700, 4000) < sure
    wrong = (truth + rng.randint(1, 10, (700, 4000))) % 10
    votes = np.where(right, truth, wrong)[:n_teachers].T
    facts = {
        "classes": 10,
        "collector": collector,
        "sigma": 40,
        "sigma1": 150,
        "threshold": 200,
        "budgets": {"a": 1.0, "b": 2.0, "c": 3.0},
        "shares": {"a": 0.34, "b": 0.43, "c": 0.23},
        "noise": "research",
    }
    asked = [
        tacit.pate.aggregate(votes, stopping="data-dependent", random_state=seed, **facts).asked
        for seed in range(8)
    ]
    assert np.mean(asked) == pytest.approx(published, rel=0.05)
    filtered = tacit.pate.aggregate(votes, random_state=0, **facts)
    assert filtered.asked < published / 3
    assert max(filtered.internal_.epsilon.values()) < 1.5


def test_data_dependent_stopping_promises_what_the_limits_allow():
    votes, _ = ballots(2000, 250)
    facts = {
        "classes": 10,
        "aggregator": "gnmax",
        "sigma": 40,
        "budgets": 1.0,
        "noise": "research",
        "random_state": 0,
    }
    out = tacit.pate.aggregate(votes, stopping="data-dependent", **facts)
    assert out.guarantee_.rho == pytest.approx(2000 / 40**2)
    assert tacit.pate.aggregate(votes, **facts).guarantee_.epsilon(DELTA) == pytest.approx(
        1, abs=1e-6
    )


def test_the_promise_is_the_smaller_of_budget_and_limits():
    votes, _ = ballots(200, 250)
    few = tacit.pate.aggregate(votes[:10], classes=10, aggregator="gnmax", sigma=60, budgets=3.0)
    assert few.spent_.epsilon(1e-5) <= few.guarantee_.epsilon(1e-5)
    assert few.guarantee_.rho == pytest.approx(10 / 60**2)
    many = tacit.pate.aggregate(votes, classes=10, aggregator="gnmax", sigma=60, budgets=1.0)
    assert many.guarantee_.epsilon(DELTA) == pytest.approx(1, abs=1e-6)
    order = own_order(1.0)
    label = own_costs(order, 1.0, 60.0, math.inf)[0]
    allowed = 1 - math.log1p(-1 / order) + math.log(DELTA * order) / (order - 1)
    assert many.asked in (math.floor(allowed / label * 0.998), math.floor(allowed / label))
    assert many.asked > 1.55 * 0.030557 * 60**2  # what a zCDP filter lets through
    assert many.spent_.rho <= many.guarantee_.rho
    assert many.spent_.mu <= many.guarantee_.mu
    assert many.guarantee_.unit == "replace"


@pytest.mark.parametrize("own", [{}, {"sigma1": 15, "threshold": 1}], ids=["gnmax", "confident"])
@pytest.mark.parametrize("collector", COLLECTORS)
def test_votings_stop_alike_in_blocks_of_any_size(collector, own, monkeypatch):
    """What one block cost counts for the next; teachers agree, so that every label is bought,
    whatever the noise.
    """
    votes = np.zeros((500, 60), dtype=np.int64)
    facts = {
        "classes": 3,
        "aggregator": "confident" if own else "gnmax",
        "collector": collector,
        "sigma": 60,
        **own,
    }
    facts |= {
        "budgets": {"a": 1.0, "b": 2.0},
        "shares": {"a": 0.5, "b": 0.5},
        "noise": "research",
        "random_state": 0,
    }
    whole = tacit.pate.aggregate(votes, **facts)
    monkeypatch.setattr(voting, "_BLOCK", 4)
    parts = tacit.pate.aggregate(votes, **facts)
    assert 8 < whole.asked == whole.answered < 500
    assert (parts.asked, parts.answered) == (whole.asked, whole.answered)


def test_a_failed_check_costs_the_check_alone():
    votes, _ = ballots(600, 250)
    facts = {
        "classes": 10,
        "sigma": 40,
        "sigma1": 60,
        "threshold": 5000,
        "budgets": 1.0,
        "noise": "research",
    }
    out = tacit.pate.aggregate(votes, random_state=0, **facts)
    order = own_order(1.0)
    label, check = own_costs(order, 1.0, 40.0, 60.0)
    allowed = 1 - math.log1p(-1 / order) + math.log(DELTA * order) / (order - 1)
    assert out.answered == 0
    assert out.asked == pytest.approx((allowed - label) / check, rel=0.01)
    assert out.asked > 1.5 * (0.030557 - 1 / 40**2) * 2 * 60**2


def test_each_group_is_counted_at_the_order_of_its_own_budget():
    votes, _ = ballots(40, 250)
    facts = {"classes": 10, "aggregator": "gnmax", "sigma": 100, "shares": {"a": 0.5, "b": 0.5}}
    out = tacit.pate.aggregate(votes, budgets={"a": 1.0, "b": 3.0}, collector="weighting", **facts)
    for group, epsilon in (("a", 1.0), ("b", 3.0)):
        allowance = out.scheme.allowances[group]
        assert allowance.order == pytest.approx(own_order(epsilon), rel=1e-3)


def test_groups_with_the_same_votes_state_the_same_spent_epsilon():
    """Whatever their budgets: only the order at which the filter counts differs."""
    votes = np.repeat(np.arange(200)[:, None] % 3, 100, axis=1)
    given_ = {"classes": 3, "aggregator": "gnmax", "sigma": 40, "noise": "research"}
    shares = {"a": 0.5, "b": 0.5}
    together, alone = (
        tacit.pate.aggregate(votes, budgets=budgets, **given_, **groups)
        for budgets, groups in (({"a": 1.0, "b": 6.0}, {"shares": shares}), (1.0, {}))
    )
    assert together.answered == alone.answered
    spent = [together.spent_.epsilon(1e-5, group) for group in shares]
    # by the order of a budget of 6 it would be .25 more
    assert spent == pytest.approx([alone.spent_.epsilon(1e-5)] * 2, rel=0.02)
    assert list(together.costs[-1].epsilon.values()) == spent


def test_what_was_spent_covers_every_payer_at_its_own_order():
    """Of two payers the one that spent less at the order of the budget may have spent more at the
    order that suits what was spent, and less zCDP.
    """
    sigma = 14.0
    budgets = {"a": 8.0}
    holds = collectors.holds_of([["a"], ["a"]], list(budgets))
    gnmax = GNMax(sigma)
    allowances = {"a": allowance_of(Budget.approx(8.0, DELTA), gnmax)}
    account = Filter(collectors.VanishingCollector(budgets, holds), gnmax, allowances)

    spent = [(2.0, 10), (1.0, 41)]
    for payer, (sensitivity, n_queries) in enumerate(spent):
        sensitivities = np.zeros((2, 1))
        sensitivities[payer] = sensitivity
        account.charge(sensitivities, np.ones(n_queries, dtype=bool))

    (event,) = account.spent_events(DELTA)
    assert isinstance(event, FilteredVotes)
    assert event.order > 2 * allowances["a"].order
    costs = [n * own_costs(event.order, s, sigma, math.inf)[0] for s, n in spent]
    assert costs[1] < costs[0] <= event.divergence <= 1.01 * costs[0]
    assert event.rho >= 41 / (2 * sigma**2) * (1 - 1e-9)


def test_limits_end_the_voting():
    votes, _ = ballots(400, 250)
    out = tacit.pate.aggregate(
        votes,
        classes=10,
        sigma=40,
        sigma1=150,
        threshold=200,
        n_labels=20,
        noise="research",
        random_state=0,
    )
    assert out.answered == 20
    assert out.labels[out.asked - 1] >= 0
    assert out.asked < 400
    assert (out.labels[out.asked :] == -1).all()


@pytest.mark.parametrize("collector", COLLECTORS)
def test_infinite_budgets_are_plurality(collector):
    votes, _ = ballots(50, 60)
    out = tacit.pate.aggregate(
        votes,
        classes=10,
        collector=collector,
        budgets={"a": math.inf, "b": math.inf},
        shares={"a": 0.5, "b": 0.5},
    )
    counts = np.stack([(votes == c).sum(axis=1) for c in range(10)], axis=1)
    assert out.labels.tolist() == counts.argmax(axis=1).tolist()
    assert not out.guarantee_.bounded


def test_interactive_asks_where_teachers_disagree_with_the_student():
    votes, truth = ballots(300, 250)
    sure = np.full((300, 10), 0.002)
    sure[np.arange(300), truth] = 0.982
    facts = {
        "classes": 10,
        "aggregator": "interactive",
        "sigma": 10,
        "sigma1": 15,
        "threshold": 100,
        "confidence": 0.9,
    }
    agreeing = tacit.pate.aggregate(votes, student_scores=sure, **facts)
    assert agreeing.answered < 60
    assert np.mean(agreeing.labels == truth) > 0.9
    unsure = tacit.pate.aggregate(votes, student_scores=np.full((300, 10), 0.1), **facts)
    assert unsure.answered > 150
    assert (unsure.labels[~unsure.paid] == -1).all()
    assert unsure.spent_.rho == pytest.approx(300 / (2 * 15**2) + unsure.answered / 10**2)
    refused = tacit.pate.aggregate(
        votes, student_scores=np.full((300, 10), 0.1), **(facts | {"threshold": 2000})
    )
    assert refused.answered == 0
    assert (refused.labels == -1).all()


def test_laplace_is_priced_in_pure_epsilon():
    votes, truth = ballots(30, 250)
    out = tacit.pate.aggregate(votes, classes=10, aggregator="laplace", gamma=0.05)
    assert out.guarantee_.epsilon(0) == pytest.approx(30 * 2 * 0.05)
    assert np.mean(out.labels == truth) > 0.9


def test_mixed_teachers_take_the_smallest_budget():
    votes, _ = ballots(300, 20)
    groups = ["a"] * 8 + ["b"] * 8 + [("a", "b", "c")] * 4
    budgets = {"a": 1.0, "b": 2.0, "c": 4.0}
    facts = {
        "classes": 10,
        "aggregator": "gnmax",
        "sigma": 10,
        "budgets": budgets,
        "teacher_groups": groups,
    }
    weighed = tacit.pate.aggregate(votes, collector="weighting", **facts)
    assert (
        weighed.sensitivity["c"]
        == weighed.sensitivity["a"]
        == pytest.approx(weighed.sensitivity["b"] / 2, rel=1e-5)
    )
    vanished = tacit.pate.aggregate(votes, collector="vanishing", **facts)
    spent = dict(zip(budgets, vanished.spent_.totals(), strict=True))
    assert spent["c"].rho <= spent["a"].rho * (1 + 1e-9)


@pytest.mark.parametrize("collector", ["gnmax", "vanishing", "weighting"])
@pytest.mark.parametrize(
    "budgets", [{"a": 1.0, "b": 2.0, "c": 4.0}, {"c": 4.0, "b": 2.0, "a": 1.0}], ids=" ".join
)
def test_no_group_of_mixed_teachers_pays_more_than_its_budget(collector, budgets):
    """A teacher of several groups votes until the smallest of their budgets is spent."""
    votes, _ = ballots(600, 20)
    groups = [("a", "b", "c")] * 8 + [("b", "c")] * 8 + ["c"] * 4
    out = tacit.pate.aggregate(
        votes,
        classes=10,
        aggregator="gnmax",
        sigma=40,
        budgets=budgets,
        teacher_groups=groups,
        collector=collector,
    )
    assert 0 < out.asked < 600
    totals = dict(zip(budgets, out.spent_.totals(), strict=True))
    for group, epsilon in budgets.items():
        assert own_epsilon(_renyi(totals[group], own_order(epsilon)), own_order(epsilon)) <= epsilon
        assert out.guarantee_.epsilon(DELTA, group) <= epsilon


def _renyi(total, order):
    """Renyi divergence of labels of GNMax, from their rho."""
    return sum(
        n * own_costs(order, 1.0, event.rho**-0.5, math.inf)[0] for event, n in total.counted()
    )


def test_a_group_pays_what_its_dearest_teacher_does():
    votes, _ = ballots(300, 15)
    groups = [("a",)] * 5 + [("a", "c")] * 5 + [("c",)] * 5
    facts = {"classes": 10, "aggregator": "gnmax", "sigma": 30, "budgets": {"a": 1.0, "c": 3.0}}
    out = tacit.pate.aggregate(votes, collector="vanishing", teacher_groups=groups, **facts)
    always = np.sum(out.sensitivity["c"][: out.asked] ** 2) / 30**2
    totals = dict(zip("ac", out.spent_.totals(), strict=True))
    assert totals["c"].rho == pytest.approx(always)
    assert totals["a"].rho < 0.5 * always


def test_a_promise_covers_every_payer_of_a_group_at_every_order():
    """Few votes of more weight may cost less at the order that is counted, and more at others."""
    groups = [["c"], ["a"], ["c", "b"], ["a", "c"], ["c"], ["a"], ["b"], ["c"]]
    budgets = {"a": 2.0, "b": 6.0, "c": 8.0}
    sigma = 14.0
    out = tacit.pate.aggregate(
        np.zeros((6, 8), dtype=int),
        classes=2,
        aggregator="gnmax",
        collector="vanishing",
        sigma=sigma,
        budgets=budgets,
        teacher_groups=groups,
    )
    turns = collectors.VanishingCollector(budgets, collectors.holds_of(groups, list(budgets)))
    voting = turns.participation(slice(0, 6))
    weights = np.floor(2**20 * 8 / voting.sum(axis=1)) / 2**20 * voting.T
    for group, event in out.guarantee_.groups:
        order = own_order(budgets[group])
        for own in (weights[i] for i, names in enumerate(groups) if group in names):
            assert np.sum(own**2) / sigma**2 <= event.rho * (1 + 1e-9)
            labels = [own_costs(order, float(s), sigma, math.inf)[0] for s in own if s > 0]
            assert sum(labels) <= event.renyi(np.array([order * 0.9999]))[0]


def test_vanishing_teachers_take_equal_turns():
    budgets = {"a": 1.0, "b": 2.5}
    turns = collectors.VanishingCollector(
        budgets, collectors.holds_of(["a"] * 7 + ["b"] * 5, list(budgets))
    )
    whole = turns.participation(slice(0, 1000))
    assert np.array_equal(whole[300:700], turns.participation(slice(300, 700)))
    taken = whole.sum(axis=0)
    assert (taken[7:] == 1000).all()
    assert np.ptp(taken[:7]) <= 1
    assert taken[:7].mean() == pytest.approx(400, abs=1)


def test_copies_are_the_smallest_ratios():
    assert collectors.copies_for({"a": 1.0, "b": 2.0, "c": 3.0}) == {"a": 1, "b": 2, "c": 3}
    assert collectors.copies_for({"a": 2.0, "b": 2.0}) == {"a": 1, "b": 1}
    assert collectors.copies_for({"a": 1.0, "b": 1.5}) == {"a": 2, "b": 3}
    assert collectors.copies_for({"a": 0.7, "b": 1.2}) == {"a": 3, "b": 5}


def test_rdp_sums_what_each_vote_costs():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(250, rng.dirichlet(np.ones(10) * 0.2, 5000))
    orders = np.array([2.0, 16.5, 64.0])
    each = tacit.pate.rdp_per_vote(counts, sigma=40, orders=orders)
    assert each.shape == (5000, 3)
    assert tacit.pate.rdp(counts, sigma=40, orders=orders) == pytest.approx(
        each.sum(axis=0), rel=1e-10
    )
    facts = {
        "sigma": 40,
        "sigma1": 150,
        "threshold": 200,
        "aggregator": "confident",
        "orders": orders,
    }
    answered = rng.random(5000) < 0.5
    total = tacit.pate.rdp(counts, answered=answered, **facts)
    assert total == pytest.approx(
        tacit.pate.rdp_per_vote(counts, answered=answered, **facts).sum(axis=0), rel=1e-10
    )
    assert np.all(total < tacit.pate.rdp(counts, **facts))
    doubled = tacit.pate.rdp_per_vote(2 * counts, sigma=80, orders=orders, sensitivity=2)
    assert doubled == pytest.approx(each, rel=1e-9)


VOTES, _TRUTH = ballots(50, 40)
FACTS = {"classes": 10, "sigma": 40, "sigma1": 150, "threshold": 30}
BAD = {
    "ragged": ({"votes": [[1, 2], [1]]}, "different lengths"),
    "fractional": ({"votes": VOTES + 0.5}, "dtype float64; pass whole numbers"),
    "no queries": ({"votes": VOTES[:0]}, r"shape \(0, 40\)"),
    "outside": ({"votes": VOTES + 5}, "not one of the 10 classes"),
    "negative": ({"votes": VOTES - 1}, "not one of the 10 classes"),
    "no such aggregator": ({"aggregator": "max"}, "aggregator='max' must be one of"),
    "no such collector": ({"collector": "max"}, "collector='max' must be one of"),
    "no sigma": ({"sigma": None}, "needs sigma"),
    "zero sigma": ({"sigma": 0}, "sigma=0 must be a number"),
    "nan threshold": ({"threshold": math.nan}, "threshold=nan must be a number"),
    "not its own": ({"gamma": 1.0}, "gamma=1.0 is not a parameter"),
    "zero budget": ({"budgets": 0.0}, "budget 0.0 of group"),
    "nan budget": ({"budgets": {"a": math.nan}, "shares": {"a": 1.0}}, "budget nan of group 'a'"),
    "negative budget": ({"budgets": {"a": -1.0}, "shares": {"a": 1.0}}, "budget -1.0 of group 'a'"),
    "no budgets": ({"budgets": {}}, "budgets is empty"),
    "delta of 1": ({"delta": 1.0, "budgets": 1.0}, "delta=1.0 must be a number"),
    "shares": (
        {"budgets": {"a": 1.0, "b": 2.0}, "shares": {"a": 0.5, "b": 0.6}},
        "add up to 1.1, not 1",
    ),
    "no share": (
        {"budgets": {"a": 1.0, "b": 2.0}, "shares": {"a": 1.0, "b": 0.0}},
        "share 0, so no record",
    ),
    "other shares": (
        {"budgets": {"a": 1.0, "b": 2.0}, "shares": {"a": 0.5, "c": 0.5}},
        "name the same groups",
    ),
    "no groups": ({"budgets": {"a": 1.0}}, "either shares= .* or teacher_groups="),
    "no teacher": (
        {"budgets": {"a": 1.0, "b": 2.0}, "teacher_groups": ["a"] * 40},
        "a budget and no teacher",
    ),
    "too few": (
        {"budgets": {"a": 1.0}, "teacher_groups": ["a"] * 39},
        "39 entries for 40 teachers",
    ),
    "unknown group": ({"budgets": {"a": 1.0}, "teacher_groups": ["z"] * 40}, "which has no budget"),
    "never met": ({"n_labels": 51}, "never met"),
    "nothing fits": ({"budgets": 0.001}, "do not allow one query"),
    "private stop": ({"stopping": "data-dependent", "budgets": 1.0}, "noise='research'"),
    "classes": ({"classes": ["a", "b"]}, "whole numbers"),
    "scores": ({"student_scores": np.ones((50, 10))}, "interactive"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    given_, message = BAD[case]
    with pytest.raises((InputError, BudgetError), match=message) as caught:
        tacit.pate.aggregate(**({"votes": VOTES} | FACTS | given_))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"votes": [[1.0, -2.0]]}, "votes per class"),
        ({"votes": [1, 2]}, "votes per class"),
        ({"orders": [1.0]}, "above 1"),
        ({"sensitivity": 0.0}, "sensitivity=0.0"),
        ({"answered": [2.0]}, "answered"),
        ({"aggregator": "interactive"}, "interactive"),
    ],
)
def test_bad_input_of_rdp(given_, message):
    with pytest.raises(InputError, match=message):
        tacit.pate.rdp(**({"votes": [[3, 2]], "sigma": 2.0, "orders": [2.0]} | given_))


def test_vanishing_prices_the_last_query_of_a_block_like_any_other():
    """Any of the queries may be the ones that are answered, also where only one is left to
    price.
    """
    votes = np.full((1025, 250), 1)
    votes[:1024] = np.arange(250) % 2
    out = tacit.pate.aggregate(
        votes,
        classes=2,
        aggregator="confident",
        collector="vanishing",
        sigma=20.0,
        sigma1=5.0,
        threshold=200.0,
        budgets={"a": 2.0, "b": 2050.0},
        teacher_groups=["a"] + ["b"] * 249,
        n_labels=5,
        noise="research",
        random_state=0,
    )
    for group in ("a", "b"):
        assert out.guarantee_.epsilon(1e-5, group) >= out.spent_.epsilon(1e-5, group)


@pytest.mark.parametrize(
    "given",
    [
        {"teacher_groups": 5},
        {"teacher_groups": ["a", 5, "a", "a"]},
        {"teacher_groups": ["a", None, "a", "a"]},
        {"collector": "upsampling", "shares": {"a": 1.0}, "copies": 5},
        {"collector": "upsampling", "shares": {"a": 1.0}, "copies": [1, 2]},
        {"exact_q": "no"},
    ],
)
def test_odd_kinds_are_one_line(given):
    own = {
        "budgets": {"a": 1.0},
        "aggregator": "gnmax",
        "sigma": 100.0,
        "classes": 2,
        "collector": "weighting",
    }
    if "exact_q" in given:
        own["teacher_groups"] = ["a"] * 4
    with pytest.raises(InputError):
        tacit.pate.aggregate(np.zeros((3, 4), dtype=int), **own | given)


SECOND = """
import sys
import numpy as np, tacit
votes, facts = np.load(sys.argv[1]), {"classes": 10, "aggregator": "gnmax", "sigma": 60, "budgets": 5.0}
tacit.pate.aggregate(votes, **facts)  # so that all is imported
print("ready", flush=True)
print(tacit.pate.aggregate(votes, **facts, folder=sys.argv[2]).labels.tolist())
"""


def test_two_votings_at_once_draw_one_noise(tmp_path, monkeypatch):
    """The second starts before the first draws noise, waits for it, and takes its answers."""
    votes, runs = np.arange(100)[:, None] % 10 * np.ones(30, dtype=int), []
    np.save(tmp_path / "votes.npy", votes)
    ask = Voting.ask

    def slow(*given):
        line = [sys.executable, "-c", SECOND, str(tmp_path / "votes.npy"), str(tmp_path / "run")]
        runs.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
        assert runs[0].stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            runs[0].wait(1)
        ask(*given)

    monkeypatch.setattr(Voting, "ask", slow)
    facts = {"classes": 10, "aggregator": "gnmax", "sigma": 60, "budgets": 5.0}
    out = tacit.pate.aggregate(votes, **facts, folder=tmp_path / "run")
    assert runs[0].communicate(timeout=600)[0] == f"{out.labels.tolist()}\n"
    files = {path for path in (tmp_path / "run").iterdir() if path.name.startswith("voting")}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_answers_that_other_samplers_drew_are_not_taken_up(tmp_path, monkeypatch):
    """Else a release would state the samplers of this version over noise of an earlier one."""
    votes = np.arange(100)[:, None] % 10 * np.ones(30, dtype=int)
    facts = {"classes": 10, "aggregator": "gnmax", "sigma": 60, "budgets": 5.0}
    with monkeypatch.context() as earlier:
        earlier.setitem(SAMPLERS, "secure", "secure")
        tacit.pate.aggregate(votes, **facts, folder=tmp_path / "run")
    with pytest.raises(InputError, match=stating("folder", "another")):
        tacit.pate.aggregate(votes, **facts, folder=tmp_path / "run")
