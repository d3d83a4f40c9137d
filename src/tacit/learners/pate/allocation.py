"""Which teacher learns from which records: by position and public facts alone.

Records of a group are shuffled by their position with a public seed and dealt out evenly. Neither
features nor labels play a part, so a record that changes changes the data of its teacher (or its
d_g teachers) and no other.

Under a unit per person, persons are dealt out in the same way, each with all their records. The
data are then a list of persons, in the order of their first records, and a replaced person keeps
the place in it. Places, groups and the number of persons are public. Ids, numbers of records and
how the records of several persons alternate play no part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import Persons
from tacit.errors import InputError
from tacit.learners.pate.collectors import copies_for, teachers_of
from tacit.mechanisms.noise import Integers

# beside the seed: data that were shuffled by the same seed are dealt out in another order
STREAM = 0x7EACE5


@dataclass(frozen=True)
class Allocation:
    """Positions of the records of each teacher, never empty, and the groups of each teacher's
    records.

    `shares` are those of the groups in the records, or in the persons under a unit per person.
    Under upsampling every teacher may hold all groups, so `teacher_groups` is None, and `copies`
    says how many teachers a record of each group reaches.
    """

    parts: list[Integers]
    teacher_groups: list[tuple[str, ...]] | None
    shares: dict[str, float]
    copies: dict[str, int] | None = None


def allocate(
    groups: NDArray[np.str_],
    budgets: Mapping[str, float],
    n_teachers: int,
    collector: str,
    seed: int,
    persons: Persons | None = None,
) -> Allocation:
    """Deal records of these public groups, of shape (n,), out to teachers by a public seed; whole
    persons if given.

    `n_teachers` is that of plain PATE; upsampling trains so many times the mean number of copies.
    """
    if persons is None:
        return _dealt(groups, budgets, n_teachers, collector, seed, "record")
    blocks = _blocks(persons)
    of_persons = groups[[block[0] for block in blocks]]
    if any(np.any(groups[block] != group) for block, group in zip(blocks, of_persons, strict=True)):
        raise InputError(
            "a person has records in several budget groups; give all records of a person one group"
        )
    dealt = _dealt(of_persons, budgets, n_teachers, collector, seed, "person")
    return replace(
        dealt, parts=[np.concatenate([blocks[place] for place in part]) for part in dealt.parts]
    )


def _blocks(persons: Persons) -> list[Integers]:
    """Positions of the records of each person, persons in the order of their first records."""
    order, sizes = np.argsort(persons.places, kind="stable"), np.bincount(persons.places)
    return np.split(order, np.cumsum(sizes)[:-1])


def _dealt(
    groups: NDArray[np.str_],
    budgets: Mapping[str, float],
    n_teachers: int,
    collector: str,
    seed: int,
    what: str,
) -> Allocation:
    """Deal records out, or persons, as `what` says: `parts` are positions in `groups`."""
    unknown = sorted(set(groups.tolist()) - set(budgets))
    if unknown:
        raise InputError(
            f"group {unknown[0]!r} has {what}s and no budget; pass an epsilon for it in budgets"
        )
    sizes = {group: int(np.sum(groups == group)) for group in budgets}
    for group, size in sizes.items():
        if size == 0:
            raise InputError(f"group {group!r} has a budget and no {what}; leave it out of budgets")
    if n_teachers > len(groups):
        raise InputError(
            f"teachers={n_teachers} are more than the {len(groups)} {what}s; pass fewer"
        )
    shares = {group: size / len(groups) for group, size in sizes.items()}
    rng = np.random.default_rng([seed, STREAM])
    if collector == "upsampling":
        copies = copies_for(budgets)
        scale = sum(shares[group] * copies[group] for group in budgets)
        return Allocation(
            _copied(groups, copies, round(n_teachers * scale), rng), None, shares, copies
        )
    if collector == "gnmax":
        parts = np.array_split(rng.permutation(len(groups)), n_teachers)
        present = [
            tuple(group for group in budgets if np.any(groups[part] == group)) for part in parts
        ]
        return Allocation([np.sort(part) for part in parts], present, shares)
    parts, owners = [], []
    pools = pooled_groups(sizes, budgets, n_teachers)
    teachers = teachers_of(
        {i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}, n_teachers
    )
    for i, pool in enumerate(pools):
        members = np.flatnonzero(np.isin(groups, pool))
        for part in np.array_split(rng.permutation(members), teachers[i]):
            parts.append(np.sort(part))
            owners.append(tuple(group for group in pool if np.any(groups[part] == group)))
    return Allocation(parts, owners, shares)


def pooled_groups(
    sizes: Mapping[str, int], budgets: Mapping[str, float], n_teachers: int
) -> list[tuple[str, ...]]:
    """Groups by budget; a group too small for a teacher is pooled with the next, the last with the
    one before.
    """
    ordered = sorted(budgets, key=lambda group: budgets[group])
    pools: list[tuple[str, ...]] = [(group,) for group in ordered]
    while len(pools) > 1:
        total = {i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}
        small = [i for i, teachers in teachers_of(total, n_teachers).items() if teachers == 0]
        if not small:
            break
        first = min(small[0], len(pools) - 2)
        pools[first : first + 2] = [pools[first] + pools[first + 1]]
    return pools


def _copied(
    groups: NDArray[np.str_], copies: Mapping[str, int], n_teachers: int, rng: np.random.Generator
) -> list[Integers]:
    """Each to as many distinct teachers as its group has copies, in turn, so that teachers have
    equal shares.
    """
    most = max(copies.values())
    if most > n_teachers:
        raise InputError(
            f"{most} copies need as many teachers, not {n_teachers}; pass more teachers"
        )
    order = rng.permutation(len(groups))
    times = np.array([copies[group] for group in groups[order].tolist()])
    positions = np.repeat(order, times)
    # copies come one after another, so they go to distinct teachers
    return [np.sort(positions[teacher::n_teachers]) for teacher in range(n_teachers)]
