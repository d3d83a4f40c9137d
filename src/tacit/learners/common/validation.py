"""scikit-learn's checks of X and y, with errors of one line that quote no data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.errors import InputError, InputTypeError
from tacit.models.rows import check_finite


def validated_rows(learner: Any, X: Any, dtypes: list[Any]) -> NDArray[Any]:
    """Rows to predict, finite and as wide as those of the fit."""
    try:
        rows: NDArray[Any] = validate_data(learner, X, reset=False, dtype=dtypes, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise _one_line(error) from None
    check_finite(rows)
    return rows


def validated_records(learner: Any, X: Any, y: Any, dtypes: list[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Finite rows and their class labels; notes the number of columns on the learner."""
    try:
        X, y = validate_data(learner, X, y, dtype=dtypes, ensure_all_finite=False)
        y = np.array(y.tolist()) if y.dtype == object else y
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        raise _one_line(error) from None
    check_finite(X)
    return X, y


def _one_line(error: Exception) -> InputError:
    """An array error of scikit-learn, shortened to one line that quotes no data."""
    said = next(iter(str(error).splitlines()), "").rstrip(":. ")
    if "could not convert" in said or "invalid literal" in said:
        said = "X has an entry that is not a number"
    if "2D array" in said:
        said += ". Reshape your data"
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind(f"{said}; pass X as finite numbers of shape (n, d) and y as n labels")
