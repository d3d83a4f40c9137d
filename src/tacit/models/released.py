"""Content that a learner passes to a release: arrays, how they decide, and public facts of how they
were made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.decisions import AnyDecision
from tacit.models.probabilities import Probabilities
from tacit.models.rows import Floats


@dataclass(frozen=True)
class Released:
    """Content that a learner may release: `what` it is in words, and public facts of the
    `mechanism` that made it.

    `carried` are further arrays, which the decision does not need: see `tacit.models.carried`.
    `probabilities` say how probabilities follow from similarities; None if the learner leaves this
    to `PrivateClassifier`.
    """

    what: str
    arrays: dict[str, NDArray[Any]]
    decision: AnyDecision
    mechanism: dict[str, Any] = field(default_factory=dict)
    carried: dict[str, NDArray[Any]] = field(default_factory=dict)
    probabilities: Probabilities | None = None

    def copy(self) -> Released:
        """The same value with copied arrays."""
        return replace(self, arrays=_copied(self.arrays), carried=_copied(self.carried))

    def similarities(self, rows: NDArray[Any]) -> Floats:
        """Compute the similarity of each row to each class, of shape (n, C); larger is nearer."""
        return self.decision.similarities(self.arrays, rows)

    def nearest(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Position of the nearest class of each row, of shape (n,)."""
        return self.decision.nearest(self.arrays, rows)

    def probabilities_of(self, rows: NDArray[Any]) -> Floats:
        """Probability of each class for each row, of shape (n, C)."""
        return (self.probabilities or Probabilities(1.0)).of(self.similarities(rows))


def _copied(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.array(array) for name, array in arrays.items()}
