"""An adversary that picks each charge by what earlier charges released, against the ledger and
against its old rule.

The true delta at epsilon of such a game is the sum over outputs of P(output) times the largest
delta, at what is left of epsilon after the output's privacy loss, of any mechanism that may come
next. Mechanisms before the last are finite or binned, which makes these sums exact; the last enters
by the closed form of its profile.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from tacit.errors import LedgerError
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import Gaussian, Laplace, PureDP, RandomizedResponse, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

EDGES = np.r_[-np.inf, np.linspace(-7, 8, 600), np.inf]


def of_gaussian(mu, t):
    return norm.cdf(mu / 2 - t / mu) - np.exp(t) * norm.cdf(-mu / 2 - t / mu)


def of_responses(size):
    def profile(epsilon, t):
        same, other, rest = responses(epsilon, size)[0]
        kept, moved = (
            np.maximum(same - np.exp(t) * other, 0),
            np.maximum(other - np.exp(t) * same, 0),
        )
        return kept + moved + np.maximum(rest - np.exp(t) * rest, 0)

    return profile


def of_laplace(epsilon, t):
    return np.where(
        t >= epsilon, 0, np.where(t <= -epsilon, 1 - np.exp(t), 1 - np.exp((t - epsilon) / 2))
    )


def responses(epsilon, size):
    """Probabilities of the outputs of randomized response, the equal ones together, and their
    privacy losses.
    """
    other = 1 / (math.exp(epsilon) + size - 1)
    same = math.exp(epsilon) * other
    return np.array([same, other, (size - 2) * other]), np.array([epsilon, -epsilon, 0.0])


def bins(mu):
    """Probabilities of the bins of a Gaussian, and their privacy losses."""
    one, other = np.diff(norm.cdf(EDGES - mu)), np.diff(norm.cdf(EDGES))
    used = (one > 0) & (other > 0)
    return one[used], np.log(one[used] / other[used])


FAMILIES = {  # an event by its strength, and its profile
    "gaussian": (lambda mu: Gaussian(1 / mu), of_gaussian),
    "laplace": (lambda epsilon: Laplace(1 / epsilon), of_laplace),
    **{
        f"response of {size}": (
            lambda epsilon, size=size: RandomizedResponse(epsilon, size),
            of_responses(size),
        )
        for size in (2, 100, 10_000)
    },
}


def of(event):
    return Guarantee(Unit.ADD_REMOVE, event)


def strongest(allowance, left, family):
    """The largest strength of a family that the allowance accepts next, rounded down; 0 if there is
    none.
    """
    low, high = 0.0, 64.0
    for _ in range(40):
        middle = (low + high) / 2
        accepted = allowance.after_next(of(FAMILIES[family][0](middle)), left) is not None
        low, high = (middle, high) if accepted else (low, middle)
    return low


def largest_delta(allowance, left, t):
    """The largest delta at each t of anything that may come next."""
    found = [np.maximum(1 - np.exp(t), 0)]
    for family, (_, profile) in FAMILIES.items():
        strength = strongest(allowance, left, family)
        if strength > 0:
            found.append(profile(strength, t))
    return np.max(found, axis=0)


def test_the_smallest_of_several_bounds_is_no_filter():
    """Each pair of charges is within (1, 1e-5), and yet the adversary reaches 2.8 times that
    delta.
    """
    budget, mu = Budget.approx(1, 1e-5), 0.2
    weights, losses = bins(mu)
    second = {}
    for family, (event, profile) in FAMILIES.items():
        strength = calibrate(
            budget, lambda s, event=event: Gaussian(1 / mu) + event(s), 1e-2, 10, precision=5e-3
        )
        second[family] = profile(strength, 1 - losses)
    each = [float(weights @ delta) for delta in second.values()]
    assert 0.9e-5 < max(each) <= 1e-5
    assert float(weights @ np.max(list(second.values()), axis=0)) > 2.5e-5


@pytest.mark.parametrize("mu", [0.1, 0.2, 0.26])
@pytest.mark.parametrize("text", ["epsilon=1,delta=1e-5", "epsilon=1,delta=0.01"])
def test_the_same_adversary_never_passes_the_delta_of_a_ledger(text, mu, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow(text)
    ledger.charge(of(Gaussian(1 / mu)), "first")
    account = ledger.account()
    for family, (event, _) in FAMILIES.items():
        strength = strongest(account.allowance, account.left, family)
        copy = Ledger(tmp_path / f"{family}.jsonl", "data")
        copy.path.write_bytes(ledger.path.read_bytes())
        copy.charge(of(event(strength)), "second")
        assert strength > 0
        with pytest.raises(LedgerError):
            ledger.charge(of(event(1.001 * strength)), "second")
    weights, losses = bins(mu)
    budget = account.allowance.budget
    reached = float(
        weights @ largest_delta(account.allowance, account.left, budget.epsilon - losses)
    )
    assert 0.9 * budget.delta < reached <= budget.delta


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text", ["epsilon=1,delta=1e-5", "epsilon=0.5,delta=0.1", "epsilon=3,delta=1e-3"]
)
def test_no_adversary_of_a_search_passes_the_delta(text):
    """Three charges: the second is chosen for each kind of output of the first, the third for every
    output.
    """
    rng, allowance = np.random.default_rng(0), Allowance.of(text)
    budget, best = allowance.budget, 0.0
    for _ in range(20):
        event, (weights, losses) = random_first(rng, budget)
        left = allowance.after_first(of(event))
        if left is None:
            continue
        kinds = np.minimum(np.searchsorted(np.quantile(losses, [0.3, 0.6, 0.9]), losses), 2)
        reached = 0.0
        for kind in np.unique(kinds):
            own = kinds == kind
            reached += second_and_third(
                rng, allowance, left, weights[own], budget.epsilon - losses[own]
            )
        best = max(best, reached)
        assert reached <= budget.delta
    assert best > 0.5 * budget.delta


def random_first(rng, budget):
    """A first charge of a random share of the budget, by its exact curve."""
    if rng.random() < 0.5:
        mu = rng.uniform(0.1, 1) / budget.gaussian()
        return Gaussian(1 / mu), bins(mu)
    epsilon, size = rng.uniform(0.1, 1) * budget.largest_pure(), int(rng.choice([2, 10, 1000]))
    return RandomizedResponse(epsilon, size), responses(epsilon, size)


def second_and_third(rng, allowance, left, weights, t):
    """The larger delta of two random second charges, each followed by the best third for every
    output.
    """
    reached = [float(weights @ largest_delta(allowance, left, t))]
    for _ in range(2):
        family = rng.choice(["gaussian", "response of 2", "response of 100"])
        strength = rng.uniform(0.2, 1) * strongest(allowance, left, family)
        if strength <= 0:
            continue
        rest = allowance.after_next(of(FAMILIES[family][0](strength)), left)
        one, losses = (
            bins(strength) if family == "gaussian" else responses(strength, int(family.split()[-1]))
        )
        deltas = largest_delta(allowance, rest, (t[:, None] - losses[None]).ravel()).reshape(
            len(t), len(losses)
        )
        reached.append(float(weights @ deltas @ one))
    return max(reached)


@pytest.mark.parametrize(
    ("text", "event"), [("epsilon=1", PureDP(0.3)), ("rho=0.5", Gaussian(2.0))]
)
def test_pure_and_zcdp_charges_are_subtracted(text, event):
    allowance = Allowance.of(text)
    left = allowance.after([of(event)])
    assert allowance.after([of(event)] * 3) == left - 2 * (allowance.after([]) - left)
    assert allowance.after([of(compose([event] * 3))]) == pytest.approx(
        allowance.after([of(event)] * 3)
    )
