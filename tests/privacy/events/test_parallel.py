"""Parallel composition."""

import numpy as np
import pytest

from tacit.privacy import accounting
from tacit.privacy.events import Exponential, Gaussian, Parallel, RepeatAndSelect


def test_parallel_costs_its_event_once():
    for event in (Gaussian(1.0), Exponential(1.0), 3 * Gaussian(2.0)):
        assert accounting.epsilon(Parallel(event, "classes"), 1e-6) == accounting.epsilon(
            event, 1e-6
        )
        assert Parallel(event, "classes").rho == event.rho


@pytest.mark.parametrize("over", ["classes", "splits", "parts"])
def test_two_records_in_two_parts_cost_no_more_than_a_group(over):
    """A search in each part costs more, at low orders, than one search of a group of two."""
    orders = np.array([1.1, 2.0, 50.0])
    for event in (Gaussian(1.0), Exponential(1.0), RepeatAndSelect(Gaussian(4.0), 5, 1)):
        group = Parallel(event, over).for_group(2).renyi(orders)
        assert (group >= (2 * event).renyi(orders)).all()
        assert (group >= event.for_group(2).renyi(orders)).all()
        assert (
            Parallel(event, over).for_label_change().renyi(orders)[0]
            >= ((2 * event).renyi(orders)[0])
        )
