"""What every learner must keep, whatever its method."""

import math
import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import tacit
from contracts.learners import (
    AMPLE,
    BUDGETS,
    CASES,
    CENTRES,
    CLASSES,
    EUCLIDEAN,
    FEW,
    MOVED_BY_LESS,
    NAMED,
    NEEDS,
    PUBLIC,
    STOPPING,
    STRICT,
    UNITS_OF,
    UNUSED,
    WIDTH,
    X,
    Y,
    finite,
    make,
    same,
)
from messages import stating
from tacit.errors import BudgetError, InputError, LedgerError, PrivacyLeakWarning
from tacit.learners.common import base
from tacit.learners.methods import METHODS
from tacit.mechanisms.noise import NoiseSource, ResearchNoise
from tacit.privacy import accounting
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Ledger

ALL = pytest.mark.parametrize(("method", "variant"), CASES)
NOISY = pytest.mark.parametrize(
    ("method", "variant"), [case for case in CASES if case[0] not in UNUSED]
)
UNITS = pytest.mark.parametrize("unit", ["add-remove", "replace", "change-label"])


def payable(method, variant, budget):
    kind = Budget.parse(budget).kind
    return kind in CLASSES[method].budget_kinds and (
        variant.get("selection") is None or kind == "pure"
    )


def usual(method, variant, rho=0.5, epsilon=1.0):
    """A budget that the method takes: in zCDP if it can be."""
    return f"rho={rho}" if payable(method, variant, "rho=0.5") else f"epsilon={epsilon}"


@ALL
@UNITS
@pytest.mark.parametrize("budget", BUDGETS)
def test_promise_is_kept_and_within_the_budget(method, variant, budget, unit):
    if not payable(method, variant, budget):
        with pytest.raises(BudgetError):
            make(method, variant, budget=budget).promise()
        return
    learner = make(method, variant, budget=budget, unit=unit)
    if unit not in UNITS_OF.get(method, (unit,)):
        with pytest.raises(InputError, match="does not imply"):
            learner.promise()
        return
    promise = learner.promise()
    learner.fit(X, Y)
    assert learner.guarantee_ == promise == learner.promise()
    if method in STOPPING:
        assert Budget.parse(budget).permits(learner.spent_.event)
    else:
        assert learner.spent_ == promise
    assert promise.unit == unit


@pytest.mark.parametrize(
    ("method", "variant", "budget", "unit"),
    [
        (method, variant, budget, unit)
        for method, variant in CASES
        for budget in STRICT
        for unit in UNITS_OF.get(method, ("add-remove", "replace", "change-label"))
        if payable(method, variant, budget)
    ],
)
def test_no_stated_number_exceeds_the_budget(method, variant, budget, unit):
    """Strictly, in floats: a calibration has no slack."""
    promise, allowed = (
        make(method, variant, budget=budget, unit=unit).promise(),
        Budget.parse(budget),
    )
    if allowed.rho is not None:
        assert promise.rho <= allowed.rho
    elif allowed.mu is not None:
        assert promise.mu <= allowed.mu
    else:
        assert promise.epsilon(allowed.delta or 0.0) <= allowed.epsilon


@NOISY
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
def test_a_promise_spends_its_budget(method, variant, unit):
    """No less than the budget is stated either: an event that forgets a factor would promise too
    little.
    """
    if unit not in UNITS_OF.get(method, (unit,)):
        pytest.skip("not a neighbouring relation of this method")
    if not payable(method, variant, "rho=0.5"):
        assert make(method, variant, budget="epsilon=1", unit=unit).promise().epsilon(
            0
        ) == pytest.approx(1, rel=1e-6)
        return
    assert make(method, variant, budget="rho=0.5", unit=unit).promise().rho == pytest.approx(
        0.5, rel=1e-6
    )
    # of which the cost is that of blocks
    if payable(method, variant, "mu=1") and method != "label-private":
        assert make(method, variant, budget="mu=1", unit=unit).promise().mu == pytest.approx(
            1, rel=1e-6
        )


@ALL
def test_a_replaced_record_is_hidden_by_the_noise_of_two_changes(method, variant):
    """rho under replacement is that of a quarter of it under add/remove, in all that is
    released.
    """
    if method in UNITS_OF:
        pytest.skip("priced in another unit than add/remove")
    if method in MOVED_BY_LESS:
        pytest.skip("some of its sums move by less than two; test_replay.py bounds each")
    whole, quarter = usual(method, variant, epsilon=2), usual(method, variant, rho=0.125)
    for seed in range(3):
        given = {"noise": "research", "random_state": seed}
        replaced = (
            make(method, variant, budget=whole, unit="replace", **given).fit(X, Y).released_.arrays
        )
        removed = make(method, variant, budget=quarter, **given).fit(X, Y).released_.arrays
        for name in removed:
            np.testing.assert_allclose(replaced[name], removed[name], rtol=1e-6, atol=1e-6)


@ALL
def test_a_unit_that_is_no_text_is_one_line(method, variant):
    with pytest.raises(InputError, match="unit=array") as caught:
        make(method, variant, unit=np.array(["add-remove", "replace"])).promise()
    assert "\n" not in str(caught.value)


@ALL
def test_the_promise_needs_no_data_and_does_not_depend_on_it(method, variant):
    budget = usual(method, variant)
    learner = make(method, variant, budget=budget)
    promise = learner.promise()
    learner.fit(X[:1], Y[:1])
    assert learner.guarantee_ == promise


@ALL
def test_check_refuses_the_shape_that_fit_refuses(method, variant):
    learner = make(method, variant, budget=usual(method, variant))
    learner.check(*X.shape)
    assert not hasattr(learner, "classes_")
    with pytest.raises(InputError, match="columns") as caught:
        learner.check(10, 2**20 + 1)
    assert "\n" not in str(caught.value)


@ALL
@pytest.mark.parametrize("rows", [[0], list(range(120))])
def test_probabilities_sum_to_one_and_their_largest_is_predicted(method, variant, rows):
    for spend in (usual(method, variant), "epsilon=inf"):
        learner = make(method, variant, budget=spend).fit(X[rows], Y[rows])
        found = learner.predict_proba(X)
        assert found.shape == (len(X), 3)
        assert found.dtype == np.float64
        assert np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-9)
        assert found.min() >= 0
        assert np.array_equal(learner.classes_[found.argmax(axis=1)], learner.predict(X))


@ALL
@pytest.mark.parametrize("rows", [[0], [0, 50], list(range(40))])
def test_classes_without_records_simply_work(method, variant, rows):
    budget = usual(method, variant)
    for spend in (budget, "epsilon=inf"):
        learner = make(method, variant, budget=spend).fit(X[rows], Y[rows])
        assert learner.classes_.tolist() == [0, 1, 2]
        assert finite(learner)
        assert set(learner.predict(X)) <= {0, 1, 2}


def reshaped(method, variant, change):
    """The public rows and names of a case, each changed in width."""
    given = NEEDS[method] | variant
    return {
        name: change(given[name]) for name in ("public", "names") if given.get(name) is not None
    }


@ALL
def test_one_column_works(method, variant):
    if variant.get("pooling"):
        pytest.skip("pooling over two columns needs two")
    budget = usual(method, variant)
    one = make(method, variant | reshaped(method, variant, lambda rows: rows[:, :1]), budget=budget)
    assert one.fit(X[:, :1], Y).predict(X[:, :1]).shape == (120,)


SHAPES = {  # rows and labels, each in the width of X times the last number
    "one record per class": (X[[0, 50, 100]], Y[[0, 50, 100]], 1),
    "more columns than records": (np.tile(X[[0, 50, 100]], (1, 5)), Y[[0, 50, 100]], 5),
    "constant columns": (np.ones_like(X), Y, 1),
}


@ALL
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("infinite", [False, True])
def test_unkind_data_survives(method, variant, shape, infinite):
    rows, labels, times = SHAPES[shape]
    budget = usual(method, variant)
    wide = reshaped(method, variant, lambda rows: np.tile(rows, (1, times)))
    learner = make(
        method, variant | wide, budget="epsilon=inf" if infinite else budget, noise="research"
    )
    learner.fit(rows, labels)
    assert finite(learner)
    assert set(learner.predict(rows)) <= {0, 1, 2}


@NOISY
def test_secure_noise_is_fresh_and_research_noise_repeats(method, variant):
    def private(**parameters):
        low = usual(method, variant, rho=0.001, epsilon=0.05)
        return make(method, variant, budget=low, **parameters).fit(X, Y)

    assert not all(same(private(), private()) for _ in range(3))
    assert same(
        private(noise="research", random_state=1), private(noise="research", random_state=1)
    )
    draws = [private(noise="research", random_state=seed) for seed in range(4)]
    assert not all(same(draws[0], other) for other in draws[1:])


@NOISY
def test_a_seed_never_reaches_secure_noise(method, variant):
    low = usual(method, variant, rho=0.001, epsilon=0.05)
    # of names and few rows a quarter of all draws are alike
    number = 8 if method == "public" else 4
    with pytest.warns(UserWarning, match="random_state is ignored"):
        draws = [make(method, variant, budget=low, random_state=0).fit(X, Y) for _ in range(number)]
    assert not all(same(draws[0], other) for other in draws[1:])


@NOISY
def test_an_infinite_budget_has_no_bound_and_no_randomness(method, variant):
    fits = [make(method, variant, budget="epsilon=inf").fit(X, Y) for _ in range(2)]
    assert fits[0].guarantee_.epsilon(1e-6) == math.inf
    assert fits[0].guarantee_.rho is None
    assert same(*fits)


@ALL
def test_zero_rows_contribute_nothing_to_the_non_private_form(method, variant):
    if method in EUCLIDEAN:
        pytest.skip("a zero row is an ordinary point of a Euclidean mean")
    if method == "pate":
        pytest.skip("records are dealt out to teachers by their number, which is public")
    zeros = np.concatenate([X, np.zeros((5, WIDTH))])
    with_zeros = make(method, variant, budget="epsilon=inf").fit(
        zeros, np.concatenate([Y, [0] * 5])
    )
    assert same(with_zeros, make(method, variant, budget="epsilon=inf").fit(X, Y))


@ALL
def test_string_classes_in_any_order(method, variant):
    names = np.array(["wolf", "ant", "mole"])
    budget = "epsilon=inf"
    by_name = make(method, variant, budget=budget, classes=names).fit(X, names[Y])
    by_index = make(method, variant, budget=budget).fit(X, Y)
    assert np.array_equal(by_name.predict(X), names[by_index.predict(X)])


@ALL
def test_bad_input_is_one_line_and_costs_nothing(method, variant, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    learner = make(method, variant, budget=usual(method, variant), ledger=ledger)
    with pytest.raises(InputError, match=stating("row 120", "label 7", "3 declared classes")):
        learner.fit(np.concatenate([X, X[:1]]), np.append(Y, 7))
    broken = X.copy()
    for value in (np.nan, np.inf):
        broken[3, 2] = value
        with pytest.raises(ValueError, match="NaN|infinity"):
            learner.fit(broken, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        learner.fit(X, Y[:-1])
    assert not ledger.path.exists()


@ALL
@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int32, bool, object]
)
def test_any_numeric_type_of_rows(method, variant, dtype):
    rows = (np.abs(X) * 3 + 1).astype(dtype)
    model = make(method, variant, budget="epsilon=inf").fit(rows, Y)
    assert finite(model)
    if dtype is np.longdouble:
        rows[3, 2] = np.longdouble("1e4000")  # finite here, infinite in float64
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity"):
            make(method, variant, budget="epsilon=inf").fit(rows, Y)


@ALL
def test_what_was_fitted_is_not_reached_by_later_changes(method, variant):
    model = make(method, variant, budget="epsilon=inf").fit(X, Y)
    predicted = model.predict(X)
    for name in model.released_.arrays:
        getattr(model, f"{name}_")[:] = 0
    model.set_params(noise="research", budget="epsilon=2")
    assert np.array_equal(model.predict(X), predicted)
    assert model.noise_ == "secure"


@NOISY
def test_the_ledger_is_charged_the_promise_before_anything_is_learned(method, variant, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    unit = UNITS_OF.get(method, ("add-remove",))[0]
    ledger.allow(usual(method, variant), unit)
    learner = make(method, variant, budget=usual(method, variant), ledger=ledger)
    learner.fit(X, Y)
    assert ledger.account().charges[0].guarantee == learner.promise()
    assert "ledger of 'data'" in learner.guarantee_.statement()
    again = clone(learner)
    with pytest.raises(LedgerError, match="would overdraw"):
        again.fit(X, Y)
    assert not hasattr(again, "released_")


@NOISY
def test_a_fit_that_dies_at_its_first_noise_is_charged(method, variant, tmp_path, monkeypatch):
    """The charge is in the file before any noise is drawn, so that no crash makes noise free."""
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")

    class Dying(ResearchNoise):
        def __getattribute__(self, name):
            if name in NoiseSource.__abstractmethods__:
                raise MemoryError(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(base, "noise_source", lambda *_: Dying(0))
    ledger.allow(usual(method, variant), UNITS_OF.get(method, ("add-remove",))[0])
    learner = make(method, variant, budget=usual(method, variant), ledger=ledger)
    with pytest.raises(MemoryError):
        learner.fit(X, Y)
    assert [charge.guarantee for charge in ledger.account().charges] == [learner.promise()]


@ALL
def test_a_failed_refit_leaves_an_unfitted_learner(method, variant):
    learner = make(method, variant, budget="epsilon=inf").fit(X, Y)
    with pytest.raises(InputError):
        learner.fit(X, Y + 1)
    with pytest.raises(NotFittedError):
        learner.predict(X)
    assert not hasattr(learner, "guarantee_")


DRAWS = ("gaussian", "laplace", "noisy_max", "subset", "bernoulli", "words")


def watch_draws(monkeypatch, on_draw):
    """Call `on_draw` with the number of each draw of research noise before it is made."""
    number = count(1)

    def watched(draw):
        def before(*given, **named):
            on_draw(next(number))
            return draw(*given, **named)

        return before

    for name in DRAWS:
        monkeypatch.setattr(ResearchNoise, name, watched(getattr(ResearchNoise, name)))


def interrupted_at(draw):
    def interrupt(number):
        if number == draw:
            raise KeyboardInterrupt

    return interrupt


def held(learner):
    """Names of what a learner holds, but for the count of its fits."""
    return set(vars(learner)) - {"_lineage", "_member"}


def check_that_interrupts_leave_nothing(fresh):
    """Whatever draw an interrupt comes at, and while a fit works, the learner holds its parameters
    alone.
    """
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        learner = fresh()
        parameters = held(learner)
        watch_draws(patch, lambda number: drawn.append(held(learner)))
        learner.fit(X, Y)
    assert drawn
    assert all(names == parameters for names in drawn)
    for draw in {1, (len(drawn) + 1) // 2, len(drawn)}:
        with pytest.MonkeyPatch.context() as patch:
            watch_draws(patch, interrupted_at(draw))
            with pytest.raises(KeyboardInterrupt):
                learner.fit(X, Y)
        assert held(learner) == parameters
        with pytest.raises(NotFittedError):
            learner.predict(X)


@NOISY
def test_an_interrupted_fit_leaves_nothing_on_the_learner(method, variant):
    budget = usual(method, variant)
    check_that_interrupts_leave_nothing(
        lambda: make(method, variant, budget=budget, noise="research", random_state=0)
    )


@pytest.mark.parametrize("search", [tacit.RandomSearch, tacit.GridSearch, tacit.UnpaidSearch])
def test_an_interrupted_search_leaves_no_best_so_far(search):
    check_that_interrupts_leave_nothing(
        lambda: search(
            tacit.NoisySumPrototypes(),
            [{"public": None}, {"public": PUBLIC}],
            budget="epsilon=1,delta=1e-6",
            classes=3,
            noise="research",
            random_state=3,
        )
    )


def test_an_interrupted_dp_sgd_leaves_no_network():
    pytest.importorskip("opacus")
    check_that_interrupts_leave_nothing(
        lambda: tacit.DPSGD(base="linear", classes=3, sampling_rate=0.2, epochs=1, random_state=0)
    )


@pytest.mark.parametrize("method", sorted(UNUSED))
@pytest.mark.parametrize("budget", ["epsilon=1", "rho=inf"])
def test_a_method_that_uses_no_record_costs_nothing(method, budget, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=0.5")
    learner = make(method, budget=budget, ledger=ledger)
    fits = [
        clone(learner).fit(rows, labels) for rows, labels in ((X, Y), (X[:1], Y[:1]), (-X, 2 - Y))
    ]
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])
    assert fits[0].guarantee_ == learner.promise()
    assert (fits[0].guarantee_.events, fits[0].guarantee_.epsilon(0), fits[0].guarantee_.rho) == (
        (),
        0,
        0,
    )
    assert ledger.account().spent.rho == 0


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("unit", ["add-remove", "replace", "change-label"])
def test_names_cost_nothing(method, unit):
    if unit not in CLASSES[method].units:
        pytest.skip("not a neighbouring relation of this method")
    for budget in BUDGETS:
        if payable(method, {}, budget):
            with_names = make(method, budget=budget, unit=unit, names=CENTRES)
            without = make(method, budget=budget, unit=unit, names=None).promise()
            assert replace(with_names.promise(), unprotected=without.unprotected) == without
            assert with_names.fit(X, Y).guarantee_ == with_names.promise()


@pytest.mark.parametrize("method", NAMED)
def test_several_names_a_class_and_bad_ones(method):
    budget = usual(method, {})
    several = [CENTRES[0], CENTRES[[1, 1]], CENTRES[2]]
    assert finite(make(method, budget=budget, names=several).fit(X, Y))
    for names, said in (
        (CENTRES[:2], "names has rows for 2 classes"),
        (CENTRES[:, :3], "names.* 3"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            make(method, budget=budget, names=names).fit(X, Y)
        assert "\n" not in str(caught.value)
    undeclared = make(method, budget=budget, classes=None, names=CENTRES)
    with (
        pytest.warns(PrivacyLeakWarning),
        pytest.raises(InputError, match="names need a declared class list"),
    ):
        undeclared.fit(X, Y)


UNNAMED = [
    (method, variant | {"names": None} if "names" in variant else variant)
    for method, variant in CASES
]


@pytest.mark.parametrize(
    ("method", "variant"), [case for case in UNNAMED if not CLASSES[case[0]].needs_names]
)
def test_omitted_classes_warn_and_are_listed(method, variant):
    learner = make(method, variant, budget="epsilon=inf", classes=None)
    with pytest.warns(PrivacyLeakWarning, match="pass classes=") as caught:
        learner.fit(X, Y)
    assert caught[0].filename == __file__
    assert any("class list" in quantity for quantity in learner.guarantee_.unprotected)
    assert learner.guarantee_ == learner.promise()
    assert not any(
        "class list" in quantity
        for quantity in make(method, variant, budget="epsilon=inf").promise().unprotected
    )


@pytest.mark.parametrize("method", METHODS)
def test_pipelines_keep_the_guarantee(method):
    seeded = {"noise": "research", "random_state": 0}
    learner = make(method, AMPLE.get(method), budget=usual(method, {}, epsilon=20), **seeded)
    pipeline = make_pipeline(FunctionTransformer(), learner).fit(X, Y)
    assert pipeline[-1].guarantee_ == learner.promise()
    assert pipeline.score(X, Y) > 0.5


@ALL
def test_fits_do_no_accounting(method, variant, monkeypatch):
    """It takes hundreds of milliseconds, and sweeps fit thousands of times."""
    learner = make(method, variant, budget=usual(method, variant))

    def refuse(*given):
        raise AssertionError("a fit asked for epsilon")

    for name in ("epsilon", "gaussian_multiplier"):
        monkeypatch.setattr(accounting, name, refuse)
    learner.fit(X[:10], Y[:10])


class DrawsPublicRows:
    """What a learner of public rows needs for scikit-learn's checks, which know of none: it draws
    some of X's width.
    """

    def fit(self, X, y):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        width = shape[1] if len(shape) == 2 else 1
        self.public = np.random.default_rng(0).normal(size=(50, width))
        try:
            return super().fit(X, y)
        finally:
            self.public = None


class DrawsNames:
    """The same for names: each class that occurs is named by its mean row."""

    def _prepare(self, X, labels):
        self.classes = self.classes_
        self.names = [X[labels == c].mean(axis=0) for c in range(len(self.classes))]
        return super()._prepare(X, labels)


def checkable(kind):
    """The class itself, or a subclass that draws the public rows or names it needs."""
    if not kind.needs_public and not kind.needs_names:
        return kind
    name, draws = f"Checked{kind.__name__}", DrawsPublicRows if kind.needs_public else DrawsNames
    # found by pickle
    return globals().setdefault(name, type(name, (draws, kind), {"__module__": __name__}))


CHECKED = [
    checkable(kind)(**FEW.get(method, {}), **parameters)
    for method, kind in CLASSES.items()
    for parameters in ({"noise": "research"}, {"budget": "epsilon=inf"}, {})
] + [
    tacit.LeastSquares(budget="rho=inf", alpha=0.5, intercept=1.0),
    checkable(tacit.PublicPrototypes)(noise="research", k=3),
    checkable(tacit.PublicPrototypes)(noise="research", centre=True),
]
FRESH = "secure noise is fresh in every fit, so two fits on the same data differ"
EXPECTED_FAILURES = {
    "check_fit_idempotent": FRESH,
    "check_supervised_y_2d": FRESH,
    "check_classifier_data_not_an_array": FRESH,
}


@pytest.mark.parametrize("learner", CHECKED, ids=repr)
def test_scikit_learn_checks(learner):
    random = learner.noise == "secure" and not Budget.parse(learner.budget).infinite
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            learner, expected_failed_checks=EXPECTED_FAILURES if random else {}, on_fail=None
        )
    failed = {
        result["check_name"]: repr(result["exception"])
        for result in results
        if result["status"] == "failed"
    }
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) > 40
