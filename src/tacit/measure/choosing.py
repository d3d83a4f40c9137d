"""Private choice: which of several classifiers is right most often, on private test records.

Scores: the score of a candidate is the number of records that it labels rightly. The index of a
large score is released and nothing else: by permute-and-flip under a pure budget, else by the
exponential mechanism.
Unit: a record added raises each score by 0 or 1, so scores move by amounts in [0, 1]. A record
replaced, or a label changed, may raise one score by 1 and lower another by 1: amounts in [-1, 1].
(A changed label is no cheaper than a replacement, since one selection is over all classes.)
Unit per person: a person with m records, of which a candidate labels r rightly, adds floor(S r / m)
to its score, where S is the even number SCALE and the sensitivity W is S. A person added moves
scores by amounts in [0, S]; a person replaced, or their labels changed, in [-S, S].
Theorem: scores that move by amounts in [l, h] cost (h - l) epsilon / W, in pure DP by
permute-and-flip, and as the width of the losses of the exponential mechanism
(`tacit.mechanisms.exponential`). So the epsilon of the selection is the budget under add-remove,
and half of it under the other units. Both are sharp: two candidates, of which a change makes one
right and the other wrong.
Conversion from persons to records: one more record of a person with m >= 1 records changes r / m by
(x - r/m) / (m + 1), where x is 1 if the record is labelled rightly, else 0. These amounts lie
between -1/(m + 1) and 1/(m + 1), so scores move within a width of 2 S/(m + 1) + 2, where 2 is for
rounding: at most S if m >= 2. If m = 1, r is 0 or 1 and S/2 is whole, so nothing is rounded, and
the width is S. So one record costs no more than its person.
Source: McSherry and Talwar 2007 (exponential mechanism); McKenna and Sheldon 2020
(permute-and-flip); tacit (persons).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_indices
from tacit.data.persons import Persons, persons_under
from tacit.errors import BudgetError, InputError, excerpt, quoted
from tacit.learners.common.validation import has_label_sets, plain_labels
from tacit.measure.labelled_records import Classifier, label_positions, predicts_several
from tacit.mechanisms.exponential import select
from tacit.mechanisms.noise import Integers, Seed, noise_source
from tacit.privacy.budget import Budget
from tacit.privacy.events import Exponential, PureDP
from tacit.privacy.guarantee import THIS_RUN, Guarantee, guarantee_under
from tacit.privacy.ledger import Ledger, check_ledger, scope_of
from tacit.privacy.unit import Unit, checked_unit

SCALE = 2**20
"""Sensitivity of scores under a unit per person; a share is rounded down by less than a millionth
of it."""

ALL_COUNT = (
    "This guarantee is about the test records. The fits of all candidates count, those that lose"
    " too: where they were trained on these records, the ledger of these records must hold every"
    " one of them."
)

PERMUTE_AND_FLIP = "permute-and-flip"
EXPONENTIAL = "exponential"


@dataclass(frozen=True)
class Choice:
    """What a choice releases, and its cost.

    Parameters
    ----------
    index : int
        Position of the candidate, from 0.
    guarantee_ : Guarantee
        What the choice costs the test records.
    selection : {"permute-and-flip", "exponential"}
    noise : str
        The source of noise.
    """

    index: int
    guarantee_: Guarantee
    selection: str
    noise: str


def choose(
    releases: Sequence[Classifier],
    X: Any,
    y: Any,
    *,
    budget: Budget | str,
    persons: Any = None,
    unit: Unit | str = Unit.ADD_REMOVE,
    ledger: Ledger | None = None,
    noise: str = "secure",
    random_state: Seed = None,
) -> int:
    """Choose the classifier that is right most often on private test records, at a price.

    Parameters
    ----------
    releases : sequence of Release, or of fitted learners
        Two or more, of one label a row and the same classes.
    X : array-like of shape (n, d), or list of them
        Test records, which none was trained on. Where encoders differ, a list with the rows of the
        same records for each of `releases`.
    y : array-like of shape (n,)
        Their labels.
    budget : Budget or str
        Of the test records: pure ("epsilon=0.4", permute-and-flip), or rho, mu or epsilon with
        delta (exponential mechanism).
    persons : array-like of shape (n,), optional
        Whose each record is; needed under a unit per person. Each person then counts 1 in all.
    unit : Unit or str, default="add-remove"
        The unit in which the budget is read. All but add-remove and add-remove-person cost twice
        as much for the same accuracy.
    ledger : Ledger, optional
        That of the test records, charged before noise is drawn.
    noise : {"secure", "opendp", "research"}, default="secure"
    random_state : int, optional
        Seed of research noise, whose results are not for release.

    Returns
    -------
    int
        The position of the chosen one in `releases`. Nothing else is released: how often it or
        another is right costs more (`tacit.evaluate`).

    Raises
    ------
    InputError
        If candidates, records, labels or persons are not of that form; nothing is charged then.
    BudgetError
        If the budget cannot be read, or asks for no protection.
    LedgerError
        If the ledger does not allow it.

    Notes
    -----
    Guarantee: a record moves every score by 0 or 1, so one `PureDP` or `Exponential` event of the
    unit covers the choice, however many candidates there are. Whatever was fitted on the test
    records, losers included, counts on its own: charge those fits to the same ledger.
    With k candidates, either mechanism loses at most log(k) / epsilon right answers on average,
    where epsilon is that of the selection: the budget under add-remove, if it is pure.
    Source: `tacit.measure.choosing`.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat(["cat", "dog"], 500)
    >>> right = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, y)
    >>> wrong = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(-X, y)
    >>> tacit.choose([wrong, right], X, y, budget="epsilon=0.4")
    1
    """
    choice = choice_among(
        releases,
        X,
        y,
        budget=budget,
        persons=persons,
        unit=unit,
        ledger=ledger,
        noise=noise,
        random_state=random_state,
    )
    return choice.index


def choice_among(
    releases: Sequence[Classifier],
    X: Any,
    y: Any,
    *,
    budget: Budget | str,
    persons: Any = None,
    unit: Unit | str = Unit.ADD_REMOVE,
    ledger: Ledger | None = None,
    noise: str = "secure",
    random_state: Seed = None,
    what: str = "choice among classifiers",
) -> Choice:
    """Choose as `choose` does, and state the guarantee; `what` is the use that the ledger notes."""
    candidates = _checked_candidates(releases)
    budget = Budget.parse(budget)
    unit = checked_unit(unit)
    epsilon, selection = selection_of(budget, unit)
    check_ledger(ledger)
    source = noise_source(noise, random_state)

    right = _right_answers(candidates, _rows_of_each(X, len(candidates)), y)
    members = persons_under(unit, persons, right.shape[1], offered=tuple(Unit), stacklevel=3)
    scores = scores_of(right, members)

    guarantee = guarantee_of(epsilon, selection, unit, scope_of(ledger), budget.delta)
    if ledger is not None:
        ledger.charge(guarantee, what=what)

    index = select(
        scores,
        sensitivity=1 if members is None else SCALE,
        epsilon=epsilon,
        noise=source,
        selection=selection,
    )
    return Choice(int(index), guarantee, selection, noise)


def selection_of(budget: Budget, unit: Unit) -> tuple[float, str]:
    """Return the epsilon of the selection that spends a budget, and its mechanism."""
    if budget.infinite:
        raise BudgetError(
            f"budget {budget} asks for no protection; compare figures of tacit evaluate instead"
        )

    # all units but these two move one score up and another down
    of_selection = Unit.REPLACE
    if unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
        of_selection = Unit.ADD_REMOVE
    selection = PERMUTE_AND_FLIP if budget.kind == "pure" else EXPONENTIAL
    return budget.exponential(of_selection), selection


def guarantee_of(
    epsilon: float, selection: str, unit: Unit, scope: str = THIS_RUN, delta: float | None = None
) -> Guarantee:
    """Return the guarantee of one selection."""
    event = Exponential(epsilon) if selection == EXPONENTIAL else PureDP(epsilon)
    guarantee = guarantee_under(event, unit)
    return Guarantee(guarantee.unit, guarantee.event, scope=scope, delta=delta)


def scores_of(right: NDArray[np.bool_], members: Persons | None) -> Integers:
    """Return the score of each candidate, (k,), from its right answers, (k, n)."""
    if members is None:
        return np.asarray(right.sum(axis=1), dtype=np.int64)

    scores = []
    for answers in right:
        of_person = np.bincount(members.codes, weights=answers, minlength=len(members.sizes))
        shares = SCALE * of_person.astype(np.int64) // members.sizes
        scores.append(int(shares.sum()))
    return np.array(scores, dtype=np.int64)


def _checked_candidates(releases: Any) -> list[Any]:
    """Return the candidates; an error if they are fewer than two, or differ in their classes."""
    candidates = list(releases)
    if len(candidates) < 2:
        raise InputError(f"{len(candidates)} release leaves nothing to choose; pass two or more")
    for place, candidate in enumerate(candidates):
        if predicts_several(candidate):
            raise InputError(
                f"release {place} predicts several labels a row; choose among releases of one label"
            )

    first = candidates[0].classes_.tolist()
    for place, candidate in enumerate(candidates[1:], start=1):
        others = candidate.classes_.tolist()
        differing = [label for label in first if label not in others]
        differing += [label for label in others if label not in first]
        if differing:
            raise InputError(
                f"releases 0 and {place} differ in the classes"
                f" {excerpt(', '.join(map(quoted, differing)))}; choose among releases of the same"
                " classes"
            )
    return candidates


def _rows_of_each(X: Any, number: int) -> list[Any]:
    """Return the rows for each candidate: the same for all, or one of a list of tables."""
    if not isinstance(X, list | tuple):
        return [X] * number
    is_table = [np.ndim(part) == 2 for part in X]
    if not all(is_table):
        # one table, as a list of rows
        return [X] * number
    if len(X) != number:
        raise InputError(
            f"X lists rows of {len(X)} encoders for {number} releases; pass one array for all, or"
            " one for each"
        )
    return list(X)


def _right_answers(candidates: list[Any], rows: list[Any], y: Any) -> NDArray[np.bool_]:
    """Return which records each candidate labels rightly, of shape (k, n)."""
    if has_label_sets(y):
        raise InputError("y has several labels a record; choose by records of one label each")
    if not len(np.asarray(plain_labels(y))):
        raise InputError("there are no test records; pass one at least")

    right = []
    for place, (candidate, table) in enumerate(zip(candidates, rows, strict=True)):
        classes = np.asarray(candidate.classes_)
        truth = label_positions(y, classes)
        predicted = class_indices(np.asarray(candidate.predict(table)), classes)
        if len(predicted) != len(truth):
            raise InputError(
                f"X has {len(predicted)} rows for release {place} and y has {len(truth)} labels;"
                " pass the same records to all"
            )
        right.append(predicted == truth)
    return np.array(right)
