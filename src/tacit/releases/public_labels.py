"""Labels of public rows by a release, as a folder that may be handed out in place of the release.

A folder of four files: `labels.csv`, `labels.json` (which release labelled which pool, with
hashes), `release.json` (the document of the release, without its arrays) and `CARD.md`. The labels
are post-processing of the release: they follow from its arrays and from rows that are public.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compute.atomic import write_folder
from tacit.data.arrays import Arrays
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data
from tacit.data.origin import Origin
from tacit.errors import InputError, ReleaseError
from tacit.privacy.guarantee import Guarantee
from tacit.releases import reading
from tacit.releases.columns import columns_of, rows_of
from tacit.releases.labels_document import LabelsDocument, labels_card, repeated_guarantee
from tacit.releases.labels_facts import label_meaning, levels_of, possible_labels_of, selection_of
from tacit.releases.labels_files import (
    LIMITS,
    TABLE,
    holds_public_labels,
    parse_labels_document,
    read_files,
)
from tacit.releases.labels_table import LabelTable
from tacit.releases.pool_rows import rows_hash
from tacit.releases.reading import AGAIN, CARD, DOCUMENT, LABELS_DOCUMENT
from tacit.releases.rows import checked_rows
from tacit.releases.schema import Document
from tacit.releases.statement import check_statements

__all__ = ["PublicLabels"]


@dataclass(eq=False, repr=False)
class PublicLabels:
    """Labels of public rows by a release, made by `label_public` or read by `PublicLabels.load`.

    Parameters
    ----------
    document : LabelsDocument
        The content of `labels.json`.
    release : Document
        The document of the release that labelled the rows.
    table : LabelTable
        The content of `labels.csv`.
    card_text : str
        The content of `CARD.md`.
    source : str
        The folder that they were read from, for messages.

    Examples
    --------
    >>> import tempfile, numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 50, axis=0), np.repeat(["cat", "dog"], 50)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, y)
    >>> release = tacit.Release.of(model, name="pets")
    >>> pool = np.array([[2.0, 0.1], [1.0, 1.0], [0.0, 3.0]])
    >>> labels = tacit.label_public(release, pool, public={"name": "web pictures"})
    >>> folder = labels.save(tempfile.mkdtemp() + "/labelled")
    >>> labels = tacit.PublicLabels.load(folder).verify()
    >>> X, y = labels.join(pool)
    >>> y[[0, 2]], labels.guarantee.rho
    (array(['cat', 'dog'], dtype='<U3'), 0.5)
    """

    document: LabelsDocument
    release: Document
    table: LabelTable
    card_text: str
    source: str = "labels"

    @classmethod
    def load(cls, folder: Path | str) -> PublicLabels:
        """Read a folder of labels; safe on files from anybody. Call `verify` to check what it says.

        Raises
        ------
        ReleaseError
            If a file is missing, unknown, too large or malformed, or the table does not fit the
            document.
        """
        folder = Path(folder)
        return cls.of_files(read_files(folder), folder)

    @classmethod
    def of_files(cls, files: Mapping[str, bytes], folder: Path) -> PublicLabels:
        """Read labels from the bytes of their files by name; errors are those of `load`."""
        document = parse_labels_document(str(folder / LABELS_DOCUMENT), files[LABELS_DOCUMENT])
        release = reading.parse_document(str(folder / DOCUMENT), files[DOCUMENT])
        texts = {name: reading.text_of(folder / name, files[name]) for name in (TABLE, CARD)}
        table = LabelTable.parse(
            str(folder / TABLE),
            texts[TABLE],
            document.table.columns,
            possible_labels_of(str(folder / DOCUMENT), release)[0],
            document.pool.rows,
        )
        # raises for malformed events
        reading.read_guarantee(release.guarantee, str(folder))
        return cls(document, release, table, texts[CARD], str(folder))

    def save(
        self, folder: Path | str, *, force: bool = False, allow_research: bool = False
    ) -> Path:
        """Write the labels to a new folder, whole or not at all.

        Parameters
        ----------
        folder : str or Path
            Returned as a Path.
        force : bool, default=False
            Replace older labels of that name; no other folder is ever replaced.
        allow_research : bool, default=False
            Write labels by a release that is stamped "NOT FOR RELEASE".

        Raises
        ------
        ReleaseError
            If the release is stamped, or a file would be too large to be read again.
        InputError
            If the folder exists or cannot be written.
        """
        files = self.files(allow_research=allow_research)
        return write_folder(folder, files, force=force, ours=holds_public_labels)

    def files(self, *, allow_research: bool = False) -> dict[str, bytes]:
        """Return the bytes of the four files by name; errors are those of `save`."""
        if self.release.stamp and not allow_research:
            fault = f"{self.release.product.name!r} is {self.release.stamp}, and so are its labels"
            raise ReleaseError(
                f"{fault}; fit with noise='secure' and a finite budget, or pass"
                " allow_research=True (--allow-research) to keep them for research"
            )
        files = {
            LABELS_DOCUMENT: reading.document_file(self.document),
            DOCUMENT: reading.document_file(self.release),
            TABLE: self._table_file(),
            CARD: self.card().encode("utf-8"),
        }
        reading.check_sizes(files, LIMITS, "label the pool in parts")
        return files

    def verify(self) -> PublicLabels:
        """Check that the files and every stated number agree; returns these labels.

        Every number about privacy is computed again from the events that the release recorded, and
        every count of rows from the table, except those of rows that were left out.

        Raises
        ------
        ReleaseError
            At the first statement that does not agree.
        """
        # raises if the labels were changed since
        self._table_file()
        stated_hash = self.document.release.document_sha256
        if hashlib.sha256(reading.document_file(self.release)).hexdigest() != stated_hash:
            raise self._error(f"{DOCUMENT} has another hash than {LABELS_DOCUMENT} states")
        fault = self._untrue_fact() or check_statements(self.release, self.guarantee)
        if fault is not None:
            raise self._error(fault)
        if self.card_text != self.card():
            raise self._error(f"{CARD} does not say what {LABELS_DOCUMENT} says")
        return self

    def join(self, pool: EmbeddingStore | Path | str | ArrayLike) -> tuple[Any, NDArray[Any]]:
        """Return the labelled rows of the pool and their labels, for any classifier.

        Parameters
        ----------
        pool : EmbeddingStore, path or array-like of shape (N, d)
            The pool that was labelled: all its rows, in their order. A path is read as by
            `tacit import`.

        Returns
        -------
        X : array of shape (n, d)
            The rows that have a label. A table is encoded by the columns of the release.
        y : array of shape (n,)
            Their labels. `probabilities` is in the same order.

        Raises
        ------
        InputError
            If these are not the rows that were labelled.
        """
        values: Any = read_data(pool) if isinstance(pool, Path | str) else pool
        if isinstance(values, EmbeddingStore | Arrays):
            values = values.x
        contents = self.release.contents
        table_rows = rows_of(columns_of(contents), values, stacklevel=2)
        pool_rows = checked_rows(table_rows, contents.width)
        stated = self.document.pool
        fits = len(pool_rows) == stated.rows and rows_hash(pool_rows) == stated.rows_sha256
        if not fits:
            raise InputError(
                f"pool does not have the {stated.rows} rows of {stated.name!r} that were labelled,"
                f" in their order; pass the pool whose hash is {stated.hash}"
            )
        return np.asarray(pool_rows[self.rows]), self.labels

    @property
    def rows(self) -> NDArray[np.int64]:
        """Position in the pool of each labelled row, of shape (n,), ascending."""
        return self.table.rows

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each of these rows, of the class list."""
        return self.table.labels

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each label, rounded down to four decimals."""
        return self.table.probabilities

    @property
    def origin(self) -> Origin | None:
        """Position and name of each labelled row in the source that the pool was made from; None
        if the pool is the source.
        """
        return self.table.origin

    @property
    def guarantee(self) -> Guarantee:
        """The privacy cost of the release, which is that of the labels too."""
        return reading.read_guarantee(self.release.guarantee, self.source)

    def card(self) -> str:
        """The card as Markdown."""
        return labels_card(self.document, self.release)

    def __repr__(self) -> str:
        selection = self.document.selection
        pool = self.document.pool
        return f"PublicLabels({selection.labelled} of {pool.rows} rows of {pool.name!r})"

    def _untrue_fact(self) -> str | None:
        """Describe the first fact that the table or the document of the release does not bear out;
        None if all agree.
        """
        document = self.document
        if document.release.arrays_sha256 != self.release.contents.sha256:
            return f"arrays_sha256 is not the hash that {DOCUMENT} states"
        if document.release.name != self.release.product.name:
            return f"release.name is not the name that {DOCUMENT} states"
        if document.guarantee != repeated_guarantee(self.release):
            return f"the guarantee of {LABELS_DOCUMENT} is not that of {DOCUMENT}"

        at_least = None
        if document.selection.at_least != "none":
            at_least = document.selection.at_least
        left_out = [count.left_out for count in document.selection.classes]
        possible_labels, levels = possible_labels_of(self.source, self.release)
        if len(left_out) != len(possible_labels):
            return f"selection.classes are not the classes that {DOCUMENT} states"
        if document.table.label != label_meaning(levels, at_least):
            return f"table.label does not say what a label of {TABLE} is"
        stated_levels = None if self.table.levels is None else self.table.levels.tolist()
        if stated_levels != levels_of(self.labels, possible_labels, levels):
            return f"a level of {TABLE} is not that of its label"
        refuse = None
        if document.selection.refuse != "none":
            refuse = document.selection.refuse
        selection = selection_of(
            possible_labels,
            self.labels,
            left_out,
            at_least,
            refused=document.selection.refused,
            refuse=refuse,
        )
        # as JSON, where the label 1 is not the label true
        if document.selection.model_dump_json() != selection.model_dump_json():
            return f"the counts of {LABELS_DOCUMENT} are not those of {TABLE}"
        n_rows = selection.labelled + selection.left_out + selection.refused
        if n_rows != document.pool.rows:
            return "labelled rows and those left out or refused do not add up to the pool"
        if refuse is None and selection.refused:
            return "rows were refused, and no share is stated"
        if at_least is None and document.selection.left_out:
            return "rows were left out, and no probability is stated"
        if at_least is not None and float(self.probabilities.min()) < at_least:
            return f"a label of {TABLE} is below the stated probability {at_least:g}"
        return None

    def _table_file(self) -> bytes:
        content = self.table.file()
        if hashlib.sha256(content).hexdigest() != self.document.table.sha256:
            raise self._error(f"{TABLE} has another hash than {LABELS_DOCUMENT} states")
        return content

    def _error(self, fault: str) -> ReleaseError:
        return ReleaseError(f"{self.source}: {fault}; {AGAIN}")
