"""The price of one bit: whether a number with Gaussian noise reaches a threshold.

Let the noise have standard deviation 1 and the number move by h. The outcomes have P = (Phi(x),
Phi(-x)) and Q = (Phi(x - h), Phi(h - x)), and the noisy number itself has Renyi divergence l h^2/2
at order l. The price is the supremum over x of the divergence of P and Q, divided by that; x -> h -
x exchanges P and Q.

Proof of the certificate. With g(z) = e^(lz) - 1 - l(e^z - 1),
    e^((l-1) D) - 1 = sum_i q_i g(ln p_i/q_i),                                                             (1)
since the q_i and the p_i add up to 1. g is 0 at 0, falls below it and rises above. Phi is
log-concave, so both log ratios fall in x, and q_1 = Phi(x - h) rises. On an interval each g is at
most its larger value at the ends, and (1) is linear in q_1, so it is at most its larger value at
the ends of q_1. Intervals are halved until that is below the price. Outside [-K - (l-1) h, K + h]
let E = l(l-1)h^2/2. On the left p_0 <= q_0, and p_1^l q_1^(1-l) <= e^E Phi(x + (l-1) h) by
Hoelder's inequality for the tilted Gaussian; so (1) is at most e^E Phi(-K). On the right (1) is at
most Phi(K)^(1-l) - 1 + e^E Phi(-K).
"""

import math
from functools import lru_cache

from tacit.compute.compiled import compiled
from tacit.privacy.prices import LEAST, certifiable

TOLERANCE = 1e-3  # by which a certified price is above the largest cost that was found
_ROOT = math.sqrt(2)
_NARROWEST = 1e-6
_MOST_REACH = 30


@lru_cache(maxsize=65536)
def price_of_bit(order: float, step: float) -> float:
    """Certified price of a noisy check: its Renyi divergence is at most the price times order
    step^2/2.

    `step` is the sensitivity over the standard deviation of the noise. 1 where nothing is
    certified.
    """
    if not certifiable(order, step):
        return 1.0
    price = estimate_of_bit(order, step) * (1 + TOLERANCE)
    return max(LEAST, price) if price < 1 and _certified(order, step, price) else 1.0


@lru_cache(maxsize=65536)
def estimate_of_bit(order: float, step: float) -> float:
    """The largest share that a search finds: for planning, not certified."""
    if not certifiable(order, step):
        return 1.0
    whole = order * (order - 1) * step**2 / 2
    reach = (order - 1) * step + 4
    return min(1.0, math.log1p(float(_largest(order, step, reach))) / whole)


def _certified(order: float, step: float, price: float) -> bool:
    whole = order * (order - 1) * step**2 / 2
    most = math.expm1(price * whole)
    for reach in range(7, _MOST_REACH):
        tail = math.exp(whole) * _normal(-float(reach))
        if math.expm1((1 - order) * math.log(_normal(float(reach)))) + tail <= most:
            return bool(_covered(order, step, most, -reach - (order - 1) * step, reach + step))
    return False


@compiled
def _normal(x: float) -> float:
    return float(0.5 * math.erfc(-x / _ROOT))


@compiled
def excess(z: float, order: float) -> float:
    """g of (1) above."""
    return float(math.expm1(order * z) - order * math.expm1(z))


@compiled
def _excess_at(x: float, step: float, order: float) -> float:
    """(1) at x."""
    one = excess(math.log(_normal(x) / _normal(x - step)), order)
    other = excess(math.log(_normal(-x) / _normal(step - x)), order)
    return float(_normal(x - step) * one + _normal(step - x) * other)


@compiled
def _largest(order: float, step: float, reach: float) -> float:
    """The largest value of (1) found for x from -reach to reach: on a grid, then ever closer to its
    best point.
    """
    best, at, spacing = 0.0, 0.0, reach / 100
    for i in range(-100, 101):
        value = _excess_at(i * spacing, step, order)
        if value > best:
            best, at = value, i * spacing
    while spacing > 1e-5:
        left, right = _excess_at(at - spacing, step, order), _excess_at(at + spacing, step, order)
        if max(left, right) > best:
            best, at = (left, at - spacing) if left > right else (right, at + spacing)
        else:
            spacing /= 2
    return best


@compiled
def _covered(order: float, step: float, most: float, low: float, high: float) -> bool:
    """Whether (1) is at most `most` from low to high, by halving intervals."""
    x, width = low, 0.5
    while x < high:
        one = (
            math.log(_normal(x) / _normal(x - step)),
            math.log(_normal(x + width) / _normal(x + width - step)),
        )
        other = (
            math.log(_normal(-x) / _normal(step - x)),
            math.log(_normal(-x - width) / _normal(step - x - width)),
        )
        g1 = max(excess(widened(one[0], 1), order), excess(widened(one[1], -1), order))
        g0 = max(excess(widened(other[0], 1), order), excess(widened(other[1], -1), order))
        least, largest = _normal(x - step) * (1 - 1e-9), _normal(x + width - step) * (1 + 1e-9)
        if max(g0 + least * (g1 - g0), g0 + largest * (g1 - g0)) <= most:
            x, width = x + width, min(2 * width, 0.5)
        elif width < _NARROWEST:
            return False
        else:
            width /= 2
    return True


@compiled
def widened(z: float, sign: int) -> float:
    """A log ratio moved up or down by more than its error."""
    return z + sign * (4e-12 + 1e-9 * abs(z))
