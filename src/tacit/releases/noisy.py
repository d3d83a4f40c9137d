"""Summaries that are left out of a combination because of their noise, by public facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import excerpt
from tacit.models.noisy_parts import worthwhile
from tacit.releases.combination import Combination
from tacit.releases.summary import Summary, as_summary
from tacit.releases.summary_files import read_document


def without_noisy(
    summaries: Iterable[Summary | Path | str],
) -> tuple[list[Summary | Path | str], list[str]]:
    """Return the summaries whose sums raise the expected quality, and the parts of the others.

    The documents of folders are read, and no sums. A combined summary is left out if none of its
    parts is worthwhile. See `tacit.models.noisy_parts`.
    """
    given = list(summaries)
    combinations: list[Combination] = [_combination(summary) for summary in given]
    rows = [row for combination in combinations for row in combination.parts]
    if not rows or not all(row.noise_of_sums for row in rows):
        return given, []

    chosen = worthwhile([row.noise_of_sums for row in rows], _listed(combinations))
    kept, noisy, at = [], [], 0
    for summary, combination in zip(given, combinations, strict=True):
        n_parts = len(combination.parts)
        if chosen[at : at + n_parts].any():
            kept.append(summary)
        else:
            noisy += [row.name for row in combination.parts]
        at += n_parts
    return kept, sorted(noisy)


def noisy_sentence(parts: Sequence[str], remedy: str) -> str:
    """Say which parts were left out, and how to keep them."""
    listed = excerpt(", ".join(map(repr, parts)))
    return (
        f"left out {listed}: with so much noise their sums lower the expected quality, if parts"
        f" have equally many records; {remedy} keeps them"
    )


def _combination(summary: Any) -> Combination:
    if isinstance(summary, str | Path):
        return read_document(Path(summary)).combination
    return as_summary(summary).document.combination


def _listed(combinations: Sequence[Combination]) -> NDArray[np.bool_]:
    """Tell which classes each part lists, of shape (parts, classes)."""
    position: dict[Any, int] = {}
    for combination in combinations:
        for class_list in combination.class_lists:
            for label in class_list:
                position.setdefault(label, len(position))

    rows = []
    for combination in combinations:
        of_lists = np.zeros((len(combination.class_lists), len(position)), dtype=bool)
        for at, class_list in enumerate(combination.class_lists):
            of_lists[at, [position[label] for label in class_list]] = True
        rows += [of_lists[row.class_list] for row in combination.parts]
    return np.stack(rows)
