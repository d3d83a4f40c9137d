"""The estimator: what it promises, that corrections undo the noise, stages, bases, releases,
refusals.
"""

import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit
from messages import lacking, stating
from tacit.errors import BudgetError, InputError, PrivacyLeakWarning
from tacit.learners.common.models import Model
from tacit.learners.common.training import Training
from tacit.learners.label_dp import priors
from tacit.learners.label_dp.evidence import Evidence
from tacit.learners.label_dp.label_private import (
    FIRST_SHARE,
    POWERS,
    likeliest_power,
    stage_parts,
)
from tacit.learners.label_dp.learning import forward_loss, learn
from tacit.privacy.ledger import Ledger

CENTRES = 3 * np.eye(4, 6)


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    return CENTRES[y] + rng.normal(size=(n, 6)), y


X, Y = records(4000, 0)
TEST = records(1000, 1)


def learner(**given):
    return tacit.LabelPrivate(
        **{"budget": "epsilon=1", "classes": 4, "noise": "research", "random_state": 0} | given
    )


@pytest.mark.parametrize(
    "randomizer",
    ["blocks", "rr", "rr-with-prior", "symmetric-unary", "optimised-unary", "laplace", "gaussian"],
)
@pytest.mark.parametrize("correction", ["forward", "backward"])
def test_corrections_undo_the_noise(randomizer, correction):
    if (randomizer, correction) == ("blocks", "backward"):
        pytest.skip("blocks have no unbiased estimate")
    budget = "rho=0.5" if randomizer == "gaussian" else "epsilon=1"
    model = learner(randomizer=randomizer, correction=correction, budget=budget).fit(X, Y)
    assert tacit.Budget.parse(budget).permits(model.guarantee_.event)
    assert model.guarantee_ == model.promise()
    assert model.score(*TEST) > (0.9 if correction == "forward" else 0.8)
    proba = model.predict_proba(TEST[0])
    assert proba.shape == (1000, 4)
    assert proba.sum(axis=1) == pytest.approx(np.ones(1000))


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("prior", ["uniform", "clusters", [0.4, 0.3, 0.2, 0.1]])
def test_stages_and_priors(stages, prior):
    model = learner(
        stages=stages, prior=prior, n_clusters=20, prior_share=0.2, temperature=0.8
    ).fit(X, Y)
    assert model.score(*TEST) > (0.85 if isinstance(prior, str) else 0.6)  # the given one is wrong
    assert len(model.priors_) == stages
    assert model.guarantee_.epsilon() == pytest.approx(1, rel=1e-12)
    assert len(model.guarantee_.events) == (2 if prior == "clusters" else 1)
    assert model.noisy_labels_.shape == Y.shape


def test_each_label_is_asked_once():
    """Stages deal out all positions, none twice, whatever features and labels."""
    for n, stages in ((10, 1), (11, 2), (100, 5)):
        parts = stage_parts(n, stages, 3, FIRST_SHARE)
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert len(parts[0]) >= n / stages
    with pytest.raises(InputError, match="a stage without records"):
        stage_parts(3, 4, 0, FIRST_SHARE)


def test_later_stages_keep_more_labels():
    one, two = (learner(stages=stages, randomizer="rr-with-prior").fit(X, Y) for stages in (1, 2))
    assert np.mean(two.noisy_labels_ == Y) > np.mean(one.noisy_labels_ == Y) + 0.1


@pytest.mark.parametrize("base", [GaussianNB(), LogisticRegression(), "mlp"])
def test_bases(base):
    if base == "mlp":
        pytest.importorskip("torch")
    model = learner(base=base, training={"epochs": 10} if base == "mlp" else None).fit(X, Y)
    assert model.score(*TEST) > 0.85
    if base == "mlp":
        release = tacit.Release.of(model)
        assert np.array_equal(release.predict(TEST[0]), model.predict(TEST[0]))


def test_pictures():
    pytest.importorskip("torch")
    pictures = (np.random.default_rng(0).random((200, 1, 8, 8)) * 128).astype(np.uint8)
    labels = np.arange(200) % 2
    pictures[labels == 1, :, :4] += 127
    model = tacit.LabelPrivate(
        "epsilon=3",
        base="cnn",
        classes=2,
        training={"epochs": 10},
        noise="research",
        random_state=0,
    )
    assert model.fit(pictures, labels).score(pictures, labels) > 0.9
    assert model.shape_ == (1, 8, 8)


def test_an_infinite_budget_learns_from_the_labels():
    """Also with names: all randomizers keep the labels, and the model is the same."""
    for names in (None, CENTRES):
        models = [
            learner(budget="epsilon=inf", randomizer=name, names=names).fit(X, Y)
            for name in ("blocks", "rr")
        ]
        assert not models[0].guarantee_.bounded
        for model in models:
            assert np.array_equal(model.noisy_labels_, Y)
        assert np.array_equal(models[0].coefficients_, models[1].coefficients_)


def names_prior(power):
    cosines = tacit.models.rows.unit_rows(X) @ tacit.models.rows.unit_rows(CENTRES).T
    rows = np.exp(power * 10 * cosines)
    return rows / rows.sum(axis=1, keepdims=True)


def test_a_trial_decides_how_far_the_prior_is_trusted():
    """Right names and priors are trusted, wrong ones forgotten: the others' prior is uniform
    then.
    """
    wrong = [1, 2, 3, 0]
    for given, trusted in (
        ({"names": CENTRES}, True),
        ({"names": CENTRES[wrong]}, False),
        ({"prior": names_prior(1)}, True),
        ({"prior": names_prior(1)[:, wrong]}, False),
    ):
        model = learner(**given).fit(X, Y)
        first, rest = model.priors_
        assert (len(first.which), len(rest.which)) == (120, 3880)
        assert (model.prior_power_ >= 0.5) if trusted else (model.prior_power_ == 0)
        assert (rest.rows.max() > 0.5) == trusted
        assert model.names_used_ == ("names" in given and trusted)
        said = "class names: left out of the model, since the first outputs contradict them"
        assert (said in tacit.Release.of(model, name="labels").card()) == (
            "names" in given and not trusted
        )
        assert model.score(*TEST) > (0.9 if trusted else 0.85)
        assert model.guarantee_ == model.promise()


def test_one_stage_has_one_prior_for_all():
    model = learner(names=CENTRES, stages=1).fit(X, Y)
    assert len(model.priors_) == 1
    assert model.prior_power_ == 1


def test_the_prior_of_names_is_the_softmax_of_ten_cosines_about_the_public_centre():
    model = learner(names=CENTRES, stages=1, randomizer="rr-with-prior").fit(X, Y)
    unit = tacit.models.rows.unit_rows(X)
    rows, names = (
        tacit.models.rows.unit_rows_about(part, unit.mean(axis=0)) for part in (X, CENTRES)
    )
    expected = np.exp(10 * rows @ names.T)
    assert model.priors_[0].rows == pytest.approx(expected / expected.sum(axis=1, keepdims=True))


def test_priors_do_not_follow_the_labels():
    for given in (
        {},
        {"names": CENTRES, "stages": 1},
        {"prior": [0.4, 0.3, 0.2, 0.1], "stages": 1},
    ):
        one, other = (learner(**given).fit(X, labels) for labels in (Y, (Y + 1) % 4))
        assert np.array_equal(one.priors_[0].rows, other.priors_[0].rows)


@pytest.mark.parametrize(
    "rows", [np.full(4, 1 / 4), np.full(60, 1 / 60), [0.4, 0.3, 0.2, 0.1], np.arange(1, 21) / 210]
)
def test_records_of_equal_priors_have_different_blocks(rows):
    """Else two classes of one block could never be told apart; also where a record's own row
    repeats.
    """
    rows = np.array(rows)
    dealt = priors.Prior(rows[None], np.zeros(600, dtype=int)).dealt()
    assert len(dealt.rows) == 256
    assert np.array_equal(dealt.which, np.arange(600) % 256)
    flat = np.ptp(rows) == 0
    assert np.array_equal(np.ptp(dealt.rows, axis=1) == 0, np.full(256, flat))
    for epsilon in (0.5, 1.0, 2.0):
        for each in (dealt.rows, np.tile(rows, (600, 1))) if flat else (dealt.rows,):
            blocks = tacit.label_dp.Blocks(epsilon, each).partitions
            together = np.mean(blocks[:, :, None] == blocks[:, None], axis=0)
            assert together[~np.eye(len(rows), dtype=bool)].max() < 0.8


def test_records_with_rows_of_their_own_keep_them():
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 9)
    dealt = priors.Prior(rows, np.array([4, 0, 8])).dealt()
    assert np.array_equal(dealt.rows, rows[[4, 0, 8]].astype(np.float32))
    assert dealt.which.tolist() == [0, 1, 2]


def test_the_likeliest_power():
    prior = priors.Prior(np.array([[0.8, 0.1, 0.1]]), np.zeros(900, dtype=int))
    for shares, power in (
        ([0.8, 0.1, 0.1], 1.0),
        ([1, 1, 1], 0.0),
        ([0.1, 0.8, 0.1], 0.0),
        ([0.97, 0.015, 0.015], 2.0),
    ):
        labels = np.searchsorted(np.cumsum(shares) / sum(shares), (np.arange(900) + 0.5) / 900)
        certain = Evidence(
            np.where(np.eye(3, dtype=bool)[labels], 0.0, -1e6), np.zeros(900, dtype=bool)
        )
        assert likeliest_power(prior, certain, 2.0) == power
        assert likeliest_power(prior, certain, 1.2) == min(power, 1.0)


def test_a_small_power_of_a_prior_that_is_less_likely_than_none_is_0():
    prior, found = priors.Prior(np.array([[0.8, 0.1, 0.1]]), np.zeros(300, dtype=int)), []
    for favoured in (150, 180):
        labels = np.array([0] * favoured + [1, 2] * ((300 - favoured) // 2))
        certain = Evidence(
            np.where(np.eye(3, dtype=bool)[labels], 0.0, -1e6), np.zeros(300, dtype=bool)
        )
        gains = {power: np.log(3 * prior.raised(power).rows[0][labels]).sum() for power in POWERS}
        found.append(
            (max(gains.values()) > 1, gains[1.0] > 0, likeliest_power(prior, certain, 2.0) > 0)
        )
    assert found == [(True, False, False), (True, True, True)]


def test_the_card_names_the_public_prior():
    release = tacit.Release.of(
        learner(names=CENTRES, noise="secure", random_state=None).fit(X, Y), name="labels"
    )
    assert not lacking(release.card(), "public prior", "class names", "power")
    assert "uniform" in tacit.Release.of(learner().fit(X, Y), name="labels").card()


def test_networks_minimise_the_same_loss():
    torch = pytest.importorskip("torch", reason="torch is not installed; it is an extra")
    rng = np.random.default_rng(0)
    scores, values, target = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), np.arange(6) < 3
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    each = np.where(
        target, (values * log_p).sum(axis=1), np.log(np.exp(log_p + values).sum(axis=1))
    )
    found = forward_loss(torch.tensor(scores), torch.tensor(np.column_stack([values, target])))
    assert float(found) == pytest.approx(-each.sum())


def test_a_cluster_s_shares_are_targets_and_not_evidence_beside_the_features():
    """Records that nothing tells apart, 70 to 30: the model says so, and is not driven to
    certainty.
    """
    rows = np.ones((100, 1))
    prior = priors.Prior(np.array([[0.7, 0.3]]), np.zeros(100, dtype=int))
    known = Evidence(np.zeros((100, 2)), np.zeros(100, dtype=bool)).with_prior(prior)
    assert known.values == pytest.approx(np.tile([0.7, 0.3], (100, 1)))
    model = Model(learn(None, rows, known, Training(), 0), 2)
    assert np.exp(model.log_probabilities(rows))[0] == pytest.approx([0.7, 0.3], abs=0.05)


def test_the_ledger_is_charged_and_a_second_fit_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("epsilon=1", "change-label")
    learner(ledger=ledger, noise="secure", random_state=None).fit(X, Y)
    with pytest.raises(tacit.TacitError):
        learner(ledger=ledger, noise="secure", random_state=None).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"randomizer": "rr-on-bins"}, "randomizer='rr-on-bins'"),
        ({"prior": "horoscope"}, "prior='horoscope'"),
        ({"prior": [0.5, 0.5]}, "2 columns for 4 classes"),
        ({"prior": np.full((3, 4), 0.25)}, "prior has 3 rows for 4000 labels"),
        ({"prior": np.full((4000, 4), 0.3)}, "prior row 0 adds up to 1.2, not 1"),
        ({"prior": [0.5, 0.5, np.nan, 0]}, stating("prior row 0", "NaN")),
        ({"prior": np.full((2, 2, 2), 0.25)}, "prior has shape .2, 2, 2."),
        ({"prior": "names"}, stating("prior='names'", "names=rows")),
        ({"names": CENTRES[:, :3]}, stating("names[0]", "(1, 3)", "6 columns")),
        ({"names": CENTRES[:3]}, stating("names", "3 classes", "4")),
        ({"names": CENTRES, "correction": "backward"}, "unlike 'blocks'; use correction='forward'"),
        ({"stages": "two"}, stating("stages='two'", "'auto'")),
        ({"prior": [0.5, 0.5, 0.5, -0.5]}, "negative"),
        ({"prior": "clusters", "randomizer": "gaussian", "budget": "rho=1"}, "not 'gaussian'"),
        ({"prior": "clusters", "prior_share": 1.0}, "prior_share=1.0"),
        ({"prior": "clusters", "n_clusters": 0}, "n_clusters=0"),
        ({"stages": 0}, "stages=0"),
        ({"stages": 5000}, "stages=5000"),
        ({"stages": 1000, "first": 5}, "a stage without records"),
        ({"temperature": 0}, "temperature=0"),
        ({"correction": "sideways"}, "correction='sideways'"),
        (
            {"correction": "backward"},
            stating("'blocks'", "correction='forward'", "randomizer='rr'"),
        ),
        (
            {"correction": "backward", "stages": 2, "randomizer": "rr-with-prior"},
            "distinguish all classes",
        ),
        ({"correction": "backward", "base": GaussianNB()}, "negative weights"),
        ({"base": Perceptron()}, "no predict_proba"),
        ({"base": "perceptron"}, "unknown"),
        ({"unit": "replace"}, "does not imply"),
        ({"budget": "epsilon=0"}, "epsilon=0"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_charged(tmp_path, given, message):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("epsilon=100", "change-label")
    few = given.get("first", len(X))
    given = {name: value for name, value in given.items() if name != "first"}
    with pytest.raises((InputError, BudgetError), match=message):
        learner(ledger=ledger, **given).fit(X[:few], Y[:few])
    assert not ledger.account().charges


@pytest.mark.parametrize(
    ("given", "fit", "message"),
    [
        ({}, {"X": np.zeros((300, 6))}, "only rows of zeros"),
        ({"prior": "clusters"}, {"X": X * 1e30}, "scale them"),
        ({"base": KNeighborsClassifier()}, {}, "no sample_weight"),
        ({"base": make_pipeline(StandardScaler(), LogisticRegression())}, {}, "no sample_weight"),
        ({"base": LogisticRegression(C=-1)}, {}, "refused by scikit-learn"),
        ({"base": "cnn"}, {}, "needs pictures"),
        ({"randomizer": "rr", "classes": 1}, {"y": np.zeros(4000, dtype=int)}, "n_classes=1"),
        ({"randomizer": "laplace", "budget": "epsilon=1e-8"}, {}, "64-bit sums overflow"),
        ({"randomizer": ["rr"]}, {}, "randomizer="),
        ({"n_components": 10**7, "prior": "clusters"}, {}, "n_components="),
        ({}, {"X": csr_matrix(X)}, "sparse"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_a_charge(tmp_path, given, fit, message):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("epsilon=100", "change-label")
    own = {"X": X, "y": Y} | fit
    with pytest.raises((InputError, BudgetError), match=message):
        learner(ledger=ledger, **given).fit(own["X"], own["y"][: own["X"].shape[0]])
    assert not ledger.account().charges


def test_a_model_that_knows_nothing_gives_a_uniform_prior():
    model = learner(base=DummyClassifier(strategy="uniform"), stages=2).fit(X, Y)
    assert np.mean(model.noisy_labels_ != Y) == pytest.approx(1 - math.e / (math.e + 3), abs=0.03)


def test_the_event_names_the_declared_classes():
    assert "over 4 labels" in learner(randomizer="rr").promise().statement()
    # blocks, whose number follows from priors
    assert "over 2 labels" in learner().promise().statement()


def test_it_can_be_pickled_and_linear_networks_are_linear():
    model = learner(base="linear").fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(TEST[0]), model.predict_proba(TEST[0]))
    assert np.array_equal(tacit.Release.of(model).predict(TEST[0]), model.predict(TEST[0]))


def test_pixels_as_floats_are_the_same_pictures():
    pytest.importorskip("torch")
    pixels = (np.random.default_rng(0).random((100, 12)) * 255).astype(np.uint8)
    model = tacit.LabelPrivate(
        "epsilon=3", base="mlp", classes=2, training={"epochs": 2}, noise="research", random_state=0
    )
    model.fit(pixels, np.arange(100) % 2)
    assert model.predict_proba(pixels.astype(float)) == pytest.approx(
        model.predict_proba(pixels), abs=1e-5
    )


def test_a_promise_needs_no_data():
    assert learner(prior="clusters").promise().epsilon() == pytest.approx(1.0)
    assert math.isinf(learner(budget="epsilon=inf").promise().epsilon(1e-6))


def test_columns_of_a_prior_need_an_order():
    x, y = np.eye(3)[np.arange(30) % 3], np.array(list("abc") * 10)
    given = np.full((30, 3), 1 / 3)
    with (
        pytest.raises(InputError, match=stating("prior", "declared class list")),
        pytest.warns(PrivacyLeakWarning),
    ):
        tacit.LabelPrivate("epsilon=1", prior=given).fit(x, y)
    with pytest.raises(InputError, match=stating("classes", "set", "list")):
        tacit.LabelPrivate("epsilon=1", prior=given, classes={"a", "b", "c"}).fit(x, y)
    with pytest.raises(InputError, match="prior has type float16"):
        tacit.LabelPrivate("epsilon=1", prior=given.astype(np.float16), classes=list("abc")).fit(
            x, y
        )
    with pytest.raises(InputError, match=stating("prior", "29 rows", "30 labels")):
        tacit.LabelPrivate("epsilon=1", prior=given[1:], classes=list("abc")).fit(x, y)


def test_names_may_be_a_data_frame():
    pd = pytest.importorskip("pandas", reason="pandas is not installed; it is an extra")
    x, y = np.eye(3)[np.arange(30) % 3], np.arange(30) % 3
    frame = tacit.NamePrototypes(classes=3, names=pd.DataFrame(2 * np.eye(3))).fit(x, y)
    assert (frame.predict(x) == y).all()
