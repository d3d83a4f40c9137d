"""95 % intervals of shares of rows that are right, and of other means over rows.

A share of n independent rows has Wilson's interval: all shares p that the test |share - p| <= z
sqrt(p (1 - p) / n) keeps. It does not shrink to a point where all rows are right: of 590 right rows
of 590 its lower end is .9935.

Other figures are means over rows with weights w_r that add up to 1: balanced accuracy over C
classes gives a row of class c, which has n_c rows, the weight 1 / (C n_c). Such a mean has Wilson's
interval at its effective size, the number of independent rows whose share would have the same
variance. With V the variance that linearization estimates, which adds up the rows of a person
first, that is p (1 - p) / V. Where all are right, or nearly, V is 0 or far too small, because it
misses the errors of classes or persons that happened to have none. So one observation that is wrong
is added, of weight W:

    n = (p (1 - p) + W) / (V + W^2).

W is the mean weight of a person (a row without ids), weighted by itself, or the largest weight of a
row, if that is more. If all are right, n = 1 / W: as though persons were right or wrong in all
their rows. For independent rows of equal weight n is their number, exactly. The second term is
Kish's effective size: no figure is taken to be surer than with independent rows of one accuracy. By
P persons V has few degrees of freedom, so n is multiplied by (z / t)^2, t being the quantile of
Student's distribution of P - 1 degrees.

`benchmarks/measure/intervals.csv` has the coverage of both kinds by simulation, beside that of the
standard error alone.

Source: Wilson 1927; Kish, Survey Sampling, 1965, section 11.7 (weights); Korn and Graubard 1998
(effective size and degrees of freedom under clusters); Dean and Pagano 2015 (Wilson's interval at
it); tacit (the observation that is added, after Agresti and Coull 1998).
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats

Interval = tuple[float, float]

BY_PERSON = "Wilson's at the effective number of persons (Korn and Graubard 1998)"

# the normal quantile of a two-sided level of 95 %
_QUANTILE = 1.959963984540054


def wilson(share: float, size: float) -> Interval:
    """Wilson's 95 % interval of a share of so many independent rows; size may be effective.

    Examples
    --------
    >>> low, high = wilson(1.0, 590)
    >>> round(low, 4), high
    (0.9935, 1.0)
    """
    if size <= 0:
        return 0.0, 1.0

    ratio = _QUANTILE**2 / size
    centre = (share + ratio / 2) / (1 + ratio)
    half_width = math.sqrt(ratio * share * (1 - share) + ratio**2 / 4) / (1 + ratio)

    # the share is in the interval, also after rounding
    low = min(max(centre - half_width, 0.0), share)
    high = max(min(centre + half_width, 1.0), share)
    return low, high


def interval_of_share(
    share: float, parts: Floats, weights: Floats, codes: NDArray[np.intp] | None
) -> Interval:
    """95 % interval of a share of rows that are right; parameters as `interval_of_mean`."""
    size = _effective_size(share, parts, weights, codes)
    kish = 1 / float((weights**2).sum())
    return _interval(share, min(size, kish), codes)


def interval_of_mean(
    mean: float, parts: Floats, weights: Floats, codes: NDArray[np.intp] | None
) -> Interval:
    """95 % interval of a mean over rows, between 0 and 1.

    Parameters
    ----------
    mean : float
    parts : array of shape (n,)
        The derivative of the mean with respect to the weight of each row, by which it errs.
    weights : array of shape (n,)
        Weight of each row in the mean; they add up to 1.
    codes : array of shape (n,), optional
        Whose row each is, from 0; without them rows are independent.
    """
    size = _effective_size(mean, parts, weights, codes)
    return _interval(mean, size, codes)


def _effective_size(
    mean: float, parts: Floats, weights: Floats, codes: NDArray[np.intp] | None
) -> float:
    """n above, before the factor for degrees of freedom."""
    unit_parts = parts
    unit_weights = weights
    correction = 1.0
    if codes is not None:
        unit_parts = np.bincount(codes, weights=parts).astype(np.float64)
        unit_weights = np.bincount(codes, weights=weights).astype(np.float64)
        n_persons = len(unit_parts)
        if n_persons > 1:
            correction = n_persons / (n_persons - 1)

    variance = correction * float((unit_parts**2).sum())
    added = max(float((unit_weights**2).sum()), float(weights.max()))
    return (mean * (1 - mean) + added) / (variance + added**2)


def _interval(mean: float, size: float, codes: NDArray[np.intp] | None) -> Interval:
    """Wilson's interval at an effective size of rows, or of persons."""
    if codes is None:
        return wilson(mean, size)

    degrees = int(codes.max())
    # one person says nothing about others
    if degrees == 0:
        return 0.0, 1.0
    return wilson(mean, size * (_QUANTILE / _student_quantile(degrees)) ** 2)


def _student_quantile(degrees: int) -> float:
    """Quantile of Student's distribution for a two-sided level of 95 %."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))
