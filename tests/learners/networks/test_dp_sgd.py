import math

import numpy as np
import pytest

import tacit
from learners.blobs import X, Y
from tacit.errors import BudgetError, InputError, ReleaseError
from tacit.learners.networks import dp_sgd
from tacit.mechanisms.noise import ResearchNoise
from tacit.privacy import accounting
from tacit.privacy.events import SampledGaussian

opacus = pytest.importorskip("opacus", reason="Opacus is not installed; it is an extra")
torch = pytest.importorskip("torch", reason="torch is not installed; it is an extra")

FREE = "epsilon=inf,delta=1e-5"


def learner(**given):
    return tacit.DPSGD(**{"classes": 4, "sampling_rate": 0.1, "epochs": 4, "random_state": 0, **given})


def first_step(monkeypatch, X, Y, **given):
    """The clipped sum and the noisy one of the first step, for all parameters together, and the model."""
    from opacus.optimizers import DPOptimizer

    steps = []
    add_noise = DPOptimizer.add_noise

    def observed(self):
        clipped = torch.cat([p.summed_grad.flatten() for p in self.params])
        add_noise(self)
        steps.append((clipped.numpy(), torch.cat([p.grad.flatten() for p in self.params]).numpy().copy()))

    monkeypatch.setattr(DPOptimizer, "add_noise", observed)
    model = learner(sampling_rate=1.0, epochs=1, **given).fit(X, Y)
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
    with pytest.raises(ReleaseError, match="DPSGD is for comparison only: .* so it has no release; choose another"):
        tacit.Release.of(model)
    again = learner(budget="epsilon=8,delta=1e-5", learning_rate=0.02).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_one_record_moves_the_clipped_sum_by_the_clip_at_most(monkeypatch):
    for clip in (0.01, 0.5):
        own = {"budget": "epsilon=8,delta=1e-5", "clip": clip, "base": "linear"}
        whole, _, _ = first_step(monkeypatch, X[:50], Y[:50], **own)
        moved = [
            np.linalg.norm(whole - first_step(monkeypatch, np.delete(X[:50], i, 0), np.delete(Y[:50], i), **own)[0])
            for i in range(0, 50, 7)
        ]
        assert max(moved) <= clip * (1 + 1e-4)
        assert max(moved) >= clip * 0.99  # gradients of these rows are longer


def test_noise_is_what_the_event_says(monkeypatch):
    clipped, noisy, model = first_step(monkeypatch, X, Y, budget="epsilon=1,delta=1e-5", clip=0.7)
    noise = noisy - clipped
    assert noise.size > 2000
    assert np.std(noise) == pytest.approx(0.7 * model.noise_multiplier_, rel=0.1)
    assert abs(np.mean(noise)) < 6 * np.std(noise) / math.sqrt(noise.size)


def test_samples_are_independent_coins():
    noise = ResearchNoise(0)
    samples = [np.isin(np.arange(101), dp_sgd._poisson_sample(101, 0.25, noise)) for _ in range(4000)]
    shares = np.mean(samples, axis=0)
    assert np.all(np.abs(shares - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 4000))
    assert np.var(np.sum(samples, axis=1)) == pytest.approx(101 * 0.25 * 0.75, rel=0.15)  # sizes vary
    assert abs(np.corrcoef(np.array(samples)[:, 0], np.array(samples)[:, 1])[0, 1]) < 0.1
    assert dp_sgd._poisson_sample(5, 1.0, noise).tolist() == [0, 1, 2, 3, 4]


def test_without_noise_it_learns_well_and_empty_samples_do_no_harm():
    assert np.mean(learner(budget=FREE, learning_rate=0.02).fit(X, Y).predict(X) == Y) > 0.95
    rare = learner(budget="epsilon=8,delta=1e-5", sampling_rate=0.001, epochs=0.02).fit(X, Y)
    assert np.isfinite(rare.predict_proba(X)).all()


def test_pictures_of_bytes():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 255, (40, 1, 12, 12)).astype(np.uint8)
    model = learner(base="cnn", classes=2, budget="epsilon=8,delta=1e-5").fit(pictures, np.arange(40) % 2)
    assert model.predict_proba(pictures).shape == (40, 2)
    assert np.allclose(model.predict_proba(pictures), model.predict_proba(pictures.astype(float)), atol=1e-5)


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
        ({"base": __import__("sklearn.naive_bayes").naive_bayes.GaussianNB()}, "is no network"),
        ({"base": lambda shape, n: torch.nn.Sequential(torch.nn.BatchNorm1d(12), torch.nn.Linear(12, n))}, "GroupNorm"),
        ({"shape": (3, 3)}, r"shape=\(3, 3\)"),
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
    with pytest.raises(InputError, match=r"pip install 'tacit\[dpsgd\]'"):
        learner().fit(X, Y)


@pytest.mark.parametrize("unit", ["replace", "change-label"])
def test_the_budget_is_read_under_the_unit(unit):
    promise = learner(budget="epsilon=2,delta=1e-5", unit=unit).promise()
    assert promise.unit.value == unit
    assert 1.9 < promise.epsilon(1e-5) <= 2


def test_a_record_that_overflows_contributes_nothing(monkeypatch):
    """Neither its own gradient nor a value that is not a number in anything else."""
    wild = X[:50].copy()
    wild[7] = 1e39
    own = {"budget": "epsilon=8,delta=1e-5", "base": "linear"}
    with_it, _, model = first_step(monkeypatch, wild, Y[:50], **own)
    without = first_step(monkeypatch, np.delete(wild, 7, 0), np.delete(Y[:50], 7), **own)[0]
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
