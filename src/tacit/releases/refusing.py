"""Rows that a release does not answer, since they look unlike those that it was trained on.

A release that carries a posterior of class means measures them by `tacit.models.familiarity`.
Others know nothing of the spread of their classes. Theirs is 1 less the largest probability, beside
that of rows like those trained on, which have to be passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, ReleaseError, quoted
from tacit.models.carried import carried
from tacit.models.decisions import Decision
from tacit.models.familiarity import Familiarity
from tacit.models.probabilities import Probabilities
from tacit.models.rows import Floats, row_parts, unit_rows_about

# why some releases do not know what rows of their classes look like
WITHOUT_POSTERIOR = "carries no posterior of class means, which only releases of auto do"


class Strangeness(Protocol):
    """A measure of rows that is larger for those less like the rows that were trained on."""

    def of(self, rows: Any) -> Floats:
        """Return the strangeness of rows (n, d), (n,)."""

    def of_simulated(self) -> Floats:
        """Return the strangeness of simulated rows like those trained on, (m,)."""


@dataclass(frozen=True, eq=False)
class PosteriorStrangeness:
    """The strangeness of rows to a release that carries a posterior.

    `centre` is that of the release, and `foreign` are rows of no class along the axes, if some are
    known.
    """

    rule: Familiarity
    centre: Floats | None
    foreign: Floats | None = None

    @classmethod
    def stated(cls, arrays: Mapping[str, NDArray[Any]], foreign: Any = None) -> Self | None:
        """Read the rule from the arrays of a release; None if they hold no posterior.

        `foreign` are rows (m, d), or None.
        """
        model = carried(arrays)
        if model is None:
            return None

        rule = cls(Familiarity(model), arrays.get("centre"))
        if foreign is None:
            return rule
        along_axes = [rule._along_axes(foreign[part]) for part in row_parts(foreign)]
        return cls(rule.rule, rule.centre, np.concatenate(along_axes))

    def of(self, rows: Any) -> Floats:
        """Return the strangeness of rows (n, d), which may lie in a store; (n,)."""
        result = np.empty(len(rows))
        for part in row_parts(rows):
            along_axes = self._along_axes(rows[part])
            result[part] = self.rule.strangeness(along_axes, self.foreign)
        return result

    def of_simulated(self) -> Floats:
        """Return the strangeness of the simulated familiar rows, (m,)."""
        return self.rule.strangeness(self.rule.simulated(), self.foreign)

    def _along_axes(self, rows: Any) -> Floats:
        """Unit rows about the centre, (b, p), along the axes of the posterior."""
        return np.asarray(unit_rows_about(np.asarray(rows), self.centre) @ self.rule.model.axes)


@dataclass(frozen=True, eq=False)
class ProbabilityStrangeness:
    """The strangeness of rows to a release without a posterior: 1 less the largest probability.

    `arrays` are those that the decision reads, and `source` names the release in messages.
    """

    decision: Decision
    arrays: Mapping[str, NDArray[Any]]
    probabilities: Probabilities
    source: str

    def of(self, rows: Any) -> Floats:
        """Return the strangeness of rows (n, d), which may lie in a store; (n,)."""

        def of_block(similarities: Floats) -> Floats:
            """1 less the largest probability."""
            return np.asarray(1 - self.probabilities.of(similarities).max(axis=1))

        return self.decision.by_blocks(self.arrays, rows, of_block)

    def of_simulated(self) -> Floats:
        """Refuse: nothing says what rows of the classes look like."""
        raise ReleaseError(
            f"{self.source} {WITHOUT_POSTERIOR}, so it cannot simulate rows like those trained on;"
            " pass such rows as familiar (--familiar STORE), or fit with auto (AutoPrototypes)"
        )


def checked_refusal(refuse: Any) -> float:
    """Return the share of familiar rows that may be refused: above 0 and below 1."""
    is_number = isinstance(refuse, int | float | np.integer | np.floating)
    if not is_number or isinstance(refuse, bool) or not 0 < refuse < 1:
        raise InputError(
            f"refuse={quoted(refuse)} must be above 0 and below 1, the share of rows like those"
            " trained on that may be refused; pass for example refuse=0.05 (--refuse 0.05)"
        )
    return float(refuse)


def check_unused(familiar: Any, foreign: Any) -> None:
    """Refuse rows that only `refuse` would read."""
    for name, rows in (("familiar", familiar), ("foreign", foreign)):
        if rows is not None:
            raise InputError(
                f"{name} rows say which rows to refuse; pass refuse=0.05 too, or leave them out"
            )
