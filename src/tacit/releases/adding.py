"""Add summaries up, one in memory at a time: exact integers, whatever the order and the groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.compute.wide import Totals, Wide
from tacit.errors import InputError, ReleaseError, quoted
from tacit.models.rows import Floats
from tacit.releases import fitted
from tacit.releases.combination import combination_of, summands_of, united_classes
from tacit.releases.summary import Summary, assembled, centre_hash, stored_sums
from tacit.releases.summary_document import SummaryRecipe, united_recipe
from tacit.releases.summary_files import CENTRE

# Centres that differ by less are the same mean of the same public rows, which processors round
# differently.
SAME_CENTRE = 1e-9

# sources of noise, from the one that promises least
SOURCES_OF_NOISE = ("research", "opendp", "secure")


class Adding:
    """A running sum of summaries.

    Parameters
    ----------
    overlapping, moving : bool
        What is declared of the parts: see `tacit.combine`.
    """

    def __init__(self, *, overlapping: bool = False, moving: bool = False) -> None:
        self.overlapping = overlapping
        self.moving = moving
        self.recipes: list[SummaryRecipe] = []
        self.summands: list[Any] = []
        self.noises: set[str] = set()
        self.first = ""
        self.centre: Floats | None = None
        self.positions: dict[Any, int] = {}
        self.totals: Wide | None = None

    def add(self, summary: Summary) -> None:
        """Add a summary, which is verified first.

        Raises
        ------
        ReleaseError
            If a statement of it does not agree, or its sums are beyond what its counts allow.
        InputError
            If it has another recipe, or is there already.
        """
        summary.verify()
        self._check_recipe(summary)
        self._check_declared(summary)
        self.noises.add(summary.document.noise)
        self.summands += summands_of(summary.document.combination)
        self._add_sums(summary.classes, summary.totals)

    def _check_declared(self, summary: Summary) -> None:
        """Refuse a combination that was declared otherwise."""
        combination = summary.document.combination
        declared = (combination.overlapping, combination.moving)
        if len(combination.parts) > 1 and declared != (self.overlapping, self.moving):
            raise InputError(
                f"{summary.source} was combined with overlapping={declared[0]} and"
                f" moving={declared[1]}; declare the same, or combine its parts again"
            )

    def _check_recipe(self, summary: Summary) -> None:
        """Refuse a summary whose sums do not add up with those before it."""
        if not self.recipes:
            self.recipes.append(summary.recipe)
            self.first = summary.source
            self.centre = summary.centre
            return

        difference = self.recipes[0].difference(summary.recipe)
        if difference is None:
            difference = self._difference_of_centres(summary.centre)
        if difference is not None:
            raise InputError(
                f"{self.first} and {summary.source} do not add up: {difference}; make both by one"
                " recipe"
            )
        # distinct recipes alone, of which there are few
        if summary.recipe not in self.recipes:
            self.recipes.append(summary.recipe)

    def _difference_of_centres(self, centre: Floats | None) -> str | None:
        """Compare centres, and keep the one whose hash is first: it depends on no order."""
        if self.centre is None or centre is None:
            return None
        if np.array_equal(self.centre, centre):
            return None
        if np.abs(self.centre - centre).max() > SAME_CENTRE:
            hashes = [centre_hash({CENTRE: one}) for one in (self.centre, centre)]
            return f"the hash of the centre is {hashes[0]!r} and {hashes[1]!r}"
        self.centre = min(self.centre, centre, key=lambda one: centre_hash({CENTRE: one}))
        return None

    def _add_sums(self, classes: tuple[Any, ...], totals: Totals) -> None:
        """Add sums to those of their classes; new classes get rows of their own."""
        wide = Wide.of(totals)
        if self.totals is None:
            empty = np.zeros((0, wide.shape[1]), dtype=np.int64)
            self.totals = Wide(empty, empty)

        for label in classes:
            self.positions.setdefault(label, len(self.positions))
        n_new = len(self.positions) - len(self.totals.high)
        if n_new:
            self.totals = _with_rows(self.totals, n_new)

        at = np.array([self.positions[label] for label in classes])
        added = self.totals[at] + wide
        self.totals.high[at] = added.high
        self.totals.low[at] = added.low

    def summary(self, *, name: str | None = None, date: str | None = None) -> Summary:
        """Return the sum of what was added, with the latest date of its parts by default."""
        if self.totals is None:
            raise InputError("there are no summaries to add; pass one at least")
        combination = combination_of(
            self.summands, overlapping=self.overlapping, moving=self.moving
        )
        classes = united_classes(combination)
        _check_alike(classes)
        order = np.array([self.positions[label] for label in classes])
        arrays: dict[str, NDArray[Any]] = stored_sums(self.totals[order])
        if self.centre is not None:
            arrays[CENTRE] = self.centre

        recipe = united_recipe(self.recipes, centre_hash(arrays))
        day = date or max(row.date for row in combination.parts)
        facts = {"name": name or _name(len(combination.parts)), "curator": None}
        product = fitted.product(
            "Summary", facts | {"description": None, "intended_use": None}, day
        )
        noise = next(source for source in SOURCES_OF_NOISE if source in self.noises)
        return assembled(recipe, combination, arrays, product, noise)


def added_up(
    summaries: Iterable[Summary | Path | str],
    *,
    overlapping: bool = False,
    moving: bool = False,
    name: str | None = None,
    date: str | None = None,
) -> Summary:
    """Add summaries, or folders of them, up; one is in memory at a time.

    Raises
    ------
    ReleaseError
        If a statement of one does not agree, or its sums are beyond what its counts allow.
    InputError
        If recipes differ, or the same sums are there twice.
    """
    adding = Adding(overlapping=overlapping, moving=moving)
    for summary in summaries:
        adding.add(as_summary(summary))
    return adding.summary(name=name, date=date)


def as_summary(summary: Any) -> Summary:
    """Return a summary, read from its folder if it is a path."""
    if isinstance(summary, str | Path):
        return Summary.load(summary)
    if not isinstance(summary, Summary):
        raise InputError(
            f"summaries hold {quoted(type(summary).__name__)}; pass tacit.Summary objects or their"
            " folders"
        )
    return summary


def _with_rows(totals: Wide, n_rows: int) -> Wide:
    """Append rows of zeros, and copy."""
    zeros = np.zeros((n_rows, totals.shape[1]), dtype=np.int64)
    return Wide(np.concatenate([totals.high, zeros]), np.concatenate([totals.low, zeros]))


def _check_alike(classes: tuple[Any, ...]) -> None:
    """Refuse labels that differ by case or white space alone: they may be one class."""
    by_key: dict[str, str] = {}
    for label in classes:
        if not isinstance(label, str):
            return
        key = " ".join(nfc(label).casefold().split())
        other = by_key.setdefault(key, label)
        if other != label:
            raise InputError(
                f"classes {quoted(other)} and {quoted(label)} differ by case or white space alone;"
                " name a class in one way in all lists"
            )


def _name(n_parts: int) -> str:
    return "summary" if n_parts == 1 else f"summary of {n_parts} parts"


__all__ = ["Adding", "ReleaseError", "added_up", "as_summary"]
