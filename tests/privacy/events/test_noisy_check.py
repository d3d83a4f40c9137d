"""A noisy check: its curve is that of the number, lowered to a certified price at one order."""

import numpy as np
import pytest

from mechanisms.exact_votes import share_of_check
from tacit.privacy.events import Gaussian, NoisyCheck

EVENT = NoisyCheck(60.0, 17.75)


def test_the_curve_at_its_order_is_the_price_by_an_independent_search():
    own = share_of_check(17.75, 1 / 60) * 17.75 / (2 * 60**2)
    assert own <= EVENT.renyi(np.array([17.75]))[0] <= own * 1.002


def test_other_orders_get_what_follows():
    assert EVENT.renyi(np.array([16.0])) == EVENT.renyi(np.array([17.75]))
    assert EVENT.renyi(np.array([3.0, 20.0])) == pytest.approx(np.array([3, 20]) / (2 * 60**2))


def test_the_number_bounds_the_rest():
    number = Gaussian(60.0)
    assert (EVENT.rho, EVENT.mu) == (pytest.approx(number.rho), number.mu)
    assert EVENT.for_group(3) == NoisyCheck(20.0, 17.75)
    assert EVENT.losses(4).parameters == number.losses(4).parameters
