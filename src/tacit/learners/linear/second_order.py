"""Parameters that the learners share whose epochs divide noisy gradients by a noisy matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.learners.common.balance import ClassCounts
from tacit.learners.common.parameters import check_optional, real, whole
from tacit.learners.common.unit_rows import UnitRowClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class SecondOrderClassifier(UnitRowClassifier):
    """Base of these learners; `default_epochs` are those at a finite and at an infinite budget."""

    epochs: int | None = None
    learning_rate: float | None = None
    damping: float | None = None
    counts: int | Sequence[int] | None = None
    balanced: bool = True
    ridge: float = 0.3
    intercept: float = 0.0

    default_epochs = (0, 0)

    def _declared_counts(self) -> ClassCounts:
        unused = "" if self.balanced else "balanced=False"
        return ClassCounts(self.counts, balanced=self.balanced, unused=unused)

    def _epochs(self) -> int:
        if self.epochs is not None:
            return whole("epochs", self.epochs, 1, 10**4)
        return self.default_epochs[self._infinite()]

    def _check_steps(self) -> None:
        self._intercept()
        real("ridge", self.ridge, 1e-9, 1e9)
        check_optional(self, learning_rate=(1e-9, 1e18), damping=(1e-9, 1e18))
