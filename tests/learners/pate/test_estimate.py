"""The paid estimate: within the budget, of the right thing, bought once, and refused where nothing is proven."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import tacit
from tacit.errors import BudgetError, InputError
from tacit.learners.pate.aggregators import Confident, Plurality
from tacit.learners.pate.estimate import PaidEstimate
from tacit.mechanisms.noise import noise_source
from tacit.privacy import accounting

CENTRES = 3 * np.eye(3, 4)
ASKED = {"order": 20.0, "smoothness": 0.01, "scale": 30.0}
NOISE = {"aggregator": "confident", "sigma": 40.0, "sigma1": 150.0, "threshold": 150.0}


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 4)), y


X, Y = records(3000, 0)
PUBLIC, _ = records(300, 1)


def pate(**given):
    own = {
        "budget": "epsilon=2,delta=1e-5",
        "classes": 3,
        "teacher": GaussianNB(),
        "estimate": ASKED,
        "n_teachers": 250,
    }
    return tacit.PATE(**own | {"noise": "research", "random_state": 0} | given)


def test_it_is_part_of_the_promise_and_within_the_budget():
    promise = pate().promise()
    assert [type(event).__name__ for event in promise.events] == ["ZCDP", "SmoothGaussian"]
    assert 2 * (1 - 1e-6) < promise.epsilon(1e-5) <= 2
    for_votes = promise.events[0].rho
    assert accounting.largest_rho(2, 1e-5) > for_votes > 0.9 * accounting.largest_rho(2, 1e-5)
    limited = pate(aggregator="gnmax", sigma=40.0, n_queries=10).promise()
    assert [type(event).__name__ for event, _ in limited.event.counted()] == ["Gaussian", "SmoothGaussian"]
    model = pate(**NOISE).fit(X, Y, public=PUBLIC)
    assert model.guarantee_ == model.promise()
    assert type(model.spent_.events[-1]).__name__ == "SmoothGaussian"
    card = tacit.Release.of(model).card()
    assert f"{model.estimate_.epsilon:.3g} at delta 1e-05" in card


@pytest.mark.parametrize("noise", [NOISE, {"aggregator": "gnmax", "sigma": 40.0}])
def test_it_is_the_data_dependent_cost_and_noise(noise):
    model = pate(**noise).fit(X, Y, public=PUBLIC)
    votes = model.votes_.votes
    counts = np.stack([np.bincount(row, minlength=3) for row in votes[: model.answers_.asked]])
    exact = tacit.pate.rdp(counts, orders=[20.0], answered=model.answers_.paid[: len(counts)], **noise)[0]
    draws = [redrawn(model, noise, votes, seed) for seed in range(40)]
    error = np.std(draws, ddof=1) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - exact) < 5 * error
    assert np.std(draws) > 0
    assert model.estimate_.epsilon == pytest.approx(
        max(model.estimate_.cost + np.log(1 - 1 / 20) - np.log(1e-5 * 20) / 19, 0)
    )


def redrawn(model, noise, votes, seed):
    """The estimate of the same voting with other noise."""
    from tacit.learners.pate.scheme import scheme
    from tacit.learners.pate.voting import Voting

    given = {"sigma1": None, "threshold": None, "gamma": None, "confidence": None} | noise
    plan = scheme(
        *votes.shape, collector="gnmax", budgets=None, shares=None, teacher_groups=None, copies=None, delta=1e-5,
        n_labels=None, **given,
    )  # fmt: skip
    voting = Voting(plan, np.arange(3))
    asked = model.answers_.asked
    voting.replay(votes[:asked], model.answers_.labels[:asked], model.answers_.paid[:asked])
    return PaidEstimate.of(ASKED).draw(voting, votes, noise_source("research", seed))


def test_it_is_bought_once(tmp_path):
    given = {"noise": "secure", "random_state": None, "folder": tmp_path / "run"} | NOISE
    first = pate(**given).fit(X, Y, public=PUBLIC).estimate_
    assert pate(**given).fit(X, Y, public=PUBLIC).estimate_ == first
    with pytest.raises(InputError, match="other votes or settings"):
        pate(**given | {"estimate": ASKED | {"scale": 31.0}}).fit(X, Y, public=PUBLIC)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"estimate": {"order": 20}}, "dict of order, smoothness, scale"),
        ({"estimate": ASKED | {"scale": float("nan")}}, "scale=nan"),
        ({"budget": "rho=1"}, "epsilon=1,delta=1e-5"),
        ({"budget": "epsilon=inf"}, "epsilon=1,delta=1e-5"),
        ({"estimate": ASKED | {"scale": 0.1}}, "the estimate alone costs epsilon"),
        ({"estimate": ASKED | {"smoothness": 5.0}}, "the estimate alone costs epsilon inf"),
        ({"stopping": "data-dependent"}, "for one budget and stopping='filter'"),
        ({"aggregator": "laplace", "gamma": 0.01}, "for gnmax and confident"),
        (NOISE | {"estimate": ASKED | {"order": 60.0}}, "not monotone"),
        (NOISE | {"estimate": ASKED | {"order": 2000.0}}, "no votes cost less"),
    ],
)
def test_what_is_not_proven_is_refused(given, message):
    with pytest.raises((InputError, BudgetError), match=message):
        pate(**given).fit(X, Y, public=PUBLIC)


def test_groups_are_refused():
    model = tacit.PATE(budgets={"a": 1.0}, estimate=ASKED, classes=3)
    with pytest.raises(InputError, match="for one budget"):
        model.fit(X, Y, groups=["a"] * len(X), public=PUBLIC)


def test_it_is_refused_before_anything_is_charged():
    with pytest.raises(InputError, match="not monotone"):
        PaidEstimate(60.0, 0.01, 30.0).check(Confident(40.0, 150.0, 150.0), 3)
    with pytest.raises(InputError, match="for gnmax and confident"):
        PaidEstimate(20.0, 0.01, 30.0).check(Plurality(), 3)
