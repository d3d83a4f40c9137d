"""Teachers: their number, their kind, and the records from which each learns.

Which records a teacher gets follows from their position and public facts alone. Records of a group
are shuffled by their position with a public seed and dealt out evenly. Neither features nor labels
play a part, so a record that changes changes the data of its teacher (or its d_g teachers) and no
other.

Under a unit per person, persons are dealt out in the same way, each with all their records. The
data are then a list of persons, in the order of their first records, and a replaced person keeps
the place in it. Places, groups and the number of persons are public. Ids, numbers of records and
how the records of several persons alternate play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import Persons
from tacit.errors import InputError, quoted
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.training import Training
from tacit.learners.pate.collectors import copies_for, teachers_of
from tacit.mechanisms.noise import Integers
from tacit.models.networks import NETWORKS

# Records, or persons, of a teacher, at least, by default.
MEMBERS = 20

# Teachers by default, where there are members enough.
FEWEST_TEACHERS = 50
MOST_TEACHERS = 1000

# Beside the seed: data that were shuffled by the same seed are dealt out in another order.
STREAM = 0x7EACE5


def logistic_regression() -> Any:
    """Logistic regression nearly without a penalty; the default of teachers and student."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=30.0, max_iter=300)


def random_forest() -> Any:
    """Random forest of 100 trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier()


def gradient_boosting() -> Any:
    """Gradient boosting of 100 trees for each class.

    It is not that by histograms, which is for thousands of records: teachers have few.
    """
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier()


def nearest_neighbour() -> Any:
    """The class of the nearest record, since teachers may have few records of a class."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1)


def naive_bayes() -> Any:
    """Naive Bayes with Gaussian features."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def linear_svm() -> Any:
    """A linear support vector machine; it has no probabilities, so it is no student for interactive
    voting.
    """
    from sklearn.svm import LinearSVC

    return LinearSVC()


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic-regression": logistic_regression,
    "random-forest": random_forest,
    "gradient-boosting": gradient_boosting,
    "knn": nearest_neighbour,
    "naive-bayes": naive_bayes,
    "linear-svm": linear_svm,
}
"""Functions that make a classifier of scikit-learn; networks have names of their own
(`tacit.models.networks`).
"""


def check_name(model: Any) -> None:
    """Refuse a name that is neither a classifier's nor a network's."""
    if isinstance(model, str) and model not in CLASSIFIERS and model not in NETWORKS:
        names = ", ".join((*CLASSIFIERS, *NETWORKS))
        raise InputError(
            f"model {quoted(model)} is unknown; choose one of {names}, or pass a classifier"
        )


def model_of(model: Any) -> Any:
    """Return the model of teachers or of the student that their parameter `model` means.

    It is a classifier of scikit-learn, the name of a network, or a factory of networks; None is the
    default.
    """
    if model is None:
        model = "logistic-regression"
    if isinstance(model, str) and model in CLASSIFIERS:
        return CLASSIFIERS[model]()
    return model


@dataclass(frozen=True)
class Teachers:
    """The voters: classifiers that learn from disjoint parts of the private records.

    Parameters
    ----------
    number : int, optional
        By default one per 20 records, or per 20 persons under a unit per person, and at most 1000;
        or half, a quarter and so on of this number, if their labels carry nearly as much
        information by simulation. Upsampling trains as many more as it copies records.
    model : scikit-learn classifier, str or callable, optional
        A classifier to clone, which draws random numbers only from its `random_state`; the name of
        a classifier (logistic-regression, random-forest, gradient-boosting, knn, naive-bayes,
        linear-svm) or of a network (linear, mlp, cnn, vgg, resnet; they need torch); or a factory
        of networks. By default logistic-regression.
    training : Training or dict, optional
        How networks are trained, as in `LabelPrivate`.
    expected_accuracy : float, default=0.8
        Accuracy of a teacher in the simulated votes on which noise is calibrated: a public guess.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Teachers(number=100, model="mlp").number
    100
    """

    number: int | None = None
    model: Any = None
    training: Training | dict[str, Any] | None = None
    expected_accuracy: float = 0.8

    def __post_init__(self) -> None:
        if self.number is not None:
            whole("number of teachers", self.number, 1, 10**6)
        check_name(self.model)
        Training.of(self.training)
        real("expected_accuracy", self.expected_accuracy, 0.01, 0.99)

    def numbers_for(self, members: int) -> list[int]:
        """Numbers of teachers to consider for so many records, or persons, in ascending order."""
        if self.number is not None:
            return [self.number]
        most = max(1, min(members // MEMBERS, MOST_TEACHERS))
        numbers = []
        number = most
        while number >= FEWEST_TEACHERS:
            numbers.append(number)
            number //= 2
        return numbers[::-1] or [most]


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
        return _deal(groups, budgets, n_teachers, collector, seed, "record")

    blocks = _blocks(persons)
    person_groups = groups[[block[0] for block in blocks]]
    if np.any(groups != person_groups[persons.places]):
        raise InputError(
            "a person has records in several budget groups; give all records of a person one group"
        )
    allocation = _deal(person_groups, budgets, n_teachers, collector, seed, "person")
    # the records of a teacher lie person by person, whatever their order in the table
    parts = [np.concatenate([blocks[place] for place in part]) for part in allocation.parts]
    return replace(allocation, parts=parts)


def _blocks(persons: Persons) -> list[Integers]:
    """Positions of the records of each person, persons in the order of their first records."""
    order = np.argsort(persons.places, kind="stable")
    ends = np.cumsum(np.bincount(persons.places))
    return np.split(order, ends[:-1])


def _deal(
    groups: NDArray[np.str_],
    budgets: Mapping[str, float],
    n_teachers: int,
    collector: str,
    seed: int,
    entity: str,
) -> Allocation:
    """Deal records out, or persons, as `entity` says: `parts` are positions in `groups`."""
    n = len(groups)
    sizes = _group_sizes(groups, budgets, entity)
    if n_teachers > n:
        raise InputError(f"teachers={n_teachers} are more than the {n} {entity}s; pass fewer")
    shares = {group: size / n for group, size in sizes.items()}
    rng = np.random.default_rng([seed, STREAM])

    if collector == "upsampling":
        copies = copies_for(budgets)
        scale = sum(shares[group] * copies[group] for group in budgets)
        parts = _copied(groups, copies, round(n_teachers * scale), rng)
        return Allocation(parts, None, shares, copies)

    if collector == "gnmax":
        # all groups are one pool
        parts = [np.sort(part) for part in np.array_split(rng.permutation(n), n_teachers)]
        teacher_groups = [_groups_present(groups[part], tuple(budgets)) for part in parts]
        return Allocation(parts, teacher_groups, shares)

    parts = []
    teacher_groups = []
    pools = pooled_groups(sizes, budgets, n_teachers)
    pool_sizes = {i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}
    teachers = teachers_of(pool_sizes, n_teachers)
    for i, pool in enumerate(pools):
        members = np.flatnonzero(np.isin(groups, pool))
        for part in np.array_split(rng.permutation(members), teachers[i]):
            parts.append(np.sort(part))
            teacher_groups.append(_groups_present(groups[part], pool))
    return Allocation(parts, teacher_groups, shares)


def _group_sizes(
    groups: NDArray[np.str_], budgets: Mapping[str, float], entity: str
) -> dict[str, int]:
    """Return the number of members of each group; groups and budgets must name each other."""
    unknown = sorted(set(groups.tolist()) - set(budgets))
    if unknown:
        raise InputError(
            f"group {unknown[0]!r} has {entity}s and no budget; pass an epsilon for it in budgets"
        )
    sizes = {group: int(np.sum(groups == group)) for group in budgets}
    for group, size in sizes.items():
        if size == 0:
            raise InputError(
                f"group {group!r} has a budget and no {entity}; leave it out of budgets"
            )
    return sizes


def _groups_present(groups: NDArray[np.str_], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the names that occur among the groups of a teacher's records."""
    return tuple(name for name in names if np.any(groups == name))


def pooled_groups(
    sizes: Mapping[str, int], budgets: Mapping[str, float], n_teachers: int
) -> list[tuple[str, ...]]:
    """Groups by budget; a group too small for a teacher is pooled with the next, the last with the
    one before.
    """
    ordered = sorted(budgets, key=lambda group: budgets[group])
    pools: list[tuple[str, ...]] = [(group,) for group in ordered]
    while len(pools) > 1:
        pool_sizes = {i: sum(sizes[group] for group in pool) for i, pool in enumerate(pools)}
        teachers = teachers_of(pool_sizes, n_teachers)
        small = [i for i, number in teachers.items() if number == 0]
        if not small:
            break
        first = min(small[0], len(pools) - 2)
        pools[first : first + 2] = [pools[first] + pools[first + 1]]
    return pools


def _copied(
    groups: NDArray[np.str_], copies: Mapping[str, int], n_teachers: int, rng: np.random.Generator
) -> list[Integers]:
    """Deal each member out to as many distinct teachers as its group has copies.

    Teachers are served in turn, so that they have equal shares.
    """
    most = max(copies.values())
    if most > n_teachers:
        raise InputError(
            f"{most} copies need as many teachers, not {n_teachers}; pass more teachers"
        )
    order = rng.permutation(len(groups))
    numbers = np.array([copies[group] for group in groups[order].tolist()])
    positions = np.repeat(order, numbers)
    # copies come one after another, so they go to distinct teachers
    return [np.sort(positions[teacher::n_teachers]) for teacher in range(n_teachers)]
