"""Rows that are read from files in order, of which one batch at a time is in memory."""

import math
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import BLOCK_VALUES

# bytes of rows that are held in memory; more are kept in a temporary file
MOST_IN_MEMORY = 256 << 20

T = TypeVar("T")


class StreamedRows:
    """Rows of one shape and type, read as they are asked for.

    A slice that begins where the last one ended goes on reading; another begins anew. `np.asarray`
    loads everything, and `stored` makes an array of any size.

    Parameters
    ----------
    blocks : function
        Returns an iterator over arrays of shape (any number of rows, *shape[1:]), from the first
        row on.
    shape : tuple of int
    dtype : dtype
    """

    def __init__(
        self,
        blocks: Callable[[], Iterator[NDArray[Any]]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._blocks = blocks
        self.shape = shape
        self.dtype = dtype
        self._begin()

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def reshape(self, *shape: int) -> "StreamedRows":
        """Return the same rows in another shape, which has as many rows."""
        return StreamedRows(self._blocks, shape, self.dtype)

    def __getitem__(self, key: slice) -> NDArray[Any]:
        start, stop, step = key.indices(len(self))
        if step != 1:
            raise IndexError("streamed rows are read in order; take a slice without a step")
        if start < self._position:
            self._begin()
        while self._position < start:
            self._take(min(start - self._position, self._step))
        return self._take(stop - start)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("streamed rows cannot become an array without a copy; pass copy=None")
        rows = np.empty(self.shape, self.dtype)
        self._copy(rows)
        return rows.astype(dtype or self.dtype, copy=False)

    def stored(self) -> NDArray[Any]:
        """Return all rows as an array, in memory or mapped from a temporary file without a name."""
        n_bytes = math.prod(self.shape) * self.dtype.itemsize
        if n_bytes <= MOST_IN_MEMORY:
            return np.asarray(self)
        with tempfile.TemporaryFile(prefix="tacit-") as file:
            rows = np.memmap(file, self.dtype, "w+", shape=self.shape)
            self._copy(rows)
        return rows

    @property
    def _step(self) -> int:
        """Number of rows that are read at once."""
        return max(1, BLOCK_VALUES // math.prod(self.shape[1:]))

    def _copy(self, rows: NDArray[Any]) -> None:
        """Copy all rows into an array."""
        for start in range(0, len(self), self._step):
            stop = start + self._step
            rows[start:stop] = self[start:stop]

    def _begin(self) -> None:
        self._iterator: Iterator[NDArray[Any]] | None = None
        self._position = 0
        self._rest: NDArray[Any] | None = None

    def _take(self, n: int) -> NDArray[Any]:
        """Return the next n rows."""
        if self._iterator is None:
            self._iterator = read_ahead(self._blocks())
        pieces = []
        n_missing = n
        while n_missing > 0:
            block = self._rest
            if block is None or len(block) == 0:
                block = next(self._iterator)
            piece = block[:n_missing]
            pieces.append(piece.reshape(len(piece), *self.shape[1:]))
            self._rest = block[n_missing:]
            n_missing -= len(pieces[-1])

        self._position += n
        if len(pieces) == 1:
            return pieces[0]
        no_rows = np.empty((0, *self.shape[1:]), self.dtype)
        return np.concatenate([no_rows, *pieces])


class Spool:
    """Rows collected block by block: in memory, or in a temporary file without a name once they are
    more than MOST_IN_MEMORY bytes.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._blocks: list[NDArray[Any]] = []
        self._file: IO[bytes] | None = None
        self._n_bytes = 0

    def append(self, block: NDArray[Any]) -> None:
        """Add rows, of the shape and type that those before have."""
        self.n_rows += len(block)
        self._n_bytes += block.nbytes
        self._blocks.append(block)
        if self._n_bytes > MOST_IN_MEMORY:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="tacit-")  # noqa: SIM115 (closed by array)
            for waiting in self._blocks:
                waiting.tofile(self._file)
            # its shape and type remain
            self._blocks = [block[:0]]

    def array(self) -> NDArray[Any]:
        """Return all rows, in memory or mapped from the file."""
        if self._file is None:
            return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)
        empty = self._blocks[0]
        with self._file as file:
            file.flush()
            return np.memmap(file, empty.dtype, "r+", shape=(self.n_rows, *empty.shape[1:]))


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items while a thread computes the next one."""
    with ThreadPoolExecutor(1) as pool:
        following: Future[list[T]] = pool.submit(_next, items)
        while item := following.result():
            following = pool.submit(_next, items)
            yield item[0]


def _next(items: Iterator[T]) -> list[T]:
    """Return the next item in a list, or an empty list at the end."""
    for item in items:
        return [item]
    return []
