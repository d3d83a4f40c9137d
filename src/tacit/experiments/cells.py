"""The cells that a plan multiplies out to, each checked against its data and its learner before
anything runs.
"""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tacit.data.imbalance import class_sizes
from tacit.errors import BudgetError, InputError, TacitError, nearest
from tacit.experiments.cell import INFINITE, Cell
from tacit.experiments.data import DataSource, public_rows, records
from tacit.experiments.plan import SEARCHES, LearnerSpec, Plan, nested
from tacit.experiments.yaml_lines import PlanError
from tacit.learners.methods import METHODS, load
from tacit.privacy.unit import Unit

SET_BY_CELL = (
    "budget",
    "budgets",
    "classes",
    "noise",
    "random_state",
    "unit",
    "ledger",
    "public",
    "names",
)
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
        """JSON of a part of the learner."""
        try:
            return json.dumps(value, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            fault = (
                f"learner {self.label!r} has a value that is not plain text, a number or a list;"
                " correct it"
            )
            raise PlanError(fault, self.path) from error


def cells(plan: Plan, sources: Sequence[DataSource]) -> list[Cell]:
    """All cells of a plan, neighbours sharing their data.

    Raises
    ------
    PlanError
        If a learner refuses its parameters, a budget, the unit or the shape of the data, or there
        are fewer public rows or records than the plan needs; nothing has run then.
    """
    _check_number(plan)
    data_sets = list(zip(plan.data, sources, strict=True))
    for (data, source), (number, ratio) in product(data_sets, enumerate(plan.imbalance)):
        sizes = records(source, 1.0, 0).sizes
        try:  # every class must keep records
            class_sizes(int(sizes[sizes > 0].min()), len(sizes), ratio)
        except InputError as error:
            raise PlanError(
                f"imbalance of {data.name!r}: {error}", ("imbalance", number)
            ) from error
    variants = [
        one
        for number, spec in enumerate(plan.learners)
        for one in _variants(spec, ("learners", number))
    ]
    by_key: dict[str, Cell] = {}
    for unit, (data, source) in product(plan.unit, data_sets):
        if Unit(unit).per_person and not source.has_persons:
            fault = f"unit {unit} needs person ids, and data {data.name!r} have none"
            raise PlanError(
                f"{fault}; give persons: FILE or COLUMN, or a store with ids", ("unit",)
            )
    for (data, source), imbalance, variant, unit in product(
        data_sets, plan.imbalance, variants, plan.unit
    ):
        for (public, rows), (place, budget) in product(
            _publics(variant, source), _budgets(plan, variant)
        ):
            spec = variant.spec
            first = Cell(
                plan=plan.name,
                data=data.name,
                encoder=data.encoder,
                learner=variant.label,
                source=source,
                method=spec.method,
                parameters=variant.as_json(variant.parameters),
                search=variant.as_json(spec.search and spec.search.model_dump()),
                shares=variant.as_json(spec.shares),
                public=public,
                public_rows=rows,
                budget=variant.as_json(budget),
                imbalance=imbalance,
                subset_seed=plan.subset_seed,
                seed=plan.seeds[0],
                unit=unit,
                delta=plan.delta,
                tuning=_tuning(spec),
                keep=tuple(spec.keep),
                timed=plan.timed,
                names=_names(variant, source),
            )
            if first.key in by_key:
                raise PlanError(
                    f"learner {variant.label!r} repeats other cells; remove one of them",
                    variant.path,
                )
            if imbalance == plan.imbalance[0]:  # at the others the learner would check the same
                _check_learner(first, variant, place)
            by_key |= {
                cell.key: cell for cell in (replace(first, seed=seed) for seed in plan.seeds)
            }
    return list(by_key.values())


def _check_number(plan: Plan) -> None:
    """Refuse a plan of too many cells before it makes any."""
    number = (
        len(plan.data)
        * len(plan.imbalance)
        * len(plan.seeds)
        * len(plan.unit)
        * sum(
            math.prod(map(len, one.grid.values()))
            * len(one.budgets or plan.budgets)
            * max(len(one.public), 1)
            * max(len(one.public_rows), 1)
            for one in plan.learners
        )
    )
    if number > MOST_CELLS:
        raise PlanError(
            f"the plan has {number} cells, more than {MOST_CELLS}; split it into several plans"
        )


def _variants(spec: LearnerSpec, path: Path) -> Iterator[Variant]:
    kind = load(METHODS[spec.method])
    accepted = list(inspect.signature(kind).parameters)
    for place in ("parameters", "grid"):
        for name in getattr(spec, place):
            if name in SET_BY_CELL:
                raise PlanError(
                    f"{name} is set by the plan, not among {place}; leave it out",
                    (*path, place, name),
                )
            if name.partition("__")[0] not in accepted:
                free = [one for one in accepted if one not in SET_BY_CELL]
                remedy = (
                    f"write {nested(kind, name, '...')}"
                    if name in kind.flat_names
                    else nearest(name, free)
                )
                raise PlanError(
                    f"{name!r} is not a parameter of {spec.method}; {remedy}", (*path, place, name)
                )
    if spec.search is not None:
        options = inspect.signature(load(SEARCHES[spec.search.how])).parameters
        free = [name for name in options if name not in (*SET_BY_CELL, "estimator", "candidates")]
        for name in spec.search.options:
            if name not in free:
                fault = (
                    f"{name!r} is not an option of a {spec.search.how} search;"
                    f" {nearest(name, free)}"
                )
                raise PlanError(fault, (*path, "search", "options"))
    if spec.shares and "groups" not in inspect.signature(kind.fit).parameters:
        raise PlanError(f"{spec.method} has no budget groups; leave shares out", (*path, "shares"))
    for values in product(*spec.grid.values()):
        chosen = dict(zip(spec.grid, values, strict=True))
        label = ", ".join([spec.name, *(f"{name}={value}" for name, value in chosen.items())])
        yield Variant(spec, path, spec.parameters | chosen, label)


def _publics(variant: Variant, source: DataSource) -> Iterator[tuple[str | None, int | None]]:
    """Public set and number of its rows, or neither."""
    spec, known = variant.spec, [name for name, _ in source.public]
    kind = load(METHODS[spec.method])
    if spec.public and "public" not in inspect.signature(kind).parameters:
        raise PlanError(
            f"{spec.method} takes no public rows; leave public out", (*variant.path, "public")
        )
    if not spec.public:
        # the latter of `projected`
        if kind.needs_public or variant.parameters.get("prototypes") == "public":
            raise PlanError(
                f"{spec.method} needs public rows; name a public set: public: [NAME]", variant.path
            )
        if spec.public_rows:
            raise PlanError(
                "public_rows is for a public set; name one with public",
                (*variant.path, "public_rows"),
            )
        yield None, None
    for name in spec.public:
        if name not in known:
            fault = f"public set {name!r} is not among the data's; {nearest(name, known)}"
            raise PlanError(fault, (*variant.path, "public"))
    for name, (number, rows) in product(spec.public, enumerate(spec.public_rows or (None,))):
        try:
            public_rows(source, name, rows)
        except InputError as error:
            raise PlanError(str(error), (*variant.path, "public_rows", number)) from error
        yield name, rows


def _names(variant: Variant, source: DataSource) -> bool:
    """Whether rows of class names are used."""
    spec = variant.spec
    if spec.names and "names" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(
            f"{spec.method} takes no class names; leave names out", (*variant.path, "names")
        )
    if spec.names and source.names is None:
        fault = "the data have no rows of class names"
        raise PlanError(
            f"{fault}; give the data set names: PATH, or leave names out", (*variant.path, "names")
        )
    return spec.names


def _budgets(plan: Plan, variant: Variant) -> Iterator[tuple[Path, Any]]:
    """Each budget, after the path to it."""
    place: Path = (*variant.path, "budgets") if variant.spec.budgets else ("budgets",)
    for number, stated in enumerate(variant.spec.budgets or plan.budgets):
        budget = _plain_budget(stated, (*place, number))
        _check_groups(variant.spec, budget, (*place, number))
        yield (*place, number), budget


def _check_groups(spec: LearnerSpec, budget: Any, path: Path) -> None:
    """Personal budgets need shares of the same groups, and a method that has such budgets."""
    groups = [] if isinstance(budget, str) else list(budget["groups"])
    if groups and "budgets" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(
            f"{spec.method} has no personal budgets; write rho=... or epsilon=...,delta=...", path
        )
    if set(groups) != set(spec.shares):
        shares, of_budget = (
            ", ".join(map(str, names)) or "no group" for names in (spec.shares, groups)
        )
        fault = f"learner {spec.name!r} has shares of {shares} and a budget of {of_budget}"
        raise PlanError(f"{fault}; give both for the same groups", path)


def _plain_budget(budget: Any, path: Path) -> Any:
    if isinstance(budget, str):
        return budget.strip()
    if isinstance(budget, float) and budget == math.inf:  # YAML's .inf
        return INFINITE
    if (
        isinstance(budget, Mapping)
        and set(budget) == {"groups", "delta"}
        and isinstance(budget["groups"], Mapping)
    ):
        return {"groups": dict(budget["groups"]), "delta": budget["delta"]}
    forms = "rho=0.5, epsilon=1, epsilon=1,delta=1e-6, inf, or {groups: {a: 1, b: 2}, delta: 1e-5}"
    raise PlanError(f"budget {budget!r:.60} is not a budget; write {forms}", path)


def _check_learner(cell: Cell, variant: Variant, place: Path) -> None:
    """Check that the learner has a privacy cost for this budget under the plan's unit, and takes
    data of this shape.
    """
    n, width = records(cell.source, 1.0, cell.subset_seed).x.shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every cell records the warnings of its fit
            cell.make(list(cell.source.classes), **cell.public_inputs()).check(
                n, width, **cell.groups(n)
            )
    except BudgetError as error:
        raise PlanError(f"learner {cell.learner!r}: {error}", place) from error
    except (TacitError, TypeError) as error:
        # a message may begin with a parameter, as in "k=0 must be ..."
        name = str(error).partition("=")[0]
        places = [place for place in ("parameters", "grid") if name in getattr(variant.spec, place)]
        path = (*variant.path, *places, *([name] if places else []))
        raise PlanError(f"learner {cell.learner!r}: {error}", path) from error


def _tuning(spec: LearnerSpec) -> str:
    if spec.search is not None:
        return "unpaid" if spec.search.how == "unpaid" else "paid"
    return spec.tuning or "none"
