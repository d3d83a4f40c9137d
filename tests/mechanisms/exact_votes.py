"""What noisy votes release, exactly: log probabilities by quadrature over the noise of one count;
Renyi divergences.
"""

import numpy as np
from scipy.special import log_ndtr, logsumexp

X = np.linspace(-50, 50, 501)  # spaced .2, at which the trapezoid rule is exact to rounding


def log_label_chances(counts, sigma):
    """Log distribution of the class with the largest count + N(0, sigma^2)."""
    lead = (counts[:, None] - counts[None, :]) / sigma
    of_others = log_ndtr(
        X + lead[~np.eye(len(counts), dtype=bool)].reshape(len(counts), -1, 1)
    ).sum(axis=1)
    logs = of_others - (X**2 + np.log(2 * np.pi)) / 2 + np.log(X[1] - X[0])
    return logsumexp(logs, axis=1)


def log_check_chances(largest, threshold, sigma1):
    """Log distribution of a check: it passes, it does not."""
    return log_ndtr(np.array([1, -1]) * (largest - threshold) / sigma1)


def three_outcomes(u, v):
    """Log probabilities that W, a or b is largest, of shape (3, n): noisy a and b have means u and
    v, and W is 0.
    """
    # Simpson's rule from 0, where the integrand does not vanish
    x = np.linspace(0, 16, 321)[:, None]
    weights = np.full((321, 1), 2.0)
    weights[1::2], weights[0], weights[-1] = 4.0, 1.0, 1.0
    weights = np.log(weights * 0.05 / 3 / np.sqrt(2 * np.pi))
    a = logsumexp(weights - (x - u) ** 2 / 2 + log_ndtr(x - v), axis=0)
    b = logsumexp(weights - (x - v) ** 2 / 2 + log_ndtr(x - u), axis=0)
    return np.array([log_ndtr(-u) + log_ndtr(-v), a, b])


def share_of_argmax(order, step):
    """Largest share of the cost of the noisy counts that an argmax has, on ever finer grids: a
    little too small.
    """
    centre, best = np.array([1.0, 1.5]), 0.0
    for spacing in (0.4, 0.1, 0.025):
        reach = np.arange(-6, 7) * spacing
        u, v = (
            values.ravel() + middle
            for values, middle in zip(np.meshgrid(reach, reach), centre, strict=True)
        )
        log_p, log_q = three_outcomes(u, v), three_outcomes(u - step, v + step)
        each = logsumexp(order * log_p + (1 - order) * log_q, axis=0) / (order - 1)
        centre, best = np.array([u[each.argmax()], v[each.argmax()]]), max(best, float(each.max()))
    return best / (order * step**2)


def share_of_check(order, step):
    """The same of one bit."""
    x = np.arange(-5, 5, 0.01)
    log_p, log_q = (log_ndtr(np.array([1, -1])[:, None] * shifted) for shifted in (x, x - step))
    each = logsumexp(order * log_p + (1 - order) * log_q, axis=0) / (order - 1)
    return float(each.max() / (order * step**2 / 2))


def divergence(log_p, log_q, order):
    """Renyi divergence of finite distributions."""
    return float(logsumexp(order * log_p + (1 - order) * log_q) / (order - 1))
