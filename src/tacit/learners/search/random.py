"""RandomSearch: the best of a secret number of runs, at about twice the privacy cost of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.errors import BudgetError
from tacit.learners.common.parameters import real
from tacit.learners.search.base import Candidate, RunBudget, Runs, Search, most_expensive
from tacit.mechanisms import repetition
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import RepeatAndSelect


@dataclass(kw_only=True, eq=False, repr=False)
class RandomSearch(Search):
    """Fit with parameters drawn from a list, a random number of times, and keep the best.

    Each run draws one candidate, fits the estimator and counts, with noise, how many private
    records it gets right. Only the best run's classifier is released. The privacy cost grows little
    with the number of candidates or runs, because the number of runs is drawn at random and kept
    secret.

    Parameters
    ----------
    estimator, score_share, validation
        As in `GridSearch`.
    candidates : list of dict
        Public list of parameters of the estimator to draw from, such as `[{"k": 1}, {"k": 5}]`.
    budget : Budget or str
        For all runs and scores: approximate ("epsilon=1,delta=1e-6"), or pure ("epsilon=1") if the
        estimator accepts it. zCDP is refused, since a search has no rho. "epsilon=inf" tries every
        candidate once, without noise.
    classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.
    mean_runs : float, default=5
        Mean number of runs, 1 or more; there is always at least one.
    shape : float, default=1
        From 0 to 1: 1 draws the number of runs from a geometric distribution; 0 from a logarithmic
        distribution, which costs less, and with which both a single run and very many runs are more
        frequent.

    Attributes
    ----------
    best_params_ : dict
        The candidate of the best run.
    scores_ : list of (dict, float)
        Each run's candidate and score. Private: only with noise="research" or an infinite budget.
    classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one `RepeatAndSelect` event whose run is the estimator's events plus the score's, a
    count of sensitivity 1 under add/remove. If candidates differ in cost, the event of the most
    expensive counts. Units per person are as in `GridSearch`. See `tacit.mechanisms.repetition` and
    `tacit.mechanisms.counts`. The running time of the search reveals the number of runs; it is
    outside the guarantee.
    Source: Papernot and Steinke 2022, Theorem 2 and Corollary 3; the closed form of the pure
    epsilon is tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> learner = tacit.PublicPrototypes(public=2 * np.eye(2))
    >>> candidates = [{"k": 1}, {"k": 2}]
    >>> search = tacit.RandomSearch(learner, candidates, budget="epsilon=2", classes=2).fit(X, y)
    >>> list(search.best_params_), round(search.guarantee_.epsilon(0), 6)
    (['k'], 2.0)
    """

    mean_runs: float = 5
    shape: float = 1
    score_share: float = 0.1
    validation: Any = None

    def _cost(self, per_run: RunBudget) -> RepeatAndSelect:
        budget = Budget.parse(self.budget)
        if budget.kind == "zcdp" and not budget.infinite:
            remedy = (
                f"pass {budget.hint('approx')} (approximate: a weaker guarantee), or use GridSearch"
            )
            raise BudgetError(
                f"budget {budget} is zCDP, which a random search cannot satisfy; {remedy}"
            )

        mean = real("mean_runs", self.mean_runs, 1, 1e6)
        shape = real("shape", self.shape, 0, 1)

        # each run draws its candidate, so a run costs what the most expensive candidate does
        run_costs = (self._run_cost(candidate, per_run) for candidate in self._candidates())
        is_pure = per_run.fit.kind == "pure"
        return repetition.event(most_expensive(run_costs, pure=is_pure), mean, shape)

    def _candidates_to_run(
        self, per_run: RunBudget, noise: NoiseSource, runs: Runs
    ) -> tuple[int, Iterable[Candidate]]:
        candidates = self._candidates()
        # without privacy, the number of runs need not be secret
        if per_run.fit.infinite:
            return len(candidates), candidates

        # Candidates are drawn with replacement, as the guarantee needs: all runs are alike.
        n_runs = repetition.number_of_runs(self._cost(per_run), noise)
        positions = [int(noise.subset(len(candidates), 1)[0]) for _ in range(n_runs)]
        return n_runs, [candidates[position] for position in positions]

    def _scores_are_public(self, per_run: RunBudget) -> bool:
        # the guarantee covers the best run alone; further scores would reveal the number of runs
        return self.noise == "research" or per_run.fit.infinite

    def _tuning_note(self) -> str:
        number = f"a secret number of runs (mean {self.mean_runs:g}, shape {self.shape:g})"
        run = f"each with one of {len(self._candidates())} candidates"
        scoring = f"scored {self._scoring_note()}"
        return (
            f"random search: the best of {number}, {run}, {scoring}; the guarantee covers all of"
            " them"
        )
