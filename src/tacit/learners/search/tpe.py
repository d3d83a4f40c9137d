"""Candidates by a tree-structured Parzen estimator (TPE): each is proposed after the scores of those before.

Optuna proposes them. The scores are exact, so whoever sees what is proposed learns of the records: only
`UnpaidSearch` may use this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from tacit.compute.extras import check_installed
from tacit.errors import InputError
from tacit.learners.base import shortened
from tacit.learners.search.base import Candidate, Runs

RANGE = ("low", "high", "log")


class Space:
    """Values for each parameter: a list of them, or a range {"low": a, "high": b} with "log" if wanted.

    Both ends whole numbers make a range of whole numbers.

    Raises
    ------
    InputError
        If a parameter has neither, or optuna is not installed.
    """

    def __init__(self, given: Any) -> None:
        check_installed("optuna")
        if not isinstance(given, Mapping) or not given:
            raise InputError(
                f"candidates={shortened(given)} must be a dict of lists and ranges with trials; "
                "pass for example {'k': [1, 5], 'd_min': {'low': 0.0, 'high': 1.0}}"
            )
        self.values = {name: _values(name, values) for name, values in given.items()}

    def corners(self) -> list[Candidate]:
        """The candidate of all first values, and from it each other value, or end of a range, of one parameter."""
        ends = {name: _ends(values) for name, values in self.values.items()}
        first = {name: values[0] for name, values in ends.items()}
        return [first, *(first | {name: value} for name, values in ends.items() for value in values[1:])]

    def proposals(self, trials: int, runs: Runs, seed: int | None) -> Iterator[Candidate]:
        """So many candidates; `runs` must have the score of one before the next is asked for."""
        study = _study(seed)
        distributions = {name: _distribution(values) for name, values in self.values.items()}
        for _ in range(trials):
            trial = study.ask(distributions)
            yield {
                name: values[trial.params[name]] if isinstance(values, Sequence) else trial.params[name]
                for name, values in self.values.items()
            }
            study.tell(trial, runs[-1][1])


def _values(name: str, values: Any) -> Sequence[Any] | Mapping[str, Any]:
    """A list as it is, and a range after a check."""
    if isinstance(values, list | tuple) and values:
        return values
    if not isinstance(values, Mapping) or not {"low", "high"} <= set(values) <= set(RANGE):
        raise InputError(
            f"candidates have {name}={shortened(values)}, neither a list of values nor a range; "
            "pass for example [1, 5], or {'low': 0.0, 'high': 1.0}"
        )
    low, high, log = values["low"], values["high"], values.get("log", False)
    if not all(isinstance(end, Real) and not isinstance(end, bool) and math.isfinite(end) for end in (low, high)):
        raise InputError(f"candidates have {name} from {low!r} to {high!r}; give two finite numbers")
    if not low < high or not isinstance(log, bool) or (log and low <= 0):
        rule = "low must be below high, log True or False, and low above 0 if it is True"
        raise InputError(f"candidates have {name}={shortened(dict(values))}; {rule}")
    return values


def _ends(values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    return [values["low"], values["high"]] if isinstance(values, Mapping) else list(values)


def _distribution(values: Sequence[Any] | Mapping[str, Any]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Mapping):
        return CategoricalDistribution(range(len(values)))  # positions: values may be of any type
    low, high = values["low"], values["high"]
    kind = IntDistribution if all(isinstance(end, Integral) for end in (low, high)) else FloatDistribution
    return kind(low, high, log=values.get("log", False))


def _study(seed: int | None) -> Any:
    """A study in memory, made without a line in the log."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    finally:
        optuna.logging.set_verbosity(level)
