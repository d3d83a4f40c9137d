"""The price of an argmax: which of m numbers with Gaussian noise is largest.

Let the noise have standard deviation 1, and let neighbours differ by s taken from number a and
given to number b. The noisy numbers have Renyi divergence l s^2 at order l. The price is the
supremum over the numbers of the divergence of the argmax, divided by that.

P1 Three outcomes. Let W be the largest noisy number but for a and b. It has the same law for both
neighbours and is independent of a and b, so it may be revealed. Then the outcome is a, b or neither
("o"), with u = n_a - W, v = n_b - W:
    p_o = Phi(-u) Phi(-v),  p_a(u, v) = int_0^inf phi(x - u) Phi(x - v) dx,  p_b(u, v) = p_a(v, u),
and Q has u - s, v + s. Exchanging a and b exchanges P and Q. So the price is a supremum over two
numbers u and v.

P2 Derivatives. With m = phi((u - v)/sqrt 2) Phi((u + v)/sqrt 2)/sqrt 2,
    dp_o/du = -phi(u) Phi(-v),  dp_a/du = phi(u) Phi(-v) + m,  dp_b/du = -m,
and in v with a and b exchanged. p_i is the probability that (u, v) + X, with X standard Gaussian,
is in a convex set. For the law of X given this event, the Hessian of ln p_i is Cov X - I, and its
third derivative in a direction is the third central moment of X in that direction.
  The Hessian is between -I and 0: p_i is log-concave [Prekopa 1973].
  Third derivatives along three unit vectors lie in [-1, 1]. For equal vectors [Banach 1938: they
  suffice], let x be X in that direction and r its mean. Its density e^-V has V'' >= 1 [Prekopa
  1973]. Let K(x) = int_x^inf (y - r) e^-V dy, which is at least 0. It is at most e^-V: V' - (y - r)
  rises, so it is at least 0 right of x or at most 0 left of x, and its integral over that side,
  times e^-V, gives the inequality. By parts, E (x - r)^3 = int 2 (x - r) K dx, which is at most E
  |x - r| <= sd(x) <= 1 in size.
The points of P and Q are sqrt(2) s apart. So L_i = ln p_i/q_i has a gradient of length sqrt(2) s at
most, and second derivatives of sqrt(2) s |d|^2 at most along a vector d.

P3 Cells. Let T be (1) of `two_outcomes.py`, and c + d a point of the square cell about c of half
width h. With ' for derivatives along d, T(c + d) <= T(c) + T'(c) + max T''/2 over the cell, and
    T'' = sum_i q_i [((ln q_i)'' + (ln q_i)'^2) g + 2 (ln q_i)' L_i' g' + L_i'^2 g'' + L_i'' g'],
with g, g', g'' at L_i. A first derivative along d is at most h times the sum of those in u and v,
in size. In the cell, by P2 and |d|^2 <= 2 h^2:
  q_i is at most e^|(ln q_i)'(c)| times its value at c; (ln q_i)'' <= 0; |(ln q_i)'| <= |(ln
  q_i)'(c)| + 2 h^2;
  |L_i''| <= B = 2 sqrt(2) s h^2; |L_i'| <= min(|L_i'(c)| + B, 2 s h), and L_i is as close to L_i(c);
  g is at most the larger of its values at the ends of an interval [y, z], and g'' at most 0 or its
  value at z;
  |g'| = l e^x |e^((l-1) x) - 1| is at most g'(z) or l e^min(z, 0) (1 - e^((l-1) min(y, 0))).
Cells are quartered until this is below the price. (ln q_i)', L_i' and L_i'' are widened, so that
max T''/2 also covers the rounding of T'(c).

P4 Tails, with E = l(l-1)s^2.
  u + v >= S: reveal whether the sum of the noisy a and b is below 2 W. It has the same law for both
  neighbours, is independent of their difference, and has probability at most e = Phi(-S/sqrt 2). If
  not, the larger of a and b wins: two outcomes, of price c2 at step sqrt(2) s. So e^((l-1) D) <= (1
  - e) e^(E c2) + e e^E.
  u <= -K: reveal whether a beats W. If not, only b against W is left, at half the price; if so,
  which has probability Phi(-K + (l-1) s) at most under the tilted law, the full price. So e^((l-1)
  D) <= e^(E/2) (1 + e^(E/2) Phi(-K + (l-1) s)).
  v <= -K: likewise, with Phi(K - s)^(1-l) for 1.

P5 Moves of several votes. p_i is log-concave in the numbers, so D(P_n || P_(n+v)) is convex in v,
and the moves v with sum 0 and |v|_1 <= 2 s are the hull of moves of s from one number to another.
They cost no more than one of these.
Source: P1 to P5 are proved here. No published accountant of noisy votes uses them.
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
_WIDEST, _NARROWEST = 0.5, 1e-3
_MOST_WORK = 1_000_000  # laws that are not integrated; .3 seconds, over ten times what prices take
_INTEGRATED = 8  # times the work of another law
_MOST_REACH = 30
_FEW = 1e-3  # probabilities below it are integrated, for their relative error


def tolerance(order: float, step: float) -> float:
    """By how much, relatively, a certified price is above the largest cost found; where prices take
    longer, by more.
    """
    return 1e-3 if order * step <= 1.25 else 1e-2


@lru_cache(maxsize=65536)
def price_of_argmax(order: float, step: float) -> float:
    """Certified price of a noisy argmax: its Renyi divergence is at most the price times order
    step^2.

    `step` is the sensitivity (votes that may move) over the standard deviation of the noise. 1
    where nothing is certified. Takes 5 to 20 milliseconds, once.
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
    return min(1.0, math.log1p(float(_largest(order, step, *quadrature_rules()))) / whole)


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
            return bool(
                _covered(
                    order, step, math.expm1(price * whole), diagonal, apart, *quadrature_rules()
                )
            )
    return False


@lru_cache(maxsize=1)
def quadrature_rules() -> tuple[Floats, Floats]:
    """Gauss-Legendre rules, nodes and weights: over an angle, of 12 nodes, and over [-1, 1], of
    48.
    """
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
def outcome_laws(u: float, v: float, of_angle: Floats, rule: Floats, p: Floats) -> int:
    """Fill in p_o, p_a and p_b; returns the work."""
    p[0] = _normal(-u) * _normal(-v)
    # p_a = P(X > -u, (X - Y)/sqrt 2 > (v - u)/sqrt 2) [Drezner and Wesolowsky 1990]
    if max(abs(u), abs(v)) < 6:
        k = (u - v) / _ROOT
        p[1] = _normal(u) * _normal(k)
        for i in range(of_angle.shape[1]):
            p[1] += of_angle[2, i] * math.exp(
                -(u * u + k * k - 2 * u * k * of_angle[0, i]) * of_angle[1, i]
            )
        p[2] = 1 - p[0] - p[1]
        if min(p[1], p[2]) > _FEW:
            return 1
    p[1], p[2] = _wins(u, v, rule), _wins(v, u, rule)
    return _INTEGRATED


@compiled
def _largest(order: float, step: float, of_angle: Floats, rule: Floats) -> float:
    """The largest value of (1) found: on a grid where it is large, then ever closer to its best
    point.
    """
    p, q = np.empty(3), np.empty(3)
    best, at_u, at_v, spacing = 0.0, 1.0, 3.0, 0.5
    points = 8
    while spacing > 1e-4:
        found = False
        from_u, from_v = at_u, at_v
        for i in range(-points, points + 1):
            for j in range(-points, points + 1):
                u, v = from_u + i * spacing, from_v + j * spacing
                outcome_laws(u, v, of_angle, rule, p)
                outcome_laws(u - step, v + step, of_angle, rule, q)
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
    order: float,
    step: float,
    most: float,
    diagonal: float,
    apart: float,
    of_angle: Floats,
    rule: Floats,
) -> bool:
    """Whether (1) is at most `most` for u, v >= -apart with u + v <= diagonal, by quartering
    cells.
    """
    room = np.empty((6, 3))
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
                half = width / 2
                bound, more = bound_of_cell(
                    u + half, v + half, half, order, step, of_angle, rule, room
                )
                work += more
                if bound <= most:
                    continue
                if width < _NARROWEST or work > _MOST_WORK:
                    return False
                for a in range(2):
                    for b in range(2):
                        stack[top] = u + a * half, v + b * half, half
                        top += 1
    return True


@compiled
def bound_of_cell(
    u: float,
    v: float,
    half: float,
    order: float,
    step: float,
    of_angle: Floats,
    rule: Floats,
    room: Floats,
) -> tuple[float, int]:
    """P3's bound on (1) in the cell about (u, v) of half width `half`, and the work; `room` is
    scratch space.
    """
    p, q, of_p, of_q = room[0], room[1], room[2:4].reshape((3, 2)), room[4:].reshape((3, 2))
    work = outcome_laws(u, v, of_angle, rule, p) + outcome_laws(
        u - step, v + step, of_angle, rule, q
    )
    log_slopes(u, v, p, of_p)
    log_slopes(u - step, v + step, q, of_q)
    value, in_u, in_v, bend = 0.0, 0.0, 0.0, 0.0
    bent = 2 * _ROOT * step * half**2
    for k in range(3):
        z, share = math.log(p[k] / q[k]), q[k] * (1 + 1e-9)
        z_u, z_v = of_p[k] - of_q[k]
        error, size = widened(abs(z), 1) - abs(z), abs(of_q[k, 0]) + abs(of_q[k, 1])
        q1 = half * size + 2 * half**2 + 1e-9
        z1 = min(half * (abs(z_u) + abs(z_v)) + bent, 2 * step * half) + error
        z2 = bent + half * (1e-10 + 1e-5 * step) * (1 + size)
        g, g1, g2 = largest_excess(z - z1, z + z1, order)
        value += share * (excess(z, order) + error * g1)
        in_u += q[k] * (of_q[k, 0] * excess(z, order) + z_u * _rise(z, order))
        in_v += q[k] * (of_q[k, 1] * excess(z, order) + z_v * _rise(z, order))
        bend += (
            share * math.exp(half * size) * (q1**2 * g + 2 * q1 * z1 * g1 + z1**2 * g2 + z2 * g1)
        )
    return value + half * (abs(in_u) + abs(in_v)) + bend / 2, work


@compiled
def log_slopes(u: float, v: float, p: Floats, slopes: Floats) -> None:
    """Fill in the derivatives of ln p_o, ln p_a and ln p_b in u and v."""
    m = _density((u - v) / _ROOT) * _normal((u + v) / _ROOT) / _ROOT
    slopes[0] = -_density(u) / _normal(-u), -_density(v) / _normal(-v)
    slopes[1] = (_density(u) * _normal(-v) + m) / p[1], -m / p[1]
    slopes[2] = -m / p[2], (_density(v) * _normal(-u) + m) / p[2]


@compiled
def _density(x: float) -> float:
    return math.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


@compiled
def _rise(z: float, order: float) -> float:
    """g' of P3."""
    return order * math.exp(z) * math.expm1((order - 1) * z)


@compiled
def largest_excess(low: float, high: float, order: float) -> tuple[float, float, float]:
    """What g, |g'| and g'' are at most on an interval."""
    g = max(excess(low, order), excess(high, order))
    falls = order * math.exp(min(high, 0.0)) * -math.expm1((order - 1) * min(low, 0.0))
    return (
        g,
        max(_rise(high, order), falls),
        max(0.0, order * (order * math.exp(order * high) - math.exp(high))),
    )
