"""Calibration of noise: the aggregator whose labels tell most within a budget.

Votes are simulated; private votes are never used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from tacit.errors import BudgetError, InputError
from tacit.learners.common.parameters import array_of, numbers_of, one_of, real, whole
from tacit.learners.pate.aggregators import Aggregator, aggregator_of
from tacit.learners.pate.filter import allowance_of, order_of
from tacit.mechanisms.noisy_argmax import label_event
from tacit.mechanisms.noisy_check import check_event
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Event, NoisyArgmax
from tacit.privacy.prices.three_outcomes import planned_price

Floats = NDArray[np.float64]

# Candidates: sigma over the number of teachers, sigma1 over sigma, and the threshold over the
# number of teachers.
_SIGMAS = np.concatenate([np.geomspace(0.01, 2.0, 24), 4.0 ** np.arange(1, 6)])
_CHECKS = np.geomspace(0.5, 8.0, 8)
_THRESHOLDS = np.linspace(0.2, 1.0, 9)

# Simulated draws of noise for each query.
_DRAWS = 8

# Labels beyond which students of the benchmark gain little.
ENOUGH = 1000

Payers = Sequence[tuple[Allowance, float]]
"""Allowances, and the sensitivity of a query to a record of those who have them, in votes."""


@dataclass(frozen=True)
class Calibration:
    """An aggregator's noise, in votes, and its expected number and accuracy of labels on votes like
    the simulated ones.

    `labels` and `accuracy` are of the answered queries; `sigma1` and `threshold` are None for
    GNMax.
    """

    aggregator: str
    sigma: float
    sigma1: float | None
    threshold: float | None
    labels: float
    accuracy: float

    def bits(self, n_classes: int) -> float:
        """Information of the labels about the truth, at most ENOUGH of them, if all wrong classes
        are equally likely.
        """
        # entropy of the truth given a label: Fano's bound, which is exact for such wrong classes
        wrong = min(1 - self.accuracy, 1 - 1 / n_classes)
        entropy = float(entr([wrong, 1 - wrong]).sum()) + wrong * math.log(n_classes - 1)
        return min(self.labels, ENOUGH) * (math.log(n_classes) - entropy) / math.log(2)

    def noise(self) -> Aggregator:
        """The aggregator of this noise."""
        return aggregator_of(
            self.aggregator, sigma=self.sigma, sigma1=self.sigma1, threshold=self.threshold
        )


def simulated_counts(
    n_queries: int, n_teachers: int, n_classes: int, accuracy: float, seed: int = 0
) -> Floats:
    """Votes per class of simulated teachers, of shape (n_queries, n_classes); class 0 is right.

    How many teachers are right differs by query: Beta(9 accuracy, 9 (1 - accuracy)). Of the wrong
    votes half fall on one class, as mistakes that teachers share do.
    """
    whole("n_queries", n_queries, 1, 10**9)
    whole("n_teachers", n_teachers, 1, 10**9)
    whole("n_classes", n_classes, 2, 10**6)
    rng = np.random.default_rng(whole("seed", seed, 0, 2**63 - 1))
    mean = real("accuracy", accuracy, 0.01, 0.99)
    right = rng.binomial(n_teachers, rng.beta(9 * mean, 9 * (1 - mean), n_queries))
    wrong = n_teachers - right
    if n_classes == 2:
        return np.column_stack([right, wrong]).astype(float)
    shared = rng.binomial(wrong, 0.5)
    rest = rng.multinomial(wrong - shared, np.full(n_classes - 2, 1 / (n_classes - 2)))
    return np.column_stack([right, shared, rest]).astype(float)


def calibrate(
    budget: float,
    counts: Any,
    *,
    delta: float = 1e-5,
    n_queries: int | None = None,
    aggregator: str | None = None,
    accuracy: float | None = None,
    truth: Any = None,
    seed: int = 0,
) -> Calibration:
    """Choose sigma, or sigma, sigma1 and threshold, for the labels that tell most, or that are
    right often enough.

    Parameters
    ----------
    budget : float
        Epsilon of the group that pays for its votes at sensitivity 1, at `delta`.
    counts : array of shape (simulated, classes)
        Votes per class that are public or simulated (`simulated_counts`); private votes would leak.
    delta : float, default=1e-5
    n_queries : int, optional
        Number of queries there are to answer; by default as many as `counts` has.
    aggregator : {"gnmax", "confident"}, optional
        By default the better of the two.
    accuracy : float, optional
        Share of the answered labels that should be right: the noise with most labels is chosen, or
        that with the most accurate ones if none reaches it. By default the noise is chosen whose
        labels tell most bits of the truth, if all wrong classes are equally likely; labels beyond
        1000 do not count.
    truth : array of shape (simulated,), optional
        The right class of each; by default class 0, as `simulated_counts` has it.
    seed : int, default=0
        Of the simulated noise.

    Returns
    -------
    Calibration

    Raises
    ------
    BudgetError
        If no noise considered allows a single query.

    Examples
    --------
    >>> import tacit
    >>> votes = tacit.pate.simulated_counts(1000, 250, 10, accuracy=0.85)
    >>> tacit.pate.calibrate(1.0, votes, n_queries=9000).labels > 50
    True
    """
    allowed = Budget.approx(
        real("budget", budget, 1e-3, 1e6), real("delta", delta, 1e-30, 1 - 1e-9)
    )
    choice = best(
        [(allowance_of(allowed, None), 1.0)], counts, n_queries, aggregator, accuracy, truth, seed
    )
    if choice is None:
        fault = f"budget {budget} at delta={rounded_up(delta)} allows no query at any noise tried"
        raise BudgetError(f"{fault}; pass votes of more teachers")
    return choice


def best(
    payers: Payers,
    counts: Any,
    n_queries: int | None = None,
    aggregator: str | None = None,
    accuracy: float | None = None,
    truth: Any = None,
    seed: int = 0,
) -> Calibration | None:
    """`calibrate` for several payers; None if no noise considered allows a single query."""
    remedy = "pass votes per class, >= 0, of shape (simulated, classes)"
    votes = numbers_of(counts, "counts", remedy)
    if votes.ndim != 2 or 0 in votes.shape or not np.all(np.isfinite(votes) & (votes >= 0)):
        raise InputError(
            f"counts have shape {votes.shape}, or hold a negative or infinite number; {remedy}"
        )
    if aggregator is not None:
        one_of("aggregator", aggregator, ("confident", "gnmax"))
    if n_queries is None:
        n_queries = len(votes)
    else:
        n_queries = whole("n_queries", n_queries, 1, 2**53)
    if accuracy is not None:
        real("accuracy", accuracy, 0, 1)

    rule = f"pass the class of each of {len(votes)} simulated queries, a whole number"
    true_class = np.zeros(len(votes), dtype=np.int64)
    if truth is not None:
        true_class = array_of(truth, "truth", rule)
    if true_class.shape != (len(votes),) or true_class.dtype.kind not in "iu":
        raise InputError(f"truth has shape {true_class.shape} and dtype {true_class.dtype}; {rule}")

    rng = np.random.default_rng(whole("seed", seed, 0, 2**63 - 1))
    candidates = _candidates(votes, true_class, payers, n_queries, aggregator, rng)
    if accuracy is None:
        n_classes = max(2, votes.shape[1])
        return max(candidates, key=lambda choice: choice.bits(n_classes), default=None)
    return max(
        candidates, key=lambda choice: (min(choice.accuracy, accuracy), choice.labels), default=None
    )


def _candidates(
    votes: Floats,
    true_class: NDArray[Any],
    payers: Payers,
    n_queries: int,
    aggregator: str | None,
    rng: np.random.Generator,
) -> Iterator[Calibration]:
    """Yield the noise that allows a query, with the labels that it buys on the simulated votes."""
    n_teachers = float(votes.sum(axis=1).max())
    # of each draw: (draws, queries, classes) and (draws, queries)
    label_noise = rng.standard_normal((_DRAWS, *votes.shape))
    check_noise = rng.standard_normal((_DRAWS, len(votes)))
    top_count = votes.max(axis=1)

    for sigma in (_SIGMAS * n_teachers).tolist():
        is_right = np.argmax(votes + sigma * label_noise, axis=2) == true_class
        label_cost = _share(payers, label_event, sigma)
        n_affordable = min(n_queries, math.floor(1 / label_cost))
        if aggregator != "confident" and n_affordable >= 1:
            yield Calibration(
                "gnmax", sigma, None, None, float(n_affordable), float(is_right.mean())
            )
        if aggregator == "gnmax":
            continue

        for sigma1 in (_CHECKS * sigma).tolist():
            check_cost = _share(payers, check_event, sigma1)
            # the first query must be affordable with its label
            allows_query = check_cost + label_cost <= 1
            for threshold in (_THRESHOLDS * n_teachers).tolist():
                passes = top_count + sigma1 * check_noise >= threshold
                pass_rate = float(passes.mean())
                query_cost = check_cost + pass_rate * label_cost
                n_labels = pass_rate * min(n_queries, math.floor(1 / query_cost))
                if n_labels >= min(1.0, n_queries / 2) and allows_query:
                    accuracy = float(is_right[passes].mean())
                    yield Calibration("confident", sigma, sigma1, threshold, n_labels, accuracy)


def _share(
    payers: Payers, event_of: Callable[[float, float, float | None], Event], sigma: float
) -> float:
    """Return the largest share of an allowance that a label or check with this noise takes, before
    prices are certified.
    """
    events = [
        (allowance, event_of(sigma, sensitivity, order_of(allowance)))
        for allowance, sensitivity in payers
    ]
    return max(_planned(allowance, event) / allowance.total for allowance, event in events)


def _planned(allowance: Allowance, event: Event) -> float:
    """Return what an event will cost.

    The price of an argmax is not certified here, since only the noise that is chosen has to be.
    """
    if not isinstance(event, NoisyArgmax):
        return allowance.cost(event)
    return planned_price(event.order, 1 / event.noise_multiplier) * event.rho * event.order
