"""Noisy sums of the rows of each label, where a record may have several labels.

A record with the unit row x and the 0/1 vector y of its labels adds the outer product

    (sqrt(1 - q) w y, sqrt(q)) (sqrt(1 - a) x, sqrt(a))'

to one matrix, where w = 1/sqrt(max(m, number of labels)) is the weight of `label_sets.py`, q is
`RECORDS_SHARE` and a is `COUNT_SHARE`. Both vectors have norm 1 at most, so the product has norm 1
at most, however many labels the record has and however many there are: `outer_products`. The matrix
holds the sum of the rows of each label with their number and, in its last row, the sum of all rows
with the number of records. It is one Gaussian event and never parallel. `LABEL_PRODUCTS` says how
far it moves under other neighbouring relations.

The sums that are returned are divided by these factors: a record counts for each of its labels with
the weight sqrt(m) w = min(1, sqrt(m / number of labels)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tacit.compute.wide import Totals
from tacit.data.labels import MOST_CLASSES
from tacit.learners.common.base import Prepared
from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.learners.common.exact_sums import BlocksOf, blocks_of
from tacit.learners.common.label_sets import RECORDS_SHARE, SetCounts, weighted_labels
from tacit.learners.common.parameters import whole
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import NoiseSource
from tacit.models.label_effects import NoisyLabels
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

# the name of this part of a budget
LABEL_SUMS = "label sums"

# share of the squared norm of a row for its count, as in `AutoPrototypes`
COUNT_SHARE = 0.05

ROW_SCALE = math.sqrt(1 - COUNT_SHARE)
COUNT_SCALE = math.sqrt(COUNT_SHARE)


@dataclass(frozen=True)
class LabelSums:
    """A query: the sums of the rows of each label, and of all rows, with their numbers.

    The shape is (n_labels + 1, width + 1).
    """

    name: str
    n_labels: int
    width: int
    most_labels: int
    blocks: BlocksOf = blocks_of

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_labels + 1, self.width + 1

    def exact(self, records: Prepared) -> Totals:
        return outer_products.product_sums(self._products(records), shape=self.shape)

    def released(self, records: Prepared, *, multiplier: float, noise: NoiseSource) -> NoisyLabels:
        """Release the sums, which costs `outer_products.event(multiplier)`.

        They are exact if the multiplier is 0.
        """
        if records.sums is not None:
            totals = records.sums.totals[self.name]
            products = outer_products.products_with_noise(
                totals, noise_multiplier=multiplier, noise=noise
            )
        elif multiplier > 0:
            products = outer_products.noisy_products(
                self._products(records),
                shape=self.shape,
                noise_multiplier=multiplier,
                noise=noise,
            )
        else:
            products = np.zeros(self.shape)
            for left, right, _ in self._products(records):
                products += left.T @ right

        of_label = math.sqrt((1 - RECORDS_SHARE) / self.most_labels)
        of_record = math.sqrt(RECORDS_SHARE)
        sums = products[:-1] / of_label
        all_rows = products[-1] / of_record
        counts = SetCounts(
            sums[:, -1] / COUNT_SCALE,
            max(float(all_rows[-1]) / COUNT_SCALE, 1.0),
            multiplier / (of_label * COUNT_SCALE),
        )
        return NoisyLabels(
            sums=sums[:, :-1] / ROW_SCALE,
            noise=multiplier / (of_label * ROW_SCALE),
            counts=counts.labels,
            count_noise=counts.noise,
            sizes=np.minimum(counts.expected, counts.records),
            grand=all_rows[:-1] / ROW_SCALE / counts.records,
            records=counts.records,
            records_noise=multiplier / (of_record * COUNT_SCALE),
        )

    def _products(self, records: Prepared) -> Iterator[Block]:
        """Yield left rows of labels (b, n_labels + 1) and right rows (b, width + 1)."""
        for rows, labels, ends in self.blocks(records, self.name):
            ones = np.ones((len(rows), 1))
            weighted = math.sqrt(1 - RECORDS_SHARE) * weighted_labels(labels, self.most_labels)
            left = np.hstack([weighted, math.sqrt(RECORDS_SHARE) * ones])
            right = np.hstack([ROW_SCALE * np.asarray(rows), COUNT_SCALE * ones])
            yield Block(left, right, ends)


def declared_most(most_labels: int | None) -> int:
    """Check the declared most labels of a record."""
    return whole("most_labels", most_labels, 1, MOST_CLASSES)


def sums_alone(budget: Budget | str, unit: Unit | str) -> BudgetSplit:
    """Split of a budget that pays for these sums alone."""
    part = Part(1.0, outer_products.LABEL_PRODUCTS)
    return BudgetSplit(Budget.parse(budget), Unit(unit), {LABEL_SUMS: part})


def facts_of(most_labels: int | None, noise: float) -> dict[str, float | str]:
    """Return what the card says of the sums."""
    return {
        "most labels a record": float(most_labels or 0),
        "noise multiplier of the sums of labels": noise,
        "share of the count column": COUNT_SHARE,
        "share of the number of records": RECORDS_SHARE,
    }
