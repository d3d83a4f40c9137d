"""Pseudo-classes: classes of public rows that stand in for private classes which nobody has seen.

There are two sources. **Labels**: classes of the public set, drawn at random. **Clusters**: k-means
clusters of the public rows. A cluster is defined by the geometry that a classifier uses, and its
spread is that of the public set, not of the task. So the rows of clusters are moved until their
spread is that of the task:

    x = m + a (c - m) + b r,   a^2 B = s (B + W),   b^2 W = (1 - s) (B + W)

where m is the mean of all rows, c the mean of a cluster, r = x - c the rest, B and W the mean
squared lengths of c - m and r, and s the spread: the share of the variance that lies between
classes. A spread that is not stated is guessed from other tasks (`guessed_spread`). Real classes
also overlap, which clusters do not: a share of the rows of a cluster is labelled with the nearest
other one.

Rows of classes that are not drawn are the public rows of the learner: in use too, public rows are
of other classes than the private records.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.models.rows import Floats, unit_rows

Kind = Literal["labels", "clusters"]
Integers = NDArray[np.int64]

# Of the public classes or clusters, the share that is left to the learner as public rows.
PUBLIC_SHARE = 0.2

# Fewest rows of a pseudo-class: one to test, and two to learn from.
FEWEST_ROWS = 3

# Spread of few and of many classes, and the share of rows that overlap: docs/forecast.md says on
# which tasks these were chosen.
FEW_CLASSES = 6
MANY_CLASSES = 24
SPREAD_OF_FEW = 0.05
SPREAD_OF_MANY = 0.33
OVERLAP = 0.05


@dataclass(frozen=True, eq=False)
class PseudoClasses:
    """Rows of pseudo-classes, and public rows beside them."""

    kind: Kind
    rows: Floats
    """Of shape (n, d)."""
    labels: Integers
    """The pseudo-class of each row, 0..C-1, of shape (n,); each class has some."""
    public: Floats
    """Rows of no pseudo-class, of shape (m, d)."""


def pseudo_classes_of_labels(
    rows: Floats, labels: Integers, n_classes: int, rng: np.random.Generator
) -> PseudoClasses:
    """Draw public classes at random.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Public rows.
    labels : ndarray of shape (m,)
        Their classes, as `usable_classes` counts them.
    n_classes : int
        Number of classes to draw.
    rng : Generator
        Draws them.
    """
    drawn = rng.permutation(usable_classes(labels))[:n_classes]
    return _divided("labels", rows, labels, drawn, rng)


def usable_classes(labels: Integers) -> Integers:
    """Return the classes with enough rows to learn from and to test."""
    counts = np.bincount(labels)
    return np.flatnonzero(counts >= FEWEST_ROWS)


def pseudo_classes_of_clusters(
    rows: Floats, n_classes: int, spread: float, rng: np.random.Generator
) -> PseudoClasses:
    """Cluster public rows, draw clusters at random, and move their rows to a spread.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Public rows.
    n_classes : int
        Number of clusters to draw.
    spread : float
        Share of the variance of unit rows that lies between pseudo-classes.
    rng : Generator
        Clusters and draws.
    """
    from sklearn.cluster import MiniBatchKMeans

    units = unit_rows(rows)
    n_clusters = math.ceil(n_classes / (1 - PUBLIC_SHARE))
    n_clusters = min(n_clusters, len(units) // FEWEST_ROWS)
    state = int(rng.integers(2**31))
    k_means = MiniBatchKMeans(n_clusters, n_init=1, batch_size=4096, random_state=state)
    labels = np.asarray(k_means.fit_predict(units), np.int64)

    usable = usable_classes(labels)
    if len(usable) < n_classes:
        raise InputError(
            f"classes={n_classes} are more than the {len(usable)} clusters of {FEWEST_ROWS} rows or"
            f" more that {len(units)} public rows fall into; pass more public rows"
        )
    drawn = rng.permutation(usable)[:n_classes]
    moved = with_spread(units, labels, spread)
    return _divided("clusters", moved, _overlapping(units, labels, usable, rng), drawn, rng)


def _overlapping(
    rows: Floats, labels: Integers, usable: Integers, rng: np.random.Generator
) -> Integers:
    """Return labels of which a share is that of the nearest other cluster that is usable."""
    means = class_means(rows, labels)
    lengths = (means**2).sum(axis=1)
    distances = lengths[:, None] + lengths[usable] - 2 * means @ means[usable].T
    distances[usable, np.arange(len(usable))] = np.inf
    nearest = usable[np.argmin(distances, axis=1)]

    relabelled = labels.copy()
    for label in usable.tolist():
        positions = np.flatnonzero(labels == label)
        # the fewest rows of a class stay
        n_moved = min(rng.binomial(len(positions), OVERLAP), len(positions) - FEWEST_ROWS)
        moved = rng.choice(positions, n_moved, replace=False)
        relabelled[moved] = nearest[label]
    return relabelled


def with_spread(rows: Floats, labels: Integers, spread: float) -> Floats:
    """Return rows moved to or from the means of their classes until `spread` of their variance lies
    between the classes; the variance in all stays.
    """
    mean = rows.mean(axis=0)
    means = class_means(rows, labels)[labels]
    between = means - mean
    within = rows - means

    between_variance = (between**2).sum(axis=1).mean()
    within_variance = (within**2).sum(axis=1).mean()
    variance = between_variance + within_variance
    # clusters of equal rows have no variance within, and a single cluster none between
    longer = math.sqrt(spread * variance / between_variance) if between_variance else 1.0
    shorter = math.sqrt((1 - spread) * variance / within_variance) if within_variance else 1.0
    return np.asarray(mean + longer * between + shorter * within)


def spread_of(rows: Floats, labels: Integers) -> float:
    """Return the share of the variance of unit rows that lies between classes.

    The variance within is divided by the degrees of freedom of each class, so that classes of few
    rows do not look further apart than they are.
    """
    units = unit_rows(rows)
    counts = np.bincount(labels)
    present = counts[labels] > 1
    units, labels = units[present], labels[present]
    within = units - class_means(units, labels)[labels]
    freedom = counts[labels] / (counts[labels] - 1)
    within_variance = ((within**2).sum(axis=1) * freedom).mean()
    variance = units.var(axis=0).sum()
    if not variance:
        return 0.0
    return float(np.clip(1 - within_variance / variance, 0.0, 1.0))


def class_means(rows: Floats, labels: Integers) -> Floats:
    """Return the mean of each class, of shape (C, d); zeros for a class without rows."""
    counts = np.bincount(labels)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.maximum(counts, 1)[:, None]


def guessed_spread(n_classes: int) -> float:
    """Return the spread that other tasks suggest for this number of classes.

    Few classes are broad, such as topics or kinds of questions, and many are narrow, such as
    intents. In between the guess is linear in the logarithm of the number.

    >>> guessed_spread(4), guessed_spread(77)
    (0.05, 0.33)
    """
    ends = np.log([FEW_CLASSES, MANY_CLASSES])
    return float(np.interp(math.log(n_classes), ends, [SPREAD_OF_FEW, SPREAD_OF_MANY]))


def _divided(
    kind: Kind, rows: Floats, labels: Integers, drawn: Integers, rng: np.random.Generator
) -> PseudoClasses:
    """Return the rows of the classes that were drawn, and all others as public rows.

    Without others, a share of all rows is public.
    """
    positions = np.full(int(labels.max()) + 1, -1)
    positions[drawn] = np.arange(len(drawn))
    classes = positions[labels]

    is_public = classes < 0
    if not is_public.any():
        is_public = _share_of_each(labels, rng)
    return PseudoClasses(kind, rows[~is_public], classes[~is_public], rows[is_public])


def _share_of_each(labels: Integers, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose a share of the rows of each class that has more than the fewest."""
    chosen = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        positions = rng.permutation(np.flatnonzero(labels == label))
        spare = min(int(PUBLIC_SHARE * len(positions)), len(positions) - FEWEST_ROWS)
        chosen[positions[: max(spare, 0)]] = True
    return chosen
