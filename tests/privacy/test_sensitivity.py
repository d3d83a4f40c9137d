import math

import pytest

from tacit.privacy.sensitivity import ROOT_TWO, Sensitivity
from tacit.privacy.unit import Unit


def test_adding_or_removing_a_contribution_moves_a_sum_by_its_bound():
    sensitivity = Sensitivity(0.1, 0.2, 0.3, 0.4)
    assert sensitivity.under(Unit.ADD_REMOVE) == sensitivity.under(Unit.ADD_REMOVE_PERSON) == 1


@pytest.mark.parametrize("unit", [unit for unit in Unit if "add" not in unit])
def test_each_other_unit_has_its_own_sensitivity_and_two_is_the_default(unit):
    name = unit.value.replace("-", "_")
    assert Sensitivity().under(unit) == 2
    assert Sensitivity(**{name: 0.5}).under(unit) == 0.5
    assert [other for other in Unit if Sensitivity(**{name: 0.5}).under(other) == 0.5] == [unit]


def test_the_root_of_two_is_rounded_up():
    assert math.sqrt(2) < ROOT_TWO < math.sqrt(2) * (1 + 1e-14)
