"""Clipped scores, tile by tile: no array of records by candidates ever exists.

Candidates are cut into tiles of TILE, and tiles into shards. A tile's scores need the tile and every private record, so
whoever computes a tile, and in which order, its integers are the same. With a folder, every shard is kept as a file
when it is done, and a later run goes on from there; workers of an engine compute a shard each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine
from tacit.compute.mapped import mapped
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.compute.timing import SCORING, phase
from tacit.data.rows import one_line
from tacit.errors import InputError
from tacit.learners.common.rows import Floats
from tacit.learners.prototypes.scores.arithmetic import Arithmetic
from tacit.mechanisms.noise import Integers

TILE = 2048  # candidates
ROWS = 1024  # private records that meet a tile at once
SHARD_BYTES = 2**26  # of scores in a shard, at most
SHARD_TILES = 32


@dataclass(frozen=True, eq=False)
class Clipped:
    """What decides the clipped scores.

    Parameters
    ----------
    public : array of shape (m, d)
        Candidates.
    rows : array of shape (n, arithmetic.width(d))
        Private records as integers, by class.
    ends : array of shape (C,), int64
        Where each class's records end.
    low, high : int
        Bounds of an inner product.
    arithmetic : Arithmetic
    shard : int
        Candidates in a shard: whole tiles.
    centre : array of shape (d,) or None
    """

    public: Any
    rows: Any
    ends: Integers
    low: int
    high: int
    arithmetic: Arithmetic
    shard: int
    centre: Floats | None = None

    @property
    def count(self) -> int:
        """Number of shards."""
        return -(-len(self.public) // self.shard)

    def tiles(self, number: int) -> range:
        """Where the tiles of a shard begin."""
        first = number * self.shard
        return range(first, min(first + self.shard, len(self.public)), TILE)

    def scorer(self) -> Callable[[int], Integers]:
        """What computes tiles, in threads; the private rows go to a device once, if there is one."""
        if self.arithmetic.name != "int8-cuda":
            return self.tile
        import torch

        rows = torch.from_numpy(np.array(self.rows)).cuda()
        return partial(self._tile_on_device, torch.nn.functional.pad(rows, (0, -rows.shape[1] % 8)))

    def tile(self, first: int) -> Integers:
        """Scores of the candidates from `first` on, (C, up to TILE)."""
        from tacit.mechanisms.kernels import add_clipped

        candidates = self._candidates(first)
        totals = np.zeros((len(self.ends), len(candidates)), np.int64)
        room = self.arithmetic.room(ROWS, len(candidates))
        for start, some, segments in self._parts():
            products = self.arithmetic.products(self.rows[start : start + ROWS], candidates, room)
            add_clipped(products, segments, self.low, self.high, totals[some])
        return totals

    def _tile_on_device(self, rows: Any, first: int) -> Integers:
        """The same on a CUDA device, whose products take multiples of 8."""
        import torch

        candidates = self._candidates(first)
        padded = np.zeros((-(-len(candidates) // 8) * 8, -(-candidates.shape[1] // 8) * 8), np.int8)
        padded[: len(candidates), : candidates.shape[1]] = candidates
        right = torch.from_numpy(padded).cuda().T
        totals = torch.zeros((len(self.ends), len(padded)), dtype=torch.int64, device=rows.device)
        for start, some, segments in self._parts():
            part = rows[start : start + ROWS]
            tall = torch.nn.functional.pad(part, (0, 0, 0, max(0, 24 - len(part))))  # it takes more than 16 rows
            products = torch._int_mm(tall, right).clamp_(self.low, self.high)
            begin = 0
            for own, end in zip(totals[some], segments.tolist(), strict=True):
                own += products[begin:end].sum(0, dtype=torch.int64) - (end - begin) * self.low
                begin = end
        found: Integers = totals[:, : len(candidates)].cpu().numpy()
        return found

    def _candidates(self, first: int) -> NDArray[Any]:
        return self.arithmetic.integers(self.public[first : first + TILE], self.centre, public=True)

    def _parts(self) -> Iterator[tuple[int, slice, Integers]]:
        """Where each block of private rows begins, its classes, and where theirs end in it."""
        for start in range(0, len(self.rows), ROWS):
            end = min(start + ROWS, len(self.rows))
            first, last = (int(np.searchsorted(self.ends, place, side="right")) for place in (start, end - 1))
            yield start, slice(first, last + 1), np.minimum(self.ends[first : last + 1], end) - start


def shard_width(n_classes: int) -> int:
    """Candidates in a shard."""
    return TILE * min(SHARD_TILES, max(1, SHARD_BYTES // (8 * TILE * n_classes)))


@phase(SCORING)
def shards_in_memory(clipped: Clipped) -> list[Integers]:
    """All shards, one after another."""
    starts = [first for number in range(clipped.count) for first in clipped.tiles(number)]
    tiles = progress(in_threads(clipped.scorer(), starts), "scores", len(clipped.public), lambda tile: tile.shape[1])
    return list(tiles)


@phase(SCORING)
def shards_in_folder(clipped: Clipped, checkpoint: Checkpoint, engine: Engine | None) -> list[Integers]:
    """All shards, as mapped files; finished ones are not computed again."""
    missing = [number for number in range(clipped.count) if not _finished(clipped, checkpoint, number)]
    if engine is None:
        scorer = clipped.scorer()
        for number in missing:
            _write(clipped, scorer, checkpoint, number, shown=True)
    elif missing:
        folder = checkpoint.folder
        reference = replace(clipped, public=mapped(clipped.public, folder), rows=mapped(clipped.rows, folder))
        found = engine.map(partial(_write_mapped, reference, checkpoint), missing)
        for _ in progress(found, "shards", len(missing)):
            pass
    return [checkpoint.read(_file(number)) for number in range(clipped.count)]


def _file(number: int) -> str:
    return f"{number:05d}.npy"


def _finished(clipped: Clipped, checkpoint: Checkpoint, number: int) -> bool:
    """Whether a shard is there, whole and of the right shape."""
    width = min(clipped.shard, len(clipped.public) - number * clipped.shard)
    try:
        scores = checkpoint.read(_file(number))
    except (OSError, ValueError):
        return False
    return bool(scores.dtype == np.int64 and scores.shape == (len(clipped.ends), width))


def _write(
    clipped: Clipped, scorer: Callable[[int], Integers], checkpoint: Checkpoint, number: int, shown: bool = False
) -> None:
    """Compute a shard and write it."""
    starts = clipped.tiles(number)
    tiles: Iterator[Integers] = in_threads(scorer, starts)
    if shown:
        tiles = progress(tiles, f"scores, part {number + 1} of {clipped.count}", len(starts))
    scores = np.concatenate(list(tiles), axis=1)
    try:
        checkpoint.write(_file(number), scores)
    except OSError as error:
        why = one_line(error)
        raise InputError(
            f"{checkpoint.folder} cannot take {scores.nbytes} bytes of scores ({why}); choose another folder"
        ) from error


def _write_mapped(reference: Clipped, checkpoint: Checkpoint, number: int) -> None:
    """The same in a worker, whose arrays are maps of files."""
    clipped = replace(reference, public=reference.public.open(), rows=reference.rows.open())
    _write(clipped, clipped.scorer(), checkpoint, number)
