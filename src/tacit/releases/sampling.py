"""Synthetic rows with labels, drawn from a release: post-processing, which costs nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, ReleaseError
from tacit.models.carried import CarriedPosterior, carried, deciding
from tacit.models.rows import Floats, unit_rows_about
from tacit.models.scaling import Scaling
from tacit.models.synthetic import SyntheticClasses, dealt_labels, drawn_rows
from tacit.models.table_schema import TableSchema
from tacit.releases.columns import columns_of
from tacit.releases.schema import Adaptation, Document, has_several_labels

Arrays = Mapping[str, NDArray[Any]]
Positions = NDArray[np.int64]

# bound on the entries of the rows (n, d), which are held in memory
ENTRIES = 2**28

# rows that are compared at once
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Rows (n, d), float32, and the positions of their classes (n,).

    `unlike` is how many of them the release labels otherwise.
    """

    rows: NDArray[np.float32]
    labels: Positions
    unlike: int


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws rows from the document and the arrays of a release; `source` names it in messages."""

    document: Document
    arrays: Arrays
    source: str

    def draw(self, n: int, *, random_state: int | None, balanced: bool = True) -> SyntheticRows:
        """Draw n rows as `Release.sample` does, in random order."""
        known = self._posterior()
        classes = self._classes(known)
        self.check_number(n)
        rng = np.random.default_rng(checked_seed(random_state))

        sizes = known.posterior.sizes
        if balanced:
            sizes = np.ones(len(sizes))
        labels = rng.permutation(dealt_labels(n, sizes))

        decision = self.document.contents.decision
        arrays = deciding(self.arrays)
        rows, unlike = drawn_rows(
            classes, labels, lambda draws: decision.nearest(arrays, draws), rng
        )
        return SyntheticRows(rows, labels, unlike)

    def check_number(self, n: int, name: str = "n=") -> None:
        """Refuse a number of rows that is no whole number, below 1, or more than fit in memory."""
        width = self.document.contents.width
        most = max(1, ENTRIES // width)
        if not _is_whole(n) or not 1 <= n <= most:
            raise InputError(
                f"{name}{n!r:.40} must be a whole number from 1 to {most} for rows of width"
                f" {width}; correct it, and draw more with another seed"
            )

    def nearest(self, drawn: SyntheticRows, public: Any) -> tuple[Positions, Positions]:
        """Find the public row nearest to each drawn row.

        Return the positions of these public rows, ascending and each once, and of each the position
        of the class that most of its drawn rows have, the first of equal ones. Rows are near whose
        cosine about the public centre is large.
        """
        centre = self._centre()
        draws = unit_rows_about(drawn.rows, centre).astype(np.float32)
        nearest = np.zeros(len(draws), np.int64)
        largest = np.full(len(draws), -np.inf, np.float32)

        for start in range(0, len(public), BLOCK):
            rows = unit_rows_about(np.asarray(public[start : start + BLOCK]), centre)
            rows = rows.astype(np.float32)
            for first in range(0, len(draws), BLOCK):
                part = slice(first, first + BLOCK)
                cosines = draws[part] @ rows.T
                position = np.argmax(cosines, axis=1)
                cosine = cosines[np.arange(len(position)), position]

                is_nearer = cosine > largest[part]
                nearest[part] = np.where(is_nearer, start + position, nearest[part])
                largest[part] = np.maximum(cosine, largest[part])

        positions, group = np.unique(nearest, return_inverse=True)
        votes = np.zeros((len(positions), len(self.document.contents.classes)), np.int64)
        np.add.at(votes, (group, drawn.labels), 1)
        return positions, np.argmax(votes, axis=1)

    def _posterior(self) -> CarriedPosterior:
        """The posterior of class means; releases that take other rows, or carry none, are
        refused.
        """
        reason = self._unfit()
        if reason is not None:
            raise ReleaseError(f"{self.source} {reason}")

        known = carried(self.arrays)
        if known is None:
            fault = "carries no posterior of class means, which only releases of auto do"
            remedy = "fit with tacit fit auto (AutoPrototypes)"
            if isinstance(self.document.post_processing, Adaptation):
                fault = "was adapted, and carries no posterior of class means since"
                remedy = "use the release that it was made from"
            raise ReleaseError(f"{self.source} {fault}, so no rows are drawn from it; {remedy}")
        return known

    def _unfit(self) -> str | None:
        """Say why the release takes other rows than unit rows with one label; None if it does
        not.
        """
        contents = self.document.contents
        if has_several_labels(contents):
            return "gives a row several labels, and rows are drawn with one; use tacit predict"
        if isinstance(columns_of(contents), TableSchema):
            return (
                "takes the cells of a table, which no drawn row has; use it on public rows with"
                " tacit predict"
            )
        if Scaling.stated(self.arrays) is not None:
            return (
                "scales its rows by public ones, and rows are drawn with norm 1; scale all rows"
                " beforehand, and release the learner alone"
            )
        return None

    def _classes(self, known: CarriedPosterior) -> SyntheticClasses:
        """The distributions of the classes' rows."""
        centre = self._centre()
        if centre is not None and not float(centre @ centre) < 1:
            raise ReleaseError(
                f"{self.source} has a centre of norm 1 or more, which no mean of unit rows has; get"
                " the release again from its owner"
            )
        coefficients = np.asarray(self.arrays["coefficients"], np.float64)
        return SyntheticClasses.of(known, coefficients, centre)

    def _centre(self) -> Floats | None:
        if "centre" not in self.arrays:
            return None
        return np.asarray(self.arrays["centre"], np.float64)


def checked_seed(random_state: int | None) -> int | None:
    """Return a seed of numpy; None is a fresh one."""
    if random_state is None:
        return None
    if not _is_whole(random_state) or random_state < 0:
        raise InputError(
            f"random_state={random_state!r:.40} must be a whole number from 0, or None; correct it"
        )
    return int(random_state)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
