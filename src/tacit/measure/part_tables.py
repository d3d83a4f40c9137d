"""Tables of paid evaluations of several parts of the records: what must agree before they add up,
the noise of their sum, and which noisy counts no records give.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np

from tacit.compute.wide import Wide
from tacit.errors import InputError, quoted
from tacit.measure.intervals import Noise
from tacit.measure.summed_noise import summed
from tacit.mechanisms import partition_tables
from tacit.mechanisms.gaussian import UNIT
from tacit.privacy.events import Gaussian, Laplace
from tacit.privacy.guarantee import Guarantee
from tacit.releases.combination import Combination, combination_of_part

MOST_CELLS_OF_FILE = 1_000_000
"""Most counts of all tables of a file."""

CONFIDENCE_EDGES = np.linspace(0, 1, 11)
"""Public edges of the bins of confidence."""

MOST_RECORDS = 10**10
"""Most records of one cell: more than there are people."""

# A count is below 0 by more than this with probability below 1e-32 a cell.
_DEVIATIONS = 12.0
_LAPLACE_SCALES = 75.0


def shape_of(kind: str, n_groups: int, n_classes: int) -> tuple[int, ...]:
    """Return the shape of a table: groups, classes, and outcomes."""
    outcomes: dict[str, tuple[int, ...]] = {
        "right": (2,),
        "predicted": (n_classes,),
        "confidence": (2, len(CONFIDENCE_EDGES) - 1),
    }
    return n_groups, n_classes, *outcomes[kind]


def sha256_of(counts: Mapping[str, Wide]) -> str:
    """Return the hash of noisy tables, which tells whether two of them are the same."""
    sha256 = hashlib.sha256()
    for kind, table in counts.items():
        sha256.update(f"{kind} {table.shape}\n".encode())
        for words in (table.high, table.low):
            sha256.update(np.ascontiguousarray(words, dtype="<i8").tobytes())
    return sha256.hexdigest()


def noise_of_cost(cost: Guarantee, n_tables: int) -> Noise:
    """Return the noise of each cell of tables that cost this.

    Raises
    ------
    InputError
        If no table has such a cost.
    """
    event = cost.event
    if cost.groups or not isinstance(event, Gaussian | Laplace):
        raise InputError(
            f"a table of counts never costs {event.describe()}; give one that tacit evaluate wrote"
        )
    scale = partition_tables.noise_of_cells(event, cost.unit, n_tables)
    return Noise(scale, isinstance(event, Laplace))


def part_of(
    name: str, counts: Mapping[str, Wide], classes: Sequence[Any], cost: Guarantee
) -> Combination:
    """Describe the tables of one part of the records, as they are released today."""
    noise = noise_of_cost(cost, len(counts))
    return combination_of_part(
        name,
        tuple(classes),
        cost,
        date=str(datetime.now(UTC).date()),
        noise_of_sums=math.sqrt(noise.variance),
        noise_of_moments=None,
        sha256=sha256_of(counts),
    )


def noise_of_parts(combination: Combination, n_tables: int) -> Noise:
    """Return the noise of each cell of the sum of the tables of all parts."""
    noises = [noise_of_cost(cost.recorded(), n_tables) for cost in combination.costs]
    return summed([noises[row.cost] for row in combination.parts])


def difference(name: str, first: Sequence[Any], second: Sequence[Any]) -> str | None:
    """Name the first place at which two lists differ; None if they are equal."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        # 1 is no true
        if one != other or type(one) is not type(other):
            return f"{name} {place} is {quoted(one)} in one and {quoted(other)} in the other"
    if len(first) == len(second):
        return None
    return f"one has {len(first)} {name}s and the other {len(second)}"


def misfit(counts: Mapping[str, Wide], noise: Noise) -> str | None:
    """Name the first count that no records give with this noise; None if there is none.

    A count may be below 0 by noise alone, and tables of the same records hold as many of a group
    and class each, but for the noise.
    """
    tables = {kind: table / UNIT for kind, table in counts.items()}
    for kind, table in tables.items():
        least = -_reach(noise, 1)
        out_of_range = np.argwhere((table > MOST_RECORDS) | (table < least))
        if len(out_of_range):
            place = tuple(out_of_range[0].tolist())
            return (
                f"table {kind!r} has {table[place]:.6g} records in cell {place}, and cells hold"
                f" {least:.6g} to {MOST_RECORDS:.0e}"
            )

    sums = {kind: table.reshape(*table.shape[:2], -1) for kind, table in tables.items()}
    for (kind, first), (other_kind, second) in combinations(sums.items(), 2):
        gap = np.abs(first.sum(axis=2) - second.sum(axis=2))
        most = _reach(noise, first.shape[2] + second.shape[2])
        if gap.max() > most:
            return (
                f"tables {kind!r} and {other_kind!r} differ by {gap.max():.6g} records of a class,"
                f" and are of the same records"
            )
    return None


def _reach(noise: Noise, n_cells: int) -> float:
    """Return how far from 0 the noise of the sum of so many cells never is; a millionth of a
    record is rounding.
    """
    reach = _DEVIATIONS * math.sqrt(n_cells * noise.variance) + 1e-6
    if not noise.is_normal:
        reach += _LAPLACE_SCALES * math.sqrt(noise.variance)
    return reach


def check_units(combination: Combination) -> None:
    """Refuse to add tables that count records to tables that count persons."""
    per_person: dict[bool, str] = {}
    for row in combination.parts:
        unit = combination.costs[row.cost].recorded().unit
        per_person.setdefault(unit.per_person, row.name)
    if len(per_person) > 1:
        raise InputError(
            f"the tables of part {quoted(per_person[False])} count records, and those of part"
            f" {quoted(per_person[True])} count persons; add tables of one kind"
        )


def check_size_of_file(n_cells: int) -> None:
    """Refuse more cells than a file holds."""
    if n_cells > MOST_CELLS_OF_FILE:
        raise InputError(
            f"the tables have {n_cells:.6g} cells, and a file holds at most {MOST_CELLS_OF_FILE};"
            " declare fewer groups, or leave 'predicted' out"
        )
