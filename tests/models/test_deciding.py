from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.learners.prototypes import auto
from tacit.models import deciding
from tacit.models.carried import carried
from tacit.models.deciding import decided, directions_of_sums
from tacit.models.name_directions import name_directions
from tacit.models.posterior import class_posterior

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 10))
Y = np.repeat(np.arange(4), 60)
X = CENTRES[Y] + RNG.normal(size=(240, 10))
PUBLIC = CENTRES[RNG.integers(0, 4, 80)] + RNG.normal(size=(80, 10))
NAMES = CENTRES + 0.3 * RNG.normal(size=CENTRES.shape)
WRONG = np.roll(CENTRES, 1, axis=0)
FIT = {"public": PUBLIC, "classes": 4, "noise": "research", "random_state": 0, "refine": False}


def fitted_with_its_sums(monkeypatch, names, budget="rho=0.1"):
    """A fit of one noisy sum, and the prior and the sums that it decides by."""
    used = []

    def spy(prior, release):
        used.append((prior, release))
        return class_posterior(prior, release)

    monkeypatch.setattr(auto, "class_posterior", spy)
    model = tacit.AutoPrototypes(budget, names=names, **FIT).fit(X, Y)
    ((prior, release),) = used
    return model, prior, release


@pytest.mark.parametrize(
    ("names", "name_use"), [(None, "none"), (NAMES, "used"), (WRONG, deciding.LEFT_OUT)]
)
def test_it_decides_what_auto_decides_by_the_same_sums(monkeypatch, names, name_use):
    model, prior, release = fitted_with_its_sums(monkeypatch, names)
    directions = name_directions(names, range(4), 10, model.centre_)
    decision = decided(
        prior, release, names=directions, centre=model.centre_, facts={"made": "here"}
    )
    assert decision.names_used == model.names_used_ == (name_use == "used")
    assert np.array_equal(decision.posterior.sizes, model.sizes_)
    for found, expected in (
        (decision.released.arrays, model.released_.arrays),
        (decision.released.carried, model.released_.carried),
    ):
        assert list(found) == list(expected)
        assert all(np.array_equal(found[name], expected[name]) for name in found)
    assert decision.released.decision == model.released_.decision
    assert decision.released.probabilities == model.released_.probabilities
    assert decision.released.what == model.released_.what
    facts = decision.released.mechanism
    assert list(facts) == ["made", "class names", "normalisation"]
    assert facts["class names"] == name_use
    assert facts["normalisation"] == model.released_.mechanism["normalisation"]


def test_noise_of_each_class_decides_how_far_its_sum_counts(monkeypatch):
    _, prior, release = fitted_with_its_sums(monkeypatch, None)
    noise = release.noise * np.array([1.0, 1.0, 1.0, 100.0])
    count_noise = release.count_noise * np.array([1.0, 1.0, 1.0, 2.0])
    by_class = replace(release, noise=noise, count_noise=count_noise)
    decision = decided(prior, by_class, names=None, centre=None, facts={})
    known = carried(decision.released.arrays | decision.released.carried)
    assert np.allclose(known.clarity, decision.posterior.clarity(noise), rtol=1e-6)
    assert known.clarity[3] < 0.01 < known.clarity[:3].min()
    assert decision.posterior.variance[3].sum() > 2 * decision.posterior.variance[0].sum()
    same = decided(prior, release, names=None, centre=None, facts={})
    assert not np.allclose(same.posterior.mean[3], decision.posterior.mean[3], rtol=0.1)


def test_without_public_rows_the_direction_of_a_sum_decides():
    sums = np.array([[3.0, 0.0], [0.0, 0.01]])
    released = directions_of_sums(sums, centre=None, facts={"made": "here"})
    rows = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert np.array_equal(released.nearest(rows), [0, 1])
    assert list(released.mechanism) == ["made", "normalisation"]
    assert set(released.arrays) == {"prototypes"}

    centre = np.array([0.9, 0.4])
    about = directions_of_sums(sums, centre=centre, facts={})
    assert np.array_equal(about.arrays["centre"], centre)
    assert np.array_equal(about.nearest(np.array([[2.0, 1.5]])), [1])
