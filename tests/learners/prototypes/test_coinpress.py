import math

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetError, InputError
from tacit.learners.prototypes.coinpress import PAPER_STEPS
from tacit.mechanisms.gaussian import UNIT, class_sums
from tacit.privacy.events import Gaussian, Parallel


def direct(x, y, counts, rho, rng, steps=PAPER_STEPS):
    """Section 2 of the specification in plain numpy, with declared counts; returns centres and
    steps.
    """
    d = x.shape[1]
    gamma = math.sqrt(d + 2 * math.sqrt(d * math.log(100)) + 2 * math.log(100))
    centres, trace = [], []
    for c, n in enumerate(counts):
        rows, centre, r = x[y == c], np.zeros(d), math.sqrt(d)
        for share in steps:
            clip = min(math.sqrt(r**2 + 6 * r + gamma**2), r + gamma)
            norms = np.linalg.norm(rows - centre, axis=1, keepdims=True)
            clipped = (rows - centre) * np.minimum(1, clip / np.maximum(norms, 1e-300))
            sd = clip / n / math.sqrt(2 * share * rho)
            trace.append((r, clip, sd))
            centre = centre + clipped.sum(axis=0) / n + rng.normal(size=d) * sd
            r = math.sqrt(1 / n + sd**2) * gamma
        centres.append(centre)
    return np.array(centres), trace


def clip_of(radius, width):
    gamma = math.sqrt(width + 2 * math.sqrt(width * math.log(100)) + 2 * math.log(100))
    return min(math.sqrt(radius**2 + 6 * radius + gamma**2), radius + gamma)


def published_sum(x, centre, clip):
    """The sum of a step of a published version: it adds the centre back to rows outside the ball
    alone.
    """
    moved = x - centre
    norms = np.linalg.norm(moved, axis=1, keepdims=True)
    return np.where(norms > clip, centre + moved * clip / norms, moved).sum(axis=0)


def test_the_published_step_misses_the_mean_by_three_and_ours_finds_it():
    """Without noise, for 5,000 records of unit variance about a mean of length 12."""
    n, width = 5000, 64
    x = np.random.default_rng(0).normal(size=(n, width)) + 12 / math.sqrt(width)
    centre, radius = np.zeros(width), math.sqrt(width)
    for _ in range(3):
        centre = published_sum(x, centre, clip_of(radius, width)) / n
        radius = clip_of(0, width) / math.sqrt(n)  # at radius 0 the clip is gamma
    assert np.linalg.norm(centre - x.mean(axis=0)) == pytest.approx(3.2, abs=0.05)
    ours = tacit.CoinPressPrototypes(
        "rho=1e9", classes=1, counts=n, steps=PAPER_STEPS, noise="research", random_state=0
    )
    found = ours.fit(x, np.zeros(n, int)).prototypes_[0]
    assert np.linalg.norm(found - x.mean(axis=0)) < 0.02


@pytest.mark.parametrize(
    ("width", "times", "rho"), [(16, 1.9, 3.7), (64, 1.6, 2.5), (1024, 1.2, 1.4)]
)
def test_one_record_moves_the_published_sum_beyond_its_bound_and_ours_to_it(width, times, rho):
    """Replacing a record just inside the ball by one outside, where the last step found a centre of
    length 12.
    """
    centre = np.zeros(width)
    centre[0] = 12.0
    clip = clip_of(clip_of(0, width) / math.sqrt(5000), width)
    out = centre / 12
    before, after = (
        row[None] for row in (centre - out * clip * (1 - 1e-12), centre + out * 2 * clip)
    )
    moved = np.linalg.norm(published_sum(after, centre, clip) - published_sum(before, centre, clip))
    claimed = 2 * clip
    assert moved / claimed == pytest.approx(times, abs=0.05)
    assert (moved / claimed) ** 2 == pytest.approx(rho, abs=0.05)  # rho = bound^2/(2 sd^2)
    one, other = (
        class_sums(
            [(row, np.zeros(1, int))],
            n_classes=1,
            width=width,
            balls=(centre[None], np.array([clip])),
        ).astype(float)
        for row in (before, after)
    )
    assert 2 * (1 - 1e-6) < np.linalg.norm(one - other) / UNIT <= 2


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [200, 100, 50])
    return rng.normal(size=(3, 8))[y] * 2 + rng.normal(size=(350, 8)), y


def fit(x, y, budget="rho=8", **parameters):
    return tacit.CoinPressPrototypes(
        budget, classes=3, noise="research", random_state=0, **parameters
    ).fit(x, y)


@pytest.mark.parametrize("steps", [(1.0,), PAPER_STEPS])
def test_the_steps_are_those_of_the_specification(blobs, steps):
    x, y = blobs
    counts = [200, 100, 50]
    model = fit(x, y, counts=counts, steps=steps)
    _, trace = direct(x, y, counts, 8.0, np.random.default_rng(0), steps)
    assert len(model.steps_) == len(steps)
    for i, step in enumerate(model.steps_):
        for c in range(3):
            radius, clip, sd = trace[len(steps) * c + i]
            assert step.radius[c] == pytest.approx(radius)
            assert step.clip[c] == pytest.approx(clip)
            assert step.noise[c] == pytest.approx(sd)
    assert np.array_equal(model.steps_[-1].norm, np.linalg.norm(model.prototypes_, axis=1))


@pytest.mark.parametrize("steps", [(1.0,), PAPER_STEPS])
def test_the_centres_are_those_of_the_specification_where_noise_is_small(blobs, steps):
    x, y = blobs
    model = fit(x, y, "rho=1e9", counts=[200, 100, 50], steps=steps)
    expected, _ = direct(x, y, [200, 100, 50], 1e9, np.random.default_rng(0), steps)
    assert np.allclose(model.prototypes_, expected, atol=1e-4)


def test_the_default_is_one_step(blobs):
    default = fit(*blobs, counts=[200, 100, 50])
    one_step = fit(*blobs, counts=[200, 100, 50], steps=(1.0,))
    assert np.array_equal(default.prototypes_, one_step.prototypes_)
    assert len(default.promise().events) == 1


def test_noise_of_a_declared_count_does_not_look_at_the_real_one(blobs):
    x, y = blobs
    few = fit(x[:10], y[:10], counts=100)
    many = fit(x, y, counts=100)
    assert np.array_equal(few.steps_[0].noise, many.steps_[0].noise)
    assert many.guarantee_.unprotected == ("class counts (declared)",)


def test_noisy_counts_are_paid_for_and_near_the_truth(blobs):
    x, y = blobs
    model = fit(x, y, "rho=8", steps=PAPER_STEPS)
    assert model.guarantee_.rho == pytest.approx(8)
    assert len(model.guarantee_.events) == 4
    assert model.guarantee_.unprotected == ()
    multipliers = [step.noise / step.clip for step in model.steps_]
    z = Gaussian(1 / math.sqrt(2 * 8 * 0.95 * 5 / 64)).noise_multiplier
    assert z / multipliers[0] == pytest.approx([200, 100, 50], rel=0.1)


def test_an_overflowing_record_moves_the_mean_no_more_than_the_clip(blobs):
    """One finite record whose pooled value overflows; its neighbours' contributions must not move
    either.
    """
    x, y = blobs
    huge = np.full((1, 8), 1.7e308)
    with np.errstate(over="ignore"):
        without = fit(x, y, counts=100, pooling=2)
        with_it = fit(np.concatenate([x, huge]), np.append(y, 0), counts=100, pooling=2)
        scaled = fit(np.concatenate([x, huge]), np.append(y, 0), counts=100, public=x / 100)
    assert np.array_equal(without.prototypes_, with_it.prototypes_)
    assert np.isfinite(scaled.prototypes_).all()


@pytest.mark.parametrize("n", [1, 2])
def test_many_steps_on_little_budget_stay_finite(n):
    model = tacit.CoinPressPrototypes(
        "rho=0.5",
        classes=2,
        counts=[1, 50],
        steps=[1 / 150] * 150,
        noise="research",
        random_state=0,
    ).fit(np.ones((n, 3)), np.zeros(n))
    assert np.isfinite(model.prototypes_).all()
    assert all(np.isfinite(step.radius).all() for step in model.steps_)


def test_bought_counts_are_noisy_at_low_budgets(blobs):
    fits = [
        tacit.CoinPressPrototypes("rho=0.01", classes=3, noise="research", random_state=seed).fit(
            *blobs
        )
        for seed in range(30)
    ]
    # proportional to the counts
    counts = np.array([fit.steps_[0].clip / fit.steps_[0].noise for fit in fits])
    deviation = counts.std(axis=0) / counts.mean(axis=0) * [200, 100, 50]
    assert deviation == pytest.approx(np.full(3, math.sqrt(1 / (2 * 0.01 * 0.05))), rel=0.5)


@pytest.mark.parametrize("steps", [(1.0,), (0.1, 0.9), PAPER_STEPS])
def test_what_is_released_is_as_noisy_as_promised(steps):
    """The mean of a class without records is noise alone: of clip/N, times the multiplier of each
    step's event.
    """
    width, count = 3000, 40
    model = tacit.CoinPressPrototypes(
        "rho=0.5", classes=3, counts=count, steps=steps, noise="research", random_state=0
    ).fit(np.ones((1, width)), [0])
    clips = [step.clip[1] for step in model.steps_]
    multipliers = [event.event.noise_multiplier for event in model.promise().events]
    expected = math.hypot(*[z * clip / count for z, clip in zip(multipliers, clips, strict=True)])
    assert np.std(model.prototypes_[1:]) == pytest.approx(expected, rel=0.05)


def test_bought_counts_are_as_noisy_as_promised():
    n_classes, size = 2000, 20
    labels = np.repeat(np.arange(n_classes), size)
    model = tacit.CoinPressPrototypes(
        "rho=8", classes=n_classes, noise="research", random_state=0
    ).fit(np.ones((len(labels), 1)), labels)
    *_, of_counts = (event.event.noise_multiplier for event in model.promise().events)
    first = model.promise().events[0].event.noise_multiplier
    counts = first * model.steps_[0].clip / model.steps_[0].noise
    assert np.std(counts) == pytest.approx(of_counts, rel=0.08)
    assert np.mean(counts) == pytest.approx(size, abs=0.15)


def test_declared_steps_are_the_events():
    model = tacit.CoinPressPrototypes("rho=2", classes=3, counts=5, steps=(0.25, 0.75))
    z = 1 / math.sqrt(4)
    assert [event.event.noise_multiplier for event in model.promise().events] == pytest.approx(
        [z / math.sqrt(0.25), z / math.sqrt(0.75)]
    )
    assert all(isinstance(event, Parallel) for event in model.promise().events)
    assert model.promise().rho == pytest.approx(2)


def test_infinite_budget_is_the_class_mean_bit_for_bit(blobs):
    x, y = blobs
    for budget in ("epsilon=inf", "rho=inf"):
        model = fit(x, y, budget)
        assert np.array_equal(
            model.prototypes_, np.stack([x[y == c].mean(axis=0) for c in range(3)])
        )
        assert model.steps_ == ()


def test_pooling_averages_consecutive_columns_and_drops_the_rest(blobs):
    x, y = blobs
    model = fit(x, y, "rho=inf", pooling=3)
    pooled = np.stack([x[:, :3].mean(axis=1), x[:, 3:6].mean(axis=1)], axis=1)
    assert np.allclose(model.prototypes_, [pooled[y == c].mean(axis=0) for c in range(3)])
    assert model.predict(x).shape == (350,)


def test_public_rows_set_the_scale(blobs):
    x, y = blobs
    wide = fit(x * 1000, y, counts=[200, 100, 50], public=x * 1000, allow_overlap=True)
    narrow = fit(x / 1000, y, counts=[200, 100, 50], public=x / 1000, allow_overlap=True)
    assert np.allclose(wide.prototypes_ / 1000, narrow.prototypes_ * 1000)
    lost = fit(x * 1000, y, counts=[200, 100, 50])
    assert wide.score(x * 1000, y) > lost.score(x * 1000, y) - 0.02


def test_euclidean_predictions(blobs):
    x, y = blobs
    model = fit(x, y, "rho=inf", metric="euclidean")
    distances = ((x[:, None] - model.prototypes_) ** 2).sum(axis=2)
    assert np.array_equal(model.predict(x), distances.argmin(axis=1))


@pytest.mark.slow
def test_accuracy_on_real_embeddings_is_that_of_the_direct_formula(cifar100):
    x, y, test_x, test_y = cifar100.train_x, cifar100.train_y, cifar100.test_x, cifar100.test_y
    model = tacit.CoinPressPrototypes("rho=8", classes=100, steps=PAPER_STEPS).fit(x, y)
    centres, _ = direct(x.astype(float), y, np.bincount(y), 8.0, np.random.default_rng(0))
    unit = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    expected = (np.argmax(test_x.astype(float) @ unit.T, axis=1) == test_y).mean()
    assert model.score(test_x, test_y) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"counts": 0}, "counts=0 must be"),
        ({"counts": [1, 2]}, "one for each of 3 classes"),
        ({"counts": "many"}, "counts='many' must be"),
        ({"counts": [1, "a", 2]}, "counts='a' must be"),
        ({"steps": 0.5}, "sum to 1"),
        ({"steps": ("a",)}, "steps='a' must be"),
        ({"radius": "wide"}, "radius='wide' must be"),
        ({"radius": float("nan")}, "radius=nan must be"),
        ({"radius": 1e200}, "radius=1e\\+200 must be"),
        ({"pooling": 1.5}, "pooling=1.5 must be"),
        ({"counts": float("nan")}, "counts=nan must be"),
        ({"pooling": 0}, "pooling=0 must be"),
        ({"pooling": 9}, "whole number from 1 to 8"),
        ({"radius": -1.0}, "radius=-1.0 must be"),
        ({"steps": (0.5, 0.6)}, "sum to 1"),
        ({"steps": ()}, "sum to 1"),
        ({"metric": "manhattan"}, "metric='manhattan'"),
        ({"public": np.ones((3, 5))}, "encode both the same way"),
        ({"public": np.zeros((3, 8))}, "median norm of 0"),
        ({"public": np.full((3, 8), np.nan)}, "median norm of nan"),
    ],
)
def test_bad_parameters(blobs, parameters, message):
    with pytest.raises(InputError, match=message):
        fit(*blobs, **parameters)


def test_a_pure_budget_is_refused():
    with pytest.raises(BudgetError, match="no pure epsilon"):
        tacit.CoinPressPrototypes("epsilon=1", classes=3).promise()
