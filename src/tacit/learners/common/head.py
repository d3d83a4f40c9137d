"""What learners of a linear head share: the rows that they learn from, and the head as it is released."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learners.base import PrivateClassifier
from tacit.learners.common.parameters import public_centre, real
from tacit.learners.common.quadratic import Matrices
from tacit.mechanisms.rounding import check_width
from tacit.models.decisions import LinearHead
from tacit.models.released import Released
from tacit.models.rows import Floats, blocks, centre_array, normalisation, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

MOST_INTERCEPT = 1e6
FARTHEST = -1e9


class UnitRowClassifier(PrivateClassifier):
    """A learner on unit rows about a public centre."""

    public: Any
    centre_: Floats | None

    def _multiplier(self) -> float:
        """Noise multiplier of one Gaussian sum that spends the whole budget.

        Not every sum here is one per class. A changed label may then move a sum by twice the sensitivity, which is what
        a replaced record does.
        """
        unit = Unit(self.unit)
        return Budget.parse(self.budget).gaussian(unit if unit is Unit.ADD_REMOVE else Unit.REPLACE, split=True)

    def _matrices(self) -> Matrices | None:
        """The matrices of d x d of a fit, where there are any."""
        return None

    def _noised(self, matrices: int) -> int:
        """How many of these matrices get secure noise."""
        return matrices if self.noise == "secure" and self._multiplier() > 0 else 0

    def _check(self, width: int) -> None:
        check_width(width + 1)
        matrices = self._matrices()
        if matrices is not None:
            matrices.check(width)
        self.centre_ = public_centre(self.public, width)

    def _row_blocks(
        self, X: NDArray[Any], labels: NDArray[np.int64], label: str
    ) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """Blocks of rows of norm 1, of `_head_rows`; rows of zeros are left out."""
        kept = X.any(axis=1)
        if not kept.all():
            X, labels = X[kept], labels[kept]
        for rows, own in blocks(X, labels, label):
            yield self._head_rows(rows), own

    def _head_rows(self, rows: Floats) -> Floats:
        """What is learned from."""
        return unit_rows_about(rows, self.centre_)


class LinearClassifier(UnitRowClassifier):
    """A learner of one linear score per class, on unit rows beside a constant column, if there is one."""

    intercept: float

    def _intercept(self) -> float:
        return real("intercept", self.intercept, 0, MOST_INTERCEPT)

    def _head_rows(self, rows: Floats) -> Floats:
        unit, constant = super()._head_rows(rows), self._intercept()
        if constant == 0:
            return unit
        return np.column_stack([unit, np.full(len(unit), constant)]) / math.hypot(1.0, constant)

    def _head_width(self, X: NDArray[Any]) -> int:
        return int(X.shape[1]) + int(self._intercept() > 0)

    def _set_head(self, theta: Floats, added: Floats | float = 0.0) -> None:
        """Take the head apart into what applies to a unit row, and what the constant column and `added` add."""
        constant = self._intercept()
        if constant > 0:
            theta = theta / math.hypot(1.0, constant)
            self.coefficients_, self.intercepts_ = theta[:, :-1].copy(), theta[:, -1] * constant + added
        else:
            self.coefficients_, self.intercepts_ = theta, np.zeros(len(theta)) + added

    def _released(self, what: str, facts: dict[str, Any]) -> Released:
        arrays = {"coefficients": self.coefficients_, "intercepts": self.intercepts_} | centre_array(self.centre_)
        column = f", beside a constant column of {self.intercept:g}, which counts in the norm" if self.intercept else ""
        facts |= {"normalisation": normalisation(self.centre_) + column}
        return Released(what, arrays, LinearHead(), facts)


def scores_of_empty(sums: Floats) -> Floats:
    """Far below all scores for classes whose sum is zero, which has no direction; zero for others."""
    return np.where(sums.any(axis=1), 0.0, FARTHEST)
