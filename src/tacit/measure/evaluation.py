"""Results of a paid evaluation: noisy tables, and the figures and intervals that follow from them.

A table counts the test records by group, class and outcome (`evaluating.py`). Whatever follows from
the noisy counts (`paid_figures.py`) is post-processing, and costs nothing more.

Tables of several parts of the records, such as several hospitals, add up: their noisy integers do,
exactly and in any order, and the noise of a cell is the sum of theirs (`summed_noise.py`). The
accuracy that a sum estimates is that of the parts together, each in proportion to its records. If
the parts have other accuracies p_i, the right records of a class are a sum of binomials, whose
variance is at most that of one binomial with the accuracy of all: p (1 - p) is concave. So the
intervals, which assume one binomial, are no shorter than needed.
Price: `tacit.privacy.parts.combined`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.compute.wide import Wide
from tacit.errors import InputError, ReleaseError, quoted
from tacit.measure import intervals
from tacit.measure.evaluation_file import document_of, file_of, read_evaluation
from tacit.measure.intervals import Counts, Floats, Noise
from tacit.measure.paid_figures import Bin, Figures
from tacit.measure.part_tables import CONFIDENCE_EDGES, check_units, difference, noise_of_parts
from tacit.mechanisms.gaussian import UNIT
from tacit.privacy.guarantee import Guarantee
from tacit.releases.combination import (
    Combination,
    Declared,
    PartRow,
    combination_of,
    guarantee_of,
    least_promised,
    summands_of,
)
from tacit.releases.fields import NOT_STATED

SEEDED = "Not for release: research noise is seeded."

ABOUT_TEST_RECORDS = (
    "The figures are about the test records, and so is this guarantee. Another one covers the"
    " records that the classifier was trained on; for someone among both, the costs add up."
)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of `evaluate`: noisy tables, and all that follows from them.

    Evaluations of several parts of the records add up (`A + B`), with the same bits in any order.

    Parameters
    ----------
    classes : ndarray of shape (C,)
    group_names : tuple of str
        Declared groups, and last that of all others; one name without groups.
    counts : dict of str to Wide
        The noisy tables, by kind, of shape (groups, C, outcomes ...), in whole units of 2^-32; the
        first gives the figures.
    cell_noise : Noise
        Of each cell of each table.
    guarantee_ : Guarantee
        What the tables cost the test records.
    noise : str
        The source of noise.
    release_sha256 : str
        Hash of the arrays of the release that was measured.
    combination : Combination, optional
        The parts of the records, with their prices; None where no part was named.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat(["cat", "dog"], 500)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, y)
    >>> release = tacit.Release.of(model)
    >>> a = tacit.evaluate(release, X, y, budget="rho=0.05", part="hospital A")
    >>> b = tacit.evaluate(release, X, y, budget="rho=0.02", part="hospital B")
    >>> total = a + b
    >>> [row.name for row in total.parts], round(total.overall.records, -3)
    (['hospital A', 'hospital B'], 2000.0)
    """

    classes: NDArray[Any]
    group_names: tuple[str, ...]
    counts: Mapping[str, Wide]
    cell_noise: Noise
    guarantee_: Guarantee
    noise: str
    release_sha256: str = NOT_STATED
    combination: Combination | None = None

    @classmethod
    def combine(
        cls,
        evaluations: Iterable[Evaluation],
        *,
        overlapping: bool = False,
        moving: bool = False,
    ) -> Evaluation:
        """Add up the tables of several parts of the records.

        Parameters
        ----------
        evaluations : iterable of Evaluation
            Of one release, each with a part, or sums of such.
        overlapping : bool, default=False
            A record may be in several parts, so costs add up. Otherwise parts of different names
            are declared to have no record (under a unit per person: no person) in common.
        moving : bool, default=False
            A replaced record may belong to another part than before.

        Raises
        ------
        InputError
            If an evaluation has no part, one is there twice, or two differ in the release, the
            classes, the groups or the kinds of tables.
        """
        first: Evaluation | None = None
        counts: dict[str, Wide] = {}
        summands = []
        hashes: set[str] = set()
        noises: set[str] = set()
        for evaluation in evaluations:
            parts = evaluation._named_parts()
            for row in parts.parts:
                if row.sha256 in hashes:
                    raise InputError(
                        f"the table of part {quoted(row.name)} is there twice, and its records"
                        " would count twice; pass it once"
                    )
                hashes.add(row.sha256)

            if first is None:
                first = evaluation
                counts = dict(evaluation.counts)
            else:
                first._check_same(evaluation)
                counts = {kind: table + evaluation.counts[kind] for kind, table in counts.items()}

            summands += summands_of(parts)
            overlapping = overlapping or parts.overlapping
            moving = moving or parts.moving
            noises.add(evaluation.noise)
        if first is None:
            raise InputError("there is no evaluation to add up; pass one at least")

        combination = combination_of(summands, Declared(overlapping, moving))
        check_units(combination)
        return cls(
            classes=first.classes,
            group_names=first.group_names,
            counts=counts,
            cell_noise=noise_of_parts(combination, len(counts)),
            guarantee_=guarantee_of(combination),
            noise=least_promised(noises),
            release_sha256=first.release_sha256,
            combination=combination,
        )

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return Evaluation.combine([self, other])

    @classmethod
    def load(cls, file: Path | str) -> Evaluation:
        """Read the tables that `save` wrote; safe on a file from anybody.

        Raises
        ------
        ReleaseError
            If it is no such file, or its counts, its price and its statement do not go together.
        """
        document = read_evaluation(Path(file))
        counts = document.counts
        return cls(
            classes=np.array(document.classes),
            group_names=document.groups,
            counts=counts,
            cell_noise=noise_of_parts(document.combination, len(counts)),
            guarantee_=Guarantee.from_json(document.guarantee.model_dump()),
            noise=document.noise,
            release_sha256=document.release,
            combination=document.combination,
        )

    def save(self, file: Path | str, *, force: bool = False, allow_research: bool = False) -> Path:
        """Write the noisy tables, for whoever adds them to those of other parts.

        Parameters
        ----------
        file : str or Path
            Returned as a Path.
        force : bool, default=False
            Replace an older file.
        allow_research : bool, default=False
            Write tables with research noise, or without noise, which are stamped "NOT FOR RELEASE".

        Raises
        ------
        InputError
            If no part was named, or the file exists.
        ReleaseError
            If the tables are not for release, or too large to be read again.
        """
        document = document_of(
            self.counts,
            release=self.release_sha256,
            classes=tuple(self.classes.tolist()),
            groups=self.group_names,
            noise=self.noise,
            combination=self._named_parts(),
            guarantee=self.guarantee_,
        )
        if document.stamp and not allow_research:
            raise ReleaseError(
                f"these tables are stamped {document.stamp}, since they have no secret noise; pass"
                " allow_research=True to write them anyway"
            )
        data = file_of(document)
        file = Path(file)
        with atomic_file(file, force=force) as temporary:
            temporary.write_bytes(data)
        return file

    @property
    def parts(self) -> tuple[PartRow, ...]:
        """The parts of the records, a row each; empty where none was named."""
        return () if self.combination is None else self.combination.parts

    @property
    def tables(self) -> dict[str, Floats]:
        """The noisy tables, by kind, in records."""
        return {kind: table / UNIT for kind, table in self.counts.items()}

    @property
    def overall(self) -> Figures:
        """Figures of all records."""
        return self._figures(slice(None))

    @property
    def groups(self) -> dict[str, Figures]:
        """Figures of each declared group, and of all others; empty without groups."""
        if len(self.group_names) == 1:
            return {}
        return {name: self._figures([i]) for i, name in enumerate(self.group_names)}

    @property
    def accuracy(self) -> float:
        """Share of right records, or of persons' weights."""
        return self.overall.accuracy

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the accuracies of all classes."""
        return self.overall.balanced_accuracy

    @property
    def per_class(self) -> dict[Any, float]:
        """Accuracy of each class; nan where noise hides whether there are records."""
        return self.overall.per_class

    def interval(self, name: str = "balanced_accuracy", level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a figure of all records; see `Figures.interval`."""
        return self.overall.interval(name, level)

    @property
    def confusion(self) -> Floats:
        """Noisy number of records of each class (row) by predicted class, of shape (C, C).

        Raises
        ------
        InputError
            Without a table of predicted classes.
        """
        return np.asarray(self._table("predicted").sum(axis=0))

    @property
    def calibration(self) -> list[Bin]:
        """Accuracy in each bin of the probability that the predicted class was given.

        Raises
        ------
        InputError
            Without a table of confidence.
        """
        table = self._table("confidence").sum(axis=(0, 1))
        n_cells = len(self.group_names) * len(self.classes)
        counts = Counts.of(table[0], table[1], n_cells, n_cells)
        shares = intervals.accuracy(counts, self.cell_noise)
        lower, upper = intervals.accuracy_intervals(counts, self.cell_noise, 0.95)
        return [
            Bin(
                low=float(CONFIDENCE_EDGES[at]),
                high=float(CONFIDENCE_EDGES[at + 1]),
                records=float(counts.records[at]),
                accuracy=float(shares[at]),
                interval=(float(lower[at]), float(upper[at])),
            )
            for at in range(len(shares))
        ]

    def statement(self) -> str:
        """Return the guarantee of the test records in words."""
        price = self.guarantee_.statement(opening="These figures hide")
        statement = f"{price}\n{ABOUT_TEST_RECORDS}"
        if self.noise == "research":
            statement = f"{statement}\n{SEEDED}"
        return statement

    def _named_parts(self) -> Combination:
        """Return the parts of the records; an error if none was named."""
        if self.combination is None:
            raise InputError(
                "these tables name no part of the records, so nothing says whether others are of"
                " the same records; pass part='hospital A' to tacit.evaluate"
            )
        return self.combination

    def _check_same(self, other: Evaluation) -> None:
        """Refuse tables of another release, class list, groups or kinds."""
        fault = None
        if self.release_sha256 != other.release_sha256:
            fault = (
                f"one is of the release {self.release_sha256[:16]} and the other of"
                f" {other.release_sha256[:16]}"
            )
        lists = {
            "class": (self.classes.tolist(), other.classes.tolist()),
            "group": (self.group_names, other.group_names),
            "table": (tuple(self.counts), tuple(other.counts)),
        }
        for name, (first, second) in lists.items():
            fault = fault or difference(name, first, second)
        if fault is not None:
            names = ", ".join(quoted(row.name) for row in other.parts[:5])
            raise InputError(
                f"the tables of part {names} do not go with the others: {fault}; evaluate one"
                " release with the same groups and tables everywhere"
            )

    def _table(self, kind: str) -> Floats:
        if kind not in self.counts:
            raise InputError(
                f"there is no table {kind!r} among {', '.join(self.counts)}; pass"
                f" tables=[..., {kind!r}], which is paid for"
            )
        return np.asarray(self.counts[kind] / UNIT)

    def _figures(self, groups: Any) -> Figures:
        """Return the figures of the groups at these places, by the first table."""
        kind, of_all_groups = next(iter(self.counts.items()))
        of_groups = of_all_groups[groups] / UNIT
        n_groups = len(of_groups)
        n_classes = len(self.classes)

        # each number is the sum of so many noisy cells
        table = of_groups.sum(axis=0)
        if kind == "predicted":
            right = np.diagonal(table)
            wrong = table.sum(axis=1) - right
            counts = Counts.of(right, wrong, n_groups, n_groups * (n_classes - 1))
        else:
            # of right and wrong, by bin of confidence where there are bins
            table = table.reshape(n_classes, 2, -1)
            n_cells = n_groups * table.shape[2]
            sums = table.sum(axis=2)
            counts = Counts.of(sums[:, 0], sums[:, 1], n_cells, n_cells)
        return Figures(self.classes, counts, self.cell_noise)
