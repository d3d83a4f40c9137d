"""Scale and thresholds of sigmoid heads, from the noisy gradients that fitted them.

All of this is post-processing of noisy gradients, noisy counts and public rows, so it has no
privacy cost.

The simulation. A record has label k with the share s_k that the counts tell, and its score by the
head of the label, w_k x, is normal about t v_k/2 with the label and about -t v_k/2 without it, with
variance v_k in both cases. By Bayes' rule the log odds of the label are then, exactly,

    t w_k x + logit(s_k),

so t is the scale of scores, one for all labels, and offsets are those that the heads were trained
with.

The scale t. A noisy gradient G at the heads W also gives <G, W>, the derivative of the loss by the
logarithm of the scale, where the scale is 1. Simulated rows have that derivative too, with each
record's gradient clipped as it was: t is the most likely scale under the derivative of the last
steps (`Slopes`) and a standard deviation of `DEVIATION` in its logarithm.

The variances v_k. They are those of the scores of public rows. Without public rows the gradients
tell: with G_0 at heads of zero, <W, G - G_0> is about the sum over labels and records of
s_k (1 - s_k) (w_k x)^2, and (w_k x)^2 is taken to be in one ratio to |w_k|^2 for all labels.

Thresholds maximise the expected F1 over public rows, or else over the simulated ones. Making the
mean probabilities of public rows agree with the counts was tried and rejected
(benchmarks/rejected.md): the heads push private rows away from where public rows lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from tacit.learners.common.label_sets import SetCounts
from tacit.learners.linear.name_centre import Gradient
from tacit.models.calibration import ENTRIES, FEWEST, LAST, ROWS, Slopes
from tacit.models.label_sets import LabelSets, expected_f1_thresholds
from tacit.models.rows import Floats

# Standard deviation of the logarithm of the scale, its bounds, and how precisely it is found.
DEVIATION = 0.3
LOG_SCALES = (-1.0, 1.0)
PRECISION = 0.01


@dataclass(eq=False)
class LabelSlopes:
    """Noisy gradients of sigmoid heads, observed as descent asks for them.

    Parameters
    ----------
    counts : SetCounts
    noise : float
        Standard deviation of the noise on an entry of a gradient.
    clip : float
        The norm that gradients of records were clipped to; infinite if they were not.
    """

    counts: SetCounts
    noise: float
    clip: float

    slopes: Slopes = field(init=False)
    _at_zero: Floats | None = field(default=None, init=False)
    _curvatures: list[float] = field(default_factory=list, init=False)
    _weighted_norms: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.slopes = Slopes(clip=self.clip)

    def follow(self, gradient: Gradient) -> Gradient:
        """Return the same gradient as a function of the heads; its values are observed."""

        def followed(head: Floats) -> Floats:
            result = gradient(head)
            self._observe(head, result)
            return result

        return followed

    def _observe(self, head: Floats, gradient: Floats) -> None:
        n = self.counts.records
        self.slopes.values.append(float(np.vdot(gradient, head)) / n)
        self.slopes.noises.append(self.noise * float(np.linalg.norm(head)) / n)

        if self._at_zero is None:
            # descent starts at heads of zero
            self._at_zero = gradient
        shares = self.counts.shares
        squared_norms = np.square(head).sum(axis=1)
        self._curvatures.append(float(np.vdot(head, gradient - self._at_zero)) / n)
        self._weighted_norms.append(float(shares * (1 - shares) @ squared_norms))

    def label_sets(self, heads: Floats, public_scores: Floats | None) -> LabelSets:
        """Return scale and thresholds of the scores of heads (K, width), without their offsets.

        `public_scores` are those of public rows, (m, K), if there are any.
        """
        if public_scores is None:
            variances = self._squared_score() * np.square(heads).sum(axis=1)
        else:
            variances = public_scores.var(axis=0)

        rows = SimulatedScores.of(self.counts.shares, variances)
        scale = self._scale(rows)
        scores = rows.scores(scale) if public_scores is None else public_scores
        probabilities = expit(scale * scores + self.counts.logits)
        return LabelSets(scale, expected_f1_thresholds(probabilities))

    def _squared_score(self) -> float:
        """Mean squared score of records by a head of norm 1, as the last gradients tell."""
        norms = sum(self._weighted_norms[-LAST:])
        if norms == 0:
            return 0.0
        return max(sum(self._curvatures[-LAST:]) / norms, 0.0)

    def _scale(self, rows: SimulatedScores) -> float:
        """Return the most likely scale."""
        slope, error = self.slopes.last()

        def misfit(log_scale: float) -> float:
            """Minus twice the log likelihood, up to a constant."""
            distance = (rows.slope(math.exp(log_scale), self.clip) - slope) / error
            return distance**2 + (log_scale / DEVIATION) ** 2

        options = {"xatol": PRECISION}
        found = minimize_scalar(misfit, bounds=LOG_SCALES, method="bounded", options=options)
        return math.exp(found.x)


@dataclass(frozen=True, eq=False)
class SimulatedScores:
    """Simulated rows: `labels`, 1/2 with a label and -1/2 without it, and `spread` of scores, both
    (n, K); `offsets` and `variances` of the labels, (K,).
    """

    labels: Floats
    spread: Floats
    offsets: Floats
    variances: Floats

    @classmethod
    def of(cls, shares: Floats, variances: Floats) -> SimulatedScores:
        """Simulate rows as the docstring of this module says."""
        rng = np.random.default_rng(0)
        n_labels = len(shares)
        n_rows = min(ROWS, max(FEWEST, ENTRIES // n_labels))
        labels = np.where(rng.random((n_rows, n_labels)) < shares, 0.5, -0.5)
        spread = rng.normal(size=labels.shape) * np.sqrt(variances)
        return cls(labels, spread, np.log(shares / (1 - shares)), variances)

    def scores(self, scale: float) -> Floats:
        """Scores of the rows, (n, K), where they must be multiplied by `scale`."""
        return np.asarray(self.labels * (scale * self.variances) + self.spread)

    def slope(self, scale: float, clip: float) -> float:
        """Derivative of the mean loss by the logarithm of the scale, at 1, of clipped gradients."""
        scores = self.scores(scale)
        residuals = expit(scores + self.offsets) - (self.labels + 0.5)

        # Rows have norm 1, so a record's gradient is as long as its residual.
        lengths = np.linalg.norm(residuals, axis=1)
        shortening = np.minimum(1.0, clip / np.maximum(lengths, 1e-12))
        return float(((residuals * scores).sum(axis=1) * shortening).mean())
