"""Refuse or warn where public rows are private records; a check for the owner, before anything is charged.

Its outcome depends on the private records and is outside every guarantee. So the statement of each fit that uses public
rows lists it as unprotected, whatever was found.
"""

from __future__ import annotations

import warnings
from typing import Any

from tacit.compute.shared import cached
from tacit.data.overlap import private_rows
from tacit.errors import InputError, PrivacyLeakWarning

OVERLAP = "whether public rows are among the private ones (checked by the owner)"


def check_overlap(public: Any, X: Any, *, released: bool, stacklevel: int) -> None:
    """Refuse public rows of which one is a private record, if public rows are `released`; else warn of how many are.

    Rows are compared entry by entry at the lower of both precisions, without any change of scale; rows of zeros hold
    nothing of a record and are not counted.

    Parameters
    ----------
    public : array of shape (m, d)
    X : array of shape (n, d)
        The private records.
    released : bool
        Whether the fit releases public rows, or says which it chose.
    stacklevel : int
        Of the warning.
    """
    number = cached(private_rows, public, X)
    if number == 0:
        return
    allow = "pass allow_overlap=True (--allow-overlap) only if they need no protection"
    if released:
        fault = "public has rows that are private records, and such rows may be released as they are"
        raise InputError(f"{fault}; leave them out of public, or {allow}")
    fault = f"{number} of {len(public)} rows of public are private records, which the guarantee does not cover there"
    warnings.warn(
        f"{fault}; leave them out of public, or {allow}. The number is for the owner alone",
        PrivacyLeakWarning,
        stacklevel=stacklevel + 1,
    )
