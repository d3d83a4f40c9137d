"""Sweeps: the same results however they run, whatever interrupts them; nothing is done twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from experiments.conftest import SMALL
from messages import lacking, stating
from tacit.cli.main import main
from tacit.compute import shared
from tacit.data.digits import load_digits_split
from tacit.data.imbalance import imbalanced_subset
from tacit.errors import InputError
from tacit.experiments import results
from tacit.experiments.data import Records, records
from tacit.experiments.run import prepare, sweep
from tacit.experiments.work import STARTED, means_2d, settings_of
from tacit.learners.common.overlap import MESSAGE_WITHOUT_NUMBER
from tacit.learners.methods import METHODS, load
from tacit.learners.prototypes.scores import window
from tacit.report.groups import SweepResults
from tacit.report.sweep import figures


def starts(folder):
    """How often each cell was begun."""
    return Counter(
        key for file in (folder / STARTED).glob("*.txt") for key in file.read_text().split()
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Results of the small plan, from one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    return sweep(folder / "small.yaml", folder / "runs")


def test_results_are_those_of_the_learner_by_itself(undisturbed):
    parts = load_digits_split()
    chosen = np.sort(imbalanced_subset(parts.private_y, 1, 0))
    rows, labels = parts.private_x[chosen], parts.private_y[chosen]
    (found,) = (
        one
        for one in undisturbed
        if (one.learner, one.budget, one.imbalance, one.seed) == ("sums", "inf", 1, 0)
    )
    centre = parts.public_x.mean(axis=0)
    model = tacit.NoisySumPrototypes("rho=inf", classes=10).fit(rows - centre, labels)
    right = model.predict(parts.test_x - centre) == parts.test_y
    assert found.accuracy == right.mean()
    assert found.recall == [right[parts.test_y == c].mean() for c in range(10)]
    assert found.class_sizes == np.bincount(labels).tolist()
    assert found.rho == float("inf")


def test_what_a_result_states_is_its_guarantee(undisturbed):
    for one in undisturbed:
        assert one.status == "done"
        guarantee = tacit.Guarantee.from_json(json.loads(one.guarantee))
        assert one.unit == guarantee.unit.value == "add-remove"
        assert one.epsilon == pytest.approx(guarantee.epsilon(one.delta), rel=1e-5)
        assert one.epsilon >= guarantee.epsilon(one.delta) * (1 - 1e-12)
        assert one.rho == (0.1 if one.budget == "rho=0.1" else float("inf"))


def test_subsets_have_the_ratio_and_are_shared_by_all_cells(undisturbed):
    sizes = {tuple(one.class_sizes) for one in undisturbed if one.imbalance == 10}
    assert len(sizes) == 1
    assert max(*sizes) / min(*sizes) == pytest.approx(10, rel=0.1)


def test_imbalance_1_balances_and_none_keeps_all_records(plan, tmp_path):
    text = SMALL.replace("imbalance: [1, 10]", "imbalance: [null, 1]")
    text = text.replace("rho=0.1, inf", "rho=0.1").replace("seeds: 2", "seeds: 1")
    found = sweep(plan(text), tmp_path / "runs")
    sizes = {one.imbalance: one.class_sizes for one in found}
    whole = np.bincount(load_digits_split().private_y).tolist()
    assert min(whole) < max(whole)
    assert sizes == {None: whole, 1: [min(whole)] * 10}
    assert {one.imbalance for one in results.read_results(tmp_path / "runs")} == {None, 1}


def test_all_records_are_the_default(plan, tmp_path):
    text = SMALL.replace("imbalance: [1, 10]\n", "")
    for other in (text, text + "imbalance: null\n", text + "imbalance: [null]\n"):
        cells = prepare(plan(other), tmp_path / "runs").cells
        assert {cell.imbalance for cell in cells} == {None}


def test_seeds_differ_and_repeat(undisturbed, plan, tmp_path):
    again = sweep(plan(), tmp_path / "runs", jobs=2)
    assert results.content_hash(again) == results.content_hash(undisturbed)
    first = {
        (one.learner, one.imbalance): one.accuracy
        for one in again
        if one.seed == 0 and one.budget == "rho=0.1"
    }
    second = {
        (one.learner, one.imbalance): one.accuracy
        for one in again
        if one.seed == 1 and one.budget == "rho=0.1"
    }
    assert first != second


@pytest.mark.thorough
@pytest.mark.parametrize(("engine", "options"), [("ray", {}), ("slurm", {"cluster": "local"})])
def test_other_engines_give_the_same(undisturbed, plan, tmp_path, engine, options):
    pytest.importorskip(
        {"ray": "ray", "slurm": "submitit"}[engine], reason="the extra 'cluster' is not installed"
    )
    found = sweep(plan(), tmp_path / "runs", engine=engine, jobs=2, **options)
    assert results.content_hash(found) == results.content_hash(undisturbed)
    assert set(starts(tmp_path / "runs").values()) == {1}


def test_a_second_run_computes_only_what_is_new(plan, tmp_path):
    sweep(plan(), tmp_path / "runs")
    assert set(starts(tmp_path / "runs").values()) == {1}
    sweep(plan(), tmp_path / "runs")
    more = plan(SMALL.replace("seeds: 2", "seeds: 3"))
    assert len(prepare(more, tmp_path / "runs").missing()) == 12
    assert len(sweep(more, tmp_path / "runs")) == 36
    assert set(starts(tmp_path / "runs").values()) == {1}
    assert len(list((tmp_path / "runs" / "plans").iterdir())) == 2


def test_shared_work_is_done_once(plan, tmp_path):
    records.cache_clear()  # else this process still has the subset of an earlier test
    sweep(plan(), tmp_path / "runs")
    kept = [path.name.rpartition("-")[0] for path in (tmp_path / "runs" / "shared").glob("*.npy")]
    assert (tmp_path / "runs" / "shared").stat().st_mode & 0o077 == 0  # it may hold private data
    # one for each imbalance, for all budgets, k and seeds
    assert Counter(kept) == {"subset": 2, "public-scores": 2}


@pytest.fixture
def windows(monkeypatch):
    """Each computation of a window adds to the list."""
    computed, unit_rows = [], window.unit_rows_about
    monkeypatch.setattr(shared, "CACHE", OrderedDict())
    monkeypatch.setattr(
        window, "unit_rows_about", lambda *given: computed.append(given) or unit_rows(*given)
    )
    return computed


def test_the_window_is_computed_once_for_all_cells(plan, tmp_path, windows):
    found = sweep(plan(), tmp_path / "runs")
    assert sum(one.method == "public" for one in found) == 16
    assert len(windows) == 1


def test_a_failing_cell_is_kept_with_its_error_and_stops_no_other(plan, tmp_path):
    text = SMALL.replace("grid: {k: [1, 3]}", "keep: [radius_]")
    found = sweep(plan(text), tmp_path / "runs")
    failed = [one for one in found if one.status == "failed"]
    assert len(found) == 16
    assert {one.learner for one in failed} == {"Top-K"}
    assert all(not lacking(one.error, "'radius_'", "PublicPrototypes") for one in failed)
    assert len(sweep(plan(text), tmp_path / "runs")) == 16
    assert set(starts(tmp_path / "runs").values()) == {1}
    sweep(plan(text), tmp_path / "runs", retry_failed=True)
    counts = starts(tmp_path / "runs")
    assert {counts[one.key] for one in failed} == {2}


def test_two_sweeps_into_one_folder_exclude_each_other(plan, tmp_path):
    from tacit.compute.shared import locked

    (tmp_path / "runs").mkdir()
    with (
        locked(tmp_path / "runs" / ".lock"),
        pytest.raises(InputError, match="another sweep is running"),
    ):
        sweep(plan(), tmp_path / "runs")


def test_a_folder_that_cannot_be_made(plan, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        sweep(plan(), tmp_path / "file" / "runs")


SLOW = """
import sys, time
from tacit.experiments import results, work
whole = results.write
def slow(folder, result):  # a cell of over a second, most of it within the write of its result
    time.sleep(0.5)
    from tacit.compute import atomic
    import pyarrow.parquet as pq
    plain = pq.write_table
    def dawdle(table, part):
        with open(part, "wb") as file:
            file.write(b"PAR1half")
            file.flush()
            time.sleep(0.6)
        plain(table, part)
    pq.write_table = dawdle
    try:
        whole(folder, result)
    finally:
        pq.write_table = plain
results.write = slow
from tacit.experiments.run import sweep
sweep(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.thorough)])
def test_killed_it_ends_as_if_undisturbed(plan, tmp_path, kills):
    text = SMALL.replace("imbalance: [1, 10]", "imbalance: [10]")
    path, runs = plan(text), tmp_path / "runs"
    rng = np.random.default_rng(0)
    finished_before: set[str] = set()
    for _ in range(kills):
        before = starts(runs)
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, str(path), str(runs)], start_new_session=True
        )
        time.sleep(float(rng.uniform(2.5, 6.0)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        again = starts(runs) - before
        assert not finished_before & set(again), "a finished cell ran again"
        finished_before = {file.stem for file in (runs / "cells").glob("*.parquet")}
    found = sweep(path, runs)
    assert not finished_before & set(key for key, n in (starts(runs) - before - again).items() if n)
    assert results.content_hash(found) == results.content_hash(
        sweep(path, tmp_path / "undisturbed")
    )
    assert len(list((runs / "cells").glob("*.parquet"))) == len(found) == 12


def test_teachers_are_trained_once_for_all_budgets_and_seeds(plan, tmp_path):
    text = """
    name: votes
    unit: replace
    data:
      - {name: digits, builtin: digits}
    learners:
      - name: teachers
        method: pate
        public: [own]
        parameters: {teachers: {number: 20}}
        grid: {collector: [weighting]}
        keep: [answers_.asked, answers_.answered]
    budgets: ["epsilon=5,delta=1e-5", "epsilon=10,delta=1e-5"]
    seeds: 2
    """
    found = sweep(plan(text), tmp_path / "runs")
    assert [one.error for one in found] == [None] * 4
    assert len(list((tmp_path / "runs" / "shared").glob("teacher-votes-*.npy"))) == 1
    assert all(json.loads(one.extra)["answers_.asked"] > 0 for one in found)


def test_personal_budgets(plan, tmp_path):
    text = """
    name: groups
    unit: replace
    data:
      - {name: digits, builtin: digits, rows: 400, test_rows: 50}
    learners:
      - name: weighting
        method: pate
        public: [own]
        parameters: {teachers: {number: 20}}
        shares: {a: 0.6, b: 0.4}
    budgets: [{groups: {a: 5, b: 10}, delta: 1.0e-5}]
    """
    (found,) = sweep(plan(text), tmp_path / "runs")
    assert found.error is None
    assert found.budget == "a=5,b=10,delta=1e-05"
    assert json.loads(found.guarantee)["groups"].keys() == {"a", "b"}


def test_searches_say_whether_they_were_paid(plan, tmp_path):
    text = """
    name: searches
    data:
      - {name: digits, builtin: digits}
    learners:
      - {name: fixed, method: public, public: [own]}
      - {name: chosen elsewhere, method: public, public: [own], parameters: {k: 5}, tuning: unpaid}
      - name: paid
        method: public
        public: [own]
        search: {how: random, candidates: [{k: 1}, {k: 5}], options: {mean_runs: 2}}
      - {name: unpaid, method: public, public: [own], search: {how: unpaid, candidates: [{k: 1}, {k: 5}]}}
    budgets: ["epsilon=1,delta=1e-6"]
    """
    found = {one.learner: one for one in sweep(plan(text), tmp_path / "runs")}
    assert {name: one.tuning for name, one in found.items()} == {
        "fixed": "none",
        "chosen elsewhere": "unpaid",
        "paid": "paid",
        "unpaid": "unpaid",
    }
    assert [one.error for one in found.values()] == [None] * 4
    assert found["unpaid"].rho == float("inf")


def test_trials_of_a_plan_repeat_and_are_unpaid(plan, tmp_path):
    pytest.importorskip("optuna", reason="optuna is a development dependency")
    text = """
    name: trials
    data: [{name: digits, builtin: digits, rows: 300, test_rows: 100}]
    learners:
      - name: tuned
        method: public
        public: [own]
        search: {how: unpaid, candidates: {k: [1, 5], d_min: {low: 0.0, high: 1.0}}, options: {trials: 3}}
        keep: [scores_]
    budgets: [rho=0.1]
    """
    one, other = (sweep(plan(text), tmp_path / name)[0] for name in ("one", "other"))
    assert one.error is None
    assert (one.tuning, one.rho) == ("unpaid", float("inf"))
    assert one.extra == other.extra
    kept = json.loads(one.extra)
    assert len(kept["scores_"]) == 3
    # what the search chose stands beside the defaults, and each trial with its score
    best = max(kept["trials"], key=lambda trial: trial["score"])
    settings = kept["settings"]
    assert {name: settings[name] for name in best["parameters"]} == best["parameters"]
    assert settings["d_max"] == "public"
    low, high = settings["window"]
    assert low == best["parameters"]["d_min"] < high <= 2
    assert not {"public", "budget", "random_state", "jobs"} & set(settings)


def test_settings_have_the_fields_of_grouped_parameters():
    learner = tacit.PATE(teachers={"number": 20}, voting={"kind": "gnmax", "sigma": 9.0})
    settings = settings_of(SimpleNamespace(has_search=False, has_realised_counts=False), learner)
    assert (settings["teachers.number"], settings["voting.sigma"]) == (20, 9.0)
    assert (settings["voting.kind"], settings["collector"]) == ("gnmax", "weighting")
    assert not [name for name in settings if name.startswith(("run", "teachers__", "noise"))]


def test_a_result_says_that_public_rows_are_private_records_but_not_how_many(plan, tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    for name, rows, labels in (
        ("train", x, y),
        ("test", rng.normal(size=(60, 5)), y),
        ("pool", x[:17], None),
    ):
        tacit.EmbeddingStore.write(
            tmp_path / name, rows, labels, classes=None if labels is None else 3
        )
    text = """
    name: overlap
    data:
      - {name: d, train: train, test: test, public: {pool: pool}}
    learners:
      - {name: sums, method: noisy-sum, public: [pool]}
      - {name: chosen, method: public, public: [pool]}
    budgets: [rho=1]
    """
    of_learner = {one.learner: one for one in sweep(plan(text), tmp_path / "runs")}
    assert json.loads(of_learner["sums"].extra)["warnings"] == [MESSAGE_WITHOUT_NUMBER]
    assert of_learner["chosen"].error.startswith("public has rows that are private records")
    assert "17" not in f"{of_learner['sums'].extra} {of_learner['chosen'].error}"


def test_a_condition_on_a_cost_finds_what_shows_as_it(plan, tmp_path, capsys):
    text = """
    name: costs
    unit: replace
    data:
      - {name: digits, builtin: digits, rows: 200, test_rows: 50}
    learners:
      - {name: sums, method: noisy-sum}
      - {name: mean, method: coinpress}
      - {name: probe, method: gradient-descent, parameters: {steps: 2}}
      - {name: public, method: public, public: [own]}
      - {name: votes, method: pate, public: [own], parameters: {teachers: {number: 20}, queries: {n_queries: 20}}}
    budgets: [rho=0.005, rho=0.02, rho=0.125, rho=8, "epsilon=1,delta=1e-6"]
    """
    found = sweep(plan(text), tmp_path / "runs")
    for one in found:
        guarantee = tacit.Guarantee.from_json(json.loads(one.guarantee))
        for stated, true in (
            (one.rho, guarantee.rho),
            (one.epsilon, guarantee.epsilon(1e-6)),
            (one.mu, guarantee.mu),
        ):
            assert stated is true is None or stated >= true * (1 - 1e-12)
    for amount in (0.005, 0.02, 0.125, 8):
        kept = results.read_results(
            tmp_path / "runs", f"rho = {amount} and budget = 'rho={amount}'"
        )
        assert (
            len(kept)
            == sum(one.status == "done" and one.budget == f"rho={amount}" for one in found)
            >= 4
        )
    # a single selection of pure epsilon 1 costs less at delta 1e-6
    of_choice = results.read_results(tmp_path / "runs", "epsilon < 1 and budget like 'eps%'")
    assert [one.learner for one in of_choice] == ["public"]
    assert len(results.read_results(tmp_path / "runs", "epsilon = 1 and budget like 'eps%'")) == 4
    assert (
        main(
            [
                "results",
                str(tmp_path / "runs"),
                "--columns",
                "mu",
                "--where",
                "method = 'noisy-sum'",
            ]
        )
        == 0
    )
    for shown in capsys.readouterr().out.split()[1:-2]:
        assert results.read_results(tmp_path / "runs", f"mu = {shown}")


def test_timed_cells_share_nothing_and_tell_their_phases(plan, tmp_path, monkeypatch, windows):
    text = SMALL.replace("imbalance: [1, 10]", "imbalance: [10]").replace("rho=0.1, inf", "rho=0.1")
    text = text.replace("method: noisy-sum", "method: least-squares")
    untimed = sweep(plan(text), tmp_path / "untimed")
    calls = Counter()
    for kind in (tacit.LeastSquares, tacit.PublicPrototypes):
        counted(monkeypatch, kind, calls)
    windows.clear()
    found = sweep(plan(text + "timed: true\n"), tmp_path / "runs")
    assert len(windows) == 8  # the check of the plan took it from the cache
    # two seeds, each fitted twice, of one and two learners
    assert calls == {"LeastSquares": 4, "PublicPrototypes": 8}
    assert not list((tmp_path / "runs" / "shared").glob("public-scores*"))
    assert not {one.key for one in found} & {one.key for one in untimed}
    phases = {"least-squares": {"set-up", "solving"}, "public": {"scoring", "selection"}}
    for one in found:
        seconds = json.loads(one.phases)
        assert seconds.keys() == phases[one.method] | {"rest of the fit", "prediction"}
        assert min(seconds.values()) >= 0
        assert sum(seconds.values()) == pytest.approx(one.fit_seconds + one.predict_seconds)
        assert one.processor
    assert {one.phases for one in untimed} == {"{}"}
    again = sweep(plan(text + "timed: true\n"), tmp_path / "again")
    assert results.content_hash(again) == results.content_hash(found)
    assert [one.phases for one in again] != [one.phases for one in found]


def counted(monkeypatch, kind, calls):
    """Count fits of a learner."""
    fit = kind._fit

    def counting(self, *arguments):
        calls[kind.__name__] += 1
        return fit(self, *arguments)

    monkeypatch.setattr(kind, "_fit", counting)


@pytest.mark.parametrize(
    "method", ["auto", "coinpress", "feature-covariance", "global-adapt", "newton", "projected"]
)
def test_most_of_a_timed_fit_is_in_phases(plan, tmp_path, monkeypatch, method):
    # seconds of this process, which do not depend on what else the machine does
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    text = f"""
    name: phases
    timed: true
    data:
      - {{name: digits, builtin: digits}}
    learners:
      - {{name: one, method: {method}{", public: [own]" if method == "auto" else ""}}}
    budgets: [rho=1, inf]
    """
    for one in sweep(plan(text), tmp_path / "runs"):
        seconds = json.loads(one.phases)
        assert seconds.keys() & {"set-up", "solving"}
        assert method == "coinpress" or seconds["rest of the fit"] < one.fit_seconds / 2


def test_realised_counts_are_those_of_the_cell_and_marked(plan, tmp_path):
    text = """
    name: counts
    data:
      - {name: digits, builtin: digits}
    learners:
      - {name: mean, method: coinpress, grid: {counts: [null, realised]}}
      - {name: probe, method: gradient-descent, parameters: {counts: realised, steps: 3}}
      - {name: noisy, method: noisy-sum}
    budgets: [rho=8]
    imbalance: [1, 10]
    """
    path = plan(text)
    assert len({cell.key for cell in prepare(path, tmp_path / "runs").cells}) == 8
    found = {(one.learner, one.imbalance): one for one in sweep(path, tmp_path / "runs")}
    assert {one.error for one in found.values()} == {None}
    assert found["mean, counts=realised", 10].budget == "rho=8"
    parts = load_digits_split()
    for imbalance in (1, 10):
        cell = next(
            cell
            for cell in prepare(path, tmp_path / "runs").cells
            if (cell.learner, cell.imbalance) == ("mean, counts=realised", imbalance)
        )
        given = records(cell.source, imbalance, 0)
        model = tacit.CoinPressPrototypes(
            "rho=8",
            classes=10,
            counts=given.sizes,
            noise="research",
            random_state=int(cell.key, 16) % 2**32,
        ).fit(given.x, given.y)
        one = found["mean, counts=realised", imbalance]
        assert (
            one.accuracy
            == (model.predict(parts.test_x - parts.public_x.mean(axis=0)) == parts.test_y).mean()
        )
    captions = [figure.caption for _, figure in figures(SweepResults.of(list(found.values())))]
    assert all(
        not lacking(said, "Not protected", "class counts", "'mean, counts=realised'")
        for said in captions
    )
    assert not lacking(
        captions[0], "Not protected", "class counts", "'mean, counts=realised'", "'probe'"
    )
    for (learner, _), one in found.items():
        quantities = json.loads(one.guarantee)["unprotected"]
        realised = learner in ("mean, counts=realised", "probe")
        assert quantities == (["class counts (realised)"] if realised else [])
        assert SweepResults.of([one]).label(one).endswith("counts unprotected") == realised


def test_a_class_without_records_counts_as_one(plan, tmp_path):
    y = np.arange(30) % 2
    np.savez(tmp_path / "train.npz", x=np.random.default_rng(0).normal(size=(30, 3)), y=y)
    np.savez(tmp_path / "test.npz", x=np.ones((3, 3)), y=np.arange(3))
    data, learner = (
        "{name: d, train: train.npz, test: test.npz}",
        "{name: s, method: coinpress, parameters: {counts: realised}}",
    )
    (found,) = sweep(
        plan(f"name: own\ndata: [{data}]\nlearners: [{learner}]\nbudgets: [rho=1]\n"),
        tmp_path / "runs",
    )
    assert found.error is None
    assert found.class_sizes == [15, 15, 0]


def test_kept_pictures_of_means(plan, tmp_path):
    text = SMALL.replace(
        "method: noisy-sum", "method: coinpress\n    keep: [steps_, means_2d]"
    ).replace("rho=0.1, inf", "rho=0.1")
    found = [one for one in sweep(plan(text), tmp_path / "runs") if one.method == "coinpress"]
    kept = json.loads(found[0].extra)
    assert len(kept["steps_"][0]["radius"]) == 10
    assert np.shape(kept["means_2d"]["true"]) == np.shape(kept["means_2d"]["private"]) == (10, 2)
    assert {point[2] for point in kept["means_2d"]["points"]} == {0, 1}
    assert len(kept["means_2d"]["points"]) == 300
    pictured = [
        figure for kind, figure in figures(SweepResults.of(found)) if kind.heading == "Means"
    ]
    assert len(pictured) == 2
    for figure in pictured:
        assert {len(panel.rows) for panel in figure.panels} == {300}
        assert not lacking(figure.caption, "means of rows", "300 test rows")


@pytest.mark.parametrize(
    ("method", "parameters", "of"),
    [
        ("coinpress", {"pooling": 2}, "means of rows"),
        ("noisy-sum", {}, "directions of sums of unit rows"),
        ("noisy-sum", {"public": "own"}, "directions of sums of unit rows"),
        ("auto", {"public": "own"}, "means of unit rows"),
        ("public", {"public": "own"}, "chosen public rows"),
        ("projected", {}, None),
        ("newton", {"epochs": 1}, None),
    ],
)
def test_a_picture_shows_the_means_of_what_the_learner_averages(method, parameters, of):
    """Without noise private means are the true ones; for chosen rows they are rows of the public
    set.
    """
    parts = load_digits_split()
    test_y = np.sort(parts.test_y)  # by class, as stores may be
    test_x = parts.test_x[np.argsort(parts.test_y, kind="stable")]
    sparse = parts.private_y != 3
    given = Records(
        parts.private_x[sparse], parts.private_y[sparse], test_x, test_y, tuple(range(10))
    )
    more = {"public": parts.public_x} if "public" in parameters else {}
    learner = load(METHODS[method])("rho=inf", classes=10, **(parameters | more)).fit(
        given.x, given.y
    )
    if of is None:
        with pytest.raises(InputError, match=stating("class means")):
            means_2d(learner, given, learner.predict(test_x))
        return
    picture = means_2d(learner, given, learner.predict(test_x))
    true, private = np.array(picture["true"]), np.array(picture["private"])
    there = np.arange(10) != 3
    assert of in picture["of"]
    assert np.isnan(true[3]).all()
    assert np.isfinite(true[there]).all()
    if method == "public":
        assert np.linalg.norm(true[there] - private[there]) > 0.01
    else:
        assert true[there] == pytest.approx(private[there], abs=0.05 if method == "auto" else 1e-6)
    assert len(picture["points"]) == 300
    shown = np.linspace(0, 399, 300).astype(int)
    assert set(test_y[shown]) == set(range(10))
    assert [bool(point[2]) for point in picture["points"]] == list(
        (learner.predict(test_x) == test_y)[shown]
    )


def test_subsets_are_those_of_the_records_that_are_used(plan, tmp_path):
    """A data set of 300 records and one of all, from one file, in one folder."""
    text = SMALL.replace(
        "    builtin: digits\n",
        "    builtin: digits\n    rows: 300\n  - {name: whole, builtin: digits}\n",
    )
    records.cache_clear()
    both = {one.key: one for one in sweep(plan(text), tmp_path / "both")}
    records.cache_clear()
    alone = sweep(
        plan(SMALL.replace("name: digits", "name: whole").replace("pixels", "as given")),
        tmp_path / "alone",
    )
    assert all(one.error is None for one in both.values())
    for one in alone:
        assert results.content_hash([one]) == results.content_hash([both[one.key]])


def test_a_damaged_result_is_named_and_others_files_are_left_alone(plan, tmp_path):
    runs = tmp_path / "a [*] b'c"
    path = plan(SMALL.replace("imbalance: [1, 10]", "imbalance: [1]"))
    found = sweep(path, runs)
    (runs / "cells" / "notes.parquet").write_text("not ours")
    assert len(results.read_results(runs)) == 12
    damaged = runs / "cells" / f"{found[0].key}.parquet"
    damaged.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=f"{found[0].key}.parquet is damaged"):
        sweep(path, runs)
    damaged.unlink()
    assert results.content_hash(sweep(path, runs)) == results.content_hash(found)


def test_a_condition_writes_no_files(plan, tmp_path):
    sweep(plan(SMALL.replace("imbalance: [1, 10]", "imbalance: [1]")), tmp_path / "runs")
    target = tmp_path / "stolen.csv"
    with pytest.raises(InputError, match="cannot be answered"):
        results.read_results(tmp_path / "runs", f"1=1); COPY (SELECT 1) TO '{target}' --")
    assert not target.exists()


def test_relative_paths_hold_in_workers_that_were_started_elsewhere(plan, tmp_path, monkeypatch):
    np.savez(
        tmp_path / "d.npz", x=np.random.default_rng(0).normal(size=(30, 3)), y=np.arange(30) % 2
    )
    data, learner = "{name: d, train: d.npz, test: d.npz}", "{name: s, method: noisy-sum}"
    path = plan(f"name: own\ndata: [{data}]\nlearners: [{learner}]\nbudgets: [rho=1]\nseeds: 4\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    first = sweep(path, "runs", jobs=2)
    monkeypatch.chdir(tmp_path)
    assert results.content_hash(sweep(path.name, "runs", jobs=2)) == results.content_hash(first)
    assert len(results.files_of(tmp_path / "runs")) == 4
