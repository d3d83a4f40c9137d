"""Private search: a secret random number of runs, of which only the best run's output is released.

Unit: that of one run.
Sensitivity: that of one run. Its event includes the score by which runs are compared: output and
score must be private.
Number of runs: truncated negative binomial of shape s and parameter g, P(k) proportional to
(1-g)^k/k times the product of (l+s)/l over l = 1 to k-1; s = 0 is logarithmic, s = 1 geometric. It
is drawn exactly, with rational numbers: a geometric k is accepted with probability the product of
(l+s)/(l+1) over l = 1 to k-1, else drawn again. g is the same float that the privacy cost is
computed from.
Theorem: see `tacit.privacy.events.RepeatAndSelect` [Papernot and Steinke 2022, Theorem 2]. It holds
for identical runs: each run draws the candidate that it tries, and ties go to the earliest run,
which is a random one. The theorem does not cover a fixed number of runs, nor trying every candidate
once.
Source: Papernot and Steinke 2022; the geometric number of runs is Liu and Talwar 2019. The exact
draw is tacit's.
"""

from fractions import Fraction

from tacit.errors import InputError
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.events import Event, RepeatAndSelect


def number_of_runs(search: RepeatAndSelect, noise: NoiseSource) -> int:
    """Draw the number of runs, at least 1, of a search from `event`; it must stay secret."""
    go_on, shape = 1 - Fraction(search.halt), Fraction(search.shape)
    runs = 1
    while noise.bernoulli(go_on):
        accepted = noise.bernoulli((runs + shape) / (runs + 1))
        runs = runs + 1 if accepted else 1
    return runs


def event(run: Event, mean: float, shape: float) -> RepeatAndSelect:
    """Event of a search whose runs cost `run` each; shape is from 0 to 1, where the draw is
    exact.
    """
    if not 0 <= shape <= 1:
        raise InputError(
            f"shape={shape} must be from 0 to 1, where the draw is exact; pass shape=1 (geometric)"
        )
    return RepeatAndSelect(run, mean, shape)
