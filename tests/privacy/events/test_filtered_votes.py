"""What a Renyi filter let through: the limit at its order, and Gaussian noise elsewhere."""

import math

import numpy as np
import pytest

from tacit.privacy import accounting
from tacit.privacy.events import FilteredVotes, Gaussian, NoisyArgmax

ORDER, LIMIT = 17.75, 0.54237
EVENT = FilteredVotes(ORDER, LIMIT, math.sqrt(ORDER * 2 / math.pi / (2 * LIMIT)))


def test_epsilon_follows_from_the_limit_at_the_order():
    """The conversion of Canonne, Kamath and Steinke 2020, Prop. 12, by hand."""
    own = LIMIT + math.log1p(-1 / ORDER) - math.log(1e-5 * ORDER) / (ORDER - 1)
    assert accounting.epsilon(EVENT, 1e-5) == pytest.approx(own, rel=1e-9)
    assert own == pytest.approx(1.0, abs=1e-4)


def test_the_curve():
    curve = EVENT.renyi(np.array([2.0, 17.0, ORDER, 18.0]))
    assert curve == pytest.approx([2 * EVENT.rho, LIMIT, LIMIT, 18 * EVENT.rho])


def test_rho_and_mu_are_at_least_those_of_any_labels_within_the_limit():
    for multiplier in (10.0, 40.0, 200.0):
        label = NoisyArgmax(multiplier, ORDER)
        n = math.floor(LIMIT / label.renyi(np.array([ORDER]))[0])
        assert (n * label).rho <= EVENT.rho
        assert (n * label).mu <= EVENT.mu
    assert (n * label).rho > 0.98 * EVENT.rho


def test_groups_are_covered_by_gaussian_noise():
    assert EVENT.for_group(1) == EVENT
    assert EVENT.for_group(2) == Gaussian(EVENT.noise_multiplier / 2)
    assert EVENT.mu == pytest.approx(1 / EVENT.noise_multiplier)
