"""The rows of class names as start of a linear head and centre of its ridge, at a scale found from
its gradients.

The head is theta = s T + W. T holds the names' directions less their mean, W starts at zero and has
the ridge. All of this is post-processing of noisy gradients and counts, so it has no privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tacit.models.rows import Floats

Gradient = Callable[[Floats], Floats]
"""From a head of shape (C, width) to the sum of its gradients over records."""

# of cosines to right names as logits; names alone fit best at 17 to 25 on three sets of texts
SCALE = 20.0
# standard deviations of the slope over its spread, for right and for wrong names
OF_RIGHT, OF_WRONG = 5.0, 2.0
# standard deviation of the noise in that ratio at which no more gradients are averaged
PRECISION = 2.0
MEAN_LENGTH = 0.4  # squared norm that the mean of a class's unit rows is assumed to have


@dataclass(eq=False)
class NameCentre:
    """s T for a descent of `steps` noisy gradients; s is zero until enough of them were seen.

    At W = 0 the loss falls along T by a, the mean cosine of rows to their own class's name less
    that to all. If cosines to other names have variance v, then a/v is the scale of log odds
    (linear discriminant), about 20 for right and 0 for wrong names. It is averaged over the first
    gradients, which are taken near W = 0. s is `expected_scale` of that ratio times the share of
    noise in a class's sum of rows: the better the records are seen, the less the names are needed.

    Parameters
    ----------
    names : ndarray of shape (C, d)
        Unit rows.
    counts : ndarray of shape (C,)
        Noisy or declared; `counts_noise` is the standard deviation of their noise.
    noise, steps : float, int
        Standard deviation of the noise on an entry of each gradient, and number of gradients.
    shrinkage : float
        By which factor clipping or scaling shortens a record's gradient of norm 1, which it has
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
        length = math.hypot(1.0, self.intercept)
        apart = self.names - self.names.mean(axis=0)
        constant = np.zeros((len(apart), int(self.intercept > 0)))
        self.directions = np.hstack([apart * length, constant])
        error = self.counts_noise * math.sqrt(len(self.counts))  # of the number of records
        records = max(float(self.counts.sum()), error / 2, 1.0)
        self._error = error / records
        self._curvature = self.shrinkage * records * cosine_variance(self.names)
        # of a gradient's a/v
        self._deviation = self.noise * float(np.linalg.norm(self.directions)) / self._curvature
        self._used = min(
            self.steps, max(1, math.ceil(min((self._deviation / PRECISION) ** 2, self.steps)))
        )

    @property
    def head(self) -> Floats:
        """s T, of shape (C, width)."""
        return self.scale * self.directions

    def facts(self) -> dict[str, float | str]:
        """For the card."""
        return {"names": "start and centre of the ridge", "scale of the names": self.scale}

    def follow(self, gradient: Gradient) -> Gradient:
        """The gradient at s T + W as a function of W, which finds s on the way."""

        def followed(offset: Floats) -> Floats:
            result = gradient(offset + self.head)
            if len(self._slopes) < self._used:
                self._slopes.append(-float(np.vdot(result, self.directions)) / self._curvature)
                if len(self._slopes) == self._used:
                    ratio, deviation = (
                        float(np.mean(self._slopes)),
                        self._deviation / math.sqrt(self._used),
                    )
                    self.scale = expected_scale(ratio, deviation, self._error) * self._noise_share()
            return result

        return followed

    def _noise_share(self) -> float:
        """Mean share of noise, of the sampling too, in the squared norm of a class's sum of rows
        over all steps.
        """
        sizes = np.maximum(self.counts - self.counts_noise, 0.0)
        noise = (self.noise / self.shrinkage) ** 2 / self.steps * self.names.shape[1] + np.maximum(
            self.counts, 1.0
        )
        return float(np.mean(noise / (noise + MEAN_LENGTH * sizes**2)))


def expected_scale(ratio: float, deviation: float, error: float = 0.0) -> float:
    """Expected scale of right names times 2 p - 1, where p is the probability that they are right;
    0 for p below 1/2.

    The measured a/v has noise of standard deviation `deviation`, and a relative `error` from the
    number of records. It is assumed normal about `SCALE` for right and about 0 for wrong names,
    either as likely, and `SCALE` suffices.
    """
    of_records = (SCALE * error) ** 2
    right, wrong = deviation**2 + OF_RIGHT**2 + of_records, deviation**2 + OF_WRONG**2
    short = max(SCALE - ratio, 0.0)
    log_odds = 0.5 * (max(ratio, 0.0) ** 2 / wrong - short**2 / right + math.log(wrong / right))
    if_right = SCALE - short * OF_RIGHT**2 / right
    return max(if_right, 0.0) * max(math.tanh(log_odds / 2), 0.0)


def cosine_variance(names: Floats) -> float:
    """Variance of a row's cosines to other names, as among the names; at least that of rows without
    direction.
    """
    n = len(names)
    others = (names @ names.T)[~np.eye(n, dtype=bool)].reshape(n, max(n - 1, 0))
    among = float(others.var(axis=1).mean()) if n > 2 else 0.0
    isotropic = float(np.square(names - names.mean(axis=0)).mean())
    return max(among, isotropic, 1e-9)
