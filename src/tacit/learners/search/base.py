"""What the searches share: candidates, runs with their scores, and the share of the budget that a run gets."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.data.rows import as_rows, check_rows
from tacit.errors import BudgetError, InputError
from tacit.learners.base import PrivateClassifier, class_indices, shortened
from tacit.learners.common.parameters import real
from tacit.mechanisms import counts
from tacit.mechanisms.noise import NoiseSource
from tacit.models.released import Released
from tacit.models.rows import rowwise_inner_products
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import ZCDP, Event, Gaussian, PureDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

Candidate = Mapping[str, Any]
Runs = list[tuple[dict[str, Any], float]]  # candidates and their scores

SHARED = ("budget", "classes", "noise", "random_state", "unit", "ledger")  # parameters that a search sets in every run
_LEAST, _MOST = 1.1e-9, 1e9  # within what a budget may state
_SEEDS = 2**31


@dataclass(frozen=True)
class Plan:
    """What one run spends: the budget of its fit, and the cost of its score, None where that is public."""

    fit: Budget
    score: Gaussian | PureDP | None


class Search(PrivateClassifier):
    """Base of the searches. A new one fills in `_cost`, `_drawn` and `_fact`."""

    estimator: Any
    candidates: Any
    validation: Any
    score_share: float

    @abstractmethod
    def _cost(self, plan: Plan) -> Event:
        """What the search costs under add/remove where each run follows `plan`."""

    @abstractmethod
    def _drawn(self, plan: Plan, noise: NoiseSource, runs: Runs) -> tuple[int, Iterable[Candidate]]:
        """How many candidates to run, and these in order; `runs` holds those before the next, with their scores."""

    @abstractmethod
    def _fact(self) -> str:
        """How it was tuned, at a finite budget, in a phrase for the card."""

    def _scores_may_leave(self, plan: Plan) -> bool:
        """Whether the scores are paid for, or nothing is private anyway."""
        return True

    def promise(self) -> Guarantee:
        own = super().promise()
        return replace(own, scope=f"{own.scope}, tuning included")

    def _event(self) -> Event:
        return self._cost(self._plan())

    def _unprotected(self) -> tuple[str, ...]:
        learners = (self._learner(candidate, self.budget) for candidate in self._candidates())
        return tuple(dict.fromkeys(quantity for learner in learners for quantity in learner._unprotected()))

    def _candidates(self) -> list[Candidate]:
        """The candidates, after a check; of those that are not listed, some that stand for all."""
        if isinstance(self.candidates, str | Mapping) or not hasattr(self.candidates, "__len__"):
            raise InputError(
                f"candidates={shortened(self.candidates)} must be a list of dicts; pass for example [{{'k': 1}}]"
            )
        candidates = self._checked(self.candidates)
        if not candidates:
            raise InputError("candidates is empty; pass at least one dict of parameters, such as [{'k': 1}]")
        return candidates

    def _checked(self, candidates: Iterable[Any]) -> list[Candidate]:
        if not isinstance(self.estimator, PrivateClassifier) or isinstance(self.estimator, Search):
            raise InputError(
                f"estimator={shortened(self.estimator)} must be a learner of tacit, and no search; pass one"
            )
        if self.estimator.own_unit is not Unit.ADD_REMOVE:
            raise InputError(
                f"estimator={shortened(self.estimator)} is private under unit {self.estimator.own_unit}, and searches "
                "add up under add-remove; choose its parameters on public data"
            )
        for name in ("classes", "ledger"):
            if getattr(self, name) is None and getattr(self.estimator, name) is not None:
                raise InputError(f"{name} of the estimator is not used; pass {name}= to the search itself")
        own = [name for name in self.estimator.get_params(deep=False) if name not in SHARED]
        return [_checked(candidate, own) for candidate in candidates]

    def _learner(self, candidate: Candidate, budget: Budget | str, **shared: Any) -> PrivateClassifier:
        """The estimator with a candidate's parameters, as one run fits it; `shared` overrides what the search sets."""
        own = self.estimator.get_params(deep=False) | dict(candidate)
        ours = {"budget": budget, "classes": self.classes, "noise": self.noise, "random_state": None}
        ours |= {"unit": "add-remove", "ledger": None}
        learner: PrivateClassifier = type(self.estimator)(**(own | ours | shared))
        return learner

    def _run_cost(self, candidate: Candidate, plan: Plan) -> Event:
        promise = self._learner(candidate, plan.fit).promise()
        if promise.groups:
            raise InputError("the estimator has personal budgets, which a search does not share out; leave them out")
        return promise.event if plan.score is None else promise.event + plan.score

    def _plan(self) -> Plan:
        """The plan with the largest runs such that the search keeps the budget."""
        budget, unit = Budget.parse(self.budget), Unit(self.unit)
        amount = Budget.pure if budget.kind == "pure" else Budget.zcdp
        part = real("score_share", self.score_share, 0.001, 0.999) if self.validation is None else 0.0

        def plan(value: float) -> Plan:
            score = None if self.validation is not None else counts.event(amount(value * part))
            return Plan(amount(value * (1 - part)), score)

        def cost(value: float) -> Event:
            return Guarantee(Unit.ADD_REMOVE, self._cost(plan(value))).to(unit).event

        if budget.infinite:
            return plan(math.inf)
        low, high = _LEAST / min(1 - part, part or 1.0), _MOST
        known = (budget.rho or budget.epsilon or 1.0) / (1 - part)
        self._cost(plan(min(max(known, low), high)))  # so that a refusal names the amount that the caller passed
        try:
            return plan(calibrate(budget, cost, low, high, precision=1e-9))
        except BudgetError as error:
            said = f"budget {budget} leaves each run less than {plan(low).fit}; pass more, or try fewer runs"
            raise BudgetError(said) from error

    def _check(self, width: int) -> None:
        plan = self._plan()
        for candidate in self._candidates():
            learner = self._learner(candidate, plan.fit, classes=len(self.classes_))
            learner.classes_ = np.arange(len(self.classes_))
            learner._check(width)
        self._validation_rows(width)

    def _validation_rows(self, width: int) -> tuple[Any, NDArray[np.int64]]:
        if not isinstance(self.validation, tuple | list | None) or (self.validation and len(self.validation) != 2):
            raise InputError(
                "validation must be a pair of public rows and labels; pass validation=(X_public, y_public)"
            )
        if self.validation is None:
            return None, np.zeros(0, dtype=np.int64)
        rows, labels = as_rows(self.validation[0], "validation"), np.asarray(self.validation[1])
        if rows.shape[1] != width or labels.shape != (len(rows),):
            raise InputError(
                f"validation has rows of shape {tuple(rows.shape)} and labels of shape {labels.shape}; "
                f"pass {width} columns, as the private rows have, and one label a row"
            )
        check_rows(rows, name="validation")
        return rows, class_indices(labels, self.classes_)

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        plan = self._plan()
        runs: Runs = []
        number, drawn = self._drawn(plan, noise, runs)
        rows, truth = self._validation_rows(X.shape[1]) if plan.score is None else (X, labels)
        best: tuple[float, Candidate, Released | None] = (-math.inf, {}, None)
        for candidate in progress(drawn, "search", number):
            seed = self._seed(noise)
            learner = self._learner(candidate, plan.fit, classes=len(self.classes_), random_state=seed)
            learner.fit(X, labels)
            assert learner.released_ is not None
            hits = hits_of(learner.released_, rows, truth)
            score = hits if plan.score is None else counts.noisy_count(hits, plan.score, noise)
            runs.append((dict(candidate), score))
            if score > best[0]:  # the earliest of the best
                best = score, candidate, learner.released_
        self.best_params_, self._best_ = dict(best[1]), best[2]
        if self._scores_may_leave(plan):
            self.scores_ = runs

    def _seed(self, noise: NoiseSource) -> int | None:
        """A seed for research, drawn anew; none where noise is secure."""
        return int(noise.subset(_SEEDS, 1)[0]) if self.noise == "research" else None

    def _scored(self) -> str:
        return "on public rows" if self.validation is not None else f"privately, {self.score_share:g} of a run's price"

    def _release(self) -> Released:
        best = self._best_
        assert best is not None
        chosen = ", ".join(f"{name}={' '.join(repr(value).split()):.80}" for name, value in self.best_params_.items())
        tuning = self._fact() if not Budget.parse(self.budget).infinite else "by exact scores, without noise"
        facts = {"tuning": tuning, "chosen parameters": chosen[:1000] or "those of the estimator"}
        return replace(best, mechanism=best.mechanism | facts)


def hits_of(released: Released, rows: Any, truth: NDArray[np.int64]) -> int:
    """How many rows a run's classifier gets right: of sensitivity 1 under add/remove, given what the run released.

    A row's similarities depend on its own values alone, to the last bit, so that a record more or less changes the
    prediction of no other.
    """
    similarities = released.decision.similarities(released.arrays, rows, products=rowwise_inner_products)
    return int(np.sum(np.argmax(similarities, axis=1) == truth))


def _checked(candidate: Any, own: Sequence[str]) -> Candidate:
    if not isinstance(candidate, Mapping):
        raise InputError(f"candidate {shortened(candidate)} must be a dict of parameters; pass for example {{'k': 1}}")
    for name in candidate:
        if name in SHARED:
            raise InputError(f"candidate parameter {name!r} is set by the search; pass {name}= to the search instead")
        if name not in own:
            raise InputError(f"candidate parameter {name!r} is none of the estimator's; it has {', '.join(own)}")
    return candidate


def dearest(events: Iterable[Event], *, pure: bool) -> Event:
    """An event that costs at least as much as each of these, for one of them that is drawn from a public list."""
    distinct = list(dict.fromkeys(events))
    if len(distinct) == 1:
        return distinct[0]
    return PureDP(max(event.pure for event in distinct)) if pure else ZCDP(max(event.rho for event in distinct))
