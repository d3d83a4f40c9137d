"""Randomized labels and their guarantee: `tacit.label_dp.randomize`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_indices, class_list, clean_labels
from tacit.data.persons import persons_under
from tacit.errors import InputError, RowError
from tacit.learners.common.parameters import array_of
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.persons import OfPersons, by_size, event_of_person, share_of
from tacit.learners.label_dp.priors import (
    Prior,
    checked_prior,
    prior_table,
    rows_of_records,
    uniform,
)
from tacit.learners.label_dp.randomizers import RR, Randomizer, RRTopK, RRWithPrior
from tacit.learners.label_dp.regression import RROnBins, UnbiasedResponse, checked_values
from tacit.learners.label_dp.vectors import NoisyOneHot, OptimisedUnary, SymmetricUnary
from tacit.mechanisms.noise import Integers, NoiseSource, ResearchNoise, noise_source
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger, scope_of
from tacit.privacy.unit import Unit

UNITS = (Unit.CHANGE_LABEL, Unit.CHANGE_LABELS_OF_PERSON)
OF_CLASSES = ("rr", "rr-top-k", "rr-with-prior")
OF_BLOCKS = ("blocks",)
OF_VECTORS = ("symmetric-unary", "optimised-unary", "laplace", "gaussian")
OF_NUMBERS = ("rr-on-bins", "unbiased")
OF_PRIORS = ("rr-top-k", "rr-with-prior", *OF_BLOCKS, *OF_NUMBERS)
RANDOMIZERS = OF_CLASSES + OF_BLOCKS + OF_VECTORS + OF_NUMBERS


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels that may be published.

    Attributes
    ----------
    labels : ndarray of shape (n,), or (n, classes)
        Class values or numbers; for vector randomizers bits or noisy one-hot labels; for "blocks"
        block numbers.
    randomizer : Randomizer, RROnBins or UnbiasedResponse, or OfPersons
        Has the matrix, and `partitions` into blocks; under a unit per person there is one per
        number of labels.
    which : ndarray of shape (n,) or None
        The prior of each label; for "blocks" its row of `partitions`.
    guarantee_ : Guarantee
        Under change of one label, or of all labels of one person.
    """

    labels: NDArray[Any]
    randomizer: Any
    which: Integers | None
    guarantee_: Guarantee


def randomize(
    y: Any,
    *,
    budget: Budget | str = "epsilon=1",
    classes: Any = None,
    values: Any = None,
    randomizer: str = "rr",
    prior: Any = None,
    which: Any = None,
    k: int | None = None,
    loss: str = "squared",
    noise: str = "secure",
    random_state: Any = None,
    ledger: Ledger | None = None,
    unit: Unit | str = "change-label",
    persons: Any = None,
) -> NoisyLabels:
    """Randomize labels once, each by itself.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, each in `classes`, or numbers in `values`.
    budget : Budget or str, default="epsilon=1"
        Pure, zCDP or approximate; for "gaussian" not pure. An infinite budget keeps labels.
    classes : sequence or int
        The public class list; N stands for 0..N-1.
    values : array of shape (v,), optional
        For "rr-on-bins" and "unbiased", instead of classes: the declared values, rising. Labels
        between them go to the nearest, labels outside are clamped to the range.
    randomizer : str
        "rr", "rr-top-k", "rr-with-prior", "blocks", "symmetric-unary", "optimised-unary",
        "laplace", "gaussian", "rr-on-bins", "unbiased".
    prior : array of shape (classes,) or (priors, classes), optional
        Public, or paid for elsewhere; uniform by default. With shape (n, classes) each label has
        the prior of its row. "blocks" makes 256 partitions of a prior that several labels share,
        and deals them out by position.
    which : array of shape (n,), optional
        Row of `prior` for each label, where these are not the rows in order.
    k : int, optional
        For "rr-top-k".
    loss : {"squared", "absolute"}
        For "rr-on-bins".
    noise, random_state
        As in `NoisySumPrototypes`. A known seed reveals the labels, so only research noise takes a
        seed.
    ledger : Ledger, optional
        Charged before anything is drawn: randomizing the same labels again costs again, or is
        refused.
    unit : {"change-label", "change-labels-of-person"}
        Under the latter a person's labels share the budget: each of m gets an m-th of it.
    persons : array-like of shape (n,), optional
        Whose each label is, for the unit per person: an id, text or a whole number. Public here.

    Returns
    -------
    NoisyLabels

    Raises
    ------
    InputError, BudgetError
        If something is out of range; a label outside the class list is named by its row.
    LedgerError
        If the charge would overdraw the ledger.

    Notes
    -----
    Guarantee: under change of one label, or of all labels of one person
    (`tacit.learners.label_dp.persons`). Features are not protected. Source: Warner 1965; Ghazi et
    al. 2021 and 2022; Malek et al. 2021.

    Examples
    --------
    >>> import tacit
    >>> labels = ["cat", "dog", "cat"]
    >>> out = tacit.label_dp.randomize(labels, classes=["cat", "dog"], budget="epsilon=1")
    >>> out.labels.shape, out.guarantee_.epsilon()
    ((3,), 1.0)
    """
    if not isinstance(ledger, Ledger | None):
        raise InputError(
            f"ledger={ledger!r:.60} must be a Ledger; pass tacit.Ledger(path, identity)"
        )
    labels = _vector_of_labels(y)
    choose = partial(
        chosen, classes=classes, values=values, randomizer=randomizer, prior=prior, k=k, loss=loss
    )
    class_values, mechanism, rows = choose(budget)

    # positions of the labels in the class list, or among the values, (n,)
    if randomizer in OF_NUMBERS:
        places = nearest(labels, class_values)
    else:
        if labels.dtype == object:
            labels = clean_labels(y, len(labels))
        places = class_indices(labels, class_values)

    # the prior of each label, (n,), where there are several
    if which is not None and rows is None:
        raise InputError(
            "which= chooses among the rows of a prior; pass prior=..., or leave it out"
        )
    prior_rows = None
    if rows is not None:
        row_of_label = rows_of_records(rows, which, len(places))
        if mechanism.n_priors > 1:
            prior_rows = row_of_label

    # labels of persons with as many labels share a randomizer
    allowed = Budget.parse(budget)
    sizes = labels_of_persons(persons, Unit(unit), len(places))
    parts = []
    for m, positions in by_size(np.ones_like(places) if sizes is None else sizes):
        part_mechanism = mechanism
        if m > 1:
            _, part_mechanism, _ = choose(share_of(allowed, m, randomizer))
        part_rows = None if prior_rows is None else prior_rows[positions]
        if randomizer in OF_BLOCKS:
            part_mechanism, part_rows = dealt_out(part_mechanism, rows, part_rows, len(positions))
        parts.append(_Part(m, positions, part_mechanism, part_rows))

    if sizes is None:
        event = parts[0].randomizer.event
    else:
        event = event_of_person(allowed, randomizer)
    guarantee = guarantee_of(event, ledger, Unit(unit))

    # all that may be refused is refused before the charge, and nothing is drawn before it
    source = noise_source(noise, random_state)
    for part in parts:
        dry_run(part.randomizer)
    if ledger is not None:
        ledger.charge(guarantee, what=f"labels randomized by {randomizer}")

    answers, answer_rows = _answers(parts, places, source)
    if randomizer in OF_CLASSES:
        answers = class_values[answers]
    used = parts[0].randomizer
    if sizes is not None:
        used = OfPersons({part.m: part.randomizer for part in parts}, sizes)
    return NoisyLabels(answers, used, answer_rows, guarantee)


def _vector_of_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array of shape (n,), with n of 1 or more."""
    labels = array_of(y, "labels")
    if not labels.size:
        raise InputError("labels are empty; pass one for each record")
    if labels.ndim != 1:
        raise InputError(f"labels have shape {labels.shape}; pass one for each record")
    return labels


class _Part(NamedTuple):
    """Labels of persons with m labels: their positions and randomizer, and the prior of each if
    there are several.
    """

    m: int
    at: Integers
    randomizer: Any
    which: Integers | None

    def sample(self, places: Integers, noise: NoiseSource) -> NDArray[Any]:
        """Randomize the labels of this part, whose classes are at `places` of the class list."""
        answers: NDArray[Any]
        if self.which is None:
            answers = self.randomizer.sample(places[self.at], noise)
        else:
            answers = self.randomizer.sample(places[self.at], noise, self.which)
        return answers


def _answers(
    parts: Sequence[_Part], places: Integers, noise: NoiseSource
) -> tuple[NDArray[Any], Integers | None]:
    """Randomize the labels of all parts; return the answers in the order of the labels, and the
    prior of each if there are several.
    """
    positions = np.concatenate([part.at for part in parts])
    order = np.argsort(positions, kind="stable")
    answers = np.concatenate([part.sample(places, noise) for part in parts])[order]
    if all(part.which is None for part in parts):
        return answers, None

    # a part without priors of its own uses the first
    rows = [np.zeros_like(part.at) if part.which is None else part.which for part in parts]
    return answers, np.concatenate(rows)[order]


def labels_of_persons(ids: Any, unit: Unit, n: int) -> Integers | None:
    """The number of labels of each label's person, of n labels; None under change of one label."""
    if unit not in UNITS:
        raise InputError(f"unit={unit} is not a unit of label privacy; pass {' or '.join(UNITS)}")
    # stacklevel 3: a warning names the line that calls `randomize`
    persons = persons_under(unit, ids, n, offered=UNITS, stacklevel=3)
    return None if persons is None else persons.of_same_person


def chosen(
    budget: Budget | str,
    *,
    classes: Any = None,
    values: Any = None,
    randomizer: str = "rr",
    prior: Any = None,
    k: int | None = None,
    loss: str = "squared",
) -> tuple[NDArray[Any], Any, Any]:
    """The class list or the values, the randomizer, and the prior's rows if labels choose among
    them.
    """
    if not isinstance(randomizer, str) or randomizer not in RANDOMIZERS:
        raise InputError(
            f"randomizer={randomizer!r} must be one of {', '.join(RANDOMIZERS)}; leave it out for"
            " 'rr'"
        )
    allowed = Budget.parse(budget)
    if randomizer in OF_NUMBERS:
        if values is None:
            raise InputError(
                f"randomizer={randomizer!r} is for numbers; pass values=... that a label may have"
            )
        table, _ = checked_values(values, None)
        epsilon = allowed.largest_pure()
        if randomizer == "rr-on-bins":
            return table, RROnBins(epsilon, table, prior, loss), None
        return table, UnbiasedResponse(epsilon, table, prior), None
    if prior is not None and randomizer not in OF_PRIORS:
        raise InputError(f"prior= is for {', '.join(OF_PRIORS)}, not {randomizer!r}; leave it out")
    if classes is None:
        raise InputError("classes is missing; pass the public class list, or N for 0..N-1")

    class_values = np.asarray(class_list(classes))
    n_classes = len(class_values)
    if prior is None:
        flat = uniform(0, n_classes).rows
        return class_values, of_classes(randomizer, allowed, n_classes, flat, k), None
    rows = prior_table(prior, n_classes)
    return class_values, of_classes(randomizer, allowed, n_classes, rows, k), rows


def dealt_out(
    blocks: Blocks, rows: NDArray[Any] | None, which: Integers | None, n: int
) -> tuple[Blocks, Integers | None]:
    """Blocks that differ between labels, and the partition of each of n labels; see
    `Prior.dealt`.
    """
    if rows is None:
        rows = uniform(0, blocks.n_classes).rows
    row_of_label = np.zeros(n, dtype=np.int64) if which is None else which
    prior = Prior(rows, row_of_label)
    if blocks.epsilon == math.inf or not prior.shared:
        return blocks, which
    prior = prior.dealt()
    return Blocks(blocks.epsilon, prior.rows), prior.which


def of_classes(
    name: str,
    budget: Budget,
    n_classes: int,
    rows: NDArray[Any],
    k: int | None = None,
    *,
    first: int = 0,
) -> Randomizer:
    """The randomizer of class indices that spends a budget; `first` is for `Blocks`."""
    if name == "gaussian" and not budget.infinite:
        return NoisyOneHot(n_classes, rho=1 / (2 * budget.gaussian() ** 2))
    epsilon = budget.largest_pure()
    if (k is None) == (name == "rr-top-k"):
        raise InputError(
            f"k={k!r}: 'rr-top-k' needs the number of classes of its answers, and no other"
            " randomizer takes it"
        )
    if name == "rr-top-k":
        return RRTopK(epsilon, rows, k or 0)
    if name in OF_BLOCKS:
        return Blocks(epsilon, rows, first)
    if name == "rr-with-prior":
        # under a flat prior it is "rr"
        is_flat = np.ptp(checked_prior(rows)) == 0
        if not is_flat or n_classes == 1:
            return RRWithPrior(epsilon, rows)
    if name in ("laplace", "gaussian"):
        return NoisyOneHot(n_classes, epsilon=epsilon)
    if name in ("rr", "rr-with-prior") or epsilon == math.inf:
        return RR(epsilon, n_classes)
    if name == "symmetric-unary":
        return SymmetricUnary(epsilon, n_classes)
    return OptimisedUnary(epsilon, n_classes)


def dry_run(randomizer: Any) -> None:
    """Randomize one made-up label, so that a mechanism that cannot be sampled is refused before a
    charge.
    """
    label = np.zeros(1, dtype=np.int64)
    noise = ResearchNoise(0)
    if randomizer.n_priors > 1:
        randomizer.sample(label, noise, np.zeros(1, dtype=np.int64))
    else:
        randomizer.sample(label, noise)


def guarantee_of(event: Event, ledger: Ledger | None, unit: Unit = Unit.CHANGE_LABEL) -> Guarantee:
    """The guarantee of this event under change of one label, or of all labels of one person."""
    return Guarantee(unit, event, unit.public, scope=scope_of(ledger))


def nearest(labels: NDArray[Any], values: NDArray[np.float64], start: int = 0) -> Integers:
    """Place of the value nearest to each label, the lower of two; rows are counted from `start`."""
    if labels.dtype.kind == "c":
        raise InputError("labels are complex; pass real numbers")
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("labels are not numbers; pass numbers, or classes=...") from error
    if not np.isfinite(numbers).all():
        row = start + int(np.argmin(np.isfinite(numbers)))
        raise RowError("", row, " has a label that is not finite; drop or correct it")
    middles = (values[1:] + values[:-1]) / 2
    return np.asarray(np.searchsorted(middles, numbers, side="left"), dtype=np.int64)
