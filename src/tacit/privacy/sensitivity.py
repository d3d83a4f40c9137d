"""By how much a sum of bounded contributions moves under each neighbouring relation.

A contribution is what one record, or one person with all their records, adds to a table of sums. It
is bounded by 1 in L2 norm, so 1 is the sensitivity under add/remove. A replacement takes one
contribution out and puts another in: two of norm 1 differ by 2 at most, and by sqrt(2) at most if
their inner product cannot be negative. Contributions that do not depend on labels do not move at
all if labels change.

Each mechanism states the sensitivity of its sums and proves it in its file.
"""

import math
from dataclasses import dataclass

from tacit.privacy.unit import Unit

ROOT_TWO = math.sqrt(2) * (1 + 2.0**-50)
"""The square root of two, rounded up."""


@dataclass(frozen=True)
class Sensitivity:
    """L2 distance between the sums of two neighbouring data sets, in units of the bound on one
    contribution.

    Parameters
    ----------
    replace, change_label, replace_person, change_labels_of_person : float, default=2.0
        Under each neighbouring relation other than add/remove; 0 where nothing moves. Two is always
        valid.

    Examples
    --------
    >>> Sensitivity(change_label=0.0).under(Unit.REPLACE), Sensitivity().under(Unit.ADD_REMOVE)
    (2.0, 1.0)
    """

    replace: float = 2.0
    change_label: float = 2.0
    replace_person: float = 2.0
    change_labels_of_person: float = 2.0

    def under(self, unit: Unit) -> float:
        """Return the sensitivity under a unit."""
        return {
            Unit.ADD_REMOVE: 1.0,
            Unit.ADD_REMOVE_PERSON: 1.0,
            Unit.REPLACE: self.replace,
            Unit.CHANGE_LABEL: self.change_label,
            Unit.REPLACE_PERSON: self.replace_person,
            Unit.CHANGE_LABELS_OF_PERSON: self.change_labels_of_person,
        }[unit]
