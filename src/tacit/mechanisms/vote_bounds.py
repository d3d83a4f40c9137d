"""Data-dependent Renyi bounds of noisy votes. They depend on the votes, so they are private
themselves.

Unit and sensitivity: as in `votes.py`; privacy costs depend on sigma/s, probabilities on sigma.
Theorem: let q bound the probability that a mechanism with Renyi costs mu_1 -> e_1 and mu_2 -> e_2
gives another output than the likeliest. Then its cost at order lambda is at most ln[(1-q)
A^(lambda-1) + q B^(lambda-1)]/(lambda-1), with A = (1-q)/(1 - (q e^{e_2})^{(mu_2-1)/mu_2}) and B =
e^{e_1}/q^{1/(mu_1-1)}, if lambda <= mu_1, mu_2 > 1, ln q <= (mu_2-1) e_2 - mu_2 [ln(mu_1/(mu_1-1))
+ ln(mu_2/(mu_2-1))] and -ln q > e_2 [Papernot et al. 2018, Thm 6], with mu_2 = sigma sqrt(-ln q)
and mu_1 = mu_2 + 1. If it does not hold, or is not smaller, the data-independent cost is used.
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

_BLOCK = 4096
_ROWS = 256
# of the quadrature; the error of the trapezoid rule is then below 1e-14
_SPACING, _TAIL = 0.2, 10.0


def log_q_union(counts: Floats, sigma: float) -> Floats:
    """Log of the union bound on the probability that another label than the top label wins, of
    shape (queries,).

    `counts`, of shape (queries, classes), are votes per class; `sigma` is the standard deviation of
    their noise.
    """
    n_classes = counts.shape[1]
    if n_classes == 1:
        return np.full(len(counts), -np.inf)
    each = _log_overtaken(_gaps(counts), math.sqrt(2) * sigma)
    top = each.max(axis=1)
    bound = top + np.log(np.exp(each - top[:, None]).sum(axis=1))
    return np.asarray(np.minimum(bound, math.log1p(-1 / n_classes)))


def log_q_exact(counts: Floats, sigma: float) -> Floats:
    """Log of the probability that another label than the top label wins, by quadrature; shapes as
    in `log_q_union`.

    1 - prod_j Phi(x + gap_j/sigma), integrated over the noise x of the top count. Below 1e-300 the
    union bound is used.
    """
    from scipy.special import log_ndtr, logsumexp

    union = log_q_union(counts, sigma)
    if counts.shape[1] <= 2:
        return union
    gaps = _gaps(counts) / sigma
    result = union.copy()
    inside = np.flatnonzero(union > -690)
    # rows of a block need about the same range
    order = inside[np.argsort(gaps[inside].min(axis=1))]
    for start in range(0, len(order), 256):
        rows = order[start : start + 256]
        x = np.arange(-gaps[rows].min(axis=1).max() / 2 - _TAIL, _TAIL, _SPACING)
        below = np.zeros((len(rows), len(x)))
        for gap in gaps[rows].T:
            below += log_ndtr(x + gap[:, None])
        other = np.log(-np.expm1(np.minimum(below, -1e-320)))
        logs = other - x**2 / 2 + math.log(_SPACING / math.sqrt(2 * math.pi))
        result[rows] = logsumexp(logs, axis=1)
    return np.minimum(result, union)


def log_q_check(largest: Floats, threshold: float, sigma: float) -> Floats:
    """Log probability of the less likely outcome of a check, for the largest count of each query,
    (queries,).
    """
    from scipy.special import log_ndtr

    above = (largest - threshold) / sigma
    return np.asarray(log_ndtr(-np.abs(above)))


def log_q_laplace(counts: Floats, gamma: float) -> Floats:
    """Log of a bound on the probability that another label wins under Laplace noise of scale
    1/gamma; (queries,).
    """
    from scipy.special import logsumexp

    if counts.shape[1] == 1:
        return np.full(len(counts), -np.inf)
    moved = gamma * _gaps(counts)
    bound = logsumexp(np.log(2 + moved) - math.log(4) - moved, axis=1)
    return np.asarray(np.minimum(bound, math.log1p(-1 / counts.shape[1])))


def gaussian_renyi(log_q: Floats, sigma: Floats | float, orders: Floats) -> Floats:
    """Renyi cost of each label at each order above 1, of shape (queries, orders): the smaller of
    the two bounds.

    `log_q`, of shape (queries,), bounds the log probability of another output than the likeliest.
    `sigma` is the standard deviation of the noise over the sensitivity: the data-independent cost
    is lambda/sigma^2. For a check pass sqrt(2) sigma_1/s.
    """
    if np.ndim(sigma) == 0:  # many queries have the same votes
        distinct, place = np.unique(log_q, return_inverse=True)
        if len(distinct) < len(log_q):
            return gaussian_renyi(distinct, sigma, orders)[place]
    sigma = np.broadcast_to(sigma, log_q.shape)
    result = orders / sigma[:, None] ** 2
    with np.errstate(all="ignore"):  # if a logarithm is undefined, the bound does not hold
        mu2 = sigma * np.sqrt(-log_q)
        mu1 = mu2 + 1
        e1, e2 = mu1 / sigma**2, mu2 / sigma**2
        holds = (mu2 > 1) & (-log_q > e2) & np.isfinite(log_q)
        holds &= log_q <= (mu2 - 1) * e2 - mu2 * (np.log(mu1 / (mu1 - 1)) + np.log(mu2 / (mu2 - 1)))
        log_r = (log_q + e2) * (mu2 - 1) / mu2
        excess = np.exp(log_q) * np.expm1(log_r - log_q)  # r - q, without cancellation
        log_a = np.log1p(excess / -np.expm1(log_r))
        log_b = e1 - log_q / (mu1 - 1)
        _lower(result, holds, mu1, orders, log_q, log_a, log_b)
    result[np.isneginf(log_q)] = 0.0
    return np.asarray(result)


def laplace_renyi(log_q: Floats, gamma: Floats | float, orders: Floats) -> Floats:
    """Renyi cost of each label under Laplace noise; shapes as in `gaussian_renyi`. Pass gamma times
    the sensitivity.
    """
    pure = 2 * np.broadcast_to(gamma, log_q.shape)
    result = np.minimum(pure[:, None] ** 2 * orders / 2, pure[:, None])
    with np.errstate(all="ignore"):
        holds = log_q < np.log(np.expm1(pure)) - np.log(np.expm1(2 * pure))
        log_a = np.log1p(np.exp(log_q) * np.expm1(pure) / -np.expm1(log_q + pure))
        _lower(result, holds, np.full(len(pure), np.inf), orders, log_q, log_a, pure)
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

    most = int(gaps.max(initial=0.0))
    if most < gaps.size and np.all(gaps == np.rint(gaps)):
        return np.asarray(log_ndtr(-np.arange(most + 1) / scale)[gaps.astype(np.intp)])
    return np.asarray(log_ndtr(-gaps / scale))


def _lower(
    costs: Floats,
    holds: NDArray[np.bool_],
    most: Floats,
    orders: Floats,
    log_q: Floats,
    log_a: Floats,
    log_b: Floats,
) -> None:
    """Lower costs of shape (queries, orders) to the bound ln[(1-q) A^(o-1) + q B^(o-1)]/(o-1) where
    it holds.

    It holds for the queries in `holds`, at orders up to `most`.
    """
    queries = np.flatnonzero(holds)
    queries = queries[np.argsort(most[queries])]  # rows of a block need about the same orders
    for rows in (queries[start : start + _ROWS] for start in range(0, len(queries), _ROWS)):
        columns = np.flatnonzero(orders <= most[rows].max())
        above = orders[columns] - 1
        total = _log_mixture(
            log_q[rows, None], above * log_a[rows, None], above * log_b[rows, None]
        )
        cells = np.ix_(rows, columns)
        bound = np.where(orders[columns] <= most[rows, None], total / above, np.inf)
        costs[cells] = np.minimum(costs[cells], bound)


def _log_mixture(log_q: Floats, a: Floats, b: Floats) -> Floats:
    """ln[(1-q) e^a + q e^b] for a, b >= 0 of one shape, accurate also if it is tiny."""
    q = np.exp(log_q)
    result = np.asarray(np.log1p((1 - q) * np.expm1(a) + q * np.expm1(b)))
    # the line above may overflow or underflow
    hard = (np.maximum(a, log_q + b) > 30) | (log_q < -650)
    if hard.any():
        log_q, a, b = np.broadcast_to(log_q, a.shape)[hard], a[hard], b[hard]
        q = np.exp(log_q)
        small = np.log1p((1 - q) * np.expm1(a) + np.exp(log_q + b) - q)
        large = np.logaddexp(np.log1p(-q) + a, log_q + b)
        result[hard] = np.where(np.maximum(a, log_q + b) > 30, large, small)
    return result
