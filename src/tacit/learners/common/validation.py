"""scikit-learn's checks of X and y, with errors of one line that quote no data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.compute.foreign import SparseRows, checked_csr, of_tensor, refuse_times
from tacit.errors import InputError, InputTypeError, excerpt, quoted
from tacit.models.rows import check_finite

NAMED = 3  # columns that a message names


def validated_rows(learner: Any, X: Any, dtypes: list[Any]) -> Any:
    """Rows to predict, finite and as wide as those of the fit, with its columns in its order if
    both have names.
    """
    check_columns("X", X, getattr(learner, "feature_names_in_", None))
    X = _dense(learner, X)
    try:
        rows = validate_data(learner, X, reset=False, **_accepted(learner, dtypes))
    except (TypeError, ValueError, OverflowError) as error:
        raise _one_line(error) from None
    return _finite(rows)


def validated_records(learner: Any, X: Any, y: Any, dtypes: list[Any]) -> tuple[Any, NDArray[Any]]:
    """Finite rows and their class labels; notes the number and names of columns on the learner."""
    X, y = _dense(learner, X), of_tensor(y)
    try:
        X, y = validate_data(learner, X, y, **_accepted(learner, dtypes))
        y = np.array(y.tolist()) if y.dtype == object else y
        check_classification_targets(y)
    except (TypeError, ValueError, OverflowError) as error:
        raise _one_line(error) from None
    return _finite(X), y


def check_columns(name: str, rows: Any, expected: NDArray[Any] | None) -> None:
    """Refuse rows with named columns that lack some of `expected`, have others, or have them in
    another order.
    """
    columns = getattr(rows, "columns", None)
    if (
        expected is None
        or columns is None
        or not all(isinstance(column, str) for column in columns)
    ):
        return
    given, fitted = list(columns), expected.tolist()
    missing, added = (
        [one for one in these if one not in those]
        for these, those in ((fitted, given), (given, fitted))
    )
    faults = [
        f"{verb} {_listed(these)}"
        for verb, these in (("lacks", missing), ("has unknown", added))
        if these
    ]
    if faults:
        raise InputError(
            f"{name} {' and '.join(faults)}; pass the columns of the fit (feature_names_in_)"
        )
    if given != fitted:
        place = next(
            place
            for place, (one, other) in enumerate(zip(given, fitted, strict=True))
            if one != other
        )
        fault = (
            f"{name} has the columns of the fit in another order: column {place} is"
            f" {quoted(given[place])}"
        )
        raise InputError(
            f"{fault} and was {quoted(fitted[place])}; pass {name}[model.feature_names_in_]"
        )


def refuse_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuse what `fit` does not take; for `sample_weight`, which other classifiers take, say
    why.
    """
    for name, value in arguments.items():
        if name != "sample_weight":
            remedy = "leave it out, or pass it to the class if it is a parameter"
            raise InputTypeError(f"fit takes no argument {quoted(name)}; {remedy}")
        if value is not None:
            why = (
                "a weight multiplies how much one record can change, and noise hides one record at"
                " weight 1"
            )
            raise InputTypeError(f"sample_weight is not supported, since {why}; leave it out")


def _listed(columns: list[str]) -> str:
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return (
        f"column{'s' if len(columns) > 1 else ''}"
        f" {excerpt(', '.join(map(repr, columns[:NAMED])))}{more}"
    )


def _dense(learner: Any, X: Any) -> Any:
    """X with tensors as arrays; a sparse matrix, with its indices checked, only for learners that
    take it.
    """
    if issparse(X) and not learner.takes_sparse:
        fault = f"X is a sparse matrix, and {type(learner).__name__} needs dense rows"
        raise InputTypeError(
            f"{fault}; pass X.toarray(), or learn by sums, as NoisySumPrototypes does"
        )
    refuse_times(X, "X")
    return checked_csr(X) if issparse(X) else of_tensor(X)


def _accepted(learner: Any, dtypes: list[Any]) -> dict[str, Any]:
    return {
        "dtype": dtypes,
        "ensure_all_finite": False,
        "accept_sparse": "csr" if learner.takes_sparse else False,
    }


def _finite(rows: Any) -> Any:
    rows = SparseRows(rows, checked=True) if issparse(rows) else rows  # by `_dense`
    check_finite(rows)
    return rows


def _one_line(error: Exception) -> InputError:
    """An array error of scikit-learn, shortened to one line that quotes no data."""
    said = next(iter(str(error).splitlines()), "").rstrip(":. ")
    if "could not convert" in said or "invalid literal" in said:
        said = "X has an entry that is not a number"
    if "inhomogeneous" in said:
        said = "X has entries of different lengths"
    if isinstance(error, OverflowError):
        said = "X has an entry beyond float64"
    if "2D array" in said:
        said += ". Reshape your data"
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind(f"{said}; pass X as finite numbers of shape (n, d) and y as n labels")
