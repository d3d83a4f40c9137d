"""Audit a release: refit the learner that it states on public rows, and attack the refits."""

import hashlib
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compute.engines import whole
from tacit.errors import InputError
from tacit.learners.common.base import PrivateClassifier
from tacit.measure.auditing.black_box import black_box_audit
from tacit.measure.auditing.game import Game, game_of
from tacit.measure.auditing.rebuilding import NAMES, PUBLIC, rebuilt, stated_learner
from tacit.measure.auditing.result import Audit
from tacit.models.scaling import Scaling
from tacit.privacy.accounting import check_delta
from tacit.releases.columns import rows_of
from tacit.releases.release import Release
from tacit.releases.rows import checked_rows

# rows of a refit beside its canaries: at most so many, and so many of each class
MOST_ROWS = 1000
ROWS_OF_CLASS = 20


@dataclass(frozen=True, eq=False)
class Refit:
    """Fits a learner to class indices, or sets of labels; picklable."""

    learner: PrivateClassifier
    classes: NDArray[Any]

    def __call__(
        self,
        rows: NDArray[Any],
        labels: NDArray[Any],
        persons: NDArray[Any] | None,
        seed: int,
    ) -> PrivateClassifier:
        learner = copy(self.learner)
        learner.random_state = seed
        if labels.ndim == 1:
            labels = self.classes[labels]
        if persons is None:
            return learner.fit(rows, labels)
        return learner.fit(rows, labels, persons=persons)


def audit_release(
    release: Release,
    public: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    delta: float = 1e-5,
    refits: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    folder: Path | str | None = None,
) -> Audit:
    """Audit a release by refits of its learner on public rows.

    Parameters
    ----------
    release : Release
        Of version 9 or later.
    public : array-like of shape (n, d), or a table
        Public rows of the encoder of the release; 40 or more.
    labels : array-like of shape (n,), or of shape (n, K) for several labels a row, optional
        Labels of the class list of the release. By default what the release predicts.
    delta : float, default=1e-5
        At which epsilon is bounded.
    refits : int, optional
        16 or more; by default as many as take about a minute, at most 1024.
    seed : int, default=0
        Of canaries, coins and noise.
    jobs : int, default=1
        Refits at the same time, in processes.
    folder : str or Path, optional
        Private folder of a checkpoint, from which an interrupted audit resumes.

    Returns
    -------
    Audit

    Raises
    ------
    ReleaseError
        If the release does not state its learner.
    InputError
        If rows or labels do not have that form, or are too few.

    Notes
    -----
    Guarantee: none is needed; no private record is read. If `public` holds private records, share
    nothing of the result.
    """
    check_delta(delta)
    jobs = whole("jobs", jobs)
    if refits is not None:
        refits = whole("refits", refits)
    learner = stated_learner(release)
    rows = _rows(release, public)
    has_own = labels is not None
    indices = _indices(release, public if labels is None else None, labels, len(rows))

    rng = np.random.default_rng([seed, 0, 2])
    game = game_of(
        rows,
        indices,
        release.guarantee.unit,
        n_classes=len(release.classes),
        needs_public=PUBLIC in learner.inputs,
        records=max(MOST_ROWS, ROWS_OF_CLASS * len(release.classes)),
        rng=rng,
    )
    public_rows = game.public if PUBLIC in learner.inputs else None
    names = None
    if NAMES in learner.inputs:
        names = _stand_in_names(game, len(release.classes))
    audit = black_box_audit(
        Refit(rebuilt(release, public=public_rows, names=names), release.classes),
        game,
        release.guarantee,
        subject=release.document.product.name,
        delta=delta,
        refits=refits,
        seed=seed,
        jobs=jobs,
        folder=None if folder is None else Path(folder),
        key=_key(release, rows, indices, seed),
    )
    whose = "their own labels" if has_own else "labels that the release predicts"
    setup = (
        f"{audit.setup} of {learner.method} with seeded noise on {len(game.rows)} public rows with"
        f" {whose}, and {game.n_canaries} canaries with labels of other classes"
    )
    return replace(audit, setup=setup)


def _rows(release: Release, public: Any) -> NDArray[Any]:
    """Return the rows as the learner takes them: scaled, if the release scales its rows."""
    table_rows = rows_of(release.columns, public, stacklevel=3)
    rows = checked_rows(table_rows, release.width)
    if hasattr(rows, "toarray"):
        rows = rows.toarray()
    scaling = Scaling.stated(release.arrays)
    if scaling is not None:
        return scaling.scaled(rows)
    return np.asarray(rows[:])


def _indices(release: Release, public: Any, labels: Any, n_rows: int) -> NDArray[Any]:
    """Return class indices (n,), or sets of labels (n, K): those given, or those predicted."""
    classes = release.classes.tolist()
    if labels is None:
        predicted = release.predict(public)
        if release.several:
            return np.asarray(predicted.astype(bool))
        labels = predicted

    labels = np.asarray(labels)
    if len(labels) != n_rows:
        raise InputError(
            f"labels has {len(labels)} entries for {n_rows} rows of public; pass one for each row"
        )
    if release.several:
        if labels.ndim != 2 or labels.shape[1] != len(classes):
            raise InputError(
                f"labels has shape {labels.shape}, and the release predicts sets of"
                f" {len(classes)} labels; pass truth values of shape (n, {len(classes)})"
            )
        return np.asarray(labels, dtype=bool)

    positions = {label: position for position, label in enumerate(classes)}
    try:
        return np.array([positions[label] for label in labels.tolist()], dtype=np.int64)
    except (KeyError, TypeError) as error:
        raise InputError(
            f"label {error.args[0]!r:.80} of the public rows is not a class of the release; leave"
            " labels out, and the audit takes those that the release predicts"
        ) from error


def _stand_in_names(game: Game, n_classes: int) -> NDArray[Any]:
    """Return rows (C, d) that stand for those of class names: class means of the game's rows.

    They hold no canary, so no coin decides them. A class without rows gets one of another class.
    """
    names = []
    for index in range(n_classes):
        if game.labels.ndim == 2:
            rows = game.rows[game.labels[:, index]]
        else:
            rows = game.rows[game.labels == index]
        names.append(rows.mean(axis=0) if len(rows) else game.rows[index % len(game.rows)])
    return np.array(names)


def _key(release: Release, rows: NDArray[Any], labels: NDArray[Any], seed: int) -> str:
    """Return the hash of what decides the refits of an audit, but for their number."""
    digest = hashlib.sha256(f"{release.document.model_dump_json()} {seed}".encode())
    for array in (rows, labels):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
