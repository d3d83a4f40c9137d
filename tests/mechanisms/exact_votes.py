"""What noisy votes release, exactly: log probabilities by quadrature over the noise of one count; Renyi divergences."""

import numpy as np
from scipy.special import log_ndtr, logsumexp

X = np.linspace(-50, 50, 1001)  # spaced .1, at which the trapezoid rule is exact to rounding


def log_label_chances(counts, sigma):
    """Log distribution of the class with the largest count + N(0, sigma^2)."""
    lead = (counts[:, None] - counts[None, :]) / sigma
    logs = []
    for own in range(len(counts)):
        others = [log_ndtr(X + gap) for i, gap in enumerate(lead[own]) if i != own]
        logs.append(logsumexp((-(X**2) / 2 - np.log(2 * np.pi) / 2) + np.sum(others, axis=0)) + np.log(X[1] - X[0]))
    return np.array(logs)


def log_check_chances(largest, threshold, sigma1):
    """Log distribution of a check: it passes, it does not."""
    return log_ndtr(np.array([1, -1]) * (largest - threshold) / sigma1)


def divergence(log_p, log_q, order):
    """Renyi divergence of finite distributions."""
    return float(logsumexp(order * log_p + (1 - order) * log_q) / (order - 1))
