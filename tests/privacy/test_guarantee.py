import itertools
import math

import pytest

from tacit.errors import InputError
from tacit.privacy.events import Exponential, Gaussian, Parallel, RandomizedResponse, compose
from tacit.privacy.guarantee import Guarantee
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


@pytest.mark.parametrize(("held", "asked"), [("replace", "add-remove"), ("change-label", "replace")])
def test_conversions_that_do_not_hold_are_refused(held, asked):
    with pytest.raises(InputError, match="does not imply"):
        Guarantee(Unit(held), Gaussian(1.0)).to(asked)


def test_unknown_unit_is_refused():
    with pytest.raises(InputError, match="unit='record' must be one of add-remove, replace, change-label"):
        PER_CLASS_EM.to("record")


def test_different_units_never_compare_equal():
    assert Guarantee(Unit.ADD_REMOVE, Gaussian(1.0)) != Guarantee(Unit.REPLACE, Gaussian(1.0))


def test_each_group_has_its_own_privacy_cost():
    guarantee = Guarantee(
        Unit.REPLACE, Exponential(0.5), groups=(("low", Exponential(0.5)), ("high", Exponential(1.5)))
    )
    assert guarantee.epsilon(0, group="low") == 1.0
    assert guarantee.epsilon(0, group="high") == guarantee.epsilon(0) == 2.0
    with pytest.raises(InputError, match="group='none'"):
        guarantee.epsilon(0, group="none")
    assert "low:" in guarantee.statement()


def test_a_group_is_named_once():
    with pytest.raises(InputError, match="name a group twice"):
        Guarantee(Unit.ADD_REMOVE, compose([]), groups=(("a", Gaussian(0.1)), ("a", Gaussian(100.0))))


def test_figures_are_those_of_the_most_expensive_group():
    """Each by itself: by rho the first group pays most, in pure epsilon the second."""
    first, second = RandomizedResponse(0.8, 2), Exponential(1.2)
    both = Guarantee(Unit.REPLACE, compose([]), groups=(("a", first), ("b", second)))
    assert both.figures().startswith("epsilon = 1.2 (pure)")
    assert f"rho = {first.rho:.5f}"[:-1] in both.figures()
    swapped = Guarantee(Unit.REPLACE, compose([]), groups=(("b", second), ("a", first)))
    assert swapped.figures() == both.figures()
    assert "no bound" in Guarantee(Unit.REPLACE, first, groups=(("a", first), ("b", Gaussian(0.0)))).figures()


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
    alone = [FACTS[fact](Guarantee(Unit.ADD_REMOVE, SHARED_EVENT + event)) for event in PAID.values()]
    grouped = Guarantee(Unit.ADD_REMOVE, SHARED_EVENT, groups=tuple((name, PAID[name]) for name in order))
    assert FACTS[fact](grouped) == pytest.approx(max(alone), rel=1e-9)
    assert max(alone) > 1.2 * min(alone)


@pytest.mark.parametrize("unit", ["replace", "change-label"])
def test_another_unit_changes_the_privacy_cost_of_every_group(unit):
    """A guarantee with groups converts as the guarantees of its groups do."""
    converted = OF_GROUPS.to(unit)
    assert converted.unit == unit
    for name, event in PAID.items():
        alone = Guarantee(Unit.ADD_REMOVE, SHARED_EVENT + event)
        assert converted.epsilon(1e-5, name) == pytest.approx(alone.to(unit).epsilon(1e-5), rel=1e-9)
        assert converted.epsilon(1e-5, name) > 1.3 * alone.epsilon(1e-5)
    assert converted.rho == pytest.approx(4 * OF_GROUPS.rho)


def test_statement_names_unit_numbers_leaks_and_scope():
    text = Guarantee(Unit.ADD_REMOVE, Exponential(1.0), unprotected=("class counts (declared)",)).statement()
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
    guarantee = Guarantee(Unit.REPLACE, 2 * Gaussian(3.0), ("n",), (("a", Exponential(1.0)),), "this run")
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
