"""Ray Data gives the release of one machine, bit for bit.

All steps are one test, so that one process starts one Ray.
"""

import os
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.clusters import ray as on_ray
from tacit.errors import InputError

ray = pytest.importorskip("ray", reason="ray is not installed")

RNG = np.random.default_rng(0)
N, WIDTH = 40, 3
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, WIDTH)) + 2 * Y[:, None]
CLASSES = ["no", "yes"]
TEXTS = np.array(CLASSES)[Y]
SETTINGS = {"classes": CLASSES, "noise": "research", "random_state": 0}


@contextmanager
def session():
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    finally:
        ray.shutdown()


def dataset(blocks):
    """Blocks of the records, some without any if there are many."""
    tables = []
    for rows in np.array_split(np.random.default_rng(1).permutation(N), blocks):
        x = pa.array(X[rows].tolist(), pa.list_(pa.float64()))
        tables.append(pa.table({"x": x, "y": pa.array(TEXTS[rows].tolist(), pa.string())}))
    return ray.data.from_arrow(tables)


def arrays_of(model):
    return {name: array.tobytes() for name, array in model.released_.arrays.items()}


def learner():
    return tacit.LeastSquares("rho=0.5", **SETTINGS)


def blocks_give_the_bits_of_one_machine(folder, monkeypatch):
    for blocks in (1, 64):
        sums = tacit.ray.class_sums(dataset(blocks), learner(), features="x", label="y")
        assert sums.records == N
        assert arrays_of(learner().fit_sums(sums)) == arrays_of(learner().fit(X, TEXTS))


def a_task_that_is_killed_is_run_again_and_adds_nothing(folder, monkeypatch):
    """One of seven kills its process once it has summed; then they predict."""
    mark = folder / "killed"
    summed = on_ray._packed_sums

    def killing(recipe, block, features, label):
        data = summed(recipe, block, features, label)
        if not mark.exists():
            mark.touch()
            os._exit(1)
        return data

    monkeypatch.setattr(on_ray, "_packed_sums", killing)
    data = dataset(7)
    model = learner()
    sums = tacit.ray.class_sums(data, model, features="x", label="y")
    assert mark.exists()
    assert sums.records == N
    assert arrays_of(model.fit_sums(sums)) == arrays_of(learner().fit(X, TEXTS))

    rows = on_ray.predict(data, tacit.Release.of(model), features="x").take_all()
    classes = [row["prediction"] for row in rows]
    assert classes == model.predict(np.stack([row["x"] for row in rows])).tolist()


def plans_that_may_hand_out_a_record_twice_are_refused(folder, monkeypatch):
    """None of them is executed."""
    data = dataset(2)
    for step in (
        data.random_sample(0.5, seed=1),
        data.repartition(3),
        data.random_shuffle(),
        # a source of rows that are no files
        ray.data.range(3),
    ):
        with pytest.raises(InputError, match="write it to Parquet"):
            on_ray.check_plan(step)
    on_ray.check_plan(data.select_columns(["x", "y"]))
    pq.write_table(pa.table({"x": [1]}), folder / "a.parquet")
    on_ray.check_plan(ray.data.read_parquet(str(folder)))
    with pytest.raises(InputError, match="no dataset of Ray"):
        on_ray.check_plan(X)


STEPS = [
    blocks_give_the_bits_of_one_machine,
    a_task_that_is_killed_is_run_again_and_adds_nothing,
    plans_that_may_hand_out_a_record_twice_are_refused,
]


def test_sums_on_ray(tmp_path):
    with session():
        for step in STEPS:
            with pytest.MonkeyPatch.context() as monkeypatch:
                step(tmp_path, monkeypatch)


def test_the_library_and_the_module_have_one_name():
    assert tacit.ray.class_sums is on_ray.class_sums
    assert ray.__name__ == "ray"
