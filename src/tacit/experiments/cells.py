"""The cells that a plan multiplies out to, each checked against its data and its learner before
anything runs.
"""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tacit.data.imbalance import class_sizes
from tacit.errors import BudgetError, InputError, TacitError, nearest
from tacit.experiments.cell import INFINITE, SET_BY_CELL, Cell
from tacit.experiments.data import DataSource, has_equal_sizes, public_rows, records
from tacit.experiments.plan import SEARCHES, DataSet, LearnerSpec, Plan, parameter_text
from tacit.experiments.yaml_lines import PlanError
from tacit.learners.methods import METHODS, load
from tacit.privacy.unit import Unit

MOST_CELLS = 50_000

Path = tuple[str | int, ...]
"""Keys and positions that lead to a part of the plan."""


@dataclass(frozen=True)
class Variant:
    """A learner of the plan with one combination of its grid."""

    spec: LearnerSpec
    path: Path
    parameters: Mapping[str, Any]
    label: str

    def as_json(self, value: Any) -> str:
        """Return a part of the learner as JSON."""
        try:
            return json.dumps(value, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PlanError(
                f"learner {self.label!r} has a value that is not plain text, a number or a list;"
                " correct it",
                self.path,
            ) from error


def cells(plan: Plan, sources: Sequence[DataSource]) -> list[Cell]:
    """Return all cells of a plan, neighbours sharing their data.

    Raises
    ------
    PlanError
        If a learner refuses its parameters, a budget, the unit or the shape of the data, or there
        are fewer public rows or records than the plan needs; nothing has run then.
    """
    _check_number(plan)
    data_sets = list(zip(plan.data, sources, strict=True))
    _check_imbalance(plan, data_sets)
    variants = _all_variants(plan)
    _check_persons(plan, data_sets)

    cells_by_key: dict[str, Cell] = {}
    axes = product(data_sets, plan.imbalance, variants, plan.unit)
    for (data, source), imbalance, variant, unit in axes:
        for budget_path, first_cell in _first_seeds(plan, data, source, imbalance, variant, unit):
            if first_cell.key in cells_by_key:
                raise PlanError(
                    f"learner {variant.label!r} repeats other cells; remove one of them",
                    variant.path,
                )

            # at another imbalance the learner would check the same
            if imbalance == plan.imbalance[0]:
                _check_learner(first_cell, variant, budget_path)

            for seed in plan.seeds:
                cell = replace(first_cell, seed=seed)
                cells_by_key[cell.key] = cell
    return list(cells_by_key.values())


def _first_seeds(
    plan: Plan,
    data: DataSet,
    source: DataSource,
    imbalance: float | None,
    variant: Variant,
    unit: str,
) -> Iterator[tuple[Path, Cell]]:
    """Yield the cell of each public input and budget with the first seed, after the path to its
    budget.
    """
    inputs = product(_publics(variant, source), _budgets(plan, variant))
    for (public, n_public_rows), (budget_path, budget) in inputs:
        yield (
            budget_path,
            Cell(
                plan=plan.name,
                data=data.name,
                encoder=data.encoder,
                source=source,
                public=public,
                public_rows=n_public_rows,
                budget=variant.as_json(budget),
                imbalance=imbalance,
                balanced=imbalance == 1 and not has_equal_sizes(source),
                subset_seed=plan.subset_seed,
                seed=plan.seeds[0],
                unit=unit,
                delta=plan.delta,
                timed=plan.timed,
                names=_names(variant, source),
                **_learner_fields(variant),
            ),
        )


def _learner_fields(variant: Variant) -> dict[str, Any]:
    """Return the fields of a cell that its learner decides."""
    spec = variant.spec
    search = None if spec.search is None else spec.search.model_dump()
    return {
        "learner": variant.label,
        "method": spec.method,
        "parameters": variant.as_json(variant.parameters),
        "search": variant.as_json(search),
        "shares": variant.as_json(spec.shares),
        "tuning": _tuning(spec),
        "keep": tuple(spec.keep),
    }


def _check_number(plan: Plan) -> None:
    """Refuse a plan of too many cells before it makes any."""
    cells_of_learners = 0
    for spec in plan.learners:
        grid_size = math.prod(map(len, spec.grid.values()))
        n_budgets = len(spec.budgets or plan.budgets)
        # a learner without public rows has one cell
        n_public = max(len(spec.public), 1) * max(len(spec.public_rows), 1)
        cells_of_learners += grid_size * n_budgets * n_public

    n_axes = len(plan.data) * len(plan.imbalance) * len(plan.seeds) * len(plan.unit)
    n_cells = n_axes * cells_of_learners
    if n_cells > MOST_CELLS:
        raise PlanError(
            f"the plan has {n_cells} cells, more than {MOST_CELLS}; split it into several plans"
        )


def _check_imbalance(plan: Plan, data_sets: Sequence[tuple[DataSet, DataSource]]) -> None:
    """Refuse a ratio at which a class of some data set would keep no records."""
    for (data, source), (position, ratio) in product(data_sets, enumerate(plan.imbalance)):
        if ratio is None:
            continue
        sizes = records(source, None, 0).sizes
        try:
            class_sizes(int(sizes[sizes > 0].min()), len(sizes), ratio)
        except InputError as error:
            raise PlanError(
                f"imbalance of {data.name!r}: {error}", ("imbalance", position)
            ) from error


def _check_persons(plan: Plan, data_sets: Sequence[tuple[DataSet, DataSource]]) -> None:
    """Refuse a unit per person where data have no ids of persons."""
    for unit, (data, source) in product(plan.unit, data_sets):
        if Unit(unit).per_person and not source.has_persons:
            raise PlanError(
                f"unit {unit} needs person ids, and data {data.name!r} have none; give persons:"
                " FILE or COLUMN, or a store with ids",
                ("unit",),
            )


def _all_variants(plan: Plan) -> list[Variant]:
    """Return the learners of a plan, each with every combination of its grid."""
    variants: list[Variant] = []
    for position, spec in enumerate(plan.learners):
        path: Path = ("learners", position)
        _check_parameters(spec, path)
        _check_options(spec, path)
        variants.extend(_variants(spec, path))
    return variants


def _check_parameters(spec: LearnerSpec, path: Path) -> None:
    """Refuse parameters that the method lacks or that the plan sets."""
    learner_class = load(METHODS[spec.method])
    accepted = list(inspect.signature(learner_class).parameters)
    settable = [name for name in accepted if name not in SET_BY_CELL]
    for place in ("parameters", "grid"):
        for name in getattr(spec, place):
            if name in SET_BY_CELL:
                raise PlanError(
                    f"{name} is set by the plan, not among {place}; leave it out",
                    (*path, place, name),
                )

            # scikit-learn writes a parameter within a parameter as outer__inner
            if name.partition("__")[0] not in accepted:
                if name in learner_class.flat_names:
                    remedy = f"write {parameter_text(learner_class, name, '...')}"
                else:
                    remedy = nearest(name, settable)
                raise PlanError(
                    f"{name!r} is not a parameter of {spec.method}; {remedy}", (*path, place, name)
                )


def _check_options(spec: LearnerSpec, path: Path) -> None:
    """Refuse options that the search lacks, and shares of a method without budget groups."""
    if spec.search is not None:
        set_by_plan = (*SET_BY_CELL, "estimator", "candidates")
        parameters = inspect.signature(load(SEARCHES[spec.search.how])).parameters
        options = [name for name in parameters if name not in set_by_plan]
        for name in spec.search.options:
            if name not in options:
                raise PlanError(
                    f"{name!r} is not an option of a {spec.search.how} search;"
                    f" {nearest(name, options)}",
                    (*path, "search", "options"),
                )

    learner_class = load(METHODS[spec.method])
    if spec.shares and "groups" not in inspect.signature(learner_class.fit).parameters:
        raise PlanError(f"{spec.method} has no budget groups; leave shares out", (*path, "shares"))


def _variants(spec: LearnerSpec, path: Path) -> Iterator[Variant]:
    """Yield a learner with every combination of its grid."""
    for values in product(*spec.grid.values()):
        combination = dict(zip(spec.grid, values, strict=True))
        settings = [f"{name}={value}" for name, value in combination.items()]
        label = ", ".join([spec.name, *settings])
        yield Variant(spec, path, spec.parameters | combination, label)


def _publics(variant: Variant, source: DataSource) -> Iterator[tuple[str | None, int | None]]:
    """Yield each public set and number of its rows, or (None, None) for a learner without."""
    spec = variant.spec
    if not spec.public:
        _check_without_public(variant)
        yield None, None
        return

    if "public" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(
            f"{spec.method} takes no public rows; leave public out", (*variant.path, "public")
        )
    public_names = [name for name, _ in source.public]
    for name in spec.public:
        if name not in public_names:
            raise PlanError(
                f"public set {name!r} is not among the data's; {nearest(name, public_names)}",
                (*variant.path, "public"),
            )

    numbers_of_rows = spec.public_rows or (None,)
    for name, (position, n_rows) in product(spec.public, enumerate(numbers_of_rows)):
        try:
            public_rows(source, name, n_rows)
        except InputError as error:
            raise PlanError(str(error), (*variant.path, "public_rows", position)) from error
        yield name, n_rows


def _check_without_public(variant: Variant) -> None:
    """Refuse a learner without public sets that needs one."""
    spec = variant.spec

    # `projected` needs public rows for one of its settings only
    public_prototypes = variant.parameters.get("prototypes") == "public"
    if load(METHODS[spec.method]).needs_public or public_prototypes:
        raise PlanError(
            f"{spec.method} needs public rows; name a public set: public: [NAME]", variant.path
        )
    if spec.public_rows:
        raise PlanError(
            "public_rows is for a public set; name one with public",
            (*variant.path, "public_rows"),
        )


def _names(variant: Variant, source: DataSource) -> bool:
    """Return whether rows of class names are used."""
    spec = variant.spec
    if not spec.names:
        return False

    path = (*variant.path, "names")
    if "names" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(f"{spec.method} takes no class names; leave names out", path)
    if source.names is None:
        raise PlanError(
            "the data have no rows of class names; give the data set names: PATH, or leave names"
            " out",
            path,
        )
    return True


def _budgets(plan: Plan, variant: Variant) -> Iterator[tuple[Path, Any]]:
    """Yield each budget, after the path to it."""
    budgets = plan.budgets
    path: Path = ("budgets",)
    if variant.spec.budgets:
        budgets = variant.spec.budgets
        path = (*variant.path, "budgets")

    for position, value in enumerate(budgets):
        budget_path = (*path, position)
        budget = _plain_budget(value, budget_path)
        _check_groups(variant.spec, budget, budget_path)
        yield budget_path, budget


def _check_groups(spec: LearnerSpec, budget: Any, path: Path) -> None:
    """Refuse personal budgets without shares of the same groups, or of a method that takes none."""
    groups = [] if isinstance(budget, str) else list(budget["groups"])
    if groups and "budgets" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(
            f"{spec.method} has no personal budgets; write rho=... or epsilon=...,delta=...", path
        )
    if set(groups) != set(spec.shares):
        raise PlanError(
            f"learner {spec.name!r} has shares of {_group_list(spec.shares)} and a budget of"
            f" {_group_list(groups)}; give both for the same groups",
            path,
        )


def _group_list(groups: Iterable[Any]) -> str:
    return ", ".join(map(str, groups)) or "no group"


def _plain_budget(budget: Any, path: Path) -> Any:
    """Return a budget as text, or as a mapping of `groups` and `delta`; refuse anything else."""
    if isinstance(budget, str):
        return budget.strip()
    if isinstance(budget, float) and budget == math.inf:
        # YAML's .inf
        return INFINITE

    is_personal = isinstance(budget, Mapping) and set(budget) == {"groups", "delta"}
    if is_personal and isinstance(budget["groups"], Mapping):
        return {"groups": dict(budget["groups"]), "delta": budget["delta"]}

    forms = "rho=0.5, epsilon=1, epsilon=1,delta=1e-6, inf, or {groups: {a: 1, b: 2}, delta: 1e-5}"
    raise PlanError(f"budget {budget!r:.60} is not a budget; write {forms}", path)


def _check_learner(cell: Cell, variant: Variant, budget_path: Path) -> None:
    """Check that the learner has a privacy cost for this budget under the plan's unit, and takes
    data of this shape.
    """
    n, width = records(cell.source, None, cell.subset_seed).x.shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every cell records the warnings of its fit
            learner = cell.make(list(cell.source.classes), **cell.public_inputs())
            learner.check(n, width, **cell.groups(n))
    except BudgetError as error:
        raise PlanError(f"learner {cell.learner!r}: {error}", budget_path) from error
    except (TacitError, TypeError) as error:
        path = _path_of_fault(variant, str(error))
        raise PlanError(f"learner {cell.learner!r}: {error}", path) from error


def _path_of_fault(variant: Variant, message: str) -> Path:
    """Return the path to the parameter that a message begins with, as in "k=0 must be ..."."""
    name = message.partition("=")[0]
    for place in ("parameters", "grid"):
        if name in getattr(variant.spec, place):
            return (*variant.path, place, name)
    return variant.path


def _tuning(spec: LearnerSpec) -> str:
    """Return how the parameters of a learner are chosen, as results state it."""
    if spec.search is None:
        return spec.tuning or "none"
    if spec.search.how == "unpaid":
        return "unpaid"
    return "paid"
