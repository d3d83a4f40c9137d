import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.errors import InputError
from tacit.learners.common.training import Training, train, train_many
from tacit.models.networks import NETWORKS, as_tensor, predict, scores, weights

torch = pytest.importorskip("torch", reason="training needs torch")

QUICK = Training(epochs=2, batch_size=8)
SIZES = (20, 17, 23)


def rows(n, seed=0, d=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (rng.normal(size=(n, d)) + 3 * np.eye(3, d)[y]).astype(np.float32), y


def pictures(n, seed=0, channels=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = rng.integers(0, 60, (n, channels, 8, 8), dtype=np.uint8)
    x[np.arange(n), :, 2 * y + 1] += 150
    return x, y


def parts(kind):
    make = rows if kind in ("linear", "mlp") else pictures
    return [make(n, seed) for seed, n in enumerate(SIZES)]


def same(left, right):
    return all(
        np.array_equal(a, b)
        for a, b in zip(weights(left).values(), weights(right).values(), strict=True)
    )


@pytest.mark.parametrize("kind", NETWORKS)
def test_training_learns(kind):
    X, y = (rows if kind in ("linear", "mlp") else pictures)(200)
    module = train(kind, X, y, 3, Training(epochs=15), seed=1)
    assert not module.training
    assert (predict(module, X) == y).mean() > 0.9


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", NETWORKS)
def test_training_is_a_function_of_the_seed_and_the_number(kind, batched):
    own = parts(kind)
    first, again, other = (
        train_many(kind, own, 3, QUICK, seed=seed, batched=batched) for seed in (5, 5, 6)
    )
    assert all(same(*pair) for pair in zip(first, again, strict=True))
    if kind != "linear":  # which starts from zero
        assert not any(same(*pair) for pair in zip(first, other, strict=True))
        alike = train_many(kind, [own[0], own[0]], 3, QUICK, batched=batched)
        assert not same(*alike)


@pytest.mark.parametrize("kind", NETWORKS)
def test_batched_and_one_by_one_are_the_same_up_to_rounding(kind):
    """Adam divides by the gradient's size, so where that is nearly nothing a rounding can move a
    weight by a step.
    """
    models = [train_many(kind, parts(kind), 3, QUICK, batched=batched) for batched in (False, True)]
    for pair in zip(*models, strict=True):
        for left, right in zip(*(weights(module).values() for module in pair), strict=True):
            assert np.isclose(left, right, rtol=0, atol=2e-3).mean() > 0.999
            np.testing.assert_allclose(left, right, rtol=0, atol=0.02)


@pytest.mark.parametrize("augmentation", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("change", ["features", "label"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_one_record_changes_one_model(kind, change, batched, augmentation):
    training = Training(epochs=2, batch_size=8, augmentation=augmentation)
    own = parts(kind)
    before = train_many(kind, own, 3, training, batched=batched)
    X, y = (array.copy() for array in own[1])
    if change == "features":
        X[4] = 255 - X[4]
    else:
        y[4] = (y[4] + 1) % 3
    after = train_many(kind, [own[0], (X, y), own[2]], 3, training, batched=batched)
    assert [same(*pair) for pair in zip(before, after, strict=True)] == [True, False, True]


@pytest.mark.parametrize("kind", ["linear", "mlp", "cnn"])
def test_a_model_does_not_depend_on_which_others_are_trained_with_it(kind):
    own = parts(kind)
    every = train_many(kind, own, 3, QUICK, batched=False)
    last = train_many(kind, own[2:], 3, QUICK, numbers=[2], batched=False)
    first = train_many(kind, own[:1], 3, QUICK, numbers=[0], largest=max(SIZES), batched=False)
    assert same(every[2], last[0])
    assert same(every[0], first[0])


def test_dropout_does_not_depend_on_how_long_others_trained():
    def dropping(shape, n_classes):
        return torch.nn.Sequential(
            torch.nn.Linear(shape[0], 16), torch.nn.Dropout(), torch.nn.Linear(16, n_classes)
        )

    def trained(size):
        train(dropping, *rows(size), 3, QUICK)
        return train_many(dropping, [rows(20, 1)], 3, QUICK, numbers=[1])[0]

    state = torch.random.get_rng_state()
    assert same(trained(20), trained(90))
    assert torch.equal(torch.random.get_rng_state(), state)


# by moments of the columns, and by the Gram matrix of the records
@pytest.mark.parametrize("n", [120, 20])
def test_linear_models_reach_the_minimum(n):
    d, weight_decay = 30, 0.05
    parts = [rows(size, seed, d) for seed, size in enumerate((n, n - 7))]
    steps = Training(epochs=2000, weight_decay=weight_decay)
    for (X, y), module in zip(parts, train_many("linear", parts, 3, steps), strict=True):
        exact = LogisticRegression(C=1 / (weight_decay * len(X)), tol=1e-10, max_iter=10_000).fit(
            X, y
        )
        found = torch.softmax(torch.from_numpy(scores(module, X)), dim=1).numpy()
        # the intercept is shrunk here
        np.testing.assert_allclose(found, exact.predict_proba(X), atol=0.02)
        assert (predict(module, X) == exact.predict(X)).mean() > 0.98


@pytest.mark.parametrize("X", [np.ones((4, 3)), np.zeros((1, 3)), np.full((4, 3), 1e4)])
def test_linear_models_of_records_all_alike_are_finite(X):
    module = train("linear", X, np.array([1, 1, 1, 0])[: len(X)], 2, Training())
    assert all(np.isfinite(array).all() for array in weights(module).values())
    assert (predict(module, X) == 1).all()


def test_the_number_of_steps_is_public():
    training = Training(epochs=3, batch_size=10)
    assert [training.schedule(n) for n in (25, 30, 4)] == [(9, 10), (9, 10), (3, 4)]


def test_epochs_pass_over_all_records():
    from tacit.learners.common.training import _Model

    model = _Model(NETWORKS["linear"], *rows(25), 3, [0, 0])
    batches = model.batches(10, 10)
    assert batches.shape == (10, 10)
    np.testing.assert_array_equal(np.bincount(batches.ravel()), np.full(25, 4))


def test_pictures_of_bytes_are_scaled():
    X, _ = pictures(5)
    np.testing.assert_array_equal(as_tensor(X).numpy(), X.astype(np.float32) / 255)
    np.testing.assert_array_equal(as_tensor(X / 4).numpy(), (X / 4).astype(np.float32))


def test_prediction_is_in_blocks_and_among_the_classes_asked_for():
    X, y = rows(3000)
    module = train("linear", X[:200], y[:200], 3, Training())
    one = np.concatenate([predict(module, X[:1500]), predict(module, X[1500:])])
    np.testing.assert_array_equal(predict(module, X), one)
    np.testing.assert_array_equal(
        predict(module, X, among=np.array([0, 2])),
        np.array([0, 2])[scores(module, X)[:, [0, 2]].argmax(axis=1)],
    )
    assert predict(module, X[:0]).shape == (0,)


def test_prediction_is_in_evaluation_mode():
    module = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(6, 3)).train()
    X, _ = rows(50)
    np.testing.assert_array_equal(predict(module, X), predict(module, X))


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(0)
    state = torch.random.get_rng_state()
    train("mlp", *rows(20), 3, QUICK)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"epochs": 2.5},
        {"batch_size": 0},
        {"learning_rate": 0},
        {"learning_rate": float("nan")},
        {"weight_decay": -1},
        {"augmentation": 1},
    ],
    ids=str,
)
def test_bad_values_are_named(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*leave it out"):
        Training(**wrong)
