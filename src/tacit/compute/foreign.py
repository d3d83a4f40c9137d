"""Arrays of other libraries: tensors of torch, sparse matrices of scipy. Neither library is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def of_tensor(values: Any) -> Any:
    """A torch tensor on any device as an array, bfloat16 as float32; anything else unchanged."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


class SparseRows:
    """Rows of a scipy sparse matrix or array of shape (n, d); slices, positions and masks of them are dense arrays."""

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix.tocsr()
        self.shape: tuple[int, int] = self._matrix.shape
        self.dtype: np.dtype[Any] = self._matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self._matrix[rows].toarray())

    def any(self, axis: int) -> NDArray[np.bool_]:
        """Whether each row has an entry other than zero, of shape (n,); the axis is 1."""
        return np.asarray((self._matrix != 0).sum(axis=axis)).ravel() > 0

    def compress(self, mask: NDArray[np.bool_], axis: int) -> SparseRows:
        """The rows where the mask of shape (n,) is true; the axis is 0."""
        return SparseRows(self._matrix[mask])
