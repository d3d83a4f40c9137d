"""Summaries that are left out of a combination because of their noise, by public facts alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, excerpt
from tacit.models.noisy_parts import worthwhile
from tacit.releases.combination import Combination
from tacit.releases.summary import Summary, as_summary
from tacit.releases.summary_files import read_document

MOST_PAIRS = 10**8
"""Most pairs of a part and a set of class lists that are compared."""


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
    has_exact_sums = any(row.noise_of_sums == 0 for row in rows)
    if not rows or has_exact_sums:
        return given, []

    chosen = worthwhile([row.noise_of_sums for row in rows], _listed(combinations))
    kept: list[Summary | Path | str] = []
    noisy: list[str] = []
    # `chosen` has the parts of one summary after those of another
    start = 0
    for summary, combination in zip(given, combinations, strict=True):
        stop = start + len(combination.parts)
        if chosen[start:stop].any():
            kept.append(summary)
        else:
            noisy += [row.name for row in combination.parts]
        start = stop
    return kept, sorted(noisy)


def noisy_sentence(parts: Sequence[str], remedy: str) -> str:
    """Say which parts were left out, and how to keep them."""
    listed = excerpt(", ".join(map(repr, parts)))
    noun = "a summary" if len(parts) == 1 else "summaries"
    return (
        f"left out {noun} of {listed}: with so much noise their sums lower the expected quality,"
        f" if parts have equally many records; {remedy} keeps them"
    )


def _combination(summary: Any) -> Combination:
    if isinstance(summary, str | Path):
        return read_document(Path(summary)).combination
    return as_summary(summary).document.combination


def _listed(combinations: Sequence[Combination]) -> NDArray[np.bool_]:
    """Tell which classes each part lists: a row for each part, a column for all classes that are in
    the same lists.

    Raises
    ------
    InputError
        If there are too many of both to compare; these documents were not verified.
    """
    lists: dict[str, int] = {}
    lists_of_class: dict[Any, list[int]] = {}
    list_of_part: list[int] = []
    for combination in combinations:
        places = []
        for class_list in combination.class_lists:
            # JSON tells the label 1 from the label true
            key = json.dumps(class_list)
            if key not in lists:
                lists[key] = len(lists)
                for label in class_list:
                    lists_of_class.setdefault(label, []).append(lists[key])
            places.append(lists[key])
        list_of_part += [places[row.class_list] for row in combination.parts]

    columns = list(dict.fromkeys(tuple(of_class) for of_class in lists_of_class.values()))
    if max(len(list_of_part), len(lists)) * len(columns) > MOST_PAIRS:
        raise InputError(
            f"{len(list_of_part)} parts have {len(lists)} class lists, too many to find those that"
            " are too noisy; keep them all (keep_noisy=True, --keep-noisy), or leave some out"
        )
    listed = np.zeros((len(lists), len(columns)), dtype=bool)
    for column, of_class in enumerate(columns):
        listed[list(of_class), column] = True
    return listed[list_of_part]
