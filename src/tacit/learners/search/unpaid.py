"""UnpaidSearch: what is usually done, and not private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.learners.base import PrivateClassifier
from tacit.learners.search.base import Candidate, Plan, Search
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

UNPAID = "parameters (tuned on the private records without paying)"


class UnpaidSearch(Search):
    """Fit every candidate at the full budget and keep the best by its exact score: not private.

    For comparison with published results, whose parameters were chosen so. The guarantee states no bound,
    and every release is stamped NOT FOR RELEASE.

    Parameters
    ----------
    estimator : PrivateClassifier
        The learner to tune. Its own budget, classes, noise, random_state, unit and ledger are not used.
    candidates : list of dict
        Parameters of the estimator, such as `[{"k": 1}, {"k": 5}]`.
    budget : Budget or str
        What each fit, the best one too, is given.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    best_params_ : dict
        The candidate with the best score.
    scores_ : list of (dict, float)
        Each candidate and how many private records it gets right. Private.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`: no bound.

    Notes
    -----
    Guarantee: none. The sum of all fits, and counts without noise.
    Source: Wahdany et al. 2024 chose clip windows, k and pooling so.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0)
    >>> y = np.repeat([0, 1], 50)
    >>> search = tacit.UnpaidSearch(
    ...     tacit.PublicPrototypes(public=np.eye(2)), [{"k": 1}, {"k": 2}], budget="rho=8", classes=2
    ... ).fit(X, y)
    >>> search.guarantee_.figures()
    'no bound: this is not private'
    """

    validation = None

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        budget: Budget | str,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.budget = budget
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _unprotected(self) -> tuple[str, ...]:
        return (UNPAID, *super()._unprotected())

    def _plan(self) -> Plan:
        return Plan(Budget.parse(self.budget), Gaussian(0.0))

    def _learner(self, candidate: Candidate, budget: Budget | str, **shared: Any) -> PrivateClassifier:
        return super()._learner(candidate, budget, **({"unit": self.unit} | shared))

    def _cost(self, plan: Plan) -> Event:
        fits = (self._learner(candidate, plan.fit)._event() for candidate in self._candidates())
        return compose([*fits, Gaussian(0.0)])

    def _drawn(self, plan: Plan, noise: NoiseSource) -> Sequence[Candidate]:
        return self._candidates()

    def _fact(self) -> str:
        return (
            f"not paid for: the best of {len(self._candidates())} candidates by its exact score on the private records"
        )
