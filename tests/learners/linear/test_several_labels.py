"""GradientDescent of several labels a record."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks

import tacit
from learners.blobs import unit
from tacit.errors import InputError
from tacit.learners.common.balance import COUNT_SHARE
from tacit.learners.common.label_sets import SetCounts
from tacit.learners.linear.gradient_descent import LONGEST, LONGEST_CENTRED
from tacit.learners.linear.label_slopes import LabelSlopes, SimulatedScores
from tacit.models.label_sets import expected_f1_thresholds
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, compose

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(5, 12))
SETS = RNG.random((2000, 5)) < [0.5, 0.2, 0.2, 0.1, 0.05]
X = SETS @ CENTRES + RNG.normal(size=(2000, 12))
PUBLIC = RNG.normal(size=(500, 12))
SEEDED = {"noise": "research", "random_state": 0}


def fitted(budget="rho=5", **parameters):
    given = {"classes": 5, "most_labels": 3} | SEEDED | parameters
    return tacit.GradientDescent(budget, **given).fit(X, SETS)


def test_an_infinite_budget_is_one_logistic_regression_a_label():
    """The gradient of each label's penalised log-loss vanishes, at offsets from the counts."""
    settings = {"ridge": 5.0, "steps": 500, "learning_rate": 4.0, "classes": 5, "most_labels": 3}
    model = tacit.GradientDescent("rho=inf", **settings).fit(X[:200], SETS[:200])
    rows = unit(X[:200])
    offsets = logit(SETS[:200].sum(axis=0) / 200.5)
    for label, coefficients in enumerate(model.coefficients_):
        errors = expit(rows @ coefficients + offsets[label]) - SETS[:200, label]
        np.testing.assert_allclose(rows.T @ errors + 5 * coefficients, 0, atol=1e-3)


def test_the_budget_is_spent_in_steps_and_counts_that_are_not_parallel():
    promise = tacit.GradientDescent("rho=0.5", steps=7, most_labels=2).promise()
    z = Budget.parse("rho=0.5").gaussian(split=True)
    of_step = Gaussian(z * (7 / (1 - COUNT_SHARE)) ** 0.5)
    of_counts = Gaussian(z / COUNT_SHARE**0.5)
    assert promise.event == compose([7 * of_step, of_counts])
    assert Budget.parse("rho=0.5").permits(promise.event)


def test_noise_of_each_step_agrees_with_its_event():
    """Heads of one step without records: variance (learning rate x clip x z/n)^2, n a noisy count
    that is 1 at least.
    """
    clip = 0.5
    settings = {"steps": 1, "learning_rate": 1.0, "clip": clip, "ridge": 0.0}
    nothing = np.zeros((2, 50)), np.zeros((2, 2))
    drawn = []
    for seed in range(30):
        model = tacit.GradientDescent(
            "rho=2", classes=2, most_labels=1, noise="research", random_state=seed, **settings
        )
        model.fit(*nothing)
        drawn.append(model.coefficients_.std())
    ((of_step, steps), _) = model.guarantee_.event.counted()
    assert steps == 1
    assert max(drawn) == pytest.approx(clip * of_step.noise_multiplier, rel=0.25)


def test_better_labels_and_calibrated_probabilities_with_more_budget():
    errors = []
    for budget in ("rho=0.01", "rho=1", "rho=inf"):
        model = fitted(budget, public=PUBLIC, intercept=1.0)
        probabilities = model.predict_proba(X)
        errors.append(np.square(probabilities - SETS).mean())
        np.testing.assert_allclose(probabilities.mean(axis=0), SETS.mean(axis=0), atol=0.08)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.7 * SETS.var(axis=0).mean()


def test_names_are_a_start():
    """At a budget at which records tell little, names find labels."""
    with_names, without = (
        np.mean(
            [
                np.square(
                    fitted("rho=0.01", names=names, public=PUBLIC, random_state=seed).predict_proba(
                        X
                    )
                    - SETS
                ).mean()
                for seed in range(3)
            ]
        )
        for names in (CENTRES, None)
    )
    assert with_names < without


def test_steps_are_as_long_as_noise_allows():
    shares = SETS.mean(axis=0)
    curvature = (shares * (1 - shares)).max()
    assert fitted("rho=1e6").learning_rate_ == pytest.approx(LONGEST / curvature, rel=0.01)
    centred = fitted("rho=1e8", public=PUBLIC, steps=10).learning_rate_
    assert centred == pytest.approx(LONGEST_CENTRED / curvature, rel=0.01)
    noise = Budget.parse("rho=0.01").gaussian(split=True) / (1 - COUNT_SHARE) ** 0.5
    expected = 1.2 * 3 * 2000 / (100 * noise)
    assert fitted("rho=0.01", steps=10).learning_rate_ == pytest.approx(expected, rel=0.5)


def slopes_at(scale, sets, scores, clip=np.inf):
    """Observed gradients whose slope is that of heads with these scores times 1/scale."""
    shares = sets.mean(axis=0)
    counts = SetCounts(sets.sum(axis=0).astype(float), len(sets))
    slopes = LabelSlopes(counts, noise=1e-6, clip=clip)
    head = np.eye(len(shares))

    def gradient(at):
        trained = scores @ at.T / scale
        return (expit(trained + logit(shares)) - sets).T @ (scores / scale) if at.any() else at

    followed = slopes.follow(gradient)
    followed(np.zeros_like(head))
    for _ in range(20):
        followed(head)
    return slopes


@pytest.mark.parametrize("scale", [0.7, 1.0, 1.5])
def test_the_scale_is_told_by_the_gradients(scale):
    """Labels drawn from scores whose log odds are known, and heads too long or too short."""
    rng = np.random.default_rng(1)
    shares = np.array([0.4, 0.2, 0.1])
    sets = rng.random((20_000, 3)) < shares
    scores = (sets - 0.5) * 2.0 + rng.normal(size=sets.shape) * 2**0.5
    slopes = slopes_at(scale, sets, scores)
    found = slopes.label_sets(np.eye(3), scores / scale)
    assert found.scale == pytest.approx(scale, rel=0.1)
    probabilities = expit(found.scale * scores / scale + slopes.counts.logits)
    expected = expected_f1_thresholds(probabilities)
    np.testing.assert_allclose(found.thresholds, expected, rtol=1e-12)


def test_simulated_rows_have_the_stated_log_odds():
    """By Bayes' rule: scale times score plus the log odds of the label."""
    rows = SimulatedScores.of(np.array([0.3]), np.array([1.5]))
    scores = rows.scores(1.2)[:, 0]
    fit = LogisticRegression(C=1e6).fit(scores[:, None], rows.labels[:, 0] > 0)
    assert fit.coef_[0, 0] == pytest.approx(1.2, rel=0.1)
    assert fit.intercept_[0] == pytest.approx(logit(0.3), abs=0.1)
    assert rows.slope(1.0, np.inf) == pytest.approx(0, abs=0.05)
    assert rows.slope(1.5, np.inf) < rows.slope(1.0, np.inf) < rows.slope(0.5, np.inf)


def test_settings_that_do_not_apply_are_refused():
    with pytest.raises(InputError, match="balanced=False would be unused with most_labels"):
        tacit.GradientDescent(most_labels=2, balanced=False).promise()
    for most_labels in (0, 1.5, True):
        with pytest.raises(InputError, match=f"most_labels={most_labels} must be a whole number"):
            tacit.GradientDescent(most_labels=most_labels).promise()
    for estimator, candidate in (
        (tacit.GradientDescent(most_labels=2), {"clip": 1.0}),
        (tacit.GradientDescent(), {"most_labels": 2}),
    ):
        search = tacit.GridSearch(estimator, [candidate], budget="epsilon=1,delta=1e-6", classes=5)
        with pytest.raises(InputError, match="scores runs by records whose one class"):
            search.fit(X, SETS)


@pytest.mark.parametrize("output", ["predict", "predict_proba", "decision_function"])
def test_scikit_learn_checks_of_several_labels(output):
    """But for `check_classifier_multioutput`, which wants labels where scores are above 0."""
    learner = tacit.GradientDescent("rho=inf", classes=5, most_labels=5, **SEEDED)
    check = getattr(estimator_checks, f"check_classifiers_multilabel_output_format_{output}")
    check("GradientDescent", learner)
