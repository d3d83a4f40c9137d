"""Blocks of records as sums read them, under a unit per record or per person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers


@dataclass(frozen=True, eq=False)
class Picked:
    """Rows of an array at the positions `at`, of shape (b,); they are copied only if they are
    converted to an array.
    """

    source: NDArray[Any]
    at: Integers

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.at), self.source.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.source.dtype

    def __len__(self) -> int:
        return len(self.at)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        picked: NDArray[Any] = self.source[self.at]
        return picked if dtype is None else picked.astype(dtype, copy=False)


class Block(NamedTuple):
    """Rows of shape (b, width), and beside each row its label (b,), its weights (b, K) or the right
    row of a product.

    Under a unit per person all rows of a person are in one block, one after another, and `ends`, of
    shape (persons,), has the position after each person's last row. Under a unit per record `ends`
    is None.
    A block without rows still says which it is, since the noise differs.
    """

    rows: Any
    beside: Any
    ends: Integers | None = None


def by_person(blocks: Iterable[tuple[Any, ...]]) -> tuple[bool, Iterator[Block]]:
    """Tell whether blocks (rows, beside) or (rows, beside, ends) have ends of persons, and the
    blocks, checked when read.

    Raises
    ------
    ValueError
        If some blocks have ends and others do not, or the last end is not the number of rows.
    """
    listed = (Block(*block) for block in blocks)
    first = next(listed, None)
    if first is None:
        return False, iter(())
    with_ends = first.ends is not None

    def checked() -> Iterator[Block]:
        for block in chain([first], listed):
            if (block.ends is not None) is not with_ends:
                raise ValueError("some blocks say whose their rows are, and others do not")
            if block.ends is not None and block.ends[-1:].sum() != len(block.rows):
                raise ValueError(
                    f"the last person does not end with the {len(block.rows)} rows of a block"
                )
            yield block

    return with_ends, checked()


def short_blocks(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """Cut blocks of records to at most `rows` rows; those of persons stay whole."""
    for block in blocks:
        if block.ends is not None:
            yield block
            continue
        for start in range(0, len(block.rows), rows):
            yield Block(block.rows[start : start + rows], block.beside[start : start + rows])
