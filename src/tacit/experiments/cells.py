"""Cells: what a plan multiplies out to. A cell holds all that decides its result, and is named by a hash of that."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from tacit.errors import BudgetError, InputError, TacitError
from tacit.experiments.plan import SEARCHES, LearnerSpec, Plan, SearchSpec, nearest
from tacit.experiments.sources import Source, check_imbalance, of_public, problem, public_rows
from tacit.experiments.yaml_lines import PlanError
from tacit.learners.methods import METHODS, load
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.version import __version__

OWN = ("budget", "budgets", "classes", "noise", "random_state", "unit", "ledger", "public")
"""Parameters that a cell sets by itself."""
STREAM = 0x6072  # beside the seed: groups are dealt to records in an order of their own
KEY_LENGTH = 20
MOST_CELLS = 50_000
INFINITE = "inf"
NEEDS_PUBLIC = ("auto", "pate", "public")
REALISED = "realised"
"""Value of `counts` in a plan: the class sizes of the cell's training records, as published code takes them."""


@dataclass(frozen=True)
class Cell:
    """One fit and its measurement.

    Parameters
    ----------
    plan, data, encoder, learner : str
        Names.
    source : Source
        Where the data are, and hashes of their content.
    method : str
    parameters, search, shares : str
        As JSON.
    public : str or None
    public_rows : int or None
    budget : str
        As JSON: a text, or the budgets of groups and their delta.
    imbalance : float
    subset_seed, seed : int
    unit : str
    delta : float
    tuning : str
    keep : tuple of str
    timed : bool
    """

    plan: str
    data: str
    encoder: str
    learner: str
    source: Source
    method: str
    parameters: str
    search: str
    shares: str
    public: str | None
    public_rows: int | None
    budget: str
    imbalance: float
    subset_seed: int
    seed: int
    unit: str
    delta: float
    tuning: str
    keep: tuple[str, ...]
    timed: bool = False

    @property
    def key(self) -> str:
        """Hash of everything that decides the result; where the files are and the plan's name do not."""
        apart = ("plan", "source") if self.timed else ("plan", "source", "timed")
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in apart}
        used = ["train", "test"] + ([] if self.public is None else [of_public(self.public)])
        source = self.source
        data = [[source.hash_of(part) for part in used], source.builtin, source.classes, source.rows, source.test_rows]
        content = [__version__, data, values]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]

    @property
    def shown_budget(self) -> str:
        """The budget on one line."""
        budget = json.loads(self.budget)
        if isinstance(budget, str):
            return budget
        return ",".join(f"{name}={value:g}" for name, value in budget["groups"].items()) + f",delta={budget['delta']:g}"

    def groups(self, n: int) -> dict[str, Any]:
        """Argument of `fit`: budget groups of n records, dealt out by position and a public seed, if there are any."""
        shares = json.loads(self.shares)
        if not shares:
            return {}
        ends = np.cumsum(list(shares.values())) / sum(shares.values()) * n
        place = np.searchsorted(ends, np.random.default_rng([self.subset_seed, STREAM]).permutation(n), side="right")
        return {"groups": np.array(list(shares))[np.minimum(place, len(shares) - 1)]}

    @property
    def realised(self) -> bool:
        """Whether the learner is told how many training records each class has."""
        return bool(json.loads(self.parameters).get("counts") == REALISED)

    def guarantee(self, learner: Any) -> Guarantee:
        """That of the fitted learner, which says where its counts are the realised ones."""
        own: Guarantee = learner.guarantee_
        if not self.realised:
            return own
        said = (f"class counts ({REALISED})" if one.startswith("class counts") else one for one in own.unprotected)
        return replace(own, unprotected=tuple(said))

    def make(self, public: Any = None, classes: Any = None, sizes: Any = 1) -> Any:
        """The learner, for research, with noise that follows from the key; `sizes` are the realised counts."""
        common: dict[str, Any] = {"unit": self.unit, "noise": "research", "random_state": int(self.key, 16) % 2**32}
        common |= {} if classes is None else {"classes": classes}
        parameters, search = json.loads(self.parameters), json.loads(self.search)
        if self.realised:
            parameters["counts"] = np.maximum(sizes, 1).tolist()  # a class without records counts as one
        if public is not None:
            parameters["public"] = public
        kind = load(METHODS[self.method])
        if search is None:
            return kind(**parameters, **_budget(json.loads(self.budget)), **common)
        make = load(SEARCHES[search["how"]])
        return make(
            kind(**parameters), search["candidates"], **search["options"], **_budget(json.loads(self.budget)), **common
        )


def _budget(given: Any) -> dict[str, Any]:
    if not isinstance(given, str):
        return {"budgets": given["groups"], "delta": given["delta"]}
    return {"budget": Budget.zcdp(float("inf")) if given == INFINITE else given}


@dataclass(frozen=True)
class _Variant:
    """A learner of the plan with one combination of its grid."""

    spec: LearnerSpec
    path: tuple[str | int, ...]
    parameters: Mapping[str, Any]
    label: str


def cells(plan: Plan, sources: Sequence[Source]) -> list[Cell]:
    """All cells of a plan, neighbours sharing their data; every learner checks its parameters and public rows.

    Raises
    ------
    PlanError
        If a learner refuses its parameters, a budget, the unit or the shape of the data, or there are fewer public rows
        or records than the plan needs; nothing has run then.
    """
    _check_number(plan)
    _check_imbalance(plan, sources)
    variants = [one for number, spec in enumerate(plan.learners) for one in _variants(spec, ("learners", number))]
    found: dict[str, Cell] = {}
    for (data, source), imbalance, variant in product(zip(plan.data, sources, strict=True), plan.imbalance, variants):
        for (public, rows), (place, budget) in product(_publics(variant, source), _budgets(plan, variant)):
            common: dict[str, Any] = {
                **_of_plan(plan), **_of_variant(variant), "data": data.name, "encoder": data.encoder, "source": source,
                "imbalance": imbalance, "public": public, "public_rows": rows, "budget": _text(budget, variant),
            }  # fmt: skip
            own = [Cell(seed=seed, **common) for seed in plan.seeds]
            if own[0].key in found:
                raise PlanError(f"learner {variant.label!r} repeats other cells; remove one of them", variant.path)
            if imbalance == plan.imbalance[0]:  # the others need no check of their own
                _check_learner(own[0], variant, place)
            found |= {cell.key: cell for cell in own}
    return list(found.values())


def _check_number(plan: Plan) -> None:
    """Refuse a plan of too many cells before any is made."""
    variants = sum(
        math.prod(map(len, one.grid.values())) * len(one.budgets or plan.budgets) * max(len(one.public), 1)
        * max(len(one.public_rows), 1)
        for one in plan.learners
    )  # fmt: skip
    number = variants * len(plan.data) * len(plan.imbalance) * len(plan.seeds)
    if number > MOST_CELLS:
        raise PlanError(f"the plan has {number} cells, at most {MOST_CELLS} can be; make several plans of it")


def _check_imbalance(plan: Plan, sources: Sequence[Source]) -> None:
    """Whether every class keeps records."""
    for (data, source), (number, ratio) in product(zip(plan.data, sources, strict=True), enumerate(plan.imbalance)):
        try:
            check_imbalance(source, ratio)
        except InputError as error:
            raise PlanError(f"imbalance of {data.name!r}: {error}", ("imbalance", number)) from error


def _of_plan(plan: Plan) -> dict[str, Any]:
    names = ("unit", "delta", "subset_seed", "timed")
    return {"plan": plan.name} | {name: getattr(plan, name) for name in names}


def _of_variant(variant: _Variant) -> dict[str, Any]:
    spec = variant.spec
    return {
        "learner": variant.label,
        "method": spec.method,
        "parameters": _text(variant.parameters, variant),
        "search": _text(spec.search and spec.search.model_dump(), variant),
        "shares": _text(spec.shares, variant),
        "tuning": _tuning(spec),
        "keep": tuple(spec.keep),
    }


def _variants(spec: LearnerSpec, path: tuple[str | int, ...]) -> Iterator[_Variant]:
    kind = load(METHODS[spec.method])
    accepted = inspect.signature(kind).parameters
    for place in ("parameters", "grid"):
        for name in getattr(spec, place):
            if name in OWN:
                raise PlanError(f"{name} is set by the plan, not among {place}; leave it out", (*path, place, name))
            if name not in accepted:
                free = [one for one in accepted if one not in OWN]
                raise PlanError(
                    f"{name!r} is no parameter of {spec.method}; {nearest(name, free)}", (*path, place, name)
                )
    if spec.search is not None:
        _check_search(spec.search, (*path, "search"))
    if spec.shares and "groups" not in inspect.signature(kind.fit).parameters:
        raise PlanError(f"{spec.method} has no budget groups; leave shares out", (*path, "shares"))
    for values in product(*spec.grid.values()):
        chosen = dict(zip(spec.grid, values, strict=True))
        label = ", ".join([spec.name, *(f"{name}={value}" for name, value in chosen.items())])
        yield _Variant(spec, path, spec.parameters | chosen, label)


def _check_search(search: SearchSpec, path: tuple[str | int, ...]) -> None:
    free = [name for name in inspect.signature(load(SEARCHES[search.how])).parameters if name not in OWN]
    for name in search.options:
        if name not in free or name in ("estimator", "candidates"):
            raise PlanError(
                f"{name!r} is no option of a {search.how} search; {nearest(name, free)}", (*path, "options")
            )


def _publics(variant: _Variant, source: Source) -> Iterator[tuple[str | None, int | None]]:
    """Public set and number of its rows, or neither."""
    spec, known = variant.spec, [name for name, _ in source.public]
    takes = "public" in inspect.signature(load(METHODS[spec.method])).parameters
    chosen = variant.parameters.get("prototypes") == "public"  # of projected
    if (spec.method in NEEDS_PUBLIC or chosen) and not spec.public:
        raise PlanError(f"{spec.method} needs public rows; name a public set: public: [NAME]", variant.path)
    if spec.public_rows and not spec.public:
        raise PlanError("public_rows is for a public set; name one with public", (*variant.path, "public_rows"))
    if spec.public and not takes:
        raise PlanError(f"{spec.method} takes no public rows; leave public out", (*variant.path, "public"))
    for name in spec.public:
        if name not in known:
            raise PlanError(
                f"public set {name!r} is not among the data's; {nearest(name, known)}", (*variant.path, "public")
            )
    if not spec.public:
        yield None, None
    for name, (number, rows) in product(spec.public, enumerate(spec.public_rows or (None,))):
        try:
            public_rows(source, name, rows)
        except InputError as error:
            raise PlanError(str(error), (*variant.path, "public_rows", number)) from error
        yield name, rows


def _budgets(plan: Plan, variant: _Variant) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each budget, and the path to it."""
    place: tuple[str | int, ...] = (*variant.path, "budgets") if variant.spec.budgets else ("budgets",)
    for number, budget in enumerate(variant.spec.budgets or plan.budgets):
        plain = _plain_budget(budget, (*place, number))
        _check_groups(variant.spec, plain, (*place, number))
        yield (*place, number), plain


def _check_groups(spec: LearnerSpec, budget: Any, path: tuple[str | int, ...]) -> None:
    """Personal budgets need shares of the same groups, and a method that has such budgets."""
    groups = [] if isinstance(budget, str) else list(budget["groups"])
    if groups and "budgets" not in inspect.signature(load(METHODS[spec.method])).parameters:
        raise PlanError(f"{spec.method} has no personal budgets; write rho=0.5 or epsilon=1,delta=1e-6", path)
    if set(groups) != set(spec.shares):
        raise PlanError(
            f"learner {spec.name!r} has shares of {', '.join(spec.shares) or 'no group'} and a budget of "
            f"{', '.join(map(str, groups)) or 'no group'}; give both for the same groups",
            path,
        )


def _plain_budget(budget: Any, path: tuple[str | int, ...]) -> Any:
    if isinstance(budget, str):
        return budget.strip()
    if isinstance(budget, float) and budget == math.inf:  # YAML's .inf
        return INFINITE
    if isinstance(budget, Mapping) and set(budget) == {"groups", "delta"} and isinstance(budget["groups"], Mapping):
        return {"groups": dict(budget["groups"]), "delta": budget["delta"]}
    raise PlanError(
        f"budget {budget!r:.60} is no budget; write rho=0.5, epsilon=1, epsilon=1,delta=1e-6, inf, "
        "or {groups: {a: 1, b: 2}, delta: 1e-5}",
        path,
    )


def _check_learner(cell: Cell, variant: _Variant, place: tuple[str | int, ...]) -> None:
    """Whether the learner states a price for this budget under the plan's unit, and takes data of this shape."""
    n, width = problem(cell.source, 1.0, cell.subset_seed).x.shape
    public = None if cell.public is None else public_rows(cell.source, cell.public, cell.public_rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every cell keeps those of its fit
            cell.make(public, list(cell.source.classes)).check(n, width, **cell.groups(n))
    except BudgetError as error:
        raise PlanError(f"learner {cell.learner!r}: {error}", place) from error
    except (TacitError, TypeError) as error:
        raise PlanError(f"learner {cell.learner!r}: {error}", _place_of(str(error), variant)) from error


def _place_of(said: str, variant: _Variant) -> tuple[str | int, ...]:
    """Where the parameter is that a message begins with, as in "k=0 must be ..."; else the learner."""
    name = said.partition("=")[0]
    places = [place for place in ("parameters", "grid") if name in getattr(variant.spec, place)]
    return (*variant.path, *places, *([name] if places else []))


def _tuning(spec: LearnerSpec) -> str:
    if spec.search is not None:
        return "unpaid" if spec.search.how == "unpaid" else "paid"
    return spec.tuning or "none"


def _text(value: Any, variant: _Variant) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        said = f"learner {variant.label!r} has a value that is no plain text, number or list; correct it"
        raise PlanError(said, variant.path) from error
