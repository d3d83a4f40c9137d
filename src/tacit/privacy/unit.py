"""The unit of privacy: the neighbouring relation, which says what two data sets must be indistinguishable.

An epsilon means nothing without its neighbouring relation. So every guarantee has a unit, and numbers under different
units are never compared without a conversion (`Guarantee.to`).
"""

from enum import StrEnum

from tacit.errors import InputError, quoted


class Unit(StrEnum):
    """The neighbouring relation: which change of the private data the guarantee hides."""

    ADD_REMOVE = "add-remove"
    """One record is added or removed; the number of records is protected too. Data sets have at least one record:
    learners refuse an empty data set, so nothing is claimed about the first record."""

    REPLACE = "replace"
    """One record, features and label, is replaced by any other; the number of records is public."""

    CHANGE_LABEL = "change-label"
    """One record gets another label; its features, the order of records and their number are public. A table sorted
    by label must be shuffled first, since the position of a row would reveal its label."""

    @classmethod
    def _missing_(cls, value: object) -> "Unit":
        raise InputError(f"unit={quoted(value)} must be one of {', '.join(cls)}; pass for example unit='add-remove'")

    @property
    def sentence(self) -> str:
        """What the unit hides, as the rest of a clause that begins with "whether"."""
        return {
            Unit.ADD_REMOVE: "any one record is in the data or not",
            Unit.REPLACE: "any one record is itself or any other record",
            Unit.CHANGE_LABEL: "any one record has its own label or any other label",
        }[self]
