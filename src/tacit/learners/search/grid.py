"""GridSearch: every candidate once, each paid for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tacit.learners.search.base import Candidate, Plan, Runs, Search
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit


class GridSearch(Search):
    """Fit every candidate once, each with an equal share of the budget, and keep the best.

    Plain composition: everything is paid for, so the noisy scores may leave too. For few candidates; with many,
    `RandomSearch` leaves each run far more.

    Parameters
    ----------
    estimator : PrivateClassifier
        The learner to tune. Its own budget, classes, noise, random_state, unit and ledger are not used.
    candidates : list of dict
        Public list of parameters of the estimator, such as `[{"k": 1}, {"k": 5}]`; list(ParameterGrid(...)) of
        scikit-learn makes one.
    budget : Budget or str
        For all fits and scores: zCDP ("rho=0.5"), approximate, or pure where the estimator takes it. "rho=inf" is
        the non-private form.
    score_share : float, default=0.1
        Part of each candidate's share of the budget that its score costs.
    validation : (X, y), optional
        Public labelled rows to score on instead, at no cost.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    best_params_ : dict
        The candidate with the best score.
    scores_ : list of (dict, float)
        Each candidate and its score: noisy, and paid for.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: the sum of all fits and scores; a score is a count of sensitivity 1 under add/remove. See
    `tacit.mechanisms.counts`.
    Source: composition; tacit.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> search = tacit.GridSearch(
    ...     tacit.PublicPrototypes(public=np.eye(2)), [{"k": 1}, {"k": 2}], budget="rho=0.5", classes=2
    ... ).fit(X, y)
    >>> search.best_params_, round(search.guarantee_.rho, 6), len(search.scores_)
    ({'k': 1}, 0.5, 2)
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        budget: Budget | str,
        score_share: float = 0.1,
        validation: Any = None,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.budget = budget
        self.score_share = score_share
        self.validation = validation
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _cost(self, plan: Plan) -> Event:
        return compose(self._run_cost(candidate, plan) for candidate in self._candidates())

    def _drawn(self, plan: Plan, noise: NoiseSource, runs: Runs) -> tuple[int, Iterable[Candidate]]:
        candidates = self._candidates()
        return len(candidates), candidates

    def _fact(self) -> str:
        return (
            f"grid search: the best of {len(self._candidates())} candidates, scored {self._scored()}; "
            "all of it is in the price"
        )
