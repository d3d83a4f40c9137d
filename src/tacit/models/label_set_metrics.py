"""How well sets of labels are predicted, where a record may have several.

Average precision, F1 and exact match are scikit-learn's (`average_precision_score`, `f1_score`,
`accuracy_score`). Means over labels are over those that the test set holds: without a record of a
label there is nothing to find. Expected calibration error treats each pair of a row and a label as
one answer: pairs are sorted into 15 bins of equal width by their probability, and the error is the
mean over pairs of the distance between the mean probability in their bin and the share of its pairs
that have the label.

Every figure with an interval is a smooth function of sums over rows, so its standard error follows
by Taylor linearization, as in `metrics.py`: row j adds the derivative of the figure with respect to
a weight of that row. The average precision of a label is

    A = 1 / P * sum over positive rows i of w_i a_i / b_i,

where a_i and b_i are the weights of the positive rows, and of all rows, that score at least as high
as row i, and P is the weight of all positive rows. Its derivative with respect to w_j is

    1 / P * (y_j a_j / b_j + sum over positive rows i with s_i <= s_j of (y_j / b_i - a_i / b_i^2)
             - y_j A).

Intervals are those of `intervals.py`, over rows or persons. Each figure is a mean with weights: in
the average precision of a label its positive rows count equally, in F1 a row counts by the number
of labels that it has or was given, in exact match rows count equally. The calibration error has no
interval. It is a sum of absolute values, which chance can only raise, so
an interval of this kind would be wrong for a model that is calibrated well.

With few records of a label its average precision is too high on average, and the intervals above
may be too short. In simulations of one label they held the truth in 96 to 97 % of test sets with 40
records of it, in 90 to 96 % with 10 and in 90 to 97 % with 4
(`benchmarks/measure/intervals_of_labels.csv`); `few_records` counts the labels that have fewer than
40.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import person_codes
from tacit.errors import InputError
from tacit.models.intervals import Interval, interval_of_mean, interval_of_share
from tacit.models.label_sets import RareBy
from tacit.models.rows import Floats

RARE = 1 / 3
BINS = 15

# records of a label from which on intervals hold their level, by simulation
ENOUGH_RECORDS = 40

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class LabelSetScores:
    """Quality of predicted sets of labels on a test set; intervals are at 95 %."""

    mean_average_precision: float
    """Mean of the average precision of the labels that the test set holds."""
    interval: Interval
    """Of the mean average precision."""
    rare_third: float | None
    """Mean average precision over the rarest third of all labels; None if the test set holds none
    of them."""
    rare_third_interval: Interval | None
    rare_by: RareBy
    """The counts by which labels are rare."""
    micro_f1: float
    """F1 of all pairs of a row and a label together."""
    micro_f1_interval: Interval
    macro_f1: float
    """Mean of the F1 of the labels that the test set holds."""
    macro_f1_interval: Interval
    exact_match: float
    """Share of the rows whose predicted set is the true one."""
    exact_match_interval: Interval
    calibration_error: float
    """Expected calibration error of all pairs of a row and a label."""
    per_label: dict[Any, float]
    """Average precision of each label; nan for labels that the test set does not hold."""
    few_records: int
    """Number of labels that the test set holds with fewer than ENOUGH_RECORDS records."""
    persons: int | None = None
    """Number of persons in the test rows, if that is known: intervals are over them."""


def evaluate_label_sets(
    truth: Truths,
    predicted: NDArray[Any],
    probabilities: Floats,
    classes: NDArray[Any],
    sizes: NDArray[Any] | None = None,
    persons: NDArray[Any] | None = None,
    *,
    rare_by: RareBy = "training counts",
) -> LabelSetScores:
    """Score predicted sets of labels against the true ones.

    Parameters
    ----------
    truth, predicted : arrays of shape (n, K)
        Which labels each row has, and which were predicted.
    probabilities : array of shape (n, K)
        By which average precision ranks rows.
    classes : array of shape (K,)
        The labels.
    sizes : array of shape (K,), optional
        Training records of each label, exact or noisy, by which labels are rare; by default those
        of the test set are counted.
    persons : array of shape (n,), optional
        Whose row each is; intervals are then over persons.
    rare_by : str, default="training counts"
        Origin of `sizes`.

    Raises
    ------
    InputError
        If no row has a label.
    """
    truth = np.asarray(truth, bool)
    predicted = np.asarray(predicted, bool)
    counts = truth.sum(axis=0)
    present = np.flatnonzero(counts)
    if not len(present):
        raise InputError("no row of the test set has a label; give rows that have some")

    codes = None
    n_persons = None
    if persons is not None:
        codes = person_codes(persons, len(persons))
        n_persons = int(codes.max()) + 1

    # the average precision of each label, (K,), and how rows add to the means over labels and to
    # their errors, (n,)
    if sizes is None:
        sizes = counts
        rare_by = "counts in the test set"
    rare = np.intersect1d(rarest(sizes), present)
    precisions = np.full(len(classes), np.nan)
    mean_parts = np.zeros(len(truth))
    mean_weights = np.zeros(len(truth))
    rare_parts = np.zeros(len(truth))
    rare_weights = np.zeros(len(truth))
    for label in present:
        precisions[label], parts = average_precision(truth[:, label], probabilities[:, label])
        weights = truth[:, label] / counts[label]
        mean_parts += parts / len(present)
        mean_weights += weights / len(present)
        if label in rare:
            rare_parts += parts / len(rare)
            rare_weights += weights / len(rare)

    mean = float(precisions[present].mean())
    rare_third = None
    rare_third_interval = None
    if len(rare):
        rare_third = float(precisions[rare].mean())
        rare_third_interval = interval_of_mean(rare_third, rare_parts, rare_weights, codes)

    micro, micro_parts, micro_weights = _micro_f1(truth, predicted)
    macro, macro_parts, macro_weights = _macro_f1(truth[:, present], predicted[:, present])
    matches = (truth == predicted).all(axis=1)
    match = float(matches.mean())
    match_weights = np.full(len(matches), 1 / len(matches))
    match_parts = (matches - match) * match_weights

    return LabelSetScores(
        mean_average_precision=mean,
        interval=interval_of_mean(mean, mean_parts, mean_weights, codes),
        rare_third=rare_third,
        rare_third_interval=rare_third_interval,
        rare_by=rare_by,
        micro_f1=micro,
        micro_f1_interval=interval_of_mean(micro, micro_parts, micro_weights, codes),
        macro_f1=macro,
        macro_f1_interval=interval_of_mean(macro, macro_parts, macro_weights, codes),
        exact_match=match,
        exact_match_interval=interval_of_share(match, match_parts, match_weights, codes),
        calibration_error=calibration_error(truth, probabilities),
        per_label=dict(zip(classes.tolist(), precisions.tolist(), strict=True)),
        few_records=int((counts[present] < ENOUGH_RECORDS).sum()),
        persons=n_persons,
    )


def rarest(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of the third of the labels with the fewest records, rounded up; ties by
    position.
    """
    return np.argsort(sizes, kind="stable")[: int(np.ceil(RARE * len(sizes)))]


def average_precision(truth: Truths, scores: Floats) -> tuple[float, Floats]:
    """Return the average precision of one label, and what each row adds to its error, (n,).

    At least one row must have the label. Rows of equal scores count as found together.
    """
    order = np.argsort(-scores, kind="stable")
    is_positive = truth[order].astype(np.float64)
    descending = scores[order]

    # for each row, the first and the last position of the rows with its score
    is_first = np.append(True, np.diff(descending) != 0)
    group = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(scores)) - 1

    # positive rows and all rows that score at least as high
    n_positive = np.cumsum(is_positive)[last][group]
    n_rows = (last + 1.0)[group]
    precision = n_positive / n_rows
    n_relevant = is_positive.sum()
    value = float((is_positive * precision).sum() / n_relevant)

    # sums over positive rows that score at most as high
    of_ones = _from_end(is_positive / n_rows)[first][group]
    of_shares = _from_end(is_positive * n_positive / n_rows**2)[first][group]
    gain = is_positive * (precision + of_ones - value) - of_shares

    parts = np.empty(len(scores))
    parts[order] = gain / n_relevant
    return value, parts


def _from_end(values: Floats) -> Floats:
    """Sums of each entry and all that follow it."""
    return np.cumsum(values[::-1])[::-1]


def _micro_f1(truth: Truths, predicted: Truths) -> tuple[float, Floats, Floats]:
    """F1 of all pairs together, 0 if no label occurs or is predicted; parts and weights of rows."""
    right = 2.0 * (truth & predicted).sum(axis=1)
    total = (truth.sum(axis=1) + predicted.sum(axis=1)).astype(np.float64)
    value = float(right.sum() / total.sum())
    weights = total / total.sum()
    return value, (right - value * total) / total.sum(), weights


def _macro_f1(truth: Truths, predicted: Truths) -> tuple[float, Floats, Floats]:
    """Mean F1 of labels that all occur; parts and weights of rows."""
    parts = np.zeros(len(truth))
    weights = np.zeros(len(truth))
    values = []
    for label in range(truth.shape[1]):
        value, label_parts, label_weights = _micro_f1(truth[:, [label]], predicted[:, [label]])
        values.append(value)
        parts += label_parts / truth.shape[1]
        weights += label_weights / truth.shape[1]
    return float(np.mean(values)), parts, weights


def calibration_error(truth: Truths, probabilities: Floats) -> float:
    """Return the expected calibration error of all pairs of a row and a label."""
    gaps = np.zeros(BINS)
    for label in range(truth.shape[1]):
        column = probabilities[:, label]
        # a probability of 1 belongs to the last bin
        places = np.minimum((column * BINS).astype(np.int64), BINS - 1)
        gaps += np.bincount(places, weights=column - truth[:, label], minlength=BINS)
    return float(np.abs(gaps).sum() / truth.size)
