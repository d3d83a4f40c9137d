"""Fits and predictions on Spark: one pass over a data frame, and noise once, on the driver.

`class_sums` runs the recipe of a learner on every partition. What crosses the network inside the
cluster, from executors to the driver, are exact sums of each partition, in the clear: they hold no
noise and are as private as the records. A partition with one record gives this record away. Encrypt
the network of the cluster (`spark.network.crypto.enabled`) as for the records themselves. Only what
`fit_sums` releases on the driver is protected.

A partition that is computed again must hold the same records, or a record might be summed twice.
So a frame must be read from files, which nobody changes meanwhile, or have been checkpointed, and
only selections, filters and the like may follow. Functions of Python in these must be
deterministic; Spark cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

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
_SAME_AGAIN = {
    "Project",
    "Filter",
    "SubqueryAlias",
    "View",
    "LocalRelation",
    "LogicalRelation",
    "LogicalRDD",
    "DataSourceV2Relation",
}
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
        If a partition that is computed again could hold other records, or the learner needs more
        than sums.

    Notes
    -----
    Partitions that run again, twins of slow tasks and lost results change nothing: each result
    carries its partition, and exactly one of each is added. The driver receives 8 bytes for each
    number of the sums from each partition; `frame.coalesce` after a checkpoint, or larger files,
    make partitions fewer.
    """
    refuse_person(person)
    check_plan(frame)
    recipe = learner.recipe(_width(frame, features))

    def sums_of(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        sums = sums_of_batches(recipe, batches, features, label)
        part = TaskContext.get().partitionId()
        columns = {"part": [part], "sums": [sums.packed()]}
        yield pyarrow.RecordBatch.from_pydict(columns)

    results = frame.mapInArrow(sums_of, "part long, sums binary")
    parts = results.rdd.getNumPartitions()
    rows = ((row.part, bytes(row.sums)) for row in results.collect())
    return total_of_parts(recipe, rows, parts)


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
        name = plan.nodeName()
        if plan.getClass().getSimpleName() not in _SAME_AGAIN:
            raise InputError(
                f"the frame has the step {name}, which may hand out records in another way when a"
                f" task runs again; {_REMEDY}"
            )
        if not plan.deterministic():
            raise InputError(
                f"the step {name} of the frame has a value that differs when a task runs again;"
                f" {_REMEDY}"
            )
        if plan.getClass().getSimpleName() == "LogicalRDD" and not plan.rdd().isCheckpointed():
            raise InputError(
                "the frame is made of an RDD, which may be computed again in another way;"
                f" {_REMEDY}"
            )
        children = plan.children()
        pending += [children.apply(index) for index in range(children.size())]


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
