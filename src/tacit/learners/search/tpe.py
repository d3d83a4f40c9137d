"""Candidates by a tree-structured Parzen estimator (TPE) of optuna: each is proposed after the
scores of those before.

The scores are exact, so the proposals reveal facts about the records: only `UnpaidSearch` may use
this.
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
    """The candidate of all first values, and from it each other value, or end of a range, of one
    parameter.
    """
    ends = {
        name: [values["low"], values["high"]] if isinstance(values, Mapping) else list(values)
        for name, values in _checked(space).items()
    }
    first = {name: values[0] for name, values in ends.items()}
    return [
        first,
        *(first | {name: value} for name, values in ends.items() for value in values[1:]),
    ]


def proposals(space: Any, trials: int, runs: Runs, seed: int | None) -> Iterator[Candidate]:
    """`trials` candidates; `runs` must hold the score of a candidate before the next is drawn."""
    space = _checked(space)
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # no line in the log for each study
    try:
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
        )
    finally:
        optuna.logging.set_verbosity(level)
    distributions = {name: _distribution(values) for name, values in space.items()}
    for _ in range(trials):
        trial = study.ask(distributions)
        yield {
            name: values[trial.params[name]] if isinstance(values, Sequence) else trial.params[name]
            for name, values in space.items()
        }
        study.tell(trial, runs[-1][1])


def _distribution(values: Sequence[Any] | Mapping[str, Any]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Mapping):
        return CategoricalDistribution(range(len(values)))  # positions: values may be of any type
    low, high = values["low"], values["high"]
    kind = (
        IntDistribution
        if all(isinstance(end, Integral) for end in (low, high))
        else FloatDistribution
    )
    return kind(low, high, log=values.get("log", False))


def _checked(space: Any) -> Space:
    """The space, if it is one and optuna is installed; a range with whole ends is one of whole
    numbers.
    """
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
    if not isinstance(values, Mapping) or not {"low", "high"} <= set(values) <= {
        "low",
        "high",
        "log",
    }:
        example = "[1, 5], or {'low': 0.0, 'high': 1.0}"
        rule = "neither a list of values nor a range"
        raise InputError(
            f"candidates have {name}={quoted(values)}, {rule}; pass for example {example}"
        )
    low, high, log = values["low"], values["high"], values.get("log", False)
    if not all(
        isinstance(end, Real) and not isinstance(end, bool) and math.isfinite(end)
        for end in (low, high)
    ):
        raise InputError(
            f"candidates have {name} from {low!r} to {high!r}; pass two finite numbers"
        )
    if not low < high or not isinstance(log, bool) or (log and low <= 0):
        rule = "low must be below high, log True or False, and low above 0 if it is True"
        raise InputError(f"candidates have {name}={quoted(dict(values))}; {rule}")
