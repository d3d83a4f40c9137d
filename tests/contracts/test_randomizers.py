"""What every randomizer states about its privacy, held against the matrix that it samples from."""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom

import tacit
from tacit.learners.label_dp import label_private
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.randomizers import RR, RRTopK, RRWithPrior
from tacit.learners.label_dp.regression import RROnBins, UnbiasedResponse
from tacit.learners.label_dp.vectors import OptimisedUnary, SymmetricUnary
from tacit.mechanisms.randomized_response import WORDS
from tacit.privacy import accounting, attack_rates

DELTAS = (0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
PRIORS = {
    "uniform": np.full(6, 1 / 6),
    "peaked": np.array([0.9, 0.06, 0.01, 0.01, 0.01, 0.01]),
    "two classes": np.array([0.5, 0.5, 0, 0, 0, 0]),
    "zero in places": np.array([0.4, 0, 0.3, 0, 0.2, 0.1]),
    "certain": np.eye(6)[2],
    "several": np.array([[0.9, 0.06, 0.01, 0.01, 0.01, 0.01], [0.5, 0.5, 0, 0, 0, 0], [1 / 6] * 6]),
}


def of_bits(unary):
    """Matrix of a unary randomizer, over all vectors of bits."""
    one, zero = (count / WORDS for count in unary.words)
    labels = np.eye(unary.n_classes, dtype=bool)
    vectors = np.array(list(itertools.product([False, True], repeat=unary.n_classes)))
    chances = np.where(labels[:, None], one, zero)
    return np.where(vectors[None], chances, 1 - chances).prod(axis=2)


def cases():
    for epsilon in (0.5, 2.0):
        yield f"rr {epsilon}", RR(epsilon, 6)
        yield f"rr of two {epsilon}", RR(epsilon, 2)
        for name, prior in PRIORS.items():
            yield f"rr-with-prior, {name} {epsilon}", RRWithPrior(epsilon, prior)
            yield f"blocks, {name} {epsilon}", Blocks(epsilon, prior)
            for k in (2, 4):
                yield f"rr-top-{k}, {name} {epsilon}", RRTopK(epsilon, prior, k)
        yield f"symmetric-unary {epsilon}", SymmetricUnary(epsilon, 3)
        yield f"optimised-unary {epsilon}", OptimisedUnary(epsilon, 3)
        yield f"rr-on-bins {epsilon}", RROnBins(epsilon, np.arange(6))
        yield f"unbiased {epsilon}", UnbiasedResponse(epsilon, np.arange(3))


CASES = dict(cases())


def matrices(randomizer):
    """Each prior's matrix, (true label, output)."""
    if isinstance(randomizer, SymmetricUnary):
        return [of_bits(randomizer)]
    matrix = randomizer.matrix()
    return [matrix] if matrix.ndim == 2 else list(matrix)


def pairs(randomizer):
    """The rows of two labels under one prior, each pair of different rows once."""
    found = {}
    for matrix in matrices(randomizer):
        for one, other in itertools.permutations(matrix, 2):
            used = (one > 0) | (other > 0)
            if not np.array_equal(one, other):
                found[
                    tuple(np.sort(np.round(np.log(one[used] / other[used]), 9))),
                    round(one.max(), 9),
                ] = (
                    one[used],
                    other[used],
                )
    return list(found.values())


def delta(one, other, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def true_epsilon(one, other, count, at):
    """A lower bound of epsilon of so many answers, by a grid that is rounded down."""
    losses = pld.from_two_probability_mass_functions(
        dict(enumerate(np.log(other))),
        dict(enumerate(np.log(one))),
        value_discretization_interval=1e-3,
        pessimistic_estimate=False,
    )
    return losses.self_compose(count).get_epsilon_for_delta(at)


@pytest.mark.parametrize("name", CASES)
def test_the_stated_profile_covers_the_matrix(name):
    randomizer = CASES[name]
    event = randomizer.event
    for one, other in pairs(randomizer):
        for epsilon in np.linspace(0, 0.999 * event.pure, 10):
            at = delta(one, other, epsilon)
            if at > 1e-12:
                assert accounting.epsilon(event, at) >= epsilon - 1e-9


@pytest.mark.parametrize("name", CASES)
def test_the_stated_attack_rate_covers_the_matrix(name):
    randomizer = CASES[name]
    for one, other in pairs(randomizer):
        order = np.argsort(-one / other)
        rates = np.cumsum(other[order])[:-1], np.cumsum(one[order])[:-1]
        for false_positives, true_positives in zip(*rates, strict=True):
            if 0 < false_positives < 1:
                assert (
                    attack_rates.attack_rate(randomizer.event, float(false_positives))
                    >= true_positives - 1e-9
                )


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("name", CASES)
def test_many_answers_cost_no_more_than_stated(name, count):
    randomizer = CASES[name]
    stated = [accounting.epsilon(count * randomizer.event, at) for at in DELTAS]
    for one, other in pairs(randomizer):
        for at, epsilon in zip(DELTAS, stated, strict=True):
            assert true_epsilon(one, other, count, at) <= epsilon + 1e-3


def test_answers_of_two_classes_among_a_hundred_are_not_priced_as_answers_of_a_hundred():
    """50 of them cost 20.30 at 1e-6, by a binomial sum; as answers of a hundred classes 3.45 would
    be stated.
    """
    prior = np.r_[0.5, 0.5, np.zeros(98)]
    chances = [binom.pmf(np.arange(51), 50, p) for p in RRWithPrior(0.5, prior).matrix()[:2, 0]]
    assert 1e-6 < delta(*chances, 20.30) < 1.01e-6
    event = 50 * RRWithPrior(0.5, prior).event
    assert accounting.epsilon(event, 1e-6) == pytest.approx(20.37, abs=0.01)
    assert accounting.epsilon(50 * RR(0.5, 100).event, 1e-6) == pytest.approx(3.45, abs=0.01)


PRIVATE = {
    "uniform": {},
    "clusters": {"prior": "clusters"},
    "stages": {"stages": 3},
    "peaked": {"prior": PRIORS["peaked"]},
    "zero in places": {"prior": PRIORS["zero in places"]},
    "peaked, then stages": {"prior": PRIORS["peaked"], "stages": 2},
    "rr": {"randomizer": "rr", "prior": PRIORS["peaked"]},
    "unary": {"randomizer": "symmetric-unary"},
    "blocks": {"randomizer": "blocks"},
    "blocks, a prior": {"randomizer": "blocks", "prior": PRIORS["peaked"]},
    "blocks, stages": {"randomizer": "blocks", "stages": 3},
}


def needs_order(given):
    """Whether the columns of a prior need a declared class list."""
    return not isinstance(given.get("prior", "uniform"), str)


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        (name, declared)
        for name in PRIVATE
        for declared in (True, False)
        if declared or not needs_order(PRIVATE[name])
    ],
)
def test_label_private_promises_what_its_answers_cost(name, declared, monkeypatch):
    """Each label is answered for once, by one of the randomizers; the promise covers every one of
    them.
    """
    used, own = [], label_private.of_classes

    def recorded(*given, **more):
        used.append(own(*given, **more))
        return used[-1]

    rng = np.random.default_rng(0)
    y = np.r_[np.arange(6), rng.integers(0, 6, 394)]
    X = np.eye(6)[y] + 0.1 * rng.normal(size=(400, 6))
    given = {"randomizer": "rr-with-prior"} | PRIVATE[name] | ({"classes": 6} if declared else {})
    model = tacit.LabelPrivate(budget="epsilon=2", noise="research", random_state=0, **given)
    promise = model.promise()
    monkeypatch.setattr(label_private, "of_classes", recorded)
    with nullcontext() if declared else pytest.warns(tacit.errors.PrivacyLeakWarning):
        model.fit(X, y)
    answer = promise.events[-1]  # after that of the histograms, if there are any
    assert used
    for randomizer in used:
        for at, count in itertools.product(DELTAS, (1, 50)):
            needed = accounting.epsilon(count * randomizer.event, at)
            assert accounting.epsilon(count * answer, at) >= needed * (1 - 1e-9)
