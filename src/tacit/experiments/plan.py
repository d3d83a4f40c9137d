"""A plan: a YAML file that says which cells an experiment has.

Axes multiply: data sets x learners (each with a grid of parameters and public sets) x budgets x
imbalance x seeds. Everything in a plan is public. `Plan.schema()` is its JSON schema, for editors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from tacit.compute.documents import read_text
from tacit.errors import excerpt, nearest, quoted
from tacit.experiments.yaml_lines import MOST_BYTES, Lines, PlanError, parsed
from tacit.learners.methods import METHODS, method_called, setting_called
from tacit.learners.methods import load as load_class
from tacit.releases.schema import UnitName

MOST_SEEDS = 50_000
SEARCHES = {
    "random": "tacit.learners.search.random:RandomSearch",
    "grid": "tacit.learners.search.grid:GridSearch",
    "unpaid": "tacit.learners.search.unpaid:UnpaidSearch",
}

Share = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Attribute = Annotated[str, Field(pattern=r"^[A-Za-z]\w*(\.[A-Za-z]\w*)*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^\r\n]+$")]
Value = Any  # of a parameter: whatever YAML holds

RANGE = {
    "type": "object",
    "properties": {
        "low": {"type": "number"},
        "high": {"type": "number"},
        "log": {"type": "boolean"},
    },
    "required": ["low", "high"],
    "additionalProperties": False,
}
VALUES = {"anyOf": [{"type": "array", "minItems": 1}, RANGE]}
CANDIDATES = {
    "description": (
        "A list of parameters; with trials, a list of values or a range for each parameter"
    ),
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "object"}},
        {"type": "object", "minProperties": 1, "additionalProperties": VALUES},
    ],
}
"""JSON schema of a search's candidates, which the search itself checks when it states its
promise.
"""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSet(_Part):
    """A private training set, a test set, and named public sets; or one that comes with the
    dependencies.
    """

    name: Name
    encoder: Name = "as given"
    builtin: Literal["digits", "digits-components"] | None = Field(
        None,
        description=(
            "digits: 8 x 8 pictures that come with scikit-learn, or their 16 first public"
            " components"
        ),
    )
    train: str | None = Field(
        None, description="A store's folder, or any file or folder that `tacit import` reads"
    )
    test: str | None = Field(None, description="Of the same kind")
    public: dict[Name, str] = Field({}, description="Public sets by name")
    names: str | None = Field(
        None,
        description=(
            "Rows of class names, of the same kind; by default those that the training store"
            " carries"
        ),
    )
    persons: str | None = Field(
        None,
        description=(
            "Whose record each training row is: a file of ids (one per line, .npy, a table with"
            " FILE#COLUMN), else a column or array of the data; by default the ids that the"
            " training store carries"
        ),
    )
    test_persons: str | None = Field(
        None, description="The same for the test set; nobody may be in both"
    )
    rows: int | None = Field(
        None, ge=1, description="How many training records to use; all of them by default"
    )
    test_rows: int | None = Field(
        None, ge=1, description="How many test records to use; all of them by default"
    )


class SearchSpec(_Part):
    """Search over a learner's parameters on the private records."""

    how: Literal["random", "grid", "unpaid"]
    candidates: Annotated[Any, WithJsonSchema(CANDIDATES)]
    options: dict[str, Value] = Field(
        {}, description="Of the search, such as mean_runs, or trials of an unpaid one"
    )


class LearnerSpec(_Part):
    """A method with its parameters."""

    name: Name
    method: Annotated[
        str, AfterValidator(method_called), Field(description=f"One of: {', '.join(METHODS)}")
    ]
    parameters: dict[str, Value] = {}
    grid: dict[str, list[Value]] = Field(
        {}, description="Lists of values; every combination is another learner"
    )
    search: SearchSpec | None = None
    public: list[Name] = Field(
        [], description="Public sets of the data set to use, one after the other"
    )
    public_rows: list[int] = Field(
        [], description="How many public rows to use; all of them by default"
    )
    names: bool = Field(False, description="Whether to use the data's rows of class names")
    budgets: list[Any] = Field([], description="Instead of the plan's")
    shares: dict[str, Share] = Field(
        {}, description="Of records in each budget group, for personal budgets"
    )
    tuning: Literal["none", "paid", "unpaid"] | None = Field(
        None, description="How fixed parameters were chosen"
    )
    keep: list[Attribute] = Field(
        [], description="Attributes of the fitted learner to keep, or means_2d"
    )


def _as_list(value: Any) -> Any:
    """The list of seeds for a number of seeds."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return list(range(value)) if plain and 0 < value <= MOST_SEEDS else value


def _as_units(value: Any) -> Any:
    """The list of units for one unit."""
    return [value] if isinstance(value, str) else value


Units = Annotated[list[UnitName], BeforeValidator(_as_units), Field(min_length=1)]
Seeds = Annotated[
    list[Seed], BeforeValidator(_as_list), Field(min_length=1, description="A number, or a list")
]


class Plan(_Part):
    """The content of a plan file; see the module's docstring."""

    name: Name
    about: str = ""
    unit: Units = Field(
        ["add-remove"], description="Of every guarantee, or a list of units to compare"
    )
    delta: float = Field(1e-6, gt=0, lt=1, description="At which epsilon is stated")
    data: list[DataSet] = Field(min_length=1)
    learners: list[LearnerSpec] = Field(min_length=1)
    budgets: list[Any] = Field(
        [], description="rho=0.5, epsilon=1, epsilon=1,delta=1e-6, mu=1, inf, or a=1,b=2;delta=1e-5"
    )
    imbalance: list[float] = Field(
        [1.0], min_length=1, description="Ratios of the largest to the smallest class"
    )
    timed: bool = Field(
        False,
        description=(
            "Whether cells measure run times: after a first fit that does not count, without shared"
            " work"
        ),
    )
    subset_seed: int = Field(
        0, ge=0, lt=2**63, description="Of the imbalanced subsets, which all cells share"
    )
    seeds: Seeds = [0]

    @classmethod
    def schema_of_files(cls) -> dict[str, Any]:
        """JSON schema of plan files."""
        schema = cls.model_json_schema()
        seeds, units = schema["properties"]["seeds"], schema["properties"]["unit"]
        schema["properties"]["seeds"] = {"anyOf": [{"type": "integer", "minimum": 1}, seeds]}
        schema["properties"]["unit"] = {"anyOf": [units["items"], units]}
        return schema


def load(path: Path | str) -> tuple[Plan, Lines]:
    """Read a plan, and the lines of its parts; PlanError names the file, the line, the fault and
    the remedy.
    """
    path = Path(path)
    try:
        text = read_text(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        fault = getattr(error, "strerror", None) or str(error)
        raise PlanError(f"plan {path} cannot be read ({fault}); check its name") from error
    lines, document = parsed(text, path)
    with lines.placing_errors():
        if not isinstance(document, dict):
            raise PlanError(
                "a plan is a mapping of name, data, learners, budgets ...; see plans/ for examples"
            )
        return validated(document), lines


def validated(document: Mapping[str, Any]) -> Plan:
    """A plan from plain values, checked in itself; PlanError with the path to the first faulty
    part.
    """
    try:
        plan = Plan.model_validate(document)
    except ValidationError as error:
        raise _plan_error(error) from None
    _check_names("data", [(one.name, one.encoder) for one in plan.data])
    _check_names("learners", [one.name for one in plan.learners])
    for axis in ("unit", "imbalance", "seeds", "budgets"):
        _check_axis(getattr(plan, axis), (axis,))
    for number, ratio in enumerate(plan.imbalance):
        if not 1 <= ratio < math.inf:
            raise PlanError(
                f"imbalance {ratio:g} must be a finite ratio >= 1; correct it",
                ("imbalance", number),
            )
    for number, data in enumerate(plan.data):
        _check_data(data, ("data", number))
    for number, learner in enumerate(plan.learners):
        _check_learner(plan, learner, ("learners", number))
    return plan


def _check_names(axis: str, names: Sequence[Any]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            shown = name if isinstance(name, str) else " with encoder ".join(name)
            raise PlanError(
                f"{axis} has two entries named {shown!r}; rename one, or remove it",
                (axis, number, "name"),
            )


def _check_axis(values: Sequence[Any], path: tuple[str | int, ...]) -> None:
    seen = set()
    for number, value in enumerate(values):
        known = f"{type(value).__name__} {value!r}"
        if known in seen:
            raise PlanError(f"{path[-1]} has {quoted(value)} twice; remove one", (*path, number))
        seen.add(known)


def _check_data(data: DataSet, path: tuple[str | int, ...]) -> None:
    if (data.builtin is None) == (data.train is None):
        raise PlanError(
            f"data {data.name!r} needs either builtin or train and test; give one of the two", path
        )
    if data.builtin is None and data.test is None:
        raise PlanError(f"data {data.name!r} has no test set; give test: PATH", path)
    if data.builtin is not None and (
        data.test or data.public or data.names or data.persons or data.test_persons
    ):
        raise PlanError(
            f"data {data.name!r} is built in, with test and public rows; leave the paths out", path
        )


def _check_learner(plan: Plan, learner: LearnerSpec, path: tuple[str | int, ...]) -> None:
    if learner.method not in METHODS:
        raise PlanError(
            f"method {quoted(learner.method)} {_meant(learner.method)}", (*path, "method")
        )
    for name, values in learner.grid.items():
        if not values:
            raise PlanError(f"grid of {name} is empty; list its values", (*path, "grid", name))
        if name in learner.parameters:
            raise PlanError(
                f"{name} is both in parameters and in grid; keep one", (*path, "grid", name)
            )
        _check_axis(values, (*path, "grid", name))
    for axis in ("public", "public_rows", "budgets", "keep"):
        _check_axis(getattr(learner, axis), (*path, axis))
    for number, rows in enumerate(learner.public_rows):
        if rows < 1:
            raise PlanError(
                f"public_rows {rows} must be 1 or more; correct it", (*path, "public_rows", number)
            )
    if not (learner.budgets or plan.budgets):
        raise PlanError(
            f"learner {learner.name!r} has no budgets; list budgets for it or for the plan", path
        )


def _meant(method: str) -> str:
    """Say what is wrong with the name of a method, and what to write."""
    setting = setting_called(method)
    if setting is None:
        return f"is not known; {nearest(method, METHODS)}"
    kind = load_class(METHODS[setting[0]])
    parameters = ", ".join(nested(kind, name, value) for name, value in setting[1].items())
    return (
        f"is {setting[0]} with a parameter; write method: {setting[0]}, parameters:"
        f" {{{parameters}}}"
    )


def nested(kind: Any, name: str, value: Any) -> str:
    """A parameter of a method as plans write it: a field of a grouped one, such as `sigma`, within
    its group.
    """
    group, _, field = kind.flat_names.get(name, "").partition("__")
    return f"{group}: {{{field}: {value}}}" if group else f"{name}: {value}"


def _plan_error(error: ValidationError) -> PlanError:
    """The first fault that pydantic found, with a remedy; a misspelt key comes before a missing
    one.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    path = tuple(part for part in first["loc"] if isinstance(part, str | int))
    place = excerpt(".".join(map(str, path)))
    if first["type"] == "extra_forbidden":
        kinds: dict[str, type[_Part]] = {
            "data": DataSet,
            "learners": LearnerSpec,
            "search": SearchSpec,
        }
        parents = [part for part in path[:-1] if isinstance(part, str)]
        allowed = (kinds[parents[-1]] if parents else Plan).model_fields
        return PlanError(
            f"{quoted(path[-1])} is not a key here; {nearest(str(path[-1]), allowed)}", path
        )
    if first["type"] == "missing":
        return PlanError(f"{place} is missing; add it", path[:-1])
    return PlanError(
        f"{place} is {first.get('input')!r:.60}: {first['msg'].rstrip('.').lower()}; correct it",
        path,
    )
