"""Methods as audits fit them: small, on synthetic data, with research noise that a transcript
records.

Everything follows from facts of the class, so that a new method is audited as it is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit.errors import InputError
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.methods import METHODS, load, method_called, setting_called
from tacit.measure.auditing.canaries import CLASSES, WIDTH, Data
from tacit.models.rows import Floats
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

# Fewer steps than usual, so that a fit takes milliseconds; noise is calibrated to their number.
_FEW = {"steps": 4, "epochs": 2}

# Teachers that have a record each at most vote as their record's class says; the noise is such that
# a budget pays for some ten queries.
_VOTING = {"n_teachers": 12, "aggregator": "gnmax", "sigma": 8.0}
_QUERIES = 200

_PUBLIC_ROWS = 8


@dataclass(frozen=True)
class Subject:
    """A method with parameters, under a unit."""

    name: str
    template: PrivateClassifier
    unit: Unit

    @property
    def promise(self) -> Guarantee:
        """What a fit promises."""
        return self.template.promise()

    def fit(self, data: Data) -> PrivateClassifier:
        """The learner after a fit to these data."""
        arguments = {}
        if self.unit.per_person:
            arguments["persons"] = data.persons
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(self.template).fit(data.rows, data.labels, **arguments)
        learner: PrivateClassifier = fitted
        return learner

    def with_parameters(self, **parameters: Any) -> Subject:
        """The method with other values of some parameters."""
        template = clone(self.template).set_params(**parameters)
        return replace(self, template=template)


def subject_of(
    audited: str | PrivateClassifier, budget: Any = None, unit: Unit | str | None = None
) -> Subject:
    """The method of this name, published names included, or a learner with its parameters."""
    if isinstance(audited, PrivateClassifier):
        return _of_learner(audited, budget, unit)
    if not isinstance(audited, str):
        raise InputError(
            f"an audit of {type(audited).__name__} is not offered; pass the name of a method, a"
            " learner of tacit or a release"
        )
    method, parameters = setting_called(audited) or (method_called(audited), {})
    if method not in METHODS:
        raise InputError(f"method={audited!r} must be one of {', '.join(METHODS)}; correct it")

    kind = load(METHODS[method])
    parameters = small_parameters(kind) | parameters
    if budget is not None:
        parameters["budget"] = budget
    if unit is not None:
        parameters["unit"] = unit
    template = kind.of_flat(**parameters)
    return Subject(audited, template, Unit(template.unit))


def _of_learner(
    learner: PrivateClassifier, budget: Any = None, unit: Unit | str | None = None
) -> Subject:
    """A learner with its own parameters, but for its data, which become synthetic."""
    if learner.most_labels is not None:
        raise InputError(
            f"most_labels={learner.most_labels} is not audited; leave it out, so that a record has"
            " one label"
        )
    parameters: dict[str, Any] = {
        "classes": CLASSES,
        "noise": "research",
        "random_state": 0,
        "ledger": None,
    }
    if learner.public is not None:
        parameters["public"] = public_rows(type(learner))
    if learner.names is not None:
        parameters["names"] = name_rows()
    if budget is not None:
        parameters["budget"] = budget
    if unit is not None:
        parameters["unit"] = unit
    template = clone(learner).set_params(**parameters)
    return Subject(type(learner).__name__, template, Unit(template.unit))


def small_parameters(kind: type[PrivateClassifier]) -> dict[str, Any]:
    """Parameters that make fits of a method quick, from facts of its class."""
    parameters: dict[str, Any] = {"classes": CLASSES, "noise": "research", "random_state": 0}
    if kind.needs_public:
        parameters["public"] = public_rows(kind)
    if kind.needs_names:
        parameters["names"] = name_rows()
    if kind.has_votes:
        parameters |= _VOTING
    for name, few in _FEW.items():
        default = getattr(kind, name, ())
        if default is None or isinstance(default, int):
            parameters[name] = few
    return parameters


def public_rows(kind: type[PrivateClassifier]) -> Floats:
    """Public rows: one along an axis of no class, and others opposite to it.

    A record opposite to the first raises the scores of all others and not its score. Voters are
    asked about as many rows as a budget pays for.
    """
    axis = np.eye(WIDTH)[2]
    if kind.has_votes:
        queries: Floats = 2 * axis + 0.01 * np.arange(_QUERIES)[:, None]
        return queries
    lengths = np.array([2.0, *range(-2, -_PUBLIC_ROWS - 1, -1)])
    rows: Floats = lengths[:, None] * axis
    return rows


def name_rows() -> Floats:
    """A public row for each class name."""
    return np.eye(WIDTH)[:CLASSES]
