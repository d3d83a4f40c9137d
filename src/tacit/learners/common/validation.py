"""scikit-learn's checks of X and y, with errors of one line that quote no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.compute.features import array_of, one_dimension
from tacit.compute.foreign import SparseRows, checked_csr, of_tensor, refuse_lazy
from tacit.compute.texts import composed
from tacit.data.label_sets import indicators, label_matrix
from tacit.errors import InputError, InputTypeError, excerpt, quoted
from tacit.models.rows import check_finite

MOST_LISTED = 3  # columns that a message names


def validated_rows(learner: Any, X: Any, dtypes: list[Any]) -> Any:
    """Return rows to predict: finite, and as wide as those of the fit.

    If both have names of columns, these must be the same, in the same order.
    """
    refuse_lazy(X, "X")
    check_columns("X", X, getattr(learner, "feature_names_in_", None))
    X = _dense_or_csr(learner, X)
    try:
        rows = validate_data(learner, X, reset=False, **_validation_options(learner, dtypes))
    except (TypeError, ValueError, OverflowError) as error:
        raise _one_line(error) from None
    return _finite(rows)


def validated_records(learner: Any, X: Any, y: Any, dtypes: list[Any]) -> tuple[Any, NDArray[Any]]:
    """Return finite rows and their class labels.

    The number and the names of the columns become attributes of the learner.
    """
    X = _dense_or_csr(learner, X)
    y = plain_labels(y)
    _refuse_missing_labels(y)
    try:
        X, y = validate_data(learner, X, y, **_validation_options(learner, dtypes))
        if y.dtype == object:
            # text or numbers of Python, as in a column of a data frame
            y = np.array(y.tolist())
        if y.dtype.kind == "U":
            y = composed(y)
        check_classification_targets(y)
    except (TypeError, ValueError, OverflowError) as error:
        raise _one_line(error) from None
    return _finite(X), y


def validated_matrix(learner: Any, X: Any, dtypes: list[Any]) -> Any:
    """Return finite rows, where the labels of the records are checked apart.

    The number and the names of the columns become attributes of the learner.
    """
    X = _dense_or_csr(learner, X)
    try:
        rows = validate_data(learner, X, **_validation_options(learner, dtypes))
    except (TypeError, ValueError, OverflowError) as error:
        raise _one_line(error) from None
    return _finite(rows)


def label_sets_of(
    y: Any, classes: NDArray[Any], *, n_records: int | None = None
) -> NDArray[np.bool_]:
    """Return which labels each record has, of shape (n, K).

    Columns of a data frame are matched with the classes by their names. `n_records` is how many
    records there must be, if that is known.
    """
    refuse_lazy(y, "y")
    if hasattr(y, "columns"):
        labels = indicators(y, len(y), classes.tolist()).matrix
    else:
        labels = label_matrix(of_tensor(y), classes)
    if n_records is not None and len(labels) != n_records:
        raise InputError(
            f"y has {len(labels)} rows beside {n_records} of X; give the labels of each record"
        )
    return labels


def has_label_sets(y: Any) -> bool:
    """Tell whether y is a matrix of labels, or has lists or sets of labels in place of labels.

    A single column, and lists of one label each, are labels, as scikit-learn takes them.
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2:
        return shape[1] != 1
    return any(_is_collection(entry) and len(entry) != 1 for entry in _objects(y))


def has_single_labels(y: Any) -> bool:
    """Tell whether y is a sequence of labels, and not of lists or sets of labels."""
    is_list = isinstance(y, list | tuple)
    if not is_list and len(getattr(y, "shape", ())) != 1:
        return False
    return len(y) > 0 and not any(map(_is_collection, _objects(y)))


def _objects(y: Any) -> Iterable[Any]:
    """Return the entries of a list, or of an array or column of objects; none of other arrays."""
    if isinstance(y, list | tuple):
        return y
    is_array = len(getattr(y, "shape", ())) == 1
    if is_array and getattr(getattr(y, "dtype", None), "kind", "") == "O":
        return list(y)
    return ()


def _is_collection(entry: Any) -> bool:
    """Tell whether an entry is a list, set or array of labels, and no label."""
    return (
        hasattr(entry, "__iter__")
        and hasattr(entry, "__len__")
        and not isinstance(entry, str | bytes)
    )


def plain_labels(y: Any) -> Any:
    """Return labels with tensors as arrays, and texts of numpy's `StringDType` as objects, which
    scikit-learn takes; anything else unchanged.
    """
    refuse_lazy(y, "y")
    labels = of_tensor(y)
    if getattr(getattr(labels, "dtype", None), "kind", "") == "T":
        return labels.astype(object)
    return labels


def _refuse_missing_labels(y: Any) -> None:
    """Refuse labels of which some are missing: NaN, None, or the missing value of pandas."""
    try:
        labels = np.asarray(y)
    except (TypeError, ValueError):
        # scikit-learn says what is wrong with it
        return
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return
    # comparing pandas.NA with itself gives no truth value
    missing = np.array([value is None or _is_nan(value) for value in labels.tolist()])
    if missing.any():
        raise InputError(
            f"y has no label (NaN or a missing value) in row {int(missing.argmax())}; drop the"
            " row, or label it"
        )


def _is_nan(value: Any) -> bool:
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def check_columns(name: str, rows: Any, expected: NDArray[Any] | None) -> None:
    """Refuse rows with named columns that are not `expected`, in the same order.

    Rows without names of columns, or with names that are not text, pass.
    """
    columns = getattr(rows, "columns", None)
    if expected is None or columns is None:
        return
    if not all(isinstance(column, str) for column in columns):
        return

    columns = list(columns)
    fit_columns = expected.tolist()
    counts = Counter(columns)
    fit_counts = Counter(fit_columns)
    missing = list((fit_counts - counts).elements())
    surplus = counts - fit_counts  # names that occur more often than in the fit
    unknown = [column for column in surplus if column not in fit_counts]
    repeated = [column for column in surplus if column in fit_counts]
    faults = []
    if missing:
        faults.append(f"lacks {_listed(missing)}")
    if unknown:
        faults.append(f"has unknown {_listed(unknown)}")
    if repeated:
        faults.append(f"repeats {_listed(repeated)}")
    if faults:
        raise InputError(
            f"{name} {' and '.join(faults)}; pass the columns of the fit (feature_names_in_)"
        )

    for place, (column, fit_column) in enumerate(zip(columns, fit_columns, strict=True)):
        if column != fit_column:
            fault = f"{name} has the columns of the fit in another order"
            difference = f"column {place} is {quoted(column)} and was {quoted(fit_column)}"
            raise InputError(f"{fault}: {difference}; pass {name}[model.feature_names_in_]")


def refuse_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that `fit` does not take.

    For `sample_weight`, which other classifiers take, the error says why.
    """
    for name, value in arguments.items():
        if name != "sample_weight":
            remedy = "leave it out, or pass it to the class if it is a parameter"
            raise InputTypeError(f"fit takes no argument {quoted(name)}; {remedy}")
        if value is not None:
            reason = (
                "a weight multiplies how much one record can change, and noise hides one record at"
                " weight 1"
            )
            raise InputTypeError(f"sample_weight is not supported, since {reason}; leave it out")


def _listed(columns: list[str]) -> str:
    """Return the names of the first columns, and the number of the others."""
    noun = "column" if len(columns) == 1 else "columns"
    names = excerpt(", ".join(map(repr, columns[:MOST_LISTED])))
    if len(columns) > MOST_LISTED:
        return f"{noun} {names} and {len(columns) - MOST_LISTED} more"
    return f"{noun} {names}"


def _dense_or_csr(learner: Any, X: Any) -> Any:
    """Return X with tensors and columns of vectors as arrays, or as a CSR matrix with its indices
    checked.

    Sparse matrices are refused by learners that do not take them.
    """
    if issparse(X) and not learner.takes_sparse:
        fault = f"X is a sparse matrix, and {type(learner).__name__} needs dense rows"
        raise InputTypeError(
            f"{fault}; pass X.toarray(), or learn by sums, as NoisySumPrototypes does"
        )
    return checked_csr(X) if issparse(X) else array_of(X, "X")


def _validation_options(learner: Any, dtypes: list[Any]) -> dict[str, Any]:
    return {
        "dtype": dtypes,
        # by `_finite`, block by block
        "ensure_all_finite": False,
        "accept_sparse": "csr" if learner.takes_sparse else False,
    }


def _finite(rows: Any) -> Any:
    """Return rows if all their numbers are finite; a sparse matrix becomes `SparseRows`."""
    if issparse(rows):
        # `_dense_or_csr` has checked the indices
        rows = SparseRows(rows, checked=True)
    check_finite(rows)
    return rows


def _one_line(error: Exception) -> InputError:
    """Shorten an array error of scikit-learn to one line that quotes no data."""
    message = next(iter(str(error).splitlines()), "").rstrip(":. ")
    # These messages of numpy and scikit-learn quote an entry, or say nothing to a user.
    if "could not convert" in message or "invalid literal" in message:
        message = (
            "X has an entry that is not a number: encode texts first (tacit.Encoder), or a table"
            " with tacit.TableEncoder"
        )
    if "inhomogeneous" in message:
        message = "X has entries of different lengths"
    if isinstance(error, OverflowError):
        message = "X has an entry beyond float64"
    if "2D array" in message:
        return one_dimension("X")

    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind(f"{message}; pass X as finite numbers of shape (n, d) and y as n labels")
