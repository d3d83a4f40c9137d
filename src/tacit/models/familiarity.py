"""How unfamiliar a row is to a posterior of class means, beside rows simulated from it.

All of this is post-processing of a release, so it has no privacy cost. Coordinates are those of
`posterior.py`: unit rows about the public centre, along the public principal axes, with variances
w. Class c has the mean m_c, with the variance v_c; h is the within-class share.

Strangeness. The log likelihood ratio of a row u under the public prior and under the best class,

    s(u) = log N(u; 0, W) - max_c log N(u; r m_c, V + r^2 v_c),

where W has the sum of w and V the sum of (h + `MARGIN`) w, both softened: the power `SOFTNESS`
keeps directions in which public rows hardly vary from deciding alone. Unit rows satisfy |m|^2 + h =
1 on average. Where the posterior's means are longer than that, they and their deviations are
multiplied by the factor r that corrects it (`Familiarity.shrinkage`). Rows that are known to be
foreign may stand in for the public prior: the first term is then N(u; f, W_f), with their mean and
variances.

Simulation of familiar rows, of class c with the probability of its share of all records:

    u = a m/|m| + sqrt(1 - a^2) z,   m = r (m_c + e),   e ~ N(0, v_c),   a = 1/sqrt(1 + q^2 t^2),

where z is a direction orthogonal to m, drawn with the variances W, and t^2 ~ 4/chi^2_6 gives the
distance from the class mean the tails of `calibration.py`. q is such that the mean of a is |m|, as
it is for unit rows with mean m. All simulated rows have norm 1, as real ones do.

Where noise dominates the sums (mean clarity below `CLEAR`) and names do not help, a share of the
class means is drawn about the grand mean instead, with the variance between classes: the posterior
says little about them.

The unfamiliarity of a row is the share of the simulated rows with a smaller s. Where the constants
were chosen, and how well the shares hold, is said in docs/none-of-these.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.models.calibration import FREEDOM
from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import LEAST_BETWEEN
from tacit.models.quadratic import FLOOR, SOFTNESS, log_densities
from tacit.models.rows import Floats

# Number of simulated rows, and entries of the rows or of their scores, at most.
ROWS = 4096
ENTRIES = 2**22

# Variance of the rows of a class beyond the within-class share, as a multiple of w.
MARGIN = 0.2

# Mean clarity of the sums below which class means may be lost in noise.
CLEAR = 0.03

# A class mean of a unit row is shorter than 1.
LONGEST = 0.98

# Foreign rows at which their own moments and those of public rows weigh the same.
FEW_FOREIGN = 100

# Ratios q that are compared, and quantiles of t for the mean of a.
RATIOS = np.geomspace(0.02, 60.0, 400)
QUANTILES = 512


@dataclass(frozen=True, eq=False)
class Familiarity:
    """The rule of the module's docstring for one release."""

    model: CarriedPosterior

    @property
    def shrinkage(self) -> float:
        """The factor r: 1, or less where |m|^2 + h is above 1 on average over records."""
        posterior = self.model.posterior
        squares = (posterior.mean**2 + posterior.variance).sum(axis=1)
        mean_square = float(posterior.sizes @ squares / posterior.sizes.sum())
        return min(1.0, math.sqrt(max(1 - posterior.within, LEAST_BETWEEN) / mean_square))

    @property
    def spectrum(self) -> Floats:
        """The softened variances W of public rows, (p,), with the sum of w."""
        return softened(self.model.variances, float(self.model.variances.sum()))

    def strangeness(self, rows: Floats, foreign: Floats | None = None) -> Floats:
        """Return s of rows (b, p) along the axes, (b,).

        `foreign`, of shape (m, p), holds rows that are known to be of no class.
        """
        posterior = self.model.posterior
        r = self.shrinkage

        centre = np.zeros(len(self.spectrum))
        variances = self.spectrum
        if foreign is not None:
            weight = len(foreign) / (len(foreign) + FEW_FOREIGN)
            centre = weight * foreign.mean(axis=0)
            mixed = weight * foreign.var(axis=0) + (1 - weight) * self.model.variances
            variances = softened(mixed, float(mixed.sum()))
        background = log_densities(centre[None], variances[None]).of(rows)[:, 0]

        within = (posterior.within + MARGIN) * self.spectrum
        of_classes = log_densities(r * posterior.mean, within + r**2 * posterior.variance)
        return np.asarray(background - of_classes.of(rows).max(axis=1))

    def simulated(self) -> Floats:
        """Simulate familiar rows, (n, p); the same ones each time."""
        posterior = self.model.posterior
        n_classes, width = posterior.mean.shape
        n = max(1, min(ROWS, ENTRIES // max(n_classes, width)))
        rng = np.random.default_rng(0)

        means = self._means(n, rng)
        lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        directions = means / lengths

        # the directions z, orthogonal to the mean
        across = rng.normal(size=(n, width)) * np.sqrt(self.spectrum)
        across -= (across * directions).sum(axis=1, keepdims=True) * directions
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)

        tails = np.sqrt((FREEDOM - 2) / rng.chisquare(FREEDOM, size=(n, 1)))
        ratios = _ratios(np.minimum(lengths, LONGEST), tails)
        along = 1 / np.sqrt(1 + (ratios * tails) ** 2)
        return np.asarray(along * directions + np.sqrt(1 - along**2) * across)

    def _means(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw class means r (m_c + e) of n rows, (n, p)."""
        posterior = self.model.posterior
        r = self.shrinkage
        width = posterior.mean.shape[1]

        # The same number of rows for equal shares, whatever the order of the draws.
        shares = np.cumsum(posterior.sizes) / posterior.sizes.sum()
        labels = np.searchsorted(shares, (np.arange(n) + 0.5) / n)
        labels = np.minimum(labels, len(shares) - 1)
        errors = rng.normal(size=(n, width)) * np.sqrt(posterior.variance[labels])
        means = r * (posterior.mean[labels] + errors)

        lost = rng.random(n) < self._lost_share()
        grand = r * (posterior.sizes @ posterior.mean) / posterior.sizes.sum()
        between = max(1 - posterior.within - float(grand @ grand), LEAST_BETWEEN)
        around = rng.normal(size=(n, width)) * np.sqrt(between * self.spectrum)
        means[lost] = grand + around[lost]
        return np.asarray(means)

    def _lost_share(self) -> float:
        """Share of the class means that are drawn about the grand mean."""
        if self.model.names is not None:
            return 0.0
        return max(0.0, 1 - float(self.model.clarity.mean()) / CLEAR)


def share_below(reference: Floats, values: Floats) -> Floats:
    """Share of the reference values that are smaller, for each value.

    >>> share_below(np.array([3.0, 1.0, 2.0, 2.0]), np.array([0.0, 2.0, 9.0]))
    array([0.  , 0.25, 1.  ])
    """
    return np.asarray(np.searchsorted(np.sort(reference), values, side="left") / len(reference))


def softened(variances: Floats, total: float) -> Floats:
    """Variances (p,) to the power `SOFTNESS`, with this sum."""
    powers = (variances + FLOOR * variances.max()) ** SOFTNESS
    return np.asarray(powers * total / powers.sum())


def _ratios(lengths: Floats, tails: Floats) -> Floats:
    """The ratio q of each row at which the mean of 1/sqrt(1 + q^2 t^2) is its length; shapes
    (n, 1).
    """
    quantiles = np.quantile(tails, (np.arange(QUANTILES) + 0.5) / QUANTILES)
    means = (1 / np.sqrt(1 + np.multiply.outer(RATIOS, quantiles) ** 2)).mean(axis=1)
    # the mean falls as q rises
    return np.asarray(np.interp(-lengths[:, 0], -means, RATIOS))[:, None]
