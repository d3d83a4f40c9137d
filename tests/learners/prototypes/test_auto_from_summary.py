"""`AutoPrototypes.from_summary`: what `tacit.combine` decides, as a learner."""

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from tacit.errors import InputError, ReleaseError

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 10))
Y = np.repeat(np.arange(4), 60)
X = CENTRES[Y] + RNG.normal(size=(240, 10))
PUBLIC = CENTRES[RNG.integers(0, 4, 80)] + RNG.normal(size=(80, 10))
NAMES = CENTRES + 0.3 * RNG.normal(size=CENTRES.shape)
TEXTS = np.array(["ant", "bee", "cow", "dog"])


def summary_of(part, budget, classes, unit="add-remove"):
    listed = np.isin(TEXTS[Y], classes)
    fit = tacit.ClassSummary(budget, classes=classes, part=part, public=PUBLIC, unit=unit)
    persons = np.arange(240)[listed] if unit == "add-remove-person" else None
    return tacit.Summary.of(fit.fit(X[listed], TEXTS[Y][listed], persons))


def two_parts():
    first = summary_of("A", "rho=0.5", ["ant", "bee", "cow"])
    return first + summary_of("B", "rho=0.1", ["bee", "cow", "dog"])


@pytest.mark.parametrize("names", [None, NAMES, np.roll(NAMES, 1, axis=0)])
def test_it_decides_what_the_combination_decides_to_the_bit(names):
    summary = two_parts()
    model = tacit.AutoPrototypes.from_summary(summary, public=PUBLIC, names=names)
    release = tacit.combine([summary], public=PUBLIC, names=names)
    assert np.array_equal(model.predict(X), release.predict(X))
    assert np.array_equal(model.predict_proba(X), release.predict_proba(X))
    for name in ("coefficients", "intercepts", "axes", "squares"):
        assert np.array_equal(getattr(model, name + "_"), release.arrays[name]), name
    carried = release.arrays["posterior.means"]
    assert np.allclose(model.prototypes_, carried @ model.axes_.T, atol=1e-6)
    assert np.allclose(model.sizes_, release.arrays["posterior.sizes"])
    assert model.names_used_ == ("posterior.names" in release.arrays)
    assert list(model.classes_) == ["ant", "bee", "cow", "dog"]
    assert (model.refined_, model.spent_on_sums_) == (False, 1.0)


@pytest.mark.parametrize("unit", ["add-remove", "replace", "add-remove-person"])
def test_its_promise_is_the_guarantee_of_the_summary(unit):
    summary = summary_of("A", "rho=0.25", list(TEXTS), unit)
    model = tacit.AutoPrototypes.from_summary(summary, public=PUBLIC)
    assert model.promise() == model.guarantee_ == model.spent_ == summary.guarantee
    assert model.unit == unit
    assert model.promise().rho == pytest.approx(0.25)

    # a clone, and the learner once it is fitted to records, are as any other
    persons = np.arange(240) if unit == "add-remove-person" else None
    for learner in (clone(model), model):
        learner.set_params(budget="rho=0.1")
        learner.fit(X, TEXTS[Y], persons)
        assert learner.promise() == learner.guarantee_
        assert learner.promise().rho == pytest.approx(0.1)
        assert learner.released_ is not None


def test_what_a_summary_cannot_give_is_refused():
    summary = summary_of("A", "rho=0.5", list(TEXTS))
    make = tacit.AutoPrototypes.from_summary
    with pytest.raises(InputError, match="refine=True pays for gradient steps"):
        make(summary, public=PUBLIC, refine=True)
    with pytest.raises(InputError, match="ndarray is no summary"):
        make(X, public=PUBLIC)
    with pytest.raises(InputError, match="public=None must be public rows"):
        make(summary, public=None)
    with pytest.raises(InputError, match="is not the centre of the summaries"):
        make(summary, public=PUBLIC[:40])
    with pytest.raises(ReleaseError, match=r"make it by tacit\.combine"):
        tacit.Release.of(make(summary, public=PUBLIC))


def test_a_summary_is_verified_first():
    summary = summary_of("A", "rho=0.5", list(TEXTS))
    poisoned = summary.arrays["sums"].copy()
    poisoned[1, 0] = 2**50
    summary.arrays["sums"] = poisoned
    with pytest.raises(ReleaseError, match="longer sum"):
        tacit.AutoPrototypes.from_summary(summary, public=PUBLIC)
