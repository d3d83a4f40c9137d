"""Every learner can be made again from what its release states, with the same promise."""

from dataclasses import asdict

import pytest

from contracts.learners import CASES, CENTRES, CLASSES, PUBLIC, X, Y, budget_of, make
from tacit.learners.methods import METHODS
from tacit.measure.auditing.rebuilding import learner_of, rebuilt
from tacit.releases.release import Release
from tacit.releases.schema import RecordedLearner

INPUTS = {"public": PUBLIC, "names": CENTRES}


@pytest.mark.parametrize("method", METHODS)
def test_a_release_states_the_learner_that_made_it(method):
    learner = make(method, budget=budget_of(method), unit=CLASSES[method].units[-1])
    persons = {"persons": range(len(X))} if "person" in learner.unit else {}
    made = rebuilt(Release.of(learner.fit(X, Y, **persons)), **INPUTS)
    assert made.promise().event == learner.promise().event
    assert made.promise().unit == learner.promise().unit
    assert made.learner_facts() == learner.learner_facts()


@pytest.mark.parametrize(("method", "variant"), CASES)
def test_every_scalar_parameter_is_stated(method, variant):
    budget = "epsilon=1" if "selection" in variant else budget_of(method)
    learner = make(method, variant, budget=budget)
    facts = learner.learner_facts()
    assert facts.left_out == ()
    stated = RecordedLearner(**asdict(facts))
    made = learner_of(stated, [0, 1, 2], tree=None, **INPUTS)
    assert made.promise() == learner.promise()
