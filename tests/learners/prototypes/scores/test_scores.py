"""Exact integer scores: sensitivity, monotonicity, agreement with float64, and the same bits from
whoever computes.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from killing import one_ray_worker_killed
from messages import stating
from tacit.compute import threads
from tacit.compute.engines import engine_from
from tacit.compute.shared import caching
from tacit.errors import InputError
from tacit.learners.prototypes import scores as module
from tacit.learners.prototypes.scores import WORK, clipped, unclipped
from tacit.learners.prototypes.scores.arithmetic import (
    ARITHMETICS,
    ERROR_AUTO,
    arithmetic_for,
    scoring,
)
from tacit.learners.prototypes.scores.unclipped import NORM, exact_product, parts_of
from tacit.learners.prototypes.scores.window import SAMPLE, window

WINDOWS = [(0.0, 2.0), (1.42, 1.5), (1.54, 1.58), (0.0, 1.0), (0.5, 2.0)]
NAMES = ["float32", "float64", "int8"]
ERROR = {"float32": 3e-4, "float64": 5e-6, "int8": 5e-3}  # of a cosine


def found(public, x, y, n_classes, bounds, name="float32", **options):
    how = scoring(public, *bounds, name=name)
    with module.scores(how, public, x, y, n_classes, **options) as scores:
        return np.array(scores), how.sensitivity


def random_data(seed, n=60, m=25, d=9, n_classes=3):
    rng = np.random.default_rng(seed)
    x = np.abs(rng.normal(size=(n, d)))
    return np.abs(rng.normal(size=(m, d))), x, rng.integers(0, n_classes, n)


def reference(public, x, y, n_classes, d_min, d_max):
    p = public / np.linalg.norm(public, axis=1, keepdims=True)
    q = x / np.linalg.norm(x, axis=1, keepdims=True)
    terms = np.clip(1 + q @ p.T, d_min, d_max) - d_min
    return np.stack([terms[y == c].sum(axis=0) for c in range(n_classes)]) / (d_max - d_min)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", WINDOWS)
def test_scores_are_the_clipped_sums(bounds, name):
    public, x, y = random_data(0)
    scores, sensitivity = found(public, x, y, 4, bounds, name)
    error = 60 * ERROR["float64" if bounds == (0.0, 2.0) else name] / (bounds[1] - bounds[0])
    assert np.allclose(scores / sensitivity, reference(public, x, y, 4, *bounds), atol=error)
    assert not scores[3].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", WINDOWS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_record_raises_every_score_of_its_class_by_at_most_the_window(bounds, name, seed):
    public, x, y = random_data(seed)
    scores, sensitivity = found(public, x, y, 3, bounds, name)
    rise = scores - found(public, x[1:], y[1:], 3, bounds, name)[0]
    assert rise.dtype == np.int64
    assert rise.min() >= 0
    assert rise.max() <= sensitivity
    # other classes and other records do not move at all
    assert not np.delete(rise, y[0], axis=0).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_record_at_the_candidate_adds_the_whole_window(name):
    public = np.eye(4)[:2]
    scores, sensitivity = found(
        public, np.array([[5.0, 0, 0, 0], [0, -2.0, 0, 0]]), np.zeros(2, int), 1, (0.5, 1.5), name
    )
    assert scores.tolist() == [[sensitivity + sensitivity // 2, sensitivity // 2]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", WINDOWS)
def test_the_bits_do_not_depend_on_order_blocks_or_threads(bounds, name, monkeypatch):
    public, x, y = random_data(1, n=300, m=70)
    expected, _ = found(public, x, y, 3, bounds, name)
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(found(public, x[order], y[order], 3, bounds, name)[0], expected)
    for size, count in ((7, 1), (16, 3)):
        monkeypatch.setattr(clipped, "TILE", size)
        monkeypatch.setattr(clipped, "ROWS", size + 2)
        monkeypatch.setattr(module, "BLOCK", size + 4)
        monkeypatch.setattr(unclipped, "BLOCK", size + 4)
        monkeypatch.setattr(unclipped, "WIDE", size)
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        monkeypatch.setattr(clipped, "SHARD_BYTES", 1)
        assert np.array_equal(found(public, x, y, 3, bounds, name)[0], expected)


def test_clipping_at_the_natural_bounds_equals_the_shortcut():
    """The two routes share no code after the rounding to integers."""
    public, x, y = random_data(2)
    shortcut, _ = found(public, x, y, 3, (0.0, 2.0))
    how = module.Scoring(ARITHMETICS["float64"].scaled(public), -(NORM**2), NORM**2, clipped=True)
    with module.scores(how, public, x, y, 3) as scores:
        assert np.array_equal(np.array(scores), shortcut)


def test_zero_rows_contribute_nothing():
    public, x, y = random_data(3)
    for bounds in WINDOWS:
        zeros = np.concatenate([x, np.zeros((4, 9))])
        scores, _ = found(public, zeros, np.concatenate([y, [0, 1, 2, 0]]), 3, bounds)
        assert np.array_equal(scores, found(public, x, y, 3, bounds)[0])


@pytest.mark.parametrize("size", [2**20, 2**36, 2**44])
@pytest.mark.parametrize("width", [1, 256, 1280])
def test_exact_product_equals_python_integers(size, width):
    rng = np.random.default_rng(width)
    rows = ARITHMETICS["float64"].scaled(np.ones((1, width)))
    candidates = rows.integers(rng.normal(size=(3, width)))
    sums = rng.integers(-size, size, (2, width)) // max(1, int(width**0.5))
    expected = [
        [sum(int(a) * int(b) for a, b in zip(s, p, strict=True)) for p in candidates] for s in sums
    ]
    assert exact_product(candidates, parts_of(sums)).tolist() == expected


@pytest.mark.parametrize("width", [1, 7, 1280, 2**17])
@pytest.mark.parametrize("name", NAMES)
def test_integer_rows_keep_their_bounds(name, width):
    """With rows that rounding lengthens most: all entries just above a half."""
    rng = np.random.default_rng(0)
    public = rng.normal(size=(4, width))
    one = ARITHMETICS[name].scaled(public)
    upward = (np.floor(one.scale / width**0.5) + 0.5000001) * np.ones((1, width))
    integers = one.integers(
        np.concatenate([public, upward, np.eye(1, width), -1e300 * np.eye(1, width)])
    )
    assert integers.dtype == one.dtype
    assert (integers == np.rint(integers)).all()
    if one.norm:
        assert one.norm**2 <= {"float32": 2**24, "float64": 2**53}[name]
        assert max(sum(int(v) ** 2 for v in row) for row in integers) <= one.norm**2
    else:
        assert np.abs(integers.astype(int)).max() <= 127
        assert 127**2 * one.width(width) < 2**31
        assert np.abs(one.integers(public)[:, :width]).max() == 127
        assert not one.integers(np.zeros((1, width))).any()
    assert abs(np.linalg.norm(one.integers(public)[0, :width].astype(float)) / one.scale - 1) < 0.01


def test_the_arithmetic_is_chosen_by_public_facts(monkeypatch):
    public = np.random.default_rng(0).normal(size=(100, 8))
    monkeypatch.setattr(
        "tacit.learners.prototypes.scores.arithmetic.int8_is_faster", lambda width: True
    )
    assert arithmetic_for("auto", public, 0.5, 1.5).name == "float32"  # few public rows
    monkeypatch.setattr("tacit.learners.prototypes.scores.arithmetic.LARGE", 800)
    assert arithmetic_for("auto", public, 0.5, 1.5).name == "int8"
    # int8 rounds off too much of this window
    assert arithmetic_for("auto", public, 1.0, 1.1).name == "float32"
    assert arithmetic_for("int8", public, 1.0, 1.1).name == "int8"
    assert arithmetic_for("auto", public, 1.0, 1.00001).name == "float64"
    with pytest.raises(InputError, match="cannot resolve d_min=1.0, d_max=1.001"):
        arithmetic_for("int8", public, 1.0, 1.001)
    with pytest.raises(InputError, match="arithmetic='int4'"):
        tacit.PublicPrototypes("epsilon=1", public=public, classes=2, arithmetic="int4").promise()
    with pytest.raises(InputError, match="arithmetic="):
        tacit.PublicPrototypes(
            "epsilon=1", public=public, classes=2, arithmetic=["float32"]
        ).promise()
    with pytest.raises(InputError, match="jobs=0"):
        tacit.PublicPrototypes("epsilon=1", public=public, classes=2, jobs=0).promise()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [64, 1280])
def test_rounding_errs_as_much_as_is_said(name, width):
    """Also where one column dwarfs the others, as in embeddings of some encoders."""
    rng = np.random.default_rng(0)
    public, x = (np.abs(rng.normal(size=(300, width))) for _ in range(2))
    public[:, 0] += 20
    x[:, 0] += 20
    one = ARITHMETICS[name].scaled(public)
    near = 1 if one.mean is None else (1 - one.mean @ one.mean) ** 0.5
    for private, expected in (
        (x, near * one.error(1.0, 1.5)),
        (rng.normal(size=(300, width)), one.error(1.0, 1.5)),
    ):
        products = (
            one.integers(public, public=True).astype(float) @ one.integers(private).astype(float).T
        )
        p, q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (public, private))
        assert 0.5 * expected < (products / one.scale**2 - p @ q.T).std() / 0.5 < 1.5 * expected
    assert one.error(1.5, 1.6) < ERROR_AUTO


def test_a_cuda_device_gives_the_same_integers():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    public, x, y = random_data(5, n=300, m=70, d=13)
    for bounds in WINDOWS[1:]:
        expected = found(public, x, y, 3, bounds, "int8")[0]
        assert np.array_equal(found(public, x, y, 3, bounds, "int8-cuda")[0], expected)


@pytest.mark.parametrize(
    "bounds",
    [
        (-0.1, 1),
        (1, 1),
        (1.5, 1),
        (0, 2.1),
        (float("nan"), 1),
        (1, 1 + 1e-9),
        ("a", 1),
        (None, 1),
        (0, 1j),
    ],
)
def test_bad_windows_are_refused(bounds):
    with pytest.raises(InputError, match="d_min=|d_max="):
        window(*bounds, None, None)


def centred(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    centre = unit.mean(axis=0)
    moved = unit - centre
    return moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300), centre


def test_windows_from_public_rows_are_quantiles_of_their_similarities():
    public = np.random.default_rng(0).normal(size=(60, 5)) + 1
    rows, centre = centred(public)
    pairs = np.array([one @ other for one, other in itertools.combinations(rows, 2)])
    low, high = 1 + np.quantile(pairs, [0.9, 0.999])
    assert window("public", "public", public, centre) == pytest.approx((low, high), abs=1e-6)
    assert window("public", 1.999, public, centre) == pytest.approx((low, 1.999), abs=1e-6)
    assert window(0.25, "public", public, centre) == pytest.approx((0.25, high), abs=1e-6)


def test_windows_of_many_public_rows_are_those_of_rows_at_even_distances():
    public = np.random.default_rng(0).normal(size=(2 * SAMPLE, 3)) + 1
    centre = centred(public)[1]
    places = np.linspace(0, len(public) - 1, SAMPLE).astype(int)
    assert window("public", "public", public, centre) == window(
        "public", "public", public[places], centre
    )
    assert window("public", "public", public, centre) != window(
        "public", "public", public[:SAMPLE], centre
    )
    with caching():
        of_centres = [
            window("public", "public", public, about) for about in (centre, 0 * centre, centre)
        ]
    assert of_centres[0] == of_centres[2] == window("public", "public", public, centre)
    assert of_centres[1] == window("public", "public", public, 0 * centre) != of_centres[0]


def test_bounds_a_millionth_apart_are_a_window():
    for low in np.arange(0, 2, 0.002).round(6):
        assert window(low, round(low + 1e-6, 6), None, None)[0] == low


@pytest.mark.parametrize("seed", range(12))
def test_public_rows_that_nearly_repeat_give_a_window(seed):
    rng = np.random.default_rng(seed)
    base = np.tile([[1.0, 2, 3], [-1.0, -2, -3]], (50, 1))
    public = base + 10 ** rng.uniform(-4, -2.5) * rng.normal(size=(100, 3))
    low, high = window("public", "public", public, centred(public)[1])
    assert (low, high) == (0.0, 2.0) or 0 <= low < high <= 2


@pytest.mark.parametrize("public", [np.ones((1, 3)), np.ones((9, 3)), np.eye(2), np.ones((5, 1))])
def test_the_window_is_the_whole_range_where_quantiles_are_equal(public):
    centre = centred(public)[1]
    assert window("public", "public", public, centre) == (0.0, 2.0)
    with pytest.raises(InputError, match=stating("d_max='public'", "2.000000 and 2.000000")):
        window(2.0, "public", public, centre)


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(clipped, "TILE", 8)
    monkeypatch.setattr(clipped, "SHARD_BYTES", 8 * 16 * 3)


def test_finished_shards_are_not_computed_again(small_shards, tmp_path, monkeypatch):
    public, x, y = random_data(4, m=100)
    bounds = (1.2, 1.8)
    expected, _ = found(public, x, y, 3, bounds)
    tiles = []
    compute = clipped.TileScorer.tile

    def counted(self, first):
        if len(tiles) == 9:
            raise KeyboardInterrupt
        tiles.append(first)
        return compute(self, first)

    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    monkeypatch.setattr(clipped.TileScorer, "tile", counted)
    with pytest.raises(KeyboardInterrupt):
        found(public, x, y, 3, bounds, folder=tmp_path)
    assert len(list(tmp_path.glob("tacit-scores/scores-*/*.npy"))) == 4  # of two tiles each
    assert not (tmp_path / WORK / "part").exists()
    monkeypatch.setattr(
        clipped.TileScorer, "tile", lambda self, first: tiles.append(first) or compute(self, first)
    )
    others = [tmp_path.with_name(f"{tmp_path.name}-{name}") for name in "ab"]
    for folder in others:
        shutil.copytree(tmp_path, folder)
    # shards of another window are not taken
    other, _ = found(public, x, y, 3, (1.2, 1.7), folder=others[0])
    assert np.array_equal(other, found(public, x, y, 3, (1.2, 1.7))[0])
    moved, _ = found(public, x[::-1], y, 3, bounds, folder=others[1])  # nor those of other records
    assert np.array_equal(moved, found(public, x[::-1], y, 3, bounds)[0])
    del tiles[9:]
    kept = sorted(tmp_path.glob("tacit-scores/scores-*/*.npy"))
    kept[0].write_bytes(b"")  # and a damaged one neither
    np.save(kept[1], np.zeros((3, 5)))
    scores, _ = found(public, x, y, 3, bounds, folder=tmp_path)
    assert np.array_equal(scores, expected)
    assert tiles[9:] == [*range(0, 32, 8), *range(64, 100, 8)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]


def test_a_folder_in_use_is_refused(tmp_path):
    public, x, y = random_data(4)
    how = scoring(public, 1.2, 1.8)
    with (
        module.scores(how, public, x, y, 3, folder=tmp_path),
        pytest.raises(InputError, match="in use by another fit"),
    ):
        found(public, x, y, 3, (1.2, 1.8), folder=tmp_path)
    (tmp_path / "file").touch()
    for bad in (tmp_path / "file", tmp_path / "a\0b", tmp_path / "no" / "such"):
        with pytest.raises(InputError, match="cannot be made"):
            found(public, x, y, 3, (1.2, 1.8), folder=bad)


def test_nothing_is_charged_for_a_folder_that_cannot_be_used(tmp_path):
    public, x, y = random_data(4)
    (tmp_path / "file").touch()
    ledger = tacit.Ledger(tmp_path / "a.ledger.jsonl", "pets")
    ledger.allow("epsilon=5")
    for folder in (tmp_path / "file", "", 3):
        learner = tacit.PublicPrototypes(
            "epsilon=1", public=public, classes=3, folder=folder, ledger=ledger
        )
        with pytest.raises(InputError, match="folder="):
            learner.fit(x, y)
    assert not ledger.account().charges


@pytest.mark.parametrize("bounds", [(0, 2), (1.2, 1.8)])
def test_a_full_disk_is_met_before_anything_is_mapped(bounds, tmp_path, monkeypatch):
    public, x, y = random_data(4)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=stating("tacit-scores", "No space left on device")):
        found(public, x, y, 3, bounds, folder=tmp_path)
    assert not list(tmp_path.glob("*/part"))


def test_private_files_are_the_users_alone(tmp_path, monkeypatch):
    public, x, y = random_data(4)
    tmp_path.chmod(0o755)
    (tmp_path / WORK).mkdir(mode=0o755)
    with module.scores(scoring(public, 1.2, 1.8), public, x, y, 3, folder=tmp_path):
        assert (tmp_path / WORK).stat().st_mode & 0o077 == 0
        assert {path.name for path in tmp_path.iterdir()} == {".lock", WORK}
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(InputError, match="is not yours"):
        found(public, x, y, 3, (1.2, 1.8), folder=tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
def test_bounds_of_any_type_are_numbers_in_the_release(kind):
    public, x, y = random_data(0)
    model = tacit.PublicPrototypes(
        "epsilon=1", public=public, classes=3, d_min=kind(0.5), d_max=kind(1.5)
    ).fit(x, y)
    assert json.loads(json.dumps(model.released_.mechanism))["clip window of 1 + cosine"] == [
        0.5,
        1.5,
    ]


def test_unsigned_bounds_are_not_wrapped():
    assert window(np.uint8(0), np.uint8(1), None, None) == (0.0, 1.0)
    with pytest.raises(InputError, match="d_min=1"):
        window(np.uint8(1), np.uint8(0), None, None)


@pytest.mark.parametrize("bounds", [(1.5, 1.50001), (0.0, 0.02), (1.031, 1.06), (0.2, 0.2000011)])
def test_narrow_windows_far_from_one_are_exact(bounds):
    """Against Python's integers, in float64."""
    public, x, y = random_data(0, n=30, m=6)
    how = scoring(public, *bounds, name="float64")
    rows, candidates = (how.arithmetic.integers(one).astype(int).tolist() for one in (x, public))
    wanted = np.zeros((3, 6), int)
    for row, label in zip(rows, y, strict=True):
        for p, candidate in enumerate(candidates):
            product = sum(a * b for a, b in zip(row, candidate, strict=True))
            wanted[label, p] += min(max(product, how.low), how.high) - how.low
    assert np.array_equal(found(public, x, y, 3, bounds, "float64")[0], wanted)


def test_large_scores_lie_in_files(monkeypatch):
    public, x, y = random_data(6, m=100)
    for bounds in ((0.0, 2.0), (1.2, 1.8)):
        expected, _ = found(public, x, y, 3, bounds)
        monkeypatch.setattr(module, "IN_MEMORY", 100)
        with module.scores(scoring(public, *bounds), public, x, y, 3) as scores:
            assert all(isinstance(shard, np.memmap) for shard in scores.shards)
            assert np.array_equal(np.array(list(scores)), expected)
        monkeypatch.undo()


@pytest.mark.parametrize(
    "name", ["joblib", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("ray", "slurm"))]
)
def test_engines_give_the_same_bits(name, tmp_path, monkeypatch):
    public, x, y = random_data(7, m=9000, d=20)
    bounds = (1.2, 1.8)
    expected, _ = found(public, x, y, 3, bounds)
    monkeypatch.setattr(clipped, "SHARD_BYTES", 1)  # a tile
    engine = engine_from(name, 2, tmp_path / "work") if name != "slurm" else local_slurm(tmp_path)
    store = tacit.EmbeddingStore.write(
        tmp_path / "public", public, dtype="float64", shard_rows=4000
    )
    for candidates in (public, store.x):  # of an array and of files
        scores, _ = found(candidates, x, y, 3, bounds, folder=tmp_path / "work", engine=engine)
        assert np.array_equal(scores, expected)


def local_slurm(folder):
    from tacit.compute.engines import engine

    return engine("slurm", 2, folder=folder / "slurm", cluster="local")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ray:", "engine='ray:'"),
        ("spark", "engine='spark'"),
        ("joblib:4", "joblib, ray"),
        ("ray:auto", "needs folder"),
        ("slurm", "needs folder"),
    ],
)
def test_engines_that_cannot_be(given, said):
    public, x, y = random_data(0)
    learner = tacit.PublicPrototypes("epsilon=1", public=public, classes=3, d_min=1.0, engine=given)
    with pytest.raises(InputError, match=said):
        learner.fit(x, y)


KILLED = """
import sys, os, signal
import numpy as np, tacit
from tacit.learners.prototypes.scores import clipped
clipped.TILE, clipped.SHARD_BYTES = 8, 8 * 16 * 3
rng = np.random.default_rng(0)
x, y, public = np.abs(rng.normal(size=(60, 9))), rng.integers(0, 3, 60), np.abs(rng.normal(size=(100, 9)))
compute, count = clipped.TileScorer.tile, []
def tile(self, first):
    count.append(first)
    if len(count) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, first)
clipped.TileScorer.tile = tile
model = tacit.PublicPrototypes("epsilon=inf", public=public, classes=3, d_min=1.2, d_max=1.8, folder=sys.argv[1])
print(model.fit(x, y).indices_.tolist(), len(count))
"""


def test_a_killed_fit_goes_on(tmp_path):
    def run(folder, last):
        given = [sys.executable, "-c", KILLED, str(tmp_path / folder), str(last)]
        return subprocess.run(
            given,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    whole = run("one", 99).stdout.split()
    killed = run("two", 8)
    assert killed.returncode == -signal.SIGKILL
    again = run("two", 99).stdout.split()
    assert again[:-1] == whole[:-1]
    assert (int(whole[-1]), int(again[-1])) == (13, 7)


@pytest.mark.thorough
def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch):
    """One of two Ray workers dies in the middle; its shards are computed again."""
    public, x, y = random_data(8, n=20_000, m=20 * 2048, d=64)
    expected, _ = found(public, x, y, 3, (1.2, 1.8))
    monkeypatch.setattr(clipped, "SHARD_BYTES", 1)  # a tile
    folder = tmp_path / "work"
    with one_ray_worker_killed(folder, "tacit-scores/scores-*/0*.npy"):
        scores, _ = found(
            public, x, y, 3, (1.2, 1.8), folder=folder, engine=engine_from("ray", 2, folder)
        )
    assert np.array_equal(scores, expected)
