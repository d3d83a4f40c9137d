"""Released sums and counts of classes, with their noise: one number for all classes, or one for
each, as where owners who list other classes add their sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.models.rows import Floats


@dataclass(frozen=True)
class NoisySums:
    """Released sums (C, p) along the axes and counts (C,) of classes, with the standard deviations
    of their noise: one for all classes, or one for each, (C,).
    """

    sums: Floats
    noise: float | Floats
    counts: Floats
    count_noise: float | Floats

    def __post_init__(self) -> None:
        """Keep noise that is the same for all classes as one number, so that the bits of what
        follows do not depend on how it was passed.
        """
        object.__setattr__(self, "noise", one_if_equal(self.noise))
        object.__setattr__(self, "count_noise", one_if_equal(self.count_noise))

    @property
    def noise_column(self) -> float | Floats:
        """Noise of the sums that broadcasts with them, (C, 1) if it differs between classes."""
        return column(self.noise)

    @property
    def mean_noise(self) -> float:
        """Root mean square, over the classes, of the noise of a sum on a coordinate."""
        return root_mean_square(self.noise)

    @property
    def mean_count_noise(self) -> float:
        """Root mean square, over the classes, of the noise of a count."""
        return root_mean_square(self.count_noise)


def one_if_equal(noise: float | Floats) -> float | Floats:
    """Noise of all classes as one number if they have the same."""
    values = np.unique(noise)
    if len(values) == 1:
        return float(values[0])
    return noise


def column(noise: float | Floats) -> float | Floats:
    """Noise of classes that broadcasts with arrays of shape (C, ...); one number stays as it is."""
    if isinstance(noise, np.ndarray):
        return noise[:, None]
    return noise


def root_mean_square(noise: float | Floats) -> float:
    """Root mean square of the noise of classes; one number stays as it is, to the bit."""
    if isinstance(noise, np.ndarray):
        return math.sqrt(float(np.mean(noise**2)))
    return noise
