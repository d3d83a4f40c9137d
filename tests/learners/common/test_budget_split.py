import pytest

from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Parallel
from tacit.privacy.sensitivity import Sensitivity
from tacit.privacy.unit import Unit

FREE = Sensitivity(change_label=0.0, change_labels_of_person=0.0)
PARTS = {"rows": Part(0.25, FREE), "steps": Part(0.5, Sensitivity(change_label=1.5), releases=8)}
PARTS["sums"] = Part(0.25, Sensitivity(change_label=0.5), by_class=True)


def split(unit, budget="rho=2"):
    return BudgetSplit(Budget.parse(budget), unit, PARTS)


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("budget", ["rho=2", "epsilon=1,delta=1e-6", "mu=0.7"])
def test_the_whole_budget_is_spent_and_no_more(unit, budget):
    event = split(unit, budget).event()
    assert Budget.parse(budget).permits(event)
    assert event.mu == pytest.approx(1 / Budget.parse(budget).gaussian(), rel=1e-9)


@pytest.mark.parametrize("unit", Unit)
def test_the_event_is_that_of_the_noise_over_the_sensitivity(unit):
    """With z = 1/2 for rho = 2: mu^2 of a release is (sensitivity/deviation)^2, over all releases
    4.
    """
    parts = split(unit)
    spent = 0.0
    for name, part in PARTS.items():
        moved = part.sensitivity.under(unit)
        if moved:
            spent += part.releases * (moved / parts.noise(name)) ** 2
        else:
            assert parts.noise(name) == 0
    assert spent == pytest.approx(4)


def test_parts_that_do_not_move_are_exact_and_leave_their_share_to_the_others():
    parts = split(Unit.CHANGE_LABEL)
    assert (parts.noise("rows"), parts.free("rows"), parts.free("steps")) == (0.0, True, False)
    assert parts.noise("steps") == pytest.approx(1.5 * 0.5 * (8 * 0.75 / 0.5) ** 0.5)
    assert parts.noise("sums") == pytest.approx(0.5 * 0.5 * (0.75 / 0.25) ** 0.5)
    assert parts.noise("steps", 1.0) == pytest.approx(parts.noise("steps") / 1.5)


def test_only_adding_or_removing_a_record_leaves_classes_disjoint():
    kinds = {unit: [type(event) for event, _ in split(unit).event().counted()] for unit in Unit}
    assert [unit for unit in Unit if Parallel in kinds[unit]] == [Unit.ADD_REMOVE]
    assert {unit: dict(split(unit).event().counted()) for unit in Unit}[Unit.CHANGE_LABEL] == {
        Gaussian(split(Unit.CHANGE_LABEL).noise_multiplier("steps")): 8,
        Gaussian(split(Unit.CHANGE_LABEL).noise_multiplier("sums")): 1,
    }


def test_without_protection_there_is_no_noise():
    parts = split(Unit.REPLACE, "rho=inf")
    assert [parts.noise(name) for name in PARTS] == [0.0, 0.0, 0.0]
