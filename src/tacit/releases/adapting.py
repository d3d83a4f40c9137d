"""A release adapted to unlabelled rows of its task: post-processing, which leaves its guarantee
unchanged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from tacit.errors import InputError, ReleaseError
from tacit.models.adapting import Task
from tacit.models.carried import IN_RELEASE, CarriedPosterior, carried, deciding
from tacit.models.probabilities import ARRAY
from tacit.models.rows import Floats, unit_rows_about
from tacit.models.scaling import Scaling
from tacit.releases.card import render_card
from tacit.releases.columns import rows_of
from tacit.releases.fields import NOT_STATED
from tacit.releases.reading import arrays_file, read_only, refusal
from tacit.releases.release import Release
from tacit.releases.rows import checked_rows
from tacit.releases.schema import Adaptation, Array, CompleteContents
from tacit.releases.statement import stamp_of

__all__ = ["Adapted", "adapt"]

# Bounds on the number of rows that are used: too few tell nothing, and EM holds all in memory.
FEWEST = 64
MOST = 32_768

# bound on the entries of the rows (n, d), and of their scores (n, C)
ENTRIES = 2**24


@dataclass(frozen=True, eq=False)
class Adapted:
    """Result of `adapt`.

    Attributes
    ----------
    release : Release or None
        The adapted release; None if the rows do not suit the release.
    why : str
        In one sentence what was found.
    gain : float
        Rise of the log likelihood of a held-out row, in nats.
    rows : int
        How many rows were used.
    """

    release: Release | None
    why: str
    gain: float
    rows: int


def adapt(
    release: Release, X: ArrayLike, *, name: str | None = None, hash: str | None = None
) -> Adapted:
    """Adapt a release of `AutoPrototypes` to unlabelled rows of its task, if they suit it.

    The released class means move to where rows gather. A mean that the release knows well moves
    little, one that noise dominates moves far. The decision is then made anew. Whether this helps
    cannot be measured without labels. So nothing is adapted unless rows that were held back become
    likelier, and the others lie where the posterior expects rows of its classes.

    Parameters
    ----------
    release : Release
        As `Release.load` or `Release.of` returns it.
    X : array-like of shape (n, d)
        Rows of the encoder of the private rows, finite. At least 64; rows of zeros do not count. If
        there are more than 32,768 rows, or X or its scores have more than 2^24 entries, a random
        subset of that size is used. The rows must be public, or records that no guarantee covers.
        If X is private, share neither the adapted release, nor its predictions, nor whether it was
        adapted.
    name, hash : str, optional
        Name and content hash of the rows' data, for the card.

    Returns
    -------
    Adapted
        Its `release` is None if the rows do not suit the release. It carries no prediction sets:
        their threshold does not hold for the new probabilities.

    Raises
    ------
    ReleaseError
        If the release carries no posterior of class means, predicts several labels a row, or was
        adapted already.
    InputError
        If X does not have that form or too few rows.

    Notes
    -----
    Guarantee: that of the release, unchanged: all used arrays were released, and X is public
    (post-processing).
    Source: tacit; see docs/auto.md and `tacit.models.adapting`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = np.eye(4, 8)
    >>> def rows(n):
    ...     return np.repeat(centres, n, axis=0) + 0.3 * rng.normal(size=(4 * n, 8))
    >>> from tacit.learners.methods import load
    >>> auto = load("tacit.learners.prototypes.auto:AutoPrototypes")(
    ...     "rho=0.01", public=rows(50), classes=4, noise="research", random_state=0
    ... )
    >>> release = Release.of(auto.fit(rows(30), np.repeat(range(4), 30)))
    >>> adapted = adapt(release, rows(100), name="new rows")
    >>> adapted.rows, adapted.release.guarantee == release.guarantee
    (400, True)
    """
    if not isinstance(release, Release):
        raise InputError(
            f"release={release!r:.60} must be a Release; pass tacit.Release.load(folder)"
        )
    if release.several:
        # the mixture of classes that EM fits has each row in one of them
        fault = "predicts several labels a row, and adapting supposes that each row has one class"
        raise ReleaseError(f"{release.source} {fault}; use the release as it is")
    if isinstance(release.document.post_processing, Adaptation):
        fault = "was adapted already; adapt the release that it was made from, to all rows together"
        raise ReleaseError(f"{release.source} {fault}")
    if Scaling.stated(release.arrays) is not None:
        fault = "scales its rows by public ones, and is not adapted"
        raise ReleaseError(
            f"{release.source} {fault}; scale all rows beforehand, and release the learner alone"
        )
    posterior = carried(release.arrays)
    if posterior is None:
        fault = "carries no posterior of class means, which only releases of auto do"
        raise ReleaseError(f"{release.source} {fault}; fit with tacit fit auto (AutoPrototypes)")

    table_rows = rows_of(release.columns, X, stacklevel=2)
    rows = _subset(checked_rows(table_rows, release.width), len(release.classes))
    # the item comes before the work, since it refuses a name or a hash that is not one line
    item = _item(release, len(rows), name, hash)
    task = _task(release, posterior, rows)
    suitability = task.suitability()
    if suitability.fault:
        reason = f"the rows do not suit the release: {suitability.fault}"
        return Adapted(None, reason, suitability.gain, len(rows))

    adapted = _with_arrays(
        release,
        _moved(release, task),
        item.model_copy(update={"held_out_gain": suitability.gain}),
    )
    reason = (
        f"adapted to {len(rows)} rows: the log likelihood of a held-out row rose by"
        f" {suitability.gain:.3g} nats"
    )
    return Adapted(adapted, reason, suitability.gain, len(rows))


def _task(release: Release, posterior: CarriedPosterior, rows: Floats) -> Task:
    """The problem in the coordinates of the posterior, for rows of shape (n, d)."""
    # rows (n, p) along the p axes (d, p); the scores (n, C) are those of the released decision
    rows_along_axes = unit_rows_about(rows, release.arrays.get("centre")) @ posterior.axes
    scores = release.decision.similarities(deciding(release.arrays), rows)
    # a quadratic decision has an array of this name, a linear one has none
    linear = "squares" not in release.arrays
    return Task(posterior, rows_along_axes, scores, linear=linear)


def _moved(release: Release, task: Task) -> dict[str, Floats]:
    """The arrays of a decision about the moved class means, and that of its probabilities."""
    arrays = {name: array.astype(np.float64) for name, array in deciding(release.arrays).items()}

    # `addition` is along the axes. The coefficients (C, d) read columns of rows, so the slopes
    # (C, p) go back to columns; the squares of a quadratic decision stay along the axes.
    addition = task.addition()
    arrays["coefficients"] += addition.slopes @ task.known.axes.T
    arrays["intercepts"] += addition.offsets
    if not task.linear:
        arrays["squares"] += addition.squares

    # The scale of probabilities stays: there are no labels by which to calibrate it again. The
    # posterior is left out, since an adapted release is not adapted again.
    if ARRAY in release.arrays:
        arrays[ARRAY] = release.arrays[ARRAY]
    return arrays


def _subset(X: Any, n_classes: int) -> NDArray[Any]:
    """The rows that are used: at most so many, drawn at random, and without rows of zeros."""
    most_rows = min(MOST, ENTRIES // max(X.shape[1], n_classes))
    if len(X) > most_rows:
        # Drawn with a fixed seed, so that the same rows adapt a release in the same way; sorted,
        # since X may lie in files.
        positions = np.random.default_rng(0).choice(len(X), most_rows, replace=False)
        X = X[np.sort(positions)]

    rows = np.asarray(X)
    rows = rows[rows.any(axis=1)]
    if len(rows) < FEWEST:
        raise InputError(
            f"X has {len(rows)} rows that are not zero, too few to adapt to; give {FEWEST} or more"
        )
    return rows


def _item(release: Release, rows: int, name: str | None, hash: str | None) -> Adaptation:
    """Item 13 of a release that is adapted to these rows; their gain is filled in later."""
    earlier_steps = release.document.post_processing.post_processing
    try:
        return Adaptation(
            post_processing=(
                f"{earlier_steps}; the decision was adapted to unlabelled rows, "
                "which leaves the guarantee unchanged"
            ),
            rows=rows,
            name=name or NOT_STATED,
            hash=hash or NOT_STATED,
            held_out_gain=0.0,
        )
    except ValidationError as error:
        raise refusal("release", error, "give one line of text") from error


def _with_arrays(release: Release, arrays: dict[str, Floats], item: Adaptation) -> Release:
    """The release with these arrays, and item 13 that says so; its utility was that of the old
    arrays.
    """
    read_only_arrays = {name: read_only(array) for name, array in arrays.items()}
    sha256 = hashlib.sha256(arrays_file(read_only_arrays)).hexdigest()

    contents = release.document.contents
    # the posterior, which the suffix mentions, is no longer there
    description = contents.what.removesuffix(IN_RELEASE) + ", adapted to unlabelled rows"
    array_items = tuple(
        Array(name=name, dtype="float64", shape=array.shape)
        for name, array in sorted(read_only_arrays.items())
    )
    updates: dict[str, Any] = {"what": description, "arrays": array_items, "sha256": sha256}
    if isinstance(contents, CompleteContents):
        # a threshold is for the probabilities that it was paid for, which have changed
        updates["sets"] = "none"
    contents = contents.model_copy(update=updates)
    changes = {"contents": contents, "post_processing": item, "utility": NOT_STATED}
    document = release.document.model_copy(update=changes)
    # without sets of seeded noise there may be nothing to stamp
    document = document.model_copy(update={"stamp": stamp_of(document, release.guarantee)})
    return Release(document, read_only_arrays, sha256, render_card(document), release.source)
