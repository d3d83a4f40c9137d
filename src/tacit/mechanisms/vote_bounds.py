"""Data-dependent Renyi bounds of noisy votes. They depend on the votes, so they are private
themselves.

Unit and sensitivity: as in `votes.py`. Privacy costs depend on sigma/s, probabilities on sigma.

Theorem [Papernot et al. 2018, Thm 6]. Let q bound the probability that a mechanism with Renyi costs
e_1 at order mu_1 and e_2 at order mu_2 gives another output than the likeliest. Then its cost at
order lambda is at most

    ln[(1-q) A^(lambda-1) + q B^(lambda-1)] / (lambda-1),
    A = (1-q) / (1 - (q e^{e_2})^{(mu_2-1)/mu_2}),
    B = e^{e_1} / q^{1/(mu_1-1)},

if lambda <= mu_1, mu_2 > 1, -ln q > e_2 and

    ln q <= (mu_2-1) e_2 - mu_2 [ln(mu_1/(mu_1-1)) + ln(mu_2/(mu_2-1))].

Gaussian noise has e_i = mu_i/sigma^2; the orders are mu_2 = sigma sqrt(-ln q) and mu_1 = mu_2 + 1.
Where the bound does not hold, or is not smaller, the data-independent cost is used.

Laplace: Papernot et al. 2017, Thm 3 and Lemma 4.
Source: Papernot et al. 2018; formulas and reference numbers in the tests.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LogQ = Callable[[Floats, float], Floats]
"""Maps counts and sigma to log q: `log_q_union` or `log_q_exact`."""

# Queries of a block: for callers, in `_lower`, and in the quadrature.
_BLOCK = 4096
_ROWS = 256
_QUADRATURE_ROWS = 256

# Quadrature: distance of points, and their range beyond the peak, in standard deviations.
# The error of the trapezoid rule is then below 1e-14.
_SPACING = 0.2
_TAIL = 10.0


def log_q_union(counts: Floats, sigma: float) -> Floats:
    """Log of the union bound on the probability that another label than the top label wins, of
    shape (queries,).

    `counts`, of shape (queries, classes), are votes per class; `sigma` is the standard deviation of
    their noise.
    """
    n_classes = counts.shape[1]
    if n_classes == 1:
        return np.full(len(counts), -np.inf)

    # The difference of two noisy counts has twice the variance of one.
    log_overtaken = _log_overtaken(_gaps(counts), math.sqrt(2) * sigma)

    # Log of the sum over the other classes.
    largest = log_overtaken.max(axis=1)
    bound = largest + np.log(np.exp(log_overtaken - largest[:, None]).sum(axis=1))

    # The likeliest of C labels has a probability of at least 1/C.
    return np.asarray(np.minimum(bound, math.log1p(-1 / n_classes)))


def log_q_exact(counts: Floats, sigma: float) -> Floats:
    """Log of the probability that another label than the top label wins, by quadrature; shapes as
    in `log_q_union`.

    It is 1 - prod_j Phi(x + gap_j/sigma), integrated over the noise x of the top count. Below
    1e-300 the union bound is used.
    """
    union = log_q_union(counts, sigma)
    if counts.shape[1] <= 2:
        # With one other class the union bound is exact.
        return union

    gaps = _gaps(counts) / sigma
    result = union.copy()
    in_range = np.flatnonzero(union > -690)

    # Sorted by their smallest gap, queries of a block need about the same range of x.
    order = in_range[np.argsort(gaps[in_range].min(axis=1))]
    for start in range(0, len(order), _QUADRATURE_ROWS):
        rows = order[start : start + _QUADRATURE_ROWS]
        result[rows] = _log_q_by_quadrature(gaps[rows])

    return np.minimum(result, union)


def _log_q_by_quadrature(gaps: Floats) -> Floats:
    """Log q, (queries,), for gaps over sigma, (queries, classes - 1), by the trapezoid rule."""
    from scipy.special import log_ndtr, logsumexp

    # The integrand peaks between 0 and minus half of the smallest gap.
    lowest_peak = -gaps.min(axis=1).max() / 2
    x = np.arange(lowest_peak - _TAIL, _TAIL, _SPACING)

    # Log of prod_j Phi(x + gap_j), the probability that the top label wins, (queries, points).
    log_wins = np.zeros((len(gaps), len(x)))
    for gap in gaps.T:
        log_wins += log_ndtr(x + gap[:, None])

    # -1e-320 keeps the logarithm of 1 - 1 finite.
    log_loses = np.log(-np.expm1(np.minimum(log_wins, -1e-320)))
    log_density = log_loses - x**2 / 2 + math.log(_SPACING / math.sqrt(2 * math.pi))
    return np.asarray(logsumexp(log_density, axis=1))


def log_q_check(largest: Floats, threshold: float, sigma: float) -> Floats:
    """Log probability of the less likely outcome of a check, for the largest count of each query,
    (queries,).
    """
    from scipy.special import log_ndtr

    distance = np.abs((largest - threshold) / sigma)
    return np.asarray(log_ndtr(-distance))


def log_q_laplace(counts: Floats, gamma: float) -> Floats:
    """Log of a bound on the probability that another label wins under Laplace noise of scale
    1/gamma; (queries,).
    """
    from scipy.special import logsumexp

    n_classes = counts.shape[1]
    if n_classes == 1:
        return np.full(len(counts), -np.inf)

    # Papernot et al. 2017, Lemma 4: the sum over j of (2 + gamma gap_j) / (4 e^(gamma gap_j)).
    scaled_gaps = gamma * _gaps(counts)
    bound = logsumexp(np.log(2 + scaled_gaps) - math.log(4) - scaled_gaps, axis=1)
    return np.asarray(np.minimum(bound, math.log1p(-1 / n_classes)))


def gaussian_renyi(log_q: Floats, sigma: Floats | float, orders: Floats) -> Floats:
    """Renyi cost of each label at each order above 1, of shape (queries, orders): the smaller of
    the two bounds.

    `log_q`, of shape (queries,), bounds the log probability of another output than the likeliest.
    `sigma` is the standard deviation of the noise over the sensitivity: the data-independent cost
    is lambda/sigma^2. For a check pass sqrt(2) sigma_1/s.
    """
    if np.ndim(sigma) == 0:
        # Many queries have the same votes: compute each value once.
        distinct, positions = np.unique(log_q, return_inverse=True)
        if len(distinct) < len(log_q):
            return gaussian_renyi(distinct, sigma, orders)[positions]

    sigma = np.broadcast_to(sigma, log_q.shape)
    result = orders / sigma[:, None] ** 2

    # Where a logarithm is undefined, the bound does not hold.
    with np.errstate(all="ignore"):
        mu2 = sigma * np.sqrt(-log_q)
        mu1 = mu2 + 1
        e1 = mu1 / sigma**2
        e2 = mu2 / sigma**2

        holds = (mu2 > 1) & (-log_q > e2) & np.isfinite(log_q)
        log_ratios = np.log(mu1 / (mu1 - 1)) + np.log(mu2 / (mu2 - 1))
        holds &= log_q <= (mu2 - 1) * e2 - mu2 * log_ratios

        # With r = (q e^{e_2})^{(mu_2-1)/mu_2}, A = (1-q)/(1-r) = 1 + (r-q)/(1-r).
        # r - q is computed as q (r/q - 1), without cancellation.
        log_r = (log_q + e2) * (mu2 - 1) / mu2
        r_minus_q = np.exp(log_q) * np.expm1(log_r - log_q)
        log_a = np.log1p(r_minus_q / -np.expm1(log_r))
        log_b = e1 - log_q / (mu1 - 1)
        _lower(result, holds, mu1, orders, log_q, log_a, log_b)

    # A certain output tells nothing.
    result[np.isneginf(log_q)] = 0.0
    return np.asarray(result)


def laplace_renyi(log_q: Floats, gamma: Floats | float, orders: Floats) -> Floats:
    """Renyi cost of each label under Laplace noise; shapes as in `gaussian_renyi`. Pass gamma times
    the sensitivity.
    """
    epsilon = 2 * np.broadcast_to(gamma, log_q.shape)

    # The data-independent cost of epsilon-DP.
    result = np.minimum(epsilon[:, None] ** 2 * orders / 2, epsilon[:, None])

    # Papernot et al. 2017, Thm 3, holds at all orders, with A = (1-q)/(1 - q e^epsilon) and
    # B = e^epsilon.
    with np.errstate(all="ignore"):
        holds = log_q < np.log(np.expm1(epsilon)) - np.log(np.expm1(2 * epsilon))
        log_a = np.log1p(np.exp(log_q) * np.expm1(epsilon) / -np.expm1(log_q + epsilon))
        all_orders = np.full(len(epsilon), np.inf)
        _lower(result, holds, all_orders, orders, log_q, log_a, epsilon)

    return np.asarray(result)


def blocks(n: int) -> Iterator[slice]:
    """Slices of n queries, which bound the memory in use."""
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def _gaps(counts: Floats) -> Floats:
    """Lead of the top class over each other class, of shape (queries, classes - 1)."""
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=1)
    return np.asarray(ordered[:, -1:] - ordered[:, :-1])


def _log_overtaken(gaps: Floats, scale: float) -> Floats:
    """ln Phi(-gap/scale); integer gaps, which have few different values, are looked up in a
    table.
    """
    from scipy.special import log_ndtr

    largest = int(gaps.max(initial=0.0))
    if largest < gaps.size and np.all(gaps == np.rint(gaps)):
        table = log_ndtr(-np.arange(largest + 1) / scale)
        return np.asarray(table[gaps.astype(np.intp)])

    return np.asarray(log_ndtr(-gaps / scale))


def _lower(
    costs: Floats,
    holds: NDArray[np.bool_],
    largest_orders: Floats,
    orders: Floats,
    log_q: Floats,
    log_a: Floats,
    log_b: Floats,
) -> None:
    """Lower costs of shape (queries, orders) to the bound ln[(1-q) A^(o-1) + q B^(o-1)]/(o-1) where
    it holds.

    It holds for the queries in `holds`, at orders up to `largest_orders` (mu_1) of the query.
    """
    # Sorted by their largest order, queries of a block need about the same orders.
    queries = np.flatnonzero(holds)
    queries = queries[np.argsort(largest_orders[queries])]

    for start in range(0, len(queries), _ROWS):
        rows = queries[start : start + _ROWS]
        columns = np.flatnonzero(orders <= largest_orders[rows].max())
        powers = orders[columns] - 1

        log_mixture = _log_mixture(
            log_q[rows, None], powers * log_a[rows, None], powers * log_b[rows, None]
        )
        is_valid = orders[columns] <= largest_orders[rows, None]
        bound = np.where(is_valid, log_mixture / powers, np.inf)

        cells = np.ix_(rows, columns)
        costs[cells] = np.minimum(costs[cells], bound)


def _log_mixture(log_q: Floats, a: Floats, b: Floats) -> Floats:
    """ln[(1-q) e^a + q e^b] for a, b >= 0 of one shape, accurate also if it is tiny."""
    q = np.exp(log_q)
    result = np.asarray(np.log1p((1 - q) * np.expm1(a) + q * np.expm1(b)))

    # The line above overflows for large exponents, and q e^b underflows for tiny q.
    is_large = np.maximum(a, log_q + b) > 30
    hard = is_large | (log_q < -650)
    if hard.any():
        result[hard] = _log_mixture_of_extremes(
            np.broadcast_to(log_q, a.shape)[hard], a[hard], b[hard], is_large[hard]
        )
    return result


def _log_mixture_of_extremes(
    log_q: Floats, a: Floats, b: Floats, is_large: NDArray[np.bool_]
) -> Floats:
    """`_log_mixture` of tiny q or large exponents; all arrays have the same shape."""
    q = np.exp(log_q)

    # q e^b as e^(ln q + b), which does not underflow.
    small = np.log1p((1 - q) * np.expm1(a) + np.exp(log_q + b) - q)
    large = np.logaddexp(np.log1p(-q) + a, log_q + b)
    return np.where(is_large, large, small)
