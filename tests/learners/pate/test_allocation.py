"""Dealing out records: by position and groups alone, evenly, each record to as many teachers as is priced."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.learners.pate.allocation import allocate, pooled_groups

COLLECTORS = ("gnmax", "upsampling", "vanishing", "weighting")
BUDGETS = {"a": 1.0, "b": 2.0, "c": 3.0}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=40, max_size=200), st.integers(4, 40), st.sampled_from(COLLECTORS))
def test_each_record_reaches_the_teachers_that_are_priced(groups, n_teachers, collector):
    groups = np.array(["a", "b", "c", *groups])
    dealt = allocate(groups, BUDGETS, n_teachers, collector, seed=1)
    reached = np.zeros(len(groups), dtype=int)
    for part in dealt.parts:
        assert len(np.unique(part)) == len(part) > 0
        reached[part] += 1
    expected = [dealt.copies[group] for group in groups] if collector == "upsampling" else [1] * len(groups)
    assert reached.tolist() == expected
    assert sum(dealt.shares.values()) == pytest.approx(1)
    if collector == "upsampling":
        assert len(dealt.parts) == round(n_teachers * np.mean(expected))
        assert np.ptp([len(part) for part in dealt.parts]) <= 1
        return
    assert len(dealt.parts) == n_teachers
    for part, own in zip(dealt.parts, dealt.teacher_groups, strict=True):
        assert set(groups[part]) == set(own)


@pytest.mark.parametrize("collector", COLLECTORS)
def test_it_depends_on_positions_groups_and_the_seed_alone(collector):
    groups = np.array(list("aabbc") * 20)
    one, two = (allocate(groups, BUDGETS, 10, collector, seed=3) for _ in range(2))
    assert all(np.array_equal(left, right) for left, right in zip(one.parts, two.parts, strict=True))
    other = allocate(groups, BUDGETS, 10, collector, seed=4)
    assert not all(np.array_equal(left, right) for left, right in zip(one.parts, other.parts, strict=True))


def test_groups_have_teachers_of_their_own_in_proportion():
    groups = np.repeat(["a", "b", "c"], [340, 430, 230])
    dealt = allocate(groups, BUDGETS, 250, "weighting", seed=0)
    assert [dealt.teacher_groups.count((group,)) for group in "abc"] == [85, 108, 57]
    assert {len(part) for part in dealt.parts} <= {3, 4, 5}


def test_small_groups_are_pooled_with_similar_budgets():
    assert pooled_groups({"a": 1, "b": 50, "c": 50}, BUDGETS, 4) == [("a", "b"), ("c",)]
    assert pooled_groups({"a": 50, "b": 50, "c": 1}, BUDGETS, 4) == [("a",), ("b", "c")]
    assert pooled_groups({"a": 1, "b": 1, "c": 1}, BUDGETS, 1) == [("a", "b", "c")]
    assert pooled_groups({"a": 50, "b": 50, "c": 50}, BUDGETS, 3) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    ("groups", "n_teachers", "message"),
    [
        (["a", "b", "d"], 2, "group 'd' has records and no budget"),
        (["a", "b", "b"], 2, "group 'c' has a budget and no record"),
        (["a", "b", "c"], 4, "teachers=4 are more than the 3 records"),
    ],
)
def test_bad_input(groups, n_teachers, message):
    with pytest.raises(InputError, match=message):
        allocate(np.array(groups), BUDGETS, n_teachers, "weighting", seed=0)
    if n_teachers == 2:
        return
    with pytest.raises(InputError, match="copies of a record need as many teachers"):
        allocate(np.array(["a", "b", "c"]), BUDGETS, 1, "upsampling", seed=0)
