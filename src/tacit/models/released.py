"""What a learner hands over to a release: arrays, how they decide, and public facts of how they were made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from tacit.models.decisions import AnyDecision


@dataclass(frozen=True)
class Released:
    """What may leave a learner.

    Parameters
    ----------
    what : str
        In words.
    arrays : dict of str to ndarray
    decision : Decision
        How the arrays classify a row.
    mechanism : dict
        Public facts of how the arrays were made.
    """

    what: str
    arrays: dict[str, NDArray[Any]]
    decision: AnyDecision
    mechanism: dict[str, Any] = field(default_factory=dict)
