"""The price of one bit: whether a number with Gaussian noise reaches a threshold.

Let the noise have standard deviation 1 and the number move by h. The outcomes have P = (Phi(x),
Phi(-x)) and Q = (Phi(x - h), Phi(h - x)), and the noisy number itself has Renyi divergence l h^2/2
at order l. The price is the supremum over x of the divergence of P and Q, divided by that; x -> h -
x exchanges P and Q. In the code l is `order` and h is `step`; p_1 and q_1 are the probabilities of
reaching the threshold, p_0 and q_0 the others; K is `reach`, and E `_full_cost`.

Proof of the certificate. With g(z) = e^(lz) - 1 - l(e^z - 1),
    e^((l-1) D) - 1 = sum_i q_i g(ln p_i/q_i),    (1)
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

# Share by which a certified price is above the largest cost that a search finds.
TOLERANCE = 1e-3

_ROOT_TWO = math.sqrt(2)

# Widths of the intervals: where halving begins, and where it gives up.
_WIDEST = 0.5
_NARROWEST = 1e-6

# Values of K at which the tails are tried.
_REACHES = range(7, 30)


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

    if price >= 1 or not _certified(order, step, price):
        return 1.0
    return max(LEAST, price)


@lru_cache(maxsize=65536)
def estimate_of_bit(order: float, step: float) -> float:
    """Return the largest share that a search finds: for planning, not certified."""
    if not certifiable(order, step):
        return 1.0

    # About the proof's interval with K = 4: a search proves nothing, so a short interval will do.
    reach = (order - 1) * step + 4
    largest_excess = float(_largest(order, step, reach))
    return min(1.0, math.log1p(largest_excess) / _full_cost(order, step))


def _full_cost(order: float, step: float) -> float:
    """Return E above: (order - 1) times the Renyi divergence of the noisy number itself."""
    return order * (order - 1) * step**2 / 2


def _certified(order: float, step: float, price: float) -> bool:
    """Prove that no x costs more than `price`: in the tails, and between them by intervals."""
    full_cost = _full_cost(order, step)
    most_excess = math.expm1(price * full_cost)

    for reach in _REACHES:
        # bounds of (1) in the tails; that of the right tail is the larger
        left_tail = math.exp(full_cost) * normal_cdf(-float(reach))
        right_tail = math.expm1((1 - order) * math.log(normal_cdf(float(reach)))) + left_tail
        if right_tail <= most_excess:
            # no longer reach is tried: it leaves more to prove between the tails
            low = -reach - (order - 1) * step
            high = reach + step
            return bool(_covered(order, step, most_excess, low, high))

    return False


@compiled
def normal_cdf(x: float) -> float:
    """Return Phi(x), the distribution function of a standard Gaussian."""
    return float(0.5 * math.erfc(-x / _ROOT_TWO))


@compiled
def excess(z: float, order: float) -> float:
    """Return g(z) of (1) above."""
    return float(math.expm1(order * z) - order * math.expm1(z))


@compiled
def _excess_at(x: float, step: float, order: float) -> float:
    """Return (1) at x."""
    excess_1 = excess(math.log(normal_cdf(x) / normal_cdf(x - step)), order)
    excess_0 = excess(math.log(normal_cdf(-x) / normal_cdf(step - x)), order)
    return float(normal_cdf(x - step) * excess_1 + normal_cdf(step - x) * excess_0)


@compiled
def _largest(order: float, step: float, reach: float) -> float:
    """Search the largest value of (1) for x from -reach to reach: on a grid, then ever closer to
    its best point.

    Near its largest value (1) changes by the square of a distance, so a spacing of 1e-5 is enough.
    """
    best = 0.0
    best_x = 0.0
    spacing = reach / 100
    for i in range(-100, 101):
        value = _excess_at(i * spacing, step, order)
        if value > best:
            best = value
            best_x = i * spacing

    while spacing > 1e-5:
        left = _excess_at(best_x - spacing, step, order)
        right = _excess_at(best_x + spacing, step, order)
        if max(left, right) <= best:
            spacing /= 2
        elif left > right:
            best = left
            best_x -= spacing
        else:
            best = right
            best_x += spacing

    return best


@compiled
def _covered(order: float, step: float, most_excess: float, low: float, high: float) -> bool:
    """Return whether (1) is proved to be at most `most_excess` from low to high, by halving
    intervals.
    """
    x = low
    width = _WIDEST
    while x < high:
        end = x + width

        # log ratios of the outcomes 1 and 0 fall in x: largest at x, least at the end
        top_1 = widened(math.log(normal_cdf(x) / normal_cdf(x - step)), 1)
        bottom_1 = widened(math.log(normal_cdf(end) / normal_cdf(end - step)), -1)
        top_0 = widened(math.log(normal_cdf(-x) / normal_cdf(step - x)), 1)
        bottom_0 = widened(math.log(normal_cdf(-end) / normal_cdf(step - end)), -1)
        g1 = max(excess(top_1, order), excess(bottom_1, order))
        g0 = max(excess(top_0, order), excess(bottom_0, order))

        # (1) is linear in q_1, which rises in x; 1e-9 is more than the error of a probability (see
        # "Error" in `tacit.privacy.prices`)
        least_q = normal_cdf(x - step) * (1 - 1e-9)
        largest_q = normal_cdf(end - step) * (1 + 1e-9)
        bound = max(g0 + least_q * (g1 - g0), g0 + largest_q * (g1 - g0))

        if bound <= most_excess:
            x = end
            width = min(2 * width, _WIDEST)
        elif width < _NARROWEST:
            return False
        else:
            width /= 2

    return True


@compiled
def widened(z: float, sign: int) -> float:
    """Return a log ratio moved up or down by more than its error.

    "Error" in `tacit.privacy.prices` states it.
    """
    return z + sign * (4e-12 + 1e-9 * abs(z))
