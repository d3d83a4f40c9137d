"""The parts of a combination: which released sums were added up, and what they cost together.

Sums of several parts of the records add up, and so do the variances of their noise. The rows here
say of each part its name, its noise, which classes it lists and what it cost its records. They are
sorted, and lists that repeat are stated once, so that a combination has the same bits in whatever
order and groups its parts were added.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from tacit.errors import InputError, quoted
from tacit.models.rows import Floats
from tacit.models.summarised import OF_MOMENTS, event_of_noise
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import noise_rounded_down, rounded_up
from tacit.privacy.events import Event, Gaussian, Parallel
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import combined, part_key, part_name
from tacit.releases.fields import Day, Label, Model, Number, Recorded, Share, Text

MOST_PARTS = 100_000

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Index = Annotated[int, Field(ge=0, lt=MOST_PARTS)]
Noise = Annotated[float, Field(ge=0, lt=1e30)]


def _check_labels(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse labels of several types, and a label that is there twice."""
    if len({type(label) for label in labels}) > 1:
        raise ValueError("the labels of a class list have one type")
    if len(set(labels)) < len(labels):
        raise ValueError("a class list names each class once")
    return labels


ClassList = Annotated[tuple[Label, ...], Field(min_length=1), AfterValidator(_check_labels)]

DELTA = 1e-6
"""Delta at which the cost of a part is stated as an epsilon."""

SOURCES_OF_NOISE = ("secure", "opendp", "research")
"""Sources of noise, from the one that promises most."""

# relative error of a stated number: other processors round otherwise
TOLERANCE = 1e-6

# relative error of a noise multiplier that is computed back from noise
SAME_NOISE = 1e-9


class PartCost(Model):
    """What sums cost the records of a part: numbers that follow from the recorded guarantee."""

    rho: Number
    epsilon: Number
    delta: Share
    guarantee: Recorded

    @classmethod
    def of(cls, guarantee: Guarantee) -> PartCost:
        """State the cost of a guarantee."""
        recorded = Recorded.of(guarantee)
        rho, epsilon = guarantee.rho, guarantee.epsilon(DELTA)
        return cls(
            rho="inf" if rho is None else rho,
            epsilon="inf" if math.isinf(epsilon) else epsilon,
            delta=DELTA,
            guarantee=recorded,
        )

    def recorded(self) -> Guarantee:
        """Return the guarantee of these sums alone."""
        return Guarantee.from_json(self.guarantee.model_dump())

    def untrue(self) -> bool:
        """Tell whether a number is not that of the recorded guarantee."""
        true = PartCost.of(self.recorded())
        stated = (float(self.rho), float(self.epsilon), self.delta)
        expected = (float(true.rho), float(true.epsilon), true.delta)
        return not np.allclose(stated, expected, rtol=TOLERANCE, atol=0)


@dataclass(frozen=True)
class Declared:
    """What is declared of the parts of a combination; nothing here checks it.

    `allowances` are pairs of a part and a budget, as text, in the order of the parts.
    """

    overlapping: bool = False
    moving: bool = False
    allowances: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        overlapping: bool = False,
        moving: bool = False,
        allowances: Mapping[str, Budget | str] | None = None,
    ) -> Declared:
        """Read the arguments of a caller; the order of allowances does not matter."""
        texts = {
            part_name(name): str(Budget.parse(budget))
            for name, budget in (allowances or {}).items()
        }
        return cls(overlapping, moving, tuple(sorted(texts.items())))

    def besides(self, parts: Iterable[str]) -> Declared:
        """The same where these parts were left out, whose allowances then bound nothing."""
        left_out = {part_key(name) for name in parts}
        kept = [
            (name, budget) for name, budget in self.allowances if part_key(name) not in left_out
        ]
        return replace(self, allowances=tuple(kept))

    def without_allowances(self) -> Declared:
        """The same for some of the parts, of which allowances may name others."""
        return replace(self, allowances=())


NOTHING = Declared()
"""No more than that parts of different names are disjoint."""


class PartRow(Model):
    """One released set of sums of one part of the records.

    `noise_of_sums` is the standard deviation of their noise, where 1 is the bound on a record, and
    `noise_of_moments` that of its second moments, if it has some. `class_list` and `cost` are
    positions in the lists of the combination. `sha256` is the hash of the arrays as they were
    released.
    """

    name: Text
    date: Day
    noise_of_sums: Noise
    noise_of_moments: Noise | None
    class_list: Index
    cost: Index
    sha256: Sha256


class Combination(Model):
    """Item 12 of a release that was made of summaries: the parts, and what is declared of them.

    With `overlapping`, a record may be in several parts, and their costs add up; otherwise parts of
    different names are declared to have no record in common, nor a person under a unit per person.
    With `moving`, a replaced record may belong to another part than before. `allowances` are what
    may be spent on a part in all, fixed before its first release: the part counts at that.
    """

    parts: Annotated[tuple[PartRow, ...], Field(min_length=1, max_length=MOST_PARTS)]
    class_lists: Annotated[tuple[ClassList, ...], Field(min_length=1)]
    costs: Annotated[tuple[PartCost, ...], Field(min_length=1)]
    overlapping: bool
    moving: bool
    allowances: dict[Text, Text]

    @property
    def declared(self) -> Declared:
        """What is declared of the parts."""
        return Declared(self.overlapping, self.moving, tuple(self.allowances.items()))

    @model_validator(mode="after")
    def _check_rows(self) -> Combination:
        """Refuse an index without an entry, entries that no part has, and sums that count twice."""
        for name, entries in (("class_list", self.class_lists), ("cost", self.costs)):
            used = {getattr(row, name) for row in self.parts}
            if used != set(range(len(entries))):
                raise ValueError(f"{name} of the parts does not go with the list of them")
        # within a list there is one type
        types = {type(labels[0]) for labels in self.class_lists}
        if len(types) > 1:
            raise ValueError("the class lists of the parts have labels of one type")
        hashes = {row.sha256 for row in self.parts}
        if len(hashes) < len(self.parts):
            raise ValueError("the same sums are named twice, and would count twice")
        return self


class Source(Model):
    """What was computed from earlier releases: `what` of the recipe, and of which parts these were.

    A summary whose recipe was computed from a release has seen the parts of that release.
    """

    what: Literal["centre", "classes", "budget", "parts"]
    release: Text
    parts: tuple[Text, ...]


class Summand(NamedTuple):
    """A part with what its row refers to."""

    row: PartRow
    classes: tuple[Any, ...]
    cost: PartCost


def summands_of(combination: Combination) -> list[Summand]:
    """Return the parts of a combination, each with what it refers to."""
    return [
        Summand(row, combination.class_lists[row.class_list], combination.costs[row.cost])
        for row in combination.parts
    ]


def combination_of(summands: Iterable[Summand], declared: Declared = NOTHING) -> Combination:
    """Combine parts; the result does not depend on their order.

    Raises
    ------
    InputError
        If the same sums are among them twice, or there are too many.
    """
    ordered = sorted(summands, key=lambda part: (part.row.name, part.row.sha256))
    if len(ordered) > MOST_PARTS:
        raise InputError(f"{len(ordered)} parts are more than {MOST_PARTS}; combine fewer")
    for part, following in itertools.pairwise(ordered):
        if part.row.sha256 == following.row.sha256:
            raise InputError(
                f"the summary of part {quoted(part.row.name)} is there twice, and its records"
                " would count twice; pass it once"
            )

    # by their JSON, which tells the label 1 from the label true
    list_texts = _text_by_id((part.classes for part in ordered), json.dumps)
    cost_texts = _text_by_id((part.cost for part in ordered), PartCost.model_dump_json)
    lists = {list_texts[id(part.classes)]: part.classes for part in ordered}
    costs = {cost_texts[id(part.cost)]: part.cost for part in ordered}
    list_positions = {text: position for position, text in enumerate(sorted(lists))}
    cost_positions = {text: position for position, text in enumerate(sorted(costs))}
    rows = [
        part.row.model_copy(
            update={
                "class_list": list_positions[list_texts[id(part.classes)]],
                "cost": cost_positions[cost_texts[id(part.cost)]],
            }
        )
        for part in ordered
    ]
    return Combination(
        parts=tuple(rows),
        class_lists=tuple(lists[key] for key in sorted(lists)),
        costs=tuple(costs[key] for key in sorted(costs)),
        overlapping=declared.overlapping,
        moving=declared.moving,
        allowances=dict(declared.allowances),
    )


def combination_of_part(
    name: str,
    classes: tuple[Any, ...],
    cost: Guarantee,
    *,
    date: str,
    noise_of_sums: float,
    noise_of_moments: float | None,
    sha256: str,
) -> Combination:
    """Describe the sums of one part, as they are released first."""
    row = PartRow(
        name=name,
        date=date,
        noise_of_sums=noise_of_sums,
        noise_of_moments=noise_of_moments,
        class_list=0,
        cost=0,
        sha256=sha256,
    )
    return combination_of([Summand(row, classes, PartCost.of(cost))])


def _text_by_id(values: Iterable[Any], text_of: Callable[[Any], str]) -> dict[int, str]:
    """Write each object once, since thousands of parts share one."""
    texts: dict[int, str] = {}
    for value in values:
        if id(value) not in texts:
            texts[id(value)] = text_of(value)
    return texts


def united_classes(combination: Combination) -> tuple[Any, ...]:
    """Return all classes: in the order of the list if there is one list, else sorted."""
    lists = combination.class_lists
    if len(lists) == 1:
        return lists[0]
    return tuple(sorted({label for labels in lists for label in labels}))


def guarantee_of(combination: Combination) -> Guarantee:
    """Compute the guarantee of all parts together from that of each."""
    costs = [cost.recorded() for cost in combination.costs]
    return combined(
        [(row.name, costs[row.cost]) for row in combination.parts],
        overlapping=combination.overlapping,
        moving=combination.moving,
        allowances=combination.allowances,
    )


def least_promised(noises: Iterable[str]) -> str:
    """Return the source of noise that promises least, which a sum states as its own."""
    return max(noises, key=SOURCES_OF_NOISE.index)


def noise_of_classes(combination: Combination) -> Floats:
    """Return the standard deviation of the noise on the sum of each class, of shape (C,).

    A part adds noise to the classes that it lists, and to no others.
    """
    # exact, so that the sums depend on no order
    of_lists = [Fraction(0)] * len(combination.class_lists)
    numbers = Counter((row.class_list, row.noise_of_sums) for row in combination.parts)
    for (at, noise), number in numbers.items():
        of_lists[at] += Fraction(number * noise**2)

    # many classes are in the same lists, of which a stranger's file may have many
    lists_of: dict[Any, list[int]] = {}
    for at, labels in enumerate(combination.class_lists):
        for label in labels:
            lists_of.setdefault(label, []).append(at)

    @cache
    def deviation(lists: tuple[int, ...]) -> float:
        return math.sqrt(sum((of_lists[at] for at in lists), Fraction(0)))

    deviations = [deviation(tuple(lists_of[label])) for label in united_classes(combination)]
    return np.array(deviations)


def noise_of_moments(combination: Combination) -> float | None:
    """Return the standard deviation of the noise on second moments; None if a part has none."""
    variances = []
    for row in combination.parts:
        if row.noise_of_moments is None:
            return None
        variances.append(row.noise_of_moments**2)
    # an exactly rounded sum, so that it depends on no order
    return math.sqrt(math.fsum(variances))


def untrue_combination(combination: Combination, stated: Recorded) -> str | None:
    """Say that the parts do not give the stated guarantee, or are not in order; None if all
    agrees.
    """
    again = combination_of(summands_of(combination), combination.declared)
    in_order = sorted(combination.allowances) == list(combination.allowances)
    if again != combination or not in_order:
        return "the parts are not in their order"
    try:
        for row in combination.parts:
            part_name(row.name)
        if any(cost.untrue() for cost in combination.costs):
            return "a cost of the parts is not that of its recorded guarantee"
        guarantee = guarantee_of(combination)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return f"the costs of the parts cannot be combined ({error})"
    if Recorded.of(guarantee) != stated:
        return "the parts do not give the recorded guarantee"
    return None


def other_noise(combination: Combination) -> str | None:
    """Name the first part whose sums would cost something else with the stated noise; None if all
    costs are those of their noise.

    The noise is what weights are computed from, and the cost is what is promised.
    """
    rows = {(row.cost, row.noise_of_sums, row.noise_of_moments): row for row in combination.parts}
    for row in rows.values():
        stated = combination.costs[row.cost].recorded()
        expected = event_of_noise(stated.unit, row.noise_of_sums, row.noise_of_moments)
        # moments of public rows are exact
        noise_for_nothing = OF_MOMENTS.under(stated.unit) == 0 and bool(row.noise_of_moments)
        if stated.groups or noise_for_nothing or not _same_cost(stated.event, expected):
            return f"the cost of part {quoted(row.name)} is not that of sums with its noise"
    return None


def _same_cost(stated: Event, expected: Event) -> bool:
    """Tell whether two events are the same Gaussian noise, but for rounding, in one structure."""
    if isinstance(stated, Parallel) and isinstance(expected, Parallel):
        return stated.over == expected.over and _same_cost(stated.event, expected.event)
    if isinstance(stated, Gaussian) and isinstance(expected, Gaussian):
        return math.isclose(stated.mu, expected.mu, rel_tol=SAME_NOISE)
    # sums, term by term; an event that is no sum has itself as its only term
    terms = stated.counted()
    expected_terms = expected.counted()
    if len(terms) != len(expected_terms) or len(terms) < 2:
        return False
    return all(
        count == expected_count and _same_cost(event, expected_event)
        for (event, count), (expected_event, expected_count) in zip(
            terms, expected_terms, strict=True
        )
    )


def part_lines(combination: Combination, *, hashes: bool = True) -> list[str]:
    """Write the parts for a card, a row each: classes, noise, cost, and the hash of the arrays."""
    lines = []
    several_units = len({cost.guarantee.unit for cost in combination.costs}) > 1
    for row in combination.parts:
        cost = combination.costs[row.cost]
        unit = f" under {cost.guarantee.unit}" if several_units else ""
        n_classes = len(combination.class_lists[row.class_list])
        noise = f"noise of its sums {noise_rounded_down(row.noise_of_sums)}"
        if row.noise_of_moments is not None:
            noise += f", of its moments {noise_rounded_down(row.noise_of_moments)}"
        arrays = f", arrays {row.sha256}" if hashes else ""
        lines.append(
            f"{row.name}: {n_classes} classes, {noise}, rho = {_price(cost.rho)}, epsilon ="
            f" {_price(cost.epsilon)} at delta = {cost.delta:g}{unit}; released {row.date}{arrays}"
        )
    return lines


def _price(number: float | str) -> str:
    return rounded_up(number) if isinstance(number, float) else "none (no bound holds)"
