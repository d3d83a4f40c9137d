"""Priors of labels: how likely each class is for a record, by what is public or paid for.

A prior is an array of shape (priors, classes) and, for each record, the number of its prior. Features are public under
change of one label, so clusters of them are free; how many labels of each class a cluster has is paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.common.models import as_rows
from tacit.learners.common.parameters import whole
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.one_hot import MOVED, noisy_histogram
from tacit.privacy.events import PureDP

Floats = NDArray[np.float64]

RECORDS_OVER_NOISE = 4  # of a cluster; measured on CIFAR-10 and MNIST, where twice as many are little worse
LEAST_RECORDS, MOST_CLUSTERS = 8, 5000  # of a cluster, and of those that are found by default; more take long
MOST_FEATURE = 1e12  # squares of which float32 adds up


@dataclass(frozen=True, eq=False)
class Prior:
    """Rows of probabilities, of shape (priors, classes), and which one each record has, of shape (n,)."""

    rows: Floats
    which: Integers


def clusters_of(X: Any, n_clusters: int, n_components: int = 50, seed: int = 0) -> Integers:
    """Cluster of each record by its public features: principal components, then k-means.

    Parameters
    ----------
    X : array of shape (n, d)
    n_clusters : int
    n_components : int, default=50
        Of the principal components; fewer where there are fewer columns or records.
    seed : int, default=0

    Returns
    -------
    int64 array of shape (n,)
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA

    given = np.asarray(X)
    if given.ndim < 2 or given.dtype.kind not in "fiub" or not given.size or not np.all(np.abs(given) < MOST_FEATURE):
        raise InputError(f"features of shape {given.shape} must be numbers below {MOST_FEATURE:g}, by row; scale them")
    rows = as_rows(given).astype(np.float32)
    number = whole("n_clusters", n_clusters, 1, len(rows))
    kept = min(whole("n_components", n_components, 1, 10**6), *rows.shape)
    state = whole("seed", seed, 0, 2**32 - 1)
    if kept < min(rows.shape):
        rows = PCA(kept, svd_solver="covariance_eigh").fit_transform(rows)
    found = MiniBatchKMeans(number, n_init=3, random_state=state, batch_size=4096).fit(rows)
    return np.asarray(found.labels_, dtype=np.int64)


def cluster_count(n: int, epsilon: float) -> int:
    """Number of clusters of n records whose histograms, bought with `epsilon`, are worth having."""
    deviation = math.sqrt(2) * MOVED / epsilon
    return min(max(round(n / max(RECORDS_OVER_NOISE * deviation, LEAST_RECORDS)), 1), MOST_CLUSTERS)


def cluster_prior(
    labels: Integers, which: Integers, n_classes: int, epsilon: float, noise: NoiseSource
) -> tuple[Prior, PureDP]:
    """The classes of each cluster by a noisy histogram, and its price.

    Parameters
    ----------
    labels, which : int64 arrays of shape (n,)
        Class index and public cluster of each record.
    n_classes : int
    epsilon : float
        Paid once for all clusters, since a label is in one of them.
    noise : NoiseSource

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. The size of a cluster is public, so its noisy counts are projected
    onto what is not negative and adds up to it. Small clusters are mostly noise: the prior is the projection's with
    weight size^2 / (size^2 + classes * noise variance), else uniform.
    """
    shape = (int(which.max()) + 1, n_classes)
    cost = PureDP(epsilon)
    noisy = noisy_histogram(labels, which, shape, cost, noise).astype(np.float64)
    sizes = np.bincount(which, minlength=shape[0]).astype(np.float64)
    counts = onto_simplex(noisy, sizes)
    noise_of_all = n_classes * 2 * (MOVED / epsilon) ** 2
    trust = (sizes**2 / np.maximum(sizes**2 + noise_of_all, 1))[:, None]
    rows = trust * counts / np.maximum(sizes[:, None], 1) + (1 - trust) / n_classes
    return Prior(rows / rows.sum(axis=1, keepdims=True), which), cost


def onto_simplex(values: Floats, sums: Floats) -> Floats:
    """The nearest rows that are not negative and have these sums [Duchi et al. 2008]."""
    ordered = -np.sort(-values, axis=1)
    excess = (np.cumsum(ordered, axis=1) - sums[:, None]) / np.arange(1, values.shape[1] + 1)
    last = (ordered > excess).sum(axis=1).clip(min=1) - 1
    return np.asarray(np.maximum(values - np.take_along_axis(excess, last[:, None], axis=1), 0.0))


def uniform(n: int, n_classes: int) -> Prior:
    """The same probability for each class."""
    return Prior(np.full((1, n_classes), 1 / n_classes), np.zeros(n, dtype=np.int64))


def of_scores(log_probabilities: Floats, temperature: float) -> Prior:
    """A prior of its own for each record, from a model's log probabilities; above 1 a temperature flattens it."""
    scaled = log_probabilities / temperature
    scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return Prior(scaled / scaled.sum(axis=1, keepdims=True), np.arange(len(scaled)))


def given(rows: Any, which: Any, n: int, n_classes: int) -> Prior:
    """A prior of the user's, of shape (classes,), or of shape (priors, classes) with the number of each record's."""
    from tacit.learners.label_dp.randomizers import checked_prior

    table = checked_prior(rows)
    if table.shape[1] != n_classes:
        raise InputError(f"prior has {table.shape[1]} columns for {n_classes} classes; pass one for each")
    if which is None:
        if len(table) == 1:
            return Prior(table, np.zeros(n, dtype=np.int64))
        raise InputError(f"prior has {len(table)} rows; pass which= the row of each of {n} labels")
    try:
        place = np.asarray(which)
    except ValueError as error:
        raise InputError(
            f"which has entries of different lengths; pass one row of the prior for each of {n} labels"
        ) from error
    inside = (
        place.shape == (n,) and place.dtype.kind in "iu" and (n == 0 or 0 <= place.min() <= place.max() < len(table))
    )
    if not inside:
        raise InputError(
            f"which must hold a row of the prior, 0 to {len(table) - 1}, for each of {n} labels; correct it"
        )
    return Prior(table, place.astype(np.int64))
