"""Texts in Unicode NFC, so that the same letters are the same text whatever system wrote them."""

import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 16  # texts that are looked at together

# texts of letters below it are in Unicode NFC: combining marks begin there
FIRST_MARK = 0x300


def composed(texts: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return texts in Unicode NFC, so that é is one letter whatever system wrote it."""
    for start in range(0, len(texts), BLOCK):
        if code_points(texts[start : start + BLOCK]).max(initial=0) >= FIRST_MARK:
            distinct, places = np.unique(texts, return_inverse=True)
            return np.array([nfc(text) for text in distinct.tolist()])[places]
    return texts


def composed_texts(values: Any) -> Any:
    """Return an array of texts in Unicode NFC, and anything else unchanged."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return composed(values)
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        return np.array([nfc(value) for value in values.tolist()], dtype=object)
    return values


def nfc(value: Any) -> Any:
    """Return a value, in Unicode NFC if it is a text."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def code_points(texts: NDArray[np.str_]) -> NDArray[np.uint32]:
    """Return the letters of texts as code points, (texts, letters)."""
    # numpy holds a text as one code of 32 bits for each letter
    code_type = np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder)
    return np.ascontiguousarray(texts).view(code_type).reshape(len(texts), -1)
