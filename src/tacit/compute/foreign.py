"""Arrays of other libraries: tensors of torch, sparse matrices of scipy. Neither library is
imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

# Types of tensors that numpy does not have (float8 begins several names); all their values are
# float32 values too.
_NOT_OF_NUMPY = ("bfloat16", "float8")


def of_tensor(values: Any) -> Any:
    """A torch tensor on any device as an array, bfloat16 and float8 as float32; anything else
    unchanged.
    """
    # only a tensor has it; torch is not imported to ask
    if not hasattr(values, "detach"):
        return values
    try:
        # numpy reads no gradient, no device memory, and no view that conjugates or negates lazily
        tensor = values.detach().cpu().resolve_conj().resolve_neg()
        if any(kind in str(tensor.dtype) for kind in _NOT_OF_NUMPY):
            tensor = tensor.float()
        return tensor.numpy()
    except (TypeError, RuntimeError) as error:
        # the tensor is sparse, quantized, or without values
        fault = (
            f"a tensor ({values.layout}, {values.dtype}, device {values.device}) cannot be read as"
            " an array"
        )
        raise InputError(
            f"{fault}; pass a dense one, such as tensor.to_dense() or tensor.dequantize()"
        ) from error


def refuse_lazy(values: Any, name: str) -> None:
    """Refuse a data frame that is not computed yet, of polars, dask or the like."""
    # only such frames have these methods beside columns, which polars warns of resolving
    kind = type(values)
    for method in ("collect", "compute"):
        if hasattr(kind, "columns") and hasattr(kind, method):
            raise InputError(
                f"{name} is a {kind.__name__}, which is not computed yet; pass {name}.{method}()"
            )


def refuse_times(values: Any, name: str) -> None:
    """Refuse an array or a data frame with dates or times, which numpy would convert to numbers."""
    refuse_lazy(values, name)
    # A data frame has a dtype for each column, an array or a column has one, a list has none.
    dtypes = [getattr(values, "dtype", None)]
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        dtypes = values.dtypes

    for dtype in dtypes:
        # datetime64 and timedelta64 of numpy and pandas, timestamp of Arrow, Duration of polars
        if str(dtype).lower().startswith(("date", "time", "duration")):
            raise InputError(
                f"{name} has dates or times, which are not features; convert them to numbers or"
                " drop them"
            )


def checked_csr(matrix: Any) -> Any:
    """A copy of a sparse matrix of shape (n, d) as CSR, whose indices are all within that shape.

    scipy checks indices only when asked, and follows one out of bounds into the memory of another
    row.
    """
    if len(matrix.shape) != 2:
        raise InputError(
            f"X is sparse, of shape {matrix.shape}, not (n, d); reshape it to one row per record"
        )
    try:
        # Before the conversion, which follows indices, and after it, for formats that have no
        # check. The check may remove unused entries, so it is a copy that is checked.
        copy = matrix.copy()
        _check_indices(copy)
        copy = copy.tocsr()
        _check_indices(copy)
    except (ValueError, IndexError):
        fault = "X is a sparse matrix with indices out of bounds or out of order"
        raise InputError(
            f"{fault}; rebuild it by scipy.sparse.csr_array((values, (rows, columns)),"
            " shape=(n, d))"
        ) from None
    return copy


def _check_indices(matrix: Any) -> None:
    """Raise ValueError if a compressed matrix has indices out of bounds, or rows that end before
    they start.
    """
    # The other formats are COO, which scipy checks as it copies, and DIA, DOK and LIL, whose
    # indices are checked as CSR.
    if not hasattr(matrix, "indptr"):
        return
    matrix.check_format(full_check=True)
    # scipy does not check this where the last row ends at 0
    if np.any(np.diff(matrix.indptr) < 0):
        raise ValueError("indptr decreases")


class SparseRows:
    """Rows of a scipy sparse matrix or array of shape (n, d); slices, positions and masks of them
    are dense arrays.

    A matrix that is `checked` came from `checked_csr` and is not copied again.
    """

    ndim = 2

    def __init__(self, matrix: Any, *, checked: bool = False) -> None:
        self._matrix = matrix if checked else checked_csr(matrix)
        # `any` looks at entries one by one, so those of one place are added first; the matrix is a
        # copy also if it is `checked`
        self._matrix.sum_duplicates()
        self.shape: tuple[int, int] = self._matrix.shape
        self.dtype: np.dtype[Any] = self._matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self._matrix[rows].toarray())

    def any(self, axis: int) -> NDArray[np.bool_]:
        """Tell whether each row has an entry other than zero, of shape (n,).

        The axis is 1; it is an argument as in numpy, so that callers need not tell rows apart.
        """
        # zeros may be stored too, so stored entries are not counted
        return np.asarray((self._matrix != 0).sum(axis=axis)).ravel() > 0

    def compress(self, mask: NDArray[np.bool_], axis: int) -> SparseRows:
        """The rows where the mask of shape (n,) is true; the axis is 0, as in numpy."""
        return SparseRows(self._matrix[mask], checked=True)
