"""Add summaries up, one in memory at a time: exact integers, whatever the order and the groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.compute.wide import Totals, Wide
from tacit.errors import InputError, excerpt, quoted
from tacit.models.rows import Floats
from tacit.models.summarised import same_centre
from tacit.releases import fitted
from tacit.releases.combination import (
    NOTHING,
    Combination,
    Declared,
    PartCost,
    Summand,
    combination_of,
    least_promised,
    united_classes,
)
from tacit.releases.fields import NOT_STATED
from tacit.releases.schema import Product
from tacit.releases.summary_document import (
    SummaryDocument,
    SummaryRecipe,
    centre_hash,
    different_centres,
    united_recipe,
)
from tacit.releases.summary_files import CENTRE, MOMENTS, SUMS, stored_integers

# rows that are added at once
BLOCK_ROWS = 32


class Addend(Protocol):
    """A summary, as it is added."""

    document: SummaryDocument
    source: str

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of its sums."""

    @property
    def totals(self) -> Totals:
        """Its sums as integers, of shape (C, d + 1)."""

    @property
    def moments(self) -> Totals | None:
        """Its second moments as integers, of shape (d (d + 1) / 2,), if it has some."""

    @property
    def centre(self) -> Floats | None:
        """The public centre of the rows, of shape (d,), if there is one."""

    def verify(self) -> Any:
        """Check what it says."""


class Total(NamedTuple):
    """What a summary is assembled from."""

    recipe: SummaryRecipe
    combination: Combination
    arrays: Mapping[str, NDArray[Any]]
    product: Product
    noise: str


class Reference(NamedTuple):
    """The summary whose recipe all others must have: a group is compared with that of the first
    group.
    """

    recipe: SummaryRecipe
    centre: Floats | None
    source: str


class Adding:
    """A running sum of summaries, whose memory does not grow with their number, but for a row each.

    Parameters
    ----------
    declared : Declared
        What is declared of the parts.
    reference : Reference, optional
        By default the first summary that is added.
    """

    def __init__(
        self,
        *,
        declared: Declared = NOTHING,
        reference: Reference | None = None,
    ) -> None:
        self.declared = declared
        self.reference = reference
        self.recipes: list[SummaryRecipe] = []
        self.summands: list[Summand] = []
        self.sources: dict[str, str] = {}
        self.noises: set[str] = set()
        self.centre: Floats | None = None
        self.positions: dict[Any, int] = {}
        self.sums: Wide | None = None
        self.moments: Wide | None = None
        self.all_have_moments = True
        # one copy of each, however many summaries have it
        self.class_lists: dict[str, tuple[Any, ...]] = {}
        self.costs: dict[str, PartCost] = {}

    def add(self, summary: Addend) -> None:
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
        self._check_new(summary)
        self.noises.add(summary.document.noise)
        self._add_recipe(summary.document.recipe, summary.centre)
        self._add_summands(summary.document.combination)
        self._add_sums(summary.classes, summary.totals)
        self._add_moments(summary.moments)

    def _check_declared(self, summary: Addend) -> None:
        """Refuse a combination that was declared otherwise."""
        combination = summary.document.combination
        if len(combination.parts) == 1 and not combination.allowances:
            return
        earlier = combination.declared
        is_same = earlier.without_allowances() == self.declared.without_allowances()
        if not is_same or not set(earlier.allowances) <= set(self.declared.allowances):
            allowances = excerpt(str(dict(earlier.allowances)))
            raise InputError(
                f"{summary.source} was combined with overlapping={earlier.overlapping},"
                f" moving={earlier.moving} and allowances={allowances}; declare the same, or"
                " combine its parts again"
            )

    def _check_new(self, summary: Addend) -> None:
        """Refuse sums that are there already. Whoever sends a combination may name any hashes, so
        the error names both summaries.
        """
        for row in summary.document.combination.parts:
            earlier = self.sources.setdefault(row.sha256, summary.source)
            if earlier != summary.source:
                raise InputError(
                    f"the summary of part {quoted(row.name)} is there twice, in {earlier} and in"
                    f" {summary.source}, and its records would count twice; leave one out"
                )

    def _check_recipe(self, summary: Addend) -> None:
        """Refuse a summary whose sums do not add up with those before it."""
        if self.reference is None:
            self.reference = Reference(summary.document.recipe, summary.centre, summary.source)
        difference = self.reference.recipe.difference(summary.document.recipe)
        if difference is None:
            difference = _difference_of_centres(self.reference.centre, summary.centre)
        if difference is not None:
            raise InputError(
                f"{self.reference.source} and {summary.source} do not add up: {difference}; make"
                " both by one recipe (tacit summarise --like)"
            )
        # a hash of the encoder that the reference does not state is that of all others
        hashes = [one.encoder.hash for one in (self.reference.recipe, summary.document.recipe)]
        if hashes[0] == NOT_STATED != hashes[1]:
            centre = self.reference.centre
            self.reference = Reference(summary.document.recipe, centre, summary.source)

    def _add_recipe(self, recipe: SummaryRecipe, centre: Floats | None) -> None:
        """Keep distinct recipes, of which there are few, and the centre whose hash is first, which
        does not depend on the order.
        """
        if recipe not in self.recipes:
            self.recipes.append(recipe)
        if self.centre is None:
            self.centre = centre
        elif centre is not None and not np.array_equal(self.centre, centre):
            self.centre = min(self.centre, centre, key=centre_hash)

    def _add_summands(self, combination: Combination) -> None:
        """Append the parts, whose class lists and costs are kept once."""
        lists = [
            self.class_lists.setdefault(json.dumps(labels), labels)
            for labels in combination.class_lists
        ]
        costs = [self.costs.setdefault(cost.model_dump_json(), cost) for cost in combination.costs]
        for row in combination.parts:
            self.summands.append(Summand(row, lists[row.class_list], costs[row.cost]))

    def _add_sums(self, classes: tuple[Any, ...], totals: Totals) -> None:
        """Add sums to those of their classes; new classes get rows of their own."""
        if self.sums is None:
            empty = np.zeros((0, totals.shape[1]), dtype=np.int64)
            self.sums = Wide(empty, empty)

        for label in classes:
            self.positions.setdefault(label, len(self.positions))
        n_new = len(self.positions) - len(self.sums.high)
        if n_new:
            self.sums = _with_rows(self.sums, n_new)

        # Blocks fit the cache. Low words are carried at the end: 64 bits hold 2^31 of them.
        rows = [self.positions[label] for label in classes]
        for first in range(0, len(rows), BLOCK_ROWS):
            at = _slice_if_consecutive(rows[first : first + BLOCK_ROWS])
            block = Wide.of(totals[first : first + BLOCK_ROWS])
            self.sums.high[at] += block.high
            self.sums.low[at] += block.low

    def _add_moments(self, moments: Totals | None) -> None:
        """Add second moments; the total has some only if all summaries have."""
        if moments is None:
            self.all_have_moments = False
            self.moments = None
        if moments is None or not self.all_have_moments:
            return

        if self.moments is None:
            zeros = np.zeros(moments.shape, dtype=np.int64)
            self.moments = Wide(zeros, zeros.copy())
        wide = Wide.of(moments)
        self.moments.high[:] += wide.high
        self.moments.low[:] += wide.low

    def total(self, *, name: str | None = None, date: str | None = None) -> Total:
        """Return the sum of what was added, with the latest date of its parts by default."""
        if self.sums is None:
            raise InputError("there are no summaries to add; pass one at least")
        combination = combination_of(self.summands, self.declared)
        classes = united_classes(combination)
        check_alike(classes, combination.class_lists)
        order = np.array([self.positions[label] for label in classes])
        arrays: dict[str, NDArray[Any]] = stored_integers(_carried(self.sums[order]), SUMS)
        if self.moments is not None:
            arrays |= stored_integers(_carried(self.moments), MOMENTS)
        if self.centre is not None:
            arrays[CENTRE] = self.centre

        recipe = united_recipe(self.recipes, centre_hash(self.centre))
        day = date or max(row.date for row in combination.parts)
        facts: dict[str, str | None] = {"name": name or _name(len(combination.parts))}
        others = dict.fromkeys(("curator", "description", "intended_use"))
        product = fitted.product("Summary", facts | others, day)
        return Total(recipe, combination, arrays, product, least_promised(self.noises))


def _difference_of_centres(reference: Floats | None, centre: Floats | None) -> str | None:
    """Name two centres that are not one; recipes say whether there is a centre."""
    if reference is None or centre is None or same_centre(reference, centre):
        return None
    return different_centres(centre_hash(reference), centre_hash(centre))


def _carried(totals: Wide) -> Wide:
    """Carry low words, of which many were added up, into the high words."""
    return totals + np.zeros((), np.int64)


def _with_rows(totals: Wide, n_rows: int) -> Wide:
    """Append rows of zeros, and copy."""
    zeros = np.zeros((n_rows, totals.shape[1]), dtype=np.int64)
    return Wide(np.concatenate([totals.high, zeros]), np.concatenate([totals.low, zeros]))


def _slice_if_consecutive(rows: list[int]) -> slice | list[int]:
    """Return an index of rows, by which numpy copies nothing where they follow each other."""
    last = rows[0] + len(rows)
    return slice(rows[0], last) if rows == list(range(rows[0], last)) else rows


def check_alike(classes: tuple[Any, ...], class_lists: Sequence[tuple[Any, ...]] = ()) -> None:
    """Refuse labels that differ by case or white space alone, since they may be one class, unless
    one of the lists tells them apart.
    """
    if not isinstance(classes[0], str):
        return
    first: dict[str, str] = {}
    for label in classes:
        first.setdefault(_key_of_label(label), label)
    if len(first) == len(classes):
        return

    told_apart = set(first.values())
    for labels in class_lists:
        listed = set(labels)
        told_apart |= {label for label in labels if first[_key_of_label(label)] in listed}
    for label in classes:
        if label not in told_apart:
            other = first[_key_of_label(label)]
            raise InputError(
                f"classes {quoted(other)} and {quoted(label)} differ by case or white space alone;"
                " name a class in one way in all lists"
            )


def _key_of_label(label: str) -> str:
    return " ".join(nfc(label).casefold().split())


def _name(n_parts: int) -> str:
    return "summary" if n_parts == 1 else f"summary of {n_parts} parts"
