"""An agreed recipe: the class list and recipe of a summary, which other owners follow.

Sums add up only if they were made by one recipe, so an owner compares what is agreed with the data
before anything is spent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import InputError, excerpt, quoted
from tacit.models.rows import Floats
from tacit.models.summarised import same_centre
from tacit.releases import reading
from tacit.releases.adding import check_alike
from tacit.releases.combination import united_classes
from tacit.releases.fields import NOT_STATED
from tacit.releases.summary import Summary
from tacit.releases.summary_document import SummaryRecipe, centre_hash, different_centres
from tacit.releases.summary_files import DOCUMENT, LIMITS, parse_summary


class Agreement(NamedTuple):
    """What owners agreed on, as a summary states it.

    `centre` is None if there is none, or if only the document of the summary is there, which has
    its hash.
    """

    recipe: SummaryRecipe
    classes: tuple[Any, ...]
    centre: Floats | None
    where: str

    @property
    def class_list(self) -> str | None:
        """The name of the class list, if it is stated."""
        return None if self.recipe.class_list == NOT_STATED else self.recipe.class_list

    @classmethod
    def read(cls, path: Path | str) -> Agreement:
        """Read the folder of a summary, which is verified, or its summary.json alone."""
        path = Path(path)
        if path.is_file():
            document = parse_summary(str(path), reading.read_file(path, LIMITS[DOCUMENT]))
            return cls(document.recipe, united_classes(document.combination), None, str(path))
        summary = Summary.load(path).verify()
        return cls(summary.recipe, summary.classes, summary.centre, str(path))

    def check_classes(self, classes: tuple[Any, ...], where: str) -> None:
        """Refuse a class list whose labels are of another type, or differ by case or white space
        alone; further classes are welcome, since lists unite.
        """
        types = [{type(label).__name__ for label in labels} for labels in (classes, self.classes)]
        if types[0] != types[1]:
            raise InputError(
                f"classes of {where} are of type {'/'.join(sorted(types[0]))}, and those of"
                f" {self.where} of type {'/'.join(sorted(types[1]))}; write them in one way"
            )
        check_alike((*self.classes, *classes), (self.classes, classes))

    def check_within(self, classes: tuple[Any, ...], where: str) -> None:
        """Refuse a class list with classes that are not agreed on."""
        self.check_classes(classes, where)
        known = set(self.classes)
        new = [label for label in classes if label not in known]
        if new:
            listed = excerpt(", ".join(map(repr, new)))
            raise InputError(
                f"{where} declares classes that {self.where} does not list: {listed}; declare the"
                " list of this part with --classes (classes=...), since lists unite"
            )

    def check(self, recipe: SummaryRecipe, centre: Floats | None, where: str) -> None:
        """Refuse a recipe whose sums would not add up, and name the first difference.

        Raises
        ------
        InputError
            With both values.
        """
        if self.recipe.rows != recipe.rows:
            name = self.recipe.public_data.name
            of = "" if name == NOT_STATED else f" {quoted(name)}"
            remedy = f"give its public rows{of} with --public"
            if centre is not None:
                remedy = "leave --public out"
            raise InputError(
                f"{where} and {self.where} do not add up: the rows are {recipe.rows!r} here and"
                f" {self.recipe.rows!r} there; {remedy}"
            )
        difference = recipe.difference(self.recipe) or self._difference_of_centres(centre)
        if difference is not None:
            raise InputError(
                f"{where} and {self.where} do not add up: {difference}; make this summary by the"
                " recipe that was agreed on"
            )

    def _difference_of_centres(self, centre: Floats | None) -> str | None:
        """Compare centres; other processors round their last bits otherwise."""
        if centre is None:
            return None
        here = centre_hash(centre)
        there = self.recipe.centre_sha256
        if here == there:
            return None
        if self.centre is not None and same_centre(self.centre, centre):
            return None
        return different_centres(here, there)
