"""One test whether class names fit the data, and one temperature of names, for all methods.

Every method that takes class names decides twice: whether to use them, and how far to trust them.
Both decisions follow from one number, the length of the names. All of this is post-processing of
releases, public rows and public names, so it has no privacy cost.

The length b. Names say in which direction a class lies; b says how far the mean of the class lies
in that direction. A name that is the mean of its class has b = 1; right names in practice have
about .35, since a name is less than its class; names that tell nothing have 0, and b < 0 is
possible where names are wrong. Methods see b through different data:

- `auto` by a regression of noisy class means on the names (`named_posterior.py`),
- the gradient learners by the slope of the loss along the names
  (`tacit.learners.linear.name_centre`),
- the student of `pate` and `label-private` by the likelihood of the labels that were released.

The prior is b ~ N(`LENGTH_MEAN`, `LENGTH_SD`^2): names are right until data say otherwise.

The test. Names are contradicted if b is surely short: its posterior mean plus two posterior
standard deviations is below `LEAST_LENGTH`, a tenth of the length of right names. Data that say
little leave b near its prior mean, so absence of evidence contradicts no names.

The temperature is the posterior mean of b, at least 0. Scores by cosines to names get it times
`SCALE_OF_LENGTH`.

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LENGTH_MEAN = 0.35
LENGTH_SD = 0.25
LEAST_LENGTH = 0.1 * LENGTH_MEAN

# Lengths that are compared where the likelihood is not that of a Gaussian, and so has no closed
# form.
LENGTHS = np.linspace(-0.14, 0.56, 21)

# Logits are cosines to the names times this and the length. The usual length makes it 20: names
# alone fit best at 17 to 25 on three sets of texts.
SCALE_OF_LENGTH = 20.0 / LENGTH_MEAN


@dataclass(frozen=True)
class NameLength:
    """Posterior mean and standard deviation of the length of the names."""

    mean: float
    sd: float

    @property
    def contradicted(self) -> bool:
        """True if the names are surely too short to be right.

        >>> NameLength(0.0, 0.01).contradicted, NameLength(0.0, 0.02).contradicted
        (True, False)
        """
        return self.mean + 2 * self.sd < LEAST_LENGTH

    @property
    def temperature(self) -> float:
        """The length by which names are multiplied: the posterior mean, at least 0."""
        return max(self.mean, 0.0)


def regressed_length(information: float, evidence: float) -> NameLength:
    """Return the posterior of the length under a Gaussian likelihood.

    Parameters
    ----------
    information, evidence : float
        The log likelihood is evidence b - information b^2 / 2, up to a constant. Least squares of y
        on x with noise of variance v has information x^2/v and evidence x y/v.

    Examples
    --------
    >>> regressed_length(0.0, 0.0).mean  # data that say nothing
    0.35
    """
    prior_precision = 1 / LENGTH_SD**2
    variance = 1 / (information + prior_precision)
    mean = variance * (evidence + prior_precision * LENGTH_MEAN)
    return NameLength(mean, math.sqrt(variance))


def likeliest_length(log_likelihood: Callable[[float], float]) -> NameLength:
    """Return the posterior of the length under any likelihood, on the grid `LENGTHS`.

    Parameters
    ----------
    log_likelihood : callable
        Log likelihood of all data at a length, up to a constant.
    """
    log_prior = -0.5 * ((LENGTHS - LENGTH_MEAN) / LENGTH_SD) ** 2
    log_posterior = log_prior + np.array([log_likelihood(float(length)) for length in LENGTHS])
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()

    mean = float(weights @ LENGTHS)
    variance = float(weights @ (LENGTHS - mean) ** 2)
    return NameLength(mean, math.sqrt(variance))
