"""Parts whose noise lowers the quality of a combination of class sums.

The choice reads the noise multipliers and the class lists of the parts, which are public facts, and
no value that was released.

The model. Each part has equally many records of a class that it lists, n. K of them together have a
sum of length n K |m|, where m is the mean of the class, and noise of variance sum z_i^2 on a
coordinate. The square of the signal over the noise is proportional to

    K^2 / sum z_i^2.

For each K the K parts of least noise are best, so the best parts are a prefix in the order of
noise. Parts of equal noise are in it together.

At least half of the parts stay. The model knows nothing of the sampling of records, which more
parts reduce; and a part that declares next to no noise must not push all others out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def worthwhile(
    multipliers: Sequence[float] | NDArray[np.float64], listed: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Tell which parts raise the expected quality of their sum, (K,).

    Parameters
    ----------
    multipliers : sequence of K floats
        Standard deviations of the noise of the parts' sums, above 0.
    listed : ndarray of shape (K, C), optional
        Which classes each part lists; all of them by default. A part is worthwhile if it is for a
        class that it lists, so a class is never lost.

    Examples
    --------
    >>> worthwhile([1.0, 1.0, 10.0])
    array([ True,  True, False])
    >>> worthwhile([1.0, 2.0])  # 4/5 is less than 1
    array([ True, False])
    >>> worthwhile([1.0, 10.0], listed=np.array([[True, False], [True, True]]))
    array([ True,  True])
    """
    noise = np.asarray(multipliers, dtype=np.float64)
    if listed is None:
        return _best_prefix(noise)

    chosen = np.zeros(len(noise), dtype=bool)
    # parts with the same classes are compared once for all of these
    for parts_of_class in np.unique(listed.T, axis=0):
        parts = np.flatnonzero(parts_of_class)
        if len(parts):
            chosen[parts[_best_prefix(noise[parts])]] = True
    return chosen


def _best_prefix(noise: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which parts are in the prefix, in the order of noise, of the largest ratio.

    It has half of the parts or more, and ends where the noise rises.
    """
    order = np.argsort(noise, kind="stable")
    numbers = np.arange(1, len(noise) + 1)
    ratios = numbers**2 / np.cumsum(noise[order] ** 2)

    is_long = 2 * numbers >= len(noise)
    rises = np.append(np.diff(noise[order]) > 0, True)
    ratios[~(is_long & rises)] = 0.0

    # the longest of the best prefixes, since more records are better
    length = len(noise) - int(np.argmax(ratios[::-1]))
    chosen = np.zeros(len(noise), dtype=bool)
    chosen[order[:length]] = True
    return chosen
