"""Refuse or warn where public rows are private records, before anything is charged.

The check is for the owner. Its outcome depends on the private records and is outside every
guarantee. So the statement of each fit that uses public rows lists it as unprotected, whatever its
outcome.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tacit.compute.shared import cached
from tacit.data.overlap import OVERLAP as OVERLAP
from tacit.data.overlap import private_rows
from tacit.errors import InputError, PrivacyLeakWarning

# for results of experiments, in place of the warning
MESSAGE_WITHOUT_NUMBER = (
    "some public rows are private records; the number is left out, since it is private"
)


class OverlapWarning(PrivacyLeakWarning):
    """Public rows are private records.

    The message states their number, which is for the owner alone.
    """


def check_overlap(name: str, rows: Any, X: Any, *, released: bool, stacklevel: int) -> None:
    """Refuse or warn of public rows of which at least one is a private record.

    They are refused if they are released; else a warning states their number. Rows are compared
    entry by entry at the lower of both precisions, without any change of scale; rows of zeros hold
    nothing of a record and are not counted.

    Parameters
    ----------
    name : {"public", "names", "validation"}
        The learner's parameter.
    rows : array of shape (m, d)
        The public rows.
    X : array of shape (n, d)
        The private records.
    released : bool
        Whether the fit releases public rows, or says which it chose. Copies of one row always count
        as released, since their mean, by which a release centres rows to predict, is that row.
    stacklevel : int
        Of the warning.
    """
    number = cached(private_rows, rows, X)
    if number == 0:
        return

    remedy = f"leave them out of {name}"
    if name != "validation":
        remedy += ", or pass allow_overlap=True (--allow-overlap) only if they need no protection"
    all_the_same = all(np.array_equal(row, rows[0]) for row in rows)
    if released or (name == "public" and all_the_same):
        fault = (
            f"{name} has rows that are private records, and such rows may be released as they are"
        )
        raise InputError(f"{fault}; {remedy}")

    fault = (
        f"{number} of {len(rows)} rows of {name} are private records, which the guarantee does not"
        " cover there"
    )
    message = f"{fault}; {remedy}. The number is for the owner alone"
    warnings.warn(message, OverlapWarning, stacklevel=stacklevel + 1)
