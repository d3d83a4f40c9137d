"""Which teacher learns from which records: by position and public facts alone.

Records of a group are shuffled by their position with a public seed and dealt out evenly. Neither features nor labels
play a part, so a record that changes changes its own teacher's data (or its d_g teachers') and no other's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.pate.collectors import copies_for, teachers_of
from tacit.mechanisms.noise import Integers

STREAM = 0x7EACE5  # beside the seed: data that were shuffled by the same seed are dealt out in another order


@dataclass(frozen=True)
class Allocation:
    """The records of each teacher, as positions, and whose they are.

    Attributes
    ----------
    parts : list of ndarray
        Positions of the records of each teacher; none is empty.
    teacher_groups : list of tuple of str, or None
        Groups of each teacher's records; None under upsampling, where every teacher may have all.
    shares : dict of str to float
        Share of each group in the records.
    copies : dict of str to int, or None
        Under upsampling, the number of teachers that each record of a group reaches.
    """

    parts: list[Integers]
    teacher_groups: list[tuple[str, ...]] | None
    shares: dict[str, float]
    copies: dict[str, int] | None = None


def allocate(
    groups: NDArray[np.str_], budgets: Mapping[str, float], n_teachers: int, collector: str, seed: int
) -> Allocation:
    """Deal records out to teachers.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each record, public.
    budgets : dict of str to float
        Epsilon of each group.
    n_teachers : int
        Number of teachers T of plain PATE; upsampling trains T times the mean number of copies.
    collector : str
        See `collectors.py`.
    seed : int
        Of the shuffle; public.

    Raises
    ------
    InputError
        If a group has no record, a record's group no budget, or there are more teachers than records.
    """
    unknown = sorted(set(groups.tolist()) - set(budgets))
    if unknown:
        raise InputError(f"group {unknown[0]!r} has records and no budget; pass an epsilon for it in budgets")
    sizes = {group: int(np.sum(groups == group)) for group in budgets}
    for group, size in sizes.items():
        if size == 0:
            raise InputError(f"group {group!r} has a budget and no record; leave it out of budgets")
    if n_teachers > len(groups):
        raise InputError(f"teachers={n_teachers} are more than the {len(groups)} records; pass fewer")
    shares = {group: size / len(groups) for group, size in sizes.items()}
    rng = np.random.default_rng([seed, STREAM])
    if collector == "upsampling":
        copies = copies_for(budgets)
        scale = sum(shares[group] * copies[group] for group in budgets)
        return Allocation(_copied(groups, copies, round(n_teachers * scale), rng), None, shares, copies)
    if collector == "gnmax":
        parts = np.array_split(rng.permutation(len(groups)), n_teachers)
        present = [tuple(group for group in budgets if np.any(groups[part] == group)) for part in parts]
        return Allocation([np.sort(part) for part in parts], present, shares)
    parts, owners = [], []
    pools = pooled_groups(sizes, budgets, n_teachers)
    teachers = teachers_of({i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}, n_teachers)
    for i, pool in enumerate(pools):
        own = np.flatnonzero(np.isin(groups, pool))
        for part in np.array_split(rng.permutation(own), teachers[i]):
            parts.append(np.sort(part))
            owners.append(tuple(group for group in pool if np.any(groups[part] == group)))
    return Allocation(parts, owners, shares)


def pooled_groups(sizes: Mapping[str, int], budgets: Mapping[str, float], n_teachers: int) -> list[tuple[str, ...]]:
    """Groups, those too small for a teacher of their own pooled with the next larger budget's, or the last two."""
    ordered = sorted(budgets, key=lambda group: budgets[group])
    pools: list[tuple[str, ...]] = [(group,) for group in ordered]
    while len(pools) > 1:
        total = {i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}
        small = [i for i, own in teachers_of(total, n_teachers).items() if own == 0]
        if not small:
            break
        first = min(small[0], len(pools) - 2)
        pools[first : first + 2] = [pools[first] + pools[first + 1]]
    return pools


def _copied(
    groups: NDArray[np.str_], copies: Mapping[str, int], n_teachers: int, rng: np.random.Generator
) -> list[Integers]:
    """Each record to as many distinct teachers as its group has copies, in turn, so that teachers have equal shares."""
    most = max(copies.values())
    if most > n_teachers:
        raise InputError(
            f"{most} copies of a record need as many teachers, and there are {n_teachers}; pass more teachers"
        )
    order = rng.permutation(len(groups))
    times = np.array([copies[group] for group in groups[order].tolist()])
    positions = np.repeat(order, times)
    teacher = np.arange(len(positions)) % n_teachers  # the copies of a record come one after another: distinct teachers
    return [np.sort(positions[teacher == t]) for t in range(n_teachers)]
