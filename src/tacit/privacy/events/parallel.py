"""Parallel composition over disjoint parts of the data."""

from dataclasses import dataclass
from typing import Literal

from tacit.errors import InputError
from tacit.privacy.events.base import CAUTIOUS, Event, Rounding, check_event, compose


@dataclass(frozen=True)
class Parallel(Event):
    """The same event on each of several disjoint parts of the data.

    If parts are treated differently, `event` is the most expensive event. The parts are separated
    by the label ("classes"), by a public property of the record's position ("splits"), or by a
    declared property of the record alone, such as the owner who holds it ("parts").

    Notes
    -----
    One record is in one part, so adding or removing it costs `event` once. The records of a group,
    or the old and the new value of a replaced record, may be in one part or in several:
    `event.for_group` covers both, because k events at distance one are dominated by one event at
    distance k. Searches are an exception: the bound for two of them may exceed that for one search
    at distance two. So both are added up.
    """

    event: Event
    over: Literal["classes", "splits", "parts"]

    def __post_init__(self) -> None:
        check_event(self.event)
        if self.over not in ("classes", "splits", "parts"):
            raise InputError(
                f"over={self.over!r} must be 'classes', 'splits' or 'parts'; name what separates"
                " the parts"
            )

    @property
    def pure(self) -> float:
        return self.event.pure

    @property
    def rho(self) -> float:
        return self.event.rho

    @property
    def mu(self) -> float:
        return self.event.mu

    @property
    def bounded(self) -> bool:
        return self.event.bounded

    def base(self) -> Event:
        return self.event.base()

    def contained(self) -> tuple[tuple[Event, int], ...]:
        return self.event.contained()

    def for_group(self, size: int) -> Event:
        group_in_one_part = Parallel(self.event.for_group(size), self.over)
        if self._one_group_covers_several:
            return group_in_one_part
        return compose((group_in_one_part, size * self))

    @property
    def _one_group_covers_several(self) -> bool:
        """Tell whether a group in one part costs at least as much as its records in several."""
        return all(event.groups_of_any_size for event, _ in self.contained())

    def for_label_change(self) -> Event:
        """A record with a changed label leaves one class and enters another, but stays in its
        split.

        In its part the label changes at the cost of the event. That covers a record whose part
        depends on its label too: it leaves one part and enters another, and two events at distance
        one cost no more.
        """
        if self.over == "classes":
            return 2 * self
        if self.over == "parts" and self._one_group_covers_several:
            return Parallel(self.event.for_label_change(), self.over)
        return self.for_group(2)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        part = {"classes": "class", "splits": "split", "parts": "part"}[self.over]
        return f"{self.event.describe(rounding)}, on each {part} separately"
