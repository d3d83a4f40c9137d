"""The price of an argmax: which of m numbers with Gaussian noise is largest.

Let the noise have standard deviation 1, and let neighbours differ by s taken from number a and given to number b. The
noisy numbers have Renyi divergence l s^2 at order l. The price is the supremum over the numbers of the divergence of
the argmax, divided by that.

P1 Three outcomes. Let W be the largest noisy number but for a and b. It has the same law for both neighbours and is
independent of a and b, so it may be revealed. Then the outcome is a, b or neither ("o"), with u = n_a - W, v = n_b - W:
    p_o = Phi(-u) Phi(-v),  p_a(u, v) = int_0^inf phi(x - u) Phi(x - v) dx,  p_b(u, v) = p_a(v, u),
and Q has u - s, v + s. Exchanging a and b exchanges P and Q. So the price is a supremum over two numbers u and v.

P2 Cells. p_o, p_a and p_b are log-concave [Prekopa 1973], and ln p_a is supermodular in (u, v), as are the others. So
each ln p_i/q_i falls in u and rises in v; q_o falls in both, q_a rises in u and falls in v, and q_b the other way.
Hence in a cell [u, u'] x [v, v'] the log ratios lie between their values at (u', v) and (u, v'), and the q_i between
values at corners. (1) of `two_outcomes.py` is at most sum_i q_i G_i, with G_i the larger of g at the ends, and its
maximum over q in that box with sum 1 is found by filling in the largest G_i first. Cells are quartered until that is
below the price.

P3 Tails, with E = l(l-1)s^2.
  u + v >= S: reveal whether the sum of the noisy a and b is below 2 W. It has the same law for both neighbours, is
  independent of their difference, and has probability at most e = Phi(-S/sqrt 2). If not, the larger of a and b wins:
  two outcomes, of price c2 at step sqrt(2) s. So e^((l-1) D) <= (1 - e) e^(E c2) + e e^E.
  u <= -K: reveal whether a beats W. If not, only b against W is left, at half the price; if so, which has probability
  Phi(-K + (l-1) s) at most under the tilted law, the full price. So
  e^((l-1) D) <= e^(E/2) (1 + e^(E/2) Phi(-K + (l-1) s)).
  v <= -K: likewise, with Phi(K - s)^(1-l) for 1.

P4 Moves of several votes. p_i is log-concave in the numbers, so D(P_n || P_(n+v)) is convex in v, and the moves v with
sum 0 and |v|_1 <= 2 s are the hull of moves of s from one number to another. They cost no more than one of these.
Source: P1 to P4 are proved here. No published accountant of noisy votes uses them.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.compute.compiled import compiled
from tacit.privacy.prices import LEAST, certifiable
from tacit.privacy.prices.two_outcomes import _normal, excess, price_of_bit, widened

Floats = NDArray[np.float64]

_ROOT = math.sqrt(2)
_WIDEST, _NARROWEST = 0.5, 1e-5
_MOST_WORK = 6_000_000  # laws that are not integrated; some two seconds
_INTEGRATED = 8  # times the work of another law
_MOST_REACH = 30
_FEW = 1e-3  # probabilities below it are integrated, for their relative error


def tolerance(order: float, step: float) -> float:
    """By how much, relatively, a certified price is above the largest cost found; where prices take longer, by more."""
    return 1e-3 if order * step <= 1.25 else 1e-2


@lru_cache(maxsize=65536)
def price_of_argmax(order: float, step: float) -> float:
    """Certified price of a noisy argmax: its Renyi divergence is at most the price times order step^2.

    `step` is the sensitivity (votes that may move) over the standard deviation of the noise. 1 where nothing is
    certified. Takes about a quarter of a second, once.
    """
    if not certifiable(order, _ROOT * step):
        return 1.0
    price = planned_price(order, step)
    return max(LEAST, price) if price < 1 and _certified(order, step, price) else 1.0


def planned_price(order: float, step: float) -> float:
    """The price that `price_of_argmax` certifies, or 1: for planning."""
    return min(1.0, estimate_of_argmax(order, step) * (1 + tolerance(order, step)))


@lru_cache(maxsize=65536)
def estimate_of_argmax(order: float, step: float) -> float:
    """The largest share that a search finds: not certified."""
    if not certifiable(order, _ROOT * step):
        return 1.0
    whole = order * (order - 1) * step**2
    return min(1.0, math.log1p(float(_largest(order, step, *_rules()))) / whole)


def _certified(order: float, step: float, price: float) -> bool:
    from scipy.special import ndtri

    whole = order * (order - 1) * step**2
    of_bit = price_of_bit(order, _ROOT * step)
    if price <= of_bit:
        return False
    most = math.exp(price * whole)
    share = math.expm1((price - of_bit) * whole) / math.expm1((1 - of_bit) * whole)
    diagonal = -_ROOT * float(ndtri(share * (1 - 1e-9)))
    for reach in range(7, _MOST_REACH):
        apart = reach + (order - 1) * step
        rest = math.exp((1 - order) * math.log(_normal(apart - step)))
        if math.exp(whole / 2) * (rest + math.exp(whole / 2) * _normal(-float(reach))) <= most:
            return bool(_covered(order, step, math.expm1(price * whole), diagonal, apart, *_rules()))
    return False


@lru_cache(maxsize=1)
def _rules() -> tuple[Floats, Floats]:
    """Gauss-Legendre rules, nodes and weights: over an angle, of 12 nodes, and over [-1, 1], of 48."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    angles = (nodes + 1) * math.pi / 8
    of_angle = np.stack([np.sin(angles), 0.5 / np.cos(angles) ** 2, weights / 16])
    return of_angle, np.stack(np.polynomial.legendre.leggauss(48))


@compiled
def _wins(u: float, v: float, rule: Floats) -> float:
    """p_a by quadrature about the mode of its log-concave integrand."""
    mode = u
    for _ in range(8):
        ratio = math.exp(-0.5 * (mode - v) ** 2) / math.sqrt(2 * math.pi) / _normal(mode - v)
        mode -= (u - mode + ratio) / (-1 - ratio * (mode - v + ratio))
    low, high = max(0.0, mode - 9), max(mode, 0.0) + 9
    half, middle, total = 0.5 * (high - low), 0.5 * (high + low), 0.0
    for i in range(rule.shape[1]):
        x = middle + half * rule[0, i]
        total += rule[1, i] * math.exp(-0.5 * (x - u) ** 2) * _normal(x - v)
    return total * half / math.sqrt(2 * math.pi)


@compiled
def _laws(u: float, v: float, of_angle: Floats, rule: Floats, p: Floats) -> int:
    """Fill in p_o, p_a and p_b; returns the work."""
    p[0] = _normal(-u) * _normal(-v)
    if max(abs(u), abs(v)) < 6:  # p_a = P(X > -u, (X - Y)/sqrt 2 > (v - u)/sqrt 2) [Drezner and Wesolowsky 1990]
        k = (u - v) / _ROOT
        p[1] = _normal(u) * _normal(k)
        for i in range(of_angle.shape[1]):
            p[1] += of_angle[2, i] * math.exp(-(u * u + k * k - 2 * u * k * of_angle[0, i]) * of_angle[1, i])
        p[2] = 1 - p[0] - p[1]
        if min(p[1], p[2]) > _FEW:
            return 1
    p[1], p[2] = _wins(u, v, rule), _wins(v, u, rule)
    return _INTEGRATED


@compiled
def _largest(order: float, step: float, of_angle: Floats, rule: Floats) -> float:
    """The largest value of (1) found: on a grid about the middle, then ever closer to its best point."""
    p, q = np.empty(3), np.empty(3)
    best, at_u, at_v, spacing = 0.0, 0.0, 0.0, 0.5
    points = 20
    while spacing > 1e-4:
        found = False
        from_u, from_v = at_u, at_v
        for i in range(-points, points + 1):
            for j in range(-points, points + 1):
                u, v = from_u + i * spacing, from_v + j * spacing
                _laws(u, v, of_angle, rule, p)
                _laws(u - step, v + step, of_angle, rule, q)
                value = 0.0
                for k in range(3):
                    value += q[k] * excess(math.log(p[k] / q[k]), order)
                if value > best:
                    best, at_u, at_v, found = value, u, v, True
        points = 1
        if not found:
            spacing /= 2
    return best


@compiled
def _covered(
    order: float, step: float, most: float, diagonal: float, apart: float, of_angle: Floats, rule: Floats
) -> bool:
    """Whether (1) is at most `most` for u, v >= -apart with u + v <= diagonal, by quartering cells."""
    laws, box = np.empty((4, 3)), np.empty((3, 3))
    stack = np.empty((100, 3))
    first = math.ceil((diagonal + 2 * apart) / _WIDEST)
    work = 0
    for i in range(first):
        for j in range(first - i):
            stack[0] = -apart + i * _WIDEST, -apart + j * _WIDEST, _WIDEST
            top = 1
            while top > 0:
                top -= 1
                u, v, width = stack[top]
                if u + v > diagonal:
                    continue
                bound, more = _bound(u, v, width, order, step, of_angle, rule, laws, box)
                work += more
                if bound <= most:
                    continue
                if width < _NARROWEST or work > _MOST_WORK:
                    return False
                for a in range(2):
                    for b in range(2):
                        stack[top] = u + a * width / 2, v + b * width / 2, width / 2
                        top += 1
    return True


@compiled
def _bound(
    u: float,
    v: float,
    width: float,
    order: float,
    step: float,
    of_angle: Floats,
    rule: Floats,
    laws: Floats,
    box: Floats,
) -> tuple[float, int]:
    """What (1) is at most in the cell from (u, v), `width` wide, and the work; `laws` and `box` are room for it."""
    above_p, above_q, below_p, below_q = laws
    least, largest, g = box
    work = _laws(u, v + width, of_angle, rule, above_p)
    work += _laws(u - step, v + width + step, of_angle, rule, above_q)
    work += _laws(u + width, v, of_angle, rule, below_p)
    work += _laws(u + width - step, v + step, of_angle, rule, below_q)
    for k in range(3):
        high = widened(math.log(above_p[k] / above_q[k]), 1)
        low = widened(math.log(below_p[k] / below_q[k]), -1)
        g[k] = max(excess(high, order), excess(low, order))
    least[0] = _normal(step - u - width) * _normal(-v - width - step)
    largest[0] = _normal(step - u) * _normal(-v - step)
    least[1], largest[1] = above_q[1], below_q[1]
    least[2], largest[2] = below_q[2], above_q[2]
    return _filled(least, largest, g), work


@compiled
def _filled(least: Floats, largest: Floats, g: Floats) -> float:
    """The largest sum of q_i g_i over q from `least` to `largest`, which are widened, with sum 1."""
    left, total = 1.0, 0.0
    for k in range(3):
        least[k] *= 1 - 1e-9
        largest[k] *= 1 + 1e-9
        left -= least[k]
        total += least[k] * g[k]
    for _ in range(3):
        best = np.argmax(g)
        share = min(left, largest[best] - least[best])
        total += share * g[best]
        left -= share
        g[best] = -1.0
    return total
