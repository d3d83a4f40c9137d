"""A cell: one fit and its measurement. It holds all that decides its result, and is named by a hash
of that.
"""

from __future__ import annotations

import hashlib
import json
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
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.version import __version__

STREAM = 0x6072  # beside the seed: the order in which groups are dealt to records
KEY_LENGTH = 20
INFINITE = "inf"
REALISED = "realised"
"""Value of `counts` in a plan: the class sizes of the cell's training records, as published code
takes them.
"""


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
    imbalance: float
    subset_seed: int
    seed: int
    unit: str
    delta: float
    tuning: str
    keep: tuple[str, ...]
    timed: bool = False
    names: bool = False

    @property
    def key(self) -> str:
        """Hash of everything that decides the result; where the files are and the plan's name do
        not.
        """
        left_out = [
            "plan",
            "source",
            *(name for name in ("timed", "names") if not getattr(self, name)),
        ]
        values = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in left_out
        }
        used = ["train", "test"] + ([] if self.public is None else [public_part(self.public)])
        used += [NAMES] if self.names else []
        used += [PERSONS] if Unit(self.unit).per_person else []
        source = self.source
        data = [
            [source.hash_of(part) for part in used],
            source.builtin,
            source.classes,
            source.rows,
            source.test_rows,
        ]
        content = [__version__, data, values]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]

    @property
    def shown_budget(self) -> str:
        """The budget on one line."""
        budget = json.loads(self.budget)
        if isinstance(budget, str):
            return budget
        return (
            ",".join(f"{name}={value:g}" for name, value in budget["groups"].items())
            + f",delta={budget['delta']:g}"
        )

    def groups(self, n: int) -> dict[str, Any]:
        """Argument of `fit`: budget groups of n records, dealt out by position and a public seed,
        if there are any.
        """
        shares = json.loads(self.shares)
        if not shares:
            return {}
        ends = np.cumsum(list(shares.values())) / sum(shares.values()) * n
        place = np.searchsorted(
            ends, np.random.default_rng([self.subset_seed, STREAM]).permutation(n), side="right"
        )
        return {"groups": np.array(list(shares))[np.minimum(place, len(shares) - 1)]}

    def of_records(self, records: Records) -> dict[str, Any]:
        """Arguments of `fit` beside rows and labels: budget groups, ids under a unit per person, a
        test set if needed.

        The test set measures the readings of one voting at several budgets.
        """
        persons = {"persons": records.persons} if Unit(self.unit).per_person else {}
        read = json.loads(self.parameters).get("limits") is not None
        test = {"test": (records.test_x, records.test_y)} if read else {}
        return self.groups(len(records.y)) | persons | test

    @property
    def realised(self) -> bool:
        """True if the learner is told how many training records each class has."""
        return bool(json.loads(self.parameters).get("counts") == REALISED)

    def guarantee(self, learner: Any) -> Guarantee:
        """The guarantee of the fitted learner, which says where its counts are the realised
        ones.
        """
        guarantee: Guarantee = learner.guarantee_
        if not self.realised:
            return guarantee
        counts = f"class counts ({REALISED})"
        unprotected = tuple(
            counts if name.startswith("class counts") else name for name in guarantee.unprotected
        )
        return replace(guarantee, unprotected=unprotected)

    def public_inputs(self) -> dict[str, Any]:
        """Arguments of `make`: the public rows and the rows of class names, None where they are not
        used.
        """
        public = (
            None if self.public is None else public_rows(self.source, self.public, self.public_rows)
        )
        return {"public": public, "names": names_rows(self.source) if self.names else None}

    def make(
        self, classes: Any = None, sizes: Any = 1, *, public: Any = None, names: Any = None
    ) -> Any:
        """The learner, for research, with noise that follows from the key; `sizes` are the realised
        counts.
        """
        common: dict[str, Any] = {
            "unit": self.unit,
            "noise": "research",
            "random_state": int(self.key, 16) % 2**32,
        }
        common |= {} if classes is None else {"classes": classes}
        budget, parameters, search = (
            json.loads(self.budget),
            json.loads(self.parameters),
            json.loads(self.search),
        )
        if isinstance(budget, str):
            common["budget"] = Budget.zcdp(float("inf")) if budget == INFINITE else budget
        else:
            common |= {"budgets": budget["groups"], "delta": budget["delta"]}
        if self.realised:
            # a class without records counts as one
            parameters["counts"] = np.maximum(sizes, 1).tolist()
        rows = {"public": public, "names": names}
        parameters |= {name: given for name, given in rows.items() if given is not None}
        learner = load(METHODS[self.method])().set_params(**parameters)
        if search is None:
            return learner.set_params(**common)
        return load(SEARCHES[search["how"]])(
            learner, search["candidates"], **search["options"], **common
        )
