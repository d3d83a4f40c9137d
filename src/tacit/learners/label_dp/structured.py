"""A linear head from randomized labels, class names and the structure of the public rows.

Features and names are public, so everything here is post-processing of the outputs. The head is a
softmax, fitted by maximum a posteriori about a head that the names give: a scale times unit
directions of the classes. These are the directions of the names, or what expectation maximisation
over the rows and their outputs makes of them. Without names that head is zero. Beside the heads of
several ridges there are those by votes of neighbours, and neighbours teach the best of both kinds
(`neighbours.py`), in a few rounds.

Whether names fit, and the scale, follow from the length of the names by the likelihood of the
outputs (`tacit.models.name_length`). The directions are chosen by the likelihood of held-out
outputs, which the heads that are compared have not seen. The result is the mean of the heads of all
these forms, and of half the scale and all of it: each fitted to all outputs, in proportion to a
power of the likelihood of the held-out outputs under its like that has not seen them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from tacit.learners.common.heads import Head
from tacit.learners.common.names import adapted_directions
from tacit.learners.label_dp.evidence import Evidence, fitted_head
from tacit.learners.label_dp.neighbours import SPACED, VOTERS, Neighbours, spaced
from tacit.models.name_length import SCALE_OF_LENGTH, NameLength, likeliest_length
from tacit.models.rows import Floats

# times half the squared distance from the names' head, beside a sum of losses
RIDGES = (1.0, 0.4, 0.2, 0.1, 0.04)
HELD_OUT = 0.15  # of the outputs
ROUNDS = 3  # in which neighbours teach
# divides log likelihoods that weigh heads: few outputs are held out, and a mean of heads is
# steadier
FLATTER = 6
LEAST_SHARE = 0.2  # of the largest share; heads with less are left out
# of scores: a head is judged by its best, since it is fitted for another purpose
FACTORS = (0.7, 1.0, 1.4, 2.0, 2.8)


def structured_head(rows: Floats, evidence: Evidence, names: Floats | None, seed: int) -> Head:
    """The head, with everything chosen by the likelihood of outputs.

    Parameters
    ----------
    rows : array of shape (n, d)
        Unit rows about the public centre.
    evidence : Evidence
        On the labels of these rows.
    names : array of shape (C, d), optional
        Unit directions of the classes.
    seed : int
        Public: decides which outputs are held out.

    Notes
    -----
    Time: some hundred products of rows and coefficients, so n d C operations each; and neighbours,
    whose part is bounded by `SPACED` rows. Memory beside rows and evidence: that of `SPACED` rows
    of probabilities.
    """
    held = held_out(len(rows), seed)
    training_evidence = evidence.without(held)
    score = HeldOut(rows[held], evidence.among(held))
    neighbours = None
    if evidence.proper and len(rows) > 1:
        neighbours = Neighbours.among(rows)

    compared = Fits(rows, training_evidence)
    forms: list[Judged] = []
    for about in names_heads(rows, training_evidence, score, names):
        by_ridge = judge_ridges(compared, score, about)
        forms += by_ridge
        if neighbours is not None:
            forms += judge_neighbours(compared, score, about, neighbours, by_ridge)

    likelihoods = np.array([judged.likelihood for judged in forms])
    shares = softmax(likelihoods * len(held) / FLATTER)
    members = np.flatnonzero(shares >= LEAST_SHARE * shares.max())
    final = Fits(rows, evidence, earlier=compared)
    heads = [final.head(forms[i].form).scaled(forms[i].factor) for i in members]
    return mean_head(heads, shares[members])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows, (n, d), and the outputs that heads have not seen."""

    rows: Floats
    evidence: Evidence

    def best(self, head: Head) -> tuple[float, float]:
        """Mean log likelihood of the outputs by the head, and the factor of its scores that makes
        it largest.
        """
        scores = head.log_probabilities(self.rows)
        each = (
            self.evidence.mean_likelihood(log_softmax(factor * scores, axis=1))
            for factor in FACTORS
        )
        return max(zip(each, FACTORS, strict=True))


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """Form of a head that is fitted about another.

    `before` is the form from whose head the first fit starts; None stands for `about`.
    """

    about: Head
    before: Form | None

    @abstractmethod
    def fit(self, fits: Fits, start: Head) -> Head:
        """Fit the head of this form."""


@dataclass(frozen=True, eq=False)
class ByRidge(Form):
    """Maximum a posteriori with a ridge."""

    ridge: float

    def fit(self, fits: Fits, start: Head) -> Head:
        return fitted_head(fits.rows, fits.evidence, self.ridge, self.about, start)


@dataclass(frozen=True, eq=False)
class ByVotes(Form):
    """By the votes of so many neighbours."""

    neighbours: Neighbours
    voters: int

    def fit(self, fits: Fits, start: Head) -> Head:
        return self.neighbours.voted(fits.evidence, self.about, self.voters, start)


@dataclass(frozen=True, eq=False)
class Taught(Form):
    """By a round in which neighbours teach the head of the form `before`."""

    before: Form
    neighbours: Neighbours

    def fit(self, fits: Fits, start: Head) -> Head:
        teacher = fits.head(self.before)
        return self.neighbours.taught(teacher, fits.evidence, self.about, start)


class Fits:
    """Heads that were fitted to the same evidence, each once.

    If heads of the same forms were fitted to less evidence before, in `earlier`, each fit starts
    from its like there.
    """

    def __init__(self, rows: Floats, evidence: Evidence, earlier: Fits | None = None) -> None:
        self.rows = rows
        self.evidence = evidence
        self._earlier = earlier
        self._heads: dict[Form, Head] = {}

    def head(self, form: Form) -> Head:
        """Return the head of a form."""
        if form not in self._heads:
            self._heads[form] = form.fit(self, self._start(form))
        return self._heads[form]

    def _start(self, form: Form) -> Head:
        if self._earlier is not None:
            return self._earlier.head(form)
        if form.before is not None:
            return self.head(form.before)
        return form.about


@dataclass(frozen=True, eq=False)
class Judged:
    """A form, the likelihood of held-out outputs under its head, and the factor of scores that
    makes it largest.
    """

    form: Form
    likelihood: float
    factor: float


def judge(fits: Fits, score: HeldOut, form: Form) -> Judged:
    """Judge a form by its head."""
    likelihood, factor = score.best(fits.head(form))
    return Judged(form, likelihood, factor)


def judge_ridges(fits: Fits, score: HeldOut, about: Head) -> list[Judged]:
    """Judge falling ridges about a head, until held-out outputs get less likely.

    Strong ridges come first: their heads are near `about`, and each is near the next.
    """
    result: list[Judged] = []
    before: Form | None = None
    for ridge in RIDGES:
        judged = judge(fits, score, ByRidge(about, before, ridge))
        if result and judged.likelihood <= result[-1].likelihood:
            break
        result.append(judged)
        before = judged.form
    return result


def judge_neighbours(
    fits: Fits,
    score: HeldOut,
    about: Head,
    neighbours: Neighbours,
    by_ridge: list[Judged],
) -> list[Judged]:
    """Judge votes of neighbours, and rounds after the best of the ridges and of the votes."""
    by_votes: list[Judged] = []
    if not fits.evidence.target.all():
        last = by_ridge[-1].form
        for voters in VOTERS:
            by_votes.append(judge(fits, score, ByVotes(about, last, neighbours, voters)))
            last = by_votes[-1].form

    rounds: list[Judged] = []
    for family in (by_ridge, by_votes):
        if family:
            judged = max(family, key=lambda judged: judged.likelihood)
            for _ in range(ROUNDS):
                judged = judge(fits, score, Taught(about, judged.form, neighbours))
                rounds.append(judged)
    return [*by_votes, *rounds]


def held_out(n: int, seed: int) -> NDArray[np.int64]:
    """Positions of the outputs that are held out, by a public seed."""
    return np.random.default_rng([seed, n]).permutation(n)[: int(HELD_OUT * n)]


def names_heads(rows: Floats, known: Evidence, score: HeldOut, names: Floats | None) -> list[Head]:
    """Heads about which others are fitted: a scale times directions, and half of it; zero without
    names, or where the outputs contradict them.

    The scale is the temperature of the names. Half of it is tried since a head that is fitted about
    another gets larger scores. Directions are those of the names, or adapted ones if held-out
    outputs are likelier then.
    """
    zeros = np.zeros(known.values.shape[1])
    none = Head(np.zeros((len(zeros), rows.shape[1])), zeros)
    if names is None:
        return [none]

    some = spaced(len(rows), SPACED)
    few, of_few = rows[some], known.among(some)
    length = length_of_names(few, of_few, names)
    scale = SCALE_OF_LENGTH * length.temperature
    if length.contradicted or scale == 0:
        return [none]

    name_head = Head(names, zeros)
    adapted = Head(adapted_directions(few, names, of_few.likelihoods()), zeros)
    best = max((name_head, adapted), key=lambda head: score.best(head.scaled(scale))[0])
    return [best.scaled(scale), best.scaled(scale / 2)]


def length_of_names(rows: Floats, evidence: Evidence, names: Floats) -> NameLength:
    """Posterior of the length of names (C, d): by the likelihood of the outputs of rows (n, d)
    under the names alone.
    """
    cosines = rows @ names.T

    def log_likelihood(length: float) -> float:
        log_shares = log_softmax(SCALE_OF_LENGTH * length * cosines, axis=1)
        return len(rows) * evidence.mean_likelihood(log_shares)

    return likeliest_length(log_likelihood)


def mean_head(heads: Sequence[Head], shares: Floats) -> Head:
    """The mean of heads, in proportion to shares."""
    pairs = list(zip(shares / shares.sum(), heads, strict=True))
    return Head(
        np.sum([share * head.coefficients for share, head in pairs], axis=0),
        np.sum([share * head.intercepts for share, head in pairs], axis=0),
    )
