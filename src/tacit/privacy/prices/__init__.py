"""Prices of one bit, or one class, of a Gaussian release: certified shares of the cost of the
whole release.

A price c is a share in [2/pi, 1]: the outcome has Renyi divergence at most c times that of the
noisy numbers behind it. `two_outcomes.py` serves noisy checks, `three_outcomes.py` noisy argmaxes
of any number of classes. Prices are computed for one order and one step when they are first needed,
and kept.

Error: probabilities are computed to a relative error of 1e-12 (of 1e-9 where they are below 1e-30),
and noise that is a multiple of 2^-20 or less of its standard deviation moves them by as much
(`tacit.mechanisms.noisy_argmax`). Every bound is widened by more: log ratios by 4e-12 and a
billionth of themselves, probabilities by a billionth.
"""

LEAST = 0.6366  # no price is below 2/pi, rounded down: that of one bit and a step to zero
LEAST_ORDER, MOST_ORDER = 1.05, 4096.0
MOST_STEP = 3.0
LEAST_COST = 1e-9  # order (order - 1) step^2, below which rounding counts
MOST_PRODUCT = 4.5  # of order and step; beyond, prices are close to 1 and take long


def certifiable(order: float, step: float) -> bool:
    """Tell whether prices are computed at all for this order and step; elsewhere the price is 1."""
    known = (
        LEAST_ORDER <= order <= MOST_ORDER and step <= MOST_STEP and order * step <= MOST_PRODUCT
    )
    return known and order * (order - 1) * step**2 >= LEAST_COST
