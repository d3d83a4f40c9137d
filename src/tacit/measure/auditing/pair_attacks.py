"""Attacks on many runs with a canary and without it: by likelihood ratios of transcripts, by
outcomes that are categories, and by labels that a voting answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.learners.common.base import PrivateClassifier
from tacit.measure.auditing.canaries import CLASSES, Data, Pair, pairs
from tacit.measure.auditing.scores import Member, Scores, members, presence, scores_of_outcomes
from tacit.measure.auditing.subjects import Subject
from tacit.measure.auditing.transcripts import (
    LeakFoundError,
    Use,
    distance,
    log_ratio,
    transcript,
)
from tacit.mechanisms.noise import NoiseSource, research_noise_from

# Where private values depend on no noise, each pair is fitted once, and its noise drawn so many
# times for each run that is asked for.
_DRAWS_OF_A_FIT = 20

# Votings of the same teachers for each run that is asked for.
_VOTINGS_OF_A_FIT = 10

# Fits of each pair, over which its distance is averaged.
PROBES = 3

# Share of runs by which thresholds, and frequencies of outcomes, are chosen.
_PILOT = 0.25
_PILOT_OF_OUTCOMES = 0.5

# Released rows are categories if at most this share of them are different.
_MOST_CATEGORIES = 0.25


class Probe(NamedTuple):
    """A pair of data sets, and the transcripts of a fit to each with the same noisy outcomes.

    `distance` is how far the canary moves the private values, in units of noise; `adapts` says
    whether private values depend on earlier outcomes.
    """

    pair: Pair
    without: list[Use]
    with_canary: list[Use]
    distance: float
    adapts: bool


def probes(
    subject: Subject, source: NoiseSource, *, fits: int = PROBES, largest: int | None = None
) -> list[Probe]:
    """Every pair, each fitted so often; or those of at most `largest` records.

    Raises
    ------
    LeakFoundError
        If with the same noisy outcomes something that is released differs, so that no noise hides
        it.
    """
    found = []
    candidates = list(pairs(subject.unit))
    if largest is not None:
        candidates = [pair for pair in candidates if len(pair.without.labels) <= largest]
    for pair in progress(candidates, "canaries", len(candidates)):
        distances = []
        transcripts = []
        for _ in range(fits):
            fitted: list[PrivateClassifier] = []
            uses = transcript(_fit(subject, pair.without, fitted), source)
            replayed = transcript(_fit(subject, pair.with_canary, fitted), source, uses)
            if len(replayed) != len(uses):
                raise LeakFoundError("how often noise is drawn")
            # a choice may hide part of what it draws, and so may a voting
            if only_numbers(uses) and not subject.template.has_votes:
                check_equal(*fitted)
            distances.append(distance(uses, replayed))
            transcripts.append(uses + replayed)
        adapts = not all(same_values(transcripts[0], other) for other in transcripts[1:])
        found.append(Probe(pair, uses, replayed, float(np.mean(distances)), adapts))
    return found


def _fit(subject: Subject, data: Data, fitted: list[PrivateClassifier]) -> Callable[[], None]:
    def fit() -> None:
        fitted.append(subject.fit(data))

    return fit


def same_values(one: Sequence[Use], other: Sequence[Use]) -> bool:
    """Whether two transcripts have the same private values."""
    if len(one) != len(other):
        return False
    return all(
        np.array_equal(use.values, again.values) for use, again in zip(one, other, strict=True)
    )


def only_numbers(uses: Sequence[Use]) -> bool:
    """Whether all noise is added to numbers, and their noisy values are the transcript."""
    return all(use.kind != "choice" for use in uses)


def check_equal(one: PrivateClassifier, other: PrivateClassifier) -> None:
    """Refuse a difference between the arrays that two fits release."""
    if one.released_ is None or other.released_ is None:
        return
    for name, array in one.released_.arrays.items():
        if not np.array_equal(array, other.released_.arrays[name], equal_nan=True):
            raise LeakFoundError(name)


def furthest(found: Sequence[Probe]) -> Probe:
    """The pair that the noise hides least; of equal ones, that with fewest records."""
    return max(found, key=lambda probe: (round(probe.distance, 3), -len(probe.pair.without.labels)))


def scores_of_transcripts(subject: Subject, probe: Probe, runs: int, source: NoiseSource) -> Scores:
    """Log likelihood ratios of so many runs on each data set."""
    if not probe.adapts:
        return _scores_of_draws(probe, runs * _DRAWS_OF_A_FIT, source)

    scores = np.empty((2, runs))
    for run in progress(range(runs), "runs", runs):
        for truth in (0, 1):
            scores[truth, run] = _log_ratio_of_run(subject, probe, truth, source)
    return Scores(scores[0], scores[1], int(_PILOT * runs))


def _log_ratio_of_run(subject: Subject, probe: Probe, truth: int, source: NoiseSource) -> float:
    """The log likelihood ratio of a run without the canary (0) or with it (1).

    The private values of the other data set are those of a replay.
    """
    data = probe.pair.without, probe.pair.with_canary
    length = len(probe.without)
    uses = transcript(lambda: subject.fit(data[truth]), source, (), length)
    replayed = transcript(lambda: subject.fit(data[1 - truth]), source, uses, length)
    if len(uses) != len(replayed):
        raise LeakFoundError("how often noise is drawn")
    if truth == 0:
        return log_ratio(uses, replayed)
    return log_ratio(replayed, uses)


def _of_outcomes(uses: Sequence[Use], outcomes: Sequence[Any]) -> list[Use]:
    """The same uses with other outcomes."""
    return [replace(use, outcome=outcome) for use, outcome in zip(uses, outcomes, strict=True)]


def _scores_of_draws(probe: Probe, runs: int, source: NoiseSource) -> Scores:
    """As `scores_of_transcripts`, where the private values of a run depend on no earlier noise."""
    draws = {"gaussian": source.gaussian, "laplace": source.laplace}
    scores = np.empty((2, runs))
    for truth, uses in enumerate((probe.without, probe.with_canary)):
        for run in progress(range(runs), "runs", runs):
            outcomes = [draws[use.kind](use.values, use.scale) for use in uses]
            scores[truth, run] = log_ratio(
                _of_outcomes(probe.without, outcomes), _of_outcomes(probe.with_canary, outcomes)
            )
    return Scores(scores[0], scores[1], int(_PILOT * runs))


def scores_of_releases(subject: Subject, pair: Pair, runs: int, source: NoiseSource) -> Scores:
    """Scores of what so many runs on each data set release, where this is one or several of few
    rows for each class.
    """

    def released(data: Data) -> set[Member]:
        with research_noise_from(source):
            fitted = subject.fit(data)
        if fitted.released_ is None:
            raise InputError(f"{subject.name} releases no arrays; audit it where it does")
        arrays = fitted.released_.arrays
        return {member for name in arrays for member in members(name, arrays[name])}

    without = []
    with_canary = []
    for _ in progress(range(runs), "runs", runs):
        without.append(released(pair.without))
        with_canary.append(released(pair.with_canary))

    every = sorted(set().union(*without, *with_canary))
    if len(every) > _MOST_CATEGORIES * sum(map(len, without + with_canary)):
        raise InputError(
            f"{subject.name} draws noise by choices and releases numbers, for which no score is"
            " known; add one to tacit/measure/auditing/pair_attacks.py"
        )
    pilot = int(_PILOT_OF_OUTCOMES * runs)
    return scores_of_outcomes(presence(every, without), presence(every, with_canary), pilot)


def widest(found: Sequence[Probe]) -> Pair:
    """The pair that moves the scores of choices furthest apart; of equal ones the last."""

    def spread(probe: Probe) -> float:
        total = 0.0
        for one, other in zip(probe.without, probe.with_canary, strict=True):
            moved = other.values - one.values
            total += float(moved.max() - moved.min()) / one.scale
        return round(total, 3)

    return max(reversed(found), key=spread).pair


def scores_of_votes(
    subject: Subject, found: Sequence[Probe], runs: int, source: NoiseSource
) -> tuple[Pair, Scores]:
    """The pair whose votes differ most, and scores of the labels that votings answer, ten for each
    run.

    Of pairs with equally many different votes the one whose two leading classes are nearest is
    taken, since noise decides there.
    """
    voters = [(probe.pair, *_voters(subject, probe.pair, source)) for probe in found]

    def moved(candidate: tuple[Pair, Any, Any]) -> tuple[int, float]:
        _, without, with_canary = candidate
        different = int((without.votes_.votes != with_canary.votes_.votes).sum())
        return different, -_lead(with_canary.votes_.votes)

    pair, without, with_canary = max(voters, key=moved)
    runs *= _VOTINGS_OF_A_FIT
    one, other = without.votes_.votes, with_canary.votes_.votes

    # Score: the number of queries that are answered as the canary's teacher votes with the canary,
    # less the number of those answered as it votes without the canary.
    teacher = int(np.argmax((one != other).sum(axis=0)))
    scores = np.zeros((2, runs))
    for run in progress(range(runs), "votings", runs):
        for side, learner in enumerate((without, with_canary)):
            labels = _answers(learner, source)
            for votes, sign in ((one[:, teacher], -1), (other[:, teacher], 1)):
                scores[side, run] += sign * int((labels == votes).sum())
    return pair, Scores(scores[0], scores[1], int(_PILOT * runs))


def _lead(votes: NDArray[np.int64]) -> float:
    """The mean over queries of how many more votes the leading class has than the next.

    `votes` are classes, of shape (queries, teachers).
    """
    n_votes = (votes[:, :, None] == np.arange(CLASSES)).sum(axis=1)
    ordered = np.sort(n_votes, axis=1)
    return float((ordered[:, -1] - ordered[:, -2]).mean())


def _voters(subject: Subject, pair: Pair, source: NoiseSource) -> tuple[Any, Any]:
    with research_noise_from(source):
        return subject.fit(pair.without), subject.fit(pair.with_canary)


def _answers(learner: Any, source: NoiseSource) -> NDArray[np.int64]:
    """The labels of one more voting of the same teachers."""
    from tacit.learners.pate.voting import Voting

    voting = Voting(learner.answers_.scheme, learner.classes_)
    voting.ask(learner.votes_.votes, source)
    return voting.labels
