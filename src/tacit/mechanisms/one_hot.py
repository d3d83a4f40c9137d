"""Noise on a one-hot label, and on histograms of labels.

Unit: change one label. It changes two entries of a one-hot label, or two cells of a histogram of
disjoint records, by 1 each: L1 sensitivity 2, L2 sensitivity sqrt(2).
Per person, each of m labels counts floor(2^32/m) in units of 2^-32, so that all labels of a person
change a histogram by 2 in L1, whatever clusters they are in.
Theorem, Laplace noise of scale 2/epsilon on each entry, rounded: epsilon-DP [Dwork et al. 2006].
Under `noise="opendp"` it is discrete: epsilon-DP [Ghosh, Roughgarden and Sundararajan 2009, on
integer multiples of a unit]. The event is pure DP, as in `counts.py`.
Theorem, Gaussian noise of standard deviation z sqrt(2), rounded or discrete: 1/(2 z^2)-zCDP [as in
`gaussian.py`].
Source: ALIBI [Malek et al. 2021] for one-hot labels; Ghazi et al. 2021 for histograms of public
clusters.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.exponential import noise_scale
from tacit.mechanisms.gaussian import UNIT
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.events import Gaussian, PureDP

MOVED = 2  # entries that one label changes, by 1 each


def noisy_one_hot(
    labels: Integers, n_classes: int, cost: PureDP | Gaussian, noise: NoiseSource
) -> NDArray[np.float64]:
    """One-hot labels with noise, multiples of 2^-32, of shape (n, n_classes)."""
    values = np.zeros((len(labels), n_classes), dtype=np.int64)
    values[np.arange(len(labels)), labels] = UNIT
    return np.asarray(_noisy(values, UNIT, cost, noise) / UNIT)


def noisy_histogram(
    labels: Integers,
    which: Integers,
    shape: tuple[int, int],
    cost: PureDP,
    noise: NoiseSource,
    sizes: Integers | None = None,
) -> NDArray[np.float64]:
    """Number of records of each cluster and class, with noise: of shape (clusters, classes), some
    negative.

    `sizes`, of shape (n,), has the number of labels of each label's person, by which it counts
    less.
    """
    counts, unit = np.zeros(shape, dtype=np.int64), 1 if sizes is None else UNIT
    np.add.at(counts, (which, labels), 1 if sizes is None else UNIT // sizes)
    return np.asarray(_noisy(counts, unit, cost, noise) / unit)


def _noisy(values: Integers, unit: int, cost: PureDP | Gaussian, noise: NoiseSource) -> Integers:
    if not cost.bounded:
        return values
    if isinstance(cost, PureDP):
        return noise.laplace(values, scale=noise_scale(MOVED * unit, cost.epsilon))
    return noise.gaussian(
        values, scale=cost.noise_multiplier * math.sqrt(MOVED) * (1 + 2.0**-50) * unit
    )
