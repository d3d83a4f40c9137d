import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit
from killing import one_ray_worker_killed
from messages import stating
from tacit.compute.engines import engine
from tacit.compute.progress import reporting
from tacit.errors import InputError
from tacit.learners.common.training import Training
from tacit.learners.pate import ensemble as module
from tacit.learners.pate.ensemble import Ensemble
from tacit.learners.pate.teachers import CLASSIFIERS

N_CLASSES = 3
QUICK = Training(epochs=5)


def records(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    return rng.normal(size=(n, d)) + 3 * np.eye(N_CLASSES, d)[y], y


def split(n=90, n_teachers=6):
    return np.array_split(np.random.default_rng(1).permutation(n), n_teachers)


def votes(teacher, X, y, parts=None, **options):
    parts = split(len(X)) if parts is None else parts
    options = {
        "queries": records(40, X.shape[1], seed=2)[0],
        "n_classes": N_CLASSES,
        "training": QUICK,
    } | options
    engine = options.pop("engine", None)
    return Ensemble(teacher, parts, X, y, options.pop("queries"), **options).votes(engine)


FOREST = RandomForestClassifier(5)
KINDS = [LogisticRegression(), FOREST, make_pipeline(StandardScaler(), FOREST), "linear", "mlp"]


@pytest.fixture(
    params=KINDS, ids=lambda kind: kind if isinstance(kind, str) else type(kind).__name__
)
def teacher(request):
    if isinstance(request.param, str):
        pytest.importorskip("torch", reason="networks need torch")
    return request.param


def test_votes_are_class_indices_and_mostly_right(teacher):
    X, y = records()
    test = records(200, seed=3)
    said = votes(teacher, X, y, test=test, training=Training(epochs=30))
    assert said.votes.shape == (40, 6)
    assert said.votes.dtype == np.uint8
    assert said.test_votes.shape == (200, 6)
    np.testing.assert_array_equal(
        said.accuracies, (said.test_votes == test[1][:, None]).mean(axis=0)
    )
    assert said.accuracies.mean() > 0.75


def test_votes_are_a_function_of_the_seed(teacher):
    X, y = records()
    again = [votes(teacher, X, y, seed=seed).votes for seed in (7, 7)]
    np.testing.assert_array_equal(*again)


def test_the_seed_reaches_nested_random_states():
    X, y = records()
    said = [
        votes(make_pipeline(StandardScaler(), FOREST), X, y, seed=seed).votes for seed in (7, 8)
    ]
    assert (said[0] != said[1]).any()
    # one part five times: only the seeds differ
    alike = votes(FOREST, X, y, parts=[split()[0]] * 5).votes
    assert (alike != alike[:, :1]).any()


@pytest.mark.parametrize("change", ["features", "label"])
def test_one_record_moves_one_teacher(teacher, change, tmp_path):
    X, y = records()
    parts = split()
    before = votes(teacher, X, y, parts, folder=tmp_path / "before").votes
    record = parts[3][4]
    X, y = X.copy(), y.copy()
    if change == "features":
        X[record] = 50.0
    else:
        y[record] = (y[record] + 1) % N_CLASSES
    after = votes(teacher, X, y, parts, folder=tmp_path / "after").votes
    assert set(np.flatnonzero((before != after).any(axis=0))) <= {3}
    if isinstance(teacher, str):
        assert moved_weights(tmp_path, len(parts)) == [3]


def moved_weights(folder, n_teachers):
    from safetensors.numpy import load_file

    def weights(name):
        arrays = {}
        for path in (folder / name / "teachers").glob("*.safetensors"):
            arrays |= load_file(path)
        return arrays

    before, after = weights("before"), weights("after")
    assert {int(name.split(".")[0]) for name in before} == {*range(n_teachers)}
    return sorted(
        {
            int(name.split(".")[0])
            for name in before
            if before[name].tobytes() != after[name].tobytes()
        }
    )


def test_a_record_that_matters_moves_its_teachers_votes():
    """So that the test above would see a teacher that moves."""
    X, y = records()
    parts = split()
    other = y.copy()
    other[parts[3]] = (other[parts[3]] + 1) % N_CLASSES
    moved = (
        votes(LogisticRegression(), X, y, parts).votes
        != votes(LogisticRegression(), X, other, parts).votes
    ).any(0)
    np.testing.assert_array_equal(np.flatnonzero(moved), [3])


@pytest.mark.parametrize("size", [3, 400])  # fewer records than any other teacher has, and far more
@pytest.mark.parametrize("blocks", [2, 6])
def test_the_size_of_a_part_moves_one_teacher(teacher, size, blocks, tmp_path, monkeypatch):
    """To the last bit of the weights; 400 records change the steps, the padding and the solver of
    all if they may.
    """
    monkeypatch.setattr(module, "BLOCKS", blocks)
    X, y = records(500)
    parts = split()
    other = [*parts[:3], np.arange(90, 90 + size), *parts[4:]]
    before, after = (
        votes(teacher, X, y, given, folder=tmp_path / name, private_sizes=True).votes
        for name, given in (("before", parts), ("after", other))
    )
    assert set(np.flatnonzero((before != after).any(axis=0))) <= {3}
    if isinstance(teacher, str):
        assert moved_weights(tmp_path, len(parts)) == [3]


@pytest.mark.parametrize("teacher", ["linear", "mlp"])
def test_public_sizes_set_the_steps_of_all(teacher, tmp_path):
    """So that the test above would see a size that matters."""
    pytest.importorskip("torch", reason="networks need torch")
    X, y = records(500)
    parts = split()
    votes(teacher, X, y, parts, folder=tmp_path / "before")
    votes(teacher, X, y, [*parts[:3], np.arange(90, 490), *parts[4:]], folder=tmp_path / "after")
    assert len(moved_weights(tmp_path, len(parts))) > 1


def test_teachers_vote_for_classes_of_their_part_alone(teacher):
    X, y = records()
    parts = [
        np.flatnonzero(y == 2),
        np.flatnonzero(y != 1),
        np.flatnonzero(y == 0)[:1],
        np.arange(90),
    ]
    said = votes(teacher, X, y, parts).votes
    assert [set(column) for column in said.T[[0, 2]]] == [{2}, {0}]
    assert set(said[:, 1]) == {0, 2}
    assert set(said[:, 3]) == {0, 1, 2}


def test_pictures_are_rows_to_scikit_learn():
    X, y = records(d=16)
    queries = records(10, 16, seed=4)[0]
    flat = votes(LogisticRegression(), X, y, queries=queries).votes
    pictures = votes(
        LogisticRegression(), X.reshape(-1, 1, 4, 4), y, queries=queries.reshape(-1, 1, 4, 4)
    ).votes
    np.testing.assert_array_equal(flat, pictures)


THOROUGH = pytest.mark.thorough
PLACES = [
    ("joblib", "memory"),
    ("joblib", "file"),
    ("joblib", None),
    pytest.param("ray", None, marks=THOROUGH),
    pytest.param("slurm", "memory", marks=THOROUGH),
]


@pytest.mark.parametrize("teacher", [FOREST, "linear"], ids=["forest", "linear"])
@pytest.mark.parametrize(("name", "place"), PLACES)
def test_engines_give_the_same_bits(name, place, teacher, tmp_path):
    """From records in memory and in a file, with a folder and without."""
    for library in (
        {"slurm": "submitit"}.get(name, name),
        "torch" if teacher == "linear" else "joblib",
    ):
        pytest.importorskip(library, reason=f"{library} is not installed")
    elsewhere = engine(
        name, 2, **({"folder": tmp_path / "slurm", "cluster": "local"} if name == "slurm" else {})
    )
    X, y = records()
    expected = votes(teacher, X, y, folder=tmp_path / "here").votes
    if place == "file":
        np.save(tmp_path / "x.npy", X)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    folder = None if place is None else tmp_path / place
    np.testing.assert_array_equal(
        votes(teacher, X, y, folder=folder, engine=elsewhere).votes, expected
    )
    if folder is not None:
        # weights too, and no copies of records
        assert contents(folder) == contents(tmp_path / "here")


def contents(folder):
    """Of the finished files; a killed worker leaves hidden ones."""
    files = [path for path in (folder / "teachers").iterdir() if not path.name.startswith(".")]
    return {path.name: path.read_bytes() for path in files}


def test_files_do_not_grow_in_number_with_the_teachers(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCKS", 3)
    X, y = records()
    parts = split(n_teachers=8)
    said = votes(LogisticRegression(), X, y, parts, folder=tmp_path).votes
    assert sorted(contents(tmp_path)) == ["00000.npy", "00003.npy", "00006.npy", "key.txt"]
    monkeypatch.undo()
    np.testing.assert_array_equal(said, votes(LogisticRegression(), X, y, parts).votes)


def test_many_votes_lie_in_a_file(tmp_path, monkeypatch):
    X, y = records()
    expected = votes(LogisticRegression(), X, y, test=(X, y))
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    for folder in (None, tmp_path):
        said = votes(LogisticRegression(), X, y, test=(X, y), folder=folder)
        assert isinstance(said.votes.base.base, np.memmap)
        np.testing.assert_array_equal(said.votes, expected.votes)
        np.testing.assert_array_equal(said.accuracies, expected.accuracies)
    assert all(name.endswith(("npy", "key.txt")) for name in contents(tmp_path))


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from sklearn.naive_bayes import GaussianNB
from tacit.compute.engines import engine
from tacit.learners.pate.ensemble import Ensemble

class Dying(GaussianNB):
    fits = 0

    def fit(self, X, y):
        Dying.fits += 1
        if Dying.fits == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 4)), np.arange(3000) % 3
ensemble = Ensemble(Dying(), np.array_split(np.arange(3000), 600), X, y, X[:50], n_classes=3, folder=sys.argv[1])
np.save(Path(sys.argv[1]) / "all.npy", ensemble.votes().votes)
print(Dying.fits)
"""


def test_a_killed_fit_goes_on(tmp_path):
    def run(last):
        line = [sys.executable, "-c", KILLED, str(tmp_path), str(last)]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    assert run(300).returncode == -signal.SIGKILL
    assert len(contents(tmp_path)) == 99 + 1  # blocks of three teachers, and the key
    assert run(9999).stdout == "303\n"
    X, y = np.random.default_rng(0).normal(size=(3000, 4)), np.arange(3000) % 3
    whole = votes(GaussianNB(), X, y, np.array_split(np.arange(3000), 600), queries=X[:50]).votes
    np.testing.assert_array_equal(np.load(tmp_path / "all.npy"), whole)


@pytest.mark.thorough
def test_ten_thousand_teachers_on_two_ray_workers_of_which_one_is_killed(tmp_path):
    pytest.importorskip("ray", reason="the extra 'cluster' is missing")
    X, y = records(50_000)
    parts = split(50_000, 10_000)
    expected = votes(GaussianNB(), X, y, parts, folder=tmp_path / "here").votes
    reports = []
    with (
        one_ray_worker_killed(tmp_path / "ray" / "teachers", "0*.npy", enough=51),
        reporting(lambda *report: reports.append(report)),
    ):
        said = votes(
            GaussianNB(), X, y, parts, folder=tmp_path / "ray", engine=engine("ray", 2)
        ).votes
    np.testing.assert_array_equal(said, expected)
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")
    assert reports[-1] == ("training teachers", 10_000, 10_000)


class Counting(LogisticRegression):
    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        if type(self).fits == 4:
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    X, y = records()
    monkeypatch.setattr(Counting, "fits", 0)
    with pytest.raises(KeyboardInterrupt):
        votes(Counting(), X, y, folder=tmp_path)
    assert sorted(path.name for path in (tmp_path / "teachers").iterdir()) == [
        "00000.npy",
        "00001.npy",
        "00002.npy",
        "key.txt",
    ]
    reports = []
    with reporting(lambda *report: reports.append(report)):
        said = votes(Counting(), X, y, folder=tmp_path)
    assert Counting.fits == 7
    assert reports[-1] == ("training teachers", 3, 3)
    np.testing.assert_array_equal(said.votes, votes(LogisticRegression(), X, y).votes)
    np.testing.assert_array_equal(said.votes, votes(Counting(), X, y, folder=tmp_path).votes)
    assert Counting.fits == 7


def test_networks_are_kept_and_go_on(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="networks need torch")
    monkeypatch.setattr(module, "TOGETHER", 2)
    X, y = records()
    first = votes("linear", X, y, folder=tmp_path).votes
    kept = {path: path.read_bytes() for path in (tmp_path / "teachers").iterdir()}
    (tmp_path / "teachers" / "00002.npy").unlink()
    np.testing.assert_array_equal(votes("linear", X, y, folder=tmp_path).votes, first)
    assert {path: path.read_bytes() for path in (tmp_path / "teachers").iterdir()} == kept
    from safetensors.numpy import load_file

    shapes = {
        name: array.shape
        for name, array in load_file(tmp_path / "teachers" / "00002.safetensors").items()
    }
    assert shapes == {
        "2.1.weight": (3, 6),
        "2.1.bias": (3,),
        "3.1.weight": (3, 6),
        "3.1.bias": (3,),
    }


CHANGES = {
    "features": lambda X, y: {"X": X + 0.1},
    "labels": lambda X, y: {"y": (y + 1) % N_CLASSES},
    "seed": lambda X, y: {"seed": 1},
    "queries": lambda X, y: {"queries": X},
    "teacher": lambda X, y: {"teacher": LogisticRegression(C=2)},
    "parts": lambda X, y: {"parts": split(n_teachers=5)},
    "test": lambda X, y: {"test": (X, y)},
    "classes": lambda X, y: {"n_classes": 4},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_of_other_teachers_is_refused(tmp_path, change):
    X, y = records()
    base = {"teacher": LogisticRegression(), "X": X, "y": y}
    votes(**base, folder=tmp_path)
    with pytest.raises(InputError, match=stating("teachers", "other records")):
        votes(**(base | CHANGES[change](X, y)), folder=tmp_path)


def test_training_of_networks_is_part_of_the_plan(tmp_path):
    pytest.importorskip("torch", reason="networks need torch")
    X, y = records()
    votes("mlp", X, y, folder=tmp_path)
    with pytest.raises(InputError, match="choose another folder"):
        votes("mlp", X, y, folder=tmp_path, training=Training(epochs=6))
    with pytest.raises(InputError, match="choose another folder"):
        votes("linear", X, y, folder=tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", np.full(3, 9), np.full((1, 40), 9, np.uint8)]
)
def test_a_damaged_file_is_named(tmp_path, content):
    X, y = records()
    votes(LogisticRegression(), X, y, folder=tmp_path)
    path = tmp_path / "teachers" / "00001.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(InputError, match=stating("00001.npy", "delete")):
        votes(LogisticRegression(), X, y, folder=tmp_path)


@pytest.mark.parametrize("damage", [b"{", b"\xff", None])
def test_a_folder_whose_key_is_damaged_is_refused(tmp_path, damage):
    X, y = records()
    votes(LogisticRegression(), X, y, folder=tmp_path)
    key = tmp_path / "teachers" / "key.txt"
    key.unlink() if damage is None else key.write_bytes(damage)
    with pytest.raises(InputError, match=stating("teachers", "key.txt")):
        votes(LogisticRegression(), X, y, folder=tmp_path)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"parts": []}, stating("each teacher", "rows")),
        ({"parts": [np.arange(5), np.array([], dtype=int)]}, stating("part 1", "rows")),
        ({"parts": [np.array([0, 90])]}, "part 0 must be .* from 0 to 89"),
        ({"parts": [np.array([0.5, 1])]}, "part 0 must be"),
        ({"parts": [np.ones(90, dtype=bool)]}, "part 0 must be"),
        ({"y": np.full(90, 3)}, "one class index from 0 to 2"),
        ({"y": np.zeros(89, dtype=int)}, "for each of 90 records"),
        ({"queries": np.zeros((4, 5))}, r"shape \(4, 5\)"),
        ({"queries": np.zeros((4, 6), dtype=np.uint8)}, "type uint8"),
        ({"test": (np.zeros((4, 6)), np.zeros(3, dtype=int))}, "4 test records and 3 labels"),
        ({"teacher": LogisticRegression}, r"pass an instance, LogisticRegression\(\)"),
    ],
)
def test_bad_input(wrong, match):
    X, y = records()
    with pytest.raises(InputError, match=match):
        votes(**({"teacher": LogisticRegression(), "X": X, "y": y} | wrong))


def test_unknown_networks_are_refused():
    pytest.importorskip("torch", reason="networks need torch")
    with pytest.raises(InputError, match=stating("linear", "mlp", "cnn")):
        votes("lstm", *records())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_by_name(name):
    """Also where parts are small and lack classes."""
    y = np.arange(60) % 3
    X = np.eye(3, 4)[y] * 5 + np.random.default_rng(0).normal(size=(60, 4))
    model = tacit.PATE(
        "rho=100",
        classes=3,
        public=X,
        allow_overlap=True,
        noise="research",
        random_state=0,
        voting=tacit.pate.GNMax(1.0),
        teachers={"number": 20, "model": name},
        student={"model": name},
    )
    model.fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.8
    assert model.releasable() == (name == "logistic-regression") == (model.released_ is not None)
