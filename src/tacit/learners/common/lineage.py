"""Fits by a learner and by its clones: a release states the privacy cost of one fit.

A search over parameters clones a learner, fits each clone on the private records and keeps the
best. scikit-learn's `clone` calls `__sklearn_clone__`, by which the clone shares the lineage of its
learner. The lineage counts what this process sees: fits, and clones. A clone that was not seen to
fit may have been fitted in another process, where joblib sends a pickle of it, so it counts as one
fit. A pickle that comes back joins the lineage that it left.

Fits that a ledger was charged for do not count, since the ledger states them. What the count cannot
see are fits in another process by copies that were made there, or by copies that were made here
without `clone`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self
from uuid import uuid4
from weakref import WeakValueDictionary

# threads of joblib clone and fit at once
_lock = Lock()

# lineages of this process, by their keys; a lineage ends with its last learner
_lineages: WeakValueDictionary[str, Lineage] = WeakValueDictionary()


@dataclass(eq=False)
class Lineage:
    """A learner and its clones, each member with a key.

    `clones` are those whose fits no ledger would count. `fits` are the uncharged fits of each
    member that this process saw fit, 0 where all were charged.
    """

    key: str
    clones: set[str] = field(default_factory=set)
    fits: dict[str, int] = field(default_factory=dict)

    @classmethod
    def start(cls) -> Self:
        """Start a lineage of one learner."""
        lineage = cls(uuid4().hex)
        _lineages[lineage.key] = lineage
        return lineage

    def add_clone(self, member: str, *, charged: bool) -> None:
        """Count a clone; `charged` says whether it would charge its fits to a ledger."""
        with _lock:
            if not charged:
                self.clones.add(member)

    def add_fit(self, member: str, *, charged: bool) -> None:
        """Count a fit."""
        uncharged = 0 if charged else 1
        with _lock:
            self.fits[member] = self.fits.get(member, 0) + uncharged

    def others(self, member: str) -> int:
        """Return an upper bound of the uncharged fits besides the last fit of `member`.

        It bounds what this process can see.
        """
        with _lock:
            fits_of_member = self.fits[member]
            fits_of_others = sum(self.fits.values()) - fits_of_member
            earlier_fits = max(fits_of_member - 1, 0)
            unseen = len(self.clones - self.fits.keys())
            return fits_of_others + unseen + earlier_fits

    def __reduce__(self) -> tuple[Any, ...]:
        with _lock:
            return _restored, (self.key, set(self.clones), dict(self.fits))

    def __deepcopy__(self, memo: Any) -> Self:
        return self


def _restored(key: str, clones: set[str], fits: dict[str, int]) -> Lineage:
    """Return the lineage of a pickle.

    It is that of this process, if there is one with its key; what the pickle knows is added.
    """
    with _lock:
        lineage = _lineages.get(key)
        if lineage is None:
            lineage = Lineage(key)
            _lineages[key] = lineage

        lineage.clones |= clones
        # either side may have seen fits of a member that the other did not
        for member, count in fits.items():
            lineage.fits[member] = max(count, lineage.fits.get(member, 0))
        return lineage
