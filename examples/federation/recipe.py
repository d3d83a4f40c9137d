"""What the owners and the server agree on before a round, in a file that each of them has."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import tacit

FILE = "recipe.json"
PUBLIC = "public.npy"


@dataclass(frozen=True)
class Recipe:
    """How records become a summary, and its price.

    Parameters
    ----------
    study : str
        A name of this round, which stands in the summary as the meaning of its classes.
    encoder : str
        The public encoder that made the rows, with its revision.
    width : int
        Columns of the rows.
    classes : tuple of str
        The classes that may occur.
    public_sha256 : str
        Hash of the file of public rows, whose mean is the centre of all sums.
    budget, unit : str
        What the summary may cost, and which two sets of records must look alike.
    """

    study: str
    encoder: str
    width: int
    classes: tuple[str, ...]
    public_sha256: str
    budget: str
    unit: str

    @classmethod
    def of_json(cls, text: str) -> Recipe:
        """Read a recipe from a file or a request.

        Raises
        ------
        ValueError
            If it is no JSON object with exactly these fields.
        """
        values = json.loads(text)
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or sorted(values) != sorted(names):
            raise ValueError(f"a recipe has the fields {', '.join(names)}")
        return cls(**{**values, "classes": tuple(values["classes"])})

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @property
    def digest(self) -> str:
        """Sixteen digits of the hash of the recipe."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def difference(self, other: Recipe) -> str | None:
        """Name the first field in which another recipe differs; None if it is the same."""
        for field in fields(self):
            mine = getattr(self, field.name)
            theirs = getattr(other, field.name)
            if mine != theirs:
                return f"{field.name} is {theirs!r:.200}, and {mine!r:.200} was agreed on"
        return None

    def summary_of(self, X: Any, y: Any, *, part: str, public: Any, **others: Any) -> Any:
        """Make the summary of records.

        Parameters
        ----------
        X, y : array of shape (n, d) and array of shape (n,)
        part : str
            Name of the records.
        public : array of shape (m, d)
            The public rows.
        others
            `persons` and `ledger`, which is charged; `allow_overlap`.

        Returns
        -------
        tacit.Summary
        """
        persons = others.pop("persons", None)
        clf = tacit.ClassSummary(
            self.budget,
            classes=list(self.classes),
            part=part,
            public=public,
            unit=self.unit,
            **others,
        )
        return tacit.Summary.of(
            clf.fit(X, y, persons=persons),
            name=f"{self.study}: {part}",
            encoder={"name": self.encoder},
            public={"name": PUBLIC, "hash": self.public_sha256},
            class_list=self.study,
        )


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
