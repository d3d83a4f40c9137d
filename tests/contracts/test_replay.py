"""Fits replayed on neighbouring data, with the released values forced to be the same.

Every method, unit and outcome of `auto`, PATE and `LabelPrivate`. Each pair must lose no more privacy than the
guarantee states, summed over all noise that was drawn, and so must the worst pairs of each single draw together. A
replay on data that have nothing in common with the first but public facts must publish the same.

Not covered: randomness that a test of a distribution must see (`tests/mechanisms`), `DPSGD`, whose noise is Opacus's
own, and searches with a secret number of runs, whose theorem is not one of released values.
"""

import warnings

import numpy as np
import pytest

from contracts.learners import CASES, CLASSES, CENTRES, PUBLIC, make
from contracts.neighbours import data_sets, neighbours, stranger
from contracts.replay import NOTHING, Tape, check_published, check_within, costs, taped
from tacit.privacy.unit import Unit

SETTINGS = {method: [variant for name, variant in CASES if name == method] for method in CLASSES}
SETTINGS["auto"] = [{}, {"names": CENTRES}, {"names": CENTRES[::-1]}]
BUDGETS = ("rho=0.5", "rho=0.01", "rho=1e5")
EACH = [
    (method, number, str(unit))
    for method in CLASSES
    if method not in ("pate", "label-private")
    for number, variant in enumerate(SETTINGS[method])
    for unit in CLASSES[method].units
    if not ("counts" in variant and method == "coinpress" and Unit(unit).per_person)
]


def fitted(monkeypatch, learner, data, tape):
    """The learner after a fit with the noise of a tape."""
    with taped(monkeypatch, tape), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        persons = data.persons if Unit(learner.unit).per_person else None
        return learner.fit(data.X, data.y, persons=persons)


def replay(monkeypatch, make_learner, data, unit, pairs, rng):
    """The learner after its fit, and the losses of each pair of neighbours, one for each event."""
    first = Tape(int(rng.integers(2**31)))
    learner = fitted(monkeypatch, make_learner(), data, first)

    def replayed(other):
        tape = Tape(0, first.calls)
        check_published(learner, fitted(monkeypatch, make_learner(), other, tape))
        assert len(tape.calls) == len(first.calls), "a replay draws less noise"
        return tape.calls

    for _ in range(2):
        replayed(stranger(unit, data, rng))
    losses = [costs(first.calls, replayed(other)) for other in neighbours(unit, data, rng, pairs)]
    return learner, losses


def check_losses(losses, event):
    """Each pair within the event; and so the worst pairs of each single draw together."""
    for of_pair in losses:
        check_within(sum(of_pair, NOTHING), event, "a pair")
    worst = NOTHING
    for of_event in zip(*losses, strict=True):
        most = NOTHING
        for one in of_event:
            most = most.most(one)
        worst += most
    check_within(worst, event, "the worst pair of each draw")


def check_method(monkeypatch, method, number, unit, pairs, size=30):
    variant = SETTINGS[method][number]
    pure = variant.get("selection") == "permute-and-flip"
    rng = np.random.default_rng([list(CLASSES).index(method), number, list(Unit).index(Unit(unit))])
    learners = []
    for budget, data in zip(BUDGETS, data_sets(size), strict=True):
        budget = budget.replace("rho", "epsilon") if pure else budget

        def learner(budget=budget):
            return make(method, variant, budget=budget, unit=unit)

        fit, losses = replay(monkeypatch, learner, data, unit, -(-pairs // 3), rng)
        check_losses(losses, fit.guarantee_.event.base())
        learners.append(fit)
    return learners


@pytest.mark.parametrize(("method", "number", "unit"), EACH)
def test_a_replay_differs_by_what_the_guarantee_states(monkeypatch, method, number, unit):
    check_method(monkeypatch, method, number, unit, 40)
