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
        self.dtype = shards[0].dtype

        # position of the first row of each shard, and the number of all rows at the end
        self._starts = np.cumsum([0, *(len(shard) for shard in shards)])
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
            if step == 1:
                return self._run(start, stop)
            return self._take(np.arange(start, stop, step))
        if np.ndim(key) == 0:
            # a range counts negative positions from the end, and refuses those outside
            position = range(len(self))[key]
            row: NDArray[Any] = self._run(position, position + 1)[0]
            return row
        return self._take(self._positions(np.asarray(key)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "several shards cannot become one array without a copy; pass copy=None"
            )
        all_rows: NDArray[Any] = np.concatenate(self.shards)
        return all_rows.astype(dtype or self.dtype, copy=False)

    def _positions(self, key: NDArray[Any]) -> NDArray[np.intp]:
        """Return row numbers of an index array or mask, by numpy's rules."""
        if key.size == 0:
            # an empty list becomes an array of floats, which numpy takes for no index
            key = key.astype(np.intp)
        positions: NDArray[np.intp] = np.arange(len(self))[key]
        return positions

    def _run(self, start: int, stop: int) -> NDArray[Any]:
        """Return consecutive rows; a view if they lie in one shard."""
        pieces = []
        for shard, shard_start in zip(self.shards, self._starts[:-1], strict=True):
            shard_stop = shard_start + len(shard)
            if start < shard_stop and shard_start < stop:
                first = max(start - shard_start, 0)
                pieces.append(shard[first : stop - shard_start])

        if not pieces:
            return self.shards[0][:0]
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces)

    def _take(self, positions: NDArray[np.intp]) -> NDArray[Any]:
        """Copy rows at any positions, shard by shard, (*positions.shape, columns)."""
        shard_numbers = np.searchsorted(self._starts, positions, side="right") - 1
        rows = np.empty((*positions.shape, self.shape[1]), self.dtype)
        for number in np.unique(shard_numbers):
            in_shard = shard_numbers == number
            rows[in_shard] = self.shards[number][positions[in_shard] - self._starts[number]]
        return rows
