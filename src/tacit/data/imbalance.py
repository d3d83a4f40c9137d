"""Long-tailed subsets of a balanced data set, for measuring how a method treats small classes.

With C classes, of which the smallest has N rows, and imbalance ratio IR, the class sizes of the
subset are n_i = round(N * IR^(-i / (C - 1))), i = 0..C-1. The largest is N, which every class can
fill, and it is IR times the smallest, up to rounding. Sizes are dealt to the classes at random, and
each class keeps the first rows of a random permutation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError


def class_sizes(
    smallest: int, n_classes: int, ratio: float, seed: int | np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Return the sizes of the classes of a long-tailed subset, of shape (n_classes,).

    Parameters
    ----------
    smallest : int
        Rows of the smallest class of the full set, N: the largest size of the subset.
    n_classes : int
        Number of classes, C.
    ratio : float
        Imbalance ratio IR >= 1; 1 keeps the classes balanced.
    seed : int or Generator, optional
        Deals the sizes to the classes at random; without it they decrease.

    Raises
    ------
    InputError
        If `smallest` or `n_classes` is not positive, or `ratio` is not a finite number >= 1, or so
        large that a class would get no row.
    """
    if smallest < 1 or n_classes < 1:
        raise InputError(
            f"smallest={smallest} and n_classes={n_classes} must be positive; check the labels"
        )
    if not 1 <= ratio < np.inf:
        raise InputError(
            f"ratio={ratio} must be a finite number >= 1; ratio=1 keeps the classes balanced"
        )

    # i / (C - 1), and 0 for a single class, which keeps its rows. The ratio may be an int of more
    # than 64 bits, so it is made a float.
    exponents = np.arange(n_classes) / max(n_classes - 1, 1)
    sizes = np.rint(smallest * float(ratio) ** -exponents).astype(np.int64)
    if sizes[-1] == 0:
        raise InputError(f"ratio={ratio:g} leaves the smallest class without rows; lower it")
    if seed is None:
        return sizes
    return np.random.default_rng(seed).permutation(sizes)


def imbalanced_subset(
    y: Any, ratio: float, seed: int, n_classes: int | None = None
) -> NDArray[np.int64]:
    """Draw a long-tailed subset, as row indexes in random order.

    Parameters
    ----------
    y : array of shape (rows,)
        Class values; or indexes 0..n_classes-1 when `n_classes` is given.
    ratio : float
        Imbalance ratio IR >= 1.
    seed : int
        Decides which class gets which size, and which rows stay.
    n_classes : int, optional
        Number of classes, of which some may have no records: these are given a size but no rows.

    Raises
    ------
    InputError
        If `ratio` < 1 or leaves a class without rows, `y` is empty, or a label lies outside
        0..n_classes-1.
    """
    n_classes, labels = _class_indexes(np.asarray(y), n_classes)
    counts = np.bincount(labels, minlength=n_classes)
    rng = np.random.default_rng(seed)

    # classes without records do not limit the sizes of the others
    smallest = int(counts[counts > 0].min())
    sizes = class_sizes(smallest, n_classes, ratio, rng)

    shuffled = rng.permutation(len(labels))
    shuffled_labels = labels[shuffled]

    # The rank of a row is the number of rows of its class before it. Sorted by class, where rows of
    # a class stay in their order, it is the row's position less that of the first row of the class.
    sorted_by_class = np.argsort(shuffled_labels, kind="stable")
    class_starts = np.cumsum(counts) - counts
    starts_of_rows = np.repeat(class_starts, counts)
    ranks = np.empty(len(labels), np.intp)
    ranks[sorted_by_class] = np.arange(len(labels)) - starts_of_rows

    # a class of size s keeps its rows of ranks 0 to s - 1
    is_retained = ranks < sizes[shuffled_labels]
    return shuffled[is_retained]


def _class_indexes(y: NDArray[Any], n_classes: int | None) -> tuple[int, NDArray[np.intp]]:
    """Return the number of classes and the class of each row as an index, (rows,)."""
    if len(y) == 0:
        raise InputError("y is empty; a subset needs at least one row")
    if n_classes is None:
        values, indexes = np.unique(y, return_inverse=True)
        return len(values), indexes
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= n_classes:
        raise InputError(
            f"y must hold whole numbers 0..{n_classes - 1}; leave n_classes out to use the values"
            " in y"
        )
    return n_classes, y.astype(np.intp)
