"""Checks of a summary: its arrays against its document, its document against the recorded events,
and its sums against their own counts.

Each returns the first fault in words, or None. A summary is read as if an attacker had written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.summarised import COUNT_SCALE, UNIT, UNIT_OF_MOMENTS
from tacit.privacy.guarantee import Guarantee
from tacit.releases.combination import (
    noise_of_classes,
    noise_of_moments,
    other_noise,
    united_classes,
    untrue_combination,
)
from tacit.releases.plausible import implausible, implausible_moments
from tacit.releases.statement import SEEDED, check_work, stamp, statement_of
from tacit.releases.summary_document import SummaryDocument, centre_hash, class_type
from tacit.releases.summary_files import (
    ARRAYS,
    CENTRE,
    DOCUMENT,
    MOMENTS,
    SUMS,
    misfit,
    read_integers,
)


def misfit_of_arrays(document: SummaryDocument, arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Describe the first array that has another form than the document states."""
    combination = document.combination
    fault = misfit(arrays, len(united_classes(combination)), document.recipe.width)
    if fault is not None:
        return fault
    if (MOMENTS in arrays) != (noise_of_moments(combination) is not None):
        return "second moments are there if all parts have some, and not otherwise"

    stated = [(array.name, array.dtype, array.shape) for array in document.arrays]
    actual = [(name, array.dtype.name, array.shape) for name, array in sorted(arrays.items())]
    if stated != actual:
        return f"{ARRAYS} does not hold the arrays that {DOCUMENT} states"
    if centre_hash(arrays.get(CENTRE)) != document.recipe.centre_sha256:
        return f"the centre has another hash than {DOCUMENT} states"
    return None


def untrue_statement(document: SummaryDocument, guarantee: Guarantee) -> str | None:
    """Describe the first statement that the recorded events, `guarantee`, do not bear out."""
    combination = document.combination
    types = {class_type(labels) for labels in combination.class_lists}
    if types != {document.recipe.class_type}:
        return "the labels are not of the stated type"

    # the noise first, since the costs of Gaussian noise take no time
    fault = other_noise(combination) or untrue_combination(combination, document.guarantee)
    if fault is not None:
        return fault

    check_work(guarantee)
    if document.stamp != stamp(guarantee, document.noise):
        return f"stamp {document.stamp!r} does not agree with {document.noise} noise"
    if document.statement != statement_of(guarantee, document.noise):
        return "the statement is not that of the recorded events"
    if document.in_words != in_words(guarantee, document.noise):
        return "in_words is not that of the recorded events"
    return None


def implausible_sums(document: SummaryDocument, arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Name the first class whose sum or count cannot be, or second moments that cannot."""
    combination = document.combination
    n_parts = len(combination.parts)
    noise = noise_of_classes(combination)
    sums = np.asarray(read_integers(arrays, SUMS) / UNIT)
    fault = implausible(sums, noise, united_classes(combination), n_parts)
    of_moments = noise_of_moments(combination)
    if fault is not None or of_moments is None:
        return fault

    triangle = np.asarray(read_integers(arrays, MOMENTS) / UNIT_OF_MOMENTS)
    counts = sums[:, -1] / COUNT_SCALE
    return implausible_moments(triangle, of_moments, counts, noise / COUNT_SCALE, n_parts)


def in_words(guarantee: Guarantee, noise: str) -> str:
    """Say what the guarantee means for one record or person."""
    words = guarantee.in_words()
    return SEEDED + words if noise == "research" else words
