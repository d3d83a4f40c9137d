"""A local Spark session of two threads gives the release of one machine, bit for bit."""

import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.clusters import spark
from tacit.errors import InputError

if shutil.which("java") is None:
    pytest.skip(
        "Spark needs Java: install Debian's openjdk-17-jre-headless", allow_module_level=True
    )

RNG = np.random.default_rng(0)
N, WIDTH = 40, 3
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, WIDTH)) + 2 * Y[:, None]
CLASSES = ["no", "yes"]
TEXTS = np.array(CLASSES)[Y]
PUBLIC = RNG.normal(size=(20, WIDTH))
SETTINGS = {"classes": CLASSES, "noise": "research", "random_state": 0}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # a task may fail once and is run again
    builder = SparkSession.builder.master("local[2,2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        # a partition for each file
        "spark.sql.files.openCostInBytes": "1g",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sparkContext.setCheckpointDir(str(tmp_path_factory.mktemp("checkpoints")))
    yield session
    session.stop()


def parquet(folder, parts):
    """A folder of Parquet files, some without records if there are many."""
    for part, rows in enumerate(np.array_split(np.random.default_rng(1).permutation(N), parts)):
        x = pa.array(X[rows].tolist(), pa.list_(pa.float64()))
        y = pa.array(TEXTS[rows].tolist(), pa.string())
        pq.write_table(pa.table({"x": x, "y": y}), folder / f"part-{part:02}.parquet")
    return str(folder)


def arrays_of(model):
    return {name: array.tobytes() for name, array in model.released_.arrays.items()}


def learner():
    return tacit.AutoPrototypes(
        "rho=0.5", **SETTINGS, public=PUBLIC, allow_overlap=True, refine=False
    )


@pytest.mark.parametrize("parts", [1, 7, 64])
def test_partitions_give_the_bits_of_one_machine(session, tmp_path, parts):
    frame = session.read.parquet(parquet(tmp_path, parts))
    assert frame.rdd.getNumPartitions() == parts
    sums = tacit.spark.class_sums(frame, learner(), features="x", label="y")
    assert sums.records == N
    assert arrays_of(learner().fit_sums(sums)) == arrays_of(learner().fit(X, TEXTS))


def test_a_task_that_is_killed_is_run_again_and_adds_nothing(session, tmp_path, monkeypatch):
    """The second task kills its process once it has summed; the same record is in no sum twice."""
    from pyspark.sql.functions import col

    (tmp_path / "in").mkdir()
    mark = tmp_path / "killed"
    summed = spark.sums_of_batches

    def killing(recipe, batches, features, label):
        from pyspark import TaskContext

        sums = summed(recipe, batches, features, label)
        if TaskContext.get().partitionId() == 1 and not mark.exists():
            mark.touch()
            os._exit(1)
        return sums

    monkeypatch.setattr(spark, "sums_of_batches", killing)
    frame = session.read.parquet(parquet(tmp_path / "in", 2)).filter(col("y").isNotNull())
    model = tacit.LeastSquares("rho=0.5", **SETTINGS)
    sums = tacit.spark.class_sums(frame, model, features="x", label="y")
    assert mark.exists()
    assert arrays_of(model.fit_sums(sums)) == arrays_of(
        tacit.LeastSquares("rho=0.5", **SETTINGS).fit(X, TEXTS)
    )

    # and predictions, on the same frame
    rows = spark.predict(frame, tacit.Release.of(model), features="x").collect()
    assert [row.prediction for row in rows] == model.predict([row.x for row in rows]).tolist()


def test_plans_that_may_hand_out_a_record_twice_are_refused(session, tmp_path):
    from pyspark.sql.functions import rand

    frame = session.read.parquet(parquet(tmp_path, 2))
    for step in (
        frame.sample(0.5, seed=1),
        frame.repartition(3),
        frame.limit(3),
        frame.union(frame),
        frame.withColumn("z", rand(1)),
        frame.filter(rand(1) < 0.5),
        session.createDataFrame(frame.rdd),
    ):
        with pytest.raises(InputError, match="write it to Parquet"):
            spark.check_plan(step)
    spark.check_plan(frame.sample(0.5, seed=1).repartition(3).checkpoint(eager=True))
    spark.check_plan(frame.select("x", "y").filter("y = 'no'"))


def test_persons_and_what_is_no_frame_are_refused():
    with pytest.raises(InputError, match="on one machine with persons"):
        tacit.spark.class_sums(None, learner(), features="x", label="y", person="id")
    with pytest.raises(InputError, match="no data frame"):
        tacit.spark.class_sums(X, learner(), features="x", label="y")
