"""A noisy argmax: its curve is that of the counts, lowered to a certified price at one order."""

import numpy as np
import pytest

from mechanisms.exact_votes import share_of_argmax
from tacit.privacy import accounting
from tacit.privacy.events import Gaussian, NoisyArgmax

EVENT = NoisyArgmax(40.0, 17.75)


def test_the_curve_at_its_order_is_the_price_by_an_independent_search():
    own = share_of_argmax(17.75, 1 / 40) * 17.75 / 40**2
    assert own <= EVENT.renyi(np.array([17.75]))[0] <= own * 1.002


def test_other_orders_get_what_follows():
    below, above = EVENT.renyi(np.array([16.0])), EVENT.renyi(np.array([17.76]))
    assert below == EVENT.renyi(np.array([17.75]))  # divergences grow with the order
    assert EVENT.renyi(np.array([3.0])) == pytest.approx(3 / 40**2)
    assert above == pytest.approx(17.76 / 40**2)


def test_the_counts_bound_the_rest():
    counts = Gaussian(40 / np.sqrt(2))
    assert EVENT.rho == pytest.approx(counts.rho)
    assert EVENT.mu == pytest.approx(counts.mu)
    many = 75 * EVENT
    assert accounting.epsilon(many, 1e-5) == pytest.approx(1.0, abs=0.012)
    assert accounting.epsilon(many, 1e-12) <= accounting.epsilon(75 * counts, 1e-12) * 1.001


def test_a_group_moves_as_many_votes():
    assert EVENT.for_group(3) == NoisyArgmax(40.0 / 3, 17.75)
    assert NoisyArgmax(0.0, 5.0).renyi(np.array([2.0]))[0] == np.inf
