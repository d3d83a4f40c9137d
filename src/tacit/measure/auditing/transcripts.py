"""The transcript of a fit: each use of noise, with its private values and its noisy outcome.

A guarantee adds up uses of noise, so it covers all noisy values, not only what a release shows. An
attacker who knows everything but the canary can fit the neighbouring data with the outcomes forced
to be the same, and so knows the private values of both data sets at each use. The likelihood ratio
of the outcomes is then the most powerful score that there is [Neyman and Pearson 1933].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers, NoiseSource, Selection, research_noise_from

Kind = Literal["gaussian", "laplace", "choice"]


@dataclass(frozen=True)
class Use:
    """A use of noise of this kind and scale: private values, and the outcome."""

    kind: Kind
    scale: float
    values: Any
    outcome: Any


class CompleteTranscript(Exception):
    """Ends a fit whose later steps draw no noise, and so reveal nothing more."""


class LeakFoundError(Exception):
    """Two fits with the same outcomes differ in what no noise hides."""


class Transcript(NoiseSource):
    """A source that records each use, and draws the noise from `source`.

    Parameters
    ----------
    earlier : sequence of Use
        Outcomes that are taken instead of drawn ones.
    length : int, optional
        The number of uses after which the fit ends.
    """

    def __init__(
        self, source: NoiseSource, earlier: Sequence[Use] = (), length: int | None = None
    ) -> None:
        self.source = source
        self.earlier = earlier
        self.length = length
        self.uses: list[Use] = []

    def _recorded(self, kind: Kind, scale: float, values: Any, draw: Callable[[], Any]) -> Any:
        place = len(self.uses)
        if place < len(self.earlier):
            before = self.earlier[place]
            same_use = before.kind == kind and before.scale == scale
            if not (same_use and np.shape(before.values) == np.shape(values)):
                raise LeakFoundError(f"use {place} of noise")
            outcome = before.outcome
        else:
            outcome = draw()
        self.uses.append(Use(kind, scale, values, outcome))
        if len(self.uses) == self.length:
            raise CompleteTranscript
        return outcome

    def gaussian(self, values: Integers, scale: float) -> Integers:
        drawn: Integers = self._recorded(
            "gaussian", scale, values, lambda: self.source.gaussian(values, scale)
        )
        return drawn

    def laplace(self, values: Integers, scale: float) -> Integers:
        drawn: Integers = self._recorded(
            "laplace", scale, values, lambda: self.source.laplace(values, scale)
        )
        return drawn

    def noisy_max(self, scores: Integers, scale: float, noise: Selection) -> int:
        drawn: int = self._recorded(
            "choice", scale, scores, lambda: self.source.noisy_max(scores, scale, noise)
        )
        return drawn

    def subset(self, n: int, k: int) -> Integers:
        drawn: Integers = self._chosen(lambda: self.source.subset(n, k))
        return drawn

    def bernoulli(self, p: Fraction) -> bool:
        drawn: bool = self._chosen(lambda: self.source.bernoulli(p))
        return drawn

    def words(self, n: int) -> NDArray[np.uint64]:
        drawn: NDArray[np.uint64] = self._chosen(lambda: self.source.words(n))
        return drawn

    def _chosen(self, draw: Callable[[], Any]) -> Any:
        """Randomness that is added to nothing private."""
        return self._recorded("choice", math.inf, np.zeros(1), draw)


def transcript(
    fit: Callable[[], object],
    source: NoiseSource,
    earlier: Sequence[Use] = (),
    length: int | None = None,
) -> list[Use]:
    """The uses of noise of a fit, which draws research noise."""
    recorder = Transcript(source, earlier, length)
    try:
        with research_noise_from(recorder):
            fit()
    except CompleteTranscript:
        pass
    return recorder.uses


def log_ratio(without: Sequence[Use], with_canary: Sequence[Use]) -> float:
    """Log likelihood ratio of the outcomes, which both have: with the canary against without it."""
    total = 0.0
    for one, other in zip(without, with_canary, strict=True):
        moved = (other.values - one.values).astype(float)
        if not moved.any():
            continue
        noise = (one.outcome - one.values).astype(float)
        if one.kind == "gaussian":
            total += float(((noise - moved / 2) * moved).sum()) / one.scale**2
        else:
            total += float((np.abs(noise) - np.abs(noise - moved)).sum()) / one.scale
    return total


def distance(without: Sequence[Use], with_canary: Sequence[Use]) -> float:
    """How far the canary moves the private values of all uses, in units of noise: mu of Gaussian
    uses.
    """
    square = 0.0
    for one, other in zip(without, with_canary, strict=True):
        moved = (other.values - one.values) / one.scale
        square += float(np.square(moved.astype(float)).sum())
    return math.sqrt(square)
