"""Sets of labels from scores: scale, offsets and thresholds from rows simulated from a release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from tacit.models.label_sets import LabelSets, expected_f1_thresholds
from tacit.models.rows import Floats

# bounds of the logarithm of the scale of scores
LOG_SCALES = (-6.0, 6.0)

# offsets of logits lie within this
MOST_OFFSET = 40.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """Offsets that are added to the scores of each label, (K,), and the rule of sets after that."""

    offsets: Floats
    label_sets: LabelSets


def calibrated(scores: Floats, labels: NDArray[np.bool_], shares: Floats) -> Calibration:
    """Return offsets, scale and thresholds of scores, all by post-processing.

    Parameters
    ----------
    scores : array of shape (m, K)
        Scores of rows simulated from what was released.
    labels : array of shape (m, K)
        Labels of these rows, drawn with the shares.
    shares : array of shape (K,)
        Share of the records that have each label.

    Notes
    -----
    The scale and the offsets are those of the least log-loss. The threshold of a label maximises
    the expected F1 over these rows.
    """
    scale, offsets = _least_log_loss(scores, labels, shares)
    # added to scores, which are multiplied by the scale afterwards
    offsets = offsets / scale
    probabilities = expit(scale * (scores + offsets))
    return Calibration(offsets, LabelSets(scale, expected_f1_thresholds(probabilities)))


def _least_log_loss(
    scores: Floats, labels: NDArray[np.bool_], shares: Floats
) -> tuple[float, Floats]:
    """Return the scale of scores (m, K) and the offsets of logits (K,) of the least log-loss."""
    spread = max(float(scores.std(axis=0).mean()), 1e-12)
    standard = (scores - scores.mean(axis=0)) / spread

    def loss(point: Floats) -> tuple[float, Floats]:
        """Mean log-loss summed over labels, and its gradient, at (scale, offsets)."""
        logits = point[0] * standard + point[1:]
        value = -float(np.where(labels, log_expit(logits), log_expit(-logits)).mean(axis=0).sum())
        errors = (expit(logits) - labels) / len(labels)
        return value, np.append((errors * standard).sum(), errors.sum(axis=0))

    start = np.append(1.0, logit(shares))
    lowest, highest = np.exp(LOG_SCALES) * spread
    bounds = [(lowest, highest)] + [(-MOST_OFFSET, MOST_OFFSET)] * len(shares)
    point = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    scale = float(point[0]) / spread
    return scale, np.asarray(point[1:] - scale * scores.mean(axis=0))
