"""The exponential mechanism, by its worst pairs."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from tacit.privacy import accounting
from tacit.privacy.events import ZCDP, Exponential


def test_one_exponential_mechanism_has_its_epsilon_at_every_delta():
    exact = 2 * math.log(math.exp(0.5) - math.sqrt(1e-5 * math.expm1(1.0)))
    assert accounting.epsilon(Exponential(1.0), 1e-5) == pytest.approx(exact, rel=1e-12)
    assert accounting.epsilon(Exponential(1.0), 0.3) == 0.0
    assert accounting.epsilon(Exponential(1.0), 0.0) == 1.0
    assert accounting.epsilon(ZCDP(0.125), 1e-5) == pytest.approx(2.17, abs=0.01)
    assert Exponential(1.0).rho == 0.125


def bounded_range_loss(epsilon, t):
    """A worst pair of bounded range: losses t and t - epsilon, and the first one's probability."""
    return t, (math.exp(epsilon) - math.exp(t)) / math.expm1(epsilon)


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 6.0])
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
def test_two_exponential_mechanisms_have_their_exact_epsilon(epsilon, delta, monkeypatch):
    """The integral of the density of two losses gives delta back, and the library's distribution
    hardly more.
    """
    stated = accounting.epsilon(2 * Exponential(epsilon), delta)
    scale = math.exp(epsilon / 2) / (2 * math.expm1(epsilon))
    reached, _ = quad(
        lambda s: -math.expm1(stated - s) * scale**2 * math.exp(s / 2) * (2 * epsilon - s),
        *(stated, 2 * epsilon),
        epsabs=1e-14,
    )
    assert reached == pytest.approx(delta, rel=1e-6) if stated else reached <= delta
    monkeypatch.setattr(Exponential, "exact_epsilon", lambda *_: None)
    assert (
        stated
        <= accounting.epsilon.__wrapped__(2 * Exponential(epsilon), delta)
        <= stated * (1 + 1e-5)
    )


def test_no_other_number_of_exponential_mechanisms_is_taken_for_two():
    assert [Exponential(1.0).exact_epsilon(n, 1e-3) for n in (3, 4)] == [None, None]
    mixed = Exponential(1.0) + Exponential(1.001)
    assert accounting.epsilon(mixed, 1e-3) > accounting.epsilon(2 * Exponential(1.0), 1e-3)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_exponential_mechanism_bounds_cover_every_bounded_range_pair(epsilon):
    """Three pairs with losses {t, t - epsilon}, composed by enumeration, never exceed the stated
    epsilon.
    """
    n, delta = 3, 1e-3
    stated = accounting.epsilon(n * Exponential(epsilon), delta)
    worst = 0.0
    for t in np.linspace(1e-3, epsilon - 1e-3, 60):
        loss, p = bounded_range_loss(epsilon, t)
        losses = [
            (i * loss + (n - i) * (loss - epsilon), math.comb(n, i) * p**i * (1 - p) ** (n - i))
            for i in range(n + 1)
        ]
        worst = max(worst, sum(w * max(0.0, 1 - math.exp(stated - x)) for x, w in losses))
    assert 0.3 * delta < worst <= delta * (1 + 1e-6)
    assert stated <= n * epsilon
