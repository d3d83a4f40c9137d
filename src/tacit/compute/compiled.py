"""Loops compiled by numba."""

from typing import Any

from numba import njit


def compiled(function: Any, **options: Any) -> Any:
    """The compiled function, cached on disk beside its file or in the user's cache, if there is a
    folder for it.
    """
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)
