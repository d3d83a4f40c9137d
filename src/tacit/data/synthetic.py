"""The mark of synthetic data: a fact on the card of a store, which copies of the store keep."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from tacit.errors import InputError, PrivacyLeakWarning, quoted

# The fact on the card, and the name of the release in it.
KEY = "synthetic"
RELEASE = "release"


def is_synthetic(card: Mapping[str, Any]) -> bool:
    """Tell whether the card of data says that they were drawn from a release."""
    facts = card.get(KEY)
    return isinstance(facts, dict) and RELEASE in facts


def check_not_synthetic(card: Mapping[str, Any], path: Any) -> None:
    """Refuse data that were drawn from a release where private records are expected."""
    if is_synthetic(card):
        name = quoted(str(card[KEY][RELEASE]))
        raise InputError(
            f"{path} is synthetic, drawn from the release {name}: no statement about it would hold"
            " for the people of that release; pass it as public rows, or give their records"
        )


def warn_of_synthetic(card: Mapping[str, Any], path: Any, *, stacklevel: int) -> None:
    """Warn that public rows were drawn from a release, whose cost adds for the people behind it."""
    if is_synthetic(card):
        name = quoted(str(card[KEY][RELEASE]))
        warnings.warn(
            f"public rows of {path} are synthetic, drawn from the release {name}; for people whose"
            " records are in both, the costs of both releases add, and the statement of this one"
            " counts its own alone: charge both fits to one ledger, or take other public rows",
            PrivacyLeakWarning,
            stacklevel=stacklevel + 1,
        )
