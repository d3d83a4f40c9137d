"""Attacks on one run with many canaries, each in the data by an independent fair coin.

`guesses_of_sums` puts canaries on the axes of every class, of which noisy sums of unit rows have a
coordinate each. `guesses_of_labels` takes every label of a randomizer for a canary, and
`guesses_of_selections` a record of every class, whose public twin is selected or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.measure.auditing.bounds import Guesses, Rates
from tacit.measure.auditing.canaries import WIDTH, Data
from tacit.measure.auditing.scores import counts, log_ratios, members, presence
from tacit.measure.auditing.subjects import Subject
from tacit.measure.auditing.transcripts import transcript
from tacit.mechanisms.noise import NoiseSource, research_noise_from
from tacit.models.rows import Floats
from tacit.privacy.unit import Unit

# Classes and axes of the canaries of sums.
SUM_CLASSES = 100
SUM_AXES = 1000

# The share of canaries about which guesses are made: the clearest scores, as many as are fixed
# beforehand.
_GUESSED = 0.01

LABELS = 20_000
SELECTIONS = 20_000
_RECORDS_OF_PERSON = 3

# Most different rows that classes release, else these are no selections of few public rows.
_MOST_ROWS = 100


class OneRun(NamedTuple):
    """Guesses about the clearest canaries, and counts of all canaries by the sign of their
    scores.
    """

    guesses: Guesses
    all_counts: Rates


def guesses_of_sums(
    subject: Subject, source: NoiseSource, rng: np.random.Generator
) -> OneRun | None:
    """Guesses by the first noisy sums of a fit; None where these are not sums of unit rows by
    class.
    """
    # public rows centre the records, which then have no axis of their own
    if not subject.template.takes_sparse or subject.template.public is not None:
        return None
    wide = subject.with_parameters(classes=SUM_CLASSES)
    coins = rng.random((SUM_CLASSES, SUM_AXES)) < 0.5
    if subject.unit.rows_public:
        # two classes share the canaries of an axis, which are in one of them
        coins = coins[::2]
    data, expected = _canaries_of_sums(subject.unit, coins)

    uses = transcript(lambda: wide.fit(data), source, (), 1)
    if not uses or uses[0].kind != "gaussian" or uses[0].values.shape != expected.shape:
        return None
    factor = float(np.abs(uses[0].values).max())
    if not np.allclose(uses[0].values, factor * expected, rtol=0, atol=1e-6 * factor):
        return None

    noisy = uses[0].outcome / factor
    if subject.unit.rows_public:
        scores = noisy[::2] - noisy[1::2]
    elif subject.unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
        scores = noisy - 0.5
    else:
        scores = noisy
    return _guessed(scores.ravel(), coins.ravel())


def _canaries_of_sums(unit: Unit, coins: NDArray[np.bool_]) -> tuple[Data, Floats]:
    """The data of these coins, of shape (classes, axes), and their class sums but for a factor."""
    from scipy.sparse import csr_array

    if unit.rows_public:
        classes, axes = np.nonzero(np.ones_like(coins))
        labels = 2 * classes + ~coins[classes, axes]
        signs = np.ones(len(labels))
    elif unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
        labels, axes = np.nonzero(coins)
        signs = np.ones(len(labels))
    else:
        labels, axes = np.nonzero(np.ones_like(coins))
        signs = np.where(coins[labels, axes], 1.0, -1.0)

    persons = np.arange(len(labels))
    if unit.per_person:
        repeats = _RECORDS_OF_PERSON
        labels = np.repeat(labels, repeats)
        axes = np.repeat(axes, repeats)
        signs = np.repeat(signs, repeats)
        persons = np.repeat(persons, repeats)
    positions = np.arange(len(labels))
    rows = csr_array((signs, (positions, axes)), shape=(len(labels), SUM_AXES))
    expected = np.zeros((SUM_CLASSES, SUM_AXES))
    expected[labels, axes] = signs
    return Data(rows, labels, persons), expected


def guesses_of_labels(subject: Subject, source: NoiseSource, rng: np.random.Generator) -> OneRun:
    """Guesses about labels by the noisy labels of a fit, which are released."""
    repeats = _RECORDS_OF_PERSON if subject.unit.per_person else 1
    n_canaries = LABELS // repeats
    coins = rng.random(n_canaries) < 0.5
    labels = np.repeat(coins.astype(np.int64), repeats)
    persons = np.repeat(np.arange(n_canaries), repeats)
    rows = rng.normal(size=(len(labels), WIDTH))
    of_two_classes = subject.with_parameters(classes=2)
    with research_noise_from(source):
        learner = of_two_classes.fit(Data(rows, labels, persons))
    outputs = np.asarray(vars(learner)["noisy_labels_"])
    categories = _categories(outputs).reshape(n_canaries, repeats)

    return _guessed_by_categories(categories, coins)


def guesses_of_selections(
    subject: Subject, source: NoiseSource, rng: np.random.Generator
) -> OneRun | None:
    """Guesses about a record in each of many classes by the public rows that its class releases.

    None under a unit per person, whose noise grows with the number of classes, and under one that
    changes labels, since the canary of a class must not move another class.
    """
    if subject.unit not in (Unit.ADD_REMOVE, Unit.REPLACE):
        return None
    coins = rng.random(SELECTIONS) < 0.5
    if subject.unit is Unit.ADD_REMOVE:
        labels = np.flatnonzero(coins)
        signs = np.ones(len(labels))
    else:
        labels = np.arange(SELECTIONS)
        signs = np.where(coins, 1.0, -1.0)

    # opposite to the first public row, so that it moves this against all others
    rows = -signs[:, None] * np.eye(WIDTH)[2]
    wide = subject.with_parameters(classes=SELECTIONS)
    with research_noise_from(source):
        learner = wide.fit(Data(rows, labels, np.arange(len(labels))))
    released: list[set[tuple[str, bytes]]] = [set() for _ in coins]
    for name, array in learner.released_.arrays.items() if learner.released_ else ():
        for _, of_class, row in members(name, array) if len(array) == SELECTIONS else ():
            released[of_class].add((name, row))

    every = sorted(set().union(*released))
    if not 0 < len(every) <= _MOST_ROWS:
        return None
    return _guessed_by_categories(presence(every, released), coins)


def _guessed_by_categories(categories: NDArray[np.int64], coins: NDArray[np.bool_]) -> OneRun:
    """Guesses about all but the first canaries, which tell how frequent each category is.

    `categories` has shape (canaries, coordinates).
    """
    known = len(coins) // 4
    scores = np.zeros(len(coins) - known)
    for column in categories.T:
        first = column[:known]
        table = log_ratios(first[~coins[:known]], first[coins[:known]])
        scores += [table.get(value, 0.0) for value in column[known:].tolist()]
    return _guessed(scores, coins[known:], share=1.0)


def _categories(outputs: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each different output, of shape (n,); signs where outputs are numbers."""
    columns: NDArray[Any] = outputs.reshape(len(outputs), -1)
    if columns.dtype.kind == "f":
        # which of the two labels of canaries a noisy vector is nearer to
        columns = columns[:, :1] > columns[:, 1:2]
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


def _guessed(scores: Floats, coins: NDArray[np.bool_], share: float = _GUESSED) -> OneRun:
    """Guess the coins of this share of canaries, those with the clearest scores, by their signs."""
    made = max(int(share * len(scores)), 1)
    clearest = np.argsort(-np.abs(scores), kind="stable")[:made]
    right = (scores[clearest] > 0) == coins[clearest]
    guesses = Guesses(int(right.sum()), made, len(scores))
    return OneRun(guesses, counts(scores[~coins], scores[coins], 0.0))
