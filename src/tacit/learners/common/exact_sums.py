"""Fits from exact sums: what a learner sums, the sums of a part of the records, and their noise.

A learner states its `Query`s. A fit on one machine releases them from its rows. Elsewhere a
`Recipe` turns the rows of each part of the records, such as a partition of a cluster, into exact
integer `Sums`. These are added up in any order, and `fit_sums` adds noise to the total, once. Both
ways add the same integers, so they release the same bits from the same noise.

Sums hold no noise and are private.
"""

from __future__ import annotations

import hashlib
import io
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.wide import Totals, Wide, added
from tacit.data.labels import class_indices, clean_labels, listed_classes
from tacit.data.rows import as_rows
from tacit.errors import InputError
from tacit.learners.common import sums as noisy
from tacit.learners.common.base import FLOATS, Prepared, PrivateClassifier
from tacit.learners.common.parameters import flag
from tacit.learners.common.validation import label_sets_of
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import NoiseSource, noise_source
from tacit.mechanisms.rounding import check_width
from tacit.models.rows import Floats, check_finite
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit
from tacit.version import __version__

# sums of more records than this are in two words, whatever is summed
_NARROW_RECORDS = 2**26

BlocksOf = Callable[[Any, str], Iterator[Block]]
"""From prepared records and a label of progress to blocks of rows; a function of a module."""


class Query(Protocol):
    """Sums that a fit releases: as exact integers, or with noise."""

    @property
    def name(self) -> str:
        """Name among the sums of a fit, and label of progress."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sums."""

    def exact(self, records: Prepared) -> Totals:
        """Sum the integer rows of these records; not private."""


@dataclass(frozen=True)
class ClassSums:
    """The sum of each class's rows, of shape (n_classes, width)."""

    name: str
    n_classes: int
    width: int
    blocks: BlocksOf
    unit_rows: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.n_classes, self.width

    def exact(self, records: Prepared) -> Totals:
        return gaussian.class_sums(
            self.blocks(records, self.name),
            n_classes=self.n_classes,
            width=self.width,
            unit_rows=self.unit_rows,
        )

    def released(self, records: Prepared, *, multiplier: float, noise: NoiseSource) -> Floats:
        """Release the sums, which costs `gaussian.event(multiplier)`."""
        if records.sums is not None:
            totals = records.sums.totals[self.name]
            return gaussian.with_noise(totals, noise_multiplier=multiplier, noise=noise)
        return noisy.class_sums(
            self.blocks(records, self.name),
            n_classes=self.n_classes,
            width=self.width,
            multiplier=multiplier,
            noise=noise,
            unit_rows=self.unit_rows,
        )

    def noisy_integers(self, records: Prepared, *, multiplier: float, noise: NoiseSource) -> Totals:
        """Release the sums as integers, in units of `gaussian.UNIT`; `multiplier` is above 0."""
        if records.sums is not None:
            totals = records.sums.totals[self.name]
        else:
            totals = self.exact(records)
        return gaussian.noisy_integers(
            totals,
            noise_multiplier=multiplier,
            noise=noise,
            per_person=records.persons is not None,
        )


@dataclass(frozen=True)
class SecondMoments:
    """The sum of x x' over all rows x, of shape (width, width)."""

    name: str
    width: int
    blocks: BlocksOf

    @property
    def shape(self) -> tuple[int, ...]:
        return self.width, self.width

    def exact(self, records: Prepared) -> Totals:
        return outer_products.triangle_sums(self.blocks(records, self.name), width=self.width)

    def released(
        self, records: Prepared, *, multiplier: float, noise: NoiseSource, rows_are_public: bool
    ) -> Floats:
        """Release the sums, which costs `outer_products.event(multiplier)`, or nothing where rows
        are public.
        """
        if records.sums is not None:
            totals = _copied(records.sums.totals[self.name])
            if rows_are_public:
                return outer_products.without_noise(totals)
            return outer_products.with_noise(totals, noise_multiplier=multiplier, noise=noise)
        return noisy.second_moments(
            self.blocks(records, self.name),
            width=self.width,
            multiplier=multiplier,
            noise=noise,
            rows_are_public=rows_are_public,
        )

    def noisy_integers(self, records: Prepared, *, multiplier: float, noise: NoiseSource) -> Totals:
        """Release the upper triangle as integers: see `outer_products.noisy_triangle`."""
        return outer_products.noisy_triangle(
            self.exact(records),
            noise_multiplier=multiplier,
            noise=noise,
            per_person=records.persons is not None,
        )


@dataclass(frozen=True)
class ClassSecondMoments:
    """The sum of x x' over the rows x of each class, of shape (n_classes, width, width)."""

    name: str
    n_classes: int
    width: int
    blocks: BlocksOf

    @property
    def shape(self) -> tuple[int, ...]:
        return self.n_classes, self.width, self.width

    def exact(self, records: Prepared) -> Totals:
        return outer_products.class_product_sums(
            self.blocks(records, self.name), n_classes=self.n_classes, width=self.width
        )

    def released(self, records: Prepared, *, multiplier: float, noise: NoiseSource) -> Floats:
        """Release the sums, which costs `outer_products.class_event(multiplier)`."""
        if records.sums is not None:
            totals = _copied(records.sums.totals[self.name])
            return outer_products.with_noise(totals, noise_multiplier=multiplier, noise=noise)
        return noisy.class_second_moments(
            self.blocks(records, self.name),
            n_classes=self.n_classes,
            width=self.width,
            multiplier=multiplier,
            noise=noise,
        )


def ones_of(records: Any, label: str) -> Iterator[Block]:
    """Yield a 1 for each record, so that sums are numbers of records."""
    for _, labels, ends in records.blocks(label):
        yield Block(np.ones((len(labels), 1)), labels, ends)


def blocks_of(records: Any, label: str) -> Iterator[Block]:
    """Yield the unit rows of the records."""
    return iter(records.blocks(label))


def _copied(totals: Totals) -> Totals:
    """Sums that a release may overwrite; those of `Wide` integers are never overwritten."""
    if isinstance(totals, Wide):
        return totals
    return totals.copy()


@dataclass(frozen=True, eq=False)
class Sums:
    """Exact integer sums of some of the records of a fit, by the name of their query; private.

    Sums of disjoint sets of records add up to those of all, in any order: `a + b`. `width` is the
    number of columns of the records, `digest` that of the recipe. A notebook and a log show neither
    the sums nor the number of records.
    """

    totals: dict[str, Totals] = field(repr=False)
    records: int = field(repr=False)
    width: int
    digest: str

    def __add__(self, other: Sums) -> Sums:
        if other.digest != self.digest:
            raise InputError(
                "sums of two recipes do not add up; make both with the recipe of one learner"
            )
        records = self.records + other.records
        totals = {
            name: _sum_of_two(total, other.totals[name], records)
            for name, total in self.totals.items()
        }
        return replace(self, totals=totals, records=records)

    def packed(self) -> bytes:
        """The sums as bytes; `Recipe.unpacked` reads them."""
        arrays: dict[str, NDArray[Any]] = {
            "records": np.array(self.records),
            "digest": np.array(self.digest),
        }
        for name, total in self.totals.items():
            if isinstance(total, Wide):
                arrays[f"{name}/high"] = total.high
                arrays[f"{name}/low"] = total.low
            else:
                arrays[name] = total
        buffer = io.BytesIO()
        # numpy's types know of one keyword only
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()


def _sum_of_two(total: Totals, other: Totals, records: int) -> Totals:
    """Add sums, in int64 if those of so many records, and noise, fit."""
    if records > _NARROW_RECORDS or isinstance(total, Wide) or isinstance(other, Wide):
        return added(total, other)
    return np.asarray(total + other)


@dataclass(frozen=True, eq=False)
class Recipe:
    """From the rows of some records to their exact sums, as a learner needs them.

    It holds public facts alone and may be sent to workers: the class list, the number of columns,
    the centre of public rows.

    Attributes
    ----------
    learner : str
        Name of the learner's class.
    classes : ndarray of shape (C,)
    records : Prepared
        Prepared records without rows: their form.
    queries : tuple of Query
    most_labels : int or None
        The most labels that a record has, as declared; None if each has one.
    """

    learner: str
    classes: NDArray[Any]
    records: Any
    queries: tuple[Query, ...]
    most_labels: int | None = None

    @property
    def width(self) -> int:
        """Number of columns of the records."""
        return int(self.records.X.shape[1])

    @property
    def digest(self) -> str:
        """Hash of the public facts that decide the sums, and of the version that rounds rows."""
        centre = self.records.centre
        facts: tuple[Any, ...] = (
            __version__,
            self.learner,
            self.classes.tolist(),
            self.width,
            self.records.intercept,
            None if centre is None else hashlib.sha256(centre.tobytes()).hexdigest(),
            [(query.name, query.shape) for query in self.queries],
        )
        if self.most_labels is not None:
            # it decides the weights of records
            facts = (*facts, self.most_labels)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def sums(self, X: Any, y: Any) -> Sums:
        """Sum some of the records; a function of these alone, whatever their order.

        Parameters
        ----------
        X : array-like of shape (n, d)
            One embedding per record; finite. Any number of records, none included.
        y : array-like of shape (n,)
            Labels, each in the class list. With `most_labels`, an array of 0 and 1 of shape (n, C),
            or a list of the labels of each record.

        Returns
        -------
        Sums
            Private.

        Raises
        ------
        InputError
            If a label is not in the class list, or X does not have that form.
        """
        if len(X) == 0:
            return self.zero()
        rows = as_rows(X, "X")
        if rows.dtype not in FLOATS:
            rows = rows.astype(np.float64)
        if rows.shape[1] != self.width:
            raise InputError(
                f"X has {rows.shape[1]} columns and the recipe {self.width}; pass the columns of"
                " the recipe"
            )
        check_finite(rows)
        labels = self._labels(y, len(rows))

        records = replace(self.records, X=rows, labels=labels)
        totals = {query.name: query.exact(records) for query in self.queries}
        return self._sums(totals, len(labels))

    def _labels(self, y: Any, n_records: int) -> NDArray[Any]:
        """Return class indices (n,), or which labels each record has, (n, C)."""
        if self.most_labels is None:
            return class_indices(clean_labels(y, n_records), self.classes)
        return label_sets_of(y, self.classes, n_records=n_records)

    def zero(self) -> Sums:
        """The sums of no records."""
        totals: dict[str, Totals] = {
            query.name: np.zeros(query.shape, dtype=np.int64) for query in self.queries
        }
        return self._sums(totals, 0)

    def _sums(self, totals: dict[str, Totals], records: int) -> Sums:
        return Sums(totals, records, self.width, self.digest)

    def unpacked(self, data: bytes) -> Sums:
        """The sums that `Sums.packed` wrote; InputError if they are by another recipe."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            if str(arrays["digest"]) != self.digest:
                raise InputError(
                    "the packed sums are by another recipe or another version of tacit; sum all"
                    " parts with the recipe of one learner and one version"
                )
            totals: dict[str, Totals] = {}
            for query in self.queries:
                if query.name in arrays:
                    totals[query.name] = arrays[query.name]
                else:
                    high = arrays[f"{query.name}/high"]
                    totals[query.name] = Wide(high, arrays[f"{query.name}/low"])
            return self._sums(totals, int(arrays["records"]))


def check_classes_are_declared(classes: Any) -> None:
    """Refuse a class list that is not declared."""
    if classes is None:
        raise InputError(
            "classes=None would read the class list off private labels; declare classes=[...]"
        )


def check_budget_is_finite(budget: Budget | str) -> None:
    """Refuse an infinite budget, under which rows are not rounded to integers."""
    if Budget.parse(budget).infinite:
        raise InputError(
            f"budget={budget!r} adds up rows that no integers bound; pass a finite budget"
        )


class SumsClassifier(PrivateClassifier):
    """Base of the learners that `fit_sums` fits too, from sums that were computed elsewhere."""

    @abstractmethod
    def _queries(self, prepared: Any) -> tuple[Query, ...]:
        """Return the sums that a fit releases under a unit per record and a finite budget."""

    def recipe(self, width: int) -> Recipe:
        """Return what turns rows into the exact sums that `fit_sums` takes.

        It follows from the parameters and public rows.

        Parameters
        ----------
        width : int
            Number of columns of the records.

        Raises
        ------
        InputError
            If the classes are not declared, the unit is per person, the budget infinite, or public
            rows may be private records: they are not compared with records that are elsewhere.
        """
        worker = copy(self)
        worker.promise()
        worker._check_for_sums()
        worker.classes_ = listed_classes(self.classes)
        check_width(width)

        # one row and no labels are enough: `_prepare` decides by public facts, as for `check`
        row = np.broadcast_to(np.ones(1), (1, width))
        prepared = worker._prepare(row, np.zeros(0, dtype=np.int64))
        no_records = replace(prepared, X=np.zeros((0, width)))
        return Recipe(
            type(self).__name__,
            worker.classes_,
            no_records,
            worker._queries(no_records),
            self.most_labels,
        )

    def _check_for_sums(self) -> None:
        """Refuse parameters with which a fit needs more than exact sums of records."""
        check_classes_are_declared(self.classes)
        if self.tree is not None:
            raise InputError(
                "tree=... lets records be labelled with inner nodes, of which a recipe has no sums;"
                " fit on one machine, or pass the tree to Release.of"
            )
        unit = Unit(self.unit)
        if unit.per_person:
            raise InputError(
                f"unit={unit} bounds all records of a person together, and sums of parts bound each"
                " record; fit on one machine with persons=..., or pass a unit per record"
            )
        check_budget_is_finite(self.budget)
        allowed = flag("allow_overlap", self.allow_overlap)
        if self._uses_public() and not (allowed or unit.rows_public):
            raise InputError(
                "allow_overlap=False compares public rows with the records, which sums do not hold;"
                " pass allow_overlap=True where public rows are no private records"
            )

    def fit_sums(self, sums: Sums) -> Self:
        """Learn from the exact sums of private records: what `fit` releases from the records.

        Parameters
        ----------
        sums : Sums
            Sums of all records, by this learner's `recipe`. Each record must be in them once: a
            record that is in them twice moves the release by twice as much as the guarantee states.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the sums are by another recipe.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        if not isinstance(sums, Sums):
            raise InputError(
                f"sums={type(sums).__name__} must be Sums; pass those of learner.recipe(width)"
            )
        self._forget_fit()
        worker = copy(self)
        promise = worker.promise()
        recipe = worker.recipe(sums.width)
        if recipe.digest != sums.digest:
            raise InputError(
                "the sums are by the recipe of another learner; pass those of this learner's"
                " recipe(width)"
            )
        worker.classes_ = recipe.classes
        worker.n_features_in_ = recipe.width

        noise = noise_source(self.noise, self.random_state)
        prepared = replace(recipe.records, sums=sums)
        return self._learn_prepared(worker, prepared, promise, noise)
