"""Candidates by a tree-structured Parzen estimator (TPE) of optuna.

Each candidate is proposed after the scores of those before. The scores are exact, so the proposals
reveal facts about the records: only `UnpaidSearch` may use this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from tacit.compute.extras import check_installed
from tacit.errors import InputError, quoted
from tacit.learners.search.base import Candidate, Runs

Space = Mapping[str, Any]
"""For each parameter a list of values, or a range {"low": a, "high": b} with an optional "log"."""


def corners(space: Any) -> list[Candidate]:
    """Return candidates that hold every value, and both ends of every range, of a parameter.

    The first has the first value of each parameter; the others differ from it in one.
    """
    values_by_name = {}
    for name, values in _checked(space).items():
        if isinstance(values, Mapping):
            values_by_name[name] = [values["low"], values["high"]]
        else:
            values_by_name[name] = list(values)

    first = {name: values[0] for name, values in values_by_name.items()}
    candidates: list[Candidate] = [first]
    for name, values in values_by_name.items():
        for value in values[1:]:
            candidates.append(first | {name: value})
    return candidates


def proposals(space: Any, trials: int, runs: Runs, seed: int | None) -> Iterator[Candidate]:
    """Yield `trials` candidates.

    `runs` must hold the score of a candidate before the next is drawn.
    """
    space = _checked(space)
    study = _study(seed)
    distributions = {name: _distribution(values) for name, values in space.items()}
    for _ in range(trials):
        trial = study.ask(distributions)
        candidate = {}
        for name, values in space.items():
            proposed = trial.params[name]
            is_list = isinstance(values, Sequence)
            candidate[name] = values[proposed] if is_list else proposed
        yield candidate

        _, score = runs[-1]
        study.tell(trial, score)


def _study(seed: int | None) -> Any:
    """Create a study of optuna, which would log a line for it."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(level)


def _distribution(values: Sequence[Any] | Mapping[str, Any]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Mapping):
        # of positions, since values may be of any type
        return CategoricalDistribution(range(len(values)))

    low = values["low"]
    high = values["high"]
    whole_ends = isinstance(low, Integral) and isinstance(high, Integral)
    kind = IntDistribution if whole_ends else FloatDistribution
    return kind(low, high, log=values.get("log", False))


def _checked(space: Any) -> Space:
    """Return the space, if it is one and optuna is installed."""
    check_installed("optuna")
    if not isinstance(space, Mapping) or not space:
        example = "{'k': [1, 5], 'd_min': {'low': 0.0, 'high': 1.0}}"
        rule = "must be a dict of lists and ranges with trials"
        raise InputError(f"candidates={quoted(space)} {rule}; pass for example {example}")
    for name, values in space.items():
        if not isinstance(values, list | tuple) or not values:
            _check_range(name, values)
    return space


def _check_range(name: str, values: Any) -> None:
    names = set(values) if isinstance(values, Mapping) else set()
    is_range = {"low", "high"} <= names <= {"low", "high", "log"}
    if not is_range:
        example = "[1, 5], or {'low': 0.0, 'high': 1.0}"
        rule = "neither a list of values nor a range"
        raise InputError(
            f"candidates have {name}={quoted(values)}, {rule}; pass for example {example}"
        )

    low = values["low"]
    high = values["high"]
    log = values.get("log", False)
    if not _is_finite_number(low) or not _is_finite_number(high):
        raise InputError(
            f"candidates have {name} from {low!r} to {high!r}; pass two finite numbers"
        )
    if not low < high or not isinstance(log, bool) or (log and low <= 0):
        rule = "low must be below high, log True or False, and low above 0 if it is True"
        raise InputError(f"candidates have {name}={quoted(dict(values))}; {rule}")


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
