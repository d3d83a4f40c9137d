"""The unit of privacy: which two data sets must look alike.

An epsilon means nothing without its unit, so every guarantee carries one and numbers under
different units are never compared without a conversion (`Guarantee.to`).
"""

from enum import StrEnum

from tacit.errors import InputError, quoted


class Unit(StrEnum):
    """Which change of the private data the guarantee hides."""

    ADD_REMOVE = "add-remove"
    """One record is added or removed; the number of records is itself protected. Data sets have at least one record:
    learners refuse an empty one, so nothing is said about the first record."""

    REPLACE = "replace"
    """One record, features and label, is replaced by any other; the number of records is public."""

    CHANGE_LABEL = "change-label"
    """One record gets another label; its features, the order of records and their number are public. A table sorted
    by label must be shuffled first, since the place of a row would tell its label."""

    @classmethod
    def _missing_(cls, value: object) -> "Unit":
        raise InputError(f"unit={quoted(value)} must be one of {', '.join(cls)}; pass for example unit='add-remove'")

    @property
    def sentence(self) -> str:
        """What the unit hides, as a clause that completes "whether ..."."""
        return {
            Unit.ADD_REMOVE: "any one record is in the data or not",
            Unit.REPLACE: "any one record is itself or any other record",
            Unit.CHANGE_LABEL: "any one record has its own label or any other label",
        }[self]
