"""What the estimator refuses: one line, and nothing charged."""

import csv
import json
import math
import shutil
import struct
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import tacit
from messages import lacking, stating
from tacit.compute.checkpoint import Checkpoint
from tacit.errors import TacitError
from tacit.learners.pate.filter import allowance_of
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Ledger

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 600)
X = RNG.normal(size=(600, 3)) + 3 * Y[:, None]
PUBLIC = RNG.normal(size=(60, 3)) + 3 * RNG.integers(0, 2, (60, 1))
NOISE = {"aggregator": "gnmax", "sigma": 40.0}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("rho=10", "replace")
    return ledger


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "run"
    pate(folder=folder).fit(X, Y, public=PUBLIC)
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    """The private folder of a fit, which a test may change."""
    return shutil.copytree(fitted, tmp_path / "run")


def pate(ledger=None, **given):
    return tacit.PATE.of_flat(
        **{"budget": "rho=1", "classes": 2, "teacher": GaussianNB(), "ledger": ledger}
        | NOISE
        | given
    )


def refused(ledger, message, fit=None, **given):
    """The one line, after which nothing is charged."""
    charges = len(ledger.account().charges)
    with pytest.raises(TacitError, match=message) as caught:
        pate(ledger, **given).fit(**{"X": X, "y": Y, "public": PUBLIC} | (fit or {}))
    assert "\n" not in str(caught.value)
    assert len(ledger.account().charges) == charges


@pytest.mark.parametrize("budget", ["rho=inf", "epsilon=inf"])
def test_an_infinite_budget_promises_nothing_whatever_the_noise(budget):
    """Plurality without noise is what it buys, so given noise and limits are no bound."""
    model = pate(budget=budget, n_queries=10).fit(X, Y, public=PUBLIC)
    assert not model.promise().bounded
    assert model.guarantee_.epsilon(1e-5) == math.inf == model.spent_.epsilon(1e-5)


def test_a_promise_with_many_queries_is_at_once():
    promise = pate(budget="rho=1", n_queries=10**12, n_labels=100).promise()
    assert promise.rho == pytest.approx(100 / 1600)


def test_answers_state_the_guarantee_of_the_fit():
    with pytest.warns(UserWarning, match="class list"):
        model = pate(classes=None).fit(X, Y, public=PUBLIC)
    assert model.answers_.guarantee_ == model.guarantee_
    assert not lacking(
        "; ".join(model.answers_.guarantee_.unprotected), "class list", "private labels"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folder": 5}, "folder=5 must be a path"),
        ({"shape": 5}, "shape=5 must name the sides"),
        ({"aggregator": ["x"]}, "aggregator="),
        ({"collector": "bogus"}, "collector='bogus'"),
        ({"jobs": 0}, "jobs=0"),
        ({"jobs": 1025, "engine": "joblib"}, "jobs=1025"),
        ({"engine": "spark"}, stating("engine='spark'", "joblib", "ray", "slurm")),
        ({"engine": "ray:"}, stating("engine='ray:'", "joblib", "ray")),
        ({"engine": "ray:auto"}, stating("folder=...", "(--folder)", "workers")),
        ({"engine": "slurm"}, stating("folder=...", "(--folder)", "workers")),
        ({"folder": "/proc/run", "engine": "joblib"}, stating("folder /proc/run", "made")),
        ({"delta": "x"}, "delta='x'"),
        ({"delta": 5}, "delta=5"),
        ({"semi_supervised": "no"}, "semi_supervised='no'"),
        ({"expected_accuracy": "x"}, "expected_accuracy='x'"),
        ({"teacher": LinearRegression()}, "is not a classifier"),
        ({"teacher": len}, stating("teacher=<built-in function len>", "network", "function")),
        ({"student": lambda shape, n_classes: 5}, "makes a int and not a network"),
        ({"teacher": MultinomialNB()}, stating("records or settings", "Negative values")),
        ({"student": MultinomialNB()}, stating("records or settings", "Negative values")),
        ({"student": LogisticRegression(C=-1)}, stating("C=-1", "records or settings")),
        ({"collector": {}}, "collector={} must be one of"),
        ({"names": csr_matrix(np.eye(3))}, stating("names", "sparse")),
        ({"names": np.array(5)}, stating("names=array(5)", "rows of each class")),
        ({"teacher": "cnn"}, "needs pictures"),
        ({"student": "cnn"}, "needs pictures"),
        (
            {
                "aggregator": "interactive",
                "sigma1": 5.0,
                "threshold": 5.0,
                "confidence": 0.5,
                "student": Perceptron(),
            },
            "no predict_proba",
        ),
    ],
)
def test_parameters(ledger, given, message):
    refused(ledger, message, **given)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        ({"test": 5}, "test=\\(records, labels\\)"),
        ({"test": (X,)}, "test=\\(records, labels\\)"),
        ({"test": (X[:2], [[1], [1, 2]])}, "different lengths"),
        ({"public": PUBLIC.astype(object)}, "dtype object"),
        (
            {"public": csr_matrix(PUBLIC)},
            stating("public", "sparse", "public.toarray()"),
        ),
        (
            {"test": (csr_matrix(X), Y)},
            stating("test", "sparse", "test.toarray()"),
        ),
        ({"public": [[1.0], [1.0, 2.0]]}, stating("public", "numeric")),
        ({"public": np.ones((5, 3), dtype=np.uint8)}, "encode both the same way"),
        ({"X": X.astype(np.uint8)}, "encode both the same way"),
        ({"groups": [["a"], ["a", "b"]]}, stating("groups", "different lengths")),
    ],
)
def test_records(ledger, fit, message):
    refused(
        ledger,
        message,
        fit,
        **({"budget": "rho=0.5", "budgets": {"a": 1.0}} if "groups" in fit else {}),
    )


def test_a_folder_of_another_fit_is_refused_before_a_charge(ledger, folder):
    refused(ledger, "other records, queries or settings", folder=folder, seed=1)
    refused(ledger, "other records, queries or settings", {"y": 1 - Y}, folder=folder)


@pytest.mark.parametrize(
    ("full", "message"), [("votes", "cannot take .* bytes of votes"), ("records", "the records")]
)
def test_a_full_disk_is_one_line_and_nothing_is_charged(
    ledger, tmp_path, monkeypatch, full, message
):
    def no_space(checkpoint, name, content):
        if (checkpoint.folder.name == "records") is (full == "records") and name != "key.txt":
            raise OSError(28, "No space left on device")
        return written(checkpoint, name, content)

    written = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", no_space)
    refused(
        ledger,
        f"{message} .*No space left on device.*; choose another folder",
        folder=tmp_path / "run",
        engine="joblib",
    )
    assert sorted(path.name for path in (tmp_path / "run" / "teachers").iterdir()) == ["key.txt"]


def test_more_jobs_need_no_engine_and_change_no_vote(tmp_path):
    one = pate(noise="research", random_state=0).fit(X, Y, public=PUBLIC)
    two = pate(noise="research", random_state=0, jobs=2, folder=tmp_path / "run").fit(
        X, Y, public=PUBLIC
    )
    again = pate(noise="research", random_state=0, folder=tmp_path / "run", engine="joblib").fit(
        X, Y, public=PUBLIC
    )
    for model in (two, again):
        np.testing.assert_array_equal(model.votes_.votes, one.votes_.votes)
        np.testing.assert_array_equal(model.answers_.labels, one.answers_.labels)


@pytest.mark.parametrize("what", ["cut", "array", "shape", "range", "text", "empty", "folder"])
def test_a_damaged_voting_is_refused_before_a_charge(ledger, folder, what):
    path = folder / "voting.npz"
    whole = path.read_bytes()
    labels, paid = np.zeros(5, dtype=np.int64), np.ones(5, dtype=bool)
    bad = {
        "shape": labels.reshape(5, 1),
        "range": labels + 7,
        "text": labels.astype(str),
        "empty": labels[:0],
    }
    if what == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif what == "array":
        with path.open("wb") as file:
            np.save(file, labels)
    elif what == "folder":
        path.unlink()
        path.mkdir()
    else:
        np.savez(path, labels=bad[what], paid=paid[: len(bad[what])])
    refused(ledger, "choose another folder|is a folder|cannot be made", folder=folder)


def test_a_voting_that_claims_terabytes_or_never_ends_is_one_line(ledger, folder):
    stated = (folder / "voting.json").read_text()
    (folder / "voting.json").write_text("[" * 100_000)
    refused(ledger, "nested more than", folder=folder)
    (folder / "voting.json").write_text(stated)
    header = np.lib.format.magic(1, 0) + struct.pack("<H", 118)
    header += (
        f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**41},), }}".encode().ljust(117)
        + b"\n"
    )
    with zipfile.ZipFile(folder / "voting.npz", "w") as archive:
        for name in ("labels", "paid"):
            archive.writestr(f"{name}.npy", header)
    refused(ledger, "choose another folder", folder=folder)


@pytest.mark.parametrize("content", ["zip", "npz"])
def test_damaged_teachers_are_refused_before_a_charge(ledger, folder, content):
    path = folder / "teachers" / "00000.npy"
    if content == "zip":
        path.write_bytes(b"PK\x03\x04 cut")
    else:
        path.unlink()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.npy", b"")
    refused(ledger, "delete it, or choose another folder", folder=folder)


@pytest.mark.parametrize("what", ["labels", "paid", "run", "votes", "charges", "answers"])
def test_changed_answers_are_refused_before_a_charge(ledger, folder, what):
    arrays, facts = (
        dict(np.load(folder / "voting.npz")),
        json.loads((folder / "voting.json").read_text()),
    )
    if what in arrays:
        arrays[what][0] = not arrays[what][0]
    else:
        facts[what] = "0" * 64
    np.savez(folder / "voting.npz", **arrays)
    (folder / "voting.json").write_text(json.dumps(facts))
    refused(ledger, "were changed after they were written; choose another folder", folder=folder)


def test_answers_to_other_votes_are_refused(folder):
    teacher = folder / "teachers" / "00000.npy"
    np.save(teacher, 1 - np.load(teacher))
    with pytest.raises(TacitError, match=stating("answers", "other votes")):
        pate(folder=folder).fit(X, Y, public=PUBLIC)


def test_a_folder_is_private_and_one_that_others_read_holds_nothing_else(ledger, folder, tmp_path):
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    pate(folder=folder).fit(X, Y, public=PUBLIC)
    assert folder.stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "paper.tex").touch()
    refused(ledger, "can be read by others and holds 'paper.tex'", folder=shared)
    assert shared.stat().st_mode & 0o777 == 0o755


def test_a_bootstrap_that_leaves_no_query_just_ends():
    own = {
        "aggregator": "interactive",
        "sigma": 5.0,
        "sigma1": 5.0,
        "threshold": 5.0,
        "confidence": 0.9,
    }
    model = pate(budget="rho=100", bootstrap=0.99, n_queries=20, **own).fit(X, Y, public=PUBLIC)
    assert model.answers_.asked == 20


def test_infinite_for_some_groups_only():
    with pytest.raises(TacitError, match="infinite for some groups only"):
        pate(budget="rho=0.5", budgets={"a": 1.0, "b": math.inf}, collector="upsampling").fit(
            X, Y, groups=np.where(Y == 0, "a", "b"), public=PUBLIC
        )


def test_data_frames_and_tensors_of_public_and_test_rows():
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    learn = {"noise": "research", "random_state": 0}
    of_arrays = pate(**learn).fit(X, Y, public=PUBLIC, test=(X, Y))
    of_frames = pate(**learn).fit(
        X, Y, public=pd.DataFrame(PUBLIC), test=(pd.DataFrame(X), pd.Series(Y))
    )
    tensor = torch.tensor(PUBLIC, requires_grad=True)
    of_tensors = pate(**learn).fit(X, Y, public=tensor, test=(torch.tensor(X), torch.tensor(Y)))
    for model in (of_frames, of_tensors):
        np.testing.assert_array_equal(model.answers_.labels, of_arrays.answers_.labels)
        np.testing.assert_array_equal(model.votes_.accuracies, of_arrays.votes_.accuracies)
        np.testing.assert_array_equal(model.coefficients_, of_arrays.coefficients_)
    with pytest.raises(TacitError, match=stating("public", "texts")):
        pate().fit(X, Y, public=pd.DataFrame({"a": ["x"], "b": [1], "c": [2]}))


def test_the_table_of_a_voting_states_settings_and_costs(tmp_path):
    """All columns that a comparison of votings needs; costs add up to what was spent."""
    groups = np.where(np.arange(600) % 2, "a", "b")
    model = pate(
        budget="rho=0.5",
        budgets={"a": 1.0, "b": 2.0},
        n_teachers=30,
        folder=tmp_path / "run",
        seed=3,
        noise="research",
        random_state=7,
        aggregator="confident",
        sigma1=80.0,
        threshold=5.0,
    )
    model.fit(X, Y, groups=groups, public=PUBLIC, test=(X, Y))
    (voting,) = csv.DictReader((tmp_path / "run" / "votings.csv").open())
    stated = {
        "teachers": "30",
        "collector": "weighting",
        "budget": "a=1 b=2",
        "seed": "3",
        "random_state": "7",
    }
    assert stated.items() <= voting.items()
    plan = model.answers_
    *_, last_query = csv.DictReader((tmp_path / "run" / "queries.csv").open())
    for group, _ in plan.spent_.groups:
        allowance = allowance_of(
            Budget.approx(model.budgets[group], model.delta), model.aggregator_
        )
        assert float(voting[f"allowed {group}"]) == allowance.total
        check, label = (float(voting[f"cost of a {what} {group}"]) for what in ("check", "label"))
        assert plan.asked * check + plan.answered * label == pytest.approx(
            float(last_query[f"spent {group}"]), rel=1e-6
        )
        internal, spent = (
            float(voting[f"internal epsilon {group}"]),
            float(voting[f"epsilon {group}"]),
        )
        assert internal <= spent <= model.budgets[group]
    (student,) = csv.DictReader((tmp_path / "run" / "students.csv").open())
    right = model.predict(X) == Y
    for c in (0, 1):
        assert float(student[f"test_accuracy of {c}"]) == pytest.approx(right[c == Y].mean())
