"""Priors of labels: how likely each class is for a record, by what is public or paid for.

A prior is an array of shape (priors, classes) and, for each record, the row of its prior. Features
are public under change of one label, so clusters of them are free; how many labels of each class a
cluster has is paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.errors import InputError, RowError
from tacit.learners.common.models import as_rows
from tacit.learners.common.parameters import array_of, numbers_of, whole
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.one_hot import MOVED, noisy_histogram
from tacit.mechanisms.partitions import TOLERANCE, order_count
from tacit.privacy.events import PureDP

Floats = NDArray[np.float64]

# The records of a cluster over the standard deviation of the noise on a count; measured on CIFAR-10
# and MNIST, where twice as many are little worse.
RECORDS_OVER_NOISE = 4

# The least records of a cluster, and the most clusters, if none are asked for: more take long.
LEAST_RECORDS = 8
MOST_CLUSTERS = 5000

# The factor that makes cosines to names logits.
NAMES_SCALE = 10.0

# The most standard deviation, in logits, between variants of a prior, which tell some 5 % less
# about a label.
MOVED_BY = 0.5

# The largest feature whose squares float32 adds up.
MOST_FEATURE = 1e12


@dataclass(frozen=True, eq=False)
class Prior:
    """Rows of probabilities, of shape (priors, classes), and the row of each record, of shape
    (n,).
    """

    rows: NDArray[Any]
    which: Integers

    def among(self, records: Integers) -> Prior:
        """The prior of some of the records."""
        return Prior(self.rows, self.which[records])

    def used(self) -> Prior:
        """The same without rows that no record has."""
        rows, which = np.unique(self.which, return_inverse=True)
        return Prior(self.rows[rows], which)

    def raised(self, power: float) -> Prior:
        """The prior with probabilities raised to a power and made to add up to 1; power 0 is
        uniform.
        """
        if power == 0:
            return uniform(len(self.which), self.rows.shape[1])
        rows = self.rows**power
        return Prior(rows / rows.sum(axis=1, keepdims=True), self.which)

    def log(self) -> Floats:
        """Log probabilities of the records' classes, of shape (n, classes)."""
        return np.asarray(np.log(np.maximum(self.rows, np.finfo(float).tiny))[self.which])

    @property
    def shared(self) -> bool:
        """True if a row is that of several records."""
        return len(self.which) > 0 and bool(np.bincount(self.which).max() > 1)

    def dealt(self) -> Prior:
        """The same where each record has its own row; else rows become variants, dealt out to
        records by position.

        If all records of a row had the same blocks, no answer would ever tell two classes of one
        block apart. Variant i has the public order i of the classes
        (`tacit.mechanisms.partitions`), and log probabilities that are moved by public random
        numbers: by at most `MOVED_BY`, and by the standard deviation of the row's own, in the mean.
        """
        if not self.shared:
            return Prior(self.rows[self.which].astype(np.float32), np.arange(len(self.which)))
        n_classes = self.rows.shape[1]
        n_variants = order_count(n_classes)

        # Variant i of row r has the number r * n_variants + i; only those that some record has are
        # made.
        number = self.which * n_variants + np.arange(len(self.which)) % n_variants
        numbers, which = np.unique(number, return_inverse=True)
        rows = self.rows[numbers // n_variants].astype(np.float64)

        # Public random numbers, the same for all rows.
        draws = np.random.default_rng(n_classes).normal(size=(n_variants, n_classes))
        logs = np.log(rows, out=np.full_like(rows, np.nan), where=rows > 0)
        deviation = np.minimum(np.nanstd(logs, axis=1, keepdims=True), MOVED_BY)
        rows *= np.exp(deviation * draws[numbers % n_variants])
        return Prior((rows / rows.sum(axis=1, keepdims=True)).astype(np.float32), which)


def clusters_of(X: Any, n_clusters: int, n_components: int = 50, seed: int = 0) -> Integers:
    """Cluster of each record by its public features: principal components, then k-means.

    Parameters
    ----------
    X : array of shape (n, d)
    n_clusters : int
    n_components : int, default=50
        Number of principal components; fewer where there are fewer columns or records.
    seed : int, default=0

    Returns
    -------
    int64 array of shape (n,)
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA

    array = np.asarray(X)
    is_table = array.ndim >= 2 and array.size > 0 and array.dtype.kind in "fiub"
    if not is_table or not np.all(np.abs(array) < MOST_FEATURE):
        raise InputError(
            f"features of shape {array.shape} must be numbers below {MOST_FEATURE:g}, by row; scale"
            " them"
        )
    rows = as_rows(array).astype(np.float32)
    number = whole("n_clusters", n_clusters, 1, len(rows))
    components = min(whole("n_components", n_components, 1, 10**6), *rows.shape)
    state = whole("seed", seed, 0, 2**32 - 1)
    if components < min(rows.shape):
        rows = PCA(components, svd_solver="covariance_eigh").fit_transform(rows)
    clusters = MiniBatchKMeans(number, n_init=3, random_state=state, batch_size=4096).fit(rows)
    return np.asarray(clusters.labels_, dtype=np.int64)


def cluster_count(n: int, epsilon: float) -> int:
    """Number of clusters of n records whose histograms, bought with `epsilon`, are worth having."""
    deviation = math.sqrt(2) * MOVED / epsilon
    records_of_cluster = max(RECORDS_OVER_NOISE * deviation, LEAST_RECORDS)
    return min(max(round(n / records_of_cluster), 1), MOST_CLUSTERS)


def cluster_prior(
    labels: Integers,
    which: Integers,
    n_classes: int,
    epsilon: float,
    noise: NoiseSource,
    sizes: Integers | None = None,
) -> Prior:
    """The classes of each public cluster by a noisy histogram.

    Each label counts 1/m, m being the number of labels of its person: `sizes`, of shape (n,).

    Guarantee: epsilon-DP under change of all labels of one person, or of one label, once for all
    clusters. The size of a cluster is public, so its noisy counts are projected onto nonnegative
    counts of that sum. Small clusters are mostly noise: the projection has weight size^2 / (size^2
    + classes * noise variance), the uniform prior the rest.
    """
    shape = (int(which.max()) + 1, n_classes)
    noisy = noisy_histogram(labels, which, shape, PureDP(epsilon), noise, sizes)

    # The weight of the labels of each cluster, which is public, (clusters,).
    weights = None
    if sizes is not None:
        weights = 1 / sizes
    totals = np.bincount(which, weights, minlength=shape[0]).astype(np.float64)
    counts = onto_simplex(noisy, totals)

    # Laplace noise of scale b has variance 2 b^2.
    noise_variance = n_classes * 2 * (MOVED / epsilon) ** 2
    trust = (totals**2 / np.maximum(totals**2 + noise_variance, 1))[:, None]
    rows = trust * counts / np.maximum(totals[:, None], 1) + (1 - trust) / n_classes
    return Prior(rows / rows.sum(axis=1, keepdims=True), which)


def onto_simplex(values: Floats, sums: Floats) -> Floats:
    """The nearest rows that are not negative and have these sums [Duchi et al. 2008]."""
    falling = -np.sort(-values, axis=1)

    # What must be taken from each of the k largest values if the others become 0, for k from 1.
    excess = (np.cumsum(falling, axis=1) - sums[:, None]) / np.arange(1, values.shape[1] + 1)

    # The most values that stay above 0.
    n_positive = (falling > excess).sum(axis=1).clip(min=1)
    shift = np.take_along_axis(excess, n_positive[:, None] - 1, axis=1)
    return np.asarray(np.maximum(values - shift, 0.0))


def uniform(n: int, n_classes: int) -> Prior:
    """The same probability for each class."""
    return Prior(np.full((1, n_classes), 1 / n_classes), np.zeros(n, dtype=np.int64))


def of_names(rows: Floats, names: Floats) -> Prior:
    """One prior for each record, from the cosines of its unit row to the directions of the class
    names.
    """
    return Prior(softmax(NAMES_SCALE * rows @ names.T, axis=1), np.arange(len(rows)))


def of_scores(log_probabilities: Floats, temperature: float) -> Prior:
    """One prior for each record, from a model's log probabilities; a temperature above 1 flattens
    it.
    """
    return Prior(
        softmax(log_probabilities / temperature, axis=1), np.arange(len(log_probabilities))
    )


def prior_of(rows: Any, which: Any, n: int, n_classes: int) -> Prior:
    """A prior passed by the user, and the row of each record: see `rows_of_records`."""
    table = checked_prior(rows, n_classes)
    return Prior(table, rows_of_records(table, which, n))


def rows_of_records(table: NDArray[Any], which: Any, n: int) -> Integers:
    """The row of a prior, of shape (priors, classes), that each of n records has.

    That is `which`; by default the only row, or the row of the record's number if there are as many
    rows as records.
    """
    if which is None:
        if len(table) in (1, n):
            return np.arange(n) % len(table)
        raise InputError(
            f"prior has {len(table)} rows for {n} labels; pass one for each label, or a single one"
        )
    place = array_of(which, "which", f"pass one row of the prior for each of {n} labels")
    valid = place.shape == (n,) and place.dtype.kind in "iu"
    if not valid or (n and not 0 <= place.min() <= place.max() < len(table)):
        rule = f"must hold a row of the prior, 0 to {len(table) - 1}, for each of {n} labels"
        raise InputError(f"which {rule}; correct it")
    return place.astype(np.int64)


def prior_table(prior: Any, n_classes: int | None = None) -> NDArray[Any]:
    """A prior, or several, as an array of floats of shape (priors, n_classes), whose entries are
    not checked.
    """
    if getattr(prior, "dtype", None) == np.float16:
        raise InputError(
            "prior has type float16, in which probabilities hardly add up to 1; pass float32 or"
            " float64"
        )
    if isinstance(prior, np.ndarray) and prior.dtype == np.float32:
        # Large priors are not copied.
        array = prior
    else:
        array = numbers_of(prior, "prior", "pass one probability for each class")
    rows: NDArray[Any] = array
    if array.ndim == 1:
        rows = array[None]
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"prior has shape {array.shape}; pass (classes,), or (priors, classes)")
    if n_classes not in (None, rows.shape[1]):
        raise InputError(
            f"prior has {rows.shape[1]} columns for {n_classes} classes; pass one for each"
        )
    return rows


def checked_prior(prior: Any, n_classes: int | None = None) -> Floats:
    """A prior, or several, as an array of shape (priors, n_classes)."""
    return check_rows_of_prior(np.asarray(prior_table(prior, n_classes), dtype=np.float64))


def check_rows_of_prior(rows: Floats, name: str = "prior", first: int = 0) -> Floats:
    """Refuse rows that are no probabilities; the number of the first is `first`."""
    # NaN fails both.
    is_valid = np.all(rows >= 0, axis=1) & (np.abs(rows.sum(axis=1) - 1) <= TOLERANCE)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise RowError(f"{name} ", first + row, _fault_of_prior(rows[row]))
    return rows


def no_prior(row: Floats, name: str) -> InputError:
    """Say what is wrong with a row of a prior that has a negative entry or does not add up to 1."""
    return InputError(name + _fault_of_prior(row))


def _fault_of_prior(row: Floats) -> str:
    if not np.all(row >= 0):
        return " has a negative or NaN entry; pass probabilities"
    total = row.sum()
    remedy = "divide it by its sum" if 0 < total < np.inf else "pass probabilities"
    return f" adds up to {total:.8g}, not 1; {remedy}"
