"""The estimator: what it promises, whom a record reaches, what is kept, and what it refuses."""

import csv
import math
import shutil

import numpy as np
import pytest
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import tacit
from messages import stating
from privacy.ledger_lines import record
from tacit.compute.shared import locked
from tacit.errors import BudgetError, InputError, ReleaseError
from tacit.learners.pate.aggregators import Confident, Interactive
from tacit.learners.pate.election import Election
from tacit.learners.pate.filter import allowance_of, query_event
from tacit.privacy import accounting
from tacit.privacy.budget import Budget

CENTRES = 3 * np.eye(3, 4)
BUDGETS = {"a": 1.0, "b": 2.0}


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 4)), y


X, Y = records(1000, 0)
PUBLIC, OF_PUBLIC = records(300, 1)


def pate(budget=None, **parameters):
    return tacit.PATE.of_flat(**parameters | ({} if budget is None else {"budget": budget}))


GROUPS = np.random.default_rng(2).choice(["a", "b"], 1000)
FAST = {"classes": 3, "teacher": GaussianNB(), "noise": "research", "random_state": 0}


@pytest.mark.parametrize("collector", ["gnmax", "upsampling", "vanishing", "weighting"])
def test_groups_are_promised_their_budgets(collector):
    many = {"n_teachers": 250, "teacher": KNeighborsClassifier(1)}
    model = pate(budgets=BUDGETS, collector=collector, **FAST | many)
    promise = model.promise()
    for group, epsilon in BUDGETS.items():
        assert promise.epsilon(1e-5, group) == pytest.approx(epsilon, rel=1e-6)
    model.fit(X, Y, groups=GROUPS, public=PUBLIC)
    assert model.guarantee_ == promise == model.answers_.guarantee_
    for group, epsilon in BUDGETS.items():
        assert 0 < model.spent_.epsilon(1e-5, group) <= epsilon
    assert model.score(*records(500, 3)) > 0.9
    tacit.Release.of(model).verify()


@pytest.mark.parametrize(
    ("parameters", "stated"),
    [
        ({"budget": "epsilon=1,delta=1e-4"}, "epsilon = 1 at delta = 0.0001"),
        ({"budgets": BUDGETS}, "a: epsilon = 1 at delta = 1e-05"),
        ({"budgets": BUDGETS, "delta": 1e-3}, "a: epsilon = 1 at delta = 0.001"),
        ({"budget": "rho=0.1"}, "at delta = 1e-06"),
    ],
)
def test_epsilon_at_the_delta_of_the_budget_is_stated_first(parameters, stated):
    assert stated in str(tacit.PATE(classes=3, **parameters).promise()).splitlines()[1]


def test_the_promise_without_groups_is_the_budget_or_what_the_limits_allow():
    noise = {"aggregator": "gnmax", "sigma": 40.0}
    assert pate("rho=0.1", **noise).promise().rho == pytest.approx(0.1)
    assert pate("rho=0.1", n_queries=10, **noise).promise().rho == pytest.approx(10 / 1600)
    assert pate("rho=0.1", n_queries=50, n_labels=10, **noise).promise().rho == pytest.approx(
        10 / 1600
    )
    # noise is not known yet
    assert pate("rho=0.1", n_queries=10).promise().rho == pytest.approx(0.1)
    assert pate("rho=inf").promise().rho is None
    exact = pate("epsilon=1,delta=1e-6").promise()
    assert exact.epsilon(1e-6) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("collector", ["gnmax", "upsampling", "vanishing", "weighting"])
@pytest.mark.parametrize("what", ["features", "label"])
def test_one_record_moves_its_own_teachers_and_no_other(collector, what):
    def fit(x, y):
        facts = {
            "collector": collector,
            "teacher": KNeighborsClassifier(1),
            "n_teachers": 20,
            "allow_overlap": True,
        }
        return (
            pate(budgets=BUDGETS, **FAST | facts).fit(x, y, groups=GROUPS, public=more).votes_.votes
        )

    # so that the nearest record of a teacher can be the changed one
    more = np.concatenate([PUBLIC, X[:5], -X[:5]])
    votes = fit(X, Y)
    for row in range(5):
        x, y = X.copy(), Y.copy()
        if what == "features":
            x[row] *= -1
        else:
            y[row] = (y[row] + 1) % 3
        changed = int((fit(x, y) != votes).any(axis=0).sum())
        assert 1 <= changed <= (2 if collector == "upsampling" and GROUPS[row] == "b" else 1)


def test_a_fit_that_was_interrupted_buys_no_label_twice(tmp_path, monkeypatch):
    facts = FAST | {"noise": "secure", "random_state": None, "folder": tmp_path}
    monkeypatch.setattr("tacit.learners.pate.election.fit_student", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pate("rho=0.05", **facts).fit(X, Y, public=PUBLIC, test=(PUBLIC, OF_PUBLIC))
    monkeypatch.undo()
    kept = dict(np.load(tmp_path / "voting.npz"))
    model = pate("rho=0.05", **facts).fit(X, Y, public=PUBLIC, test=(PUBLIC, OF_PUBLIC))
    assert np.array_equal(model.answers_.labels[: len(kept["labels"])], kept["labels"])
    assert model.answers_.asked == len(kept["labels"])
    assert model.answers_.answered == kept["paid"].sum()
    rho = model.aggregator_.check(1.0).rho * model.answers_.asked
    assert model.spent_.rho == pytest.approx(
        rho + model.aggregator_.label(1.0).rho * kept["paid"].sum()
    )


def test_a_fit_holds_its_folder_and_removes_what_a_killed_one_left(tmp_path, monkeypatch):
    """Workers' records that a kill left are private; they go before teachers are trained, even in
    this process.
    """
    vote, left = Election.vote, tmp_path / "teachers" / "records"
    left.mkdir(parents=True)
    (left / "1.array.npy").write_text("private")
    (left.parent / ".00000.npy.host-1.part").write_text("private")

    def held(*given):
        assert [path.name for path in left.parent.iterdir() if path.suffix != ".npy"] == ["key.txt"]
        with pytest.raises(BlockingIOError), locked(tmp_path / ".lock", wait=False):
            pass
        vote(*given)

    monkeypatch.setattr(Election, "vote", held)
    pate("rho=0.05", **FAST | {"folder": tmp_path}).fit(X, Y, public=PUBLIC)
    with locked(tmp_path / ".lock", wait=False):
        assert {path.stat().st_mode & 0o777 for path in left.parent.iterdir()} == {0o600}


def interrupt(*given, **named):
    raise KeyboardInterrupt


@pytest.fixture
def ledger(tmp_path):
    return tacit.Ledger(tmp_path / "ledger.jsonl", "records")


def charges(ledger):
    return len(ledger.account().charges)


def test_a_resumed_fit_is_charged_if_it_draws_noise_and_only_then(tmp_path, monkeypatch, ledger):
    def interrupted(name):
        with monkeypatch.context() as patch:
            patch.setattr(name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                fit()

    def fit():
        model = pate("rho=0.05", **FAST | {"folder": tmp_path / "run", "ledger": ledger})
        return model.fit(X, Y, public=PUBLIC)

    ledger.allow("rho=9", "replace")
    interrupted("tacit.learners.pate.ensemble.Ensemble.votes")  # no noise was drawn
    assert charges(ledger) == 0
    # noise was drawn, and nothing kept
    interrupted("tacit.learners.pate.run_folder.RunFolder.write_answers")
    assert charges(ledger) == 1
    interrupted("tacit.learners.pate.election.fit_student")  # labels are kept
    assert charges(ledger) == 2
    first, second = fit(), fit()
    assert charges(ledger) == 2
    assert first.guarantee_ == second.guarantee_ == ledger.account().charges[1].guarantee
    (tmp_path / "run" / "voting.json").unlink()
    fit()
    assert charges(ledger) == 3


def test_kept_labels_are_charged_to_a_ledger_that_has_not_paid_for_them(tmp_path, ledger):
    def fit(ledger, **given):
        facts = FAST | {"folder": tmp_path / "run", "ledger": ledger} | given
        return pate("rho=0.05", **facts).fit(X, Y, public=PUBLIC)

    fit(None)
    ledger.allow("rho=9", "replace")
    fit(ledger)
    fit(ledger)
    assert charges(ledger) == 1
    ledger.path.unlink()
    # without an allowance, a ledger counts charges of any unit
    record(ledger, pate("rho=0.05", ledger=ledger).promise(), "PATE fit of other labels")
    fit(ledger)
    assert charges(ledger) == 2
    fit(ledger, unit="change-label")
    assert charges(ledger) == 3
    others = tacit.Ledger(ledger.path, "other records")
    record(others, pate("rho=0.05", ledger=others).promise(), "PATE fit of other labels")
    fit(others)
    fit(ledger)  # paid for before the others were
    assert charges(others) == 2
    assert charges(ledger) == 3


def test_tables_have_a_row_for_each_teacher_and_one_for_voting_and_student(tmp_path):
    facts = FAST | {"folder": tmp_path, "n_teachers": 30, "validation": 0.2}
    budgets = {"a": 9.0, "b": 5.0}
    model = pate(budgets=budgets, **facts).fit(
        X, Y, groups=GROUPS, public=PUBLIC, test=(PUBLIC, OF_PUBLIC)
    )
    read = {
        name: list(csv.DictReader((tmp_path / f"{name}.csv").open()))
        for name in ("teachers", "votings", "students")
    }
    assert [len(rows) for rows in read.values()] == [30, 1, 1]
    assert sum(int(row["records"]) for row in read["teachers"]) == 1000
    assert {row["groups"] for row in read["teachers"]} == {"a", "b"}
    (voting,), (student,) = read["votings"], read["students"]
    assert int(voting["answered"]) == model.answers_.answered
    assert float(voting["epsilon b"]) == pytest.approx(model.spent_.epsilon(1e-5, "b"))
    assert float(student["test_accuracy"]) > 0.9
    assert float(student["validation_accuracy"]) == model.validation_accuracy_


@pytest.mark.parametrize("collector", ["weighting", "upsampling"])
def test_the_owner_has_a_record_of_who_taught_whom_and_a_release_has_none(tmp_path, collector):
    facts = FAST | {"folder": tmp_path / "run", "n_teachers": 30, "collector": collector}
    model = pate(budgets={"a": 5.0, "b": 10.0}, **facts)
    model.fit(X, Y, groups=GROUPS, public=PUBLIC)
    rows = table(tmp_path / "run", "records")
    assert [int(row["record"]) for row in rows] == list(range(1000))
    taught = [[int(teacher) for teacher in row["teachers"].split()] for row in rows]
    for teacher, part in enumerate(model.parts_):
        assert np.flatnonzero([teacher in teachers for teachers in taught]).tolist() == sorted(part)
    copies = {"a": 1, "b": 2 if collector == "upsampling" else 1}
    assert [len(teachers) for teachers in taught] == [copies[group] for group in GROUPS]

    assert (tmp_path / "run" / "records.csv").stat().st_mode & 0o777 == 0o600
    tacit.Release.of(model).save(tmp_path / "release", allow_research=True)
    names = {path.name for path in (tmp_path / "release").rglob("*")}
    assert "records.csv" not in names
    for path in (tmp_path / "release").iterdir():
        content = path.read_bytes()
        assert b"parts_" not in content
        assert np.asarray(model.parts_[0]).tobytes() not in content


def test_several_votings_of_the_same_teachers_differ_and_each_is_charged(tmp_path, ledger):
    ledger.allow("rho=9", "replace")
    facts = FAST | {"folder": tmp_path, "n_teachers": 20, "ledger": ledger, "random_state": 3}
    facts |= {"aggregator": "gnmax", "sigma": 12.0}

    def voted(seed):
        model = pate("epsilon=2,delta=1e-5", voting_seed=seed, **facts)
        return model.fit(X, Y, public=PUBLIC).answers_.labels

    first = voted(0)
    teachers = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "teachers").iterdir()}
    second = voted(1)
    assert np.any(first != second)
    assert charges(ledger) == 2
    assert teachers == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "teachers").iterdir()
    }
    # each voting has answers of its own, which are not paid for again
    assert np.array_equal(voted(1), second)
    assert np.array_equal(voted(0), first)
    assert charges(ledger) == 2
    rows = [table(tmp_path, name)[0]["voting_seed"] for name in ("votings", "votings-1")]
    assert rows == ["0", "1"]
    # answers of one voting are not those of another
    for suffix in ("json", "npz"):
        shutil.copy(tmp_path / f"voting.{suffix}", tmp_path / f"voting-2.{suffix}")
    with pytest.raises(InputError, match=stating("other votes or settings")):
        voted(2)


def table(folder, name):
    return list(csv.DictReader((folder / f"{name}.csv").open()))


@pytest.mark.parametrize("collector", ["vanishing", "weighting"])
def test_the_table_of_queries_adds_up_to_what_was_spent(tmp_path, collector):
    facts = FAST | {"folder": tmp_path, "n_teachers": 30, "collector": collector}
    budgets = {"a": 9.0, "b": 5.0}
    model = pate(budgets=budgets, **facts).fit(X, Y, groups=GROUPS, public=PUBLIC, truth=OF_PUBLIC)
    answers, queries, (voting,) = (
        model.answers_,
        table(tmp_path, "queries"),
        table(tmp_path, "votings"),
    )
    assert len(queries) == answers.asked
    assert sum(int(row["bought"]) for row in queries) == answers.answered
    labels = answers.labels[: answers.asked]
    assert [row["label"] for row in queries] == [
        "" if label < 0 else str(label) for label in labels
    ]
    for group in budgets:
        spent = [float(row[f"spent {group}"]) for row in queries]
        assert spent == sorted(spent)
        assert spent[-1] <= float(voting[f"allowed {group}"])
        if collector == "weighting":
            check, label = (
                float(voting[f"cost of a {what} {group}"]) for what in ("check", "label")
            )
            assert spent[-1] == pytest.approx(answers.asked * check + answers.answered * label)
    bought = labels >= 0
    right = labels[bought] == OF_PUBLIC[: answers.asked][bought]
    assert float(voting["label_accuracy"]) == pytest.approx(right.mean())
    for c in range(3):
        of_class = OF_PUBLIC[: answers.asked][bought] == c
        assert int(voting[f"labels of {c}"]) == of_class.sum()
        assert float(voting[f"label_accuracy of {c}"]) == pytest.approx(right[of_class].mean())


def test_a_voting_is_read_at_smaller_budgets_from_its_folder_and_for_free(tmp_path, ledger):
    ledger.allow("rho=9", "replace")
    facts = FAST | {
        "folder": tmp_path,
        "aggregator": "gnmax",
        "sigma": 12.0,
        "ledger": ledger,
        "n_teachers": 50,
    }
    tests = {"public": PUBLIC, "test": (PUBLIC, OF_PUBLIC)}
    once = pate("epsilon=2,delta=1e-5", **facts).fit(X, Y, **tests)
    assert once.readings_ == []
    assert not (tmp_path / "readings.csv").exists()
    model = pate("epsilon=2,delta=1e-5", limits=[0.5, 1.0, 2.0], **facts).fit(X, Y, **tests)
    assert charges(ledger) == 1
    np.testing.assert_array_equal(model.answers_.labels, once.answers_.labels)
    facts |= {"folder": None, "ledger": None}
    for reading, row in zip(model.readings_, table(tmp_path, "readings"), strict=True):
        alone = pate(reading.limit, **facts).fit(X, Y, public=PUBLIC)
        assert reading.answered == int(row["answered"]) == alone.answers_.answered > 0
        np.testing.assert_array_equal(reading.labels, alone.answers_.labels)
        assert (
            reading.test_accuracy == float(row["test_accuracy"]) == alone.score(PUBLIC, OF_PUBLIC)
        )
        assert (
            float(row["epsilon all"])
            == alone.spent_.epsilon(1e-5)
            <= float(row["limit"].split("=")[1].split(",")[0])
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"limits": 3.0}, "more than the voting's budget"),
        ({"limits": 0.5, "stopping": "data-dependent"}, "by the filter"),
    ],
)
def test_limits_are_refused_before_anything_is_charged(parameters, message, ledger):
    model = pate("epsilon=2,delta=1e-5", ledger=ledger, **FAST | parameters)
    with pytest.raises(BudgetError, match=message):
        model.fit(X, Y, public=PUBLIC)
    assert charges(ledger) == 0


@pytest.mark.parametrize(
    ("truth", "message"),
    [(OF_PUBLIC[:5], stating("truth", "(5,)", "300")), (OF_PUBLIC + 1, "label 3")],
)
def test_true_labels_that_do_not_fit_are_refused(truth, message):
    with pytest.raises(InputError, match=message):
        pate("rho=0.05", **FAST).fit(X, Y, public=PUBLIC, truth=truth)


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"sigma": 31.0}, {}),
        ({"seed": 1}, {}),
        ({"budget": "rho=0.04"}, {}),
        ({}, {"public": PUBLIC[:200]}),
    ],
)
def test_a_folder_of_another_fit_is_refused(tmp_path, changed, again):
    facts = FAST | {"folder": tmp_path, "aggregator": "gnmax", "sigma": 30.0, "budget": "rho=0.05"}
    pate(**facts).fit(X, Y, public=PUBLIC)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="choose another folder"):
        pate(**facts | changed).fit(X, Y, **{"public": PUBLIC} | again)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_interactive_voting_starts_with_a_confident_round():
    facts = FAST | {
        "aggregator": "interactive",
        "sigma": 10.0,
        "sigma1": 15.0,
        "threshold": 25.0,
        "confidence": 0.6,
    }
    model = pate("rho=5", n_teachers=50, bootstrap=0.3, **facts).fit(X, Y, public=PUBLIC)
    assert isinstance(model.aggregator_, Interactive)
    first, rest = model.answers_.labels[:90], model.answers_.labels[90:]
    paid = model.answers_.paid
    assert (first[~paid[:90]] == -1).all()
    free = (rest >= 0) & ~paid[90:]
    assert free.sum() > 20
    assert np.mean(rest[free] == OF_PUBLIC[90:][free]) > 0.8
    expected = 300 / (2 * 15**2) + paid.sum() / 10**2
    assert model.spent_.rho == pytest.approx(expected)
    assert model.guarantee_.rho == pytest.approx(5)


def test_calibration_fits_the_dearest_group():
    model = pate(budgets=BUDGETS, n_teachers=50, **FAST).fit(X, Y, groups=GROUPS, public=PUBLIC)
    assert isinstance(model.aggregator_, Confident)
    allowed = {
        group: allowance_of(Budget.approx(epsilon, 1e-5), None)
        for group, epsilon in BUDGETS.items()
    }
    left = {
        group: total.total - total.cost(dict(model.spent_.groups)[group])
        for group, total in allowed.items()
    }
    one_more = {
        group: allowed[group].cost(query_event(model.aggregator_, allowed[group], s))
        for group, s in model.answers_.sensitivity.items()
    }
    assert min(left.values()) >= 0
    assert model.answers_.asked == 300 or any(left[group] < one_more[group] for group in allowed)


def test_stopping_by_the_votes_promises_nothing_and_needs_research_noise():
    facts = FAST | {"stopping": "data-dependent"}
    model = pate(budgets=BUDGETS, **facts).fit(X, Y, groups=GROUPS, public=PUBLIC)
    assert model.guarantee_.epsilon(1e-5, "a") == math.inf
    assert (
        max(model.answers_.internal_.epsilon[group] - epsilon for group, epsilon in BUDGETS.items())
        <= 1e-9
    )
    with pytest.raises(BudgetError, match="reveals facts about the votes"):
        pate(budgets=BUDGETS, **facts | {"noise": "secure", "random_state": None}).promise()


def test_a_student_without_a_form_for_release_publishes_labels_alone():
    model = pate("rho=1", student=KNeighborsClassifier(3), **FAST).fit(X, Y, public=PUBLIC)
    assert model.score(X, Y) > 0.9
    with pytest.raises(ReleaseError, match="publish answers_.labels alone"):
        tacit.Release.of(model)
    assert model.decision_function(X).shape == (1000, 3)
    by_class = pate("rho=1", student=Perceptron(), **FAST).fit(X, Y, public=PUBLIC)
    assert by_class.score(X, Y) > 0.9
    with pytest.raises(InputError, match="no scores"):
        by_class.decision_function(X)


@pytest.mark.parametrize("student", ["linear", "mlp", "cnn"])
def test_networks_of_pictures_are_released_as_weights(tmp_path, student):
    pytest.importorskip("torch", reason="networks need torch")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    pictures = (rng.integers(0, 120, (400, 1, 8, 8)) + 100 * y[:, None, None, None]).astype(
        np.uint8
    )
    facts = FAST | {
        "classes": 2,
        "student": student,
        "teacher": "linear",
        "student_training": {"epochs": 20},
    }
    model = pate("rho=inf", **facts).fit(pictures[:200], y[:200], public=pictures[200:])
    assert model.score(pictures, y) > 0.9
    flat = pictures.reshape(400, -1)
    by_rows = pate("rho=inf", shape=(1, 8, 8), **facts).fit(flat[:200], y[:200], public=flat[200:])
    assert np.array_equal(by_rows.predict(flat), model.predict(pictures))
    release = tacit.Release.of(model)
    release.save(tmp_path / "release", allow_research=True)
    read = tacit.Release.load(tmp_path / "release").verify()
    assert np.array_equal(read.predict(flat), model.predict(pictures))


def test_the_ledger_is_charged_the_most_expensive_group_and_refuses_before_teachers_are_trained(
    tmp_path, monkeypatch
):
    ledger = tacit.Ledger(tmp_path / "ledger.jsonl", "records")
    ledger.allow("epsilon=2.1,delta=1e-5", "replace")
    facts = FAST | {"ledger": ledger, "budgets": BUDGETS}
    pate(**facts).fit(X, Y, groups=GROUPS, public=PUBLIC)
    assert accounting.epsilon(ledger.account().spent, 1e-5) == pytest.approx(2.0, rel=1e-6)
    monkeypatch.setattr("tacit.learners.pate.ensemble.Ensemble.votes", interrupt)
    with pytest.raises(tacit.TacitError, match="ledger"):
        pate(**facts).fit(X, Y, groups=GROUPS, public=PUBLIC)


def test_labels_that_are_mostly_noise_are_said():
    with pytest.warns(UserWarning, match=stating("3 classes", "more records")):
        pate("rho=0.0001", **FAST).fit(X, Y, public=PUBLIC)


def test_public_facts_choose_the_number_of_teachers():
    """Few where the budget is large, else as many as there are records for; the same under any
    labels and features.
    """
    many, of_many = records(12_000, 4)
    facts = {
        "classes": 3,
        "noise": "research",
        "random_state": 0,
        "teacher": KNeighborsClassifier(1),
    }
    sizes = [
        pate(budget, **facts).fit(many, of_many, public=PUBLIC).votes_.votes.shape[1]
        for budget in ("epsilon=0.3,delta=1e-5", "epsilon=8,delta=1e-5", "rho=inf")
    ]
    assert sizes[0] == 600
    assert sizes[1] == 150
    assert sizes[2] == 600
    other = pate("epsilon=8,delta=1e-5", **facts).fit(-many, 2 - of_many, public=PUBLIC)
    assert other.votes_.votes.shape[1] == sizes[1]


def test_labels_may_aim_at_an_accuracy():
    model = pate("rho=0.3", label_accuracy=0.97, n_teachers=50, **FAST)
    aimed = model.fit(X, Y, public=PUBLIC).answers_.answered
    more = pate("rho=0.3", label_accuracy=0.6, n_teachers=50, **FAST).fit(X, Y, public=PUBLIC)
    assert 0 < aimed < more.answers_.answered
    with pytest.raises(InputError, match=stating("label_accuracy=1.5", "0.01", "1")):
        pate("rho=0.3", label_accuracy=1.5, **FAST).fit(X, Y, public=PUBLIC)


def test_no_answer_at_all_is_said_and_survived():
    facts = FAST | {"sigma": 20.0, "sigma1": 1.0, "threshold": 10_000.0}
    with pytest.warns(UserWarning, match="no query was answered"):
        model = pate("rho=400", **facts).fit(X, Y, public=PUBLIC)
    assert model.answers_.answered == 0
    assert model.answers_.asked == 300
    assert set(model.predict(X)) == {0}


BAD = [
    ({}, {"groups": GROUPS}, "budgets= of each"),
    ({"budgets": BUDGETS}, {}, "groups= of each record"),
    ({"budgets": BUDGETS}, {"groups": GROUPS[:-1]}, "one group for each of 1000"),
    ({"budgets": BUDGETS}, {"groups": np.full(1000, "a")}, "'b' has a budget and no record"),
    (
        {"budgets": BUDGETS},
        {"groups": np.where(GROUPS == "a", "a", "c")},
        "'c' has records and no budget",
    ),
    ({"budgets": {"a": 0.0}}, {"groups": np.full(1000, "a")}, "budget 0.0 of group 'a'"),
    ({"budgets": {"a": math.nan}}, {"groups": np.full(1000, "a")}, "budget nan of group 'a'"),
    ({"budgets": BUDGETS, "delta": 1.0}, {"groups": GROUPS}, "delta=1.0"),
    ({"budget": "epsilon=1"}, {}, "is pure"),
    ({"budget": "rho=0.1", "budgets": BUDGETS}, {"groups": GROUPS}, "are both given"),
    ({"n_teachers": 1001}, {}, "more than the 1000 records"),
    ({"n_teachers": 0}, {}, "number of teachers=0"),
    ({"n_labels": 301}, {}, "n_labels=301"),
    ({"n_queries": 0}, {}, "n_queries=0"),
    ({"collector": "best", "budgets": BUDGETS}, {"groups": GROUPS}, "collector='best'"),
    ({"aggregator": "best"}, {}, "aggregator='best'"),
    ({"aggregator": "interactive"}, {}, "needs sigma"),
    ({"sigma": 10.0}, {}, "needs sigma1"),
    ({"aggregator": "gnmax", "sigma": 0.5}, {}, "do not allow one query"),
    ({"teacher": GaussianNB}, {}, "is a class"),
    ({"student": "tree"}, {}, "tree"),
    ({"shape": (2, 3)}, {}, "has 6 values"),
    ({"validation": 1.0}, {}, "validation=1.0"),
    ({"student_training": {"epoch": 3}}, {}, "must be a dict of epochs"),
    (
        {
            "bootstrap": 0.0,
            "aggregator": "interactive",
            "sigma": 9,
            "sigma1": 9,
            "threshold": 9,
            "confidence": 0.9,
        },
        {},
        "bootstrap=0.0",
    ),
    ({"expected_accuracy": 2.0}, {}, "expected_accuracy=2.0"),
    ({"stopping": "never"}, {}, "stopping='never'"),
    ({}, {"public": PUBLIC[:, :2]}, "public has 2 columns"),
    ({}, {"public": PUBLIC[:0]}, "at least one row"),
    ({}, {"public": None}, "needs public records"),
    ({}, {"public": np.where(np.arange(4) == 1, np.nan, PUBLIC)}, "not finite"),
    ({}, {"test": (PUBLIC, OF_PUBLIC + 5)}, "not among the 3 declared classes"),
    ({}, {"test": (PUBLIC, OF_PUBLIC[:-1])}, "one for each"),
]


@pytest.mark.parametrize(
    ("parameters", "given", "message"), BAD, ids=[message for _, _, message in BAD]
)
def test_bad_input_is_refused_before_anything_is_charged(tmp_path, parameters, given, message):
    if parameters.get("student") == "tree":
        pytest.importorskip("torch", reason="networks need torch")
    ledger = tacit.Ledger(tmp_path / "ledger.jsonl", "records")
    facts = FAST | {"ledger": ledger} | parameters
    with pytest.raises((InputError, BudgetError)) as caught:
        pate(**facts).fit(X, Y, **{"public": PUBLIC} | given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not ledger.path.exists()


def test_names_change_the_student_and_not_the_votes():
    with_names, without = (
        pate("rho=0.005", names=names, **FAST).fit(X, Y, public=PUBLIC) for names in (CENTRES, None)
    )
    assert np.array_equal(with_names.answers_.labels, without.answers_.labels)
    assert with_names.guarantee_ == without.guarantee_
    assert not np.array_equal(with_names.coefficients_, without.coefficients_)
    assert with_names.score(*records(500, 3)) >= without.score(*records(500, 3))
    tacit.Release.of(with_names).verify()


def test_names_alone_serve_where_nothing_is_answered():
    model = pate("rho=0.5", names=CENTRES, voting=Confident(100.0, 100.0, 1e6), **FAST)
    with pytest.warns(UserWarning, match=stating("no query", "names")):
        model.fit(X, Y, public=PUBLIC)
    floor = tacit.NamePrototypes(classes=3, names=CENTRES, public=PUBLIC).fit(X, Y)
    assert np.array_equal(model.predict(X), floor.predict(X))


@pytest.mark.parametrize("student", [GaussianNB(), "mlp"])
def test_names_need_a_linear_student(student):
    if student == "mlp":
        pytest.importorskip("torch", reason="networks need torch")
    with pytest.raises(InputError, match=stating("names", "logistic regression")):
        pate("rho=0.5", names=CENTRES, student=student, **FAST).fit(X, Y, public=PUBLIC)


def test_a_fit_whose_limits_cost_less_than_its_budget_can_be_released(tmp_path):
    voting = tacit.pate.Confident(sigma=40.0, sigma1=60.0, threshold=20.0)
    model = pate(
        "epsilon=2,delta=1e-5",
        n_queries=10,
        **FAST | {"voting": voting, "noise": "secure", "random_state": None},
    )
    model.fit(X, Y, public=PUBLIC)
    assert {type(event).__name__ for event, _ in model.guarantee_.event.counted()} == {
        "NoisyArgmax",
        "NoisyCheck",
    }
    tacit.Release.of(model).save(tmp_path / "student")
    assert tacit.Release.load(tmp_path / "student").verify().guarantee == model.guarantee_
