"""Shared parts of the searches: candidates, runs with their scores, and the budget of a run."""

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
from tacit.models.released import LearnerFacts, Released
from tacit.models.rows import rowwise_inner_products
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import ZCDP, Event, Gaussian, PureDP
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

Candidate = Mapping[str, Any]
Runs = list[tuple[dict[str, Any], float]]  # candidates that were run, and their scores

# parameters that a search sets in every run
SHARED = ("budget", "classes", "noise", "random_state", "unit", "ledger")
# amounts that a budget may state, with 10 % to spare at the lower end for rounding
_LEAST_AMOUNT = 1.1e-9
_MOST_AMOUNT = 1e9
_SEEDS = 2**31


@dataclass(frozen=True)
class RunBudget:
    """Budget of the fit of one run, and event of its score; None if it is scored on public rows."""

    fit: Budget
    score: Gaussian | PureDP | None


@dataclass(frozen=True, eq=False)
class SearchRecords(Prepared):
    """Private records to fit on, budgets of each run, and rows and class indices to score on."""

    per_run: RunBudget
    scored: tuple[Any, Integers]


@dataclass(eq=False, repr=False)
class Search(PrivateClassifier):
    """Base of the searches. Subclasses fill in `_cost`, `_candidates_to_run` and `_tuning_note`."""

    estimator: Any
    candidates: Any
    budget: Budget | str = field(kw_only=True)

    # no "gdp", since a search has no mu; a pure budget follows its own path in `_run_budget`
    budget_kinds = ("zcdp", "approx")

    # class attributes here; searches that score privately redeclare them as parameters
    validation = None
    score_share = 0.1
    event_under_unit = True
    one_label = (
        "scores runs by records whose one class they predict; choose parameters of several labels"
        " on public data, and fit the learner itself"
    )

    @abstractmethod
    def _cost(self, per_run: RunBudget) -> Event:
        """Privacy cost of the search under its unit if each run spends `per_run`."""

    @abstractmethod
    def _candidates_to_run(
        self, per_run: RunBudget, noise: NoiseSource, runs: Runs
    ) -> tuple[int, Iterable[Candidate]]:
        """Return the number of candidates to run, and the candidates in order.

        `_fit` appends each finished run to `runs`, so a lazy iterable may read earlier scores.
        """

    @abstractmethod
    def _tuning_note(self) -> str:
        """Say how parameters were chosen at a finite budget, in a phrase for the card."""

    def _scores_are_public(self, per_run: RunBudget) -> bool:
        """Tell whether `scores_` may be published: the guarantee covers them, or there is none."""
        return True

    def promise(self) -> Guarantee:
        promise = super().promise()
        return replace(promise, scope=f"{promise.scope}, tuning included")

    def learner_facts(self) -> LearnerFacts:
        # the search itself, and so its promise, is made from objects
        return LearnerFacts("", {}, (), ())

    def name_rows(self) -> Any:
        return self.estimator.name_rows()

    def _event(self) -> Event:
        return self._cost(self._run_budget())

    def _unprotected(self) -> tuple[str, ...]:
        quantities = [learner._unprotected() for learner in self._learners()]
        return tuple(dict.fromkeys(quantity for part in quantities for quantity in part))

    def _uses_public(self) -> bool:
        if self.validation is not None:
            return True
        return any(learner._uses_public() for learner in self._learners())

    def _learners(self, **shared: Any) -> list[PrivateClassifier]:
        """Make the learner of each candidate, for facts that do not depend on the budget."""
        return [self._learner(candidate, self.budget, **shared) for candidate in self._candidates()]

    def _check_public(self, X: Any, public: Any) -> None:
        """Check each distinct set of public rows once, under the unit of the search."""
        # by identity, since rows may be large; the candidates keep them alive
        learners = {}
        for learner in self._learners(unit=self.unit):
            tables = id(learner.public), id(learner.names)
            learners[tables, learner._releases_public(), learner.allow_overlap] = learner
        for learner in learners.values():
            learner._check_public(X, learner.public)

        if self.validation is not None:
            # under a unit of labels too: labels of validation rows that are private records are
            # likely to be the private labels
            rows = as_rows(self.validation[0], "validation")
            check_overlap("validation", rows, X, released=False, stacklevel=4)

    def _candidates(self) -> list[Candidate]:
        """Return the checked candidates; of a search space, some that stand for all."""
        if isinstance(self.candidates, str | Mapping) or not hasattr(self.candidates, "__len__"):
            fault = f"candidates={quoted(self.candidates)} must be a list of dicts"
            raise InputError(f"{fault}; pass for example [{{'k': 1}}]")
        candidates = self._checked(self.candidates)
        if not candidates:
            remedy = "pass at least one dict of parameters, such as [{'k': 1}]"
            raise InputError(f"candidates is empty; {remedy}")
        return candidates

    def _checked(self, candidates: Iterable[Any]) -> list[Candidate]:
        if not isinstance(self.estimator, PrivateClassifier) or isinstance(self.estimator, Search):
            fault = f"estimator={quoted(self.estimator)} must be a tacit learner, not a search"
            raise InputError(f"{fault}; pass one")

        unit = self.estimator.units[0]
        if unit is not Unit.ADD_REMOVE:
            rule = f"is private under unit {unit}, and searches add up under add-remove"
            fault = f"estimator={quoted(self.estimator)} {rule}"
            raise InputError(f"{fault}; choose its parameters on public data")

        for name in ("classes", "ledger"):
            if getattr(self, name) is None and getattr(self.estimator, name) is not None:
                fault = f"{name} of the estimator is not used"
                raise InputError(f"{fault}; pass {name}= to the search itself")

        of_estimator = {"most_labels": self.estimator.most_labels, "tree": self.estimator.tree}
        for settings in (of_estimator, *candidates):
            self._check_one_class(settings)

        parameters = [name for name in self.estimator.get_params(deep=False) if name not in SHARED]
        return [_checked_candidate(candidate, parameters) for candidate in candidates]

    def _check_one_class(self, settings: Any) -> None:
        """Refuse settings for records that have several labels, or an inner node of a tree."""
        if not isinstance(settings, Mapping):
            return
        if settings.get("most_labels") is not None:
            raise InputError(f"{type(self).__name__} {self.one_label}")
        if settings.get("tree") is not None:
            raise InputError(
                f"{type(self).__name__} scores runs by records whose class they predict, which a"
                " record labelled with an inner node of a tree does not have; leave tree out, and"
                " pass it to Release.of(search, tree=...) if all labels are leaves"
            )

    def _learner(
        self, candidate: Candidate, budget: Budget | str, **shared: Any
    ) -> PrivateClassifier:
        """Make the estimator of one run, with a candidate's parameters.

        `shared` overrides the parameters that are set below.
        """
        parameters = self.estimator.get_params(deep=False) | dict(candidate)
        parameters |= {
            "budget": budget,
            "classes": self.classes,
            "noise": self.noise,
            "random_state": None,  # `_fit` passes a new seed to each run
            "unit": self.unit,
            "ledger": None,  # the search charges its own
        }
        learner: PrivateClassifier = type(self.estimator)(**(parameters | shared))
        return learner

    def _run_cost(self, candidate: Candidate, per_run: RunBudget) -> Event:
        promise = self._learner(candidate, per_run.fit).promise()
        if promise.groups:
            fault = "the estimator has personal budgets, which a search does not share out"
            raise InputError(f"{fault}; leave them out")
        if per_run.score is None:
            return promise.event
        return promise.event + per_run.score

    def _run_budget(self) -> RunBudget:
        """Find the largest budget of a run at which the whole search stays within its budget."""
        budget = Budget.parse(self.budget)
        make_budget = Budget.pure if budget.kind == "pure" else Budget.zcdp
        scores_privately = self.validation is None
        share = 0.0
        smallest_part = 1.0
        if scores_privately:
            share = real("score_share", self.score_share, 0.001, 0.999)
            smallest_part = min(share, 1 - share)

        def run_budget(amount: float) -> RunBudget:
            score = counts.event(make_budget(amount * share)) if scores_privately else None
            return RunBudget(make_budget(amount * (1 - share)), score)

        def cost(amount: float) -> Event:
            return self._cost(run_budget(amount))

        if budget.infinite:
            return run_budget(math.inf)

        # neither the fit nor the score of a run may fall below what a budget may state
        low = _LEAST_AMOUNT / smallest_part
        high = _MOST_AMOUNT
        # a cost that cannot be computed raises here, so that the error names the caller's amount
        # and not one that the bisection tries
        callers_amount = (budget.rho or budget.epsilon or 1.0) / (1 - share)
        self._cost(run_budget(min(max(callers_amount, low), high)))
        try:
            return run_budget(calibrate(budget, cost, low, high, precision=1e-9))
        except BudgetError as error:
            fault = f"budget {budget} leaves each run less than {run_budget(low).fit}"
            raise BudgetError(f"{fault}; try fewer runs") from error

    def _prepare(self, X: NDArray[Any], labels: Integers) -> SearchRecords:
        per_run = self._run_budget()
        for candidate in self._candidates():
            self._learner(candidate, per_run.fit, classes=len(self.classes_)).check(*X.shape)

        scored = (X, labels)
        if self.validation is not None:
            scored = self._public_rows(self.validation, X.shape[1])
        return SearchRecords(X, labels, per_run, scored)

    def _public_rows(self, validation: Any, width: int) -> tuple[Any, Integers]:
        """Check the public rows to score on, and return them with their class indices."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            fault = "validation must be a pair of public rows and labels"
            raise InputError(f"{fault}; pass validation=(X_public, y_public)")

        rows = as_rows(validation[0], "validation")
        labels = np.asarray(validation[1])
        if rows.shape[1] != width or labels.shape != (len(rows),):
            shapes = f"rows of shape {tuple(rows.shape)} and labels of shape {labels.shape}"
            raise InputError(f"validation has {shapes}; pass {width} columns and one label per row")
        check_rows(rows, name="validation")
        return rows, class_indices(labels, self.classes_)

    def _fit(self, prepared: SearchRecords, noise: NoiseSource) -> Released:
        per_run = prepared.per_run
        runs: Runs = []
        best: tuple[float, Released] | None = None

        n_candidates, candidates = self._candidates_to_run(per_run, noise, runs)
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
            tuning = self._tuning_note()
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
        """Draw a new seed for a run with research noise; None with secure noise."""
        if self.noise != "research":
            return None
        # one of the integers below _SEEDS, all equally likely
        return int(noise.subset(_SEEDS, 1)[0])

    def _scoring_note(self) -> str:
        if self.validation is not None:
            return "on public rows"
        return f"privately, {self.score_share:g} of a run's cost"


def hits_of(
    released: Released, rows: Any, truth: NDArray[np.int64], persons: Persons | None = None
) -> int | Fraction:
    """Count the rows that the released classifier of a run gets right.

    With `persons`, sum each person's fraction of correct rows. The sensitivity is 1 either way. A
    row's similarities depend on its own values alone, to the last bit, so that adding or removing
    a record changes the prediction of no other record.
    """
    similarities = released.decision.similarities(
        released.arrays, rows, products=rowwise_inner_products
    )
    is_right = np.argmax(similarities, axis=1) == truth
    if persons is None:
        return counts.counted(is_right)

    # the records of each person must follow each other
    order = np.argsort(persons.codes, kind="stable")
    return counts.counted(is_right[order], np.cumsum(persons.sizes))


def _checked_candidate(candidate: Any, parameters: Sequence[str]) -> Candidate:
    if not isinstance(candidate, Mapping):
        fault = f"candidate {quoted(candidate)} must be a dict of parameters"
        raise InputError(f"{fault}; pass for example {{'k': 1}}")
    for name in candidate:
        if name in SHARED:
            fault = f"candidate parameter {name!r} is set by the search"
            raise InputError(f"{fault}; pass {name}= to the search instead")
        if name not in parameters:
            fault = f"candidate parameter {name!r} is not a parameter of the estimator"
            raise InputError(f"{fault}; it has {', '.join(parameters)}")
    return candidate


def most_expensive(events: Iterable[Event], *, pure: bool) -> Event:
    """Return an event that costs at least as much as each of these.

    It is charged where one of them is drawn at random. Curves of different events may cross, so it
    is a bound in one parameter.
    """
    distinct = list(dict.fromkeys(events))
    if len(distinct) == 1:
        return distinct[0]
    if pure:
        return PureDP(max(event.pure for event in distinct))
    return ZCDP(max(event.rho for event in distinct))
