"""Fits and predictions on Spark: one pass over a data frame, and noise once, on the driver.

`class_sums` runs the recipe of a learner on every partition. What crosses the network inside the
cluster, from executors to the driver, are exact sums of each partition, in the clear: they hold no
noise and are as private as the records. A partition with one record gives this record away. Encrypt
the network of the cluster (`spark.network.crypto.enabled`) as for the records themselves. Only what
`fit_sums` releases on the driver is protected.

A partition that is computed again must hold the same records, or a record might be summed twice.
So a frame must be read from files, which nobody changes meanwhile, or have been checkpointed, and
only selections, filters and the like may follow. The files and partitions are those that Spark
listed when the frame was read: files that are added later are not summed, and if a listed one
changes while it is summed, the sums are refused. Functions of Python in filters must be
deterministic; Spark cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from tacit.clusters.parts import (
    PREDICTION,
    Columns,
    predictions,
    refuse_person,
    sums_of_batches,
    total_of_parts,
)
from tacit.compute.extras import check_installed
from tacit.errors import InputError

# steps of a plan that give a partition the same records whenever it is computed
_REPEATABLE = {
    "Project",
    "Filter",
    "SubqueryAlias",
    "View",
    "LocalRelation",
    "LogicalRelation",
    "LogicalRDD",
    "DataSourceV2Relation",
}

# classes of the sources that read files, in both of Spark's interfaces of data sources
_FILES = {"HadoopFsRelation", "FileTable"}
_REMEDY = "write it to Parquet and read that, or pass frame.checkpoint()"


def class_sums(
    frame: Any, learner: Any, *, features: Columns, label: str, person: str | None = None
) -> Any:
    """Sum the records of a data frame, partition by partition, for `learner.fit_sums`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Read from files that do not change, or checkpointed; columns may be selected and rows
        filtered.
    learner : NoisySumPrototypes, LeastSquares or AutoPrototypes
        With declared classes and a unit per record; `AutoPrototypes` with `refine=False`.
    features : str or list of str
        A column of arrays of numbers, or several columns of numbers.
    label : str
        The column of labels.
    person : str, optional
        Refused: units per person are not offered here.

    Returns
    -------
    Sums
        Exact and private. `learner.fit_sums` releases from them, bit for bit, what `fit` on one
        machine does.

    Raises
    ------
    InputError
        If a partition that is computed again could hold other records, a file changed while it
        was summed, or the learner needs more than sums.

    Notes
    -----
    Partitions that run again, speculative copies of slow tasks and lost results change nothing:
    each result carries its partition, and exactly one of each is added. The driver receives 8 bytes
    for each number of the sums from each partition; larger files, or `frame.coalesce` before a
    checkpoint, make partitions fewer.
    """
    refuse_person(person)
    check_plan(frame)
    recipe = learner.recipe(_width(frame, features))
    files = _states_of_files(frame)

    # runs in an executor, whose modules are not those of the driver
    def sums_of(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        sums = sums_of_batches(recipe, batches, features, label)
        part = TaskContext.get().partitionId()
        columns = {"part": [part], "sums": [sums.packed()]}
        yield pyarrow.RecordBatch.from_pydict(columns)

    results = frame.mapInArrow(sums_of, "part long, sums binary")
    parts = results.rdd.getNumPartitions()
    # binary columns arrive as bytearrays
    rows = ((row.part, bytes(row.sums)) for row in results.collect())
    total = total_of_parts(recipe, rows, parts)
    _check_unchanged(files, _states_of_files(frame))
    return total


def predict(frame: Any, release: Any, *, features: Columns) -> Any:
    """Add a column `prediction`, the class of each row, to a data frame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    release : Release
        It is sent to every executor; it is public.
    features : str or list of str
        As in `class_sums`.

    Returns
    -------
    pyspark.sql.DataFrame
        Computed when it is used.
    """
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    kind = StringType() if release.classes.dtype.kind == "U" else LongType()
    schema = StructType([*frame.schema.fields, StructField(PREDICTION, kind)])

    def predicted(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            yield pyarrow.RecordBatch.from_arrays(
                [*batch.columns, predictions(release, batch, features)],
                names=[*batch.schema.names, PREDICTION],
            )

    return frame.mapInArrow(predicted, schema)


def check_plan(frame: Any) -> None:
    """Refuse a frame whose partitions could hold other records when they are computed again."""
    check_installed("pyspark")
    if not hasattr(frame, "_jdf"):
        raise InputError(
            f"frame={type(frame).__name__} is no data frame of a classic Spark session; pass one"
            " of SparkSession.builder.master(...)"
        )
    pending = [frame._jdf.queryExecution().analyzed()]
    while pending:
        plan = pending.pop()
        _check_step(plan)
        # a sequence of Scala, over which Python cannot iterate
        children = plan.children()
        pending += [children.apply(index) for index in range(children.size())]


def _check_step(plan: Any) -> None:
    """Refuse a step of a plan that could hand out other records when it is computed again."""
    name = plan.nodeName()
    kind = plan.getClass().getSimpleName()
    if kind not in _REPEATABLE:
        raise InputError(
            f"the frame has the step {name}, which may hand out records in another way when a"
            f" task runs again; {_REMEDY}"
        )
    if not plan.deterministic():
        raise InputError(
            f"the step {name} of the frame has a value that differs when a task runs again;"
            f" {_REMEDY}"
        )
    # one record can change the result of such a query, and with it which others are selected
    if not plan.subqueries().isEmpty():
        raise InputError(
            f"the step {name} of the frame has a query in it, by which records depend on others;"
            " select by values of the record alone, or by constants"
        )
    if kind == "LogicalRDD" and not plan.rdd().isCheckpointed():
        raise InputError(
            f"the frame is made of an RDD, which may be computed again in another way; {_REMEDY}"
        )
    source = None
    if kind == "LogicalRelation":
        source = plan.relation()
    if kind == "DataSourceV2Relation":
        source = plan.table()
    if source is not None and not _is_files(source):
        raise InputError(
            f"the frame reads {source.getClass().getSimpleName()}, whose records may move while"
            f" they are read; {_REMEDY}"
        )


def _is_files(source: Any) -> bool:
    """Tell whether a source is a list of files, by its class and those that it extends."""
    kind = source.getClass()
    while kind is not None:
        if kind.getSimpleName() in _FILES:
            return True
        kind = kind.getSuperclass()
    return False


def _states_of_files(frame: Any) -> dict[str, tuple[int, int]]:
    """Length, and time of the last change, of the files that a frame reads, as they are now."""
    names_by_folder: dict[str, set[str]] = {}
    for file in frame.inputFiles():
        folder, _, name = file.rpartition("/")
        names_by_folder.setdefault(folder, set()).add(unquote(name))

    session = frame.sparkSession
    settings = session._jsc.hadoopConfiguration()
    states = {}
    for folder, names in names_by_folder.items():
        path = session._jvm.org.apache.hadoop.fs.Path(session._jvm.java.net.URI(folder))
        for status in path.getFileSystem(settings).listStatus(path):
            name = status.getPath().getName()
            if name in names:
                states[f"{folder}/{name}"] = status.getLen(), status.getModificationTime()
    return states


def _check_unchanged(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> None:
    """Refuse sums of files that changed or went while they were summed."""
    changed = [file for file in before if after.get(file) != before[file]]
    if changed:
        raise InputError(
            f"{len(changed)} of the {len(before)} files changed while they were summed, so a record"
            " may have been summed twice; read files that no job writes"
        )


def _width(frame: Any, features: Columns) -> int:
    """Number of columns of the rows, which is public: that of the first row."""
    if not isinstance(features, str):
        return len(features)
    first = frame.select(features).first()
    if first is None or first[0] is None:
        raise InputError(
            "the frame has no row to tell the number of columns from; check its source"
        )
    return len(first[0])
