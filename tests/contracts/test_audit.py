"""An empirical audit of every method: no more is revealed than promised, and nearly as much.

`tacit.measure.auditing` fits each method to neighbouring data with the noisy outcomes forced to be
the same. The distance of the private values of a fit, in units of noise, is then mu of the release
on this pair: at most what is promised, and not far below. What is released must not differ, so that
nothing but these values tells the two data sets apart. That draws have the stated distribution is
audited by many runs, which `benchmarks/measure/audit.json` has for every method.
"""

import pytest

import tacit
from tacit.learners.methods import METHODS, load
from tacit.measure.auditing.pair_attacks import only_numbers, probes
from tacit.measure.auditing.subjects import subject_of
from tacit.mechanisms.noise import ResearchNoise
from tacit.privacy.accounting import has_exact_mu
from tacit.privacy.unit import Unit

pytestmark = pytest.mark.thorough

BUDGET = "rho=2"  # mu = 2
# The least share of the promised mu that a pair attains under add-remove.
POWER = {
    "auto": 0.9,
    "noisy-sum": 0.999,
    "coinpress": 0.999,
    "least-squares": 0.999,
    "gradient-descent": 0.9,
    "global-adapt": 0.7,
    "projected": 0.95,
    "feature-covariance": 0.85,
    "newton": 0.75,
}
# a fit of `auto` takes ten times as long
CASES = [
    (method, unit)
    for method in POWER
    for unit in load(METHODS[method]).units
    if method != "auto" or unit in (Unit.ADD_REMOVE, Unit.CHANGE_LABELS_OF_PERSON)
]


def is_gaussian(method):
    """Whether all noise of a method is Gaussian, so that a pair has a mu."""
    kind = load(METHODS[method])
    if "zcdp" not in kind.budget_kinds or not kind.uses_records:
        return False
    return has_exact_mu(subject_of(method, BUDGET).promise.event.base())


def test_every_gaussian_method_is_audited():
    missing = set(filter(is_gaussian, METHODS)) - set(POWER)
    assert not missing, f"state what an audit attains of {', '.join(missing)} in POWER"


@pytest.mark.parametrize(("method", "unit"), CASES)
def test_a_canary_moves_a_fit_as_far_as_promised(method, unit):
    subject = subject_of(method, BUDGET, unit)
    found = probes(subject, ResearchNoise(0), fits=1, largest=100)
    assert all(only_numbers(probe.without) for probe in found)
    distance = max(probe.distance for probe in found)
    print(f"\n{method}, {unit}: mu {distance:.3f} of {subject.promise.mu:.3f}", end="")
    assert distance <= subject.promise.mu * (1 + 1e-6)
    if unit is Unit.ADD_REMOVE:
        assert distance >= POWER[method] * 2


def test_runs_prove_part_of_the_promise_and_no_more():
    result = tacit.audit("gradient-descent", runs=200)
    print(f"\n{result}", end="")
    assert 0.3 < result.epsilon_lower <= result.promise
    assert not result.exceeded


def test_one_run_of_selections_proves_part_of_the_promise_and_no_more():
    result = tacit.audit("top-k", runs=100)
    assert 0.8 < result.epsilon_lower <= result.promise
    assert not result.exceeded
