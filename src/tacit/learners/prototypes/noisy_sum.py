"""NoisySumPrototypes: one noisy sum of unit rows per class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.common.exact_sums import ClassSums, Query, SumsClassifier
from tacit.learners.common.label_calibration import calibrated
from tacit.learners.common.label_sums import (
    LABEL_SUMS,
    LabelSums,
    declared_most,
    facts_of,
    sums_alone,
)
from tacit.learners.common.nodes import sums_of_leaves
from tacit.learners.common.sums import pieces
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms import gaussian
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.deciding import directions_of_sums
from tacit.models.decisions import LinearHead
from tacit.models.label_effects import even_spread, public_spread, root_variance
from tacit.models.public_rows import public_centre, public_rows
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation, unit_rows_about
from tacit.models.spectra import spaced
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

# public rows whose spread simulated rows have
PUBLIC_ROWS = 1024


@dataclass(kw_only=True, eq=False, repr=False)
class NoisySumPrototypes(SumsClassifier):
    """Classify by the nearest of one private direction per class.

    A prototype is the sum of the unit vectors of a class's records plus Gaussian noise. Cosine
    similarity does not depend on the length of a prototype, so no record count, radius or iteration
    is needed, and a single release gets the whole budget.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP ("rho=0.5") or approximate ("epsilon=1,delta=1e-6"); "rho=inf" is the non-private form.
        A pure budget is refused, since Gaussian noise has no pure epsilon.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit
        row, which is then normalised again, so that a component that all rows share does not use up
        part of their norm.
    most_labels : int, optional
        Declares that a record may have any set of labels, none included, and how many a record has
        at most; records with more labels are used, but weigh less. Each label then has a linear
        score, the direction from the mean of all rows to that of the label, and a probability of
        its own. By default each record has one label.
    allow_overlap : bool, default=False
        Whether public rows may be private records. Without it their number is a warning, for the
        owner alone, also for rows of names in learners that take some, and copies of a single row
        are refused. Rows are compared entry by entry at the lower of both precisions, except under
        units that protect labels alone, where rows are public.
    tree : Tree or dict, optional
        A public tree of which the classes are the leaves, `{class: parent}`. A record may then be
        labelled with an inner node, which has a sum of its own. The sum is divided among the
        classes below, as far as it stands out from its noise. `classes` may hold inner nodes, which
        are no classes of the fit. The release carries the tree.
    noise : {"secure", "opendp", "research"}, default="secure"
        Source of the noise: tacit's exact samplers, those of OpenDP (extra `opendp`), or seeded
        floats, which may not be released.
    random_state : int, optional
        Seed of research noise.
    unit : str, default="add-remove"
        Neighbouring relation of the budget and of the guarantee: "add-remove", "replace" or
        "change-label" for one record; "add-remove-person", "replace-person" or
        "change-labels-of-person" for one person with all their records, for which `fit` takes
        `persons`. See `tacit.Unit`.
    ledger : Ledger, optional
        Charged with the promise before noise is drawn.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d), float64
        The noisy sums. Without noise the norm of a sum is at most its class size, with equality if
        all unit rows agree.
    coefficients_, intercepts_ : ndarrays of shapes (C, d) and (C,), float64
        With `most_labels`, the linear scores: see `tacit.models.decisions.LinearHead`.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one Gaussian event per class with noise multiplier z = 1/sqrt(2 rho), sensitivity 1
    in L2 under add/remove; each record is in one class, so by parallel composition all sums
    together cost rho. Under a unit per person, a person's contribution to all sums together is
    scaled down to norm 1, and one Gaussian event covers all classes.
    See `tacit.mechanisms.gaussian`.
    With `most_labels` all sums are one Gaussian event, whose sensitivity is 1 however many labels a
    record has: see `tacit.learners.common.label_sums`.
    A public centre changes nothing in this: centred rows are unit rows again.
    Source: tacit; see docs/mechanisms.md.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)
    >>> model = tacit.NoisySumPrototypes(budget="rho=0.5", classes=[0, 1]).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), model.guarantee_.rho
    (array([0]), 0.5)
    """

    estimates = "directions"
    takes_sparse = True
    takes_several_labels = True
    summary = "one noisy sum of unit rows per class; the choice without public rows"

    public: Any = None
    allow_overlap: bool = False
    tree: Any = None
    most_labels: int | None = None

    def _noise_multiplier(self) -> float:
        return Budget.parse(self.budget).gaussian(Unit(self.unit))

    def _event(self) -> Event:
        return gaussian.event(self._noise_multiplier())

    def _guarantee(self) -> Guarantee:
        if self.most_labels is None:
            return super()._guarantee()
        # these sums move by less than two changes under some units
        declared_most(self.most_labels)
        return Guarantee(Unit(self.unit), sums_alone(self.budget, self.unit).event())

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        return UnitRows(X, labels, public_centre(self.public, X.shape[1]), nodes=self._nodes())

    def _queries(self, prepared: UnitRows) -> tuple[Query]:
        if self.most_labels is None:
            return (self._class_sums(prepared),)
        return (self._label_sums(prepared),)

    def _class_sums(self, prepared: UnitRows) -> ClassSums:
        """Return what is summed where a record has one label."""
        blocks = unit_blocks
        # with noise and without a centre, the mechanism makes rows unit
        if self._noise_multiplier() > 0 and prepared.centre is None:
            blocks = pieces
        n_classes = len(self._labels_of_records())
        return ClassSums("class sums", n_classes, prepared.width, blocks, unit_rows=True)

    def _label_sums(self, prepared: UnitRows) -> LabelSums:
        """Return what is summed where a record may have several labels."""
        most_labels = declared_most(self.most_labels)
        return LabelSums("label sums", len(self.classes_), prepared.width, most_labels)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        if self.most_labels is not None:
            return self._fit_label_sets(prepared, noise)
        z = self._noise_multiplier()
        self.centre_ = prepared.centre
        class_sums = self._class_sums(prepared)
        with phase(SET_UP):
            self.prototypes_ = sums_of_leaves(
                class_sums.released(prepared, multiplier=z, noise=noise), prepared.nodes, z
            )

        facts = {
            "row norm": 1.0,
            "noise standard deviation": z,
            "sampling": "none; every record is used once",
        }
        return directions_of_sums(self.prototypes_, centre=self.centre_, facts=facts)

    def _fit_label_sets(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        """Release linear scores where a record may have several labels."""
        z = sums_alone(self.budget, self.unit).noise(LABEL_SUMS)
        with phase(SET_UP):
            released = self._label_sums(prepared).released(prepared, multiplier=z, noise=noise)

        with phase(SOLVING):
            effects = released.effects()
            theta = effects.mean * root_variance(effects.shares)[:, None]
            # one seed, so that the simulation adds no randomness
            rng = np.random.default_rng(0)
            if self.public is None:
                spread = even_spread(effects, released.spread, rng)
            else:
                spread = public_spread(effects, self._public_spread(prepared), 1.0, rng)
            rows, labels = effects.simulated(spread, rng)
            calibration = calibrated(rows @ theta.T, labels, effects.shares)

        self.centre_ = prepared.centre
        self.prototypes_ = released.sums
        self.coefficients_ = theta
        self.intercepts_ = calibration.offsets
        facts = facts_of(self.most_labels, z) | {
            "row norm": 1.0,
            "sampling": "none; every record is used once",
            "normalisation": normalisation(self.centre_),
        }
        arrays = {"coefficients": theta, "intercepts": self.intercepts_}
        return Released(
            "one linear score per label, from one noisy sum of unit rows per label",
            arrays | centre_array(self.centre_),
            LinearHead(),
            facts,
            label_sets=calibration.label_sets,
        )

    def _public_spread(self, prepared: UnitRows) -> Floats:
        """Return unit public rows about their centre, as many as the simulation needs."""
        rows = spaced(public_rows(self.public, prepared.width), PUBLIC_ROWS)
        return unit_rows_about(np.asarray(rows, np.float64), prepared.centre)


def unit_blocks(records: UnitRows, label: str) -> Iterator[Block]:
    """Yield blocks of unit rows about the centre; rows of zeros stay zeros."""
    for block in pieces(records, label):
        yield block._replace(rows=unit_rows_about(np.asarray(block.rows), records.centre))
