import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from tacit.learners.common.descent import NOISE_IN_LOGIT
from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.prototypes import refinement as module
from tacit.learners.prototypes.refinement import BALANCE, MOMENTS, STEPS, Rest, clip_norm, refine
from tacit.mechanisms.noise import noise_source
from tacit.models.calibration import Slopes
from tacit.models.posterior import ClassPosterior
from tacit.models.rows import unit_rows_about
from tacit.privacy.unit import Unit

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 12)), RNG.integers(0, 4, 300)
CENTRE = RNG.normal(size=12) / 9
ROWS = unit_rows_about(X, CENTRE)
START, SIZES = RNG.normal(size=(4, 12)), np.array([40.0, 100.0, 50.0, 120.0])
CLIP = clip_norm(SIZES)
WITHIN = 0.7
RIDGE = module.RIDGE * WITHIN**2 / (1 - WITHIN)


def known(sizes, within=WITHIN):
    """A posterior of classes of these sizes."""
    nothing = np.zeros((len(sizes), 12))
    return ClassPosterior(nothing, nothing, np.asarray(sizes), 0.5, within)


def damped(moments, damping):
    """The inverse of (moments + damping I)."""
    return np.linalg.inv(moments + damping * np.eye(len(moments)))


@pytest.fixture
def dampings(monkeypatch):
    """What `damping_for` was asked, and what it answered."""
    seen = []
    damping_for = module.damping_for

    def spy(values, deviation, least, most):
        seen.append(
            (values.copy(), deviation, least, most, damping_for(values, deviation, least, most))
        )
        return seen[-1][-1]

    monkeypatch.setattr(module, "damping_for", spy)
    return seen


def rest(multiplier, unit="add-remove"):
    return Rest(multiplier, Unit(unit))


def multipliers(multiplier):
    """Noise of second moments and of a step."""
    return rest(multiplier).noise_of_moments, rest(multiplier).noise_of_step(SIZES)


@pytest.mark.parametrize(
    ("sizes", "clip", "moved"), [(np.full(4, 9.0), 0.5, 2.0), (np.array([1.0, 1e4]), 2**0.5, 1.0)]
)
def test_under_change_label_moments_are_exact_and_each_clip_norm_costs_the_same(sizes, clip, moved):
    """All is spent on the steps: 1/16 = STEPS (moved/deviation)^2."""
    ours = rest(4.0, "change-label")
    assert ours.clip(sizes) == pytest.approx(clip)
    assert (ours.rows_are_public, ours.noise_of_moments) == (True, 0.0)
    assert STEPS * (moved / ours.noise_of_step(sizes)) ** 2 == pytest.approx(1 / 16, rel=1e-4)
    assert rest(0.0, "change-label").rows_are_public is False
    assert rest(4.0).rows_are_public is rest(4.0, "replace").rows_are_public is False


def test_under_replace_steps_move_by_two_and_moments_by_the_root_of_two():
    ours = rest(4.0, "replace")
    spent = 2 / ours.noise_of_moments**2 + STEPS * 4 / ours.noise_of_step(SIZES) ** 2
    assert spent == pytest.approx(1 / 16)


def test_noise_of_moments_and_steps_together_is_that_of_one_gaussian():
    of_moments, of_step = multipliers(4.0)
    assert 1 / of_moments**2 + STEPS / of_step**2 == pytest.approx(1 / 16)
    assert 16 / of_moments**2 == pytest.approx(MOMENTS)
    assert multipliers(0.0) == (0.0, 0.0)
    said = rest(4.0).facts(SIZES)
    assert said["noise multiplier of the second moments"] == of_moments
    assert said["gradient clip norm"] == CLIP
    assert rest(0.0).facts(SIZES)["gradient clip norm"] == "none"
    assert (said["gradient steps"], said["noise multiplier of a step"]) == (STEPS, of_step)


def test_each_release_has_the_noise_that_is_stated(monkeypatch, dampings):
    """Over 2,000 gradients and 300 second moments from no records, in the space of coefficients."""
    multiplier, drawn, moments = 4.0, [], []
    second_moments = module.second_moments

    def kept(blocks, **settings):
        moments.extend(second_moments(blocks, **settings) for _ in range(300))
        return moments[-1].copy()

    def no_descent(gradient, start, rate, steps):
        drawn.extend(gradient(start) for _ in range(2000))
        assert (rate, steps) == (2.0, STEPS)
        return start

    monkeypatch.setattr(module, "second_moments", kept)
    monkeypatch.setattr(module, "descend", no_descent)
    nothing = UnitRows(np.zeros((2, 3)), np.array([0, 1]))
    refine(
        np.ones((2, 3)), nothing, known([30.0, 10.0]), rest(multiplier), noise_source("research", 0)
    )
    ((values, *_, damping),) = dampings
    of_moments, of_step = multipliers(multiplier)
    assert np.stack(moments).std(axis=0).mean() == pytest.approx(of_moments, rel=0.1)
    noise = of_step * clip_norm(np.array([30.0, 10.0])) / (values + damping)
    assert np.stack(drawn).var(axis=0).sum() == pytest.approx(2 * (noise**2).sum(), rel=0.1)


@pytest.mark.parametrize("multiplier", [0.0, 1e-6, 4.0])
def test_the_damping_covers_the_ridge_and_the_noise_of_moments_and_steps(dampings, multiplier):
    refine(
        START, UnitRows(X, Y, CENTRE), known(SIZES), rest(multiplier), noise_source("research", 0)
    )
    ((values, deviation, least, most, damping),) = dampings
    of_moments, of_step = multipliers(multiplier)
    assert least == pytest.approx(RIDGE * 4 + of_moments * 12**0.5)
    assert deviation == pytest.approx(4 * of_step * CLIP * STEPS**1.5 / 3)  # a rate of 4 classes
    assert most == NOISE_IN_LOGIT
    assert damping >= least
    if multiplier == 0:
        assert np.allclose(values, np.linalg.eigvalsh(ROWS.T @ ROWS))


def test_gradients_are_clipped_to_half_where_classes_are_alike():
    assert clip_norm(np.full(9, 70.0)) == 0.5
    assert clip_norm(np.array([10.0, 20.0])) == pytest.approx(0.5 + np.log(2) / 4)
    assert clip_norm(np.array([1.0, 10.0, 100.0])) == 1
    assert 0.6 < CLIP < 0.9


@pytest.mark.parametrize(
    ("within", "ridge"),
    [
        (0.4, module.RIDGE * 0.16 / 0.6),
        (0.7, module.RIDGE * 0.49 / 0.3),
        (0.9, module.LARGEST_RIDGE),
        (1.0, module.LARGEST_RIDGE),
    ],
)
def test_the_ridge_follows_the_share_within_classes_up_to_a_bound(dampings, within, ridge):
    refine(
        START, UnitRows(X, Y, CENTRE), known(SIZES, within), rest(0.0), noise_source("research", 0)
    )
    assert dampings[0][2] == pytest.approx(4 * ridge)


@pytest.mark.parametrize("n_classes", [3, 30])
def test_the_learning_rate_is_the_number_of_classes_within_a_bound(monkeypatch, n_classes):
    monkeypatch.setattr(
        module, "descend", lambda gradient, start, rate, steps: np.full_like(start, rate)
    )
    y, start = np.arange(300) % n_classes, np.zeros((n_classes, 12))
    found = refine(
        start,
        UnitRows(X, y, CENTRE),
        known(np.full(n_classes, 10.0)),
        rest(1.0),
        noise_source("research", 0),
    )
    assert (found == min(n_classes, module.LONGEST)).all()


@pytest.mark.parametrize(("multiplier", "clip"), [(1e-6, CLIP), (0.0, np.inf)])
def test_the_step_is_the_gradient_of_the_scores_beside_log_shares_over_moments(
    monkeypatch, dampings, multiplier, clip
):
    head, found, slopes = RNG.normal(size=(4, 12)), [], Slopes()
    monkeypatch.setattr(
        module, "descend", lambda gradient, start, **_: found.append(gradient(head)) or start
    )
    refine(
        START,
        UnitRows(X, Y, CENTRE),
        known(SIZES),
        rest(multiplier),
        noise_source("research", 0),
        slopes,
    )
    assert (slopes.clip, slopes.balance) == (clip, BALANCE)
    scores = START + head
    assert slopes.noises == [
        pytest.approx(multipliers(multiplier)[1] * CLIP * np.linalg.norm(scores) / SIZES.sum())
    ]
    residual = softmax(ROWS @ scores.T + BALANCE * np.log(SIZES), axis=1) - np.eye(4)[Y]
    residual *= np.minimum(1, clip / np.linalg.norm(residual, axis=1, keepdims=True))
    assert slopes.values[0] == pytest.approx(
        (scores * (residual.T @ ROWS)).sum() / SIZES.sum(), abs=1e-4
    )
    expected = (residual.T @ ROWS + RIDGE * head) @ damped(ROWS.T @ ROWS, dampings[0][-1])
    assert np.allclose(found[0], expected, atol=1e-3 if multiplier else 1e-9)


def test_noise_is_drawn_anew_in_each_step(monkeypatch):
    drawn = []
    noisy_gradient = module.noisy_gradient

    def kept(*arguments, **settings):
        drawn.append(noisy_gradient(*arguments, **settings))
        return drawn[-1]

    monkeypatch.setattr(module, "noisy_gradient", kept)
    nothing = UnitRows(np.zeros((2, 12)), np.array([0, 1]))
    refine(START, nothing, known(SIZES), rest(1e3), noise_source("research", 0))
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

    found = refine(
        START, UnitRows(X, Y, CENTRE), known(sizes), rest(0.0), noise_source("research", 0)
    )
    assert slope(found) < 0.01 * slope(START)


def test_noise_of_the_second_moments_is_not_that_of_a_step(monkeypatch):
    drawn, releases = {}, (module.second_moments, module.noisy_gradient)

    def keep(release):
        def kept(*arguments, **settings):
            released = release(*arguments, **settings)
            drawn.setdefault(
                release.__name__, released / settings["multiplier"] / settings.get("clip", 1.0)
            )
            return released.copy()

        return kept

    for release in releases:
        monkeypatch.setattr(module, release.__name__, keep(release))
    refine(
        START,
        UnitRows(np.zeros((2, 12)), np.array([0, 1])),
        known(SIZES),
        rest(4.0),
        noise_source("research", 0),
    )
    moments, step = (np.round(drawn[name], 6) for name in ("second_moments", "noisy_gradient"))
    assert moments.std() > 0.5
    assert not np.isin(moments, step).any()


@pytest.mark.parametrize("multiplier", [0.0, 0.05])
def test_steps_do_not_oscillate_where_noise_is_small(multiplier):
    """At twice the longest learning rate the loss ends above its start: large classes that hardly
    differ.
    """
    rng, sizes = np.random.default_rng(0), np.array([2000 // 100 ** (c / 9) for c in range(10)])
    y = np.repeat(np.arange(10), sizes.astype(int))
    x = rng.normal(size=(len(y), 32)) + 0.05 * rng.normal(size=(10, 32))[y] + 20 * np.eye(32)[0]
    start, rows = np.zeros((10, 32)), unit_rows_about(x, None)

    def loss(theta):
        return -np.mean(
            log_softmax(rows @ theta.T + BALANCE * np.log(sizes), axis=1)[np.arange(len(y)), y]
        )

    found = refine(
        start, UnitRows(x, y), known(sizes), rest(multiplier), noise_source("research", 0)
    )
    assert loss(found) < loss(start)


def test_in_much_noise_it_stays_where_it_started():
    found = refine(
        START, UnitRows(X, Y, CENTRE), known(SIZES), rest(1e3), noise_source("research", 0)
    )
    rows = unit_rows_about(RNG.normal(size=(500, 12)), None)
    assert (rows @ (found - START).T).std() < 1.5
