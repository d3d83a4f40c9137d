"""GridSearch: fit every candidate once; the budget covers all fits and scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.learners.search.base import Candidate, RunBudget, Runs, Search
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.events import Event, compose


@dataclass(kw_only=True, eq=False, repr=False)
class GridSearch(Search):
    """Fit every candidate once, each with an equal share of the budget, and return the best.

    By composition the budget covers every fit and score, so the noisy scores are released too. Use
    this search for few candidates; with many, `RandomSearch` leaves each run far more of the
    budget.

    Parameters
    ----------
    estimator : PrivateClassifier
        The learner to tune; its budget, classes, noise, random_state, unit and ledger are not used.
    candidates : list of dict
        Public list of parameters of the estimator, such as `[{"k": 1}, {"k": 5}]`;
        list(ParameterGrid(...)) of scikit-learn makes one.
    budget : Budget or str
        For all fits and scores: zCDP ("rho=0.5"), approximate, or pure if the estimator accepts it.
        "rho=inf" is the non-private form.
    score_share : float, default=0.1
        Part of a run's budget that is spent on its score.
    validation : (X, y), optional
        Public labelled rows on which to score instead, at no privacy cost.
    classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    best_params_ : dict
        The candidate with the best score.
    scores_ : list of (dict, float)
        Each candidate and its noisy score, which the guarantee covers.
    classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: the sum of all fits and scores; a score is a count of sensitivity 1 under add/remove.
    Under a unit per person, fits are private under add-remove-person, and a score adds up, over
    persons, the share of their records that are right. See `tacit.mechanisms.counts`.
    Source: composition; tacit.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> learner = tacit.PublicPrototypes(public=2 * np.eye(2))
    >>> candidates = [{"k": 1}, {"k": 2}]
    >>> search = tacit.GridSearch(learner, candidates, budget="rho=0.5", classes=2).fit(X, y)
    >>> search.best_params_, round(search.guarantee_.rho, 6), len(search.scores_)
    ({'k': 1}, 0.5, 2)
    """

    score_share: float = 0.1
    validation: Any = None

    def _cost(self, per_run: RunBudget) -> Event:
        return compose(self._run_cost(candidate, per_run) for candidate in self._candidates())

    def _candidates_to_run(
        self, per_run: RunBudget, noise: NoiseSource, runs: Runs
    ) -> tuple[int, Iterable[Candidate]]:
        # all of them in order: nothing is drawn, and no earlier score is read
        candidates = self._candidates()
        return len(candidates), candidates

    def _tuning_note(self) -> str:
        choice = f"the best of {len(self._candidates())} candidates, scored {self._scoring_note()}"
        return f"grid search: {choice}; the guarantee covers all of them"
