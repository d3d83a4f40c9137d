"""Fits replayed on neighbouring data, with the released values forced to be the same.

Every method under every unit, with each outcome of `auto`, of PATE and of `LabelPrivate`. A pair of
neighbours must lose no more privacy than the guarantee states, over all noise that a fit draws. So
must the worst pairs of each draw together, where draws are not of disjoint records. A replay on a
stranger, which has nothing but public facts in common with the first data, must publish the same.

Not covered: whether samplers have the distribution that they state (`tests/mechanisms`); `DPSGD`,
whose noise is that of Opacus; searches, since a secret number of runs has no loss for one
transcript, and each run is a fit as here.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import tacit
from contracts.learners import (
    CASES,
    CENTRES,
    CLASSES,
    PUBLIC,
    SEVERAL_CASES,
    X,
    Y,
    budget_of,
    labels_for,
    make,
)
from contracts.neighbours import Data, data_sets, neighbours, stranger
from contracts.replay import (
    NOTHING,
    LeakError,
    Tape,
    check_published,
    check_voting,
    check_within,
    costs,
    equal,
    taped,
)
from tacit.learners.prototypes import auto
from tacit.privacy.unit import Unit

PAIRS = 40
MANY = 400
SETTINGS = {
    method: [variant for name, variant in CASES + SEVERAL_CASES if name == method]
    for method in CLASSES
}
SETTINGS["auto"][:2] = [{}, {"names": CENTRES}, {"names": -CENTRES}]
FITS = [(0, "rho=0.5"), (1, "rho=0.01"), (2, "rho=1e5")]  # data set and budget
FITS_OF_AUTO = [(0, "rho=0.01"), (0, "rho=0.5"), (0, "rho=20"), (1, "rho=0.5"), (2, "rho=1e5")]
FITS_OF_LABELS = [(0, "epsilon=1"), (0, "epsilon=12"), (1, "epsilon=3"), (2, "epsilon=0.1")]

NB = {"base": GaussianNB()}
PRIOR = {"prior": [0.6, 0.3, 0.1]}
LABELS = {
    "blocks": {},
    "blocks of names": {"names": CENTRES},
    "blocks of wrong names": {"names": -CENTRES},
    "rr": {"randomizer": "rr"},
    "backward": {"randomizer": "rr", "correction": "backward"},
    "rr, stages": {"randomizer": "rr", "stages": 3} | NB,
    "prior": {"randomizer": "rr-with-prior"} | PRIOR | NB,
    "prior of names": {"randomizer": "rr-with-prior", "names": CENTRES} | NB,
    "prior, stages": {"randomizer": "rr-with-prior", "stages": 3} | NB,
    "clusters": {"randomizer": "rr-with-prior", "prior": "clusters", "n_clusters": 3} | NB,
    "blocks of clusters": {"prior": "clusters", "n_clusters": 4} | NB,
    "symmetric": {"randomizer": "symmetric-unary"} | NB,
    "optimised": {"randomizer": "optimised-unary"} | NB,
    "laplace": {"randomizer": "laplace"} | NB,
    "gaussian": {"randomizer": "gaussian"} | NB,
}

FEW_VOTERS = {
    "n_teachers": 6,
    "teacher": GaussianNB(),
    "student": "linear",
    "student_training": {"epochs": 2},
}
VOTINGS = {
    "gnmax": {"aggregator": "gnmax", "sigma": 3.0},
    "calibrated": {"aggregator": "confident"},
    "confident": {"aggregator": "confident", "sigma": 10.0, "sigma1": 10.0, "threshold": 4.0},
    "interactive": {
        "aggregator": "interactive",
        "sigma": 10.0,
        "sigma1": 10.0,
        "threshold": 2.0,
        "confidence": 0.4,
    },
    "laplace": {"aggregator": "laplace", "gamma": 0.2},
    "limits": {"aggregator": "gnmax", "sigma": 40.0, "n_queries": 20, "n_labels": 10},
    "names": {
        "aggregator": "gnmax",
        "sigma": 3.0,
        "names": CENTRES,
        "student": None,
        "student_training": None,
    },
}
COLLECTORS = ("gnmax", "upsampling", "vanishing", "weighting")

EACH = [
    (method, number, str(unit))
    for method in CLASSES
    if method not in ("pate", "label-private")
    for number, variant in enumerate(SETTINGS[method])
    for unit in CLASSES[method].units
    if not ("counts" in variant and method == "coinpress" and Unit(unit).per_person)
]


def fitted(monkeypatch, learner, data, tape, **arguments):
    """The learner after a fit with the noise of a tape."""
    with taped(monkeypatch, tape), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        persons = data.persons if Unit(learner.unit).per_person else None
        y = labels_for(learner, data.y)
        return learner.fit(data.X, y, persons=persons, **arguments)


def replay(fit, data, unit, pairs, rng):
    """The learner that `fit(data, tape)` fits, and the calls of its tape and of each neighbour's
    replay.

    Parameters
    ----------
    fit : callable
        From a data set and a tape to a fitted learner, or to what was released.
    """
    first = Tape(int(rng.integers(2**31)))
    learner = fit(data, first)

    def replayed(other):
        tape = Tape(0, first.calls)
        check_published(learner, fit(other, tape))
        if len(tape.calls) < len(first.calls):
            raise LeakError(
                f"a replay draws noise {len(tape.calls)} times, and not {len(first.calls)} times"
            )
        return tape.calls

    for _ in range(2):
        replayed(stranger(unit, data, rng))
    others = list(neighbours(unit, data, rng, pairs))
    return learner, first.calls, [(other, replayed(other)) for other in others]


def check_pairs(first, replays, event):
    """Refuse a pair whose loss is above that of the event."""
    for _, calls in replays:
        check_within(sum(costs(first, calls), NOTHING), event, "a pair")


def check_each_draw(first, replays, event):
    """Refuse draws whose largest losses, each of any pair, are together above that of the event."""
    worst = NOTHING
    for of_draw in zip(*(costs(first, calls) for _, calls in replays), strict=True):
        most = NOTHING
        for loss in of_draw:
            most = most.most(loss)
        worst += most
    check_within(worst, event, "the worst pair of each draw")


def check_method(monkeypatch, method, number, unit, pairs, size=30):
    variant = SETTINGS[method][number]
    takes_pure = budget_of(method).startswith("epsilon")
    pure = variant.get("selection") == "permute-and-flip" or takes_pure
    sets, learners = list(data_sets(size)), []
    fits = FITS
    if method == "auto" and "most_labels" not in variant:
        # the route follows what was released
        fits = FITS_OF_AUTO
    for seed, (place, budget) in enumerate(fits):
        rng = np.random.default_rng([0, seed])
        budget = budget.replace("rho", "epsilon") if pure else budget

        def fit(data, tape, budget=budget):
            return fitted(monkeypatch, make(method, variant, budget=budget, unit=unit), data, tape)

        learner, first, replays = replay(fit, sets[place], unit, -(-pairs // len(fits)), rng)
        check_pairs(first, replays, learner.guarantee_.event.base())
        check_each_draw(first, replays, learner.guarantee_.event.base())
        learners.append(learner)
    return learners


@pytest.mark.parametrize(("method", "number", "unit"), EACH)
def test_a_method_loses_what_it_states(monkeypatch, method, number, unit):
    # a simulation in each fit makes these slow
    is_slow = method == "auto" and "most_labels" in SETTINGS[method][number]
    check_method(monkeypatch, method, number, unit, PAIRS // 4 if is_slow else PAIRS)


@pytest.mark.parametrize("number", range(3))
def test_auto_has_every_outcome(monkeypatch, number):
    """Sums of a quarter of the budget, of half of it and of all of it; names that are used and that
    are left out.
    """
    learners = check_method(monkeypatch, "auto", number, "add-remove", 5)
    assert {learner.spent_on_sums_ for learner in learners} == {0.25, 0.5, 1.0}
    used = {learner.names_used_ for learner in learners}
    assert used == ({False}, {True}, {True, False})[number]


@pytest.mark.parametrize("budget", ["rho=0.01", "rho=0.5", "rho=20"])
def test_the_route_of_auto_follows_what_was_released_and_nothing_else(monkeypatch, budget):
    """With the bar exactly at a signal that a fit had, anything else that moves the signal takes
    another route.
    """
    data, signals = next(iter(data_sets(30))), []
    signal = auto.signal

    def noted(posterior, noise_of_sums):
        signals.append(signal(posterior, noise_of_sums))
        return signals[-1]

    def fit(data, tape):
        return fitted(monkeypatch, make("auto", {}, budget=budget), data, tape)

    with monkeypatch.context() as patched:
        patched.setattr(auto, "signal", noted)
        fit(data, Tape(7))
    assert signals
    for bar in signals:
        monkeypatch.setattr(auto, "CLEAR", bar)
        first = Tape(7)
        learner = fit(data, first)
        for other in neighbours("add-remove", data, np.random.default_rng(0), 8):
            check_published(learner, fit(other, Tape(0, first.calls)))


def _parts_of(data, unit):
    """Two masks: parts that follow from the record or person alone, or from a public position."""
    if Unit(unit).per_person:
        first = data.persons % 2 == 0
    elif unit == "add-remove":
        first = data.X[:, 0] > np.median(X[:, 0])
    else:
        first = np.arange(len(data.y)) % 2 == 0
    return first, ~first


@pytest.mark.parametrize(
    ("overlapping", "method"), [(False, None), (True, None), (True, "least-squares")]
)
@pytest.mark.parametrize("unit", ["add-remove", "replace", "change-label", "add-remove-person"])
def test_a_combination_loses_what_it_states(monkeypatch, unit, overlapping, method):
    """Two summaries of disjoint parts, or of the same records, and the release that follows."""
    budgets = {"A": "rho=0.3", "B": "rho=0.5"}
    rng = np.random.default_rng(11)

    def fit(data, tape):
        masks = _parts_of(data, unit)
        summaries = []
        for (part, budget), mask in zip(budgets.items(), masks, strict=True):
            records = data if overlapping else data.where(mask)
            one = tacit.ClassSummary(
                budget,
                classes=3,
                part=part,
                public=PUBLIC,
                allow_overlap=True,
                unit=unit,
                moments=method == "least-squares",
            )
            summaries.append(tacit.Summary.of(fitted(monkeypatch, one, records, tape)))
        # the posterior takes long, and is the same under every unit
        rows = PUBLIC if unit == "add-remove" else None
        release = tacit.combine(summaries, public=rows, method=method, overlapping=overlapping)
        return SimpleNamespace(
            document_=release.document.model_dump(),
            arrays_=release.arrays,
            guarantee_=release.guarantee,
        )

    data = next(iter(data_sets(40)))
    combined, first, replays = replay(fit, data, unit, PAIRS // 2, rng)
    assert combined.guarantee_.rho == pytest.approx(0.8 if overlapping else 0.5)
    check_pairs(first, replays, combined.guarantee_.event.base())
    if overlapping:
        check_each_draw(first, replays, combined.guarantee_.event.base())


def check_labels(monkeypatch, variant, unit, pairs, size=60):
    rng = np.random.default_rng([size, pairs])
    sets, learners = list(data_sets(size)), []
    for place, budget in FITS_OF_LABELS:
        budget = (
            budget.replace("epsilon", "rho") if variant.get("randomizer") == "gaussian" else budget
        )

        def fit(data, tape, budget=budget):
            return fitted(
                monkeypatch, make("label-private", variant, budget=budget, unit=unit), data, tape
            )

        learner, first, replays = replay(
            fit, sets[place], unit, -(-pairs // len(FITS_OF_LABELS)), rng
        )
        check_pairs(first, replays, learner.guarantee_.event)
        learners.append(learner)
    return learners


@pytest.mark.parametrize("unit", CLASSES["label-private"].units)
@pytest.mark.parametrize("name", LABELS)
def test_labels_lose_what_their_randomizer_states(monkeypatch, name, unit):
    check_labels(monkeypatch, LABELS[name], unit, PAIRS)


def test_label_private_has_every_outcome(monkeypatch):
    """Names that the first labels confirm or contradict, by enough labels, and powers of the prior
    from 0 on.
    """
    variants = [LABELS["blocks of names"], LABELS["blocks of wrong names"]]
    learners = []
    for variant in variants:
        learners += check_labels(monkeypatch, variant, "change-label", 4, size=300)
    assert {learner.names_used_ for learner in learners} == {True, False}
    assert {learner.prior_power_ for learner in learners} > {0.0, 1.0}


def check_votes(monkeypatch, parameters, unit, pairs, groups=None, **arguments):
    """Fits of PATE, whose queries are those that were asked, and labels those that were bought."""
    rng = np.random.default_rng(5)
    at = rng.permutation(len(Y))[:60]
    data = Data(X[at], Y[at], rng.integers(0, 24, 60))

    def fit(data, tape):
        learner = make("pate", FEW_VOTERS | parameters, unit=unit)
        return fitted(monkeypatch, learner, data, tape, groups=groups)

    learner, first, replays = replay(fit, data, unit, pairs, rng)
    for other, calls in replays:
        changed = np.zeros(len(Y), dtype=bool) if groups is None else _changed(data, other)
        named = [None] if groups is None else np.unique(groups[changed])
        for group in named:
            check_voting(first, calls, learner.answers_, group)
    return learner


def _changed(data, other):
    return np.any(data.X != other.X, axis=1) | (data.y != other.y)


@pytest.mark.parametrize("unit", CLASSES["pate"].units)
@pytest.mark.parametrize("name", VOTINGS)
def test_votes_lose_what_the_filter_states(monkeypatch, name, unit):
    budget = "rho=0.5" if name in ("laplace", "limits") else "epsilon=3,delta=1e-5"
    check_votes(monkeypatch, VOTINGS[name] | {"budget": budget}, unit, PAIRS)


@pytest.mark.parametrize("collector", COLLECTORS)
def test_votes_of_budget_groups_lose_what_each_group_allows(monkeypatch, collector):
    groups = np.where(np.arange(60) % 3 == 0, "low", "high")
    parameters = VOTINGS["confident"] | {
        "budgets": {"low": 1.5, "high": 3.0},
        "collector": collector,
    }
    check_votes(monkeypatch, parameters, "replace", PAIRS, groups)


VOTINGS_OF_MANY = {
    "gnmax": {"aggregator": "gnmax", "sigma": 150.0},
    "confident": {"aggregator": "confident", "sigma": 60.0, "sigma1": 80.0, "threshold": 160.0},
    "laplace": {"aggregator": "laplace", "gamma": 0.01},
}


@pytest.mark.parametrize("name", VOTINGS_OF_MANY)
def test_votes_on_many_queries_lose_what_the_filter_states(monkeypatch, name):
    """The filter acts on blocks of 512 queries, and this voting ends in a later one."""
    rng = np.random.default_rng(3)
    votes = np.where(rng.random((4000, 50)) < 0.5, 1, rng.integers(0, 3, (4000, 50)))
    opposite, anything = votes.copy(), votes.copy()
    opposite[:, 7] = np.where(votes[:, 7] == 1, 0, 1)
    anything[:, 0] = rng.integers(0, 3, 4000)

    def answers(ballots, tape):
        with taped(monkeypatch, tape):
            return tacit.pate.aggregate(ballots, classes=3, budgets=2.0, **VOTINGS_OF_MANY[name])

    first = Tape(0)
    released = answers(votes, first)
    assert 512 < released.asked < 4000
    for ballots in (opposite, anything):
        tape = Tape(0, first.calls)
        assert equal(released, answers(ballots, tape))
        check_voting(first.calls, tape.calls, released)
    assert equal(released, answers(2 - votes, Tape(0, first.calls)))


SMALL = [("noisy-sum", 0), ("gradient-descent", 1), ("public", 1), ("coinpress", 0)]


@pytest.mark.parametrize(("method", "number"), SMALL)
def test_a_few_pairs(monkeypatch, method, number):
    """In little time, so that `make check` has some too."""
    for unit in ("replace", "add-remove-person"):
        check_method(monkeypatch, method, number, unit, 3)


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "number", "unit"), EACH)
def test_many_pairs_of_larger_data(monkeypatch, method, number, unit):
    pairs = MANY // 10 if method == "auto" else MANY
    check_method(monkeypatch, method, number, unit, pairs, size=90)


@pytest.mark.thorough
@pytest.mark.parametrize("unit", CLASSES["label-private"].units)
@pytest.mark.parametrize("name", LABELS)
def test_labels_of_larger_data(monkeypatch, name, unit):
    check_labels(monkeypatch, LABELS[name], unit, MANY // 4, size=200)


def test_a_leak_is_noticed(monkeypatch):
    """A learner that states the number of its records, and one whose noise covers half of a
    record.
    """
    noisy_sum = CLASSES["noisy-sum"]
    fit = noisy_sum._fit

    def counting(self, prepared, noise):
        released = fit(self, prepared, noise)
        released.mechanism["records"] = len(prepared.labels)
        return released

    with monkeypatch.context() as patch:
        patch.setattr(noisy_sum, "_fit", counting)
        with pytest.raises(LeakError, match="depends on private data"):
            check_method(patch, "noisy-sum", 0, "add-remove", 3)
    with monkeypatch.context() as patch:
        patch.setattr("tacit.mechanisms.gaussian.sensitivity", lambda unit, *_, **__: unit / 2)
        with pytest.raises(AssertionError, match="spends rho"):
            check_method(patch, "noisy-sum", 0, "add-remove", 3)
