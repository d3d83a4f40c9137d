"""Several arrays on disk that read as one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class ShardedArray:
    """Rows of several 2-D arrays, one after another, without loading them.

    Indexed by row: an integer, a slice, an array of integers or a boolean mask. Rows that lie in
    one shard and follow each other come back as a view; others are copied. `np.asarray` loads
    everything.

    Parameters
    ----------
    shards : list of arrays of shape (rows, columns)
        All of one dtype and one number of columns.
    """

    ndim = 2

    def __init__(self, shards: list[NDArray[Any]]) -> None:
        self.shards = shards
        self._starts = np.cumsum([0, *(len(shard) for shard in shards)])
        self.dtype = shards[0].dtype
        self.shape = (int(self._starts[-1]), shards[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, tuple):
            raise IndexError(
                "a store is indexed by rows only; take columns afterwards: x[rows][:, columns]"
            )
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self._run(start, stop) if step == 1 else self._take(np.arange(start, stop, step))
        if np.ndim(key) == 0:
            row = range(len(self))[key]
            only: NDArray[Any] = self._run(row, row + 1)[0]
            return only
        return self._take(self._rows(np.asarray(key)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "several shards cannot become one array without a copy; pass copy=None"
            )
        whole: NDArray[Any] = np.concatenate(self.shards)
        return whole.astype(dtype or self.dtype, copy=False)

    def _rows(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Row numbers of an index array or mask, by numpy's own rules."""
        rows: NDArray[np.intp] = np.arange(len(self))[key if key.size else key.astype(np.intp)]
        return rows

    def _run(self, start: int, stop: int) -> NDArray[Any]:
        runs = [
            shard[max(start - first, 0) : stop - first]
            for shard, first in zip(self.shards, self._starts, strict=False)
            if start < first + len(shard) and first < stop
        ]
        if not runs:
            return self.shards[0][:0]
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def _take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        taken = np.empty((*rows.shape, self.shape[1]), self.dtype)
        for number in np.unique(owner):
            mine = owner == number
            taken[mine] = self.shards[number][rows[mine] - self._starts[number]]
        return taken
