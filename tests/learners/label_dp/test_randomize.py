"""`tacit.label_dp.randomize`: what it returns, charges and refuses."""

import math

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import BudgetError, InputError, LedgerError
from tacit.learners.label_dp.randomize import RANDOMIZERS, randomize
from tacit.privacy.ledger import Ledger

Y = np.random.default_rng(0).integers(0, 3, 300)


@pytest.mark.parametrize("name", RANDOMIZERS)
@pytest.mark.parametrize("budget", ["epsilon=1", "rho=0.5", "epsilon=1,delta=1e-6"])
def test_every_randomizer_is_within_every_budget(name, budget):
    given = {"values": np.arange(3)} if name in ("rr-on-bins", "unbiased") else {"classes": 3}
    given |= {"k": 2} if name == "rr-top-k" else {}
    if name == "gaussian" and budget == "epsilon=1":
        with pytest.raises(BudgetError):
            randomize(Y, budget=budget, randomizer=name, **given)
        return
    out = randomize(Y, budget=budget, randomizer=name, **given)
    assert len(out.labels) == 300
    assert out.guarantee_.unit == "change-label"
    assert "features" in out.guarantee_.unprotected
    assert tacit.Budget.parse(budget).permits(out.guarantee_.event)
    if name != "unbiased":  # its program is solved a little more strictly
        used = {
            "rho": lambda: out.guarantee_.rho / 0.5,
            "epsi": lambda: out.guarantee_.epsilon(1e-6 if "," in budget else 0),
        }
        assert used[budget[:4].rstrip("=")]() == pytest.approx(1, rel=1e-6)


def test_labels_are_class_values_and_priors_may_differ_by_label():
    names = np.array(["ant", "bee", "cow"])
    prior = np.array([[0.98, 0.01, 0.01], [0.01, 0.01, 0.98]])
    which = np.arange(300) % 2
    out = randomize(
        names[Y],
        classes=names,
        randomizer="rr-with-prior",
        prior=prior,
        which=which,
        budget="epsilon=1",
    )
    assert set(out.labels[which == 0]) == {"ant"}
    assert set(out.labels[which == 1]) == {"cow"}
    assert np.array_equal(out.which, which)


@pytest.mark.parametrize("name", ["blocks", "rr-with-prior", "rr-top-k"])
def test_each_label_may_have_a_prior(name):
    """Row i is for label i, whatever the labels are."""
    prior = np.random.default_rng(1).dirichlet(np.ones(3), 300)
    k = {"k": 2} if name == "rr-top-k" else {}
    one, other = (
        randomize(y, classes=3, randomizer=name, prior=prior, **k) for y in (Y, (Y + 1) % 3)
    )
    for out in (one, other):
        assert np.array_equal(out.which, np.arange(300))
    if name == "blocks":
        assert np.array_equal(one.randomizer.partitions, other.randomizer.partitions)
        assert np.array_equal(
            one.randomizer.partitions, tacit.label_dp.Blocks(1.0, prior).partitions
        )
    else:
        assert np.array_equal(one.randomizer.orders, other.randomizer.orders)
        answers = np.take_along_axis(one.randomizer.orders, np.arange(3)[None], axis=1)
        assert all(label in answers[i, : one.randomizer.k[i]] for i, label in enumerate(one.labels))


def test_answers_with_blocks_are_their_numbers():
    names = np.array(["ant", "bee", "cow", "dog"])
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    out = randomize(names[Y], classes=names, randomizer="blocks", prior=prior, budget="epsilon=20")
    assert np.array_equal(out.randomizer.partitions, np.tile(np.arange(4), (256, 1)))
    assert np.array_equal(out.labels, Y)
    few = randomize(names[Y], classes=names, randomizer="blocks", prior=prior, budget="epsilon=0.5")
    assert set(few.labels) == set(range(few.randomizer.n_blocks.max()))
    assert few.guarantee_.event == tacit.privacy.events.RandomizedResponse(0.5, 2)


@pytest.mark.parametrize(
    "given", [{}, {"prior": [0.5, 0.3, 0.2]}, {"prior": [[0.5, 0.3, 0.2]] * 2, "which": True}]
)
def test_labels_that_share_a_prior_have_different_blocks(given):
    """Partitions, and which each label has, are in the output, follow from public facts, and tell
    all classes apart.
    """
    if "which" in given:
        given = given | {"which": np.arange(300) // 150}
    one, other = (
        randomize(y, classes=3, randomizer="blocks", budget="epsilon=0.5", **given)
        for y in (Y, (Y + 1) % 3)
    )
    assert np.array_equal(one.randomizer.partitions, other.randomizer.partitions)
    assert np.array_equal(one.which, other.which)
    blocks = one.randomizer.partitions[one.which]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert np.mean(blocks[:, first] != blocks[:, second]) > 0.1
    likelihood = np.exp(one.randomizer.log_likelihood(one.labels, one.which))
    assert np.array_equal(
        likelihood == likelihood.max(axis=1, keepdims=True), blocks == one.labels[:, None]
    )


def test_infinite_budgets_keep_labels():
    for name in ("rr", "rr-with-prior", "blocks", "symmetric-unary", "rr-on-bins"):
        given = {"values": np.arange(3)} if name == "rr-on-bins" else {"classes": 3}
        assert np.array_equal(
            randomize(Y, budget="epsilon=inf", randomizer=name, **given).labels, Y
        )
    assert np.array_equal(
        randomize(Y, budget="epsilon=inf", randomizer="laplace", classes=3).labels, np.eye(3)[Y]
    )


def test_numbers_go_to_the_nearest_value_and_are_clamped():
    out = randomize(
        [-5.0, 0.4, 0.6, 9.0], values=[0.0, 1.0, 2.0], randomizer="rr-on-bins", budget="epsilon=inf"
    )
    assert out.labels.tolist() == [0.0, 0.0, 1.0, 2.0]


def test_asking_twice_is_charged_twice_and_then_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "labels")
    ledger.allow("epsilon=2", "change-label")
    for _ in range(2):
        out = randomize(Y, classes=3, budget="epsilon=1", ledger=ledger)
    assert "ledger of 'labels'" in out.guarantee_.statement()
    with pytest.raises(LedgerError):
        randomize(Y, classes=3, budget="epsilon=1", ledger=ledger)
    assert len(ledger.account().charges) == 2


def test_seeds_are_for_research_noise():
    given = {"classes": 3, "noise": "research", "random_state": 5}
    assert np.array_equal(randomize(Y, **given).labels, randomize(Y, **given).labels)
    with pytest.warns(UserWarning, match="ignored"):
        randomize(Y, classes=3, random_state=5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classes": 2}, "row .* has label 2"),
        ({"classes": None}, "classes is missing"),
        ({"randomizer": "coin"}, "randomizer='coin'"),
        ({"randomizer": "rr-top-k"}, "k=None"),
        ({"k": 2}, "k=2"),
        ({"prior": [0.5, 0.5], "randomizer": "rr-with-prior"}, "2 columns for 3 classes"),
        ({"prior": [2, -0.5, -0.5], "randomizer": "rr-with-prior"}, "negative"),
        ({"prior": [0.5, 0.5, 0.5], "randomizer": "rr-with-prior"}, "adds up to 1.5"),
        ({"prior": [0.5, 0.25, 0.25]}, stating("prior=", "rr-top-k", "rr-with-prior", "blocks")),
        ({"prior": [0.5, 0.5, 0.5], "randomizer": "blocks"}, "prior row 0 adds up to 1.5, not 1"),
        (
            {"prior": [[0.5, 0.5, 0]] * 5, "randomizer": "blocks"},
            stating("prior", "5 rows", "300 labels"),
        ),
        (
            {"prior": [[0.5, 0.5]] * 300, "randomizer": "blocks"},
            "prior has 2 columns for 3 classes",
        ),
        ({"prior": [float("nan"), 0.5, 0.5], "randomizer": "rr-with-prior"}, "negative or NaN"),
        ({"prior": "names", "randomizer": "blocks"}, stating("prior", "numbers")),
        ({"which": [0] * 300}, "pass prior="),
        ({"y": []}, "empty"),
        ({"y": [[1], [1, 2]]}, "different lengths"),
        ({"ledger": "x"}, "must be a Ledger"),
        ({"randomizer": ["rr"]}, "randomizer="),
        ({"randomizer": "laplace", "budget": "epsilon=1e-8"}, "64-bit sums overflow"),
        ({"y": ["a", None], "classes": ["a", "b"]}, "row 1"),
        ({"randomizer": "unbiased", "values": [-1e308, 0, 1e308], "y": [0.0]}, "within 1e100"),
        ({"randomizer": "unbiased", "values": [0, 1e-90, 1], "y": [0.0]}, "too many outputs"),
        ({"randomizer": "rr-on-bins", "values": np.arange(5000), "y": [0.0]}, "coarser"),
        ({"randomizer": "rr-on-bins", "values": [0, 1], "y": [1j]}, "complex"),
        ({"budget": "epsilon=0"}, "epsilon=0"),
        ({"budget": "epsilon=nan"}, "cannot be read"),
        ({"y": [[1, 2]]}, "shape"),
        ({"y": [0.0, float("nan")]}, "row 1"),
        ({"randomizer": "rr-on-bins"}, "pass values="),
        (
            {"randomizer": "rr-on-bins", "values": [0, 1], "y": [0.0, float("nan")]},
            stating("row 1", "finite"),
        ),
        ({"randomizer": "unbiased", "values": [0, 1], "y": ["a"]}, "not numbers"),
    ],
)
def test_what_is_wrong_is_refused(given, message):
    own = {"y": Y, "classes": 3} | given
    with pytest.raises((InputError, BudgetError), match=message):
        randomize(own.pop("y"), **own)


def test_counts_are_estimated_without_bias():
    labels = np.repeat([0, 1, 2], [20_000, 10_000, 5_000])
    out = randomize(labels, classes=3, budget="epsilon=1", noise="research", random_state=0)
    assert out.randomizer.counts(out.labels) == pytest.approx([20_000, 10_000, 5_000], abs=2500)
    assert not math.isinf(out.guarantee_.epsilon())


def test_several_priors_that_are_all_uniform_are_none():
    out = randomize(
        Y,
        classes=3,
        randomizer="rr-with-prior",
        prior=np.full((2, 3), 1 / 3),
        which=np.arange(300) % 2,
    )
    assert out.which is None
    assert set(out.labels) <= {0, 1, 2}
