"""The membership game of a black-box audit: canaries, fair coins, and data sets of public rows.

A canary is in one of two states, by an independent fair coin for each refit: the two data sets
differ by exactly what the unit hides.

- add-remove: a record is in the data, or it is not.
- replace: a record is in the data, or its twin, another record with another label.
- change-label: a record has one label, or another one.
- per person: the same with all RECORDS_OF_PERSON records of a person.

Records of canaries have labels of other classes than their own, since a record that contradicts the
others moves a model most; a promise holds for such records too. All other rows of the data are the
same in every refit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.privacy.unit import Unit

RECORDS_OF_PERSON = 3

# canaries of a class: more tell on each other, fewer give fewer guesses in a refit
CANARIES_OF_CLASS = 4
MOST_CANARIES = 400

# rows with which RMIA compares canaries; they are in no refit
MOST_REFERENCES = 200

# smallest numbers of rows that a game needs
FEWEST_ROWS = 40


@dataclass(frozen=True, eq=False)
class State:
    """The records of all canaries in one state: rows (m, k, d) and labels (m, k) or (m, k, K).

    Canaries that are absent in this state have k = 0.
    """

    rows: NDArray[Any]
    labels: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Game:
    """Data from which refits of an audit are made.

    Attributes
    ----------
    unit : Unit
    ins, outs : State
        The records of each canary where its coin is 1, and where it is 0.
    rows, labels : ndarray
        Further records of every refit, of shape (n, d) and (n,); (n, K) with sets of labels.
    reference_rows, reference_labels : ndarray
        Records that are in no refit.
    public : ndarray of shape (p, d)
        What the learner takes as its public rows; they are in no refit either.
    """

    unit: Unit
    ins: State
    outs: State
    rows: NDArray[Any]
    labels: NDArray[Any]
    reference_rows: NDArray[Any]
    reference_labels: NDArray[Any]
    public: NDArray[Any]

    @property
    def n_canaries(self) -> int:
        """Number of canaries."""
        return len(self.ins.rows)

    def data(
        self, coins: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64] | None]:
        """Return rows, labels and persons of the data set that these coins give.

        Persons are None under a unit per record. Canaries come first, at positions that do not
        depend on the coins where these positions are public.
        """
        rows = [self.rows]
        labels = [self.labels]
        persons = [np.arange(len(self.rows))]
        for canary, coin in enumerate(coins):
            state = self.ins if coin else self.outs
            n_records = state.rows.shape[1]
            rows.append(state.rows[canary])
            labels.append(state.labels[canary])
            persons.append(np.full(n_records, len(self.rows) + canary))

        all_persons = np.concatenate(persons) if self.unit.per_person else None
        return np.concatenate(rows), np.concatenate(labels), all_persons


def game_of(
    rows: NDArray[Any],
    labels: NDArray[Any],
    unit: Unit,
    *,
    n_classes: int,
    needs_public: bool,
    records: int,
    rng: np.random.Generator,
) -> Game:
    """Deal public rows of shape (n, d), with class indices (n,) or sets of labels (n, K), to the
    parts of a game.

    `records` is the most rows of a refit beside the canaries.
    """
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"public has {len(rows)} rows, and an audit needs {FEWEST_ROWS} or more; pass more"
        )
    order = rng.permutation(len(rows))

    # shares of the rows: references, public rows of the learner, canaries, and the rest
    n_references = min(MOST_REFERENCES, len(rows) // 5)
    n_public = min(records, len(rows) // 4) if needs_public else 0
    records_of_canary = RECORDS_OF_PERSON if unit.per_person else 1
    has_twins = unit in (Unit.REPLACE, Unit.REPLACE_PERSON)
    rows_of_canary = records_of_canary * (2 if has_twins else 1)
    n_canaries = min(CANARIES_OF_CLASS * n_classes, MOST_CANARIES, len(rows) // 4 // rows_of_canary)
    if n_canaries == 0:
        raise InputError(
            f"public has {len(rows)} rows, too few for canaries under unit={unit}; pass more"
        )

    sizes = (n_references, n_public, n_canaries * rows_of_canary, records)
    ends = np.cumsum(sizes)
    references, public, canaries, rest = np.split(order[: ends[-1]], ends[:-1])

    ins, outs = _states(rows, labels, unit, canaries.reshape(n_canaries, -1), n_classes, rng)
    return Game(
        unit=unit,
        ins=ins,
        outs=outs,
        rows=rows[rest],
        labels=labels[rest],
        reference_rows=rows[references],
        reference_labels=labels[references],
        public=rows[public],
    )


def _states(
    rows: NDArray[Any],
    labels: NDArray[Any],
    unit: Unit,
    positions: NDArray[np.int64],
    n_classes: int,
    rng: np.random.Generator,
) -> tuple[State, State]:
    """Return the two states of canaries whose rows are at `positions` (m, k)."""
    n_canaries = len(positions)
    first = _other_labels(labels[positions[:, 0]], n_classes, rng)
    second = _other_labels(first, n_classes, rng)

    def state(positions: NDArray[np.int64], label: NDArray[Any]) -> State:
        """All records of a canary have one label."""
        return State(rows[positions], np.repeat(label[:, None], positions.shape[1], axis=1))

    if unit.rows_public:
        return state(positions, first), state(positions, second)
    if unit in (Unit.REPLACE, Unit.REPLACE_PERSON):
        own, twins = np.split(positions, 2, axis=1)
        return state(own, first), state(twins, second)
    return state(positions, first), state(np.zeros((n_canaries, 0), dtype=np.int64), first)


def _other_labels(labels: NDArray[Any], n_classes: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return other labels: another class (m,), or the complement of a set of labels (m, K).

    Classes take turns, so that few canaries are in one class.
    """
    if labels.ndim == 2:
        return ~labels.astype(bool)
    turns = rng.permutation(len(labels)) % n_classes
    same = turns == labels
    shifts = rng.integers(1, n_classes, size=len(labels)) if n_classes > 1 else 0
    return np.where(same, (turns + shifts) % n_classes, turns)


def draw_coins(n_canaries: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the fair coin of each canary in one refit."""
    return rng.integers(0, 2, size=n_canaries).astype(bool)
