"""Noise of a sum of tables, each with noise of another scale or law.

The noise of a cell of the sum is the sum of the noises of that cell in each table. Gaussian noises
add up to Gaussian noise, and their variances add. A sum with Laplace noises has no such law. Its
characteristic function is

    phi(t) = exp(-(s t)^2 / 2) times the product of 1 / (1 + (b t)^2) over all Laplace noises,

where s^2 is the variance of all Gaussian noises and b the scale of a Laplace noise. A difference of
a times the noise of some cells and b times that of others has this form too. Let X be such a noise,
divided by its standard deviation. Then, with nodes t_j = (j + 1/2) h and h = pi / R,

    P(X >= x) = 1/2 - (h / pi) times the sum over j of phi(t_j) sin(t_j x) / t_j

but for these errors, whose bounds are added, so that no tail is stated smaller than it is:

- Aliases: at most P(|X| > R) for |x| <= R [Davies 1973]. A Laplace noise of variance 2 v has
  E exp(X) = 1/(1 - v), and Gaussian noise of that variance less. As -log(1 - v) is convex and 0 at
  0, a sum of variance 1 has E exp(X) <= 1/(1 - 1/2), so P(|X| > R) <= 4 exp(-R).
- Nodes that are left out, beyond t: phi falls by (1 + (b t)^2)/(1 + (b u)^2) or more from t to u, b
  the largest Laplace scale. So they add at most phi(t) (1 + (b t)^2) log(1 + (b t)^-2) / (2 pi).
- Lines between the x at which the sum is computed: X is unimodal with mode 0 [Wintner 1938], so
  its tail is convex above 0, where a line is no less than it. Below 0 the tail is concave, and lies
  above a line by at most half of the largest second difference.

Source: Gil-Pelaez 1951 for the inversion.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.measure.intervals import Floats, Noise

REACH = 32.0
"""Standard deviations beyond which no tail is computed; aliases are below 1e-13."""

NODES = 2048

# values of x in a period of 2 REACH
_POINTS = 4096


@dataclass(frozen=True)
class SummedNoise(Noise):
    """Noise of each cell of a sum of tables, some with Laplace noise.

    `scale` is its standard deviation, `gaussian` that of all Gaussian noises together, and
    `laplaces` has the scale of each Laplace noise with the number of noises that have it.
    """

    gaussian: float = 0.0
    laplaces: tuple[tuple[float, int], ...] = ()

    @property
    def is_normal(self) -> bool:
        return False

    def tails(
        self, a: Floats, cells_a: Floats, b: Floats, cells_b: Floats
    ) -> Callable[[Floats], Floats]:
        terms = np.column_stack([np.ravel(values) for values in (a, cells_a, b, cells_b)])
        # few rows differ, and each has a law of its own
        distinct, law_of_row = np.unique(terms, axis=0, return_inverse=True)
        laws = _Laws.of(self, *distinct.T)
        return lambda x: laws.tail(x, law_of_row.ravel())


@dataclass(frozen=True)
class _Laws:
    """Tails of several differences of noises, each divided by its standard deviation.

    `deviations` and `slack` have shape (laws,), `tails` has shape (laws, points): those at the
    points from 0 to REACH. `slack` bounds the errors of aliases and of nodes that are left out, and
    `bends` those of lines below 0.
    """

    deviations: Floats
    tails: Floats
    slack: Floats
    bends: Floats

    @classmethod
    def of(
        cls, noise: SummedNoise, a: Floats, cells_a: Floats, b: Floats, cells_b: Floats
    ) -> _Laws:
        """Invert the characteristic functions of the differences, of shape (laws,)."""
        deviations = noise.scale * np.sqrt(a * a * cells_a + b * b * cells_b)
        step = math.pi / REACH
        nodes = (np.arange(NODES) + 0.5) * step

        # of shape (laws, nodes)
        factors = [(a / deviations, cells_a), (b / deviations, cells_b)]
        logarithm = np.zeros((len(a), NODES))
        largest = np.zeros(len(a))
        for factor, cells in factors:
            gaussian = noise.gaussian * factor
            logarithm -= cells[:, None] * (gaussian[:, None] * nodes) ** 2 / 2
            for scale, number in noise.laplaces:
                width = np.where(cells > 0, scale * factor, 0.0)
                largest = np.maximum(largest, width)
                logarithm -= (number * cells)[:, None] * np.log1p((width[:, None] * nodes) ** 2)
        phi = np.exp(logarithm)

        # the sum over j of phi(t_j)/t_j sin(t_j x) at all x = 2 REACH m / _POINTS
        half = np.exp(1j * math.pi * np.arange(_POINTS) / _POINTS)
        sums = np.fft.ifft(phi / nodes, _POINTS, axis=1) * _POINTS
        sines = (sums * half).imag[:, : _POINTS // 2 + 1]
        tails = 0.5 - step / math.pi * sines

        rest = (largest * nodes[-1]) ** 2
        left_out = phi[:, -1] * (1 + rest) * np.log1p(1 / rest) / (2 * math.pi)
        slack = left_out + 4 * math.exp(-REACH)
        bends = np.abs(np.diff(tails, 2, axis=1)).max(axis=1) / 2
        return cls(deviations, tails, slack, bends)

    def tail(self, x: Floats, law_of_row: NDArray[np.int64]) -> Floats:
        """Probability of x or more; each row of x, or each value, has the law of its place."""
        law = law_of_row[:, None]
        z = np.reshape(x, (len(law), -1)) / self.deviations[law]

        point = np.minimum(np.abs(z) / (2 * REACH) * _POINTS, _POINTS // 2)
        first = np.minimum(point.astype(np.int64), _POINTS // 2 - 1)
        share = point - first
        above = (1 - share) * self.tails[law, first] + share * self.tails[law, first + 1]

        tail = np.where(z >= 0, above, 1 - above + self.bends[law]) + self.slack[law]
        return np.reshape(np.minimum(tail, 1.0), np.shape(x))


def summed(noises: Sequence[Noise]) -> Noise:
    """Return the noise of a cell of the sum of tables with these noises, in whatever order."""
    # exactly rounded sums, which do not depend on the order
    gaussian = math.sqrt(math.fsum(noise.scale**2 for noise in noises if not noise.laplace))
    scales = Counter(noise.scale for noise in noises if noise.laplace and noise.scale > 0)
    if not scales:
        return Noise(gaussian)
    if len(noises) == 1:
        return noises[0]
    variance = math.fsum(noise.variance for noise in noises)
    return SummedNoise(
        math.sqrt(variance), gaussian=gaussian, laplaces=tuple(sorted(scales.items()))
    )
