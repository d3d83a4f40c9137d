"""Rows of four classes, and public rows of none, that tests of several learners learn from."""

import numpy as np

_RNG = np.random.default_rng(0)
_CENTRES = _RNG.normal(size=(4, 12))
Y = _RNG.integers(0, 4, 500)
X = _CENTRES[Y] + _RNG.normal(size=(500, 12))
PUBLIC = _RNG.normal(size=(80, 12)) + 1


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)
