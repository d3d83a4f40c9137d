"""NamePrototypes: each class is represented by the public rows of its name; no record is used."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_list
from tacit.errors import InputError
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.common.names import adapted_directions
from tacit.learners.common.parameters import flag
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.decisions import NearestPrototype
from tacit.models.name_directions import name_directions
from tacit.models.public_rows import public_centre, public_rows
from tacit.models.released import Released
from tacit.models.rows import centre_array, normalisation, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose


@dataclass(kw_only=True, eq=False, repr=False)
class NamePrototypes(PrivateClassifier):
    """Classify by the nearest class name (zero-shot), without using any record.

    This is the baseline for every other method: what public knowledge alone achieves, at no privacy
    cost.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        Of any kind, since every learner takes a budget; nothing is spent.
    classes : sequence or int
        The public class list; N stands for 0..N-1. It must be declared.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,)
        Public rows of the class names, one or several per class, in the order of `classes`, from
        the encoder of the records: embedded names, sentences, or examples that may be shown. Finite
        and not zero.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit
        row, including those of names, which is then normalised again.
    allow_overlap
        As in `NoisySumPrototypes`.
    adapt : bool, default=False
        Whether the names are moved towards the public rows that they attract, by expectation
        maximisation. This helps if the public rows are of the records' kind and cover all classes.
        The release then depends on every public row, so pass no private row. The X of `fit` is not
        used for this, because its rows are private as always.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; no noise is drawn, and the ledger is charged nothing.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d), float64
        For each class the normalised mean of its names' unit rows; with `adapt`, adapted to public
        rows.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`: no event, an epsilon of 0.

    Notes
    -----
    Guarantee: `fit` checks X and y and uses neither, so nothing in the release depends on a record.
    Source: Radford et al. 2021 (CLIP), section 3.1; the centring is tacit's. Banerjee et al. 2005
    (mixtures of von Mises-Fisher distributions), for `adapt`.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat([[1.0, 0.2], [0.2, 1.0]], 50, axis=0), np.repeat(["cat", "dog"], 50)
    >>> model = tacit.NamePrototypes(classes=["cat", "dog"], names=np.eye(2)).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), model.guarantee_.epsilon(0)
    (array(['cat'], dtype='<U3'), 0)
    """

    estimates = "directions"
    budget_kinds = ("pure", "zcdp", "approx", "gdp")
    needs_names = True
    uses_records = False
    person_bound = "no record is used"
    takes_sparse = True
    summary = "the rows of the class names (zero-shot); it uses no record and spends nothing"

    names: Any = None
    public: Any = None
    allow_overlap: bool = False
    adapt: bool = False

    def fit(self, X: Any, y: Any = None, persons: Any = None, **others: Any) -> Self:
        """Check the records, of which none is used; X may be unlabelled, as before any label was
        asked for.

        Parameters
        ----------
        X, persons, others
            As in `NoisySumPrototypes.fit`.
        y : array-like of shape (n,), optional
            Labels, each in `classes`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As in `NoisySumPrototypes.fit`, or if there are neither labels nor `classes`.

        Examples
        --------
        >>> import numpy as np, tacit
        >>> model = tacit.NamePrototypes(classes=["cat", "dog"], names=np.eye(2))
        >>> model = model.fit(np.ones((3, 2)))
        >>> model.predict([[2.0, 0.1]])
        array(['cat'], dtype='<U3')
        """
        if y is None:
            if self.classes is None:
                fault = (
                    "NamePrototypes requires y to be passed, but the target y is None, or a"
                    " declared class list"
                )
                raise InputError(f"{fault}; pass classes=[...]")
            shape = X.shape if hasattr(X, "shape") else (len(X),) if isinstance(X, Sized) else ()
            y = np.repeat(class_list(self.classes)[:1], math.prod(shape[:1]))
        return self._learn(X, y, persons, others)

    def _event(self) -> Event:
        Budget.parse(self.budget)
        return compose([])

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        if self.names is None:
            raise InputError(
                "names=None must be rows of the class names; pass names=rows (--names STORE)"
            )
        if flag("adapt", self.adapt) and self.public is None:
            raise InputError("adapt=True needs public rows; pass public=rows, or leave adapt out")
        centre = public_centre(self.public, X.shape[1])
        return UnitRows(
            X, labels, centre, names=name_directions(self.names, self.classes, X.shape[1], centre)
        )

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        assert prepared.names is not None
        self.prototypes_, self.centre_ = prepared.names, prepared.centre
        facts = {
            "sampling": "none; no record is used",
            "normalisation": normalisation(self.centre_),
        }
        if self.adapt:
            rows = public_rows(self.public, prepared.width)
            self.prototypes_ = adapted_directions(
                unit_rows_about(np.asarray(rows), self.centre_), prepared.names
            )
            facts["adaptation"] = (
                f"names were moved towards {len(rows)} public rows, which must not be private"
            )
        arrays = {"prototypes": self.prototypes_} | centre_array(self.centre_)
        return Released(
            "one public row of each class's name", arrays, NearestPrototype("cosine"), facts
        )
