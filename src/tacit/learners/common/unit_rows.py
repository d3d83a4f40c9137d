"""Learners on unit rows about a public centre, and linear heads on them as they are released."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import listed_classes
from tacit.learners.common.balance import ClassCounts
from tacit.learners.common.base import Prepared, PrivateClassifier
from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.nodes import NodeResiduals, Nodes
from tacit.learners.common.parameters import declared_counts, real
from tacit.learners.common.softmax import ResidualKind, Residuals
from tacit.learners.common.sums import blocks
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers
from tacit.mechanisms.outer_products import rounded
from tacit.mechanisms.rounding import check_width
from tacit.models.decisions import LinearHead
from tacit.models.name_directions import name_directions
from tacit.models.public_rows import public_centre
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

MOST_INTERCEPT = 1e6

# score of a class that no row is nearest to
FARTHEST = -1e9


@dataclass(frozen=True, eq=False)
class UnitRows(Prepared):
    """Private records, from which a learner reads unit rows about a public centre.

    A row is made unit, the centre, of shape (d,), is subtracted, and the difference is made unit
    again. An intercept above 0 is the value of a constant column that is appended to the unit row
    and counts in its norm. `names` are the directions of the class names, of shape (C, d). `nodes`
    are the labels that a record may have, where these may be inner nodes of a tree.
    """

    centre: Floats | None = None
    intercept: float = 0.0
    names: Floats | None = None
    nodes: Nodes | None = None

    @property
    def residual_kind(self) -> ResidualKind:
        """The residuals of gradients: of records whose labels may be inner nodes of a tree, or
        not.
        """
        if self.nodes is None:
            return Residuals
        return partial(NodeResiduals, nodes=self.nodes)

    @property
    def width(self) -> int:
        """Number of columns of the unit rows."""
        has_constant = self.intercept > 0
        return int(self.X.shape[1]) + int(has_constant)

    def blocks(self, label: str) -> Iterator[Block]:
        """Yield blocks of rows of norm 1 with their labels, without rows of zeros.

        Progress is reported under `label`.
        """
        norm_with_constant = math.hypot(1.0, self.intercept)
        for rows, labels, ends in blocks(self._nonzero_records(), label):
            unit = unit_rows_about(rows, self.centre)
            if self.intercept > 0:
                constant = np.full(len(unit), self.intercept)
                unit = np.column_stack([unit, constant]) / norm_with_constant
            yield Block(unit, labels, ends)

    def block_list(self, *, exact: bool) -> list[Block]:
        """Return all blocks, for a fit that reads them many times.

        Rows are floats if sums may be `exact`, else `IntegerRows`.
        """
        return [
            Block(rows if exact else rounded(rows), labels, ends)
            for rows, labels, ends in self.blocks("rows")
        ]

    def _nonzero_records(self) -> Prepared:
        """Return the records without rows of zeros, which have no direction."""
        nonzero = self.X.any(axis=1)
        if nonzero.all():
            return self

        persons = None
        if self.persons is not None:
            persons = self.persons.at(nonzero)
        return Prepared(self.X.compress(nonzero, axis=0), self.labels[nonzero], persons=persons)


@dataclass(kw_only=True, eq=False, repr=False)
class UnitRowClassifier(PrivateClassifier):
    """Base of the learners that see unit rows about the mean of public rows.

    They see them through Gaussian sums over all records.
    """

    takes_sparse = True
    event_under_unit = True

    public: Any = None
    allow_overlap: bool = False
    intercept = 0.0  # a parameter of some learners only

    def _parts(self) -> dict[str, Part]:
        """Return the kinds of sums that a fit releases, with their shares of the budget."""
        raise NotImplementedError(f"{type(self).__name__} does not split its budget by parts")

    def _split(self) -> BudgetSplit:
        """Split the budget over the parts."""
        return BudgetSplit(Budget.parse(self.budget), Unit(self.unit), self._parts())

    def _event(self) -> Event:
        """Privacy cost of one fit under `self.unit`, from the parameters alone."""
        return self._split().event()

    def _public_rows(self) -> bool:
        """Return whether the budget is finite and rows are public.

        Sums that depend on rows alone are exact then, but bounded as with noise.
        """
        moments_may_move = outer_products.MOMENTS.under(Unit(self.unit)) > 0
        return not self._infinite() and not moments_may_move

    def _infinite(self) -> bool:
        """Return whether the budget is infinite, so that all sums are exact."""
        return Budget.parse(self.budget).infinite

    def _intercept(self) -> float:
        return real("intercept", self.intercept, 0, MOST_INTERCEPT)

    def _declared_counts(self) -> ClassCounts:
        """Return the class counts that the fit declares, buys or does without, before the split."""
        return ClassCounts(None, unused="this method")

    def _counts(self) -> ClassCounts:
        """Return the class counts that the fit declares, buys or does without, with their noise."""
        return self._declared_counts().with_noise(self._split())

    def _unprotected(self) -> tuple[str, ...]:
        return self._declared_counts().unprotected()

    def _matrices(self) -> Matrices | None:
        """Return the d x d matrices of a fit, if any."""
        return None

    def _noised(self, matrices: int, deviation: float) -> int:
        """Return the number of these matrices that get OpenDP's noise, which takes long.

        `deviation` is the standard deviation of the noise.
        """
        gets_slow_noise = self.noise == "opendp" and deviation > 0
        return matrices if gets_slow_noise else 0

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        check_width(X.shape[1] + 1)
        matrices = self._matrices()
        if matrices is not None:
            matrices.check(X.shape[1])
        declared_counts(self._declared_counts().declared, len(self.classes_))

        centre = public_centre(self.public, X.shape[1])
        names, classes = self._names_of_leaves()
        directions = name_directions(names, classes, X.shape[1], centre)
        return UnitRows(X, labels, centre, self._intercept(), directions, self._nodes())

    def _names_of_leaves(self) -> tuple[Any, Any]:
        """Return the rows of class names and the declared classes, without inner nodes of a
        tree.
        """
        if self.tree is None or self.names is None or self.classes is None:
            return self.names, self.classes
        classes = listed_classes(self.classes)
        if len(self.names) != len(classes):
            return self.names, self.classes  # refused where they are read
        is_leaf = np.isin(classes, self.classes_)
        names = [rows for rows, kept in zip(self.names, is_leaf, strict=True) if kept]
        return names, classes[is_leaf].tolist()

    def _head(
        self,
        records: UnitRows,
        title: str,
        theta: Floats,
        facts: dict[str, Any],
        offsets: Floats | float = 0.0,
    ) -> Released:
        """Set the learned attributes and release a linear head.

        `theta` has shape (C, width); `offsets` are scores that are added to those of each class.
        """
        coefficients = theta
        intercepts = np.zeros(len(theta)) + offsets
        constant_column = ""
        if records.intercept > 0:
            # Rows with their constant were divided by their norm, which theta takes over. Its last
            # column belongs to the constant.
            theta = theta / math.hypot(1.0, records.intercept)
            coefficients = theta[:, :-1].copy()
            intercepts = theta[:, -1] * records.intercept + offsets
            constant_column = (
                f", beside a constant column of {records.intercept:g}, which counts in the norm"
            )

        self.centre_ = records.centre
        self.coefficients_ = coefficients
        self.intercepts_ = intercepts

        arrays = {"coefficients": coefficients, "intercepts": intercepts}
        arrays |= centre_array(records.centre)
        facts = facts | {"normalisation": normalisation(records.centre) + constant_column}
        return Released(title, arrays, LinearHead(), facts)


def scores_of_empty(sums: Floats) -> Floats:
    """Return scores to add to those of each class: `FARTHEST` for classes whose sum is zero.

    Such a sum has no direction. The score of other classes is zero.
    """
    return np.where(sums.any(axis=1), 0.0, FARTHEST)
