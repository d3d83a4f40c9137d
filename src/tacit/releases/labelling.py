"""Label public rows by a release: check the pool, predict, and state what was done."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from tacit.compute.remote import RemotePath
from tacit.compute.texts import nfc
from tacit.data.arrays import Arrays
from tacit.data.embeddings import EmbeddingStore
from tacit.data.origin import Origin
from tacit.data.synthetic import is_synthetic
from tacit.errors import InputError, LedgerError, ReleaseError, quoted
from tacit.models.answers import Levels, checked_share, no_label
from tacit.models.rows import row_parts
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger_note import has_note
from tacit.releases import fitted, reading
from tacit.releases.columns import rows_of
from tacit.releases.fields import NOT_STATED
from tacit.releases.labels_document import (
    LabelsDocument,
    Pool,
    SourceRelease,
    Table,
    labels_card,
    repeated_guarantee,
)
from tacit.releases.labels_facts import label_meaning, possible_labels_of, selection_of
from tacit.releases.labels_table import LabelTable
from tacit.releases.pool_rows import new_digest, row_bytes
from tacit.releases.provenance import public_facts
from tacit.releases.public_labels import PublicLabels
from tacit.releases.refusing import WITHOUT_POSTERIOR, checked_refusal
from tacit.releases.release import Release
from tacit.releases.rows import checked_rows

__all__ = ["label_public"]

# Probabilities are rounded down to this many parts of 1.
PARTS = 10_000

# The error of a product with PARTS.
ROUNDING = 1e-6


def label_public(
    release: Release,
    pool: EmbeddingStore | Arrays | ArrayLike,
    *,
    at_least: float | None = None,
    refuse: float | None = None,
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
    refuse : float, optional
        Leave out rows that look like none of the classes, as `Release.predict` refuses them: about
        this share of rows like those trained on. Needs a release of `AutoPrototypes`.
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
        synthetic, no row has a label, or the release gives a row several labels.
    ReleaseError
        If the release does not verify, is older than probabilities, or cannot refuse rows.

    Notes
    -----
    Guarantee: that of the release, unchanged: its arrays were released, and the pool is public
    (post-processing).

    Examples
    --------
    See `PublicLabels`.
    """
    _check_release(release)
    threshold = _checked_probability(at_least)
    if threshold is not None and release.tree is not None:
        checked_share(threshold)
    if refuse is not None:
        refuse = checked_refusal(refuse)
        _check_refuses(release)
    release.verify()

    values, origin = _values_of(pool)
    table_rows = rows_of(release.columns, values, stacklevel=2)
    rows = checked_rows(table_rows, release.width)

    # one entry for each row of the pool; the hash is that of all rows
    possible_labels, levels = possible_labels_of(release.source, release.document)
    indices, probabilities, rows_sha256 = _predicted(release, rows, possible_labels, threshold)
    refused = np.zeros(len(rows), dtype=bool)
    if refuse is not None:
        refused = release.unfamiliarity(rows) > 1 - refuse
        if refused.all():
            raise InputError(
                f"all {len(rows)} rows of the pool look like none of the classes (refuse="
                f"{refuse:g}); give rows of the task, or leave refuse out"
            )
    is_likely = probabilities >= (threshold or 0.0)
    kept = is_likely & ~refused
    if not kept.any():
        raise InputError(
            f"no row of the pool has a label of probability {threshold:g} or more, the largest is"
            f" {probabilities[~refused].max():g}; state a smaller one"
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
    is_left_out = ~is_likely & ~refused
    left_out = np.bincount(indices[is_left_out], minlength=len(possible_labels)).tolist()
    selection = selection_of(
        possible_labels,
        table.labels,
        left_out,
        threshold,
        refused=int(refused.sum()),
        refuse=refuse,
    )
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
            document_sha256=hashlib.sha256(reading.document_file(release.document)).hexdigest(),
            arrays_sha256=release.sha256,
        ),
        pool=pool_item,
        selection=selection,
        table=Table(
            columns=table.columns,
            sha256=hashlib.sha256(table.file()).hexdigest(),
            label=label_meaning(levels, threshold),
        ),
    )
    card = labels_card(document, release.document)
    return PublicLabels(document, release.document, table, card)


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


def _check_release(release: Any) -> None:
    """Refuse anything but a release that gives each row one label."""
    if not isinstance(release, Release):
        raise InputError(
            f"release={release!r:.60} must be a Release; pass tacit.Release.load(folder)"
        )
    if release.several:
        raise InputError(
            f"{release.source} gives a row several labels or none, and a folder of labels has one a"
            " row; use tacit predict (Release.predict)"
        )


def _check_refuses(release: Release) -> None:
    """Refuse a release that does not know what rows of its classes look like."""
    if not release.simulates_rows:
        raise ReleaseError(
            f"{release.source} {WITHOUT_POSTERIOR}, so it cannot refuse rows of no class; leave"
            " refuse out, or fit with auto (AutoPrototypes)"
        )


def _values_of(pool: Any) -> tuple[Any, Origin | None]:
    """Return the rows of a pool and, if it states them, their places in its source.

    A store is refused if its rows are private or synthetic.
    """
    if isinstance(pool, EmbeddingStore):
        check_uncovered(pool.folder, pool.identity)
    if not isinstance(pool, EmbeddingStore | Arrays):
        return pool, None

    if is_synthetic(pool.card):
        raise InputError(
            f"pool {pool.identity!r} is synthetic: its rows follow from private records through"
            " a release, and the card of labels would not count that; give rows that are"
            " public, or use tacit predict"
        )
    # a pool that is the source itself states no positions
    origin = pool.origin if pool.origin.columns() else None
    return pool.x, origin


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
    digest = new_digest(rows)
    for part in row_parts(rows):
        block = np.asarray(rows[part])
        digest.update(row_bytes(block))
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
