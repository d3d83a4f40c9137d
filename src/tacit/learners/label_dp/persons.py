"""Labels of persons: the labels of one person share the budget.

Unit: change all labels of one person; features, ids and all numbers are public.
Theorem: each of a person's m labels is randomized by itself at epsilon/m (pure) or rho/m (zCDP), so
that all of them together cost epsilon or rho by composition, whatever m. With pure noise the exact
curve depends on m, and no m is the most expensive at every delta in general; PureDP(epsilon) bounds
them all, so it is the stated event. With Gaussian noise, m releases of multiplier sqrt(m) z compose
to one of multiplier z.
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
        """Return the log probability of each output under each true class, of shape (n, classes).

        Rows are up to a constant. `which` has the row of each label's prior, where there are
        several.
        """
        positions = []
        log_probabilities = []
        for m, part in by_size(self.sizes):
            rows = None if which is None else which[part]
            positions.append(part)
            log_probabilities.append(self.randomizers[m].log_likelihood(outputs[part], rows))

        order = np.argsort(np.concatenate(positions))
        return np.concatenate(log_probabilities)[order]


def by_size(sizes: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each number m of labels that some person has, and the positions of their labels."""
    for m in np.unique(sizes).tolist():
        yield m, np.flatnonzero(sizes == m)


def share_of(budget: Budget, m: int, randomizer: str) -> Budget:
    """Return the share of the budget for each of a person's m labels.

    It is rounded down, so that m shares together cost the budget at most, in exact arithmetic.
    """
    if budget.infinite or m == 1:
        return budget
    if randomizer != "gaussian":
        return Budget.pure(_share(budget.largest_pure(), m))

    # rho adds up exactly under composition, epsilon at a delta does not
    largest = 1 / (2 * Fraction(budget.gaussian()) ** 2)
    share = float(largest / m)
    while m / (2 * Fraction(Budget.zcdp(share).gaussian()) ** 2) > largest:
        share = math.nextafter(share, 0)
    return Budget.zcdp(share)


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
