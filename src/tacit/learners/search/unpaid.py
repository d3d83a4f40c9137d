"""UnpaidSearch: what is usually done, and not private."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tacit.learners.common.parameters import whole
from tacit.learners.search.base import Candidate, RunBudget, Runs, Search
from tacit.learners.search.tpe import corners, proposals
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, compose

UNPAID = "tuned on the private records without paying"
MOST_TRIALS = 100_000

# Event of exact scores: counts without noise, whose cost has no bound.
EXACT = Gaussian(0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class UnpaidSearch(Search):
    """Fit candidates at the full budget and return the best by its exact score: not private.

    Every candidate of a list is fitted. With `trials`, optuna's TPE sampler proposes that many
    candidates within ranges, each based on the exact scores of earlier candidates.

    Use it for comparison with published results whose parameters were chosen in this way. The
    guarantee states no bound, and every release is stamped NOT FOR RELEASE.

    Parameters
    ----------
    estimator, classes, noise, random_state, unit, ledger
        As in `GridSearch`.
    candidates : list of dict, or dict with `trials`
        Parameters of the estimator, such as `[{"k": 1}, {"k": 5}]`. With `trials`, a list of values
        for each parameter, or a range: `{"k": [1, 5], "d_min": {"low": 0.0, "high": 1.0}}`. A range
        of whole numbers has whole ends, and `"log": True` makes it logarithmic. The estimator must
        accept every combination.
    budget : Budget or str
        Of each fit, including the best one.
    trials : int, optional
        How many candidates optuna proposes; needs the extra `tune`.

    Attributes
    ----------
    best_params_ : dict
        The candidate with the best score.
    scores_ : list of (dict, float)
        Each candidate and the number of private records that it gets right; under a unit per person
        the sum over persons of the share of their records. Private.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`: no bound.

    Notes
    -----
    Guarantee: none. The search uses all fits, and counts without noise.
    Source: Wahdany et al. 2024 chose clip windows, k and pooling in this way, by TPE [Bergstra et
    al. 2011].

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)
    >>> learner = tacit.PublicPrototypes(public=2 * np.eye(2))
    >>> candidates = [{"k": 1}, {"k": 2}]
    >>> search = tacit.UnpaidSearch(learner, candidates, budget="rho=8", classes=2).fit(X, y)
    >>> search.guarantee_.figures()
    'no bound: this is not private'
    """

    trials: int | None = None

    def _unprotected(self) -> tuple[str, ...]:
        tuning = UNPAID
        if self.trials is not None:
            tuning = f"{UNPAID}, in {self.trials} trials"
        return (f"parameters ({tuning})", *super()._unprotected())

    def _candidates(self) -> list[Candidate]:
        if self.trials is None:
            return super()._candidates()
        whole("trials", self.trials, 1, MOST_TRIALS)

        # A few stand for all where they are checked: each value, and both ends of each range, are
        # in one of them.
        return self._checked(corners(self.candidates))

    def _run_budget(self) -> RunBudget:
        # the whole budget for each fit, since nothing is shared out
        return RunBudget(Budget.parse(self.budget), EXACT)

    def _cost(self, per_run: RunBudget) -> Event:
        # `promise` checks the parameters, so it is called for trials too
        fits = [
            self._learner(candidate, per_run.fit).promise().event
            for candidate in self._candidates()
        ]
        if self.trials is None:
            return compose([*fits, EXACT])

        # Which candidates trials will fit is not known. Nothing is lost without their fits, since
        # the cost of exact scores has no bound anyway.
        return EXACT

    def _candidates_to_run(
        self, per_run: RunBudget, noise: NoiseSource, runs: Runs
    ) -> tuple[int, Iterable[Candidate]]:
        candidates = self._candidates()
        if self.trials is None:
            return len(candidates), candidates
        return self.trials, proposals(self.candidates, self.trials, runs, self._seed(noise))

    def _tuning_note(self) -> str:
        if self.trials is None:
            runs = f"{len(self._candidates())} candidates"
        else:
            runs = f"{self.trials} trials of optuna (TPE)"
        return f"not paid for: the best of {runs} by its exact score on the private records"
