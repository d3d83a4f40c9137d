"""Decisions by the sums of a summary: what `tacit.combine` and `AutoPrototypes.from_summary` share.

All of this is post-processing of released sums, public rows and public names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from tacit.errors import InputError
from tacit.models.deciding import Decided, decided, directions_of_sums
from tacit.models.name_directions import name_directions
from tacit.models.posterior import NoisySums
from tacit.models.public_prior import public_prior
from tacit.models.public_rows import public_centre, public_rows
from tacit.models.reference_scale import reference_scale
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.summarised import COUNT_SHARE, SAME_CENTRE


class SummedRecords(Protocol):
    """What a decision reads of a `tacit.Summary`."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, C of them."""

    @property
    def centre(self) -> Floats | None:
        """The public centre of the rows, of shape (d,), if there is one."""

    @property
    def parts(self) -> Sequence[Any]:
        """A row for each part, with `noise_of_sums`."""

    def noisy_sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return sums (C, d), counts (C,) and their noise, in this order: sums, noise of sums,
        counts, noise of counts.
        """


def by_public_rows(summary: SummedRecords, public: Any, names: Any) -> Decided:
    """Decide as `AutoPrototypes` does without gradient steps.

    Parameters
    ----------
    public : array of shape (m, d)
        Public rows, whose mean is the centre of the summary if it has one.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), or None
        Rows of the class names, in the order of the classes.
    """
    sums, noise, counts, count_noise = summary.noisy_sums()
    centre = summary.centre
    width = sums.shape[1]
    rows = public_rows(public, width)
    check_centre(centre, rows)

    prior = public_prior(rows, centre)
    release = NoisySums(sums @ prior.axes, noise, counts, count_noise)
    directions = name_directions(names, summary.classes, width, centre)
    return decided(prior, release, names=directions, centre=centre, facts=facts_of_sums(summary))


def by_directions(summary: SummedRecords) -> Released:
    """Decide as `NoisySumPrototypes` does, without public rows."""
    sums, _, _, _ = summary.noisy_sums()
    released = directions_of_sums(sums, centre=summary.centre, facts=facts_of_sums(summary))
    scale = reference_scale(released, sums.shape[1], None)
    return replace(released, probabilities=scale)


def facts_of_sums(summary: SummedRecords) -> dict[str, Any]:
    """Return public facts of how the sums were made."""
    return {
        "noise multiplier of the sums": max(row.noise_of_sums for row in summary.parts),
        "summaries": len(summary.parts),
        "share of the count column": COUNT_SHARE,
    }


def check_centre(centre: Floats | None, rows: Any) -> None:
    """Refuse public rows whose mean is not the centre of the summaries."""
    if centre is None:
        return
    mean = public_centre(rows, rows.shape[1])
    if mean is not None and np.abs(mean - centre).max() <= SAME_CENTRE:
        return
    raise InputError(
        "the mean of the public rows is not the centre of the summaries; pass the public rows by"
        " which these were made"
    )
