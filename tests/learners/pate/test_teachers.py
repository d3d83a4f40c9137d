"""Dealing out records and persons: by place and groups alone, evenly, each to as many teachers as
is priced.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messages import stating
from tacit.data.persons import Persons
from tacit.errors import InputError
from tacit.learners.pate.teachers import allocate, pooled_groups

COLLECTORS = ("gnmax", "upsampling", "vanishing", "weighting")
BUDGETS = {"a": 1.0, "b": 2.0, "c": 3.0}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from("abc"), min_size=40, max_size=200),
    st.integers(4, 40),
    st.sampled_from(COLLECTORS),
)
def test_each_record_reaches_the_teachers_that_are_priced(groups, n_teachers, collector):
    groups = np.array(["a", "b", "c", *groups])
    dealt = allocate(groups, BUDGETS, n_teachers, collector, seed=1)
    reached = np.zeros(len(groups), dtype=int)
    for part in dealt.parts:
        assert len(np.unique(part)) == len(part) > 0
        reached[part] += 1
    expected = (
        [dealt.copies[group] for group in groups]
        if collector == "upsampling"
        else [1] * len(groups)
    )
    assert reached.tolist() == expected
    assert sum(dealt.shares.values()) == pytest.approx(1)
    if collector == "upsampling":
        assert abs(len(dealt.parts) - n_teachers * np.mean(expected)) <= 0.5 + 1e-9
        assert np.ptp([len(part) for part in dealt.parts]) <= 1
        return
    assert len(dealt.parts) == n_teachers
    for part, own in zip(dealt.parts, dealt.teacher_groups, strict=True):
        assert set(groups[part]) == set(own)


@pytest.mark.parametrize("collector", COLLECTORS)
def test_it_depends_on_positions_groups_and_the_seed_alone(collector):
    groups = np.array(list("aabbc") * 20)
    one, two = (allocate(groups, BUDGETS, 10, collector, seed=3) for _ in range(2))
    assert all(
        np.array_equal(left, right) for left, right in zip(one.parts, two.parts, strict=True)
    )
    other = allocate(groups, BUDGETS, 10, collector, seed=4)
    assert not all(
        np.array_equal(left, right) for left, right in zip(one.parts, other.parts, strict=True)
    )


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
        (["a", "b", "d"], 2, stating("group 'd'", "no budget")),
        (["a", "b", "b"], 2, stating("group 'c'", "no record")),
        (["a", "b", "c"], 4, stating("teachers=4", "3 records")),
    ],
)
def test_bad_input(groups, n_teachers, message):
    with pytest.raises(InputError, match=message):
        allocate(np.array(groups), BUDGETS, n_teachers, "weighting", seed=0)
    if n_teachers == 2:
        return
    with pytest.raises(InputError, match=stating("3 copies", "teachers")):
        allocate(np.array(["a", "b", "c"]), BUDGETS, 1, "upsampling", seed=0)


def table(sizes, seed):
    """Ids of persons with so many records each, whose records alternate at random after the first
    ones.
    """
    rest = np.random.default_rng(seed).permutation(
        np.repeat(np.arange(len(sizes)), np.array(sizes) - 1)
    )
    return np.concatenate([np.arange(len(sizes)), rest])


def held(dealt, ids):
    """What each teacher holds: (person, number of the record among the person's), in order."""
    number = np.array([np.sum(ids[:row] == person) for row, person in enumerate(ids)])
    return [[(int(ids[row]), int(number[row])) for row in part] for part in dealt.parts]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=30, max_size=60),
    st.integers(4, 25),
    st.sampled_from(COLLECTORS),
)
def test_each_person_reaches_the_teachers_that_are_priced_with_all_records(
    sizes, n_teachers, collector
):
    of_persons = np.array(["a", "b", "c"])[np.arange(len(sizes)) % 3]
    ids = table(sizes, seed=1)
    dealt = allocate(of_persons[ids], BUDGETS, n_teachers, collector, 1, Persons.of(ids, len(ids)))
    of_each = held(dealt, ids)
    for person, size in enumerate(sizes):
        holders = [records for records in of_each if any(owner == person for owner, _ in records)]
        assert len(holders) == (
            dealt.copies[of_persons[person]] if collector == "upsampling" else 1
        )
        for records in holders:
            assert [number for owner, number in records if owner == person] == list(range(size))
    assert dealt.shares == pytest.approx({group: np.mean(of_persons == group) for group in BUDGETS})


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_person_with_other_records_leaves_all_other_persons_where_they_are(collector):
    """Whatever the ids, the numbers of records and the order in which the records of several
    persons alternate.
    """
    of_persons = np.array(list("abc") * 10)

    def dealt(sizes, seed, names):
        ids = table(sizes, seed)
        persons = Persons.of(np.asarray(names)[ids], len(ids))
        found = held(allocate(of_persons[ids], BUDGETS, 8, collector, 1, persons), ids)
        return [[record for record in records if record[0] != 7] for records in found]

    sizes, names = [1, 2, 3] * 10, np.arange(30)
    before = dealt(sizes, 0, names)
    for own, seed, others in (
        (1, 1, names),
        (9, 2, -names),
        (3, 3, np.random.default_rng(4).permutation(30)),
    ):
        assert dealt([*sizes[:7], own, *sizes[8:]], seed, others) == before
    assert dealt(sizes, 1, [f"id {name}" for name in names]) == before


def test_persons_with_one_record_each_are_dealt_out_like_records():
    groups = np.array(list("abc") * 20)
    for collector in COLLECTORS:
        records = allocate(groups, BUDGETS, 10, collector, 3)
        ids = np.random.default_rng(0).permutation(60)
        persons = allocate(groups, BUDGETS, 10, collector, 3, Persons.of(ids, 60))
        assert all(np.array_equal(*pair) for pair in zip(records.parts, persons.parts, strict=True))


def test_what_does_not_fit_persons_is_refused_and_shows_no_id():
    ids = ["secret 1", "secret 2", "secret 1", "secret 3"]
    persons = Persons.of(ids, 4)
    for groups, n_teachers, message in (
        (
            "abca",
            2,
            "a person has records in several budget groups; give all records of a person one group",
        ),
        ("aaaa", 2, "group 'b' has a budget and no person; leave it out"),
        ("abac", 4, "teachers=4 are more than the 3 persons; pass fewer"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            allocate(np.array(list(groups)), BUDGETS, n_teachers, "gnmax", 0, persons)
        assert "secret" not in str(caught.value)
