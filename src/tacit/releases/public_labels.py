"""Labels of public rows by a release, as a folder that may be handed out in place of the release.

A folder of four files: `labels.csv`, `labels.json` (which release labelled which pool, with
hashes), `release.json` (the document of the release, without its arrays) and `CARD.md`. The labels
are post-processing of the release: they follow from its arrays and from rows that are public.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from tacit.compute.atomic import atomic_folder
from tacit.compute.documents import parse_json
from tacit.compute.remote import RemotePath
from tacit.compute.texts import nfc
from tacit.data.arrays import Arrays
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import read_data
from tacit.data.origin import Origin
from tacit.data.synthetic import is_synthetic
from tacit.data.trees import Tree
from tacit.errors import InputError, LedgerError, ReleaseError, excerpt, quoted
from tacit.models.answers import Levels, checked_share, no_label
from tacit.models.rows import row_parts
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger_note import has_note
from tacit.releases import fitted, reading
from tacit.releases.columns import columns_of, rows_of
from tacit.releases.labels_document import (
    FORMAT,
    VERSION,
    ClassCount,
    LabelsDocument,
    Pool,
    Selection,
    SourceRelease,
    Table,
    labels_card,
    repeated_guarantee,
)
from tacit.releases.labels_table import LabelTable
from tacit.releases.provenance import public_facts
from tacit.releases.reading import AGAIN, CARD, DOCUMENT, LABELS_DOCUMENT
from tacit.releases.release import Release, checked_rows
from tacit.releases.schema import NOT_STATED, Document, TaskContents
from tacit.releases.statement import check_statements

__all__ = ["PublicLabels", "label_public"]

TABLE = "labels.csv"
LIMITS = {
    LABELS_DOCUMENT: reading.LIMITS[DOCUMENT],
    DOCUMENT: reading.LIMITS[DOCUMENT],
    TABLE: 2**29,
    CARD: 2 * reading.LIMITS[CARD],
}

# Probabilities are rounded down to this many parts of 1.
PARTS = 10_000

# The error of a product with PARTS.
ROUNDING = 1e-6


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
        files = _read_files(folder)
        document = _parse_document(str(folder / LABELS_DOCUMENT), files[LABELS_DOCUMENT])
        release = reading.parse_document(str(folder / DOCUMENT), files[DOCUMENT])
        texts = {name: _text(folder / name, files[name]) for name in (TABLE, CARD)}
        table = LabelTable.parse(
            str(folder / TABLE),
            texts[TABLE],
            document.table.columns,
            _possible_labels(str(folder / DOCUMENT), release)[0],
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
        folder = Path(folder)
        files = self.files(allow_research=allow_research)
        with atomic_folder(folder, force=force, ours=holds_public_labels) as part:
            for name, data in files.items():
                (part / name).write_bytes(data)
        return folder

    def files(self, *, allow_research: bool = False) -> dict[str, bytes]:
        """Return the bytes of the four files by name; errors are those of `save`."""
        if self.release.stamp and not allow_research:
            fault = f"{self.release.product.name!r} is {self.release.stamp}, and so are its labels"
            raise ReleaseError(
                f"{fault}; fit with noise='secure' and a finite budget, or pass"
                " allow_research=True (--allow-research) to keep them for research"
            )
        files = {
            LABELS_DOCUMENT: _document_file(self.document),
            DOCUMENT: _document_file(self.release),
            TABLE: self._table_file(),
            CARD: self.card().encode("utf-8"),
        }
        for name, data in files.items():
            if len(data) > LIMITS[name]:
                fault = f"{name} has {len(data)} bytes, at most {LIMITS[name]} are read"
                raise ReleaseError(f"{fault}; label the pool in parts")
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
        if hashlib.sha256(_document_file(self.release)).hexdigest() != stated_hash:
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
        fits = len(pool_rows) == stated.rows and _rows_hash(pool_rows) == stated.rows_sha256
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
        possible_labels, levels = _possible_labels(self.source, self.release)
        if len(left_out) != len(possible_labels):
            return f"selection.classes are not the classes that {DOCUMENT} states"
        if document.table.label != _meaning(levels, at_least):
            return f"table.label does not say what a label of {TABLE} is"
        stated_levels = None if self.table.levels is None else self.table.levels.tolist()
        if stated_levels != _levels_of(self.labels, possible_labels, levels):
            return f"a level of {TABLE} is not that of its label"
        selection = _selection(possible_labels, self.labels, left_out, at_least)
        # as JSON, where the label 1 is not the label true
        if document.selection.model_dump_json() != selection.model_dump_json():
            return f"the counts of {LABELS_DOCUMENT} are not those of {TABLE}"
        if document.selection.labelled + document.selection.left_out != document.pool.rows:
            return "labelled rows and those left out do not add up to the pool"
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


def label_public(
    release: Release,
    pool: EmbeddingStore | Arrays | ArrayLike,
    *,
    at_least: float | None = None,
    name: str | None = None,
    curator: str | None = None,
    description: str | None = None,
    intended_use: str | None = None,
    public: Mapping[str, str] | None = None,
    date: date | str | None = None,
) -> PublicLabels:
    """Label public rows by a release, for a folder that may be handed out.

    The labels are what `Release.predict` gives, each with its probability. They cost no further
    privacy, since they follow from the release and public rows.

    Parameters
    ----------
    release : Release
        As `Release.load` or `Release.of` returns it; it is verified.
    pool : EmbeddingStore or array-like of shape (N, d)
        Public rows, as `Release.predict` takes them. Labels of a store are not used. No private
        record may be among them: the labels would show it, and no statement about privacy would
        hold.
    at_least : float, optional
        Leave out rows whose label has a smaller probability; by default none. By a release that
        carries a tree, the label is the deepest node that reaches this probability, which is then
        above 0.5.
    name, curator, description, intended_use : str, optional
        One line each for the card of the labels.
    public : dict, optional
        `name`, `revision` and `hash` of the pool, for the card; by default those of the store.
    date : date or str, optional
        Day of publication as YYYY-MM-DD; by default today.

    Raises
    ------
    InputError
        If the pool does not have that form, is private (a ledger counts what is spent on it) or
        synthetic, no row reaches the probability, or the release gives a row several labels.
    ReleaseError
        If the release does not verify, or is older than probabilities.

    Notes
    -----
    Guarantee: that of the release, unchanged: its arrays were released, and the pool is public
    (post-processing).

    Examples
    --------
    See `PublicLabels`.
    """
    if not isinstance(release, Release):
        raise InputError(
            f"release={release!r:.60} must be a Release; pass tacit.Release.load(folder)"
        )
    if release.several:
        raise InputError(
            f"{release.source} gives a row several labels or none, and a folder of labels has one a"
            " row; use tacit predict (Release.predict)"
        )
    threshold = _checked_probability(at_least)
    if threshold is not None and release.tree is not None:
        checked_share(threshold)
    release.verify()

    values = pool
    origin = None
    if isinstance(pool, EmbeddingStore):
        check_uncovered(pool.folder, pool.identity)
    if isinstance(pool, EmbeddingStore | Arrays):
        if is_synthetic(pool.card):
            raise InputError(
                f"pool {pool.identity!r} is synthetic: its rows follow from private records through"
                " a release, and the card of labels would not count that; give rows that are"
                " public, or use tacit predict"
            )
        values = pool.x
        # a pool that is the source itself states no positions
        if pool.origin.columns():
            origin = pool.origin
    table_rows = rows_of(release.columns, values, stacklevel=2)
    rows = checked_rows(table_rows, release.width)

    # one entry for each row of the pool; the hash is that of all rows
    possible_labels, levels = _possible_labels(release.source, release.document)
    indices, probabilities, rows_sha256 = _predicted(release, rows, possible_labels, threshold)
    kept = probabilities >= (threshold or 0.0)
    if not kept.any():
        raise InputError(
            f"no row of the pool has a label of probability {threshold:g} or more, the largest is"
            f" {probabilities.max():g}; state a smaller one"
        )
    positions = np.flatnonzero(kept)
    table = LabelTable(
        positions,
        np.array(possible_labels)[indices[kept]],
        probabilities[kept],
        None if origin is None else origin.at(positions),
        None if levels is None else np.array(levels)[indices[kept]],
    )

    pool_item = _pool_item(pool, len(rows), rows_sha256, public or {})
    left_out = np.bincount(indices[~kept], minlength=len(possible_labels)).tolist()
    facts = {
        "name": name or f"{pool_item.name}, labelled by {release.document.product.name}",
        "curator": curator,
        "description": description,
        "intended_use": intended_use,
    }
    document = LabelsDocument(
        guarantee=repeated_guarantee(release.document),
        product=fitted.product("labels", facts, date),
        release=SourceRelease(
            name=release.document.product.name,
            document_sha256=hashlib.sha256(_document_file(release.document)).hexdigest(),
            arrays_sha256=release.sha256,
        ),
        pool=pool_item,
        selection=_selection(possible_labels, table.labels, left_out, threshold),
        table=Table(
            columns=table.columns,
            sha256=hashlib.sha256(table.file()).hexdigest(),
            label=_meaning(levels, threshold),
        ),
    )
    card = labels_card(document, release.document)
    return PublicLabels(document, release.document, table, card)


def holds_public_labels(folder: Path, besides: tuple[str, ...] = ()) -> bool:
    """Tell whether a folder holds labels of public rows, in plain files, and nothing else but
    `besides`.
    """
    return reading.holds(folder, LABELS_DOCUMENT, besides, tuple(LIMITS))


def check_uncovered(data: Path, identity: str) -> None:
    """Refuse rows whose uses a ledger counts: they are private.

    Raises
    ------
    InputError
        If a ledger beside `data` counts them, or a store notes one.
    """
    # nothing lies beside data at a URL
    if isinstance(data, RemotePath):
        return
    fault = None
    try:
        ledger = Ledger.in_use(None, data, identity)
    except LedgerError as error:
        # several ledgers count them, or one that is not there
        fault = str(error).partition(";")[0]
    else:
        if ledger is not None and not ledger.account().empty:
            fault = f"{ledger.path} counts what is spent on {identity!r}"
    if fault is None and has_note(data):
        fault = f"{data} notes a ledger of {identity!r}"
    if fault is not None:
        raise InputError(
            f"pool {data}: {fault}, so a guarantee covers its records, and their labels may not be"
            " handed out; give public rows"
        )


def _checked_probability(at_least: Any) -> float | None:
    """Return the least probability of a label as a float; None if there is none."""
    if at_least is None:
        return None
    is_number = isinstance(at_least, float | int | np.floating) and not isinstance(at_least, bool)
    if not is_number or not 0 < at_least <= 1:
        raise InputError(
            f"at_least={at_least!r:.40} must be a probability above 0 and at most 1; pass for"
            " example .8"
        )
    return float(at_least)


def _possible_labels(source: str, release: Document) -> tuple[list[Any], list[int] | None]:
    """Return the labels that a row may have, classes first, and their levels in the tree of the
    release; None without a tree.
    """
    contents = release.contents
    classes = list(contents.classes)
    if not isinstance(contents, TaskContents) or not contents.task.tree:
        return classes, None
    try:
        tree = Tree(contents.task.tree).over(classes)
    except InputError as error:
        raise ReleaseError(f"{source}: {error}; {AGAIN}") from error

    level_by_label: dict[Any, int] = {}
    for level in Levels.of(tree, np.array(classes)).levels:
        pairs = zip(level.labels.tolist(), level.depths.tolist(), strict=True)
        level_by_label |= dict(pairs)
    inner_nodes = [label for label in level_by_label if label not in classes]
    labels = [*classes, *inner_nodes]
    return labels, [level_by_label[nfc(label)] for label in labels]


def _levels_of(
    labels: NDArray[Any], possible_labels: Sequence[Any], levels: Sequence[int] | None
) -> list[int] | None:
    """Return the level of each label; None without a tree."""
    if levels is None:
        return None
    level_by_label = dict(zip(possible_labels, levels, strict=True))
    return [level_by_label[label] for label in labels.tolist()]


def _meaning(levels: Sequence[int] | None, at_least: float | None) -> Any:
    """Say what a label is: with a tree and a least probability it may be an inner node."""
    if levels is None or at_least is None:
        return "the most likely class"
    return "the deepest node that reaches the least probability"


def _predicted(
    release: Release, rows: Any, labels: Sequence[Any], at_least: float | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], str]:
    """Return the position in `labels` and the probability of the label of each row, both of shape
    (N,), and the hash of the rows.

    A row without an answer has its most likely class.
    """
    levels = None
    if release.tree is not None and at_least is not None:
        levels = Levels.of(release.tree, release.classes)
        # a node must reach the least probability after rounding too
        at_least = min(np.ceil(at_least * PARTS - ROUNDING) / PARTS, 1.0)
    index_by_label = {nfc(label): index for index, label in enumerate(labels)}

    indices = np.empty(len(rows), dtype=np.int64)
    probabilities = np.empty(len(rows))
    digest = _new_digest(rows)
    for part in row_parts(rows):
        block = np.asarray(rows[part])
        digest.update(_row_bytes(block))
        of_classes = release.predict_proba(block)
        indices[part] = np.argmax(of_classes, axis=1)
        probabilities[part] = of_classes.max(axis=1)
        if levels is not None and at_least is not None:
            answers = levels.answers(of_classes, at_least, no_label(release.classes))
            answered = np.flatnonzero(answers.level)
            nodes = [index_by_label[label] for label in answers.label[answered].tolist()]
            indices[part][answered] = nodes
            probabilities[part] = answers.probability

    # rounded down, so that a label never has a smaller probability than the file states
    rounded = np.floor(probabilities * PARTS + ROUNDING) / PARTS
    return indices, np.minimum(rounded, 1.0), digest.hexdigest()


def _rows_hash(rows: Any) -> str:
    """Return the SHA-256 of rows as numbers, whatever type or file they are stored in."""
    digest = _new_digest(rows)
    for part in row_parts(rows):
        digest.update(_row_bytes(np.asarray(rows[part])))
    return str(digest.hexdigest())


def _new_digest(rows: Any) -> Any:
    """A SHA-256 to which the shape of the rows was added."""
    return hashlib.sha256(f"{len(rows)} x {rows.shape[1]}\n".encode())


def _row_bytes(block: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(block, dtype="<f8").tobytes()


def _pool_item(pool: Any, n_rows: int, rows_sha256: str, public: Mapping[str, str]) -> Pool:
    """The facts of the pool; those in `public` replace what the pool states."""
    facts: dict[str, Any] = {"declared_public": NOT_STATED, "labels": "none"}
    if isinstance(pool, EmbeddingStore | Arrays):
        facts |= public_facts(pool)
        if pool.declared_public:
            facts["declared_public"] = "by the owner of the store"
        if pool.labels is not None:
            facts["labels"] = "not used"
    unknown = sorted(set(public) - {"name", "revision", "hash"})
    if unknown:
        raise InputError(
            f"public={quoted(dict(public))} states {unknown[0]!r}; pass name, revision and hash"
        )
    try:
        return Pool(rows=n_rows, rows_sha256=rows_sha256, **(facts | dict(public)))
    except ValidationError as error:
        raise reading.refusal("public", error, "give one line of text") from error


def _selection(
    possible_labels: Sequence[Any],
    labels: NDArray[Any],
    left_out: Sequence[int],
    at_least: float | None,
) -> Selection:
    """Count the rows of each possible label; `left_out` has the numbers of those left out."""
    count_by_label = Counter(labels.tolist())
    classes = tuple(
        ClassCount(label=label, labelled=count_by_label[label], left_out=number)
        for label, number in zip(possible_labels, left_out, strict=True)
    )
    n_left_out = sum(left_out)
    return Selection(
        at_least="none" if at_least is None else at_least,
        labelled=len(labels),
        left_out=n_left_out,
        share_left_out=n_left_out / (len(labels) + n_left_out),
        classes=classes,
    )


def _document_file(document: LabelsDocument | Document) -> bytes:
    """Return the bytes of a document, as `Release.save` writes that of a release."""
    values = document.model_dump(mode="json")
    return f"{json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()


def _read_files(folder: Path) -> dict[str, bytes]:
    """Read the bytes of the four files."""
    if not (folder / LABELS_DOCUMENT).is_file():
        raise ReleaseError(
            f"{folder} holds no {LABELS_DOCUMENT}; give a folder that tacit label-public wrote"
        )
    reading.check_names(folder, reading.NEVER_OPENED, tuple(LIMITS))
    return {name: reading.read_file(folder / name, limit) for name, limit in LIMITS.items()}


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{path} is not UTF-8 text ({excerpt(str(error))}); {AGAIN}") from error


def _parse_document(where: str, data: bytes) -> LabelsDocument:
    """Parse `labels.json`."""
    try:
        values = parse_json(data.decode("utf-8"))
    except ValueError as error:
        fault = f"{where} is not valid JSON ({excerpt(str(error))})"
        raise ReleaseError(f"{fault}; {AGAIN}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        fault = f'{where} does not say "format": "{FORMAT}"'
        raise ReleaseError(f"{fault}; give a folder that tacit label-public wrote")
    if values.get("version") != VERSION:
        version = f"format version {quoted(values.get('version'))}"
        fault = f"{where} has {version}, this tacit reads {VERSION}"
        raise ReleaseError(f"{fault}; use the tacit that wrote it")
    try:
        return LabelsDocument.model_validate_json(data)
    except ValidationError as error:
        raise reading.refusal(where, error, AGAIN) from error
