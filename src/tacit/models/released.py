"""Content that a learner passes to a release: arrays, how they decide, and public facts of how they
were made; and the facts of a learner that a release reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.models.decisions import AnyDecision
from tacit.models.label_sets import LabelSets
from tacit.models.probabilities import Probabilities
from tacit.models.rows import Floats
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger


@dataclass(frozen=True)
class Released:
    """Content that a learner may release: `what` it is in words, and public facts of the
    `mechanism` that made it.

    `carried` are further arrays, which the decision does not need: see `tacit.models.carried`.
    `probabilities` say how probabilities follow from similarities; None if the learner leaves this
    to `PrivateClassifier`. Where a record may have several labels, `label_sets` say it instead.
    `tree` has the parent of each node of a tree of classes, as texts.
    """

    what: str
    arrays: dict[str, NDArray[Any]]
    decision: AnyDecision
    mechanism: dict[str, Any] = field(default_factory=dict)
    carried: dict[str, NDArray[Any]] = field(default_factory=dict)
    probabilities: Probabilities | None = None
    label_sets: LabelSets | None = None
    tree: Mapping[str, str] | None = None

    def copy(self) -> Released:
        """The same value with copied arrays."""
        return replace(self, arrays=_copied(self.arrays), carried=_copied(self.carried))

    def similarities(self, rows: NDArray[Any]) -> Floats:
        """Compute the similarity of each row to each class, of shape (n, C); larger is nearer."""
        return self.decision.similarities(self.arrays, rows)

    def nearest(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Position of the nearest class of each row, of shape (n,)."""
        return self.decision.nearest(self.arrays, rows)

    def sets_of(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which labels each row has, of shape (n, K), where a record may have several."""
        if self.label_sets is None:
            raise ValueError("the records of this fit have one label each")
        return self.label_sets.chosen(self.similarities(rows))

    def probabilities_of(self, rows: NDArray[Any]) -> Floats:
        """Probability of each class for each row, of shape (n, C)."""
        if self.label_sets is not None:
            return self.label_sets.probabilities(self.similarities(rows))
        return (self.probabilities or Probabilities(1.0)).of(self.similarities(rows))


@dataclass(frozen=True)
class LearnerFacts:
    """A learner's name on the command line, empty if it has none, and its public parameters.

    `left_out` names the parameters that were passed and that a document cannot state, but for
    `inputs`: which of "public" and "names" were passed.
    """

    method: str
    parameters: Mapping[str, Any]
    left_out: tuple[str, ...]
    inputs: tuple[str, ...]


class Publishable(ABC):
    """A learner that states its guarantee, and so may be published once it is fitted.

    All learners derive from it. Releases read nothing else of a learner, and so import none.
    """

    # reason why a fit has no release, and remedy
    no_release: ClassVar[str] = "decides by a model that a release cannot hold; choose another"

    ledger: Ledger | None

    # learned attributes
    guarantee_: Guarantee
    released_: Released | None
    classes_: NDArray[Any]
    n_features_in_: int
    noise_: str

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the learned attributes are there."""

    @abstractmethod
    def promise(self) -> Guarantee:
        """Return the guarantee of a fit, from the parameters alone."""

    @abstractmethod
    def other_fits(self) -> int:
        """Return an upper bound of the fits that `guarantee_` does not cover."""

    @abstractmethod
    def has_present_samplers(self) -> bool:
        """Return whether noise was drawn by the samplers that this version of tacit has."""

    @abstractmethod
    def learner_facts(self) -> LearnerFacts:
        """Return the public parameters, from which others can make the same learner."""

    @abstractmethod
    def name_rows(self) -> Any:
        """Return the rows of class names that fits use, as the parameters have them, or None."""


def _copied(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.array(array) for name, array in arrays.items()}
