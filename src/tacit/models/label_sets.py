"""From scores to sets of labels, where a record may have several: a probability for each label, and
a threshold that it must reach.

A row with scores s_k has label k with probability

    p_k = 1 / (1 + exp(-scale s_k)),

independently of the other labels, and is predicted to have it where p_k reaches the threshold of
the label. A threshold maximises the expected F1 of its label over rows whose probabilities are
known, where F1 is twice the number of right answers over the number of answers and of records with
the label. All of this is post-processing of a release and costs nothing.

Source: the thresholds of the best expected F1 are in Lipton, Elkan and Naryanaswamy 2014 ("Optimal
thresholding of classifiers to maximize F1 measure").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit.errors import InputError
from tacit.models.probabilities import ARRAY, LARGEST_SCALE
from tacit.models.rows import Floats

# the name of the array of thresholds in a release
THRESHOLDS = "thresholds"

# share of a probability by which a threshold lies below it, far above rounding errors
MARGIN = 1e-6

# between the labels of a row, in CSV files of predictions
SEPARATOR = "|"

# counts of labels, by which some are rare
RareBy = Literal["counts in the test set", "counts that the release holds", "training counts"]

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Rule by which probabilities of labels, and sets of labels, follow from scores.

    Parameters
    ----------
    scale : float
        Scores are multiplied by it, and become logits.
    thresholds : array of shape (K,)
        A label is predicted where its probability is at least its threshold; from 0 to 1.
    """

    scale: float
    thresholds: Floats

    def __post_init__(self) -> None:
        if not 0 < self.scale <= LARGEST_SCALE:
            raise InputError(
                f"scale={self.scale} must be above 0 and at most {LARGEST_SCALE:g}; correct it"
            )
        within = (self.thresholds >= 0) & (self.thresholds <= 1)
        if not within.all():
            raise InputError("thresholds must be from 0 to 1; correct them")

    def arrays(self) -> dict[str, Floats]:
        """The arrays that a release carries."""
        return {ARRAY: np.array([self.scale, 0.0]), THRESHOLDS: self.thresholds}

    def probabilities(self, scores: Floats) -> Floats:
        """Probability of each label, of shape (n, K), from scores of that shape."""
        return np.asarray(expit(self.scale * scores))

    def chosen(self, scores: Floats) -> NDArray[np.bool_]:
        """Tell which labels each row is predicted to have, of shape (n, K)."""
        return np.asarray(self.probabilities(scores) >= self.thresholds)


def stated_label_sets(arrays: Arrays) -> LabelSets | None:
    """Read the rule that the arrays of a release state; None if records have one label each."""
    if THRESHOLDS not in arrays:
        return None
    return LabelSets(float(arrays[ARRAY][0]), np.asarray(arrays[THRESHOLDS], np.float64))


def label_sets_misfit(arrays: Arrays, n_classes: int, *, several: bool) -> str | None:
    """Describe the fault of the thresholds in a release; None if they fit, or rightly are absent.

    `several` says whether its document states that a record may have several labels.
    """
    thresholds = arrays.get(THRESHOLDS)
    if (thresholds is not None) != several:
        return "thresholds are there if a record may have several labels, and only then"
    if thresholds is None:
        return None
    if thresholds.dtype != np.float64 or thresholds.shape != (n_classes,):
        return (
            f"{THRESHOLDS} of type {thresholds.dtype} and shape {thresholds.shape} must be float64"
            f" of shape ({n_classes},)"
        )
    if ARRAY not in arrays:
        return f"{THRESHOLDS} need the array {ARRAY}"
    try:
        stated_label_sets(arrays)
    except InputError as error:
        return f"{THRESHOLDS}: {error}"
    return None


def expected_f1_thresholds(probabilities: Floats) -> Floats:
    """Return the threshold of each label, (K,), of the greatest expected F1 over rows with these
    probabilities, (m, K).

    The expected F1 of the rows that reach a threshold is taken as twice the sum of their
    probabilities over their number and the sum of all probabilities. The threshold lies just below
    the least of them (by `MARGIN`, or halfway to the next lower probability if that is nearer), so
    that this row reaches it too where its probability is rounded otherwise, as in an ONNX file.

    Examples
    --------
    >>> import numpy as np
    >>> expected_f1_thresholds(np.array([[0.9], [0.6], [0.1]]))
    array([0.5999994])
    """
    n_rows, n_labels = probabilities.shape
    thresholds = np.ones(n_labels)
    answered = np.arange(1, n_rows + 1)
    for label in range(n_labels):
        descending = np.sort(probabilities[:, label])[::-1]
        f1 = 2 * np.cumsum(descending) / (answered + descending.sum())
        least = descending[int(np.argmax(f1))]

        gap = MARGIN * least
        lower = descending[descending < least]
        if len(lower) > 0:
            gap = min(gap, (least - lower[0]) / 2)
        thresholds[label] = least - gap
    return thresholds
