"""The parameters of `PATE` that group several fields: teachers, voting and student, as values and
by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tacit.learners.common.parameters import value_of
from tacit.learners.pate.aggregators import voting_of
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Teachers

GROUPS = ("teachers", "voting", "student")
KINDS: dict[str, type[Teachers] | type[Student]] = {"teachers": Teachers, "student": Student}

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
