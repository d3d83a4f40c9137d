"""A local Spark session gives the release of one machine, bit for bit.

All steps on the session are one test, so that one process starts one Java machine.
"""

import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.clusters import spark
from tacit.errors import InputError

needs_java = pytest.mark.skipif(
    shutil.which("java") is None,
    reason="Spark needs Java: install Debian's openjdk-17-jre-headless",
)

RNG = np.random.default_rng(0)
N, WIDTH = 40, 3
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, WIDTH)) + 2 * Y[:, None]
CLASSES = ["no", "yes"]
TEXTS = np.array(CLASSES)[Y]
PUBLIC = RNG.normal(size=(20, WIDTH))
SETTINGS = {"classes": CLASSES, "noise": "research", "random_state": 0}

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
EXAMPLE = re.compile(r"<!-- not run: [^>]*Spark[^>]* -->\n\n```python\n(.*?)^```$", re.M | re.S)


@contextmanager
def session_in(folder):
    """A session that starts quickly and takes little memory."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # a task may fail once and is run again
    builder = SparkSession.builder.master("local[1,2]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        # compile quickly, since nothing runs for long
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
        # a partition for each file
        "spark.sql.files.openCostInBytes": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        session.sparkContext.setLogLevel("OFF")
        session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
        yield session
    finally:
        session.stop()


def parquet(folder, parts):
    """A folder of Parquet files, some without records if there are many."""
    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.random.default_rng(1).permutation(N), parts)):
        x = pa.array(X[rows].tolist(), pa.list_(pa.float64()))
        y = pa.array(TEXTS[rows].tolist(), pa.string())
        pq.write_table(pa.table({"x": x, "y": y}), folder / f"part {part:02}.parquet")
    return str(folder)


def assert_release_of_one_machine(model):
    one_machine = type(model)(**model.get_params()).fit(X, TEXTS).released_.arrays
    assert one_machine.keys() == model.released_.arrays.keys()
    for name, array in one_machine.items():
        assert array.tobytes() == model.released_.arrays[name].tobytes(), name


def one_partition_gives_the_bits_of_one_machine(session, folder, monkeypatch):
    """A file that is added later is not summed; one that changes meanwhile is refused."""
    path = Path(parquet(folder / "1", 1))
    frame = session.read.parquet(str(path))
    file = path / "part 00.parquet"
    shutil.copy(file, path / "later.parquet")
    learner = tacit.NoisySumPrototypes("rho=0.5", **SETTINGS)
    sums = tacit.spark.class_sums(frame, learner, features="x", label="y")
    assert sums.records == N
    assert_release_of_one_machine(learner.fit_sums(sums))

    summed = spark.sums_of_batches

    def changing(recipe, batches, features, label):
        os.utime(file, (0, 0))
        return summed(recipe, batches, features, label)

    monkeypatch.setattr(spark, "sums_of_batches", changing)
    with pytest.raises(InputError, match="1 of the 1 files changed while they were summed"):
        tacit.spark.class_sums(frame, learner, features="x", label="y")


def partitions_without_records_change_nothing(session, folder, monkeypatch):
    frame = session.read.parquet(parquet(folder / "64", 64))
    assert frame.rdd.getNumPartitions() == 64
    learner = tacit.AutoPrototypes(
        "rho=0.5", **SETTINGS, public=PUBLIC, allow_overlap=True, refine=False
    )
    sums = tacit.spark.class_sums(frame, learner, features="x", label="y")
    assert sums.records == N
    assert_release_of_one_machine(learner.fit_sums(sums))


def a_task_that_is_killed_is_run_again_and_adds_nothing(session, folder, monkeypatch):
    """Of seven tasks the second kills its process once it has summed; then they predict."""
    mark = folder / "killed"
    summed = spark.sums_of_batches

    def killing(recipe, batches, features, label):
        from pyspark import TaskContext

        sums = summed(recipe, batches, features, label)
        if TaskContext.get().partitionId() == 1 and not mark.exists():
            mark.touch()
            os._exit(1)
        return sums

    monkeypatch.setattr(spark, "sums_of_batches", killing)
    frame = session.read.parquet(parquet(folder / "7", 7)).filter("y is not null")
    model = tacit.LeastSquares("rho=0.5", **SETTINGS)
    sums = tacit.spark.class_sums(frame, model, features="x", label="y")
    assert mark.exists()
    assert sums.records == N
    assert_release_of_one_machine(model.fit_sums(sums))

    rows = spark.predict(frame, tacit.Release.of(model), features="x").collect()
    assert [row.prediction for row in rows] == model.predict([row.x for row in rows]).tolist()


def plans_that_may_hand_out_a_record_twice_are_refused(session, folder, monkeypatch):
    """None of them is executed, but for the checkpoint."""
    from pyspark.sql.functions import rand

    frame = session.read.parquet(parquet(folder / "2", 2))
    frame.createOrReplaceTempView("records")
    for step in (
        frame.sample(0.5, seed=1),
        frame.sample(0.5, seed=1).cache(),
        frame.repartition(3),
        frame.limit(3),
        frame.union(frame),
        frame.withColumn("z", rand(1)),
        frame.filter(rand(1) < 0.5),
        session.createDataFrame(frame.rdd),
        frame.sample(0.5, seed=1).checkpoint(eager=False),
    ):
        with pytest.raises(InputError, match="write it to Parquet"):
            spark.check_plan(step)
    for query in (
        "select * from records where y in (select y from records tablesample (50 percent))",
        "select * from records where x[0] > (select avg(x[0]) from records)",
    ):
        with pytest.raises(InputError, match="a query in it"):
            spark.check_plan(session.sql(query))

    spark.check_plan(frame.sample(0.5, seed=1).repartition(3).checkpoint(eager=True))
    spark.check_plan(frame.select("x", "y").filter("y = 'no'"))
    # the second interface of data sources
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    spark.check_plan(session.read.parquet(str(folder / "2")))
    monkeypatch.setattr(spark, "_FILES", set())
    with pytest.raises(InputError, match="reads ParquetTable, whose records may move"):
        spark.check_plan(session.read.parquet(str(folder / "2")))
    with pytest.raises(InputError, match="reads HadoopFsRelation"):
        spark.check_plan(frame)


def the_example_of_the_docs_runs(session, folder, monkeypatch):
    """In this session, which its `getOrCreate` finds."""
    [example] = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    exec(compile(example, str(PAGE), "exec"), {})
    table = pq.read_table("predictions")
    assert table.num_rows == 1000
    assert (table["prediction"].to_numpy() == table["answer"].to_numpy()).mean() > 0.9


STEPS = [
    one_partition_gives_the_bits_of_one_machine,
    partitions_without_records_change_nothing,
    a_task_that_is_killed_is_run_again_and_adds_nothing,
    the_example_of_the_docs_runs,
    plans_that_may_hand_out_a_record_twice_are_refused,
]


@needs_java
def test_sums_on_spark(tmp_path, monkeypatch):
    # the Java machine keeps the folder that it starts in
    monkeypatch.chdir(tmp_path)
    with session_in(tmp_path) as session:
        for step in STEPS:
            folder = tmp_path / step.__name__
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                step(session, folder, patch)


def test_persons_and_what_is_no_frame_are_refused():
    learner = tacit.LeastSquares("rho=0.5", **SETTINGS)
    with pytest.raises(InputError, match="on one machine with persons"):
        tacit.spark.class_sums(None, learner, features="x", label="y", person="id")
    with pytest.raises(InputError, match="no data frame"):
        tacit.spark.class_sums(X, learner, features="x", label="y")
