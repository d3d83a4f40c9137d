"""Black-box audits: quiet on learners that keep their promise, loud on learners that do not."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

import tacit
from tacit.errors import InputError
from tacit.measure.auditing import black_box
from tacit.measure.auditing.attacks import ATTACKS
from tacit.measure.auditing.black_box import bounds_of
from tacit.measure.auditing.game import game_of
from tacit.measure.auditing.of_release import Refit
from tacit.privacy.events import Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(150, 24))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
LABELS = np.arange(150) % 4
GAME = game_of(ROWS, LABELS, Unit.ADD_REMOVE, n_classes=4, needs_public=False, records=60, rng=RNG)
PROMISE = Guarantee(Unit.ADD_REMOVE, Gaussian(1.0))


class Sums:
    """Class sums of unit rows with Gaussian noise, and a softmax of inner products."""

    def __init__(self, rows, labels, seed, noise):
        self.sums = np.eye(4)[labels].T @ rows
        self.sums += noise * np.random.default_rng(seed).normal(size=self.sums.shape)

    def predict_proba(self, rows):
        return softmax(rows @ self.sums.T, axis=1)


def fit(rows, labels, persons, seed, noise=1.0):
    return Sums(rows, labels, seed, noise)


class Memory:
    """Gives each row the label of the same record, if it is in the data."""

    def __init__(self, rows, labels):
        self.records = {row.tobytes(): label for row, label in zip(rows, labels, strict=True)}

    def predict_proba(self, rows):
        labels = [self.records.get(row.tobytes()) for row in rows]
        return np.array([np.full(4, 0.25) if i is None else np.eye(4)[i] for i in labels])


def memorise(rows, labels, persons, seed):
    return Memory(rows, labels)


audit = partial(black_box.black_box_audit, game=GAME, promise=PROMISE, subject="it", delta=1e-5)


def test_a_true_promise_is_approached_and_not_exceeded():
    found = audit(fit, refits=512)
    assert 2 < found.epsilon_lower < found.promise
    assert not found.exceeded
    assert len(found.bounds) == 2 * len(ATTACKS)
    assert found.setup == "512 refits"
    # an alarm asks for more than a bound
    assert all(bound.at_alarm <= bound.epsilon for bound in found.bounds)


def test_half_the_noise_is_noticed():
    assert audit(partial(fit, noise=0.5), refits=512).exceeded


def test_memory_is_noticed_in_few_refits():
    found = audit(memorise, refits=256)
    assert found.exceeded
    assert found.best.at_alarm > found.promise


def test_an_audit_resumes_from_its_checkpoint_and_no_other(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    whole = audit(fit, refits=24, folder=folder, key="a")
    parts = sorted(folder.glob("signals-*"))
    assert len(parts) == 3
    parts[1].unlink()
    parts[2].write_bytes(b"damaged")

    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return fit(*arguments)

    assert audit(counted, refits=24, folder=folder, key="a").bounds == whole.bounds
    assert len(calls) == 16
    with pytest.raises(InputError, match="holds work on other"):
        audit(fit, refits=24, folder=folder, key="b")


def test_the_number_of_refits_follows_the_time_and_is_kept(tmp_path, monkeypatch):
    times = iter([0.0, 8.0])
    monkeypatch.setattr(black_box, "perf_counter", lambda: next(times))
    monkeypatch.setattr(black_box, "SECONDS", 40.0)
    assert audit(fit, folder=tmp_path / "run").setup == "32 refits"
    # the second run takes the number from the folder
    assert audit(fit, folder=tmp_path / "run").setup == "32 refits"
    with pytest.raises(InputError, match="refits=15 must be 16 or more"):
        audit(fit, refits=15)


def test_a_part_of_the_refits_can_run_in_another_process():
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=4, noise="research")
    refit = partial(black_box._refit_part, Refit(learner, np.arange(4)), GAME, 0, 1)
    assert np.array_equal(pickle.loads(pickle.dumps(refit))(), refit())
    assert learner.random_state is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_never_reads_the_coins_that_it_guesses(attack):
    """Scores of refits depend on nothing but their signals and the learning refits."""
    signals = black_box.Signals(*RNG.normal(size=(3, 20, 8)))
    coins = RNG.random((20, 8)) < 0.5
    learning = signals.of_refits(slice(10))
    together = ATTACKS[attack](learning, coins[:10], signals.of_refits(slice(10, None)))
    alone = ATTACKS[attack](learning, coins[:10], signals.of_refits(slice(10, 11)))
    assert np.array_equal(together[:1], alone)


def test_signals_without_a_trace_of_the_coins_prove_nothing():
    signals = black_box.Signals(*RNG.normal(size=(3, 200, 20)))
    coins = RNG.random((200, 20)) < 0.5
    bounds = bounds_of(signals, coins, PROMISE, 1e-5)
    assert max(bound.epsilon for bound in bounds) < 0.2
    # under a promise without Gaussian noise, rates bound epsilon itself
    pure = tacit.PublicPrototypes("epsilon=1", public=ROWS, classes=4).promise()
    assert {bound.assumption for bound in bounds_of(signals, coins, pure, 1e-5)} == {
        black_box.FAIR_COINS,
        black_box.INDEPENDENT_RUNS,
    }
