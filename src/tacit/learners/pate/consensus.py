"""How far teachers agree: private, since it depends on their votes; for the owner of the data,
never for a release.
"""

from __future__ import annotations

import numpy as np

from tacit.mechanisms.noise import Integers
from tacit.mechanisms.votes import UNIT, vote_counts

BINS = 20
_BLOCK = 512


def consensus(votes: Integers) -> Integers:
    """How many queries have each share of teachers for their top class, of shape (20,): up to 5 %,
    up to 10 %, ...

    `votes` are class indices of shape (queries, teachers). Every teacher counts alike, whatever its
    vote weighs.
    """
    queries, teachers = votes.shape
    found = np.zeros(BINS, dtype=np.int64)
    for start in range(0, queries, _BLOCK):
        block = votes[start : start + _BLOCK]
        top = vote_counts(block, np.full(teachers, UNIT), int(block.max()) + 1).max(axis=1) // UNIT
        found += np.bincount((top * BINS + teachers - 1) // teachers - 1, minlength=BINS)
    return found
