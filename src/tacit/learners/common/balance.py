"""Class sizes, as declared or bought with a share of the budget, and balance by these sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.errors import InputError
from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.learners.common.parameters import declared_counts, flag
from tacit.learners.common.sums import Blocks, class_counts
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import NoiseSource
from tacit.models.rows import Floats

# the name of this part of the budget
COUNTS = "counts"

# share of the budget; chosen on CIFAR-10
COUNT_SHARE = 0.01


def count_share(declared: Any) -> float:
    """Return the share of the budget that buys noisy counts; 0 if counts are declared."""
    if declared is None:
        return COUNT_SHARE
    return 0.0


@dataclass(frozen=True)
class ClassCounts:
    """Class sizes of a fit: declared (int or sequence of int), bought, or none at all.

    Under a unit per person counts are total weights, and declared ones numbers of persons. `noise`
    is the standard deviation of the noise of bought counts. `unused` names the parameter with which
    the fit needs no counts: none are bought then, and none may be declared.
    """

    declared: Any
    noise: float = 0.0
    balanced: bool = True
    unused: str = ""

    def __post_init__(self) -> None:
        flag("balanced", self.balanced)
        if self.declared is not None and self.unused:
            raise InputError(
                f"counts={self.declared!r} would be unused with {self.unused}; leave one of"
                " them out"
            )

    @property
    def share(self) -> float:
        """Share of the budget that noisy counts cost; 0 if none are bought."""
        if self.unused:
            return 0.0
        return count_share(self.declared)

    @property
    def parts(self) -> dict[str, Part]:
        """The bought counts as a part of the budget; empty if none are bought."""
        if not self.share:
            return {}
        return {COUNTS: Part(self.share, gaussian.CLASS_COUNTS, by_class=True)}

    def with_noise(self, split: BudgetSplit) -> ClassCounts:
        """Return these counts with the noise that the split of the budget gives them."""
        if not self.share:
            return self
        return replace(self, noise=split.noise(COUNTS))

    def unprotected(self) -> tuple[str, ...]:
        """Return what the guarantee does not cover: declared counts."""
        return () if self.declared is None else ("class counts (declared)",)

    def draw(self, blocks: Blocks, n_classes: int, noise: NoiseSource) -> Floats:
        """Return declared or noisy counts, (n_classes,); exact ones under an infinite budget."""
        counts = declared_counts(self.declared, n_classes)
        if counts is not None:
            return counts
        if self.unused:
            raise ValueError(f"counts are not bought with {self.unused}")
        return class_counts(blocks, n_classes=n_classes, multiplier=self.noise, noise=noise)

    @property
    def uncertainty(self) -> float:
        """Noise level of a count, and 1 at least."""
        return max(self.noise, 1.0)

    def log_shares(self, counts: Floats) -> Floats:
        """Return `log_shares` of these counts; zeros if classes are not balanced."""
        if self.balanced:
            return log_shares(counts, self.uncertainty)
        return np.zeros(len(counts))

    def facts(self) -> dict[str, float | str]:
        """Return what the card says of the counts."""
        multiplier: float | str = "not bought"
        if self.share:
            multiplier = self.noise
        elif self.declared is not None:
            multiplier = "counts are declared"
        return {"noise multiplier of the counts": multiplier}


def log_shares(counts: Floats, uncertainty: float) -> Floats:
    """Return log shares of the classes, which are added to logits to balance classes.

    Each count is raised by `uncertainty`, so that no share is smaller than noise can make it. The
    shares are divided by their mean, so that equal classes have zeros.
    """
    raised = np.maximum(counts, 0.0) + uncertainty
    result: Floats = np.log(raised / raised.mean())
    return result


def n_records(counts: Floats) -> float:
    """Return the sum of declared or noisy counts, which stands for the number of records.

    It is 1 at least.
    """
    return max(float(counts.sum()), 1.0)
