import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from compute.engines.items import (
    dies,
    dies_once,
    double,
    fails_on_3,
    hears_and_sleeps_if_odd,
    hears_interrupts,
    product,
    sleeps_if_odd,
    threads,
    torch_threads,
)
from messages import stating
from tacit.compute.engines import WorkerDiedError, engine
from tacit.compute.engines.on_ray import SHORT, next_size
from tacit.compute.engines.workers import alone, shielding_workers
from tacit.errors import InputError

LIBRARIES = {"ray": "ray", "slurm": "submitit"}


def made(name, jobs, folder):
    """An engine on this machine, or a skip where its library is not installed."""
    library = LIBRARIES.get(name)
    if library and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    return engine(
        name, jobs, **({"folder": folder / "slurm", "cluster": "local"} if name == "slurm" else {})
    )


def every_item_gives_one_result(engine, folder):
    words = [f"word {number}" for number in range(40)]
    assert sorted(engine.map(double, words)) == sorted(2 * word for word in words)
    assert list(engine.map(double, [])) == []


def results_have_the_same_bits(engine, folder):
    path, seeds = folder / "left.npy", range(6)
    np.save(path, np.random.default_rng(0).standard_normal((301, 211)))
    with threadpool_limits(1):
        expected = [product(path, seed) for seed in seeds]
    assert sorted(engine.map(partial(product, path), seeds)) == sorted(expected)


def items_compute_with_one_thread(engine, folder):
    with threadpool_limits(2):
        before = threadpool_info()
        assert list(engine.map(threads, range(3))) == 3 * [(1, "1")]
        assert threadpool_info() == before
    assert os.environ["OMP_NUM_THREADS"] == "2"


def an_exception_is_raised_here(engine, folder):
    with pytest.raises(ZeroDivisionError, match="item 3 is bad"):
        list(engine.map(fails_on_3, range(6)))


def closing_leaves_nothing_running(engine, folder):
    """A terminal's interrupt is for this process meanwhile, and not for workers."""
    before = processes()
    in_workers = engine.jobs > 1
    with closing(engine.map(partial(hears_and_sleeps_if_odd, folder), range(40))) as results:
        assert next(results) is not in_workers
        assert hears_interrupts(None)
        while engine.jobs > 1 and not (folder / "1").exists():
            time.sleep(0.05)
    deadline = time.monotonic() + 600  # an item that was not cancelled sleeps for an hour
    while left := processes() - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert not (folder / "39").exists()


def processes():
    """Numbers of the processes below this one; joblib's tracker of files, which is no worker,
    aside.
    """
    import psutil

    below = psutil.Process().children(recursive=True)
    return {
        process.pid
        for process in below
        if process.is_running() and "resource_tracker" not in command(process)
    }


def command(process):
    import psutil

    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return "ended meanwhile: resource_tracker"


LAWS = [
    every_item_gives_one_result,
    results_have_the_same_bits,
    items_compute_with_one_thread,
    an_exception_is_raised_here,
    closing_leaves_nothing_running,
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """Workers start with two threads, so that they compute with one only if the engine sees to
    it.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, "2")


@each_law
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("jobs", [1, 2])
def test_joblib_keeps_the_laws(law, jobs, tmp_path):
    law(made("joblib", jobs, tmp_path), tmp_path)


@each_law
def test_slurm_keeps_the_laws(law, tmp_path):
    law(made("slurm", 2, tmp_path), tmp_path)


@pytest.mark.thorough
def test_a_ray_that_is_there_keeps_the_laws_and_is_left_running(tmp_path):
    engine = made("ray", 2, tmp_path)
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        with closing(engine.map(partial(sleeps_if_odd, tmp_path), range(6))) as results:
            next(results)
        start = time.monotonic()
        for law in LAWS[:-1]:
            law(engine, tmp_path)
        # the item that slept an hour on the only CPU was cancelled
        assert time.monotonic() - start < 1800
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_a_ray_of_its_own_is_ended_when_closed(tmp_path):
    closing_leaves_nothing_running(made("ray", 2, tmp_path), tmp_path)


@pytest.mark.thorough
def test_ray_runs_again_what_a_dead_worker_left(tmp_path):
    results = made("ray", 2, tmp_path).map(partial(dies_once, tmp_path / "died"), range(6))
    assert sorted(results) == [*range(6)]
    assert (tmp_path / "died").exists()


@pytest.mark.thorough
def test_an_item_of_ray_whose_workers_all_die_is_told_in_one_line(tmp_path):
    with pytest.raises(WorkerDiedError, match=stating("Ray", "4 times", "fewer jobs")) as error:
        list(made("ray", 1, tmp_path).map(dies, [1]))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "nonsense"])
def test_an_address_without_a_ray_is_told_at_once(address):
    pytest.importorskip("ray", reason="ray is not installed")
    with pytest.raises(InputError, match=stating(f"address='{address}'", "'auto'", "HOST:PORT")):
        next(engine("ray", 2, address=address).map(double, [1]))


def test_batches_of_ray_grow_while_they_are_short():
    assert next_size(4, 4, SHORT / 2) == 8
    assert next_size(4, 2, SHORT / 2) == 4  # an older, smaller batch
    assert next_size(4, 4, 2 * SHORT) == 4
    assert next_size(4, 4, 10 * SHORT) == 2
    assert next_size(1, 1, 10 * SHORT) == 1


def test_a_process_of_joblib_that_died_is_told_in_one_line(tmp_path):
    with pytest.raises(WorkerDiedError, match=stating("joblib", "fewer jobs")) as error:
        list(made("joblib", 2, tmp_path).map(partial(dies_once, tmp_path / "died"), range(6)))
    assert "\n" not in str(error.value)


def test_a_slurm_task_that_died_is_named(tmp_path, monkeypatch):
    engine = made("slurm", 2, tmp_path)
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 0)
    with pytest.raises(WorkerDiedError, match=r"^task \d+ failed: .*; its log is .*err$"):
        list(engine.map(partial(dies_once, tmp_path / "died"), range(6)))


def test_slurm_submits_one_array_and_cancels_it(tmp_path, monkeypatch):
    """With commands of Slurm that write down how they are called: task 0 was lost and task 1 still
    runs.
    """
    pytest.importorskip("submitit", reason="submitit is not installed")
    commands = {
        "sbatch": f"cp $1 {tmp_path}/script; echo Submitted batch job 7",
        "srun": "",
        "sacct": "printf 'JobID|State|NodeList\\n7_0|NODE_FAIL|a\\n7_1|RUNNING|a\\n'",
        "scancel": f"echo $* >> {tmp_path}/cancelled",
    }
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 0)
    slurm = engine("slurm", 2, folder=tmp_path / "logs", partition="short", minutes=7)
    with pytest.raises(RuntimeError, match="task 7_0 failed"):
        list(slurm.map(double, range(5)))
    script = (tmp_path / "script").read_text().splitlines()
    assert {
        f"#SBATCH --{line}"
        for line in ("array=0-1%2", "time=7", "partition=short", "cpus-per-task=1")
    } < {*script}
    assert (tmp_path / "cancelled").read_text() == "7_1\n"


def test_torch_computes_with_one_thread_and_gets_its_threads_back():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert alone(torch_threads, 0) == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "jobs", "options", "message"),
    [
        ("dask", 2, {}, stating("engine='dask'", "joblib", "ray", "slurm")),
        ("joblib", 0, {}, stating("jobs=0", "1")),
        ("joblib", -1, {}, "jobs=-1 must be"),
        ("joblib", True, {}, "jobs=True must be"),
        ("joblib", 2.0, {}, "jobs=2.0 must be"),
        ("joblib", "2", {}, "jobs='2' must be"),
        ("joblib", 2, {"address": "auto"}, stating("address='auto'", "joblib")),
        ("ray", 2, {"partition": "short"}, stating("partition='short'", "ray")),
        ("ray", 0, {}, "jobs=0 must be"),
        ("slurm", 2, {"cluster": "local"}, stating("folder=None", "nodes")),
        ("slurm", 2, {"cluster": "local", "folder": "/proc/none"}, stating("folder='/proc/none'")),
        (
            "slurm",
            2,
            {"cluster": "local", "folder": ".", "minutes": 0},
            "minutes=0 must be a whole number",
        ),
        ("slurm", 2, {"cluster": "lsf", "folder": "."}, stating("cluster='lsf'", "slurm", "local")),
        ("slurm", 2, {"folder": "."}, stating("sbatch", "cluster='local'")),
    ],
)
def test_bad_arguments_are_told_in_one_line(name, jobs, options, message, monkeypatch):
    monkeypatch.setattr("tacit.compute.extras.find_spec", lambda library: True)
    monkeypatch.setattr("shutil.which", lambda command: None)
    with pytest.raises(InputError, match=message) as error:
        engine(name, jobs, **options)
    assert "\n" not in str(error.value)


def test_options_of_none_are_not_given():
    assert engine("joblib", 2, address=None, folder=None).jobs == 2


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_told_with_the_command(name, monkeypatch):
    monkeypatch.setattr("tacit.compute.extras.find_spec", lambda library: None)
    with pytest.raises(InputError, match=stating("pip install", "'.[cluster]'")):
        engine(name, 2)


def test_the_table_is_read_without_heavy_libraries():
    heavy = "{'joblib', 'ray', 'submitit', 'torch', 'sklearn'}"
    code = (
        f"import sys; from tacit.compute.engines import ENGINES; sys.exit(len({heavy} &"
        " sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["joblib", "slurm"])
def test_a_terminals_interrupt_is_for_this_process_and_not_for_workers(name, tmp_path):
    made(name, 2, tmp_path)  # or skips
    options = f", folder={str(tmp_path)!r}, cluster='local'" if name == "slurm" else ""
    code = (
        "from compute.engines.items import hears_interrupts; from tacit.compute.engines import"
        f" engine\nfound = engine({name!r}, 2{options}).map(hears_interrupts, [1,"
        " 2])\nprint(hears_interrupts(0), list(found), hears_interrupts(3))"
    )
    folder = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stdout == "True [False, False] True\n"


def test_workers_are_shielded_and_this_process_is_not():
    def interrupted():
        with shielding_workers():
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert hears_interrupts(None)
