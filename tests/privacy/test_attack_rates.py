"""Rates of attacks in closed form, against the best test between two output distributions, written
out in full.
"""

import math

import numpy as np
import pytest
from scipy.stats import laplace

from tacit.errors import InputError
from tacit.privacy import accounting, attack_rates
from tacit.privacy.events import (
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    RandomizedResponse,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.older import OlderNumbers
from tacit.privacy.unit import Unit

RATES = [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9]
EPSILONS = [1e-3, 0.1, 1.0, 2.0, 4.0, 9.0]
SINGLE = {
    "response": lambda epsilon: RandomizedResponse(epsilon, 10),
    "selection": Exponential,
    "pure": PureDP,
    "laplace": lambda epsilon: Laplace(1 / epsilon),
}


def best_test(alternative, null, false_positive_rate):
    """True-positive rate of the most powerful randomized test of this size, by Neyman and Pearson's
    lemma.
    """
    with np.errstate(all="ignore"):
        order = np.argsort(-np.log(alternative) + np.log(null), kind="stable")
    sizes = np.concatenate([[0.0], np.cumsum(np.asarray(null)[order])])
    powers = np.concatenate([[0.0], np.cumsum(np.asarray(alternative)[order])])
    return float(np.interp(false_positive_rate, sizes, powers))


def either_order(one, other, false_positive_rate):
    return max(
        best_test(one, other, false_positive_rate), best_test(other, one, false_positive_rate)
    )


def total_variation(one, other):
    return float(np.abs(np.asarray(one) - np.asarray(other)).sum() / 2)


def rows_of_response(epsilon, n_classes):
    """Probabilities of the answers to two labels."""
    rows = np.ones((2, n_classes))
    rows[0, 0] = rows[1, 1] = math.exp(epsilon)
    return rows / rows[0].sum()


def pairs_of_selection(epsilon):
    """Selections between two candidates of which a record moves the first up and the second down,
    or conversely.
    """
    # log odds of the first candidate without the record
    for tilt in np.linspace(-epsilon - 12, epsilon + 12, 801):
        one = 1 / (1 + math.exp(-(tilt + epsilon)))
        other = 1 / (1 + math.exp(-tilt))
        yield [one, 1 - one], [other, 1 - other]


def test_the_figures_of_cards():
    """Those of three mechanisms of which the bounds before version 5 were far from the truth."""
    labels = Guarantee(Unit.CHANGE_LABEL, RandomizedResponse(2.0, 77))
    keep, other = rows_of_response(2.0, 77)
    assert (1 + labels.advantage) / 2 == pytest.approx(
        (1 + total_variation(keep, other)) / 2, rel=1e-9
    )
    assert (1 + labels.advantage) / 2 == pytest.approx(0.538309, abs=5e-7)
    # a guess right 88.1 % of the time
    assert OlderNumbers(labels, 4).advantage == pytest.approx(0.761594, abs=5e-7)

    ten = Guarantee(Unit.CHANGE_LABEL, RandomizedResponse(1.0, 10))
    assert ten.advantage == pytest.approx(total_variation(*rows_of_response(1.0, 10)), rel=1e-9)
    assert ten.advantage == pytest.approx(0.146633, abs=5e-7)
    assert OlderNumbers(ten, 4).advantage == pytest.approx(0.462117, abs=5e-7)

    selection = Guarantee(Unit.ADD_REMOVE, Exponential(4.0))
    assert selection.attack_rate(0.01) == pytest.approx(0.355461, abs=5e-7)
    assert OlderNumbers(selection, 4).attack_rate(0.01) == pytest.approx(0.545982, abs=5e-7)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 77])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomized_response_is_attacked_as_its_rows_allow(epsilon, n_classes):
    event = RandomizedResponse(epsilon, n_classes)
    one, other = rows_of_response(epsilon, n_classes)
    assert attack_rates.advantage(event) == pytest.approx(total_variation(one, other), rel=1e-9)
    for rate in RATES:
        assert attack_rates.attack_rate(event, rate) == pytest.approx(
            either_order(one, other, rate), rel=1e-9
        )
    for delta in (1e-9, 1e-3, 0.1):
        stated = accounting.epsilon(event, delta)
        reached = np.maximum(one - math.exp(stated) * other, 0).sum()
        assert reached <= delta * (1 + 1e-6)
        assert stated == 0 or reached == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_mechanism_of_which_epsilon_is_known_is_attacked_as_binary_response(epsilon):
    for rate in RATES:
        expected = either_order(*rows_of_response(epsilon, 2), rate)
        assert attack_rates.attack_rate(PureDP(epsilon), rate) == pytest.approx(expected, rel=1e-9)
    assert attack_rates.advantage(PureDP(epsilon)) == pytest.approx(
        math.tanh(epsilon / 2), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_selections_between_two_candidates_reach_the_stated_rates(epsilon):
    event = Exponential(epsilon)
    pairs = list(pairs_of_selection(epsilon))
    for rate in RATES:
        reached = max(either_order(one, other, rate) for one, other in pairs)
        stated = attack_rates.attack_rate(event, rate)
        assert reached <= stated * (1 + 1e-12)
        assert reached == pytest.approx(stated, rel=3e-2)

        # exactly, by the pair whose first candidate wins with this probability without the record
        tilt = math.log(rate / (1 - rate))
        one, other = 1 / (1 + math.exp(-tilt - epsilon)), rate
        assert best_test([one, 1 - one], [other, 1 - other], rate) == pytest.approx(
            stated, rel=1e-9
        )
    advantage = attack_rates.advantage(event)
    assert max(total_variation(*pair) for pair in pairs) == pytest.approx(advantage, rel=1e-3)
    assert advantage == pytest.approx(
        math.expm1(epsilon / 2) / (math.exp(epsilon / 2) + 1), rel=1e-9
    )


@pytest.mark.parametrize("candidates", [3, 20])
def test_no_selection_exceeds_the_stated_rates(candidates):
    generator = np.random.default_rng(0)
    event = Exponential(1.5)
    for _ in range(300):
        scores = generator.normal(scale=3.0, size=candidates)
        shift = 1.5 * generator.random(candidates)  # scores move within a range of epsilon
        one, other = np.exp(scores + shift), np.exp(scores)
        one, other = one / one.sum(), other / other.sum()
        for rate in RATES:
            assert either_order(one, other, rate) <= attack_rates.attack_rate(event, rate) * (
                1 + 1e-9
            )
        assert total_variation(one, other) <= attack_rates.advantage(event)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laplace_noise_is_attacked_as_a_threshold_on_it_allows(epsilon):
    event = Laplace(1 / epsilon)
    for rate in RATES:  # an alarm above a threshold; the densities' ratio rises with the number
        threshold = laplace.isf(rate, scale=1 / epsilon)
        expected = laplace.sf(threshold - 1, scale=1 / epsilon)
        assert attack_rates.attack_rate(event, rate) == pytest.approx(expected, rel=1e-9)
    assert attack_rates.advantage(event) == pytest.approx(
        1 - 2 * laplace.sf(0.5, scale=1 / epsilon), rel=1e-9
    )
    for delta in (1e-6, 1e-3, 0.01):
        stated = accounting.epsilon(event, delta)
        thresholds = np.linspace(0, 1, 100001)  # below and above them the losses are constant
        moved, still = (laplace.sf(thresholds - shift, scale=1 / epsilon) for shift in (1, 0))
        assert (moved - math.exp(stated) * still).max() == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (0.7, 0.3), (2.0, 0.1)])
def test_laplace_noise_on_two_numbers_costs_no_more_than_on_one(first, second):
    """Of one pair of numbers that move by parts of the sensitivity, on a fine grid of both."""
    grid = np.linspace(-30, 30, 1501)
    losses, shares = [], []
    for epsilon in (first, second):
        null, moved = np.exp(-np.abs(grid)), np.exp(-np.abs(grid - epsilon))
        losses.append(np.log(moved / moved.sum()) - np.log(null / null.sum()))
        shares.append(moved / moved.sum())
    loss = np.add.outer(*losses)
    share = np.multiply.outer(*shares)
    for epsilon in np.linspace(0, first + second, 7)[:-1]:
        delta = float((share * np.maximum(-np.expm1(epsilon - loss), 0)).sum())
        assert delta <= -math.expm1((epsilon - first - second) / 2) + 1e-3


@pytest.mark.parametrize("kind", SINGLE)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_curve_is_concave_and_rises_and_never_exceeds_older_bounds(kind, epsilon):
    event = SINGLE[kind](epsilon)
    rates = np.linspace(0, 1, 201)
    powers = np.array([attack_rates.attack_rate(event, float(rate)) for rate in rates])
    assert (powers[0], powers[-1]) == (0.0, pytest.approx(1.0, rel=1e-12))
    assert (np.diff(powers) >= -1e-12).all()
    assert (np.diff(powers, 2) <= 1e-9).all()
    assert attack_rates.advantage(event) == pytest.approx((powers - rates).max(), rel=0.02)
    assert (powers - rates).max() <= attack_rates.advantage(event) * (1 + 1e-9)

    # neither order of the data sets is better: the curve is its own mirror image
    for rate in (0.001, 0.01, 0.2):
        mirrored = attack_rates.attack_rate(event, 1 - attack_rates.attack_rate(event, rate))
        assert mirrored == pytest.approx(1 - rate, rel=1e-9)

    older = OlderNumbers(Guarantee(Unit.CHANGE_LABEL, event), 4)
    assert attack_rates.advantage(event) <= older.advantage * (1 + 1e-9)
    for rate in (0.001, 0.01, 0.1):
        assert attack_rates.attack_rate(event, rate) <= older.attack_rate(rate) * (1 + 1e-9)
    for delta in (0.1, 1e-3, 1e-6):
        assert accounting.epsilon(event, delta) <= older.epsilon(delta) * (1 + 1e-9)


def test_wrappers_and_groups_have_the_rates_of_what_they_stand_for():
    one = Exponential(1.0)
    assert attack_rates.attack_rate(Parallel(one, "classes"), 0.01) == attack_rates.attack_rate(
        one, 0.01
    )
    assert attack_rates.attack_rate(one.for_group(3), 0.01) == attack_rates.attack_rate(
        Exponential(3.0), 0.01
    )
    grouped = RandomizedResponse(1.0, 10).for_group(2)  # of two records only epsilon is known
    assert not attack_rates.attained(grouped)
    assert attack_rates.advantage(grouped) == pytest.approx(math.tanh(1.0), rel=1e-9)
    free = compose([one, PureDP(0.0), Gaussian(math.inf)])
    assert attack_rates.attack_rate(free, 0.01) == attack_rates.attack_rate(one, 0.01)


def test_the_most_expensive_group_decides_at_each_rate():
    selection, laplacian = Exponential(2.0), Laplace(0.8)
    both = Guarantee(Unit.ADD_REMOVE, compose([]), groups=(("a", selection), ("b", laplacian)))
    for rate in RATES:
        each = [attack_rates.attack_rate(event, rate) for event in (selection, laplacian)]
        assert both.attack_rate(rate) == max(each)
    assert both.attained


@pytest.mark.parametrize(
    "event", [Exponential(math.inf), RandomizedResponse(math.inf, 3), PureDP(800.0), Laplace(0.0)]
)
def test_without_protection_an_attack_reaches_everything(event):
    assert attack_rates.attack_rate(event, 0.01) == 1.0
    assert attack_rates.advantage(event) == 1.0


@pytest.mark.parametrize(
    "event",
    [Gaussian(2.0), Exponential(1.0), 2 * Exponential(1.0), compose([PureDP(1.0), Laplace(1.0)])],
)
def test_the_rates_at_both_ends_and_beyond(event):
    assert attack_rates.attack_rate(event, 0.0) == 0.0
    assert attack_rates.attack_rate(event, 1.0) == 1.0
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="must be from 0 to 1"):
            attack_rates.attack_rate(event, rate)
