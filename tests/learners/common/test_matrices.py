"""Learners whose cost grows with the square of the columns say so, and refuse what does not fit,
before a charge.
"""

import warnings

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.compute import memory
from tacit.errors import InputError
from tacit.learners.common import matrices
from tacit.models import spectra

WIDTH = 60
PUBLIC = np.random.default_rng(0).normal(size=(40, WIDTH))
X, Y = PUBLIC + 1, np.arange(40) % 2
LEARNERS = {
    "auto": (tacit.AutoPrototypes, {"public": PUBLIC}, 3.0 + 12 * 40 / (8 * WIDTH)),
    "least-squares": (tacit.LeastSquares, {}, 2.5),
    "least-squares, by class": (tacit.LeastSquares, {"alpha": 0.5}, 7),
    "feature-covariance": (tacit.FeatureCovariance, {"epochs": 1}, 2.5),
    "newton": (tacit.Newton, {"epochs": 1}, 12),
    "newton, not pooled": (tacit.Newton, {"epochs": 1, "pooled": False}, 8),
}
ALL = pytest.mark.parametrize("name", LEARNERS)


def make(name, **given):
    kind, parameters, _ = LEARNERS[name]
    return kind(**{"budget": "rho=0.5", "classes": 2} | parameters | given)


@ALL
def test_what_does_not_fit_is_refused_before_a_charge(name, monkeypatch, tmp_path):
    ledger, size = (
        tacit.Ledger(tmp_path / "ledger.jsonl", "records"),
        int(LEARNERS[name][2] * 8 * WIDTH**2),
    )
    ledger.allow("rho=9")
    monkeypatch.setattr(matrices, "available_memory", lambda: size - 1)
    with pytest.raises(InputError, match=stating("60 columns", "60 x 60", "fewer")):
        make(name, ledger=ledger).fit(X, Y)
    search = tacit.GridSearch(make(name), [{}], budget="rho=0.5", classes=2, ledger=ledger)
    with pytest.raises(InputError, match=stating("fewer columns")):
        search.fit(X, Y)
    assert not ledger.account().charges
    monkeypatch.setattr(matrices, "available_memory", lambda: size)
    make(name, ledger=ledger).fit(X, Y)
    monkeypatch.setattr(matrices, "available_memory", lambda: None)  # the system does not tell
    make(name).fit(X, Y)


@ALL
@pytest.mark.parametrize("limit", ["WARN_BYTES", "WARN_SECONDS"])
def test_what_takes_much_is_said_before_it_starts(name, limit, monkeypatch):
    learner = make(name, noise="research")
    monkeypatch.setattr(matrices, limit, 0)
    monkeypatch.setattr(type(learner), "_fit", stop)
    with pytest.warns(UserWarning, match=stating("GB", "0 seconds")), pytest.raises(Stopped):
        learner.fit(X, Y)


class Stopped(Exception):
    pass


def stop(*given):
    raise Stopped


def test_the_time_counts_spectra_and_secure_noise(monkeypatch):
    monkeypatch.setattr(matrices, "available_memory", lambda: None)
    monkeypatch.setattr(matrices, "thread_count", lambda: 2)
    with pytest.warns(UserWarning, match=stating("1.6 GB", "6 minutes")):
        matrices.Matrices(2, decomposed=1, noised=1).check(10_000)
    with pytest.warns(UserWarning, match="roughly 100 seconds"):
        matrices.Matrices(2, decomposed=1).check(10_000)


@pytest.mark.parametrize("available", [None, 2**40])
def test_wide_rows_get_two_gigabytes_however_much_there_is(available, monkeypatch):
    monkeypatch.setattr(matrices, "available_memory", lambda: available)
    line = (
        r"10000 columns make matrices of 10000 x 10000, which take about 2.4 GB of memory; "
        r"the most beyond 4096 columns is 2.15 GB; project all rows to fewer columns, by a PCA"
    )
    with pytest.raises(InputError, match=line):
        matrices.Matrices(3, decomposed=1).check(10_000)
    with pytest.warns(UserWarning, match="take about 6.71 GB"):
        matrices.Matrices(50, decomposed=1).check(4096)
    with pytest.warns(UserWarning, match=r"take about 1.98 GB"):
        matrices.Matrices(3, decomposed=1, public_rows=16_384).check(7_000)
    with pytest.raises(InputError, match=r"take about 2.16 GB"):
        matrices.Matrices(3, decomposed=1, public_rows=16_384).check(7_500)


@pytest.mark.parametrize("kind", ["auto", "least-squares", "newton"])
def test_only_draws_of_opendp_count_in_the_time(kind, monkeypatch):
    monkeypatch.setattr(matrices, "DRAW", 1e9)
    for given, draws in (
        ({"noise": "opendp"}, True),
        ({"noise": "opendp", "budget": "rho=inf"}, False),
        ({}, False),
        ({"noise": "research"}, False),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(kind, **given).check(len(X), WIDTH)
        assert bool(caught) == draws


@pytest.mark.parametrize("budget", ["rho=1e4", "rho=0.001"])
def test_auto_learns_from_wide_rows_along_few_axes(budget, monkeypatch, tmp_path):
    monkeypatch.setattr(spectra, "MOST_AXES", 10)
    model = make("auto", budget=budget, noise="research", random_state=0).fit(X, Y)
    assert model.axes_.shape == (WIDTH, 10)
    release = tacit.Release.load(
        tacit.Release.of(model).save(tmp_path / "out", allow_research=True)
    ).verify()
    assert np.array_equal(release.predict(X), model.predict(X))


def test_the_available_memory_is_that_of_the_container_at_most(monkeypatch, tmp_path):
    machine, container = tmp_path / "meminfo", tmp_path / "memory.max"
    machine.write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", machine)
    monkeypatch.setattr(memory, "LIMIT", container)
    assert memory.available_memory() == 8000 * 1024
    container.write_text("1000\n")
    assert memory.available_memory() == 1000
    container.write_text("max\n")
    assert memory.available_memory() == 8000 * 1024
    machine.unlink()
    assert memory.available_memory() > 0
