"""The unit of privacy: the neighbouring relation, which says what two data sets must be
indistinguishable.

An epsilon means nothing without its neighbouring relation. So every guarantee has a unit, and
numbers under different units are never compared without a conversion (`Guarantee.to`). A unit is
one record or one person: where people have several records each, a guarantee per record hides one
of them and not the person.
"""

from enum import StrEnum
from typing import Any

from tacit.errors import InputError, quoted


class Unit(StrEnum):
    """The neighbouring relation: which change of the private data the guarantee hides."""

    ADD_REMOVE = "add-remove"
    """One record is added or removed; the number of records is protected too. Data sets have at
    least one record: learners refuse an empty data set, so nothing is claimed about the first
    record."""

    REPLACE = "replace"
    """One record, features and label, is replaced by any other; the number of records is public."""

    CHANGE_LABEL = "change-label"
    """One record gets another label; its features, the order of records and their number are
    public. A table sorted by label must be shuffled first, since the position of a row would reveal
    its label."""

    ADD_REMOVE_PERSON = "add-remove-person"
    """One person, with all their records, is added or removed; numbers of persons and of records
    are protected too.
    """

    REPLACE_PERSON = "replace-person"
    """One person, with all their records, is replaced by any other person with any records; the
    number of persons is public, the number of records is not."""

    CHANGE_LABELS_OF_PERSON = "change-labels-of-person"
    """All records of one person get other labels; features, ids, the order of records and all
    numbers are public.
    """

    @classmethod
    def _missing_(cls, value: object) -> "Unit":
        raise InputError(
            f"unit={quoted(value)} must be one of {', '.join(cls)}; pass for example"
            " unit='add-remove'"
        )

    @property
    def per_person(self) -> bool:
        """True if the unit is a person with all their records, so that learners need an id for each
        record.
        """
        return self in (Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON, Unit.CHANGE_LABELS_OF_PERSON)

    @property
    def entity(self) -> str:
        """The protected thing: a "record" or a "person"."""
        return "person" if self.per_person else "record"

    @property
    def public(self) -> tuple[str, ...]:
        """Quantities that the unit leaves unprotected, whatever the mechanism."""
        return {
            Unit.REPLACE: ("number of records",),
            Unit.CHANGE_LABEL: ("features", "order of records", "number of records"),
            Unit.REPLACE_PERSON: ("number of persons",),
            Unit.CHANGE_LABELS_OF_PERSON: (
                "features",
                "whose each record is",
                "order of records",
                "number of records",
            ),
        }.get(self, ())

    @property
    def rows_public(self) -> bool:
        """True if the features of all records are public, since only labels are protected."""
        return self in (Unit.CHANGE_LABEL, Unit.CHANGE_LABELS_OF_PERSON)

    @property
    def sentence(self) -> str:
        """The change that the unit hides, as the rest of a clause that begins with "whether"."""
        return {
            Unit.ADD_REMOVE: "any one record is in the data or not",
            Unit.REPLACE: "any one record is itself or any other record",
            Unit.CHANGE_LABEL: "any one record has its own label or any other label",
            Unit.ADD_REMOVE_PERSON: "any one person, with all their records, is in the data or not",
            Unit.REPLACE_PERSON: (
                "any one person, with all their records, is themselves or any other person"
            ),
            Unit.CHANGE_LABELS_OF_PERSON: (
                "the records of any one person have their own labels or any other labels"
            ),
        }[self]

    @property
    def hidden_fact(self) -> str:
        """The hidden fact, as a noun clause."""
        return {
            Unit.REPLACE: "the value of any one record",
            Unit.CHANGE_LABEL: "the label of any one record",
            Unit.REPLACE_PERSON: "all records of any one person",
            Unit.CHANGE_LABELS_OF_PERSON: "the labels of any one person's records",
        }.get(self, f"whether {self.sentence}")

    @property
    def hidden(self) -> str:
        """The hidden fact, and by which change of the data."""
        change = {
            Unit.ADD_REMOVE: "add or remove one record",
            Unit.REPLACE: "replace one record",
            Unit.CHANGE_LABEL: "change one label",
            Unit.ADD_REMOVE_PERSON: "add or remove one person",
            Unit.REPLACE_PERSON: "replace one person",
            Unit.CHANGE_LABELS_OF_PERSON: "change one person's labels",
        }[self]
        return f"{self.hidden_fact} ({change})"


def checked_unit(unit: Any) -> Unit:
    """Return the unit of an argument; an error if it is no text, or the name of none."""
    if not isinstance(unit, str):
        raise InputError(f"unit={quoted(unit)} must be text; pass for example unit='add-remove'")
    return Unit(unit)
