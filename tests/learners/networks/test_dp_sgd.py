import math
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import tacit
from learners.blobs import X, Y
from messages import stating
from tacit.errors import BudgetError, InputError, ReleaseError
from tacit.learners.networks import dp_sgd
from tacit.mechanisms.noise import ResearchNoise
from tacit.privacy import accounting
from tacit.privacy.events import SampledGaussian
from tacit.privacy.unit import Unit

# Opacus is imported by the tests alone, since that takes seconds
if find_spec("opacus") is None:
    pytest.skip("Opacus is not installed; it is an extra", allow_module_level=True)
torch = pytest.importorskip("torch", reason="torch is not installed; it is an extra")

FREE = "epsilon=inf,delta=1e-5"


def learner(**given):
    return tacit.DPSGD(
        **{"classes": 4, "sampling_rate": 0.1, "epochs": 4, "random_state": 0, **given}
    )


def first_step(monkeypatch, X, Y, persons=None, **given):
    """The clipped sum and the noisy one of the first step, for all parameters together, and the
    model.
    """
    from opacus.optimizers import DPOptimizer

    steps = []
    add_noise = DPOptimizer.add_noise

    def observed(self):
        clipped = torch.cat([p.summed_grad.flatten() for p in self.params]).cpu()
        add_noise(self)
        steps.append(
            (
                clipped.numpy(),
                torch.cat([p.grad.flatten() for p in self.params]).cpu().numpy().copy(),
            )
        )

    monkeypatch.setattr(DPOptimizer, "add_noise", observed)
    model = learner(sampling_rate=1.0, epochs=1, **given).fit(X, Y, persons=persons)
    return *steps[0], model


def test_it_learns_and_states_its_price():
    model = learner(budget="epsilon=8,delta=1e-5", learning_rate=0.02).fit(X, Y)
    assert np.mean(model.predict(X) == Y) > 0.8
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    ((event, steps),) = model.guarantee_.event.counted()
    assert steps == 40
    assert event == SampledGaussian(model.noise_multiplier_, math.ceil(0.1 * 2**32) / 2**32)
    assert model.guarantee_ == model.promise()
    assert accounting.epsilon(model.guarantee_.event, 1e-5) <= 8
    assert "number of records" in str(model.promise())
    with pytest.raises(ReleaseError, match=stating("DPSGD", "comparison", "release")):
        tacit.Release.of(model)
    again = learner(budget="epsilon=8,delta=1e-5", learning_rate=0.02).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_one_record_moves_the_clipped_sum_by_the_clip_at_most(monkeypatch):
    for clip in (0.01, 0.5):
        own = {"budget": "epsilon=8,delta=1e-5", "clip": clip, "base": "linear"}
        whole, _, _ = first_step(monkeypatch, X[:50], Y[:50], **own)
        moved = [
            np.linalg.norm(
                whole
                - first_step(monkeypatch, np.delete(X[:50], i, 0), np.delete(Y[:50], i), **own)[0]
            )
            for i in range(0, 50, 7)
        ]
        assert max(moved) <= clip * (1 + 1e-4)
        assert max(moved) >= clip * 0.99  # gradients of these rows are longer


PERSONAL = {"unit": "add-remove-person", "n_persons": 20, "budget": "epsilon=8,delta=1e-5"}


@pytest.mark.parametrize("at_once", [7, 256])
def test_one_person_moves_the_clipped_sum_by_the_clip_at_most(monkeypatch, at_once):
    monkeypatch.setattr(dp_sgd, "RECORDS_AT_ONCE", at_once)
    ids = np.arange(60) % 20
    ids[40:] = 3  # a person of 22 records in several classes
    x, y = X[::7][:60], Y[::7][:60]
    assert len(set(y[ids == 3])) > 1
    for clip in (0.01, 0.5):
        own = PERSONAL | {"clip": clip, "base": "linear"}
        whole = first_step(monkeypatch, x, y, persons=ids, **own)[0]
        moved = []
        for person in (0, 3, 7):
            left = ids != person
            moved.append(
                np.linalg.norm(
                    whole - first_step(monkeypatch, x[left], y[left], persons=ids[left], **own)[0]
                )
            )
        assert max(moved) <= clip * (1 + 1e-4)
        assert min(moved) >= clip * 0.99  # gradients of these persons are longer


def test_a_persons_records_are_sampled_together(monkeypatch):
    sampled = []

    def observed(module, x, y, rows, owners, n):
        sampled.append((rows, n))
        assert owners.tolist() == np.unique(ids[rows], return_inverse=True)[1].tolist()
        return found(module, x, y, rows, owners, n)

    found = dp_sgd.set_gradients_of_persons
    monkeypatch.setattr(dp_sgd, "set_gradients_of_persons", observed)
    ids = np.random.default_rng(0).permutation(np.repeat(np.arange(20), np.arange(1, 21)))
    model = learner(**PERSONAL, sampling_rate=0.25, epochs=50, base="linear").fit(
        X[:210], Y[:210], persons=ids
    )
    ((event, steps),) = model.guarantee_.event.counted()
    assert (steps, event.sampling_rate) == (len(sampled), 0.25) == (200, 0.25)
    for rows, n in sampled:
        assert len(np.unique(ids[rows])) == n
        assert np.isin(ids, ids[rows]).sum() == len(rows)  # all records of each person
    shares = np.mean([np.isin(np.arange(20), ids[rows]) for rows, _ in sampled], axis=0)
    # whatever the number of records
    assert np.all(np.abs(shares - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 200))


def test_persons_with_one_record_each_learn_as_records_do():
    budget = {"budget": "epsilon=8,delta=1e-5"}
    records = learner(**budget).fit(X, Y)
    persons = learner(**budget, unit="add-remove-person", n_persons=len(X)).fit(
        X, Y, persons=np.arange(len(X))
    )
    assert persons.guarantee_.event == records.guarantee_.event
    assert np.allclose(persons.predict_proba(X), records.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("unit", "n_persons", "counted"),
    [
        ("add-remove-person", 400, 400),
        ("replace-person", None, 20),
        ("change-labels-of-person", 30, 30),
    ],
)
def test_a_public_number_of_persons_scales_the_steps(monkeypatch, unit, n_persons, counted):
    from opacus.optimizers import DPOptimizer

    seen = []
    set_up = DPOptimizer.__init__

    def observed(self, *given, **named):
        seen.append(named["expected_batch_size"])
        set_up(self, *given, **named)

    monkeypatch.setattr(DPOptimizer, "__init__", observed)
    given = PERSONAL | {"unit": unit, "n_persons": n_persons, "sampling_rate": 0.25, "epochs": 0.5}
    model = learner(**given).fit(X[:200], Y[:200], persons=np.arange(200) % 20)
    assert seen == [0.25 * counted]
    assert model.guarantee_ == model.promise()
    declared = "" if n_persons is None else " (declared)"
    assert model.guarantee_.unprotected == (f"number of persons{declared}",)


def test_noise_is_what_the_event_says(monkeypatch):
    clipped, noisy, model = first_step(monkeypatch, X, Y, budget="epsilon=1,delta=1e-5", clip=0.7)
    noise = noisy - clipped
    assert noise.size > 2000
    assert np.std(noise) == pytest.approx(0.7 * model.noise_multiplier_, rel=0.1)
    assert abs(np.mean(noise)) < 6 * np.std(noise) / math.sqrt(noise.size)


def test_samples_are_independent_coins():
    noise = ResearchNoise(0)
    samples = [
        np.isin(np.arange(101), dp_sgd.poisson_sample(101, 0.25, noise)) for _ in range(4000)
    ]
    shares = np.mean(samples, axis=0)
    assert np.all(np.abs(shares - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 4000))
    # sizes vary
    assert np.var(np.sum(samples, axis=1)) == pytest.approx(101 * 0.25 * 0.75, rel=0.15)
    assert abs(np.corrcoef(np.array(samples)[:, 0], np.array(samples)[:, 1])[0, 1]) < 0.1
    assert dp_sgd.poisson_sample(5, 1.0, noise).tolist() == [0, 1, 2, 3, 4]


def test_without_noise_it_learns_well_and_empty_samples_do_no_harm():
    assert np.mean(learner(budget=FREE, learning_rate=0.02).fit(X, Y).predict(X) == Y) > 0.95
    rare = learner(budget="epsilon=8,delta=1e-5", sampling_rate=0.001, epochs=0.02).fit(X, Y)
    assert np.isfinite(rare.predict_proba(X)).all()


def test_pictures_of_bytes():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 255, (40, 1, 12, 12)).astype(np.uint8)
    model = learner(base="cnn", classes=2, budget="epsilon=8,delta=1e-5").fit(
        pictures, np.arange(40) % 2
    )
    assert model.predict_proba(pictures).shape == (40, 2)
    assert np.allclose(
        model.predict_proba(pictures), model.predict_proba(pictures.astype(float)), atol=1e-5
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"budget": "rho=1"}, "rho=1 is not approximate"),
        ({"budget": "epsilon=1"}, "epsilon=1 is not approximate"),
        ({"noise": "secure"}, "noise='secure'"),
        ({"sampling_rate": 0}, "sampling_rate=0"),
        ({"sampling_rate": 1.5}, "sampling_rate=1.5"),
        ({"epochs": math.nan}, "epochs=nan"),
        ({"epochs": 1e6}, "number of steps"),
        ({"clip": 0}, "clip=0"),
        ({"learning_rate": -1}, "learning_rate=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"base": "cnn"}, "cnn"),
        ({"base": "no"}, "no"),
        ({"base": __import__("sklearn.naive_bayes").naive_bayes.GaussianNB()}, "is not a network"),
        (
            {
                "base": lambda shape, n: torch.nn.Sequential(
                    torch.nn.BatchNorm1d(12), torch.nn.Linear(12, n)
                )
            },
            "GroupNorm",
        ),
        ({"shape": (3, 3)}, r"shape=\(3, 3\)"),
        ({"unit": "add-remove-person"}, stating("public", "n_persons=")),
        ({"unit": "replace-person", "n_persons": 0}, "n_persons=0"),
        ({"unit": "replace-person"}, stating("persons=")),
    ],
)
def test_bad_parameters_are_refused_before_a_charge(given, says, tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger", "data")
    ledger.allow("epsilon=100,delta=1e-5")
    with pytest.raises((InputError, BudgetError), match=says) as caught:
        learner(ledger=ledger, **given).fit(X, Y)
    assert "\n" not in str(caught.value)
    assert not ledger.account().charges


def test_without_opacus_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(InputError, match=r"pip install .*'\.\[dpsgd\]'"):
        learner().fit(X, Y)


@pytest.mark.parametrize("unit", list(Unit))
def test_the_budget_is_read_under_the_unit(unit):
    promise = learner(budget="epsilon=2,delta=1e-5", unit=unit, n_persons=1000).promise()
    assert promise.unit is unit
    assert 1.9 < promise.epsilon(1e-5) <= 2
    ((event, _),) = promise.event.counted()
    rate = math.ceil(0.1 * 2**32) / 2**32
    changes = 1 if "add-remove" in unit else 2
    assert event.sampling_rate == pytest.approx(1 - (1 - rate) ** changes)


def test_what_a_person_costs_a_record():
    """A person who has one record less is a person who leaves and another who comes."""
    promise = learner(**PERSONAL).promise()
    for unit in ("replace-person", "replace", "change-label", "add-remove"):
        assert promise.to(unit).event == promise.event.for_group(2)
    moved = learner(budget="epsilon=1,delta=1e-5").promise().per_person(3)
    assert moved.unit is Unit.ADD_REMOVE_PERSON
    assert moved.event == learner(budget="epsilon=1,delta=1e-5").promise().event.for_group(3)


def test_a_record_that_overflows_contributes_nothing(monkeypatch):
    """Neither its own gradient nor its person, if it has one, nor a value that is not a number in
    anything else.
    """
    wild = X[:50].copy()
    wild[7] = 1e39
    ids = np.arange(50) // 2  # its person has the record before it too
    for given, left in (({}, np.arange(50) != 7), (PERSONAL, ids != ids[7])):
        own = {"budget": "epsilon=8,delta=1e-5", "base": "linear"} | given
        of_all, of_left = ({"persons": ids}, {"persons": ids[left]}) if given else ({}, {})
        with_it, _, model = first_step(monkeypatch, wild, Y[:50], **of_all, **own)
        without = first_step(monkeypatch, wild[left], Y[:50][left], **of_left, **own)[0]
        assert np.isfinite(with_it).all()
        assert np.linalg.norm(with_it - without) <= 1.5 * (1 + 1e-4)
        assert all(torch.isfinite(parameter).all() for parameter in model.module_.parameters())


def in_place(shape, n):
    return torch.nn.Sequential(torch.nn.Linear(shape[0], n), torch.nn.ReLU(inplace=True))


class WithBuffer(torch.nn.Module):
    """Keeps the mean of its last batch."""

    def __init__(self, width, n_classes):
        super().__init__()
        self.linear = torch.nn.Linear(width, n_classes)
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x):
        self.mean.copy_(x.mean(0))
        return self.linear(x)


@pytest.mark.parametrize(
    ("base", "says"),
    [(lambda shape, n: WithBuffer(shape[0], n), "buffers"), (in_place, "single records")],
)
def test_networks_that_keep_or_mix_records_are_refused_before_a_charge(base, says, tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger", "data")
    with pytest.raises(InputError, match=says):
        learner(base=base, ledger=ledger).fit(X, Y)
    assert not ledger.account().charges


EXPECTED_FAILURES = {
    "check_methods_subset_invariance": (
        "on some processors torch rounds a float32 product by how many rows it has"
    )
}


def test_scores_of_a_row_depend_on_other_rows_by_rounding_alone():
    model = learner(budget=FREE, learning_rate=0.02).fit(X, Y)
    alone = np.concatenate([model.decision_function(row[None]) for row in X[:60]])
    np.testing.assert_allclose(alone, model.decision_function(X[:60]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("budget", [FREE, "epsilon=1,delta=1e-5"])
def test_scikit_learn_checks(budget):
    model = tacit.DPSGD(budget, sampling_rate=0.5, epochs=5, learning_rate=0.02, noise="research")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=EXPECTED_FAILURES, on_fail=None)
    assert [
        (one["check_name"], repr(one["exception"])) for one in results if one["status"] == "failed"
    ] == []
    assert sum(one["status"] == "passed" for one in results) > 40
