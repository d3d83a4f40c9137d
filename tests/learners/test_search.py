"""Searches: what is charged is what is done, and nothing leaves that is not charged."""

import json
import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import tacit
from contracts.learners import FEW, NEEDS, PUBLIC, UNITS_OF, X, Y, learner_class
from messages import lacking, stating
from tacit.errors import BudgetError, InputError, LedgerError, PrivacyLeakWarning, ReleaseError
from tacit.learners.common.overlap import OVERLAP
from tacit.learners.methods import METHODS
from tacit.learners.search.base import hits_of, most_expensive
from tacit.mechanisms import counts, repetition
from tacit.models.decisions import LinearHead
from tacit.models.released import Released
from tacit.privacy.budget import Budget
from tacit.privacy.events import ZCDP, Exponential, Gaussian, Parallel, PureDP, RepeatAndSelect
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

PUBLIC_Y = np.repeat([0, 1, 2], 20)
CANDIDATES = [{"k": 1}, {"k": 3}, {"k": 1, "d_min": 1.2, "d_max": 1.8}]
PAID = [tacit.RandomSearch, tacit.GridSearch]
SEARCHES = [*PAID, tacit.UnpaidSearch]
APPROX = "epsilon=1,delta=1e-6"
KIND = pytest.mark.parametrize("kind", SEARCHES, ids=lambda kind: kind.__name__)
PAID_KIND = pytest.mark.parametrize("kind", PAID, ids=lambda kind: kind.__name__)


def public(**parameters):
    return tacit.PublicPrototypes(public=PUBLIC, **parameters)


SUMS = {
    "estimator": tacit.NoisySumPrototypes(),
    "candidates": [{}, {}, {}],
}  # Gaussian events: quick to calibrate


def make(kind, estimator=None, candidates=CANDIDATES, **parameters):
    parameters = {"budget": APPROX, "classes": range(3)} | parameters
    return kind(estimator or public(), candidates, **parameters)


@KIND
@pytest.mark.parametrize("unit", ["add-remove", "replace", "change-label"])
@pytest.mark.parametrize("budget", [APPROX, "epsilon=1", "epsilon=20,delta=1e-9"])
def test_promise_is_kept_and_spends_the_budget(kind, unit, budget):
    slow = (
        kind is tacit.GridSearch and (unit, budget) != ("add-remove", APPROX) and "delta" in budget
    )
    search = make(kind, budget=budget, unit=unit, **(SUMS if slow else {}))
    promise = search.promise()
    search.fit(X, Y)
    assert search.guarantee_ == search.spent_ == promise == clone(search).promise()
    assert promise.unit == unit
    assert "tuning included" in promise.statement()
    assert search.best_params_ in search.candidates
    assert set(search.predict(X)) <= {0, 1, 2}
    if kind is not tacit.UnpaidSearch:
        limit = Budget.parse(budget)
        assert limit.permits(promise.event)
        assert limit.epsilon * 0.9999 < promise.epsilon(limit.delta or 0.0) <= limit.epsilon


@pytest.mark.parametrize("method", METHODS)
@PAID_KIND
def test_every_method_can_be_tuned(kind, method):
    estimator = learner_class(method)(**NEEDS.get(method, {}), **FEW.get(method, {}))
    if method in UNITS_OF:
        with pytest.raises(InputError, match=stating("private under unit", "add-remove")):
            make(kind, estimator, [{}], budget="epsilon=8,delta=1e-6").promise()
        return
    budget = "epsilon=8,delta=1e-6" if kind is tacit.RandomSearch else "rho=8"
    budget = budget if "zcdp" in learner_class(method).budget_kinds else "epsilon=8"
    search = make(kind, estimator, [{}], budget=budget).fit(X, Y)
    assert search.guarantee_ == search.promise()
    assert search.predict(X).shape == (120,)
    tacit.Release.of(search).verify()


def test_a_run_is_the_fit_and_its_score():
    event = make(tacit.RandomSearch, mean_runs=7, shape=0.5, score_share=0.2).promise().event
    assert (event.mean, event.shape) == (7, 0.5)
    (fit, _), (score, _) = event.event.counted()
    assert isinstance(fit, Parallel)
    assert isinstance(fit.event, Exponential)
    assert isinstance(score, Gaussian)
    assert score.rho == pytest.approx(0.25 * fit.rho)
    pure = make(tacit.RandomSearch, budget="epsilon=1", score_share=0.2).promise().event
    (fit, _), (score, _) = pure.event.counted()
    assert isinstance(score, PureDP)
    assert score.epsilon == pytest.approx(0.25 * fit.pure)


def test_a_grid_adds_up_all_it_does():
    guarantee = make(tacit.GridSearch, budget="rho=0.6").promise()
    assert guarantee.rho == pytest.approx(0.6, rel=1e-7)
    assert len(guarantee.events) == 2 * len(CANDIDATES)
    assert {round(event.rho, 6) for event in guarantee.events} == {0.18, 0.02}
    assert make(tacit.GridSearch, budget="epsilon=0.6").promise().epsilon(0) == pytest.approx(
        0.6, rel=1e-7
    )


@PAID_KIND
def test_public_rows_score_at_no_cost(kind):
    search = make(
        kind, budget="epsilon=1", validation=(PUBLIC, PUBLIC_Y), noise="research", random_state=0
    )
    costs = [
        part
        for part, _ in search.promise().event.contained()
        if not isinstance(part, RepeatAndSelect)
    ]
    assert {type(part) for part in costs} == {Exponential}
    search.fit(X, Y)
    truth = max(score for _, score in search.scores_)
    assert truth == np.sum(search.predict(PUBLIC) == PUBLIC_Y)


@pytest.mark.parametrize("noise", ["secure", "research"])
@pytest.mark.parametrize("budget", [APPROX, "epsilon=1"])
@PAID_KIND
def test_the_noise_of_scores_is_what_the_promise_says(kind, budget, noise, monkeypatch):
    charged = []
    draw = counts.noisy_count
    monkeypatch.setattr(
        counts,
        "noisy_count",
        lambda hits, cost, source: charged.append(cost) or draw(hits, cost, source),
    )
    search = make(kind, budget=budget, noise=noise).fit(X, Y)
    assert len(charged) == len(CANDIDATES) if kind is tacit.GridSearch else len(charged) > 0
    assert set(charged) < {part for part, _ in search.guarantee_.event.contained()}
    assert all(cost.bounded for cost in charged)


@PAID_KIND
def test_a_run_is_fitted_at_the_noise_that_the_promise_says(kind):
    search = make(kind, tacit.NoisySumPrototypes(), [{}, {}]).fit(X, Y)
    charged = [
        part.noise_multiplier
        for part, _ in search.guarantee_.event.contained()
        if isinstance(part, Gaussian)
    ]
    assert search.released_.mechanism["noise standard deviation"] == min(charged)


def test_scores_count_the_records_that_the_run_gets_right():
    search = make(
        tacit.GridSearch, candidates=[{"k": 1}], budget="rho=1e6", noise="research", random_state=0
    ).fit(X, Y)
    assert search.scores_[0][1] == pytest.approx(np.sum(search.predict(X) == Y), abs=0.1)


def test_a_record_changes_the_prediction_of_no_other():
    """Classes that tie but for rounding, so that the last bits decide; in sum of any part of the
    records.
    """
    rng = np.random.default_rng(0)
    half, left, right = rng.normal(size=(400, 128)), rng.normal(size=128), rng.normal(size=128)
    rows, truth = np.column_stack([half, half]), np.arange(400) % 2
    arrays = {
        "coefficients": np.stack([np.append(left, right), np.append(right, left)]),
        "intercepts": np.zeros(2),
    }
    released = Released("a tie", arrays, LinearHead())
    alone = [hits_of(released, rows[[i]], truth[[i]]) for i in range(400)]
    assert 0 < sum(alone) < 400
    for n in (3, 50, 101, 399, 400):
        assert hits_of(released, rows[:n], truth[:n]) == sum(alone[:n])


def test_runs_are_as_many_as_drawn_and_candidates_are_drawn_in_each():
    search = make(
        tacit.RandomSearch,
        candidates=[{"k": k} for k in range(1, 5)],
        mean_runs=6,
        noise="research",
    )
    fits = [clone(search).set_params(random_state=seed).fit(X[::8], Y[::8]) for seed in range(30)]
    runs = [len(fit.scores_) for fit in fits]
    assert min(runs) >= 1
    assert np.mean(runs) == pytest.approx(6, abs=4)  # geometric: a standard error of 1
    assert len(set(runs)) > 5
    assert {fit.scores_[0][0]["k"] for fit in fits} == {1, 2, 3, 4}
    drawn = np.bincount([candidate["k"] for fit in fits for candidate, _ in fit.scores_])[1:]
    assert stats.chisquare(drawn).pvalue > 1e-6
    assert any(
        len({candidate["k"] for candidate, _ in fit.scores_}) < len(fit.scores_) for fit in fits
    )


def test_the_number_of_runs_is_drawn_for_the_event_that_is_promised(monkeypatch):
    asked = []
    monkeypatch.setattr(repetition, "number_of_runs", lambda event, noise: asked.append(event) or 2)
    search = make(tacit.RandomSearch, mean_runs=3, shape=0).fit(X, Y)
    assert asked == [search.guarantee_.event]


def test_only_the_best_run_leaves():
    search = make(
        tacit.RandomSearch,
        candidates=[{"d_min": 1.999, "d_max": 2.0}, {}],
        noise="research",
        mean_runs=12,
    )
    search.set_params(random_state=3, budget="epsilon=30,delta=1e-6").fit(X, Y)
    best = max(search.scores_, key=lambda run: run[1])
    assert search.best_params_ == best[0]
    secure = make(tacit.RandomSearch).fit(X, Y)
    assert not hasattr(secure, "scores_")
    assert not any("score" in name or "runs" in name for name in vars(secure) if name.endswith("_"))
    facts = secure.released_.mechanism
    assert "secret number of runs" in facts["tuning"]
    assert "the guarantee covers all of them" in facts["tuning"]
    assert str(secure.best_params_["k"]) in facts["chosen parameters"]


@pytest.mark.parametrize("kind", PAID, ids=lambda kind: kind.__name__)
def test_a_tuned_classifier_can_be_released(kind, tmp_path):
    search = make(kind).fit(X, Y)
    release = tacit.Release.load(
        tacit.Release.of(search, name="tuned").save(tmp_path / "tuned")
    ).verify()
    assert np.array_equal(release.predict(X), search.predict(X))
    assert release.document.stamp is None
    expected = "approximate" if kind is tacit.RandomSearch else "zCDP"
    assert release.document.variant.variant == expected
    assert ("-zCDP" in release.document.accounting.statement) == (kind is tacit.GridSearch)
    assert "priced as continuous" not in str(release.document.accounting.assumptions)
    assert "tuning included" in release.card()


def test_an_unpaid_search_is_not_private_and_says_so(tmp_path):
    search = make(tacit.UnpaidSearch, budget="rho=0.5").fit(X, Y)
    assert not search.guarantee_.bounded
    assert "not private" in search.guarantee_.statement()
    assert not lacking(search.guarantee_.statement(), "without paying")
    release = tacit.Release.of(search)
    assert release.document.stamp == "NOT FOR RELEASE"
    assert "without paying" in release.card()
    with pytest.raises(ReleaseError, match="NOT FOR RELEASE"):
        release.save(tmp_path / "unpaid")
    assert len(search.scores_) == len(CANDIDATES)
    assert {score == int(score) for _, score in search.scores_} == {True}
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=1000")
    with pytest.raises(LedgerError, match="would overdraw"):
        make(tacit.UnpaidSearch, ledger=ledger).fit(X, Y)


def test_an_unpaid_run_has_the_full_budget_in_its_unit():
    search = make(
        tacit.UnpaidSearch, tacit.NoisySumPrototypes(), [{}], budget="rho=0.5", unit="replace"
    )
    alone = tacit.NoisySumPrototypes("rho=0.5", classes=3, unit="replace")
    assert alone.promise().event in [part for part, _ in search.promise().event.counted()]


SPACE = {"k": [1, 3], "d_min": {"low": 0.0, "high": 1.0}, "d_max": {"low": 1.2, "high": 2.0}}


def trials(number=12, space=SPACE, **parameters):
    pytest.importorskip("optuna", reason="optuna is a development dependency")
    return make(
        tacit.UnpaidSearch, candidates=space, trials=number, **({"budget": "rho=0.5"} | parameters)
    )


def test_trials_stay_in_their_ranges_and_the_best_is_kept():
    search = trials(noise="research", random_state=0, budget="rho=0.01").fit(X, Y)
    assert len(search.scores_) == 12
    assert len({candidate["d_min"] for candidate, _ in search.scores_}) == 12
    for candidate, score in search.scores_:
        assert list(candidate) == list(SPACE)
        assert candidate["k"] in SPACE["k"]
        assert all(
            SPACE[name]["low"] <= candidate[name] <= SPACE[name]["high"]
            for name in ("d_min", "d_max")
        )
        assert score == int(score)
    best = max(search.scores_, key=lambda run: run[1])
    assert search.best_params_ == best[0]
    assert np.sum(search.predict(X) == Y) == best[1]


def test_trials_follow_the_scores(monkeypatch):
    """Scores that grow with d_min draw the later trials there; the other way round, away."""
    from tacit.learners.search import base

    ways = {}
    for sign in (1, -1):
        given = []
        fit = tacit.PublicPrototypes.fit

        def noted(self, *args, given=given, fit=fit, **named):
            given.append(self.d_min)
            return fit(self, *args, **named)

        with monkeypatch.context() as patch:
            patch.setattr(tacit.PublicPrototypes, "fit", noted)
            patch.setattr(
                base, "hits_of", lambda *_, given=given, sign=sign: int(1000 * sign * given[-1])
            )
            search = trials(40, noise="research", random_state=1).fit(X[::8], Y[::8])
        ways[sign] = np.mean([candidate["d_min"] for candidate, _ in search.scores_[20:]])
    assert ways[1] > 0.7
    assert ways[-1] < 0.3


def test_trials_repeat_with_their_seed():
    def run(seed):
        return trials(6, noise="research", random_state=seed, budget="rho=0.01").fit(X, Y).scores_

    assert run(0) == run(0) != run(1)
    # secure noise has no seed, nor have its trials
    assert trials(2).fit(X, Y).scores_ != trials(2).fit(X, Y).scores_


def test_trials_are_not_private_and_say_how_many(tmp_path):
    search = trials(7)
    assert not search.promise().bounded
    assert search.promise() == search.fit(X, Y).guarantee_
    said = "tuned on the private records without paying, in 7 trials"
    assert said in search.guarantee_.statement()
    assert "not private" in search.guarantee_.statement()
    release = tacit.Release.of(search)
    assert release.document.stamp == "NOT FOR RELEASE"
    assert said in release.card()
    assert not lacking(search.released_.mechanism["tuning"], "7 trials", "optuna", "TPE")
    assert len(trials(3, budget="rho=inf").fit(X, Y).scores_) == 3


def test_values_of_any_kind_can_be_tried():
    space = {
        "steps": [(1.0,), (0.5, 0.5)],
        "pooling": {"low": 1, "high": 3},
        "radius": {"low": 1, "high": 2.0},
    }
    search = trials(8, space | {"public": [None]}, estimator=tacit.CoinPressPrototypes()).fit(X, Y)
    assert {type(candidate["steps"]) for candidate, _ in search.scores_} == {tuple}
    assert {type(candidate["pooling"]) for candidate, _ in search.scores_} == {int}
    assert {type(candidate["radius"]) for candidate, _ in search.scores_} == {float}


def test_trials_are_quiet(capfd):
    trials(2).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_without_optuna_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("tacit.compute.extras.find_spec", lambda library: None)
    with pytest.raises(InputError, match=stating("optuna", "pip install", "'.[tune]'")):
        make(tacit.UnpaidSearch, candidates=SPACE, trials=2).promise()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"number": 0}, stating("trials=0", "1")),
        ({"number": 2.5}, "trials=2.5 must be a whole number"),
        ({"number": None}, "must be a list of dicts"),
        ({"space": CANDIDATES}, stating("dict", "trials")),
        ({"space": {}}, stating("dict", "trials")),
        ({"space": {"k": 3}}, stating("k=3", "list", "range")),
        ({"space": {"k": []}}, stating("list", "range")),
        ({"space": {"k": "15"}}, stating("k='15'", "list", "range")),
        ({"space": {"k": {"low": 1}}}, stating("list", "range")),
        ({"space": {"k": {"low": 1, "high": 2, "step": 1}}}, stating("list", "range")),
        ({"space": {"k": {"low": 1, "high": "2"}}}, stating("k", "1", "'2'")),
        ({"space": {"k": {"low": 1, "high": math.inf}}}, "pass two finite numbers"),
        ({"space": {"k": {"low": 2, "high": 2}}}, "low must be below high"),
        ({"space": {"k": {"low": 0, "high": 2, "log": True}}}, "low above 0"),
        ({"space": {"k": {"low": 1, "high": 2, "log": "yes"}}}, "log True or False"),
        ({"space": {"kk": [1]}}, stating("'kk'", "estimator")),
        ({"space": {"unit": ["replace"]}}, stating("'unit'", "search")),
        ({"space": {"k": [1, 0]}}, "k=0 must be a whole number"),
        ({"space": {"k": {"low": -3, "high": 5}}}, "k=-3 must be a whole number"),
        ({"space": {"d_min": {"low": 0.0, "high": 3.0}}}, "d_min=3.0"),
    ],
)
def test_bad_trials_are_refused_before_any_data(parameters, message):
    with pytest.raises(InputError, match=message) as caught:
        trials(**parameters).promise()
    assert "\n" not in str(caught.value)


@KIND
@pytest.mark.parametrize("budget", ["epsilon=inf", "rho=inf"])
def test_an_infinite_budget_tries_all_without_noise(kind, budget):
    fits = [make(kind, budget=budget).fit(X, Y) for _ in range(2)]
    assert not fits[0].guarantee_.bounded
    assert fits[0].scores_ == fits[1].scores_
    assert len(fits[0].scores_) == len(CANDIDATES)
    assert "the guarantee covers all of them" not in fits[0].released_.mechanism["tuning"]
    with_rows = make(kind, budget=budget, validation=(PUBLIC, PUBLIC_Y)) if kind in PAID else None
    assert with_rows is None or not with_rows.fit(X, Y).guarantee_.bounded


def test_a_random_search_has_no_zcdp():
    with pytest.raises(BudgetError, match=stating("zCDP", "delta=1e-6", "GridSearch")):
        make(tacit.RandomSearch, budget="rho=0.5").promise()


@PAID_KIND
def test_a_pure_budget_needs_a_pure_estimator(kind):
    with pytest.raises(BudgetError, match=stating("budget epsilon=1", "Gaussian", "pure")):
        make(kind, tacit.NoisySumPrototypes(), [{}], budget="epsilon=1").promise()


@PAID_KIND
@pytest.mark.parametrize(
    "budget", ["epsilon=1e-7", "epsilon=1e9", "epsilon=0.01,delta=1e-30", "epsilon=1e9,delta=1e-6"]
)
def test_the_ends_of_the_range_can_be_spent(kind, budget):
    assert Budget.parse(budget).permits(make(kind, budget=budget).promise().event)


def test_candidates_that_cost_differently_are_charged_as_the_most_expensive():
    coinpress = tacit.CoinPressPrototypes()
    search = make(tacit.RandomSearch, coinpress, [{}, {"counts": 40}, {"steps": (0.5, 0.5)}])
    assert Budget.parse(APPROX).permits(search.promise().event)
    assert search.promise().unprotected == ("class counts (declared)",)
    assert search.fit(X, Y).guarantee_ == search.promise()
    assert most_expensive([Gaussian(1.0), Gaussian(1.0)], pure=False) == Gaussian(1.0)
    assert most_expensive([Gaussian(2.0), Gaussian(1.0)], pure=False) == ZCDP(0.5)
    assert most_expensive([Exponential(2.0), PureDP(1.0)], pure=True) == PureDP(2.0)


@KIND
def test_the_ledger_is_charged_once_for_all(kind, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=inf")
    search = make(kind, ledger=ledger).fit(X, Y)
    (charge,) = ledger.account().charges
    assert charge.guarantee == search.promise()
    assert "ledger of 'data', tuning included" in search.guarantee_.statement()


def test_research_runs_repeat_with_their_seed_and_differ_from_each_other():
    def scores(seed):
        # exact scores of fits that are mostly noise
        rows = {"validation": (PUBLIC, PUBLIC_Y), "budget": "rho=0.001"}
        search = make(
            tacit.GridSearch, tacit.NoisySumPrototypes(), [{}] * 5, noise="research", **rows
        )
        return [score for _, score in search.set_params(random_state=seed).fit(X, Y).scores_]

    assert scores(1) == scores(1) != scores(2)
    assert len(set(scores(1))) > 2


def test_grids_of_scikit_learn_pipelines_and_names_as_classes():
    names = np.array(["wolf", "ant", "mole"])
    grid = ParameterGrid({"k": [1, 3], "d_min": [0.0, 1.0]})
    search = make(tacit.GridSearch, candidates=grid, budget="rho=1e4", classes=names)
    pipeline = make_pipeline(FunctionTransformer(), search).fit(X, names[Y])
    assert pipeline.score(X, names[Y]) > 0.9
    assert len(pipeline[-1].scores_) == 4
    search = make(
        tacit.GridSearch, budget="rho=1e4", classes=names, validation=(PUBLIC, names[PUBLIC_Y])
    )
    assert max(score for _, score in search.fit(X, names[Y]).scores_) > 50


def test_omitted_classes_warn_and_are_listed():
    search = make(tacit.GridSearch, classes=None)
    with pytest.warns(PrivacyLeakWarning, match="pass classes=") as caught:
        search.fit(X, Y)
    assert len(caught) == 1
    assert search.guarantee_.unprotected == ("class list (read off the private labels)", OVERLAP)


BAD = [
    ({"candidates": []}, "candidates is empty"),
    ({"candidates": {"k": 1}}, "must be a list of dicts"),
    ({"candidates": 3}, "must be a list of dicts"),
    ({"candidates": [1]}, "candidate 1 must be a dict"),
    ({"candidates": [{"kk": 1}]}, stating("'kk'", "estimator")),
    ({"candidates": [{"budget": "rho=1"}]}, stating("'budget'", "search")),
    ({"candidates": [{"k": 0}]}, "k=0 must be a whole number"),
    ({"estimator": 3}, "estimator=3 must be a tacit learner"),
    (
        {"estimator": tacit.GridSearch(None, None, budget=APPROX)},
        stating("tacit learner", "search"),
    ),
    ({"estimator": public(classes=3), "classes": None}, stating("classes", "estimator")),
    ({"mean_runs": 0.5}, stating("mean_runs=0.5", "1")),
    ({"mean_runs": math.nan}, stating("mean_runs=nan")),
    ({"mean_runs": "5"}, "mean_runs='5' must be a number"),
    ({"shape": 2}, stating("shape=2", "0", "1")),
    ({"score_share": 0}, "score_share=0 must be a number"),
    ({"score_share": math.nan}, stating("score_share=nan")),
    ({"unit": "person"}, stating("unit='person'")),
    ({"budget": "epsilon=1e-9,delta=1e-30", "mean_runs": 1000}, "leaves each run less than"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_parameters_are_one_line_before_any_data(parameters, message):
    with pytest.raises(ValueError, match=message) as caught:
        make(tacit.RandomSearch, **parameters).promise()
    assert "\n" not in str(caught.value)


BAD_WITH_DATA = [
    ({"candidates": [{"k": 1}, {"k": 61}]}, stating("k=61", "60 public rows")),
    ({"estimator": tacit.PublicPrototypes()}, "public=None"),
    ({"validation": PUBLIC}, "validation must be a pair"),
    ({"validation": (PUBLIC[:, :2], PUBLIC_Y)}, "pass 6 columns"),
    ({"validation": (PUBLIC, PUBLIC_Y[:-1])}, "one label per row"),
    ({"validation": (PUBLIC, PUBLIC_Y + 1)}, stating("label 3", "3 declared classes")),
    ({"validation": (PUBLIC * math.nan, PUBLIC_Y)}, "validation row 0 is not finite"),
]


@pytest.mark.parametrize(
    ("parameters", "message"), BAD_WITH_DATA, ids=[message for _, message in BAD_WITH_DATA]
)
def test_what_does_not_fit_the_data_is_refused_before_it_is_charged(parameters, message, tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    search = make(tacit.RandomSearch, ledger=ledger, **parameters)
    with pytest.raises(InputError, match=message) as caught:
        search.fit(X, Y)
    assert "\n" not in str(caught.value)
    assert not ledger.path.exists()
    with pytest.raises(NotFittedError):
        search.predict(X)


@KIND
def test_trees_are_refused_before_a_charge_and_a_release_takes_them(kind, tmp_path):
    tree = {0: 10, 1: 10}
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    for estimator, candidate in (
        (tacit.NoisySumPrototypes(tree=tree), {}),
        (tacit.NoisySumPrototypes(), {"tree": tree}),
    ):
        search = make(kind, estimator, [candidate], ledger=ledger)
        reason = stating(kind.__name__, "inner node", "Release.of(search, tree=...)")
        with pytest.raises(InputError, match=reason):
            search.fit(X, Y)
    assert not ledger.path.exists()

    search = make(kind, **SUMS).fit(X, Y)
    assert tacit.Release.of(search, tree=tree).tree.parents == tree


def test_a_ledger_of_the_estimator_would_not_be_charged():
    estimator = public(ledger=Ledger("nowhere", "data"))
    with pytest.raises(InputError, match=stating("ledger", "estimator", "ledger=")):
        make(tacit.RandomSearch, estimator).promise()


def test_a_learner_that_cannot_be_released_is_refused_by_name():
    class Opaque(tacit.NoisySumPrototypes):
        def _fit(self, prepared, noise):
            super()._fit(prepared, noise)
            return object()

    with pytest.raises(InputError, match=stating("Opaque", "release")):
        make(tacit.GridSearch, Opaque(), [{}]).fit(X, Y)


def test_progress_is_over_runs():
    from tacit.compute.progress import reporting

    seen = []
    with reporting(lambda label, done, total: seen.append((label, done, total))):
        make(tacit.GridSearch).fit(X, Y)
    assert [entry for entry in seen if entry[0] == "search"] == [
        ("search", done, 3) for done in (1, 2, 3)
    ]


def test_events_inside_a_recorded_search_are_counted(tmp_path):
    folder = tacit.Release.of(make(tacit.RandomSearch).fit(X, Y), name="many").save(
        tmp_path / "many"
    )
    document = json.loads((folder / "release.json").read_text())
    inside = [
        {"count": 1, "event": {"type": "Laplace", "noise_multiplier": 1.0 + i}} for i in range(60)
    ]
    document["guarantee"]["event"]["event"] = inside
    (folder / "release.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match="more than 50 events"):
        tacit.Release.load(folder)


CHECKED = [
    tacit.GridSearch(tacit.NoisySumPrototypes(), [{}], budget="rho=100", noise="research"),
    tacit.RandomSearch(tacit.NoisySumPrototypes(), [{}], budget="epsilon=inf"),
    tacit.UnpaidSearch(tacit.NoisySumPrototypes(), [{}], budget="rho=100", noise="research"),
]


@pytest.mark.parametrize("search", CHECKED, ids=lambda search: type(search).__name__)
def test_scikit_learn_checks(search):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(search, on_fail=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 40


PERSONS = np.arange(len(X)) % 35  # up to four records each, in several classes
PER_PERSON = pytest.mark.parametrize("unit", [unit for unit in Unit if unit.per_person])


@KIND
@PER_PERSON
@pytest.mark.parametrize("budget", [APPROX, "epsilon=1"])
def test_units_per_person_spend_the_budget_in_fits_and_scores_of_persons(
    kind, unit, budget, monkeypatch
):
    seen = []
    fit = tacit.PublicPrototypes.fit

    def spied(self, X, y, persons=None):
        seen.append((self.unit, persons))
        return fit(self, X, y, persons)

    monkeypatch.setattr(tacit.PublicPrototypes, "fit", spied)
    slow = kind is tacit.GridSearch and unit is not Unit.ADD_REMOVE_PERSON and "delta" in budget
    search = make(kind, budget=budget, unit=unit, candidates=CANDIDATES[: 1 if slow else 3])
    search.fit(X, Y, persons=[f"person {i}" for i in PERSONS])
    assert search.guarantee_ == search.spent_ == search.promise()
    assert search.guarantee_.unit == unit
    assert {used for used, _ in seen} == {unit}
    assert all(np.array_equal(codes, PERSONS) for _, codes in seen)
    if kind is not tacit.UnpaidSearch:
        limit = Budget.parse(budget)
        assert (
            limit.epsilon * 0.9999 < search.guarantee_.epsilon(limit.delta or 0.0) <= limit.epsilon
        )
    if unit is Unit.ADD_REMOVE_PERSON and kind is not tacit.UnpaidSearch:
        by_record = make(kind, budget=budget).promise()
        assert search.guarantee_.event == by_record.event.base()
        assert search.guarantee_.to("add-remove").event == by_record.event.base()
    with pytest.raises(InputError, match=stating("persons=")):
        search.fit(X, Y)


@pytest.mark.parametrize("budget", ["rho=1e7", "epsilon=1e4"])
def test_scores_add_up_the_share_of_each_person(budget):
    given = {
        "candidates": [{"k": 1}],
        "noise": "research",
        "random_state": 0,
        "unit": "add-remove-person",
    }
    search = make(tacit.GridSearch, budget=budget, **given).fit(X, Y, persons=PERSONS)
    right = search.predict(X) == Y
    shares = np.bincount(PERSONS[right], minlength=35) / np.bincount(PERSONS)
    assert (shares % 1 > 0).sum() > 0
    expected = shares.sum() if "rho" in budget else np.floor(shares.sum())
    assert search.scores_[0][1] == pytest.approx(expected, abs=0.01)
    unpaid = make(tacit.UnpaidSearch, budget="rho=1e7", **given).fit(X, Y, persons=PERSONS)
    right = unpaid.predict(X) == Y
    shares = np.bincount(PERSONS[right], minlength=35) / np.bincount(PERSONS)
    assert unpaid.scores_[0][1] == pytest.approx(shares.sum(), abs=1e-6)


def test_public_rows_to_score_on_are_of_no_person():
    search = make(
        tacit.GridSearch,
        budget="epsilon=1",
        unit="add-remove-person",
        validation=(PUBLIC, PUBLIC_Y),
    )
    search.fit(X, Y, persons=PERSONS)
    assert max(score for _, score in search.scores_) == np.sum(search.predict(PUBLIC) == PUBLIC_Y)


@PAID_KIND
@pytest.mark.parametrize("budget", [APPROX, "epsilon=1"])
def test_with_one_record_per_person_a_search_is_that_of_records(kind, budget):
    for seed in range(4):
        given = {"budget": budget, "noise": "research", "random_state": seed}
        by_person = make(kind, unit="add-remove-person", **given).fit(
            X, Y, persons=np.arange(len(X))
        )
        by_record = make(kind, **given).fit(X, Y)
        assert by_person.best_params_ == by_record.best_params_
        assert np.array_equal(
            by_person.released_.arrays["prototypes"], by_record.released_.arrays["prototypes"]
        )
        assert [score for _, score in by_person.scores_] == pytest.approx(
            [score for _, score in by_record.scores_]
        )


@PER_PERSON
def test_a_search_of_sums_under_a_unit_per_person(unit):
    search = make(tacit.RandomSearch, unit=unit, **SUMS).fit(X, Y, persons=PERSONS)
    assert search.guarantee_ == search.promise()
    assert not any(isinstance(part, Parallel) for part, _ in search.guarantee_.event.contained())
    search.check(*X.shape)
