import itertools
import math

import pytest

from messages import lacking, stating
from tacit.errors import InputError
from tacit.privacy.events import (
    Exponential,
    Gaussian,
    Parallel,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import Guarantee, guarantee_under
from tacit.privacy.unit import Unit

PER_CLASS_EM = Guarantee(Unit.ADD_REMOVE, Parallel(Exponential(1.0), "classes"))
PER_CLASS_SUM = Guarantee(Unit.ADD_REMOVE, Parallel(Gaussian(1.0), "classes"))


def test_the_sum_of_events_is_the_guarantee():
    guarantee = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0) + Gaussian(1.0))
    assert guarantee.rho == 1.0
    assert guarantee.mu == pytest.approx(math.sqrt(2))
    assert guarantee.events == (Gaussian(1.0), Gaussian(1.0))
    assert guarantee.epsilon(0) == math.inf


def test_replacing_a_record_costs_two_changes():
    assert PER_CLASS_EM.to("replace").epsilon(0) == 2.0
    assert PER_CLASS_EM.to("replace").rho == 4 * PER_CLASS_EM.rho
    assert PER_CLASS_SUM.to("replace").rho == 4 * PER_CLASS_SUM.rho
    assert PER_CLASS_SUM.to("change-label").rho == 2 * PER_CLASS_SUM.rho
    assert PER_CLASS_EM.to("change-label").epsilon(0) == 2.0
    assert PER_CLASS_SUM.to("replace").to("change-label").rho == 4 * PER_CLASS_SUM.rho


@pytest.mark.parametrize(
    ("held", "asked"), [("replace", "add-remove"), ("change-label", "replace")]
)
def test_conversions_that_do_not_hold_are_refused(held, asked):
    with pytest.raises(InputError, match="does not imply"):
        Guarantee(Unit(held), Gaussian(1.0)).to(asked)


def test_unknown_unit_is_refused():
    with pytest.raises(InputError, match=stating("unit='record'", "change-label", "add-remove")):
        PER_CLASS_EM.to("record")


def test_different_units_never_compare_equal():
    assert Guarantee(Unit.ADD_REMOVE, Gaussian(1.0)) != Guarantee(Unit.REPLACE, Gaussian(1.0))


def test_each_group_has_its_own_privacy_cost():
    guarantee = Guarantee(
        Unit.REPLACE,
        Exponential(0.5),
        groups=(("low", Exponential(0.5)), ("high", Exponential(1.5))),
    )
    assert guarantee.epsilon(0, group="low") == 1.0
    assert guarantee.epsilon(0, group="high") == guarantee.epsilon(0) == 2.0
    with pytest.raises(InputError, match="group='none'"):
        guarantee.epsilon(0, group="none")
    assert "low:" in guarantee.statement()


def test_a_statement_gives_epsilon_at_the_delta_of_the_budget_first():
    guarantee = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0))
    assert "at delta = 1e-06" in str(guarantee).splitlines()[1]
    of_budget = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0), delta=1e-4)
    assert "at delta = 0.0001" in str(of_budget).splitlines()[1]
    assert str(of_budget) == guarantee.statement(1e-4)
    assert str(of_budget.to(Unit.REPLACE)) == guarantee.to(Unit.REPLACE).statement(1e-4)
    assert of_budget.statement(1e-6) == str(guarantee)
    assert of_budget == guarantee
    assert of_budget.to_json() == guarantee.to_json()


def test_a_group_is_named_once():
    with pytest.raises(InputError, match="name a group twice"):
        Guarantee(
            Unit.ADD_REMOVE, compose([]), groups=(("a", Gaussian(0.1)), ("a", Gaussian(100.0)))
        )


def test_figures_are_those_of_the_most_expensive_group():
    """Each by itself: by rho the first group pays most, in pure epsilon the second."""
    first, second = RandomizedResponse(0.8, 2), Exponential(1.2)
    both = Guarantee(Unit.REPLACE, compose([]), groups=(("a", first), ("b", second)))
    assert both.figures().startswith("epsilon = 1.2 (pure)")
    assert f"rho = {first.rho:.5f}"[:-1] in both.figures()
    swapped = Guarantee(Unit.REPLACE, compose([]), groups=(("b", second), ("a", first)))
    assert swapped.figures() == both.figures()
    assert (
        "no bound"
        in Guarantee(Unit.REPLACE, first, groups=(("a", first), ("b", Gaussian(0.0)))).figures()
    )


SHARED_EVENT = Gaussian(20.0)
PAID = {"low": Gaussian(8.0), "high": 3 * Gaussian(2.0), "middle": Gaussian(4.0)}
OF_GROUPS = Guarantee(Unit.ADD_REMOVE, SHARED_EVENT, groups=tuple(PAID.items()))
FACTS = {
    "rho": lambda guarantee: guarantee.rho,
    "mu": lambda guarantee: guarantee.mu,
    "epsilon": lambda guarantee: guarantee.epsilon(1e-5),
    "attack rate": lambda guarantee: guarantee.attack_rate(0.01),
}


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("order", list(itertools.permutations(PAID)), ids=" ".join)
def test_rho_and_mu_are_those_of_the_most_expensive_group(fact, order):
    alone = [
        FACTS[fact](Guarantee(Unit.ADD_REMOVE, SHARED_EVENT + event)) for event in PAID.values()
    ]
    grouped = Guarantee(
        Unit.ADD_REMOVE, SHARED_EVENT, groups=tuple((name, PAID[name]) for name in order)
    )
    assert FACTS[fact](grouped) == pytest.approx(max(alone), rel=1e-9)
    assert max(alone) > 1.2 * min(alone)


@pytest.mark.parametrize("unit", ["replace", "change-label"])
def test_another_unit_changes_the_privacy_cost_of_every_group(unit):
    """A guarantee with groups converts as the guarantees of its groups do."""
    converted = OF_GROUPS.to(unit)
    assert converted.unit == unit
    for name, event in PAID.items():
        alone = Guarantee(Unit.ADD_REMOVE, SHARED_EVENT + event)
        assert converted.epsilon(1e-5, name) == pytest.approx(
            alone.to(unit).epsilon(1e-5), rel=1e-9
        )
        assert converted.epsilon(1e-5, name) > 1.3 * alone.epsilon(1e-5)
    assert converted.rho == pytest.approx(4 * OF_GROUPS.rho)


def test_statement_names_unit_numbers_leaks_and_scope():
    text = Guarantee(
        Unit.ADD_REMOVE, Exponential(1.0), unprotected=("class counts (declared)",)
    ).statement()
    for words in (
        "in the data or not",
        "epsilon = 1 (pure)",
        "rho = 0.125",
        "under unit replace: epsilon = 2 (pure)",
        "Not protected: class counts (declared)",
        "this run only",
        "scaler",
    ):
        assert words in text


def test_statement_of_no_privacy_says_so():
    assert "not private" in Guarantee(Unit.ADD_REMOVE, Gaussian(0.0)).statement()
    assert Guarantee(Unit.ADD_REMOVE, Gaussian(0.0)).rho is None


def test_json_round_trip():
    guarantee = Guarantee(
        Unit.REPLACE, 2 * Gaussian(3.0), ("n",), (("a", Exponential(1.0)),), "this run"
    )
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


CONVERSIONS = {  # from, to: factor of mu, for Gaussian noise
    ("add-remove", "replace"): 2,
    ("add-remove", "change-label"): 2,
    ("replace", "change-label"): 1,
    ("add-remove-person", "replace-person"): 2,
    ("add-remove-person", "add-remove"): 1,
    ("add-remove-person", "replace"): 2,
    ("add-remove-person", "change-label"): 2,
    ("replace-person", "replace"): 1,
    ("replace-person", "change-label"): 1,
    ("change-labels-of-person", "change-label"): 1,
}


@pytest.mark.parametrize("held", Unit)
@pytest.mark.parametrize("asked", Unit)
def test_which_unit_implies_which_and_at_what_price(held, asked):
    guarantee = Guarantee(held, Gaussian(4.0))
    if held == asked:
        assert guarantee.to(asked) is guarantee
    elif (held, asked) in CONVERSIONS:
        assert guarantee.to(asked).mu == CONVERSIONS[held, asked] / 4
    else:
        with pytest.raises(InputError, match="does not imply"):
            guarantee.to(asked)


def test_conversions_of_a_person_do_not_depend_on_the_way():
    """Through another unit no conversion becomes cheaper than directly."""
    event = 3 * Gaussian(2.0) + Exponential(0.5) + PureDP(0.1) + SampledGaussian(1.5, 0.01)
    guarantee = Guarantee(Unit.ADD_REMOVE_PERSON, event)
    for through in ("replace-person", "add-remove"):
        for unit in ("replace", "change-label"):
            assert guarantee.to(through).to(unit).epsilon(1e-6) >= guarantee.to(unit).epsilon(1e-6)
    sampled = SampledGaussian(1.5, 0.01)
    assert Guarantee(Unit.ADD_REMOVE_PERSON, sampled).to("add-remove").event == sampled.for_group(2)


@pytest.mark.parametrize("unit", [unit for unit in Unit if unit.per_person])
def test_nothing_is_parallel_for_a_person(unit):
    with pytest.raises(InputError, match="several classes"):
        Guarantee(unit, Parallel(Gaussian(1.0), "classes"))
    with pytest.raises(InputError, match="several classes"):
        Guarantee(
            unit, compose([]), groups=(("a", Gaussian(3.0) + Parallel(Gaussian(1.0), "classes")),)
        )


def test_the_event_of_a_mechanism_under_each_unit():
    event = Parallel(Gaussian(4.0), "classes")
    mus = {unit: guarantee_under(event, unit).mu for unit in Unit}
    records = {"add-remove": 1 / 4, "replace": 1 / 2, "change-label": math.sqrt(2) / 4}
    persons = {
        "add-remove-person": 1 / 4,
        "replace-person": 1 / 2,
        "change-labels-of-person": 1 / 2,
    }
    assert mus == pytest.approx(records | persons)
    assert all(guarantee_under(event, unit).unit is unit for unit in Unit)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_a_guarantee_per_record_implies_one_per_person(m):
    event = Parallel(Gaussian(3.0), "classes") + Exponential(0.2) + 2 * SampledGaussian(2.0, 0.1)
    moved = Guarantee(Unit.ADD_REMOVE, event, ("class list",)).per_person(m)
    assert moved.unit is Unit.ADD_REMOVE_PERSON
    sampled = SampledGaussian(2.0, 0.1).for_group(m)
    assert (sampled.noise_multiplier, sampled.sampling_rate) == pytest.approx((2.0 / m, 1 - 0.9**m))
    expected = Gaussian(3.0 / m) + Exponential(m * 0.2) + 2 * sampled
    assert moved.event == expected
    assert moved.unprotected == ("class list", f"that nobody has more than {m} records (declared)")
    assert moved.to("replace-person").event == expected.for_group(2)
    labels = Guarantee(Unit.CHANGE_LABEL, RandomizedResponse(0.5, 3)).per_person(m)
    assert labels.unit is Unit.CHANGE_LABELS_OF_PERSON
    assert labels.epsilon() == pytest.approx(0.5 * m)


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        (Guarantee(Unit.REPLACE, Gaussian(1.0)), stating("number of records")),
        (Guarantee(Unit.ADD_REMOVE_PERSON, Gaussian(1.0)), "is already per person"),
        (OF_GROUPS, "personal budgets"),
        (
            Guarantee(Unit.ADD_REMOVE, RepeatAndSelect(Exponential(0.1), 5, 1)),
            "no known cost for groups",
        ),
    ],
)
def test_what_says_nothing_of_a_person_is_refused(guarantee, said):
    with pytest.raises(InputError, match=said):
        guarantee.per_person(3)


@pytest.mark.parametrize("m", [0, -1, 2.0, True, "3"])
def test_the_most_records_of_a_person_are_a_whole_number(m):
    with pytest.raises(InputError, match=stating("most_records", "whole number")):
        PER_CLASS_SUM.per_person(m)


def test_a_statement_says_what_is_hidden_of_a_person():
    said = guarantee_under(PER_CLASS_SUM.event, Unit.ADD_REMOVE_PERSON).statement()
    assert not lacking(said, "one person", "all their records")
    for unit in ("replace-person", "add-remove", "replace", "change-label"):
        assert f"under unit {unit}: " in said
    document = guarantee_under(PER_CLASS_SUM.event, Unit.REPLACE_PERSON).to_json()
    assert Guarantee.from_json(document).unit is Unit.REPLACE_PERSON
