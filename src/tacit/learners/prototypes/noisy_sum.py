"""NoisySumPrototypes: one noisy sum of unit rows per class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, phase
from tacit.learners.common.exact_sums import ClassSums, SumsClassifier
from tacit.learners.common.nodes import sums_of_leaves
from tacit.learners.common.parameters import public_centre
from tacit.learners.common.sums import pieces
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms import gaussian
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.decisions import NearestPrototype
from tacit.models.released import Released
from tacit.models.rows import centre_array, normalisation, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit


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
    summary = "one noisy sum of unit rows per class; the choice without public rows"

    public: Any = None
    allow_overlap: bool = False
    tree: Any = None

    def _noise_multiplier(self) -> float:
        return Budget.parse(self.budget).gaussian(Unit(self.unit))

    def _event(self) -> Event:
        return gaussian.event(self._noise_multiplier())

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        return UnitRows(X, labels, public_centre(self.public, X.shape[1]), nodes=self._nodes())

    def _queries(self, prepared: UnitRows) -> tuple[ClassSums]:
        blocks = unit_blocks
        # with noise and without a centre, the mechanism makes rows unit
        if self._noise_multiplier() > 0 and prepared.centre is None:
            blocks = pieces
        n_classes = len(self._labels_of_records())
        return (ClassSums("class sums", n_classes, prepared.width, blocks, unit_rows=True),)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        z = self._noise_multiplier()
        self.centre_ = prepared.centre
        (class_sums,) = self._queries(prepared)
        with phase(SET_UP):
            self.prototypes_ = sums_of_leaves(
                class_sums.released(prepared, multiplier=z, noise=noise), prepared.nodes, z
            )

        facts = {
            "row norm": 1.0,
            "noise standard deviation": z,
            "sampling": "none; every record is used once",
            "normalisation": normalisation(self.centre_),
        }
        arrays = {"prototypes": self.prototypes_} | centre_array(self.centre_)
        return Released(
            "one noisy sum of unit rows per class", arrays, NearestPrototype("cosine"), facts
        )


def unit_blocks(records: UnitRows, label: str) -> Iterator[Block]:
    """Yield blocks of unit rows about the centre; rows of zeros stay zeros."""
    for block in pieces(records, label):
        yield block._replace(rows=unit_rows_about(np.asarray(block.rows), records.centre))
