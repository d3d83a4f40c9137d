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
  |L_i''| <= B = 2 sqrt(2) s h^2; |L_i'| <= min(|L_i'(c)| + B, 2 s h), and L_i is as close to
  L_i(c);
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
from tacit.privacy.prices.two_outcomes import excess, normal_cdf, price_of_bit, widened

Floats = NDArray[np.float64]

_ROOT_TWO = math.sqrt(2)

# Widths of the cells of P3: where quartering begins, and where it gives up.
_WIDEST = 0.5
_NARROWEST = 1e-3

# Triples of probabilities that one certificate may compute: 0.3 seconds, over ten times what
# prices take.
_MOST_WORK = 1_000_000

# Probabilities below this are integrated, for their relative error, which takes this many times
# the work of the shorter formula.
_LEAST_WITHOUT_INTEGRAL = 1e-3
_WORK_OF_INTEGRALS = 8

# Distances, in standard deviations, at which the tails of P4 are tried.
_REACHES = range(7, 30)


def tolerance(order: float, step: float) -> float:
    """Return by how much, relatively, a certified price is above the largest cost found.

    It is larger where prices take longer.
    """
    if order * step <= 1.25:
        return 1e-3
    return 1e-2


@lru_cache(maxsize=65536)
def price_of_argmax(order: float, step: float) -> float:
    """Certified price of a noisy argmax: its Renyi divergence is at most the price times order
    step^2.

    `step` is the sensitivity (votes that may move) over the standard deviation of the noise. 1
    where nothing is certified. Takes 5 to 20 milliseconds, once.
    """
    if not certifiable(order, _ROOT_TWO * step):
        return 1.0
    price = planned_price(order, step)

    if price >= 1 or not _certified(order, step, price):
        return 1.0
    return max(LEAST, price)


def planned_price(order: float, step: float) -> float:
    """Return the price that `price_of_argmax` certifies, or 1: for planning."""
    return min(1.0, estimate_of_argmax(order, step) * (1 + tolerance(order, step)))


@lru_cache(maxsize=65536)
def estimate_of_argmax(order: float, step: float) -> float:
    """Return the largest share that a search finds; it is not certified."""
    if not certifiable(order, _ROOT_TWO * step):
        return 1.0
    largest_excess = float(_largest(order, step, *quadrature_rules()))

    # T = e^((l-1) D) - 1, and the cost of the noisy numbers themselves is E = l(l-1)s^2
    return min(1.0, math.log1p(largest_excess) / _full_cost(order, step))


def _full_cost(order: float, step: float) -> float:
    """Return E of P4: (order - 1) times the Renyi divergence of the noisy numbers themselves."""
    return order * (order - 1) * step**2


def _certified(order: float, step: float, price: float) -> bool:
    """Prove that no votes cost more than `price`: by P4 in the tails, by P3 between them."""
    full_cost = _full_cost(order, step)
    diagonal = _diagonal(order, step, price)
    if diagonal is None:
        return False

    # the least K of P4 beyond which both tails cost no more than the price
    most_moment = math.exp(price * full_cost)
    for reach in _REACHES:
        cutoff = reach + (order - 1) * step
        b_against_w = math.exp((1 - order) * math.log(normal_cdf(cutoff - step)))
        a_beats_w = math.exp(full_cost / 2) * normal_cdf(-float(reach))
        if math.exp(full_cost / 2) * (b_against_w + a_beats_w) <= most_moment:
            most_excess = math.expm1(price * full_cost)
            return bool(_covered(order, step, most_excess, diagonal, cutoff, *quadrature_rules()))

    return False


def _diagonal(order: float, step: float, price: float) -> float | None:
    """Return the S of P4, beyond which u + v cost no more than `price`, or None if none is large
    enough.

    P4 asks for e = Phi(-S/sqrt 2) with (1 - e) e^(E c2) + e e^E <= e^(E price).
    """
    from scipy.special import ndtri

    bit_price = price_of_bit(order, _ROOT_TWO * step)
    if price <= bit_price:
        return None

    full_cost = _full_cost(order, step)
    tail = math.expm1((price - bit_price) * full_cost) / math.expm1((1 - bit_price) * full_cost)
    rounded_down = tail * (1 - 1e-9)
    return -_ROOT_TWO * float(ndtri(rounded_down))


@lru_cache(maxsize=1)
def quadrature_rules() -> tuple[Floats, Floats]:
    """Gauss-Legendre rules: over an angle in [0, pi/4], of 12 nodes, and over [-1, 1], of 48.

    The rows of the first are sin(t), 1/(2 cos(t)^2) and weight/(2 pi) at the angles t, those of the
    second nodes and weights.
    """
    nodes, weights = np.polynomial.legendre.leggauss(12)
    angles = (nodes + 1) * math.pi / 8
    angle_rule = np.stack([np.sin(angles), 0.5 / np.cos(angles) ** 2, weights / 16])

    line_rule = np.stack(np.polynomial.legendre.leggauss(48))
    return angle_rule, line_rule


@compiled
def _wins(u: float, v: float, line_rule: Floats) -> float:
    """Return p_a of P1 by quadrature about the mode of its log-concave integrand."""
    # Newton's method on the derivative of ln(phi(x - u) Phi(x - v))
    mode = u
    for _ in range(8):
        density = math.exp(-0.5 * (mode - v) ** 2) / math.sqrt(2 * math.pi)
        mills = density / normal_cdf(mode - v)
        mode -= (u - mode + mills) / (-1 - mills * (mode - v + mills))

    # the integrand is below e^(-9^2/2) of its largest value 9 away from the mode
    low = max(0.0, mode - 9)
    high = max(mode, 0.0) + 9
    half = 0.5 * (high - low)
    middle = 0.5 * (high + low)

    total = 0.0
    for i in range(line_rule.shape[1]):
        x = middle + half * line_rule[0, i]
        total += line_rule[1, i] * math.exp(-0.5 * (x - u) ** 2) * normal_cdf(x - v)
    return total * half / math.sqrt(2 * math.pi)


@compiled
def outcome_laws(u: float, v: float, angle_rule: Floats, line_rule: Floats, p: Floats) -> int:
    """Fill in p_o, p_a and p_b of P1, and return the work."""
    p[0] = normal_cdf(-u) * normal_cdf(-v)

    if max(abs(u), abs(v)) < 6:
        # p_a = P(X > -u, (X - Y)/sqrt 2 > (v - u)/sqrt 2), a bivariate normal probability of
        # correlation 1/sqrt 2: an integral over an angle [Drezner and Wesolowsky 1990]
        k = (u - v) / _ROOT_TWO
        p[1] = normal_cdf(u) * normal_cdf(k)
        for i in range(angle_rule.shape[1]):
            square = u * u + k * k - 2 * u * k * angle_rule[0, i]
            p[1] += angle_rule[2, i] * math.exp(-square * angle_rule[1, i])
        p[2] = 1 - p[0] - p[1]
        if min(p[1], p[2]) > _LEAST_WITHOUT_INTEGRAL:
            return 1

    p[1] = _wins(u, v, line_rule)
    p[2] = _wins(v, u, line_rule)
    return _WORK_OF_INTEGRALS


@compiled
def _largest(order: float, step: float, angle_rule: Floats, line_rule: Floats) -> float:
    """Search the largest T: on a coarse grid where it is large, then ever closer to the best
    point.
    """
    p = np.empty(3)
    q = np.empty(3)

    best = 0.0
    best_u = 1.0
    best_v = 3.0
    spacing = 0.5
    points = 8
    while spacing > 1e-4:
        improved = False
        centre_u = best_u
        centre_v = best_v
        for i in range(-points, points + 1):
            for j in range(-points, points + 1):
                u = centre_u + i * spacing
                v = centre_v + j * spacing
                outcome_laws(u, v, angle_rule, line_rule, p)
                outcome_laws(u - step, v + step, angle_rule, line_rule, q)

                value = 0.0
                for k in range(3):
                    value += q[k] * excess(math.log(p[k] / q[k]), order)
                if value > best:
                    best = value
                    best_u = u
                    best_v = v
                    improved = True

        # after the first grid, only the eight neighbours of the best point
        points = 1
        if not improved:
            spacing /= 2

    return best


@compiled
def _covered(
    order: float,
    step: float,
    most_excess: float,
    diagonal: float,
    cutoff: float,
    angle_rule: Floats,
    line_rule: Floats,
) -> bool:
    """Return whether P3 proves that T is at most `most_excess` for u, v >= -cutoff with u + v <=
    diagonal.
    """
    scratch = np.empty((6, 3))
    # cells that wait: their lower corner (u, v) and their width
    stack = np.empty((100, 3))
    work = 0

    cells_a_side = math.ceil((diagonal + 2 * cutoff) / _WIDEST)
    for i in range(cells_a_side):
        for j in range(cells_a_side - i):
            stack[0] = -cutoff + i * _WIDEST, -cutoff + j * _WIDEST, _WIDEST
            top = 1
            while top > 0:
                top -= 1
                u, v, width = stack[top]
                if u + v > diagonal:
                    # P4 covers it
                    continue

                half = width / 2
                bound, cell_work = bound_of_cell(
                    u + half, v + half, half, order, step, angle_rule, line_rule, scratch
                )
                work += cell_work
                if bound <= most_excess:
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
    angle_rule: Floats,
    line_rule: Floats,
    scratch: Floats,
) -> tuple[float, int]:
    """Return P3's bound on T in the cell about (u, v) of half width `half`, and the work.

    `scratch`, of shape (6, 3), is overwritten.
    """
    # probabilities of the outcomes, (3,), and derivatives of their logarithms in u and v, (3, 2)
    p = scratch[0]
    q = scratch[1]
    slopes_p = scratch[2:4].reshape((3, 2))
    slopes_q = scratch[4:].reshape((3, 2))
    work = outcome_laws(u, v, angle_rule, line_rule, p)
    work += outcome_laws(u - step, v + step, angle_rule, line_rule, q)
    log_slopes(u, v, p, slopes_p)
    log_slopes(u - step, v + step, q, slopes_q)

    # B of P3
    most_bend = 2 * _ROOT_TWO * step * half**2

    value = 0.0
    slope_u = 0.0
    slope_v = 0.0
    second = 0.0
    for k in range(3):
        # the log ratio L_k at the centre, its derivatives, and the error of its rounding
        z = math.log(p[k] / q[k])
        slope_z = slopes_p[k] - slopes_q[k]
        error = widened(abs(z), 1) - abs(z)
        q_above = q[k] * (1 + 1e-9)

        # largest sizes in the cell, along d: q1 of (ln q_k)', z1 of L_k' (and so of L_k less its
        # value at the centre), z2 of L_k''; each widened by more than its rounding
        slope_q = abs(slopes_q[k, 0]) + abs(slopes_q[k, 1])
        q1 = half * slope_q + 2 * half**2 + 1e-9
        z1 = min(half * (abs(slope_z[0]) + abs(slope_z[1])) + most_bend, 2 * step * half) + error
        z2 = most_bend + half * (1e-10 + 1e-5 * step) * (1 + slope_q)
        g, g1, g2 = largest_excess(z - z1, z + z1, order)

        # T and T' at the centre, and the largest T'' in the cell
        value += q_above * (excess(z, order) + error * g1)
        slope_u += q[k] * (slopes_q[k, 0] * excess(z, order) + slope_z[0] * _rise(z, order))
        slope_v += q[k] * (slopes_q[k, 1] * excess(z, order) + slope_z[1] * _rise(z, order))
        largest_q = q_above * math.exp(half * slope_q)
        second += largest_q * (q1**2 * g + 2 * q1 * z1 * g1 + z1**2 * g2 + z2 * g1)

    return value + half * (abs(slope_u) + abs(slope_v)) + second / 2, work


@compiled
def log_slopes(u: float, v: float, p: Floats, slopes: Floats) -> None:
    """Fill in the derivatives of ln p_o, ln p_a and ln p_b in u and v, by P2."""
    m = _density((u - v) / _ROOT_TWO) * normal_cdf((u + v) / _ROOT_TWO) / _ROOT_TWO
    slopes[0] = -_density(u) / normal_cdf(-u), -_density(v) / normal_cdf(-v)
    slopes[1] = (_density(u) * normal_cdf(-v) + m) / p[1], -m / p[1]
    slopes[2] = -m / p[2], (_density(v) * normal_cdf(-u) + m) / p[2]


@compiled
def _density(x: float) -> float:
    """Return phi(x)."""
    return math.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


@compiled
def _rise(z: float, order: float) -> float:
    """Return g'(z) of P3."""
    return order * math.exp(z) * math.expm1((order - 1) * z)


@compiled
def largest_excess(low: float, high: float, order: float) -> tuple[float, float, float]:
    """Return bounds on g, |g'| and g'' on an interval of log ratios, by P3."""
    # g falls below 0 and rises above
    most_g = max(excess(low, order), excess(high, order))

    falls = order * math.exp(min(high, 0.0)) * -math.expm1((order - 1) * min(low, 0.0))
    most_slope = max(_rise(high, order), falls)

    second_at_high = order * (order * math.exp(order * high) - math.exp(high))
    return most_g, most_slope, max(0.0, second_at_high)
