"""What the searches share: candidates, runs with their scores, and the share of the budget that a
run gets.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.data.labels import class_indices
from tacit.data.persons import Persons
from tacit.data.rows import as_rows, check_rows
from tacit.errors import BudgetError, InputError, quoted
from tacit.learners.common.base import Prepared, PrivateClassifier
from tacit.learners.common.overlap import check_overlap
from tacit.learners.common.parameters import real
from tacit.mechanisms import counts
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.released import Released
from tacit.models.rows import rowwise_inner_products
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import ZCDP, Event, Gaussian, PureDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

Candidate = Mapping[str, Any]
Runs = list[tuple[dict[str, Any], float]]  # candidates and their scores

# parameters that a search sets in every run
SHARED = ("budget", "classes", "noise", "random_state", "unit", "ledger")
_LEAST, _MOST = 1.1e-9, 1e9  # amounts that a budget may state
_SEEDS = 2**31


@dataclass(frozen=True)
class RunBudget:
    """What one run spends: the budget of its fit, and the event of its score (None if rows to score
    on are public).
    """

    fit: Budget
    score: Gaussian | PureDP | None


@dataclass(frozen=True, eq=False)
class SearchRecords(Prepared):
    """Private records to fit on, what each run spends, and the rows and class indices to score
    on.
    """

    per_run: RunBudget
    scored: tuple[Any, Integers]


@dataclass(eq=False, repr=False)
class Search(PrivateClassifier):
    """Base of the searches. A new one fills in `_cost`, `_drawn` and `_fact`."""

    estimator: Any
    candidates: Any
    budget: Budget | str = field(kw_only=True)

    budget_kinds = ("zcdp", "approx")

    validation = None  # no parameter, unless a search makes them
    score_share = 0.1
    event_under_unit = True

    @abstractmethod
    def _cost(self, per_run: RunBudget) -> Event:
        """Privacy cost of the search under its unit if each run spends `per_run`."""

    @abstractmethod
    def _drawn(
        self, per_run: RunBudget, noise: NoiseSource, runs: Runs
    ) -> tuple[int, Iterable[Candidate]]:
        """Number of candidates to run, and the candidates in order; `runs` grows by each finished
        run.
        """

    @abstractmethod
    def _fact(self) -> str:
        """How parameters were chosen at a finite budget, in a phrase for the card."""

    def _scores_are_public(self, per_run: RunBudget) -> bool:
        """Whether the guarantee covers the scores, or protects nothing at all."""
        return True

    def promise(self) -> Guarantee:
        promise = super().promise()
        return replace(promise, scope=f"{promise.scope}, tuning included")

    def _event(self) -> Event:
        return self._cost(self._run_budget())

    def _unprotected(self) -> tuple[str, ...]:
        learners = (self._learner(candidate, self.budget) for candidate in self._candidates())
        return tuple(
            dict.fromkeys(quantity for learner in learners for quantity in learner._unprotected())
        )

    def _uses_public(self) -> bool:
        if self.validation is not None:
            return True
        return any(
            self._learner(candidate, self.budget)._uses_public() for candidate in self._candidates()
        )

    def _check_public(self, X: Any, public: Any) -> None:
        """Check the public rows of the candidates under the unit of the search, the same rows
        once.
        """
        learners = {}
        for candidate in self._candidates():
            learner = self._learner(candidate, self.budget, unit=self.unit)
            tables = id(learner.public), id(learner.names)
            learners[tables, learner._releases_public(), learner.allow_overlap] = learner
        for learner in learners.values():
            learner._check_public(X, learner.public)
        if self.validation is not None:
            # under a unit of labels too: what validation has beside such rows is likely to be the
            # private labels
            rows = as_rows(self.validation[0], "validation")
            check_overlap("validation", rows, X, released=False, stacklevel=4)

    def _candidates(self) -> list[Candidate]:
        """The checked candidates; if they are not listed, some that stand for all."""
        if isinstance(self.candidates, str | Mapping) or not hasattr(self.candidates, "__len__"):
            listed = quoted(self.candidates)
            raise InputError(
                f"candidates={listed} must be a list of dicts; pass for example [{{'k': 1}}]"
            )
        candidates = self._checked(self.candidates)
        if not candidates:
            raise InputError(
                "candidates is empty; pass at least one dict of parameters, such as [{'k': 1}]"
            )
        return candidates

    def _checked(self, candidates: Iterable[Any]) -> list[Candidate]:
        if not isinstance(self.estimator, PrivateClassifier) or isinstance(self.estimator, Search):
            raise InputError(
                f"estimator={quoted(self.estimator)} must be a tacit learner, not a search;"
                " pass one"
            )
        unit = self.estimator.units[0]
        if unit is not Unit.ADD_REMOVE:
            rule = f"is private under unit {unit}, and searches add up under add-remove"
            raise InputError(
                f"estimator={quoted(self.estimator)} {rule}; choose its parameters on public data"
            )
        for name in ("classes", "ledger"):
            if getattr(self, name) is None and getattr(self.estimator, name) is not None:
                raise InputError(
                    f"{name} of the estimator is not used; pass {name}= to the search itself"
                )
        parameters = [name for name in self.estimator.get_params(deep=False) if name not in SHARED]
        return [_checked_candidate(candidate, parameters) for candidate in candidates]

    def _learner(
        self, candidate: Candidate, budget: Budget | str, **shared: Any
    ) -> PrivateClassifier:
        """The estimator of one run, with a candidate's parameters; `shared` overrides what the
        search sets.
        """
        parameters = self.estimator.get_params(deep=False) | dict(candidate)
        parameters |= {
            "budget": budget,
            "classes": self.classes,
            "noise": self.noise,
            "random_state": None,
        }
        parameters |= {"unit": self.unit, "ledger": None}
        learner: PrivateClassifier = type(self.estimator)(**(parameters | shared))
        return learner

    def _run_cost(self, candidate: Candidate, per_run: RunBudget) -> Event:
        promise = self._learner(candidate, per_run.fit).promise()
        if promise.groups:
            raise InputError(
                "the estimator has personal budgets, which a search does not share out; leave"
                " them out"
            )
        return promise.event if per_run.score is None else promise.event + per_run.score

    def _run_budget(self) -> RunBudget:
        """The most that each run may spend such that the search keeps the budget."""
        budget = Budget.parse(self.budget)
        amount = Budget.pure if budget.kind == "pure" else Budget.zcdp
        share = (
            real("score_share", self.score_share, 0.001, 0.999) if self.validation is None else 0.0
        )

        def per_run(value: float) -> RunBudget:
            score = None if self.validation is not None else counts.event(amount(value * share))
            return RunBudget(amount(value * (1 - share)), score)

        def cost(value: float) -> Event:
            return self._cost(per_run(value))

        if budget.infinite:
            return per_run(math.inf)
        low, high = _LEAST / min(1 - share, share or 1.0), _MOST
        passed = (budget.rho or budget.epsilon or 1.0) / (1 - share)
        # so that an error names the amount that the caller passed
        self._cost(per_run(min(max(passed, low), high)))
        try:
            return per_run(calibrate(budget, cost, low, high, precision=1e-9))
        except BudgetError as error:
            fault = f"budget {budget} leaves each run less than {per_run(low).fit}"
            raise BudgetError(f"{fault}; try fewer runs") from error

    def _prepare(self, X: NDArray[Any], labels: Integers) -> SearchRecords:
        per_run = self._run_budget()
        for candidate in self._candidates():
            self._learner(candidate, per_run.fit, classes=len(self.classes_)).check(*X.shape)
        scored = (
            (X, labels)
            if self.validation is None
            else self._public_rows(self.validation, X.shape[1])
        )
        return SearchRecords(X, labels, per_run, scored)

    def _public_rows(self, validation: Any, width: int) -> tuple[Any, Integers]:
        """Public rows to score on, and their class indices."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise InputError(
                "validation must be a pair of public rows and labels; pass validation=(X_public,"
                " y_public)"
            )
        rows, labels = as_rows(validation[0], "validation"), np.asarray(validation[1])
        if rows.shape[1] != width or labels.shape != (len(rows),):
            shapes = f"rows of shape {tuple(rows.shape)} and labels of shape {labels.shape}"
            raise InputError(f"validation has {shapes}; pass {width} columns and one label per row")
        check_rows(rows, name="validation")
        return rows, class_indices(labels, self.classes_)

    def _fit(self, prepared: SearchRecords, noise: NoiseSource) -> Released:
        per_run = prepared.per_run
        runs: Runs = []
        best: tuple[float, Released] | None = None

        n_candidates, candidates = self._drawn(per_run, noise, runs)
        for candidate in progress(candidates, "search", n_candidates):
            released = self._fit_candidate(candidate, prepared, noise)
            score = self._score(released, prepared, noise)
            # a search may propose the next candidate by the scores of these runs
            runs.append((dict(candidate), score))
            # the earliest of equal scores
            if best is None or score > best[0]:
                best = (score, released)
                self.best_params_ = dict(candidate)

        assert best is not None, "a search runs at least one candidate"
        if self._scores_are_public(per_run):
            self.scores_ = runs

        tuning = "by exact scores, without noise"
        if not Budget.parse(self.budget).infinite:
            tuning = self._fact()
        parameters = ", ".join(
            f"{name}={' '.join(repr(value).split()):.80}"
            for name, value in self.best_params_.items()
        )
        facts = {
            "tuning": tuning,
            "chosen parameters": parameters[:1000] or "those of the estimator",
        }
        _, released = best
        return replace(released, mechanism=released.mechanism | facts)

    def _fit_candidate(
        self, candidate: Candidate, prepared: SearchRecords, noise: NoiseSource
    ) -> Released:
        """Fit the estimator with these parameters, and return what it releases."""
        seed = self._seed(noise)
        checked = {}
        if "allow_overlap" in self.estimator.get_params(deep=False):
            # `_check_public` compared public rows once, for all candidates
            checked["allow_overlap"] = True
        learner = self._learner(
            candidate,
            prepared.per_run.fit,
            classes=len(self.classes_),
            random_state=seed,
            **checked,
        )

        persons = None if prepared.persons is None else prepared.persons.codes
        released: Released | None = learner.fit(
            prepared.X, prepared.labels, persons=persons
        ).released_
        if released is None:
            raise InputError(f"{type(learner).__name__} {learner.no_release}")
        return released

    def _score(self, released: Released, prepared: SearchRecords, noise: NoiseSource) -> float:
        """Count the rows that a run gets right; with noise, unless the rows are public."""
        rows, labels = prepared.scored
        persons = prepared.persons
        hits = hits_of(released, rows, labels, persons if self.validation is None else None)

        event = prepared.per_run.score
        if event is None:
            return float(hits)
        return counts.noisy_count(hits, event, noise)

    def _seed(self, noise: NoiseSource) -> int | None:
        """A new seed for a run with research noise; None with secure noise."""
        return int(noise.subset(_SEEDS, 1)[0]) if self.noise == "research" else None

    def _scored(self) -> str:
        return (
            "on public rows"
            if self.validation is not None
            else f"privately, {self.score_share:g} of a run's cost"
        )


def hits_of(
    released: Released, rows: Any, truth: NDArray[np.int64], persons: Persons | None = None
) -> int | Fraction:
    """Number of rows that a run's released classifier gets right, or sum of the shares of persons:
    of sensitivity 1.

    A row's similarities depend on its own values alone, to the last bit, so that adding or removing
    a record changes the prediction of no other record.
    """
    similarities = released.decision.similarities(
        released.arrays, rows, products=rowwise_inner_products
    )
    right = np.argmax(similarities, axis=1) == truth
    if persons is None:
        return counts.counted(right)
    return counts.counted(right[np.argsort(persons.codes, kind="stable")], np.cumsum(persons.sizes))


def _checked_candidate(candidate: Any, parameters: Sequence[str]) -> Candidate:
    if not isinstance(candidate, Mapping):
        raise InputError(
            f"candidate {quoted(candidate)} must be a dict of parameters; pass for example"
            " {'k': 1}"
        )
    for name in candidate:
        if name in SHARED:
            raise InputError(
                f"candidate parameter {name!r} is set by the search; pass {name}= to the search"
                " instead"
            )
        if name not in parameters:
            fault = f"candidate parameter {name!r} is not a parameter of the estimator"
            raise InputError(f"{fault}; it has {', '.join(parameters)}")
    return candidate


def most_expensive(events: Iterable[Event], *, pure: bool) -> Event:
    """An event that costs at least as much as each of these, to charge for one that is drawn from
    them.
    """
    distinct = list(dict.fromkeys(events))
    if len(distinct) == 1:
        return distinct[0]
    return (
        PureDP(max(event.pure for event in distinct))
        if pure
        else ZCDP(max(event.rho for event in distinct))
    )
