"""A rho alone, by optimal orders at high precision."""

import math

import mpmath
import pytest

from privacy.events.samples import DELTAS
from tacit.privacy import accounting
from tacit.privacy.events import ZCDP


@pytest.mark.parametrize("rho", [1e-3, 0.1, 5.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_conversion_agrees_with_mpmath(rho, delta):
    def bound(order):
        return rho * order + mpmath.log(1 - 1 / order) - mpmath.log(delta * order) / (order - 1)

    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(i) / 200) for i in range(-400, 1600)]
    best = min(orders, key=bound)
    exact = bound(mpmath.findroot(lambda a: mpmath.diff(bound, a), best))
    assert accounting.epsilon(ZCDP(rho), delta) == pytest.approx(
        float(max(exact, 0)), rel=1e-7, abs=1e-9
    )
    assert accounting.epsilon(ZCDP(rho), delta) >= float(exact) * (1 - 1e-12)


@pytest.mark.parametrize("rho", [1e-9, 0.3, 20.0])
def test_zcdp_alone_has_neither_a_pure_epsilon_nor_a_mu(rho):
    assert (ZCDP(rho).pure, ZCDP(rho).mu) == (math.inf, math.inf)


@pytest.mark.parametrize(("epsilon", "rho"), [(1, 0.030557), (2, 0.108256), (3, 0.224249)])
def test_zcdp_conversion_meets_the_reference(epsilon, rho):
    assert accounting.epsilon(ZCDP(rho), 1e-5) == pytest.approx(epsilon, abs=2e-5)
