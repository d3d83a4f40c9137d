"""A cell: one fit and its measurement.

It holds all that decides its result, and its key is a hash of that.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tacit.experiments.data import (
    NAMES,
    PERSONS,
    DataSource,
    Records,
    names_rows,
    public_part,
    public_rows,
)
from tacit.experiments.plan import SEARCHES
from tacit.learners.methods import METHODS, load
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.version import __version__

# random stream, beside the seed, for the order in which budget groups are dealt to records
STREAM = 0x6072

# parameters of learners that each cell sets from the plan
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

# hexadecimal digits of a key
KEY_LENGTH = 20

# the budget of a learner without privacy
INFINITE = "inf"

# value of `counts` in a plan: the class sizes of the cell's training records, which published code
# takes to be public
REALISED = "realised"


@dataclass(frozen=True)
class Cell:
    """One fit and its measurement; `parameters`, `search`, `shares` and `budget` are JSON."""

    plan: str
    data: str
    encoder: str
    learner: str
    source: DataSource
    method: str
    parameters: str
    search: str
    shares: str
    public: str | None
    public_rows: int | None
    budget: str
    imbalance: float | None
    subset_seed: int
    seed: int
    unit: str
    delta: float
    tuning: str
    keep: tuple[str, ...]
    timed: bool = False
    names: bool = False

    # at imbalance 1, whether records of larger classes are left out
    balanced: bool = False

    @property
    def key(self) -> str:
        """Hash of everything that decides the result.

        The name of the plan and the paths of the files decide nothing.
        """
        omitted_fields = ["plan", "source"]
        # absent unless set: cells without them keep the keys from before these fields existed
        for name in ("timed", "names", "balanced"):
            if not getattr(self, name):
                omitted_fields.append(name)
        values = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in omitted_fields
        }

        # the parts of the data set that this cell uses
        parts = ["train", "test"]
        if self.public is not None:
            parts.append(public_part(self.public))
        if self.names:
            parts.append(NAMES)
        if Unit(self.unit).per_person:
            parts.append(PERSONS)

        source = self.source
        data = [
            [source.hash_of(part) for part in parts],
            source.builtin,
            source.classes,
            source.rows,
            source.test_rows,
        ]
        text = json.dumps([__version__, data, values], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    @property
    def shown_budget(self) -> str:
        """The budget on one line."""
        budget = json.loads(self.budget)
        if isinstance(budget, str):
            return budget
        group_budgets = [f"{name}={rounded_up(value)}" for name, value in budget["groups"].items()]
        return ",".join([*group_budgets, f"delta={rounded_up(budget['delta'])}"])

    def groups(self, n: int) -> dict[str, Any]:
        """Return the argument `groups` of `fit`, if the plan has budget groups.

        The n records are dealt to groups by position and a public seed.
        """
        shares = json.loads(self.shares)
        if not shares:
            return {}

        names = list(shares)
        group_shares = list(shares.values())
        # records in a random order; each group takes those before its end
        ends = np.cumsum(group_shares) / sum(group_shares) * n
        places = np.random.default_rng([self.subset_seed, STREAM]).permutation(n)
        indices = np.searchsorted(ends, places, side="right")

        # rounding may put the last end below n
        indices = np.minimum(indices, len(names) - 1)
        return {"groups": np.array(names)[indices]}

    def fit_arguments(self, records: Records) -> dict[str, Any]:
        """Return the arguments of `fit` beside rows and labels."""
        arguments = self.groups(len(records.y))
        if Unit(self.unit).per_person:
            arguments["persons"] = records.persons

        # a voting that is read at several budgets measures a student of each on the test set
        if json.loads(self.parameters).get("limits") is not None:
            arguments["test"] = (records.test_x, records.test_y)
        return arguments

    @property
    def has_search(self) -> bool:
        """True if the parameters are chosen on the private records."""
        return json.loads(self.search) is not None

    @property
    def has_realised_counts(self) -> bool:
        """True if the learner is told how many training records each class has."""
        return bool(json.loads(self.parameters).get("counts") == REALISED)

    def guarantee(self, learner: Any) -> Guarantee:
        """Return the guarantee of the fitted learner.

        It states where the class counts are the realised ones, which it does not protect.
        """
        guarantee: Guarantee = learner.guarantee_
        if not self.has_realised_counts:
            return guarantee

        unprotected = []
        for name in guarantee.unprotected:
            if name.startswith("class counts"):
                unprotected.append(f"class counts ({REALISED})")
            else:
                unprotected.append(name)
        return replace(guarantee, unprotected=tuple(unprotected))

    def public_inputs(self) -> dict[str, Any]:
        """Return the arguments of `make` that are rows, None where the cell uses none."""
        public = None
        if self.public is not None:
            public = public_rows(self.source, self.public, self.public_rows)

        names = None
        if self.names:
            names = names_rows(self.source)
        return {"public": public, "names": names}

    def make(
        self, classes: Any = None, sizes: Any = 1, *, public: Any = None, names: Any = None
    ) -> Any:
        """Return the learner, with research noise whose seed follows from the key.

        Parameters
        ----------
        classes : sequence, optional
        sizes : ndarray of int
            Training records of each class, for realised counts.
        public : ndarray, optional
            Public rows.
        names : list of ndarray, optional
            Rows of the name of each class.
        """
        # parameters of all learners, which a search takes in the place of its learner
        common: dict[str, Any] = {
            "unit": self.unit,
            "noise": "research",
            "random_state": int(self.key, 16) % 2**32,
        }
        if classes is not None:
            common["classes"] = classes

        budget = json.loads(self.budget)
        if not isinstance(budget, str):
            common["budgets"] = budget["groups"]
            common["delta"] = budget["delta"]
        elif budget == INFINITE:
            common["budget"] = Budget.zcdp(math.inf)
        else:
            common["budget"] = budget

        parameters = json.loads(self.parameters)
        if self.has_realised_counts:
            # learners take counts of 1 or more, also of a class without records
            parameters["counts"] = np.maximum(sizes, 1).tolist()
        if public is not None:
            parameters["public"] = public
        if names is not None:
            parameters["names"] = names
        learner = load(METHODS[self.method])().set_params(**parameters)

        search = json.loads(self.search)
        if search is None:
            return learner.set_params(**common)
        search_class = load(SEARCHES[search["how"]])
        return search_class(learner, search["candidates"], **search["options"], **common)
