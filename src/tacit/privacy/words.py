"""Meaning of a guarantee, in words for those who decide. Promises, cards and pages say the same
sentences.

Every sentence follows from numbers that a release states, so that it can be checked against them.
"""

import math
from collections.abc import Mapping

from tacit.privacy.decimals import rounded_up
from tacit.privacy.unit import Unit

_CHANGE = {
    Unit.ADD_REMOVE: "Including or leaving out any one record",
    Unit.REPLACE: "Replacing any one record by another",
    Unit.CHANGE_LABEL: "Changing the label of any one record",
    Unit.ADD_REMOVE_PERSON: "Including or leaving out any one person with all their records",
    Unit.REPLACE_PERSON: "Replacing any one person, with all their records, by another",
    Unit.CHANGE_LABELS_OF_PERSON: "Changing the labels of any one person's records",
}

# What an attacker knows, and what they guess.
_KNOWN_AND_GUESSED = {
    Unit.ADD_REMOVE: ("every other record", "whether this one is in the data"),
    Unit.REPLACE: ("every other record", "which of two records this one is"),
    Unit.CHANGE_LABEL: ("everything but this label", "which of two labels it is"),
    Unit.ADD_REMOVE_PERSON: ("everybody else's records", "whether this person is in the data"),
    Unit.REPLACE_PERSON: ("everybody else's records", "which of two persons this one is"),
    Unit.CHANGE_LABELS_OF_PERSON: (
        "everything but these labels",
        "which of two sets of labels they are",
    ),
}

# The largest epsilons that guidance calls conservative and reasonable: `standing_of_record`.
_CONSERVATIVE = 1.0
_REASONABLE = 10.0

# A pure epsilon within this factor of the epsilon at DECISIVE is named instead of it.
_CLEARLY_SMALLER = 1.005

DECISIVE = 1e-6
"""The delta at which words are about epsilon, unless it is the pure epsilon in three digits."""


def in_words(
    unit: Unit,
    epsilon: float,
    pure: float,
    advantage: float,
    group: str = "",
    *,
    attained: bool = False,
) -> str:
    """Say what a guarantee means, and where it stands.

    Parameters
    ----------
    unit : Unit
    epsilon, pure : float
        Epsilon at DECISIVE, and at delta 0.
    advantage : float
        As `Guarantee.advantage`.
    group : str, default=""
        Whose records the numbers are of: a budget group, or what `most_expensive` returns.
    attained : bool, default=False
        As `Guarantee.attained`.
    """
    # A pure epsilon leaves nothing to chance, so it is named unless the epsilon at DECISIVE is
    # clearly smaller.
    delta = DECISIVE
    if pure <= epsilon * _CLEARLY_SMALLER or same_in_three_digits(epsilon, pure):
        epsilon = pure
        delta = 0.0

    words = meaning(unit, epsilon, delta, advantage, attained=attained)
    return about_group(f"{words} {standing(epsilon, unit)}", group)


def about_group(words: str, group: str) -> str:
    """The same words about the records of this group; as they are if its name is empty."""
    if not group:
        return words
    return f"For records of group {group}: {words[0].lower()}{words[1:]}"


def same_in_three_digits(epsilon: float, pure: float) -> bool:
    """Return whether two epsilons, rounded up, have the same three digits."""
    return rounded_up(epsilon, 3) == rounded_up(pure, 3)


def most_expensive(epsilon_of_groups: Mapping[str, float]) -> str:
    """The group whose records cost most, by epsilon at DECISIVE; empty where there are not several
    groups.
    """
    if len(epsilon_of_groups) < 2:
        return ""
    group = max(epsilon_of_groups, key=epsilon_of_groups.__getitem__)
    return f"{group}, which cost most"


def meaning(
    unit: Unit, epsilon: float, delta: float, advantage: float, *, attained: bool = False
) -> str:
    """Say what epsilon at delta and the advantage of attacks mean for one record or person.

    Parameters
    ----------
    unit : Unit
    epsilon, delta : float
        One point of the privacy curve; delta is 0 for a pure epsilon. Epsilon is inf if no bound
        holds.
    advantage : float
        As `Guarantee.advantage`.
    attained : bool, default=False
        As `Guarantee.attained`: whether the best attacker is right so often against some record, or
        at most so often.

    Notes
    -----
    For any event S, P[S] <= exp(epsilon) P'[S] + delta and the converse, which post-processing
    preserves. Whoever holds both data sets equally likely is right with probability (1 +
    advantage)/2 at most, the Bayes risk of the two hypotheses.

    Examples
    --------
    >>> import textwrap
    >>> print(textwrap.fill(meaning(Unit.ADD_REMOVE, 1.0, 1e-6, 0.25), 90))
    Including or leaving out any one record makes any consequence of the release at most 2.719
    times as likely, plus a chance of 1 in 1,000,000 (epsilon = 1 at delta = 1e-06). An
    attacker who knows every other record and starts from even odds guesses correctly whether
    this one is in the data at most 62.5% of the time; a coin flip gets 50%.
    """
    if epsilon == 0 and advantage == 0:
        return f"{_CHANGE[unit]} has no effect on the release (epsilon = 0)."
    if math.isinf(epsilon):
        return f"No bound holds: the release may show everything about any one {unit.entity}."

    effect = f"{_CHANGE[unit]} makes any consequence of the release at most {_factor(epsilon)}"
    if delta:
        chance = f", plus a chance of 1 in {round(1 / delta):,}"
        point = f"epsilon = {rounded_up(epsilon, 3)} at delta = {rounded_up(delta)}"
    else:
        chance = ""
        point = f"epsilon = {rounded_up(epsilon, 3)}"

    attacker = "An attacker"
    bound = "at most"
    if attained:
        attacker = "The best attacker"
        bound = "up to"
    knowledge, guess = _KNOWN_AND_GUESSED[unit]
    percent = right_guesses(advantage)
    return (
        f"{effect} times as likely{chance} ({point}). {attacker} who knows {knowledge} and starts"
        f" from even odds guesses correctly {guess} {bound} {percent}% of the time; a coin flip"
        " gets 50%."
    )


def protection(unit: Unit, advantage: float) -> str:
    """Say in one sentence what is hidden, and how often a guess at even odds is right at most.

    It holds for every record or person, whatever group they are in.

    Examples
    --------
    >>> import textwrap
    >>> print(textwrap.fill(protection(Unit.ADD_REMOVE_PERSON, 0.25), 90))
    It hides whether any one person, with all their records, is in the data or not: of 100
    guesses at even odds whether this person is in the data, somebody who knows everybody
    else's records gets at most 62.5 right, and 50 without the release.
    """
    if advantage == 0:
        return f"It hides {unit.hidden_fact}: nothing in it depends on that."
    knowledge, guess = _KNOWN_AND_GUESSED[unit]
    return (
        f"It hides {unit.hidden_fact}: of 100 guesses at even odds {guess}, somebody who knows"
        f" {knowledge} gets at most {right_guesses(advantage)} right, and 50 without the release."
    )


def right_guesses(advantage: float) -> str:
    """Return how many of 100 guesses at even odds are right at most, rounded up to three digits."""
    return rounded_up(50 * (1 + advantage), 3)


def standing(epsilon: float, unit: Unit) -> str:
    """Sentence about where epsilon stands; epsilon is inf if no bound holds.

    Common guidance is about records. Where labels change, the sentence says what epsilon does not
    cover.

    Examples
    --------
    >>> standing(0.8, Unit.ADD_REMOVE)
    'This epsilon is within what NIST SP 800-226 calls conservative (up to 1).'
    >>> import textwrap
    >>> print(textwrap.fill(standing(0.8, Unit.CHANGE_LABEL), 90))
    This epsilon is about labels alone: features, order of records and number of records count
    as public.
    """
    if not unit.rows_public:
        return standing_of_record(epsilon)
    *quantities, last = unit.public
    listing = f"{', '.join(quantities)} and {last}"
    return f"This epsilon is about labels alone: {listing} count as public."


def standing_of_record(epsilon: float) -> str:
    """Sentence that compares the epsilon of a record or person with common guidance.

    Source: NIST SP 800-226 (2025); Ponomareva et al. 2023, section 5.2.
    """
    if math.isinf(epsilon):
        return "NIST SP 800-226 calls epsilon up to 1 conservative; here it has no bound."
    nist = f"what NIST SP 800-226 calls conservative (up to {_CONSERVATIVE:g})"
    if epsilon <= _CONSERVATIVE:
        return f"This epsilon is within {nist}."

    place = "within" if epsilon <= _REASONABLE else "above"
    return (
        f"This epsilon is above {nist} and {place} what Ponomareva et al. (2023) call reasonable"
        f" for machine learning (up to {_REASONABLE:g})."
    )


def _factor(epsilon: float) -> str:
    """exp(epsilon), rounded up; written as a power where a float would overflow."""
    if epsilon < 700:
        return rounded_up(math.exp(epsilon), 4)
    return f"exp({rounded_up(epsilon, 4)})"


def rounded_down(number: float) -> str:
    """A lower bound with three significant digits, not above it."""
    if not math.isfinite(number) or number == 0:
        return f"{number:g}"
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.floor(number / unit * (1 + 1e-12)) * unit:.3g}"
