"""Decisions by the sums of a summary: what `tacit.combine` and `AutoPrototypes.from_summary` share.

All of this is post-processing of released sums, public rows and public names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from tacit.errors import InputError, quoted
from tacit.models.deciding import Decided, decided, directions_of_sums
from tacit.models.decisions import LinearHead
from tacit.models.discriminants import discriminants, relative_weight
from tacit.models.name_directions import name_directions
from tacit.models.noisy_sums import NoisySums, one_if_equal, root_mean_square
from tacit.models.public_prior import public_prior
from tacit.models.public_rows import public_centre, public_rows
from tacit.models.reference_scale import reference_scale
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation
from tacit.models.summarised import COUNT_SHARE, same_centre


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
        """A row for each part, with `name`, `noise_of_sums` and `noise_of_moments`."""

    @property
    def weighs_persons(self) -> bool:
        """True if a part was summed under a unit per person."""

    def noisy_moments(self) -> tuple[Floats, float] | None:
        """Return noisy second moments (d, d) and the noise of an entry; None if a part has
        none.
        """

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


def by_moments(summary: SummedRecords, public: Any) -> Released:
    """Decide by linear discriminants, as `LeastSquares` does, from second moments and class sums.

    Public rows, where there are some, only give the scale of the probabilities.
    """
    noisy_moments = summary.noisy_moments()
    if noisy_moments is None:
        parts = [row.name for row in summary.parts if row.noise_of_moments is None]
        raise InputError(
            f"the summary of part {quoted(parts[0])} has no second moments; summarise it with"
            " moments=True (--moments), or combine by another method"
        )
    sums, noise, counts, count_noise = summary.noisy_sums()
    moments, noise_of_moments = noisy_moments
    width = sums.shape[1]
    if public is not None:
        check_centre(summary.centre, public_rows(public, width))

    # in a part under a unit per person, moments and sums may give a person different weights
    weight = 1.0
    if summary.weighs_persons:
        counts_sd = float(np.linalg.norm(count_noise))
        trace_sd = noise_of_moments * math.sqrt(width)
        trace = float(np.trace(moments))
        weight = relative_weight(float(counts.sum()), counts_sd, trace, trace_sd)

    # where moments are exact, the sums that they are applied to are not
    deviation = weight * noise_of_moments
    if noise_of_moments == 0:
        deviation = root_mean_square(noise)
    ridge = 1.0 + deviation * math.sqrt(width)

    coefficients, intercepts = discriminants(
        weight * moments,
        sums,
        counts,
        ridge,
        least_count=np.maximum(count_noise, 1.0),
        sum_noise=one_if_equal(noise),
        normalise=True,
    )
    facts = facts_of_sums(summary) | {
        "noise multiplier of the second moments": max(
            row.noise_of_moments for row in summary.parts
        ),
        "ridge": ridge,
        "normalisation": normalisation(summary.centre),
    }
    arrays = {"coefficients": coefficients, "intercepts": intercepts}
    arrays |= centre_array(summary.centre)
    what = "one linear score per class, solved for from noisy moments"
    released = Released(what, arrays, LinearHead(), facts)
    return replace(released, probabilities=reference_scale(released, width, public))


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
    if mean is not None and same_centre(mean, centre):
        return
    raise InputError(
        "the mean of the public rows is not the centre of the summaries; pass the public rows by"
        " which these were made"
    )
