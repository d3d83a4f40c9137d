"""What a guarantee means, in words for those who decide. Promises, cards and pages say the same sentences.

Every sentence follows from numbers that a release states, so that it can be checked against them.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context

from tacit.privacy.unit import Unit

_OTHERWISE = {
    Unit.ADD_REMOVE: "if any one record had been left out",
    Unit.REPLACE: "if any one record had been another",
    Unit.CHANGE_LABEL: "if any one record had had another label",
    Unit.ADD_REMOVE_PERSON: "if any one person had been left out with all their records",
    Unit.REPLACE_PERSON: "if any one person had been another with other records",
    Unit.CHANGE_LABELS_OF_PERSON: "if the records of any one person had had other labels",
}
_CONSERVATIVE, _REASONABLE = 1.0, 10.0


DECISIVE = 1e-6
"""The delta at which words are about epsilon, unless it is the pure epsilon in three digits."""


def in_words(unit: Unit, epsilon: float, pure: float, advantage: float, epsilon_of_groups: Mapping[str, float]) -> str:
    """What a guarantee means, and where it stands; of the group whose records cost most.

    Parameters
    ----------
    unit : Unit
    epsilon, pure : float
        Epsilon at DECISIVE, and at delta 0.
    advantage : float
        As `Guarantee.advantage`.
    epsilon_of_groups : dict of str to float
        Epsilon at DECISIVE of each budget group; empty without groups.
    """
    alike = _up(epsilon, 3) == _up(pure, 3)
    stated, delta = (pure, 0.0) if alike else (epsilon, DECISIVE)
    said = f"{meaning(unit, stated, delta, advantage)} {standing(stated, delta)}"
    if len(epsilon_of_groups) < 2:
        return said
    group = max(epsilon_of_groups, key=epsilon_of_groups.__getitem__)
    return f"For records of group {group}, which cost most: {said[0].lower()}{said[1:]}"


def meaning(unit: Unit, epsilon: float, delta: float, advantage: float) -> str:
    """What epsilon at delta and the advantage of attacks mean for one record or person.

    Parameters
    ----------
    unit : Unit
    epsilon, delta : float
        One point of the privacy curve; delta is 0 for a pure epsilon. Epsilon is inf if no bound holds.
    advantage : float
        As `Guarantee.advantage`.

    Notes
    -----
    For any event S, P[S] <= exp(epsilon) P'[S] + delta, which post-processing preserves. Whoever holds both data sets
    equally likely is right with probability (1 + advantage)/2 at most, the Bayes risk of the two hypotheses.

    Examples
    --------
    >>> print(meaning(Unit.ADD_REMOVE, 1.0, 1e-6, 0.25))
    Whatever may happen because of the release is at most 2.719 times as likely as if any one record had been left \
out, plus a chance of 1 in 1,000,000 (epsilon = 1 at delta = 1e-06). Somebody who knows everything else, and to \
whom both cases are equally likely, tells them apart rightly at most 62.5 times in 100; a coin does so 50 times.
    """
    if epsilon == 0 and advantage == 0:
        return f"The release would be the same {_OTHERWISE[unit]}: it shows nothing about a single {unit.entity}."
    if math.isinf(epsilon):
        return f"No bound holds: the release may show everything about any one {unit.entity}."
    chance = f", plus a chance of 1 in {round(1 / delta):,}" if delta else ""
    return (
        f"Whatever may happen because of the release is at most {_factor(epsilon)} times as likely as "
        f"{_OTHERWISE[unit]}{chance} ({_at(epsilon, delta)}). Somebody who knows everything else, and to whom both "
        f"cases are equally likely, tells them apart rightly at most {_up(50 * (1 + advantage), 3)} times in 100; a "
        "coin does so 50 times."
    )


def standing(epsilon: float, delta: float) -> str:
    """Where epsilon at delta stands against common guidance, in one sentence; inf if no bound holds.

    Source: NIST SP 800-226 (2025); Ponomareva et al. 2023, section 5.2.

    Examples
    --------
    >>> standing(0.8, 1e-6)
    'Epsilon = 0.8 at delta = 1e-06 is within 1, up to which NIST SP 800-226 calls epsilon conservative.'
    """
    if math.isinf(epsilon):
        return "NIST SP 800-226 calls epsilon up to 1 conservative; here it has no bound."
    said = f"E{_at(epsilon, delta)[1:]} is"
    nist = f"{_CONSERVATIVE:g}, up to which NIST SP 800-226 calls epsilon conservative"
    if epsilon <= _CONSERVATIVE:
        return f"{said} within {nist}."
    end = "is within" if epsilon <= _REASONABLE else "exceeds"
    return (
        f"{said} above {nist}, and {end} {_REASONABLE:g}, up to which Ponomareva et al. 2023 call it reasonable for "
        "machine learning."
    )


def _at(epsilon: float, delta: float) -> str:
    return f"epsilon = {_up(epsilon, 3)}" + (f" at delta = {delta:g}" if delta else "")


def rounded_up(value: float) -> str:
    """A bound with six digits, rounded up (up to the error of float arithmetic)."""
    return _up(value, 6)


def _up(value: float, digits: int) -> str:
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(value * (1 - 1e-12))):.{digits}g}"


def _factor(epsilon: float) -> str:
    return _up(math.exp(epsilon), 4) if epsilon < 700 else f"exp({_up(epsilon, 4)})"
