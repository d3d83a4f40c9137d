"""Shards that an engine's workers encode: the bytes of one process, after a kill and with holes,
and refusals of workers that see something else.
"""

import hashlib
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from messages import stating
from tacit.compute.checkpoint import KEY
from tacit.compute.engines import engine
from tacit.compute.progress import reporting
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.on_engine import _encode_shard, _task
from tacit.encoding.encoders.store import Options, _split_jobs, encode_to_stores
from tacit.encoding.sources import open_source
from tacit.errors import InputError

# 50 pictures in 5 shards of 10, the last of them short
OPTIONS = {"shard_rows": 12, "batch": 4}
N_PICTURES = 50


@pytest.fixture
def pictures(tmp_path):
    """Pixels with labels and persons, and two records without content."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (N_PICTURES, 8, 8), dtype=np.uint8)
    pixels[[3, 30]] = 0
    labels = np.arange(N_PICTURES) % 3
    path = tmp_path / "pictures.npz"
    np.savez(path, x=pixels, y=labels, who=labels)
    return path


def made(path, out, *, options=(), **arguments):
    """Encode pictures into a store, whatever the folder is called."""
    sources = {"": open_source(path, persons="who")}
    settings = Options(skip_bad=True, **(OPTIONS | dict(options)))
    features = load_encoder("edges:8")
    return encode_to_stores(sources, features, out, settings, identity="p", **arguments)[""]


def bytes_of(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


class Stop(Exception):
    pass


def stop_at_batch(monkeypatch, number):
    """Raise at a batch, counted from 1; return the list that counts batches."""
    compute = Features.__call__
    calls = []

    def counted(self, *arguments):
        calls.append(1)
        if len(calls) == number:
            raise Stop
        return compute(self, *arguments)

    monkeypatch.setattr(Features, "__call__", counted)
    return calls


ENGINES = [
    "joblib",
    "slurm",
    pytest.param("ray", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_makes_the_same_bytes(pictures, tmp_path, name):
    library = {"ray": "ray", "slurm": "submitit"}.get(name)
    if library and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    options = {}
    if name == "slurm":
        options = {"folder": tmp_path / "slurm", "cluster": "local"}
    amounts = []

    with reporting(lambda label, amount, total: amounts.append((label, amount, total))):
        outcome = made(pictures, tmp_path / "there", engine=engine(name, 2, **options))

    whole = made(pictures, tmp_path / "here")
    assert bytes_of(outcome.store.folder) == bytes_of(whole.store.folder)
    assert (outcome.skipped, outcome.reused, outcome.store.rows) == (2, 0, N_PICTURES - 2)
    assert outcome.store.labels is not None
    assert outcome.store.persons is not None
    assert amounts[-1] == ("encoding", N_PICTURES, N_PICTURES)
    assert not list(tmp_path.glob(".*encoding"))


@pytest.mark.parametrize("first", [None, "joblib"])
@pytest.mark.parametrize("second", [None, "joblib"])
def test_a_run_that_was_killed_goes_on_here_or_there(
    pictures, tmp_path, monkeypatch, first, second
):
    whole = made(pictures, tmp_path / "whole").store.folder
    calls = stop_at_batch(monkeypatch, 8)
    with pytest.raises(Stop):
        made(pictures, tmp_path / "part", engine=first)
    assert not (tmp_path / "part").exists()

    outcome = made(pictures, tmp_path / "part", engine=second)
    assert bytes_of(tmp_path / "part") == bytes_of(whole)
    # two shards of three batches were finished, and the third had begun
    assert outcome.reused == 24
    assert len(calls) == 8 + 13 - 6


def test_shards_that_are_missing_between_others_are_encoded_alone(pictures, tmp_path, monkeypatch):
    whole = made(pictures, tmp_path / "whole").store.folder
    stop_at_batch(monkeypatch, 13)
    with pytest.raises(Stop):
        made(pictures, tmp_path / "part")
    for facts in (tmp_path / ".part.encoding" / "whole").glob("0000[02]*.json"):
        facts.unlink()

    calls = stop_at_batch(monkeypatch, 100)
    outcome = made(pictures, tmp_path / "part")
    assert bytes_of(tmp_path / "part") == bytes_of(whole)
    assert (outcome.reused, len(calls)) == (24, 3 + 3 + 1)


def job_of(pictures, work):
    """A job whose folder is prepared."""
    sources = {"": open_source(pictures, persons="who")}
    settings = Options(**OPTIONS)
    job = _split_jobs(sources, load_encoder("edges:8"), settings, work, "p")[""]
    assert job.checkpoint.has(KEY)
    return job


def test_a_worker_that_sees_something_else_is_refused(pictures, tmp_path):
    job = job_of(pictures, tmp_path / "work")
    task = _task(job)
    np.savez(tmp_path / "other.npz", x=np.ones((N_PICTURES, 8, 8), np.uint8))

    other_source = replace(task, open_source=partial(open_source, tmp_path / "other.npz"))
    with pytest.raises(InputError, match=stating("another source", "all machines share")):
        _encode_shard(other_source, 0)

    mirrored = replace(task, load_features=partial(load_encoder, "edges:8", mirror=True))
    with pytest.raises(InputError, match=stating("another encoder", "mirror", "None here")):
        _encode_shard(mirrored, 0)

    elsewhere = replace(task, work=tmp_path / "elsewhere")
    with pytest.raises(InputError, match=stating("does not find", "elsewhere", "output")):
        _encode_shard(elsewhere, 0)
    assert not (tmp_path / "elsewhere").exists()
    assert job.missing() == list(range(job.count))


def test_a_worker_that_an_older_run_left_changes_nothing(pictures, tmp_path):
    job = job_of(pictures, tmp_path / "work")
    old = _task(replace(job, options=replace(job.options, dtype="float32")))
    before = bytes_of(tmp_path / "work")
    with pytest.raises(InputError, match="does not find the work of this run"):
        _encode_shard(old, 0)
    assert bytes_of(tmp_path / "work") == before

    # the same without the check: a worker may have passed it before the new run began
    (job.work / KEY).write_text(old.key)
    _encode_shard(old, 0)
    (job.work / KEY).write_text(job.key)
    assert job.missing() == list(range(job.count))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"engine": "dask"}, stating("engine='dask'", "joblib", "ray", "slurm")),
        ({"engine": "joblib:here"}, stating("engine='joblib:here'", "ray:ADDRESS")),
        ({"jobs": 0}, stating("jobs=0", "at least 1")),
        ({"minutes": 5}, stating("minutes=5", "slurm")),
        ({"engine": "joblib", "minutes": 5}, stating("minutes=5", "joblib")),
    ],
)
def test_engines_that_are_wrong_leave_nothing(pictures, tmp_path, arguments, said):
    with pytest.raises(InputError, match=said):
        made(pictures, tmp_path / "out", **arguments)
    assert sorted(tmp_path.iterdir()) == [pictures]


def test_sources_and_encoders_in_memory_are_refused(pictures, tmp_path):
    source = open_source(pictures)
    features = load_encoder("edges:8")
    unknown = {"": replace(source, reopen=None)}
    with pytest.raises(InputError, match=stating("sources", "open_source")):
        encode_to_stores(unknown, features, tmp_path / "out", engine="joblib")
    with pytest.raises(InputError, match=stating("encoders", "load_encoder")):
        encode_to_stores(
            {"": source}, replace(features, reload=None), tmp_path / "out", engine="joblib"
        )
    assert sorted(tmp_path.iterdir()) == [pictures]
