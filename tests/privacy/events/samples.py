"""One event of each kind, and formulas that are independent of tacit and of dp_accounting."""

import math

from scipy.stats import norm

from tacit.privacy.events import (
    ZCDP,
    Exponential,
    FilteredVotes,
    Gaussian,
    Laplace,
    NoisyArgmax,
    NoisyCheck,
    Parallel,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
)

EVENTS = [
    Gaussian(1.3),
    Exponential(0.7),
    PureDP(0.4),
    ZCDP(0.2),
    RandomizedResponse(0.9, 4),
    Laplace(1.6),
    Parallel(Gaussian(2.0), "classes"),
    Parallel(Exponential(0.5), "splits"),
    Parallel(Parallel(Gaussian(2.5), "classes"), "parts"),
    RepeatAndSelect(Gaussian(4.0), 5, 1),
    RepeatAndSelect(Exponential(0.3), 3, 0),
    SampledGaussian(1.1, 0.05),
    NoisyArgmax(8.0, 6.0),
    NoisyCheck(6.0, 6.0),
    FilteredVotes(6.0, 1.0, 1.4),
]


DELTAS = [1e-3, 1e-5, 1e-8]


def response_divergence(epsilon, n_classes, order):
    """Renyi divergence of randomized response between two labels, straight from its two rows."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + n_classes - 1)
    other = (1 - keep) / (n_classes - 1)
    total = (
        keep**order * other ** (1 - order)
        + other**order * keep ** (1 - order)
        + (n_classes - 2) * other
    )
    return math.log(total) / (order - 1)


def gaussian_delta(mu, epsilon):
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
