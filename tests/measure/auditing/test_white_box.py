"""Audits of methods: promises hold, audits reach what was known, and they bite.

The mutants that an audit must notice are in `tests/mutants/lists/measure/auditing.toml` too.
"""

import math

import numpy as np
import pytest

import tacit
from tacit.errors import InputError
from tacit.learners.methods import METHODS, load
from tacit.measure.auditing import one_run
from tacit.measure.auditing.bounds import epsilon_of_guesses
from tacit.measure.auditing.canaries import WIDTH, pairs
from tacit.measure.auditing.one_run import guesses_of_selections
from tacit.measure.auditing.pair_attacks import furthest, probes
from tacit.measure.auditing.subjects import public_rows, subject_of
from tacit.measure.auditing.transcripts import LeakFoundError, log_ratio, transcript
from tacit.mechanisms import gaussian, top_k
from tacit.mechanisms.noise import ResearchNoise, noise_source, research_noise_from
from tacit.privacy.unit import Unit

KEPT = {
    "noisy-sum": 4.0,
    "label-private": 0.93,
}  # lower bounds that few runs reach; benchmarks/measure/audit.json has those of all methods


@pytest.mark.parametrize("method", KEPT)
def test_an_audit_proves_most_of_a_promise_that_is_kept(method):
    result = tacit.audit(method, runs=200)
    assert KEPT[method] < result.epsilon_lower <= result.promise
    assert not result.exceeded
    assert result.unit is Unit(load(METHODS[method]).units[0])
    # the sharp form needs independent noise, and so decides nothing
    sharp = [bound for bound in result.bounds if "independent axes" in bound.attack]
    assert not any(bound.decides for bound in sharp)


def test_one_run_of_sums_proves_more_than_was_known():
    bounds = {bound.attack: bound.epsilon for bound in tacit.audit("noisy-sum", runs=100).bounds}
    general = next(epsilon for attack, epsilon in bounds.items() if "every class" in attack)
    assert general > 2.28


@pytest.mark.parametrize("unit", [Unit.REPLACE, Unit.CHANGE_LABELS_OF_PERSON])
def test_one_run_has_canaries_of_the_unit(unit):
    result = tacit.audit("noisy-sum", runs=100, unit=unit)
    assert not result.exceeded
    assert len([bound for bound in result.bounds if "one run" in bound.attack]) == 3
    # labels of a person move a sum by less than another person does
    least = 2.0 if unit is Unit.CHANGE_LABELS_OF_PERSON else 4.0
    assert least < result.epsilon_lower < result.promise


def halved(self, values, scale, whole=ResearchNoise.gaussian):
    return whole(self, values, scale / 2)


def weighed_twice(totals, whole=gaussian.with_noise, **facts):
    return whole(2 * totals, **facts)


def in_half_precision(totals, whole=gaussian.with_noise, **facts):
    rounded = (totals / gaussian.UNIT).astype(np.float16).astype(np.float64)
    return whole((rounded * gaussian.UNIT).astype(np.int64), **facts)


FAULTS = {
    "half the noise": (ResearchNoise, "gaussian", halved),
    "a record weighed twice": (gaussian, "with_noise", weighed_twice),
    "a sum in float16": (gaussian, "with_noise", in_half_precision),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_audit_bites(fault, monkeypatch):
    monkeypatch.setattr(*FAULTS[fault])
    result = tacit.audit("noisy-sum", runs=100)
    assert result.exceeded
    assert "BROKEN" in str(result)


def selection_of_two(budget):
    rows = public_rows(tacit.PublicPrototypes)[:5]
    return tacit.PublicPrototypes(budget, classes=3, public=rows, k=2)


def wrong_binomials(m, k):
    return np.array([math.log(math.comb(y, k)) for y in range(k, m + 1)])


@pytest.mark.parametrize("fault", ["none", "C(y, k) for C(y-1, k-1)"])
def test_an_audit_of_sets_bites(fault, monkeypatch):
    monkeypatch.setattr(one_run, "SELECTIONS", 6000)
    if fault != "none":
        monkeypatch.setattr(top_k, "log_binomials", wrong_binomials)
    result = tacit.audit(selection_of_two("epsilon=0.01"), runs=100)
    assert result.exceeded == (fault != "none")
    if not result.exceeded:
        assert result.epsilon_lower <= result.promise


@pytest.mark.parametrize("unit", [Unit.REPLACE, Unit.ADD_REMOVE_PERSON])
def test_one_run_of_selections_has_canaries_of_the_unit(unit):
    learner = selection_of_two("epsilon=1").set_params(unit=unit.value)
    subject = subject_of(learner)
    run = guesses_of_selections(subject, ResearchNoise(0), np.random.default_rng(0))
    if unit is Unit.ADD_REMOVE_PERSON:
        assert run is None
        return
    assert 0.1 < epsilon_of_guesses(run.guesses, 0.0, 0.05) < 1


def test_a_quantity_without_noise_is_a_leak(monkeypatch):
    kind = tacit.NoisySumPrototypes
    fit = kind._fit

    def leaky(self, prepared, noise):
        released = fit(self, prepared, noise)
        released.arrays["prototypes"][0, 0] += len(prepared.X)
        return released

    monkeypatch.setattr(kind, "_fit", leaky)
    result = tacit.audit("noisy-sum", runs=100)
    assert result.exceeded
    assert math.isinf(result.epsilon_lower)
    assert "prototypes" in result.best.attack


def test_a_method_that_uses_no_record_reveals_nothing():
    result = tacit.audit("names")
    assert (result.epsilon_lower, result.promise, result.exceeded) == (0, 0, False)


def test_log_ratios_are_those_of_gaussian_densities():
    subject = subject_of("least-squares", "rho=0.5")
    probe = furthest(probes(subject, ResearchNoise(1)))
    expected = 0.0
    for one, other in zip(probe.without, probe.with_canary, strict=True):
        for use, sign in ((one, -1), (other, 1)):
            away = (use.outcome - use.values) / use.scale
            expected -= sign * float((away**2).sum()) / 2
    assert log_ratio(probe.without, probe.with_canary) == pytest.approx(expected, rel=1e-6)
    assert probe.distance == pytest.approx(1, abs=1e-4)


def test_a_replay_that_draws_other_noise_is_a_leak():
    data = next(pairs(Unit.ADD_REMOVE)).without
    uses = transcript(lambda: subject_of("noisy-sum").fit(data), ResearchNoise(0))
    other = subject_of("noisy-sum", "rho=2")
    with pytest.raises(LeakFoundError):
        transcript(lambda: other.fit(data), ResearchNoise(0), uses)


def test_secure_noise_is_never_replaced():
    witness = ResearchNoise(0)
    with research_noise_from(witness):
        assert noise_source("research", 1) is witness
        assert noise_source("secure") is not witness
    assert noise_source("research", 1) is not witness


@pytest.mark.thorough
def test_secure_noise_is_audited_too():
    result = tacit.audit("noisy-sum", runs=100, noise="secure")
    assert 3 < result.epsilon_lower < 5
    assert not result.exceeded


@pytest.mark.parametrize("unit", list(Unit))
def test_pairs_are_neighbours(unit):
    for pair in pairs(unit):
        one, other = pair.without, pair.with_canary
        # base records come first, and all others are of one person
        n = min(len(set(one.persons)), len(set(other.persons)))
        n -= unit not in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON)
        assert np.array_equal(one.rows[:n], other.rows[:n])
        assert len(set(one.persons[n:])) <= 1
        assert len(set(other.persons[n:])) == 1
        assert other.rows.shape[1] == WIDTH
        if unit.rows_public:
            assert np.array_equal(one.rows, other.rows)
        if not unit.per_person:
            assert len(other.rows) == n + 1


def test_an_audit_is_repeated_by_its_seed():
    first = tacit.audit("noisy-sum", runs=100, seed=3)
    assert first == tacit.audit("noisy-sum", runs=100, seed=3)
    assert first != tacit.audit("noisy-sum", runs=100, seed=4)


def test_a_learner_keeps_its_parameters():
    learner = tacit.GradientDescent("rho=0.2", classes=["a", "b"], steps=2)
    subject = subject_of(learner)
    assert subject.template.steps == 2
    assert subject.promise.rho == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("audited", "facts"),
    [
        ("no-such", {"no-such", "noisy-sum"}),
        (3, {"int", "learner"}),
        (tacit.GradientDescent(classes=2, most_labels=1), {"most_labels=1"}),
    ],
)
def test_subjects_that_are_not_audited_are_refused(audited, facts):
    with pytest.raises(InputError) as error:
        tacit.audit(audited)
    assert all(fact in str(error.value) for fact in facts)


@pytest.mark.parametrize("wrong", [{"runs": 3}, {"seed": -1}, {"noise": "none"}, {"delta": 2.0}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        tacit.audit("noisy-sum", **wrong)
