"""Randomizers of numbers: the oracles, optimality by brute force, unbiasedness, and that samples
follow the table.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chisquare

from tacit.errors import InputError
from tacit.learners.label_dp.regression import RROnBins, UnbiasedResponse
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.randomized_response import WORDS
from tacit.mechanisms.response_table import ResponseTable

TEN = np.arange(11)
ORACLES = {0.5: 9.553608, 1.0: 8.408786, 2.0: 5.664979, 3.0: 3.270693, 4.0: 1.816017, 6.0: 0.471025}


@pytest.mark.parametrize("epsilon", ORACLES)
def test_bins_meet_the_oracles(epsilon):
    randomizer = RROnBins(epsilon, TEN)
    assert randomizer.expected_loss == pytest.approx(ORACLES[epsilon], abs=5e-7)
    errors = (randomizer.outputs[None] - TEN[:, None]) ** 2
    assert (randomizer.matrix() * errors).sum(axis=1).mean() == pytest.approx(
        randomizer.expected_loss, rel=1e-12
    )


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_bins_are_the_best_of_all_partitions(loss):
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, prior = np.cumsum(rng.uniform(0.1, 2, 6)), rng.dirichlet(np.ones(6))
        epsilon = float(rng.uniform(0.2, 4))
        best = min(loss_of(cuts, values, prior, math.exp(epsilon), loss) for cuts in partitions(6))
        assert RROnBins(epsilon, values, prior, loss).expected_loss == pytest.approx(best, rel=1e-9)


def partitions(size):
    """Bins of all values, in every way, neighbours or not."""
    for kinds in itertools.product(range(size), repeat=size):
        if list(dict.fromkeys(kinds)) == list(range(len(set(kinds)))):
            yield np.array(kinds)


def loss_of(bins, values, prior, growth, loss):
    total = 0.0
    for one in set(bins.tolist()):
        weight = prior * np.where(bins == one, growth, 1.0)
        if loss == "squared":
            total += weight @ (values - weight @ values / weight.sum()) ** 2
        else:
            total += min(weight @ np.abs(values - output) for output in values)
    return total / (growth + len(set(bins.tolist())) - 1)


@pytest.mark.parametrize(("epsilon", "oracle"), [(1.0, 98.10), (2.0, 19.87), (4.0, 2.736)])
def test_unbiased_tables_are_no_worse_than_the_oracles_and_unbiased(epsilon, oracle):
    randomizer = UnbiasedResponse(epsilon, TEN)
    assert randomizer.expected_loss <= oracle * (1 + 2e-4)
    assert randomizer.matrix() @ randomizer.outputs == pytest.approx(TEN, abs=1e-9)
    assert randomizer.realised_epsilon <= epsilon
    assert randomizer.event.pure == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_unbiased_tables_are_the_optimum_of_the_program_as_written(epsilon):
    """Every pair of labels and every output, without the variables that stand for least entries."""
    values, outputs = np.arange(5.0), np.arange(-6.0, 11.0)
    rows, size, many = [], 5, 17
    for output in range(many):
        for one, other in itertools.permutations(range(size), 2):
            row = np.zeros((size, many))
            row[one, output], row[other, output] = 1, -math.exp(epsilon)
            rows.append(row.ravel())
    sums, means = (np.kron(np.eye(size), row) for row in (np.ones(many), outputs))
    goal = ((outputs[None] - values[:, None]) ** 2).ravel() / size
    found = linprog(
        goal,
        rows,
        np.zeros(len(rows)),
        np.concatenate([sums, means]),
        np.concatenate([np.ones(size), values]),
        bounds=(0, 1),
        method="highs",
    )
    assert UnbiasedResponse(epsilon, values, outputs=outputs).expected_loss == pytest.approx(
        found.fun, rel=1e-6
    )


@pytest.mark.parametrize("noise", [ResearchNoise(0), SecureNoise()], ids=["research", "secure"])
@pytest.mark.parametrize(
    "randomizer", [RROnBins(2.0, TEN), UnbiasedResponse(2.0, TEN)], ids=["bins", "unbiased"]
)
def test_samples_follow_the_table(randomizer, noise):
    table = randomizer.matrix()
    for place in (0, 5, 10):
        drawn = randomizer.sample(np.full(100_000, place), noise)
        seen = np.array([np.sum(drawn == output) for output in randomizer.outputs])
        possible = table[place] > 0
        assert seen[~possible].sum() == 0
        assert (
            chisquare(seen[possible], table[place][possible] / table[place].sum() * 100_000).pvalue
            > 1e-6
        )


def test_a_table_is_whole_words_and_states_their_epsilon():
    table = ResponseTable(np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]))
    assert [sum(row) for row in table.words] == [WORDS, WORDS]
    assert table.epsilon == pytest.approx(math.log(3))
    assert table.words[0][0] == 3 * WORDS // 4
    uneven = ResponseTable(np.array([[0.7, 0.3], [1 / 3, 2 / 3]]))
    assert [sum(row) for row in uneven.words] == [WORDS, WORDS]
    assert uneven.epsilon == pytest.approx(math.log(2 / 0.9))
    with pytest.raises(InputError, match="no epsilon allows"):
        ResponseTable(np.array([[0.75, 0.25], [1.0, 0.0]]))


def test_the_last_word_has_an_output():
    class Last(ResearchNoise):
        def words(self, n):
            return np.full(n, WORDS - 1, dtype=np.uint64)

    table = ResponseTable(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]))
    assert table.sample(np.array([0, 1]), Last(0)).tolist() == [1, 1]


def test_infinite_epsilon_returns_the_value():
    randomizer = RROnBins(math.inf, TEN)
    assert np.array_equal(randomizer.sample(np.array([3, 7]), SecureNoise()), [3, 7])
    assert np.array_equal(randomizer.matrix(), np.eye(11))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RROnBins(0, TEN), "epsilon=0"),
        (lambda: RROnBins(1, [1, 1, 2]), "rising"),
        (lambda: RROnBins(1, [1, float("nan")]), "finite and rising"),
        (lambda: RROnBins(1, ["a"]), "not an array of numbers"),
        (lambda: RROnBins(1, TEN, [0.5, 0.5]), "for 11 values"),
        (lambda: RROnBins(1, TEN, loss="hinge"), "loss='hinge'"),
        (lambda: UnbiasedResponse(math.inf, TEN), "epsilon=inf"),
        (lambda: UnbiasedResponse(1, TEN, outputs=TEN), "pass outputs that reach further"),
        (lambda: UnbiasedResponse(1, np.cumsum(np.geomspace(1e-6, 1, 50))), "too many outputs"),
    ],
)
def test_what_is_out_of_range_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
