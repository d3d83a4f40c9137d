"""A plan: a YAML file that says which cells an experiment has.

Axes multiply: data sets x learners (each with a grid of parameters and public sets) x budgets x
imbalance x seeds. Everything in a plan is public. `Plan.schema()` is its JSON schema, for editors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
from tacit.experiments.yaml_lines import MOST_BYTES, Lines, PlanError, parse
from tacit.learners.methods import METHODS, in_python, method_called, setting_called
from tacit.learners.methods import load as load_class
from tacit.releases.fields import UnitName

MOST_SEEDS = 50_000

# the searches that a plan may name, with their classes
SEARCHES = {
    "random": "tacit.learners.search.random:RandomSearch",
    "grid": "tacit.learners.search.grid:GridSearch",
    "unpaid": "tacit.learners.search.unpaid:UnpaidSearch",
}

Share = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Attribute = Annotated[str, Field(pattern=r"^[A-Za-z]\w*(\.[A-Za-z]\w*)*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^\r\n]+$")]

# the value of a parameter, which may be anything that YAML holds
Value = Any

# JSON schema of a range of values
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

# JSON schema of a search's candidates, which the search itself checks when it states its promise
CANDIDATES = {
    "description": (
        "A list of parameters; with trials, a list of values or a range for each parameter"
    ),
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "object"}},
        {"type": "object", "minProperties": 1, "additionalProperties": VALUES},
    ],
}


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


def _seed_list(value: Any) -> Any:
    """Return the seeds 0, 1, ... for a number of seeds, and anything else unchanged."""
    # True and False are ints in Python
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and 0 < value <= MOST_SEEDS:
        return list(range(value))
    return value


def _ratio_list(value: Any) -> Any:
    """Return a list for null, and anything else unchanged."""
    if value is None:
        return [None]
    return value


def _unit_list(value: Any) -> Any:
    """Return a list for the name of one unit, and anything else unchanged."""
    if isinstance(value, str):
        return [value]
    return value


Units = Annotated[list[UnitName], BeforeValidator(_unit_list), Field(min_length=1)]
Ratios = Annotated[list[float | None], BeforeValidator(_ratio_list), Field(min_length=1)]
Seeds = Annotated[
    list[Seed], BeforeValidator(_seed_list), Field(min_length=1, description="A number, or a list")
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
    imbalance: Ratios = Field(
        [None],
        description=(
            "Ratios of the largest to the smallest class; at 1 classes are of equal size, and null,"
            " the default, keeps all records"
        ),
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
        """Return the JSON schema of plan files.

        In place of a list, a file may have a number of seeds, the name of one unit or null as
        imbalance.
        """
        schema = cls.model_json_schema()
        properties = schema["properties"]

        seed_list = properties["seeds"]
        properties["seeds"] = {"anyOf": [{"type": "integer", "minimum": 1}, seed_list]}

        ratio_list = properties["imbalance"]
        properties["imbalance"] = {"anyOf": [{"type": "null"}, ratio_list]}

        unit_list = properties["unit"]
        properties["unit"] = {"anyOf": [unit_list["items"], unit_list]}
        return schema


def load(path: Path | str) -> tuple[Plan, Lines]:
    """Read a plan, and the lines of its parts.

    Raises PlanError, which names the file, the line, the fault and the remedy.
    """
    path = Path(path)
    try:
        text = read_text(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        # an OSError states the path in its text, and the fault alone in strerror
        fault = getattr(error, "strerror", None) or str(error)
        raise PlanError(f"plan {path} cannot be read ({fault}); check its name") from error

    lines, document = parse(text, path)
    with lines.placing_errors():
        if not isinstance(document, dict):
            raise PlanError(
                "a plan is a mapping of name, data, learners, budgets ...; see plans/ for examples"
            )
        return validate(document), lines


def validate(document: Mapping[str, Any]) -> Plan:
    """Turn plain values into a plan, and check it as far as that needs neither data nor learners.

    Raises PlanError with the path to the first faulty part.
    """
    try:
        plan = Plan.model_validate(document)
    except ValidationError as error:
        raise _plan_error(error) from None

    _check_names("data", [(data.name, data.encoder) for data in plan.data])
    _check_names("learners", [learner.name for learner in plan.learners])
    for axis in ("unit", "imbalance", "seeds", "budgets"):
        _check_axis(getattr(plan, axis), (axis,))
    for number, ratio in enumerate(plan.imbalance):
        if ratio is not None and not 1 <= ratio < math.inf:
            raise PlanError(
                f"imbalance {ratio:g} must be a finite ratio >= 1; correct it",
                ("imbalance", number),
            )

    for number, data in enumerate(plan.data):
        _check_data(data, ("data", number))
    for number, learner in enumerate(plan.learners):
        _check_learner(plan, learner, ("learners", number))
    return plan


def _check_names(axis: str, names: Sequence[str | tuple[str, str]]) -> None:
    """Refuse two entries of one name; that of a data set is the name together with the encoder."""
    for number, name in enumerate(names):
        if name in names[:number]:
            name_text = name if isinstance(name, str) else " with encoder ".join(name)
            raise PlanError(
                f"{axis} has two entries named {name_text!r}; rename one, or remove it",
                (axis, number, "name"),
            )


def _check_axis(values: Sequence[Any], path: tuple[str | int, ...]) -> None:
    """Refuse a value that occurs twice."""
    earlier_values = set()
    for number, value in enumerate(values):
        # with its type, since 1, 1.0 and True are equal; as text, since lists cannot be in a set
        value_with_type = f"{type(value).__name__} {value!r}"
        if value_with_type in earlier_values:
            shown = "null" if value is None else quoted(value)
            raise PlanError(f"{path[-1]} has {shown} twice; remove one", (*path, number))
        earlier_values.add(value_with_type)


def _check_data(data: DataSet, path: tuple[str | int, ...]) -> None:
    """Refuse a data set that is neither built in nor has both training and test set."""
    has_builtin = data.builtin is not None
    has_train = data.train is not None
    if has_builtin == has_train:
        raise PlanError(
            f"data {data.name!r} needs either builtin or train and test; give one of the two", path
        )

    if has_train and data.test is None:
        raise PlanError(f"data {data.name!r} has no test set; give test: PATH", path)

    paths = (data.test, data.public, data.names, data.persons, data.test_persons)
    if has_builtin and any(paths):
        raise PlanError(
            f"data {data.name!r} is built in, with test and public rows; leave the paths out", path
        )


def _check_learner(plan: Plan, learner: LearnerSpec, path: tuple[str | int, ...]) -> None:
    """Refuse an unknown method, faulty axes, and a learner without budgets."""
    if learner.method not in METHODS:
        fault = _fault_of_method(learner.method)
        raise PlanError(f"method {quoted(learner.method)} {fault}", (*path, "method"))

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
    for number, n_rows in enumerate(learner.public_rows):
        if n_rows < 1:
            raise PlanError(
                f"public_rows {n_rows} must be 1 or more; correct it",
                (*path, "public_rows", number),
            )

    if not (learner.budgets or plan.budgets):
        raise PlanError(
            f"learner {learner.name!r} has no budgets; list budgets for it or for the plan", path
        )


def _fault_of_method(name: str) -> str:
    """Return what is wrong with the name of a method, and what to write."""
    fault = in_python(name)
    if fault is not None:
        return fault

    setting = setting_called(name)
    if setting is None:
        return f"is not known; {nearest(name, METHODS)}"

    # a name in papers, such as top-k, for a method with certain parameters
    method, parameters = setting
    learner_class = load_class(METHODS[method])
    texts = [parameter_text(learner_class, *parameter) for parameter in parameters.items()]
    return (
        f"is {method} with a parameter; write method: {method}, parameters: {{{', '.join(texts)}}}"
    )


def parameter_text(learner_class: Any, name: str, value: Any) -> str:
    """Return a parameter of a method as plans write it.

    A field of a grouped parameter, such as `sigma` of `voting`, stands within its group.
    """
    flat_name = learner_class.flat_names.get(name)
    if flat_name is None:
        return f"{name}: {value}"
    group, _, field = flat_name.partition("__")
    return f"{group}: {{{field}: {value}}}"


def _plan_error(error: ValidationError) -> PlanError:
    """Return the first fault that pydantic found, with a remedy.

    An unknown key comes before other faults: it may be the misspelling of a key that is missing.
    """
    faults = error.errors()
    unknown_keys = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    fault = unknown_keys[0] if unknown_keys else faults[0]
    path = tuple(part for part in fault["loc"] if isinstance(part, str | int))
    place = excerpt(".".join(map(str, path)))

    if fault["type"] == "extra_forbidden":
        key = path[-1]
        remedy = nearest(str(key), _keys_beside(path))
        return PlanError(f"{quoted(key)} is not a key here; {remedy}", path)
    if fault["type"] == "missing":
        return PlanError(f"{place} is missing; add it", path[:-1])

    value = fault.get("input")
    message = fault["msg"].rstrip(".").lower()
    return PlanError(f"{place} is {value!r:.60}: {message}; correct it", path)


def _keys_beside(path: tuple[str | int, ...]) -> Collection[str]:
    """Return the keys of the part of a plan that has the last key of a path."""
    models: dict[str, type[_Part]] = {
        "data": DataSet,
        "learners": LearnerSpec,
        "search": SearchSpec,
    }
    parents = [part for part in path[:-1] if isinstance(part, str)]
    if not parents:
        return Plan.model_fields
    return models[parents[-1]].model_fields
