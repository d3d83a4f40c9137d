"""Exact losses of small mechanisms on two parts, under each unit, against what is stated.

Each part releases its sum plus geometric noise, cut to a window. All distributions are exact
fractions. Noise that halves with each step costs ln 2 for each unit by which a sum moves, and noise
that falls to a third costs ln 3.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import pytest

from tacit.privacy.events import Parallel, PureDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import combined
from tacit.privacy.unit import Unit

WINDOW = 4
FALL = {"A": Fraction(1, 2), "B": Fraction(1, 3)}
EPSILON = {part: math.log(1 / fall) for part, fall in FALL.items()}
VALUES = (-1, 1)


@cache
def noisy(total, fall, window=WINDOW):
    """The distribution of a sum plus noise, cut to the window."""
    step = (1 - fall) / (1 + fall)
    shares = {out: step * fall ** abs(out - total) for out in range(-window + 1, window)}
    for end in (-window, window):
        shares[end] = fall ** abs(end - total) / (1 + fall)
    assert sum(shares.values()) == 1
    return shares


def joint(*distributions):
    """The distribution of independent releases."""
    shares = {}
    for outcomes in itertools.product(*(shares.items() for shares in distributions)):
        shares[tuple(out for out, _ in outcomes)] = math.prod(share for _, share in outcomes)
    return shares


def of_sums(sums):
    """The distribution of both parts' releases."""
    return joint(*(noisy(total, FALL[part]) for part, total in sums))


@cache
def loss(release, first, second):
    """The largest ratio of probabilities of an outcome, in both directions."""
    p = release(first)
    q = release(second)
    if {out for out in p if p[out]} != {out for out in q if q[out]}:
        return math.inf
    return max(max(p[out] / q[out], q[out] / p[out]) for out in p if p[out])


def largest(pairs, release=of_sums):
    """The largest privacy loss over pairs of what both parts add up."""
    return math.log(max(loss(release, *pair) for pair in set(pairs)))


def sums(records):
    """The sum of each part, of records (parts, value)."""
    return tuple(
        (part, sum(value for parts, value in records if part in parts)) for part in sorted(FALL)
    )


def data_sets(kinds, most=3):
    """All ordered data sets of 1 to `most` records."""
    for size in range(1, most + 1):
        yield from itertools.product(kinds, repeat=size)


def removals(kinds):
    for records in data_sets(kinds):
        yield sums(records), sums(records[1:])


def replacements(kinds, allowed=lambda old, new: True):
    for records in data_sets(kinds):
        for new in kinds:
            if allowed(records[0], new):
                yield sums(records), sums((new, *records[1:]))


def stated(unit, epsilons=EPSILON, **declared):
    costs = [(part, Guarantee(unit, PureDP(epsilon))) for part, epsilon in epsilons.items()]
    return combined(costs, **declared)


ONE_PART = list(itertools.product(FALL, VALUES))
TWO_PARTS = [*ONE_PART, *(("AB", value) for value in VALUES)]
KINDS = pytest.mark.parametrize(
    ("kinds", "overlapping"), [(ONE_PART, False), (TWO_PARTS, True)], ids=["disjoint", "shared"]
)


def same_part(old, new):
    return old[0] == new[0]


@KINDS
def test_a_record_costs_the_most_expensive_part_or_the_sum(kinds, overlapping):
    epsilon = stated(Unit.ADD_REMOVE, overlapping=overlapping).epsilon()
    assert largest(removals(kinds)) == pytest.approx(epsilon)
    assert epsilon == pytest.approx(math.log(6) if overlapping else math.log(3))


@KINDS
def test_a_replaced_record_that_keeps_its_parts(kinds, overlapping):
    two_steps = {part: 2 * epsilon for part, epsilon in EPSILON.items()}
    epsilon = stated(Unit.REPLACE, two_steps, overlapping=overlapping).epsilon()
    assert largest(replacements(kinds, same_part)) == pytest.approx(epsilon)


@KINDS
def test_a_replaced_record_that_moves_is_covered_by_guarantees_of_removal(kinds, overlapping):
    together = stated(Unit.ADD_REMOVE, overlapping=overlapping, moving=True)
    assert largest(replacements(kinds)) == pytest.approx(together.to(Unit.REPLACE).epsilon())

    # one that moves costs both parts
    moved = replacements(ONE_PART, lambda old, new: not same_part(old, new))
    assert largest(moved) == pytest.approx(sum(EPSILON.values()))


def with_counts(counted):
    """Noisy sums, and the exact number of records of each part, which is public under replace."""
    counts, totals = counted
    return {(counts, out): share for out, share in of_sums(totals).items()}


def counted(records):
    return tuple(sum(part in parts for parts, _ in records) for part in FALL), sums(records)


def test_a_guarantee_of_replacements_says_nothing_of_a_record_that_moves():
    """Therefore `moving` is refused there."""
    pairs = [
        (records, (new, *records[1:])) for records in data_sets(ONE_PART, 2) for new in ONE_PART
    ]
    staying = [(counted(old), counted(new)) for old, new in pairs if same_part(old[0], new[0])]
    assert largest(staying, with_counts) == pytest.approx(2 * max(EPSILON.values()))
    everything = [(counted(old), counted(new)) for old, new in pairs]
    assert largest(everything, with_counts) == math.inf


def of_classes(counts):
    """The distribution of noisy counts of both classes in both parts."""
    return joint(*(noisy(count, FALL[part], 2) for part, _, count in counts))


@pytest.mark.parametrize("moving", [False, True])
def test_a_changed_label_costs_two_classes_whether_or_not_the_part_follows_it(moving):
    def counts(records):
        cells = itertools.product(FALL, (0, 1))
        return tuple((*cell, records.count(cell)) for cell in cells)

    kinds = [("A", 0), ("B", 1)] if moving else list(itertools.product(FALL, (0, 1)))
    pairs = [
        (counts((old, other)), counts((new, other)))
        for old, new, other in itertools.product(kinds, repeat=3)
        if moving or same_part(old, new)
    ]
    costs = [
        (part, Guarantee(Unit.ADD_REMOVE, Parallel(PureDP(epsilon), "classes")))
        for part, epsilon in EPSILON.items()
    ]
    epsilon = combined(costs).to(Unit.CHANGE_LABEL).epsilon()
    assert epsilon == pytest.approx(2 * math.log(3))
    exact = math.log(6) if moving else epsilon
    assert largest(pairs, of_classes) == pytest.approx(exact)
    assert exact <= epsilon


@KINDS
def test_a_person_costs_the_most_expensive_part_or_the_sum(kinds, overlapping):
    """A person has one or two records, whose sum counts at -1 to 1 in each part."""
    persons = [(kind,) for kind in ONE_PART]
    for first, second in itertools.combinations_with_replacement(ONE_PART, 2):
        if overlapping or same_part(first, second):
            persons.append((first, second))

    def totals(crowd):
        of_persons = [dict(sums(records)) for records in crowd]
        return tuple(
            (part, sum(max(-1, min(1, person[part])) for person in of_persons))
            for part in sorted(FALL)
        )

    together = stated(Unit.ADD_REMOVE_PERSON, overlapping=overlapping)
    removed = [(totals(crowd), totals(crowd[1:])) for crowd in data_sets(persons, 2)]
    assert largest(removed) == pytest.approx(together.epsilon())
    replaced = [
        (totals((old, other)), totals((new, other)))
        for old, new, other in itertools.product(persons, repeat=3)
    ]
    exact = together.to(Unit.REPLACE_PERSON).epsilon()
    assert largest(replaced) == pytest.approx(exact)


def first_two(records):
    """Sums where the first two records are part A, and all others part B."""
    return sums([("A" if place < 2 else "B", value) for place, (_, value) in enumerate(records)])


def test_a_part_that_depends_on_other_records_is_no_part():
    """A record in front moves another one to the next part; a replacement moves none."""
    kinds = [("", value) for value in VALUES]
    removed = [(first_two(records), first_two(records[1:])) for records in data_sets(kinds)]
    assert largest(removed) == pytest.approx(2 * math.log(2) + math.log(3))
    assert largest(removed) > stated(Unit.ADD_REMOVE).epsilon() + 1

    replaced = [
        (first_two(records), first_two((*records[:place], new, *records[place + 1 :])))
        for records in data_sets(kinds)
        for place in range(len(records))
        for new in kinds
    ]
    two_steps = {part: 2 * epsilon for part, epsilon in EPSILON.items()}
    assert largest(replaced) == pytest.approx(stated(Unit.REPLACE, two_steps).epsilon())


def chosen_query(totals):
    """Part B releases its sum or minus that, as part A's release says, at a fixed budget."""
    of_a, of_b = (total for _, total in totals)
    shares = {}
    for out, share in noisy(of_a, FALL["A"]).items():
        answer = of_b if out > 0 else -of_b
        for out_of_b, share_of_b in noisy(answer, FALL["B"]).items():
            shares[out, out_of_b] = share * share_of_b
    return shares


def test_parameters_may_be_chosen_by_what_another_part_released():
    epsilon = stated(Unit.ADD_REMOVE).epsilon()
    assert largest(removals(ONE_PART), chosen_query) == pytest.approx(epsilon)


def chosen_budget(totals):
    """Two releases of part A: the second costs ln 2, or ln 4 where the first is positive."""
    total = dict(totals)["A"]
    shares = {}
    for out, share in noisy(total, FALL["A"]).items():
        fall = Fraction(1, 4) if out > 0 else Fraction(1, 2)
        for second, share_of_second in noisy(total, fall).items():
            shares[out, fall, second] = share * share_of_second
    return shares


def test_a_part_whose_budgets_were_chosen_counts_at_its_allowance():
    """What was spent if the first release happens to choose the cheap one bounds nothing."""
    exact = largest(removals(ONE_PART), chosen_budget)
    assert exact == pytest.approx(math.log(8))

    cheap = [("A", Guarantee(Unit.ADD_REMOVE, PureDP(math.log(2))))] * 2
    assert combined(cheap).epsilon() < exact - 0.5
    allowed = combined(cheap, allowances={"A": f"epsilon={math.log(8)!r}"})
    assert allowed.epsilon() == pytest.approx(exact)
