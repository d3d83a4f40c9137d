"""Sums of parts, added up in any order, are fitted to the bits of a fit on all records."""

import pickle
from functools import reduce

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from tacit.compute.wide import Wide
from tacit.errors import InputError, LedgerError
from tacit.learners.common import exact_sums

RNG = np.random.default_rng(0)
N, WIDTH = 90, 5
Y = RNG.integers(0, 3, N)
X = RNG.normal(size=(3, WIDTH))[Y] * 2 + RNG.normal(size=(N, WIDTH))
X[7] = 0
PUBLIC = RNG.normal(size=(40, WIDTH)) + 1
TEXTS = np.array(["ant", "bee", "cat"])

SETTINGS = {"classes": 3, "noise": "research", "random_state": 3}
WITH_PUBLIC = {"public": PUBLIC, "allow_overlap": True}
LEARNERS = {
    "noisy sum": tacit.NoisySumPrototypes("rho=0.5", **SETTINGS),
    "noisy sum, public": tacit.NoisySumPrototypes("rho=0.5", **SETTINGS, **WITH_PUBLIC),
    "least squares": tacit.LeastSquares("epsilon=4,delta=1e-5", **SETTINGS, intercept=0.5),
    "least squares, public": tacit.LeastSquares("rho=0.5", **SETTINGS, **WITH_PUBLIC, counts=30),
    "least squares, labels": tacit.LeastSquares("rho=0.5", **SETTINGS, unit="change-label"),
    "least squares, alpha": tacit.LeastSquares("rho=0.5", **SETTINGS, alpha=0.5),
    "auto": tacit.AutoPrototypes("rho=0.5", **SETTINGS, **WITH_PUBLIC, refine=False),
    "auto, names": tacit.AutoPrototypes(
        "rho=0.5", **SETTINGS, **WITH_PUBLIC, refine=False, names=np.eye(3, WIDTH)
    ),
}


SEVERAL = {
    "noisy sum": tacit.NoisySumPrototypes("rho=0.5", **SETTINGS, most_labels=2),
    "least squares": tacit.LeastSquares("rho=0.5", **SETTINGS, most_labels=1, intercept=0.5),
    "auto": tacit.AutoPrototypes("rho=0.5", **SETTINGS, **WITH_PUBLIC, most_labels=2),
}
SETS = np.array([[True, False, True], [True, True, True], [False, False, False]])[Y]


def released(model):
    return model.released_.arrays | model.released_.carried


def assert_same_release(one, other):
    arrays = released(one)
    assert arrays.keys() == released(other).keys()
    for name, array in arrays.items():
        assert array.tobytes() == released(other)[name].tobytes(), name
    assert one.released_.mechanism == other.released_.mechanism
    assert one.guarantee_ == other.guarantee_
    assert np.array_equal(one.predict(X), other.predict(X))


def parts(n):
    return np.array_split(np.random.default_rng(n).permutation(N), n)


def sums_of(learner, n=4, x=X):
    recipe = learner.recipe(WIDTH)
    return reduce(lambda a, b: a + b, [recipe.sums(x[part], Y[part]) for part in parts(n)])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, np.float64) for name in LEARNERS),
        ("noisy sum", np.float32),
        ("least squares, public", np.float32),
        ("auto", np.float32),
    ],
)
def test_sums_of_parts_give_the_release_of_one_machine(name, kind):
    learner = LEARNERS[name]
    x = X.astype(kind)
    one_machine = type(learner)(**learner.get_params()).fit(x, Y)
    recipe = pickle.loads(pickle.dumps(learner.recipe(WIDTH)))
    total = recipe.zero()
    for part in parts(4):
        total = total + recipe.unpacked(recipe.sums(x[part], Y[part]).packed())
    model = type(learner)(**learner.get_params()).fit_sums(total)

    assert_same_release(one_machine, model)
    assert model.n_features_in_ == WIDTH
    # the sums are as they were
    assert_same_release(one_machine, type(learner)(**learner.get_params()).fit_sums(total))


@pytest.mark.parametrize("name", ["least squares", "auto"])
def test_sums_beyond_64_bits_are_the_same_integers(name, monkeypatch):
    learner = LEARNERS[name]
    narrow = sums_of(learner)
    monkeypatch.setattr(exact_sums, "_NARROW_RECORDS", 30)
    wide = sums_of(learner)
    again = learner.recipe(WIDTH).unpacked(wide.packed())
    assert all(isinstance(total, Wide) for total in again.totals.values())
    assert_same_release(
        learner.fit_sums(narrow), type(learner)(**learner.get_params()).fit_sums(again)
    )


def test_neighbours_differ_by_one_record_of_norm_1():
    for name in ("noisy sum, public", "auto"):
        learner = LEARNERS[name]
        recipe = learner.recipe(WIDTH)
        (total,) = sums_of(learner).totals.values()
        rest = np.arange(N) != 11
        (less,) = recipe.sums(X[rest], Y[rest]).totals.values()
        moved = [int(entry) for entry in (total - less).ravel()]
        assert 2**63 < sum(entry * entry for entry in moved) <= 2**64
        zero_or_class = np.unique(np.nonzero(total - less)[0])
        assert zero_or_class.tolist() == [Y[11]]


def test_a_part_without_records_adds_nothing():
    recipe = LEARNERS["least squares"].recipe(WIDTH)
    nothing = recipe.sums(np.zeros((0, WIDTH)), np.zeros(0))
    total = recipe.sums(X, Y)
    assert nothing.records == 0
    # what a notebook shows
    assert "records" not in repr(total)
    assert "totals" not in repr(total)
    assert (total + nothing).packed() == total.packed()


def test_labels_may_be_texts():
    learner = tacit.NoisySumPrototypes(**SETTINGS | {"classes": TEXTS.tolist()})
    sums = learner.recipe(WIDTH).sums(X.tolist(), TEXTS[Y].tolist())
    model = tacit.NoisySumPrototypes(**learner.get_params()).fit(X, TEXTS[Y])
    assert_same_release(model, learner.fit_sums(sums))


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path):
    ledger = tacit.Ledger(tmp_path / "ledger.jsonl", "people")
    ledger.allow("rho=0.7")
    learner = tacit.NoisySumPrototypes("rho=0.5", **SETTINGS, ledger=ledger)
    sums = learner.recipe(WIDTH).sums(X, Y)
    learner.fit_sums(sums)
    with pytest.raises(LedgerError):
        learner.fit_sums(sums)
    assert not hasattr(learner, "prototypes_")


REFUSED = {
    "declare classes": tacit.NoisySumPrototypes(),
    "on one machine with persons": tacit.NoisySumPrototypes(classes=3, unit="add-remove-person"),
    "pass a finite budget": tacit.LeastSquares("rho=inf", classes=3),
    "pass allow_overlap=True": tacit.LeastSquares(classes=3, public=PUBLIC),
    "pass refine=False": tacit.AutoPrototypes(classes=3, **WITH_PUBLIC),
}


@pytest.mark.parametrize("remedy", REFUSED)
def test_fits_that_need_more_than_sums_are_refused(remedy):
    with pytest.raises(InputError, match=remedy):
        REFUSED[remedy].recipe(WIDTH)


def test_sums_of_another_recipe_are_refused():
    total = sums_of(LEARNERS["noisy sum"])
    for name in ("noisy sum, public", "least squares"):
        with pytest.raises(InputError, match="another learner"):
            LEARNERS[name].fit_sums(total)
        with pytest.raises(InputError, match="two recipes"):
            total + LEARNERS[name].recipe(WIDTH).zero()
        with pytest.raises(InputError, match="by another recipe"):
            LEARNERS[name].recipe(WIDTH).unpacked(total.packed())
    with pytest.raises(InputError, match="must be Sums"):
        LEARNERS["noisy sum"].fit_sums(X)


def test_packed_sums_of_another_version_or_other_classes_are_refused(monkeypatch):
    data = sums_of(LEARNERS["noisy sum"]).packed()
    other = tacit.NoisySumPrototypes("rho=0.5", **SETTINGS | {"classes": [2, 1, 0]})
    with pytest.raises(InputError, match="by another recipe"):
        other.recipe(WIDTH).unpacked(data)
    monkeypatch.setattr(exact_sums, "__version__", "0.0.1")
    with pytest.raises(InputError, match="another version of tacit"):
        LEARNERS["noisy sum"].recipe(WIDTH).unpacked(data)


def test_rows_and_labels_that_do_not_fit_are_refused():
    recipe = LEARNERS["noisy sum"].recipe(WIDTH)
    with pytest.raises(InputError, match="6 columns"):
        recipe.sums(np.ones((2, 6)), [0, 1])
    with pytest.raises(InputError, match="finite"):
        recipe.sums(np.full((2, WIDTH), np.nan), [0, 1])
    with pytest.raises(InputError, match="not among the 3"):
        recipe.sums(np.ones((2, WIDTH)), [0, 3])


def test_auto_without_refinement_spends_all_on_one_sum():
    facts = LEARNERS["auto"].fit(X, Y).released_.mechanism
    assert facts["releases of the sums"] == "one"
    assert facts["share of the budget for the sums"] == 1.0
    # all of rho = 0.5
    assert facts["noise multiplier of the sums"] == pytest.approx(1.0)
    assert not LEARNERS["auto"].refined_


@pytest.mark.parametrize("name", SEVERAL)
def test_sums_of_parts_give_the_bits_of_a_fit_with_several_labels(name):
    learner = SEVERAL[name]
    recipe = pickle.loads(pickle.dumps(learner.recipe(WIDTH)))
    lists = [np.flatnonzero(labels).tolist() for labels in SETS]
    total = recipe.zero()
    for part in parts(4):
        total = total + recipe.sums(X[part], [lists[record] for record in part])
    fitted = clone(learner).fit(X, SETS)
    assert_same_release(clone(learner).fit_sums(recipe.unpacked(total.packed())), fitted)

    # the declared most labels decide the weights
    other = clone(learner).set_params(most_labels=3)
    with pytest.raises(InputError, match="recipe of another learner"):
        other.fit_sums(total)
    with pytest.raises(InputError, match="y has shape"):
        recipe.sums(X, Y)
