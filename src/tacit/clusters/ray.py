"""Fits and predictions on Ray Data: one pass over a dataset, and noise once, on the driver.

`class_sums` runs the recipe of a learner on every block. What crosses the network inside the
cluster, from workers to the driver, are exact sums of each block, in the clear: they hold no noise
and are as private as the records. A block with one record gives this record away. Only what
`fit_sums` releases on the driver is protected.

A block that is computed again must hold the same records, or a record might be summed twice. So a
dataset must be read from files, which nobody changes meanwhile, or from tables and arrays in
memory, and only a selection of columns may follow. Files of a dataset are listed when it is read;
that nobody changes them meanwhile is not checked here. A materialized dataset counts as memory: Ray
cannot tell how its blocks were made, and makes lost ones again, so its steps must be deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.clusters.parts import (
    PREDICTION,
    Columns,
    predictions,
    refuse_person,
    rows_of,
    sums_of_batches,
    total_of_parts,
)
from tacit.compute.libraries.ray import load_ray
from tacit.errors import InputError

# How often a task runs again whose worker died.
RETRIES = 3

# steps of a plan that give a block the same records whenever it is computed
_REPEATABLE = {
    "FromArrow",
    "FromBlocks",
    "FromItems",
    "FromNumpy",
    "FromPandas",
    "InputData",
    "ListFiles",
    "Project",
    "Read",
    "ReadFiles",
}

# classes of the sources that read files
_FILES = {"FileBasedDatasource", "ParquetDatasource"}


def class_sums(
    dataset: Any, learner: Any, *, features: Columns, label: str, person: str | None = None
) -> Any:
    """Sum the records of a dataset, block by block, for `learner.fit_sums`.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Read from files that do not change, or from memory; columns may be selected.
    learner, features, label, person
        As in `tacit.spark.class_sums`.

    Returns
    -------
    Sums
        Exact and private. `learner.fit_sums` releases from them, bit for bit, what `fit` on one
        machine does.

    Raises
    ------
    InputError
        If a block that is computed again could hold other records, or the learner needs more than
        sums.

    Notes
    -----
    Tasks that run again and lost results change nothing: exactly one result of each block is added.
    Blocks go through Ray's object store, which writes to disk what does not fit.
    """
    refuse_person(person)
    check_plan(dataset)
    ray = load_ray()
    recipe = learner.recipe(_width(dataset, features))
    blocks = dataset.to_arrow_refs()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_packed_sums)
    shared_recipe = ray.put(recipe)
    parts = {
        task.remote(shared_recipe, block, features, label): part
        for part, block in enumerate(blocks)
    }

    def results() -> Iterator[tuple[int, bytes]]:
        running = list(parts)
        while running:
            [ready], running = ray.wait(running)
            try:
                yield parts[ready], ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                # it wraps what was raised in the worker, such as a refusal of missing numbers
                raise error.cause from None

    return total_of_parts(recipe, results(), len(blocks))


def _packed_sums(recipe: Any, block: Any, features: Columns, label: str) -> bytes:
    """Sums of one block; runs in the worker."""
    data: bytes = sums_of_batches(recipe, [block], features, label).packed()
    return data


def predict(dataset: Any, release: Any, *, features: Columns) -> Any:
    """Add a column `prediction`, the class of each row, to a dataset.

    Parameters
    ----------
    dataset : ray.data.Dataset
    release : Release
        It is sent to every worker; it is public.
    features : str or list of str
        As in `tacit.spark.class_sums`.

    Returns
    -------
    ray.data.Dataset
        Computed when it is used.
    """

    def predicted(table: Any) -> Any:
        return table.append_column(PREDICTION, predictions(release, table, features))

    return dataset.map_batches(predicted, batch_format="pyarrow")


def check_plan(dataset: Any) -> None:
    """Refuse a dataset whose blocks could hold other records when they are computed again."""
    plan = getattr(dataset, "_logical_plan", None)
    if plan is None:
        raise InputError(
            f"dataset={type(dataset).__name__} is no dataset of Ray; pass one of ray.data"
        )
    pending = [plan.dag]
    while pending:
        step = pending.pop()
        name = type(step).__name__
        if name not in _REPEATABLE:
            raise InputError(
                f"the dataset has the step {name}, which may hand out records in another way when a"
                " task runs again; write it to Parquet and read that"
            )
        if name == "Read" and not _reads_files(step):
            raise InputError(
                f"the dataset has the step {step.name}, whose records may move while they are read;"
                " write it to Parquet and read that"
            )
        pending += step.input_dependencies


def _reads_files(step: Any) -> bool:
    """Tell whether a step reads files, by the class of its source and those that it extends."""
    # older versions of Ray keep the source in a private attribute
    source = getattr(step, "datasource", None) or getattr(step, "_datasource", None)
    return any(kind.__name__ in _FILES for kind in type(source).__mro__)


def _width(dataset: Any, features: Columns) -> int:
    """Number of columns of the rows, which is public: that of the first row."""
    if not isinstance(features, str):
        return len(features)
    for batch in dataset.iter_batches(batch_size=1, batch_format="pyarrow"):
        return int(np.shape(rows_of(batch, features))[1])
    raise InputError("the dataset has no row to tell the number of columns from; check its source")
