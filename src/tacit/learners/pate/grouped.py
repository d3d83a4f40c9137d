"""The parameters of `PATE` that group several fields, as values and by field.

Teachers and student are in files of their names, and a voting is an aggregator. Queries and the run
are here, since they are settings alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tacit.learners.common.parameters import value_of
from tacit.learners.pate.aggregators import voting_of
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Teachers


@dataclass(frozen=True)
class Queries:
    """The public records that are queried, when voting ends, and where it is read.

    Parameters
    ----------
    n_queries, n_labels : int, optional
        Limits: query the first `n_queries` public records only, and stop after `n_labels` answered
        queries. Without groups the promise assumes at most `n_queries` queries.
    limits : list of float, optional
        Smaller budgets at which the voting is also read, at no further privacy cost: epsilons, or
        dicts of them with budget groups. See `tacit.pate.readings`.
    stopping : {"filter", "data-dependent"}
        The costs by which voting ends; see `tacit.pate.aggregate`.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Queries(n_queries=500, limits=[0.5]).stopping
    'filter'
    """

    n_queries: int | None = None
    n_labels: int | None = None
    limits: Any = None
    stopping: str = "filter"


@dataclass(frozen=True)
class Run:
    """The place where teachers are trained, and the folder in which a fit keeps its work.

    Parameters
    ----------
    folder : path, optional
        Private folder of teachers, votes, labels and tables (teachers.csv, records.csv,
        votings.csv, queries.csv, readings.csv, students.csv), from which an interrupted fit
        resumes. Labels in it are not charged again to a ledger that was already charged for them.
    engine : {"joblib", "ray", "slurm"}, str or Engine, optional
        Where teachers are trained; "ray:ADDRESS" and "slurm:PARTITION" name the cluster. Workers
        must see `folder`. By default in this process, or by joblib if `jobs` is more than 1. The
        votes are the same to the bit.
    jobs : int, default=1
        Blocks of teachers that are trained at the same time, at most 1024, each by one thread.
    voting_seed : int, default=0
        Number of a voting of the same teachers, from which standard errors follow. A voting has
        noise of its own, and a ledger is charged for each. In `folder` the teachers serve all
        votings; answers and tables of votings other than 0 are in files of their own, such as
        voting-1.json and votings-1.csv.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Run(folder="private-run", jobs=4).jobs
    4
    """

    folder: Any = None
    engine: Any = None
    jobs: int = 1
    voting_seed: int = 0


GROUPS = ("teachers", "voting", "student", "queries", "run")
KINDS: dict[str, type[Any]] = {
    "teachers": Teachers,
    "student": Student,
    "queries": Queries,
    "run": Run,
}

FLAT_NAMES: Mapping[str, str] = {
    "n_teachers": "teachers__number",
    "teacher": "teachers__model",
    "teacher_training": "teachers__training",
    "expected_accuracy": "teachers__expected_accuracy",
    "aggregator": "voting__kind",
    **{
        name: f"voting__{name}"
        for name in ("sigma", "sigma1", "threshold", "gamma", "confidence", "bootstrap")
    },
    "student": "student__model",
    "student_training": "student__training",
    "semi_supervised": "student__semi_supervised",
    "validation": "student__validation",
    **{name: f"queries__{name}" for name in ("n_queries", "n_labels", "limits", "stopping")},
    **{name: f"run__{name}" for name in ("folder", "engine", "jobs", "voting_seed")},
}
"""Names of the fields on the command line."""


def fields_of(group: str, value: Any) -> dict[str, Any]:
    """Return the fields of the value of a grouped parameter; an aggregator has its name as
    `kind`.
    """
    if group != "voting":
        return dict(vars(value_of(group, value, KINDS[group])))
    name, aggregator = voting_of(value)
    fields: dict[str, Any] = {"kind": name}
    if aggregator is not None:
        fields |= asdict(aggregator)
    return fields


def with_fields(group: str, value: Any, changes: dict[str, Any]) -> Any:
    """Return the value of a grouped parameter with some fields changed.

    Another kind of voting starts from its defaults.
    """
    fields = fields_of(group, value)
    if group != "voting":
        return value_of(group, fields | changes, KINDS[group])
    if changes.get("kind", fields["kind"]) != fields["kind"]:
        fields = {}
    name, aggregator = voting_of(fields | changes)
    return aggregator or name
