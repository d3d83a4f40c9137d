"""ClassSummary: noisy class sums with counts, which add up with those of other owners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tacit.errors import InputError
from tacit.learners.common.budget_split import SHARE_OF_MOMENTS, Part
from tacit.learners.common.exact_sums import (
    check_budget_is_finite,
    check_classes_are_declared,
)
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import flag
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.learners.prototypes import class_table
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.rows import Floats
from tacit.models.summarised import Summarised
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.parts import part_name

# parts of the budget
SUMS = "sums"
MOMENTS = "moments"

FREE_MOMENTS = (
    "which records a part has (declared not to depend on labels: second moments of their rows are"
    " exact)"
)


class NothingPredicts:
    """Stands for the model of a fit that has none: a summary is combined first."""

    def similarities(self, rows: Any) -> NoReturn:
        """Refuse to predict."""
        raise InputError(
            "a summary does not predict; combine it: tacit.combine([tacit.Summary.of(it)],"
            " public=X_public)"
        )

    nearest = similarities
    probabilities_of = similarities


@dataclass(kw_only=True, eq=False, repr=False)
class ClassSummary(UnitRowClassifier):
    """Sum the rows of each class, with noise, so that sums of several owners add up.

    The whole budget pays for one noisy sum of unit rows, and a count, per class: the first release
    of `AutoPrototypes`. A fit does not predict. `tacit.Summary.of(it)` is what the owner hands out,
    and `tacit.combine` makes a classifier of the summaries of one or many owners.

    Parameters
    ----------
    budget, classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; the budget is finite, and the classes are declared. A class is
        listed because it may occur, not because it does.
    part : str
        Declared name of the records that the summary covers, such as "hospital A". Summaries of
        different parts are declared to have no record in common, nor, under a unit per person, a
        person. A ledger is charged under this name.
    public : array of shape (m, d), optional
        Public rows whose mean is subtracted, as in `NoisySumPrototypes`. All owners must use the
        same.
    allow_overlap
        As in `NoisySumPrototypes`.
    moments : bool, default=False
        Sum x x' over all rows x too, so that `tacit.combine(..., method="least-squares")` can solve
        for linear discriminants. They take 30 % of the budget; a summary holds d (d + 1) / 2 more
        integers.

    Attributes
    ----------
    summarised_ : tacit.models.summarised.Summarised
        The noisy sums, as integers.
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one Gaussian event, parallel over the classes under add/remove, of the multiplier
    that spends the budget. A row of norm sqrt(.95) and its count of sqrt(.05) are one vector of
    norm 1. Under a unit per person, what a person's records add up to is scaled down to norm 1.
    With `moments`, 30 % of the budget pays for a second Gaussian event. Under units that protect
    labels alone the rows are public, so their second moments are exact and cost nothing, as long as
    no label decides which records the part has: the guarantee states this as not protected. All
    that is computed from summaries is post-processing. See `tacit.mechanisms.gaussian`,
    `tacit.mechanisms.outer_products`, and `tacit.privacy.parts` for several summaries.
    Source: tacit.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat(["cat", "dog"], 500)
    >>> one = tacit.ClassSummary("rho=0.5", classes=["cat", "dog"], part="clinic A").fit(X, y)
    >>> summary = tacit.Summary.of(one)
    >>> release = tacit.combine([summary])
    >>> release.predict([[2.0, 0.1]]), round(release.guarantee.rho, 9)
    (array(['cat'], dtype='<U3'), 0.5)
    """

    summary = "noisy class sums with counts, which add up with those of other owners"
    no_release = (
        "fits a summary, which does not predict; pass tacit.Summary.of(it) to tacit.combine, whose"
        " release predicts"
    )
    one_label = "sums the rows of one class each; a record has one label"

    part: Any = None
    moments: bool = False

    def _parts(self) -> dict[str, Part]:
        if not self.moments:
            return {SUMS: Part(1.0, gaussian.CLASS_SUMS, by_class=True)}
        return {
            SUMS: Part(1 - SHARE_OF_MOMENTS, gaussian.CLASS_SUMS, by_class=True),
            MOMENTS: Part(SHARE_OF_MOMENTS, outer_products.MOMENTS),
        }

    def _unprotected(self) -> tuple[str, ...]:
        if self.moments and self._split().free(MOMENTS):
            return (FREE_MOMENTS,)
        return ()

    def _matrices(self) -> Matrices | None:
        if not self.moments:
            return None
        noised = self._noised(1, self._split().noise(MOMENTS))
        return Matrices(held=3.0, decomposed=0, noised=noised)

    def _event(self) -> Event:
        part_name(self.part)
        flag("moments", self.moments)
        check_classes_are_declared(self.classes)
        check_budget_is_finite(self.budget)
        return super()._event()

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        ledger.charge(promise, what="ClassSummary fit", part=part_name(self.part))

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> NothingPredicts:
        split = self._split()
        multiplier = split.noise(SUMS)
        sums = class_table.noisy_integers(
            prepared, len(self.classes_), multiplier=multiplier, noise=noise
        )
        summarised = Summarised(sums, multiplier, prepared.centre, part_name(self.part))
        if self.moments:
            multiplier = split.noise(MOMENTS)
            moments = class_table.noisy_moments(prepared, multiplier=multiplier, noise=noise)
            summarised = replace(summarised, moments=moments, noise_of_moments=multiplier)

        self.centre_: Floats | None = prepared.centre
        self.summarised_ = summarised
        return NothingPredicts()
