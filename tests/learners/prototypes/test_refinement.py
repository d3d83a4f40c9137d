import numpy as np
import pytest
from scipy.special import softmax

from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.prototypes import refinement as module
from tacit.learners.prototypes.refinement import BALANCE, CLIP, LONGEST_STEP, RIDGE, STEPS, facts, refine
from tacit.mechanisms.noise import noise_source
from tacit.models.calibration import Slopes
from tacit.models.rows import unit_rows_about

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 12)), RNG.integers(0, 4, 300)
CENTRE = RNG.normal(size=12) / 9
ROWS = unit_rows_about(X, CENTRE)
START, SIZES = RNG.normal(size=(4, 12)), np.array([10.0, 100.0, 50.0, 300.0])


def test_noise_of_the_steps_together_is_that_of_one_gaussian(monkeypatch):
    """Over 2,000 draws from no records."""
    multiplier, drawn = 4.0, []

    def no_descent(gradient, start, rate, steps):
        drawn.extend(gradient(start) for _ in range(2000))
        assert steps == STEPS
        longest = LONGEST_STEP * 2 / 40
        noisy = 3.6 / np.hypot(multiplier * CLIP * STEPS**0.5, (2e-5 * STEPS * 20) ** 0.5) / STEPS**1.5
        assert rate == pytest.approx(min(longest, noisy))
        return start

    monkeypatch.setattr(module, "descend", no_descent)
    nothing = UnitRows(np.zeros((2, 3)), np.array([0, 1]))
    refine(np.ones((2, 3)), nothing, np.array([30.0, 10.0]), multiplier, noise_source("research", 0))
    assert np.stack(drawn).var(axis=0).mean() == pytest.approx(STEPS * multiplier**2 * CLIP**2, rel=0.05)
    assert facts(multiplier)["noise multiplier of a step"] == pytest.approx(multiplier * STEPS**0.5)
    assert facts(multiplier)["gradient steps"] == STEPS


@pytest.mark.parametrize(("multiplier", "clip"), [(1e-6, CLIP), (0.0, np.inf)])
def test_the_gradient_is_that_of_the_scores_beside_log_shares(monkeypatch, multiplier, clip):
    head, found, slopes = RNG.normal(size=(4, 12)), [], Slopes()
    monkeypatch.setattr(module, "descend", lambda gradient, start, **_: found.append(gradient(head)) or start)
    refine(START, UnitRows(X, Y, CENTRE), SIZES, multiplier, noise_source("research", 0), slopes)
    assert (slopes.clip, slopes.balance) == (clip, BALANCE)
    residual = softmax(ROWS @ (START + head).T + BALANCE * np.log(SIZES), axis=1) - np.eye(4)[Y]
    residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
    assert np.allclose(found[0], residual.T @ ROWS + RIDGE * head, atol=0.02 if multiplier else 1e-9)


def test_noise_is_drawn_anew_in_each_step(monkeypatch):
    drawn = []
    noisy_gradient = module.noisy_gradient

    def kept(*arguments, **settings):
        drawn.append(noisy_gradient(*arguments, **settings))
        return drawn[-1]

    monkeypatch.setattr(module, "noisy_gradient", kept)
    nothing = UnitRows(np.zeros((2, 12)), np.array([0, 1]))
    refine(START, nothing, SIZES, 1e3, noise_source("research", 0))
    assert len(drawn) == STEPS
    noise = np.stack([array.ravel() for array in drawn])
    assert np.abs(np.corrcoef(noise) - np.eye(STEPS)).max() < 0.8


def test_without_noise_it_ends_where_the_penalised_loss_is_least():
    """Near enough: the gradient of the mean loss falls to a hundredth."""
    sizes = np.bincount(Y).astype(float)
    added = BALANCE * np.log(sizes / sizes.mean())

    def slope(theta):
        residual = softmax(ROWS @ theta.T + added, axis=1) - np.eye(4)[Y]
        return np.linalg.norm(residual.T @ ROWS + RIDGE * (theta - START))

    found = refine(START, UnitRows(X, Y, CENTRE), sizes, 0.0, noise_source("research", 0))
    assert slope(found) < 0.01 * slope(START)


def test_in_much_noise_it_stays_where_it_started():
    found = refine(START, UnitRows(X, Y, CENTRE), SIZES, 1e3, noise_source("research", 0))
    rows = unit_rows_about(RNG.normal(size=(500, 12)), None)
    assert (rows @ (found - START).T).std() < 1.5
