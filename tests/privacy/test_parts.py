"""Names of parts, and the guarantee of what several parts released."""

import itertools
import math
import random

import pytest

from tacit.errors import InputError
from tacit.privacy.budget import Budget
from tacit.privacy.domination import dominating
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import combined, declaration, part_key, part_name
from tacit.privacy.unit import Unit

PER_RECORD = [Unit.ADD_REMOVE, Unit.REPLACE, Unit.CHANGE_LABEL]
PER_PERSON = [Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON, Unit.CHANGE_LABELS_OF_PERSON]


def of(event, unit=Unit.ADD_REMOVE, **facts):
    return Guarantee(unit, event, **facts)


@pytest.mark.parametrize("name", ["hospital A", "Spital Zürich", "病院", "a" * 100])
def test_a_name_is_one_line(name):
    assert part_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", " A", "A ", "A\n", "A\tB", "a" * 101, "Zu\u0308rich", "A\u200b", "A\u00a0B", None, 3],
)
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match="part="):
        part_name(name)


def test_names_that_differ_in_case_width_or_spaces_are_one_part():
    assert len({part_key(name) for name in ("Hospital A", "hospital  a", "\uff28ospital A")}) == 1
    assert part_key("Straße") == part_key("STRASSE")
    assert part_key("hospital A") != part_key("hospital B")


@pytest.mark.parametrize("letter", ["\ufe0f", "\u034f", "\u3164", "\uffa0", "\u2800", "\U000e0100"])
def test_letters_that_cannot_be_seen_make_no_other_part(letter):
    costs = [(name, of(Gaussian(1.0), Unit.ADD_REMOVE)) for name in ("A", part_name(f"A{letter}"))]
    assert combined(costs).rho == pytest.approx(1.0)


@pytest.mark.parametrize("unit", PER_RECORD)
def test_disjoint_parts_cost_the_largest_part_and_overlapping_parts_the_sum(unit):
    costs = [("A", of(Gaussian(2.0), unit)), ("B", of(Gaussian(1.0), unit))]
    assert combined(costs).event == Parallel(Gaussian(1.0), "parts")
    assert combined(costs, overlapping=True).event == Gaussian(2.0) + Gaussian(1.0)


@pytest.mark.parametrize("unit", PER_PERSON)
def test_persons_of_disjoint_parts_cost_the_same_without_a_wrapper(unit):
    costs = [("A", of(Gaussian(2.0), unit)), ("B", of(Gaussian(1.0), unit))]
    assert combined(costs).event == Gaussian(1.0)
    assert combined(costs, overlapping=True).event == Gaussian(2.0) + Gaussian(1.0)


def test_releases_of_one_part_add_up_before_the_largest_part_is_taken():
    costs = [("A", of(Gaussian(2.0))), ("a", of(Gaussian(2.0))), ("B", of(Gaussian(1.8)))]
    assert combined(costs).event == Parallel(2 * Gaussian(2.0), "parts")
    assert combined(costs[:2]).event == 2 * Gaussian(2.0)


def test_one_release_keeps_its_guarantee():
    guarantee = of(PureDP(1.0), unprotected=("x",), scope="y", groups=(("g", PureDP(2.0)),))
    assert combined([("A", guarantee)], overlapping=True) is guarantee


def test_the_order_of_releases_changes_nothing():
    costs = [
        ("B", of(Gaussian(1.0), Unit.ADD_REMOVE_PERSON, unprotected=("u", "v"))),
        ("A", of(Parallel(Gaussian(2.0), "classes"), unprotected=("w",), delta=1e-5)),
        ("A", of(Exponential(0.5), scope="another scope", delta=1e-5)),
        ("a ", of(Laplace(3.0), unprotected=("v",))),
    ]
    for overlapping in (False, True):
        guarantees = [
            combined(order, overlapping=overlapping) for order in itertools.permutations(costs)
        ]
        assert len({(repr(one), one.delta) for one in guarantees}) == 1


def test_guarantees_convert_to_the_unit_to_which_all_convert():
    persons = of(Gaussian(1.0), Unit.ADD_REMOVE_PERSON)
    records = of(Gaussian(2.0))
    replaced = of(Gaussian(0.6), Unit.REPLACE)
    assert combined([("A", persons), ("B", records)]).unit is Unit.ADD_REMOVE
    together = combined([("A", records), ("B", persons), ("C", replaced)])
    assert together.unit is Unit.REPLACE
    assert together.event == Parallel(Gaussian(0.5), "parts")  # two changes at noise 1

    costs = [("A", records), ("B", of(Gaussian(1.0), Unit.REPLACE_PERSON)), ("C", records)]
    with pytest.raises(InputError, match=r"'A' \(add-remove\), 'B' \(replace-person\), 'D' \("):
        combined([*costs, ("D", of(Gaussian(1.0), Unit.CHANGE_LABELS_OF_PERSON))])


def test_records_that_move_need_guarantees_of_records_that_leave():
    """Group privacy for two covers a removal from one part and an addition to another."""
    costs = [("May", of(Gaussian(2.0))), ("June", of(Gaussian(1.0)))]
    together = combined(costs, moving=True)
    assert together == combined(costs)
    assert together.to(Unit.REPLACE).rho >= compose([Gaussian(2.0), Gaussian(1.0)]).rho

    for unit in (Unit.REPLACE, Unit.CHANGE_LABEL):
        with pytest.raises(InputError, match="under unit=add-remove, which converts"):
            combined([(name, of(Gaussian(1.0), unit)) for name in "AB"], moving=True)
    for unit in (Unit.REPLACE_PERSON, Unit.CHANGE_LABELS_OF_PERSON):
        with pytest.raises(InputError, match="under unit=add-remove-person, which converts"):
            combined([(name, of(Gaussian(1.0), unit)) for name in "AB"], moving=True)


def test_a_changed_label_costs_two_classes_of_one_part():
    per_class = Parallel(Gaussian(2.0), "classes")
    together = combined([("A", of(per_class)), ("B", of(per_class))])
    assert together.to(Unit.CHANGE_LABEL).rho == of(per_class).to(Unit.CHANGE_LABEL).rho


EVENTS = [
    Gaussian(1.0),
    2 * Gaussian(1.2),
    Parallel(Gaussian(0.95), "classes"),
    Parallel(Gaussian(1.3), "classes") + Gaussian(4.0),
    Laplace(1.5),
    2 * Laplace(3.0),
    Parallel(Laplace(1.2), "classes"),
    Exponential(0.7),
    PureDP(0.9),
    ZCDP(0.4),
    SampledGaussian(1.1, 0.2),
]


@pytest.mark.parametrize("events", [*itertools.combinations(EVENTS, 2)], ids=str)
def test_the_dominating_event_costs_as_much_as_each_in_every_respect(events):
    """Each part, or two of them where a replaced record moves, after every conversion."""
    largest = dominating(events)
    assert largest == dominating(reversed(events))
    parts = combined([("A", of(events[0])), ("B", of(events[1]))])
    for event in events:
        assert largest.pure >= event.pure
        assert largest.rho >= event.rho
        assert largest.mu >= event.mu * (1 - 1e-12)
        for unit in (Unit.ADD_REMOVE, Unit.REPLACE, Unit.CHANGE_LABEL):
            exact = of(event).to(unit).epsilon(1e-5)
            assert parts.to(unit).epsilon(1e-5) >= exact * (1 - 1e-6)
    both = of(events[0].base() + events[1].base()).epsilon(1e-5)
    for unit in (Unit.REPLACE, Unit.CHANGE_LABEL):
        assert parts.to(unit).epsilon(1e-5) >= both * (1 - 1e-6)


def test_the_dominating_event_is_one_of_them_where_it_can_be():
    assert dominating([Laplace(2.0), Laplace(1.0)]) == Laplace(1.0)
    assert dominating([2 * Laplace(2.0), 2 * Laplace(1.0)]) == 2 * Laplace(1.0)
    assert dominating([Exponential(0.5), Exponential(0.7)]) == Exponential(0.7)
    assert dominating([ZCDP(0.5), Gaussian(1.0)]) == ZCDP(0.5)
    assert dominating([PureDP(1.0), Laplace(1.0)]) == PureDP(1.0)
    per_class = [Parallel(Gaussian(z), "classes") for z in (1.0, 2.0)]
    assert dominating(per_class) == per_class[0]

    # a changed label costs more under the event that costs less otherwise
    assert dominating([Gaussian(1.1), per_class[0]]) == Gaussian(1.0)
    assert dominating([Exponential(0.5), Laplace(1.0)]) == PureDP(1.0)
    assert dominating([Gaussian(2.0), Laplace(1.0)]) == ZCDP(Laplace(1.0).rho)
    sample = SampledGaussian(1.0, 0.1)
    assert dominating([ZCDP(0.1), sample]).counted() == ((sample, 1), (ZCDP(0.1), 1))
    search = RepeatAndSelect(Gaussian(4.0), 5, 1)
    assert dominating([Gaussian(2.0), search]).counted() == ((Gaussian(2.0), 1), (search, 1))


def test_a_person_who_leaves_one_search_and_enters_another_costs_both():
    search = RepeatAndSelect(Gaussian(4.0), 5, 1)
    for unit, event in (
        (Unit.ADD_REMOVE, Parallel(search, "parts")),
        (Unit.ADD_REMOVE_PERSON, 2 * search),
    ):
        assert combined([("A", of(search, unit)), ("B", of(search, unit))]).event == event


def test_personal_budgets_count_at_the_most_expensive_group():
    groups = (("few", Gaussian(4.0)), ("many", Gaussian(2.0)))
    costs = [("A", of(compose(()), groups=groups)), ("B", of(Gaussian(3.0)))]
    assert combined(costs).event == Parallel(Gaussian(2.0), "parts")


def test_the_declaration_stands_among_what_is_not_protected():
    costs = [(f"part {i}", of(Gaussian(1.0), unprotected=("n",))) for i in range(7)]
    random.Random(1).shuffle(costs)
    listing = "the 7 parts 'part 0', 'part 1', 'part 2', 'part 3', 'part 4' and 2 more"
    assert combined(costs).unprotected == (
        "n",
        f"that no record is in two of {listing}, that the part of a record follows from that"
        " record alone and that the budgets of every part were fixed beforehand (declared)",
    )
    assert combined(costs, overlapping=True).unprotected[1] == (
        f"that the budgets of {listing}, which may overlap, were fixed beforehand (declared)"
    )


def test_the_declaration_says_what_the_unit_needs():
    names = ["A", "B"]
    assert declaration(names, Unit.REPLACE) == (
        "that no record is in two of the 2 parts 'A', 'B' and that the part of a record is public"
        " and the same where the record is replaced (declared)"
    )
    assert declaration(names, Unit.CHANGE_LABEL, overlapping=True) == (
        "that the part of a record is public and the same where its label changes (declared)"
    )
    assert declaration(names, Unit.ADD_REMOVE_PERSON, fixed=["B"]) == (
        "that nobody has records in two of the 2 parts 'A', 'B', that the part of a person follows"
        " from that person alone and that the budgets of 'B' were fixed beforehand (declared)"
    )
    assert declaration(names, Unit.ADD_REMOVE, overlapping=True) == ""


def test_the_scope_keeps_what_no_number_covers():
    scopes = [f"this run, charged to the ledger of 'h{i}'" for i in range(9)]
    scopes[8] += "; up to 3 fits"
    costs = [(f"{i}", of(Gaussian(1.0), scope=scope)) for i, scope in enumerate(scopes)]
    assert combined(costs).scope == (
        f"all 9 releases that were combined: {'; '.join([*scopes[:5], scopes[8]])}"
        "; 3 more such runs"
    )
    same = [(name, of(Gaussian(1.0))) for name in "AB"]
    assert combined(same).scope == "all 2 releases that were combined, of each this run only"


@pytest.mark.parametrize(
    ("allowance", "event"),
    [("rho=2", ZCDP(2.0)), ("mu=2", Gaussian(0.5)), (Budget.zcdp(math.inf), ZCDP(math.inf))],
)
def test_a_part_with_an_allowance_counts_at_that(allowance, event):
    costs = [("A", of(Gaussian(1.0))), ("B", of(Gaussian(2.0)))]
    together = combined(costs, allowances={"a": allowance})
    assert together.event.event == event
    assert "the budgets of 'B' were fixed" in together.unprotected[0]
    assert combined(costs[:1], allowances={"A": allowance}).event == event
    both = combined(costs, allowances={"A": allowance, "B": "rho=1"})
    assert "budgets" not in both.unprotected[0]


@pytest.mark.parametrize(
    ("allowances", "message"),
    [
        ({"A": "rho=0.4"}, "cost more than its allowance rho=0.4"),
        ({"C": "rho=1"}, "'C', which is no part"),
        ({"A": "rho=1", "a": "rho=1"}, "'a' twice"),
        ({"A": "epsilon=9,delta=1e-5"}, "at one delta only"),
    ],
)
def test_allowances_that_say_nothing_are_refused(allowances, message):
    with pytest.raises(InputError, match=message):
        combined([("A", of(Gaussian(1.0))), ("B", of(Gaussian(2.0)))], allowances=allowances)


def test_nothing_to_combine_is_refused():
    with pytest.raises(InputError, match="no release"):
        combined([])


@pytest.mark.parametrize("unit", [Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON, Unit.REPLACE])
def test_many_budgets_of_one_part_are_one_event_of_the_same_cost(unit):
    """More kinds of noise than a document holds."""
    noises = [1 + i / 100 for i in range(60)]
    events = [2 * Gaussian(z) for z in noises]
    if unit is Unit.ADD_REMOVE:
        events = [*(Parallel(Gaussian(z), "classes") for z in noises), *events]
    exact = of(compose([*events, Laplace(9.0)]), unit)
    costs = [("A", of(event, unit)) for event in events] + [("A", of(Laplace(9.0), unit))]
    total = combined(costs)
    assert combined(costs[::-1]) == total
    of_parts = [(f"{i}", cost) for i, (_, cost) in enumerate(costs)]
    assert combined(of_parts, overlapping=True).event == total.event
    assert len(total.event.counted()) <= 3
    for change in (unit, Unit.CHANGE_LABEL):
        merged, added = (one.to(change).event for one in (total, exact))
        assert added.rho <= merged.rho <= added.rho * (1 + 1e-11)
