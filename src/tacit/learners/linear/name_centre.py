"""The rows of class names as start of a linear head and centre of its ridge, at a scale that noisy
gradients tell.

The head is theta = s T + W. T holds the directions of the names less their mean; W starts at zero
and has the ridge. All of this is post-processing of noisy gradients and counts, so it has no
privacy cost.

The scale s. At W = 0 the loss falls along T by a, the mean cosine of rows to the name of their own
class less that to all names. If cosines to other names have variance v, then a/v is the scale of
the log odds (linear discriminant), and that is `SCALE_OF_LENGTH` times the length of the names. So
noisy gradients near W = 0 measure the length, which decides whether names fit
(`tacit.models.name_length`). The scale is that of the temperature, which counts as no more than the
usual length, times the share of noise in the sum of a class's rows: the better the records are
seen, the less the names are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tacit.models.name_length import LENGTH_MEAN, SCALE_OF_LENGTH, NameLength, regressed_length
from tacit.models.rows import Floats

Gradient = Callable[[Floats], Floats]
"""Maps a head of shape (C, width) to the sum of its gradients over records."""

# Standard deviation of the noise in a/v at which no more gradients are averaged.
PRECISION = 2.0

# Squared norm that the mean of a class's unit rows is assumed to have.
MEAN_LENGTH = 0.4


@dataclass(eq=False)
class NameCentre:
    """s T for a descent of `steps` noisy gradients; s is zero until enough of them were seen.

    Parameters
    ----------
    names : ndarray of shape (C, d)
        Unit rows.
    counts : ndarray of shape (C,)
        Noisy or declared; `counts_noise` is the standard deviation of their noise.
    noise, steps : float, int
        Standard deviation of the noise on an entry of each gradient, and number of gradients.
    shrinkage : float
        The factor by which clipping or scaling shortens a record's gradient of norm 1, which it has
        about at zero.
    intercept : float
        As in `UnitRows`.
    """

    names: Floats
    counts: Floats
    counts_noise: float
    noise: float
    steps: int
    shrinkage: float = 1.0
    intercept: float = 0.0

    scale: float = field(default=0.0, init=False)
    _slopes: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        # Rows have this length once the column of the intercept is added.
        row_length = math.hypot(1.0, self.intercept)
        spread = self.names - self.names.mean(axis=0)
        constant = np.zeros((len(spread), int(self.intercept > 0)))
        self.directions = np.hstack([spread * row_length, constant])

        # Number of records, and the standard deviation of its noise.
        total_noise = self.counts_noise * math.sqrt(len(self.counts))
        n_records = max(float(self.counts.sum()), total_noise / 2, 1.0)
        variance = cosine_variance(self.names)

        # A slope along T, divided by this, measures a/v.
        self._curvature = self.shrinkage * n_records * variance
        self._slope_noise = self.noise * float(np.linalg.norm(self.directions)) / self._curvature

        # The noise in the number of records is relative; a mean of n cosines has variance v/n.
        self._relative_noise = total_noise / n_records
        self._sampling_noise = 1 / math.sqrt(variance * n_records)

        # The number of gradients that are averaged.
        enough = min((self._slope_noise / PRECISION) ** 2, self.steps)
        self._used = min(self.steps, max(1, math.ceil(enough)))

    @property
    def head(self) -> Floats:
        """s T, of shape (C, width)."""
        return self.scale * self.directions

    def facts(self) -> dict[str, float | str]:
        """Facts for the card."""
        return {"names": "start and centre of the ridge", "scale of the names": self.scale}

    def follow(self, gradient: Gradient) -> Gradient:
        """Return the gradient at s T + W as a function of W; its first values determine s."""

        def followed(offset: Floats) -> Floats:
            result = gradient(offset + self.head)
            if len(self._slopes) < self._used:
                self._slopes.append(-float(np.vdot(result, self.directions)) / self._curvature)
                if len(self._slopes) == self._used:
                    self.scale = self._scale_of(self._length())
            return result

        return followed

    def _length(self) -> NameLength:
        """Posterior of the length of the names, from the mean of the slopes."""
        ratio = float(np.mean(self._slopes))
        variance = (
            self._slope_noise**2 / self._used
            + self._sampling_noise**2
            + (SCALE_OF_LENGTH * LENGTH_MEAN * self._relative_noise) ** 2
        )
        # ratio ~ N(SCALE_OF_LENGTH b, variance)
        return regressed_length(SCALE_OF_LENGTH**2 / variance, SCALE_OF_LENGTH * ratio / variance)

    def _scale_of(self, length: NameLength) -> float:
        """Return s for names of this length; 0 if they are contradicted."""
        if length.contradicted:
            return 0.0
        return SCALE_OF_LENGTH * min(length.temperature, LENGTH_MEAN) * self._noise_share()

    def _noise_share(self) -> float:
        """Mean share of noise, of the sampling too, in the squared norm of the sum of a class's
        rows over all steps.
        """
        sizes = np.maximum(self.counts - self.counts_noise, 0.0)
        noise_of_steps = (self.noise / self.shrinkage) ** 2 / self.steps * self.names.shape[1]
        noise = noise_of_steps + np.maximum(self.counts, 1.0)
        return float(np.mean(noise / (noise + MEAN_LENGTH * sizes**2)))


def cosine_variance(names: Floats) -> float:
    """Variance of a row's cosines to other names, as among the names; at least that of rows without
    direction.
    """
    n = len(names)
    among_names = 0.0
    if n > 2:
        cosines = names @ names.T
        to_others = cosines[~np.eye(n, dtype=bool)].reshape(n, n - 1)
        among_names = float(to_others.var(axis=1).mean())

    without_direction = float(np.square(names - names.mean(axis=0)).mean())
    return max(among_names, without_direction, 1e-9)
