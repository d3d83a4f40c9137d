"""Records that may have several labels: their weights in sums, and noisy numbers of records with
each label.

Weights. Let y be the 0/1 vector of a record's labels and m the declared most labels of a record.
Sums weigh y by

    w = min(1, sqrt(m)/|y|) / sqrt(m) = 1 / sqrt(max(m, number of labels)),

so w y has norm 1 at most, however many labels there are, and times a row of norm 1 as well.

Counts. A record adds the vector (sqrt(1 - q) w y, sqrt(q)), of norm 1 at most, to one noisy sum of
all labels and of the records, where q is `RECORDS_SHARE`. That is one Gaussian event and never
parallel, since a record may be in all counts. Entries are not negative, so the sum moves by sqrt(2)
at most under the other neighbouring relations (`gaussian.CLASS_COUNTS`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logit

from tacit.learners.common.balance import COUNT_SHARE, COUNTS
from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.learners.common.parameters import declared_counts
from tacit.mechanisms import gaussian
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import noisy_products
from tacit.models.rows import Floats

# share of the squared norm of a record's vector of counts that counts the record
RECORDS_SHARE = 0.1


def set_weights(labels: NDArray[np.bool_], most_labels: int) -> Floats:
    """Return the weight of each record's labels, (n,), from truth values of shape (n, K).

    Examples
    --------
    >>> set_weights(np.array([[True, False], [True, True], [False, False]]), 1).round(3)
    array([1.   , 0.707, 1.   ])
    """
    numbers = np.maximum(labels.sum(axis=1), most_labels)
    return np.asarray(1 / np.sqrt(numbers))


def weighted_labels(labels: NDArray[np.bool_], most_labels: int) -> Floats:
    """Return the labels of each record times the record's weight, (n, K), of norm 1 at most."""
    return set_weights(labels, most_labels)[:, None] * labels


@dataclass(frozen=True, eq=False)
class SetCounts:
    """Numbers of records with each label, (K,), and number of records, declared or noisy.

    Under a unit per person they are total weights. `noise` is the standard deviation of the noise
    of a label's number.
    """

    labels: Floats
    records: float
    noise: float = 0.0

    @property
    def expected(self) -> Floats:
        """Expected number of records with each label, (K,), above 0.

        The noise of a count is normal and the number is not negative, so it is the mean of a normal
        distribution that is truncated at 0.
        """
        if self.noise == 0:
            return np.maximum(self.labels, 0.5)
        ratio = self.labels / self.noise
        log_density = -0.5 * ratio**2 - 0.5 * np.log(2 * np.pi)
        mean = self.labels + self.noise * np.exp(log_density - log_ndtr(ratio))
        return np.asarray(np.maximum(mean, 0.5))

    @property
    def shares(self) -> Floats:
        """Share of the records that have each label, (K,), above 0 and below 1."""
        shares = np.minimum(self.expected, self.records) / (self.records + 0.5)
        return np.asarray(shares)

    @property
    def logits(self) -> Floats:
        """Log odds of the labels, (K,)."""
        return np.asarray(logit(self.shares))


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of records with each label: declared (int or sequence of int) or bought.

    The number of records is bought in either case. `noise` is the standard deviation of the noise
    of the vector of norm 1 that a record adds.
    """

    declared: Any
    most_labels: int
    noise: float = 0.0

    @property
    def share(self) -> float:
        """Share of the budget that the counts cost."""
        return COUNT_SHARE

    @property
    def parts(self) -> dict[str, Part]:
        """The counts as a part of the budget."""
        return {COUNTS: Part(self.share, gaussian.CLASS_COUNTS)}

    def with_noise(self, split: BudgetSplit) -> LabelCounts:
        """Return these counts with the noise that the split of the budget gives them."""
        return replace(self, noise=split.noise(COUNTS))

    def unprotected(self) -> tuple[str, ...]:
        """Return what the guarantee does not cover: declared counts."""
        return () if self.declared is None else ("class counts (declared)",)

    def draw(self, blocks: Iterable[Block], n_labels: int, noise: NoiseSource) -> SetCounts:
        """Return declared or noisy counts; exact ones under an infinite budget.

        The labels of blocks are truth values of shape (b, K).
        """
        declared = declared_counts(self.declared, n_labels)
        if self.noise == 0:
            return _exact_counts(blocks, n_labels, declared)

        counts_labels = declared is None
        vectors = (
            Block(self._vectors(labels, counts_labels), np.ones((len(labels), 1)), ends)
            for _, labels, ends in blocks
        )
        entries = n_labels + 1 if counts_labels else 1
        sums = noisy_products(
            vectors, shape=(entries, 1), noise_multiplier=self.noise, noise=noise
        )[:, 0]
        if declared is not None:
            return SetCounts(declared, max(float(sums[0]), 1.0))

        # from weighted sums to numbers of records
        of_label = np.sqrt(self.most_labels / (1 - RECORDS_SHARE))
        records = max(float(sums[-1]) / np.sqrt(RECORDS_SHARE), 1.0)
        return SetCounts(sums[:-1] * of_label, records, self.noise * float(of_label))

    def _vectors(self, labels: NDArray[np.bool_], counts_labels: bool) -> Floats:
        """Return what each record adds, (b, K + 1), or (b, 1) if the labels are not counted."""
        ones = np.ones((len(labels), 1))
        if not counts_labels:
            return ones
        weighted = weighted_labels(labels, self.most_labels)
        return np.hstack([np.sqrt(1 - RECORDS_SHARE) * weighted, np.sqrt(RECORDS_SHARE) * ones])

    def facts(self) -> dict[str, float | str]:
        """Return what the card says of the counts."""
        facts: dict[str, float | str] = {"noise multiplier of the counts": self.noise}
        if self.declared is not None:
            facts["numbers of records with each label"] = "declared"
        return facts


def _exact_counts(blocks: Iterable[Block], n_labels: int, declared: Floats | None) -> SetCounts:
    """Count without noise, where the budget is infinite."""
    numbers = np.zeros(n_labels)
    records = 0
    for _, labels, _ in blocks:
        numbers += labels.sum(axis=0)
        records += len(labels)
    return SetCounts(numbers if declared is None else declared, max(records, 1))
