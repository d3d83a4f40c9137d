"""Labels of persons: the labels of one person share the budget.

Unit: change all labels of one person; features, ids and all numbers are public.
Theorem: each of a person's m labels is randomized by itself at epsilon/m (pure) or rho/m (zCDP), so
that all of them together cost epsilon or rho by composition, whatever m. No m is the most expensive
at every delta, so the stated event is this bound. For Gaussian noise, m releases of multiplier
sqrt(m) z compose to one of multiplier z exactly.
Source: tacit; composition is Dwork et al. 2006 and Bun and Steinke 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, PureDP


@dataclass(frozen=True, eq=False)
class OfPersons:
    """One randomizer for each number of labels that a person has.

    Attributes
    ----------
    randomizers : dict of int to Randomizer
        The randomizer of the labels of persons with this number of labels.
    sizes : ndarray of shape (n,)
        The number of labels of each label's person.
    """

    randomizers: dict[int, Any]
    sizes: Integers

    def log_likelihood(
        self, outputs: NDArray[Any], which: Integers | None = None
    ) -> NDArray[np.float64]:
        """Log probability of each of the n outputs under each true class, up to a constant by row;
        (n, classes).
        """
        parts = [
            (
                at,
                self.randomizers[m].log_likelihood(
                    outputs[at], None if which is None else which[at]
                ),
            )
            for m, at in by_size(self.sizes)
        ]
        result = np.empty((len(outputs), parts[0][1].shape[1]))
        for at, of_part in parts:
            result[at] = of_part
        return result


def by_size(sizes: Integers) -> Iterator[tuple[int, Integers]]:
    """Each number of labels that some person has, and the positions of the labels of these
    persons.
    """
    for m in np.unique(sizes).tolist():
        yield m, np.flatnonzero(sizes == m)


def share_of(budget: Budget, m: int, randomizer: str) -> Budget:
    """The share of the budget for each of a person's m labels, rounded down so that m shares keep
    the budget.
    """
    if budget.infinite or m == 1:
        return budget
    if randomizer == "gaussian":
        return Budget.zcdp(_share(1 / (2 * budget.gaussian() ** 2), m))
    return Budget.pure(_share(budget.largest_pure(), m))


def _share(amount: float, m: int) -> float:
    share = amount / m
    while Fraction(share) * m > Fraction(amount):
        share = math.nextafter(share, 0)
    return share


def event_of_person(budget: Budget, randomizer: str) -> Event:
    """Privacy cost of all labels of a person together, whatever their number."""
    if randomizer == "gaussian":
        return Gaussian(budget.gaussian())
    return PureDP(budget.largest_pure())
