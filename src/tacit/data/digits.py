"""Real data that ships with scikit-learn: 8 x 8 pictures of handwritten digits, split for a first
try.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PRIVATE_ROWS = 1000
PUBLIC_ROWS = 397
SEED = 20240229


@dataclass(frozen=True, eq=False)
class DigitsSplit:
    """Disjoint parts of the digits; features are 64 pixel values from 0 to 16.

    Attributes
    ----------
    private_x, private_y : arrays of shape (1000, 64) and (1000,)
        Labelled rows that play the sensitive data.
    public_x : array of shape (397, 64)
        Unlabelled rows that play the public data.
    test_x, test_y : arrays of shape (400, 64) and (400,)
        Labelled rows for measuring utility.
    """

    private_x: NDArray[np.float64]
    private_y: NDArray[np.int64]
    public_x: NDArray[np.float64]
    test_x: NDArray[np.float64]
    test_y: NDArray[np.int64]


def load_digits_split() -> DigitsSplit:
    """Load the digits, always split the same way: by position after one fixed shuffle."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(x))
    private, public, test = np.split(order, [PRIVATE_ROWS, PRIVATE_ROWS + PUBLIC_ROWS])
    return DigitsSplit(
        private_x=x[private],
        private_y=y[private].astype(np.int64),
        public_x=x[public],
        test_x=x[test],
        test_y=y[test].astype(np.int64),
    )
