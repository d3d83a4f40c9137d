import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from conftest import SHARED
from messages import stating
from tacit.errors import InputError
from tacit.learners.common.training import Training
from tacit.learners.pate import student as module

N_CLASSES = 3


def fit_both(student, *given, unlabelled=None, **more):
    """A student and its accuracy on validation labels; labels are spread to unlabelled records if
    there are any.
    """
    options = [module.Option(student, unlabelled is not None)]
    return module.fit_student(options, *given, unlabelled=unlabelled, **more)


def fit_student(*given, **more):
    """The student alone."""
    return fit_both(*given, **more)[0]


def records(n, seed=0, d=4, near=2.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    return rng.normal(size=(n, d)) + near * np.eye(N_CLASSES, d)[y], y


KINDS = [LogisticRegression(), RandomForestClassifier(20), "linear", "mlp"]


@pytest.fixture(
    params=KINDS, ids=lambda kind: kind if isinstance(kind, str) else type(kind).__name__
)
def kind(request):
    if isinstance(request.param, str):
        pytest.importorskip("torch", reason="networks need torch")
    return request.param


@pytest.fixture(params=[False, True], ids=["supervised", "semi-supervised"])
def unlabelled(request):
    return records(150, seed=9)[0] if request.param else None


def test_students_learn_and_repeat(kind, unlabelled):
    X, y = records(120)
    test = records(300, seed=1)
    students = [
        fit_student(kind, X, y, n_classes=N_CLASSES, unlabelled=unlabelled, seed=3)
        for _ in range(2)
    ]
    said = [student.nearest(test[0]) for student in students]
    assert said[0].dtype == np.int64
    assert (said[0] == test[1]).mean() > 0.8
    np.testing.assert_array_equal(*said)
    assert fit_both(kind, X, y, n_classes=N_CLASSES)[1] is None


def test_validation_is_on_labels_kept_aside(kind, unlabelled):
    X, y = records(100)
    more = {"n_classes": N_CLASSES, "validation": 0.2, "unlabelled": unlabelled, "seed": 3}
    student, accuracy = fit_both(kind, X, y, **more)
    assert accuracy in {right / 20 for right in range(12, 21)}
    aside = np.random.default_rng(3).permutation(100)[:20]
    wrong = y.copy()
    wrong[aside] = (student.nearest(X)[aside] + 1) % N_CLASSES  # what is kept aside teaches nothing
    again, accuracy = fit_both(kind, X, wrong, **more)
    assert accuracy == 0
    np.testing.assert_array_equal(again.nearest(X), student.nearest(X))


@pytest.mark.parametrize("present", [[0, 1, 2], [0, 2], [1]])
@pytest.mark.parametrize(
    "kind", [LogisticRegression(), "linear"], ids=["LogisticRegression", "linear"]
)
def test_a_linear_students_head_predicts_as_it_does(kind, present):
    if kind == "linear":
        pytest.importorskip("torch", reason="networks need torch")
    X, y = records(150)
    kept = np.isin(y, present)
    student = fit_student(kind, X[kept], y[kept], n_classes=N_CLASSES)
    coefficients, intercepts = student.head()
    assert (coefficients.shape, intercepts.shape) == ((N_CLASSES, 4), (N_CLASSES,))
    assert coefficients.dtype == intercepts.dtype == np.float64
    scores = X @ coefficients.T + intercepts
    np.testing.assert_array_equal(scores.argmax(axis=1), student.nearest(X))
    assert set(student.nearest(X)) == set(present)


def test_other_students_have_no_head():
    X, y = records(60)
    assert fit_student(GaussianNB(), X, y, n_classes=N_CLASSES).head() is None
    pytest.importorskip("torch", reason="networks need torch")
    assert fit_student("mlp", X, y, n_classes=N_CLASSES).head() is None


def test_labels_spread_to_unlabelled_records():
    """Two long clusters, one label at an end of each: neighbours carry the labels along."""
    rng = np.random.default_rng(0)
    along, side = rng.uniform(0, 30, 400), rng.integers(0, 2, 400)
    X = np.column_stack([along, 6 * side + 0.2 * along + rng.normal(0, 0.3, 400)])
    labelled = [
        np.flatnonzero(side == 0)[along[side == 0].argmin()],
        np.flatnonzero(side == 1)[along[side == 1].argmax()],
    ]
    rest = np.setdiff1d(np.arange(400), labelled)
    student = fit_student(
        RandomForestClassifier(20), X[labelled], side[labelled], n_classes=2, unlabelled=X[rest]
    )
    assert (student.nearest(X[rest]) == side[rest]).mean() > 0.95


def test_records_that_no_label_reaches_teach_nothing():
    X, y = records(40)
    far = records(40, seed=1)[0] + 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        student = fit_student(LogisticRegression(), X, y, n_classes=N_CLASSES, unlabelled=far)
    assert (student.nearest(X) == y).mean() > 0.8


def bars(n, seed):
    """Pictures of three classes: a bar high, in the middle or low, shifted and in noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.integers(0, 60, (n, 1, 12, 12), dtype=np.uint8)
    for picture, row, left in zip(
        X[:, 0], 1 + 4 * y + rng.integers(0, 2, n), rng.integers(0, 6, n), strict=True
    ):
        picture[row, left : left + 6] += 150
    return X, y


@pytest.mark.parametrize("semi", [False, True])
def test_students_of_pictures(semi):
    pytest.importorskip("torch", reason="networks need torch")
    X, y = bars(60, 0)
    test = bars(200, 1)
    training = Training(epochs=30, batch_size=16)
    more = bars(100, 2)[0] if semi else None
    student = fit_student("cnn", X, y, n_classes=3, training=training, unlabelled=more)
    assert (student.nearest(test[0]) == test[1]).mean() > 0.8


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"labels": np.full(20, 3)}, stating("0 to 2", "20 records")),
        ({"labels": np.full(20, -1)}, "one class index from 0 to 2"),
        ({"labels": np.zeros(19, dtype=int)}, "for each of 20 records"),
        ({"labels": np.zeros(20)}, "one class index"),
        ({"unlabelled": np.zeros((5, 3))}, r"shape \(5, 3\)"),
        ({"validation": 1.0}, stating("validation=1.0", "0.99")),
        ({"validation": -0.1}, stating("validation=-0.1", "0.99")),
        ({"student": LogisticRegression}, stating("student=LogisticRegression", "instance")),
    ],
)
def test_bad_input(wrong, match):
    X, y = records(20)
    with pytest.raises(InputError, match=match):
        fit_student(
            **(
                {"student": LogisticRegression(), "X": X, "labels": y, "n_classes": N_CLASSES}
                | wrong
            )
        )


@pytest.fixture(scope="module")
def digits():
    path = SHARED / "mnist.npz"
    if not path.exists():
        pytest.skip(f"real data is absent: {path} does not exist")
    with np.load(path) as arrays:
        return arrays["test_x"][:, None], arrays["test_y"].astype(np.int64)


@pytest.mark.thorough
@pytest.mark.slow
def test_few_labels_and_many_digits_are_enough(digits):
    pytest.importorskip("torch", reason="networks need torch")
    X, y = digits
    rng = np.random.default_rng(0)
    answered, rest = np.split(rng.permutation(9000)[:3000], [350])
    training = Training(epochs=10)
    alone = fit_student("cnn", X[answered], y[answered], n_classes=10, training=training)
    more = fit_student(
        "cnn", X[answered], y[answered], n_classes=10, training=training, unlabelled=X[rest]
    )
    scores = [(student.nearest(X[9000:]) == y[9000:]).mean() for student in (alone, more)]
    assert scores[1] > max(0.9, scores[0] + 0.02)


def named(X, y, names, **more):
    names = names / np.linalg.norm(names, axis=1, keepdims=True)
    return fit_student(LogisticRegression(C=30.0), X, y, n_classes=N_CLASSES, names=names, **more)


def unit_records(n, seed=0, noise=1.0):
    X, y = records(n, seed=seed, d=20, near=2.5 / noise)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def test_names_lead_a_student_of_few_or_wrong_labels():
    """Few labels, of which half are wrong: the names, which are near the truth, are worth more."""
    X, y = unit_records(60)
    test, truth = unit_records(600, seed=1)
    wrong = np.where(np.random.default_rng(2).random(60) < 0.5, (y + 1) % N_CLASSES, y)
    names = np.eye(N_CLASSES, 20)
    plain = fit_student(LogisticRegression(C=30.0), X, wrong, n_classes=N_CLASSES)
    assert (named(X, wrong, names).nearest(test) == truth).mean() > (
        plain.nearest(test) == truth
    ).mean() + 0.1


def test_names_of_another_order_leave_the_student_as_it_is():
    X, y = unit_records(90)
    plain = fit_student(LogisticRegression(C=30.0), X, y, n_classes=N_CLASSES)
    other = named(X, y, np.eye(N_CLASSES, 20)[[1, 2, 0]])
    np.testing.assert_array_equal(other.head()[0], plain.head()[0])


def test_without_labels_the_names_alone_decide():
    X, _ = unit_records(50)
    student = named(X[:0], np.zeros(0, dtype=np.int64), np.eye(N_CLASSES, 20))
    np.testing.assert_array_equal(student.nearest(X), X[:, :N_CLASSES].argmax(axis=1))


def test_the_penalty_is_on_the_distance_from_the_names():
    """At the optimum the gradients of loss and penalty are equal, also for a class without
    labels.
    """
    X, y = unit_records(80)
    X, y = X[y < 2], y[y < 2]
    centre = 5 * np.eye(N_CLASSES, 20)
    coefficients, intercepts = module.softmax_about(X, y, centre, 2.0)
    shares = softmax(X @ coefficients.T + intercepts, axis=1)
    left = np.eye(N_CLASSES)[y] - shares
    np.testing.assert_allclose(2.0 * (coefficients - centre), left.T @ X, atol=1e-3)
    np.testing.assert_allclose(2.0 * intercepts, left.sum(axis=0), atol=1e-3)


def clusters(n, seed, away=3.0):
    """Rows of three round clusters in 30 columns, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    return rng.normal(size=(n, 30)) + away * np.eye(N_CLASSES, 30)[y], y


def test_wrong_labels_choose_a_strong_penalty():
    """Of 200 labels, of 30 columns, 60 % are right: a nearly free logistic regression learns the
    mistakes.
    """
    X, y = clusters(200, 0, away=1.5)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(200) < 0.4, y, rng.integers(0, N_CLASSES, 200))
    test, truth = clusters(2000, 2, away=1.5)
    options = [module.Option(LogisticRegression(C=penalty)) for penalty in (100.0, 0.001)]
    chosen = module.fit_student(options, X, noisy, n_classes=N_CLASSES)[0]
    assert chosen.fitted.kind.C == 0.001
    free = fit_student(options[0].model, X, noisy, n_classes=N_CLASSES)
    assert (chosen.nearest(test) == truth).mean() > (free.nearest(test) == truth).mean() + 0.02


def test_labels_are_spread_unless_held_out_ones_are_likelier_without():
    X, y = clusters(200, 0, away=2.0)
    far, _ = clusters(400, 1, away=2.0)
    options = module.Student().options()
    assert [option.spread for option in options] == [True, False, False, False]
    more = {"n_classes": N_CLASSES, "unlabelled": far}
    assert module.fit_student(options, X, y, **more)[0].fitted.kind is options[0].model
    rng = np.random.default_rng(2)  # neighbours that tell nothing
    useless = rng.normal(size=(200, 5)), rng.normal(size=(400, 5))
    chosen = module.fit_student(options, X, y, rows=useless, **more)[0].fitted.kind
    assert any(chosen is option.model for option in options[1:])


@pytest.mark.parametrize(
    "unlabelled", [None, clusters(400, 3, away=2.0)[0]], ids=["alone", "spread"]
)
def test_noise_that_favours_a_class_hides_no_other(unlabelled):
    """Of 300 labels, 40 % are drawn at random, three quarters of these as class 0."""
    X, y = clusters(300, 0, away=2.0)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(300) < 0.6, y, rng.choice(N_CLASSES, 300, p=[0.75, 0.125, 0.125]))
    test, truth = clusters(2000, 2, away=2.0)
    student = module.fit_student(
        module.Student().options(), X, noisy, n_classes=N_CLASSES, unlabelled=unlabelled
    )[0]
    right = student.nearest(test) == truth
    assert min(right[truth == c].mean() for c in range(N_CLASSES)) > 0.5


def test_what_is_chosen_leaves_no_options():
    assert [option.spread for option in module.Student(semi_supervised=True).options()] == [True]
    assert [option.spread for option in module.Student(semi_supervised=False).options()] == [
        False
    ] * 3
    (named,) = module.Student("naive-bayes").options()
    assert (type(named.model), named.spread) == (GaussianNB, False)


def test_names_are_judged_by_labels_that_were_released():
    X, y = unit_records(60)
    options, names = module.Student().options(), np.eye(N_CLASSES, 20)
    more = {"n_classes": N_CLASSES, "names": names}
    alone = module.fit_student(options[1:], X, y, **more)[0]
    spread = module.fit_student(options, X, y, unlabelled=unit_records(300, seed=5)[0], **more)[0]
    np.testing.assert_array_equal(alone.head()[0], spread.head()[0])
