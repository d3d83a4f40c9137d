"""Clipped scores, tile by tile: no array of records by candidates ever exists.

A tile is TILE candidates, multiplied with ROWS private records at a time; a shard is the scores of
several tiles. The scores of a tile depend on its candidates and the private records alone, so their
integers are the same in any order and on any worker. With a folder each shard is a file, and a
later run resumes from finished ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.array_files import to_files
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine
from tacit.compute.libraries.torch import load_torch
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.compute.timing import SCORING, phase
from tacit.data.rows import one_line
from tacit.errors import InputError
from tacit.learners.prototypes.scores.arithmetic import Scoring
from tacit.mechanisms.noise import Integers

TILE = 2048  # candidates
# on a CUDA device: its products with the rows of a class stay in its cache
TILE_ON_DEVICE = 4 * TILE
ROWS = 1024  # private records that meet a tile at once
SHARD_BYTES = 2**26  # of scores in a shard, at most
SHARD_TILES = 32


@dataclass(frozen=True, eq=False)
class TileScorer:
    """Computes the clipped scores of candidates (m, d), tile by tile.

    `rows` are the private records as integers, in groups, of which `ends` (g,) are the ends. There
    is a group for each class; or, if scores are shared by person, for each class and number of
    records of a person, in `classes` (g,) and `divisors` (g,). `shard` is the number of candidates
    in a shard, a multiple of TILE.
    """

    scoring: Scoring
    public: Any
    rows: Any
    ends: Integers
    classes: Integers
    divisors: Integers
    n_classes: int
    shard: int

    @property
    def count(self) -> int:
        """Number of shards."""
        return -(-len(self.public) // self.shard)

    def tiles(self, number: int) -> range:
        """First candidates of the tiles of a shard."""
        first = number * self.shard
        return range(first, self._end_of_shard(first), TILE_ON_DEVICE if self._on_device else TILE)

    def function(self) -> Callable[[int], Integers]:
        """The function that computes a tile, in any thread; private rows are copied to a CUDA
        device once.
        """
        if not self._on_device:
            return self.tile
        torch = load_torch()
        rows = torch.nn.functional.pad(
            torch.from_numpy(np.array(self.rows)).cuda(), (0, -self.rows.shape[1] % 8)
        )
        divisors = np.repeat(self.divisors, np.diff(self.ends, prepend=0))[:, None]
        return partial(self._tile_on_device, rows, torch.from_numpy(divisors).cuda(), Lock())

    @property
    def _on_device(self) -> bool:
        return self.scoring.arithmetic.name == "int8-cuda"

    def _end_of_shard(self, first: int) -> int:
        return min((first // self.shard + 1) * self.shard, len(self.public))

    def tile(self, first: int) -> Integers:
        """Scores of the candidates from `first` on, (C, up to TILE)."""
        from tacit.mechanisms.kernels import add_clipped, add_shares

        candidates, how = self._candidates(first), self.scoring
        totals = np.zeros((self.n_classes, len(candidates)), np.int64)
        buffer = how.arithmetic.buffer(ROWS, len(candidates))
        for start, groups, ends in self._row_blocks():
            products = how.arithmetic.products(self.rows[start : start + ROWS], candidates, buffer)
            if how.classes is not None:
                shares = self.classes[groups], self.divisors[groups]
                add_shares(products, ends, *shares, how.low, how.high, how.factor, totals)
            else:
                add_clipped(products, ends, how.low, how.high, totals[groups])
        return totals

    def _tile_on_device(self, rows: Any, divisors: Any, lock: Any, first: int) -> Integers:
        """Scores of the candidates of a tile on a CUDA device, whose products take multiples of 8.

        Threads make integers of candidates side by side; the `lock` lets one at a time give work to
        the device.
        """
        torch = load_torch()
        candidates, how = self._candidates(first), self.scoring
        padded = np.zeros((-(-len(candidates) // 8) * 8, rows.shape[1]), np.int8)
        padded[: len(candidates), : candidates.shape[1]] = candidates
        with lock:
            right = torch.from_numpy(padded).cuda().T
            totals = torch.zeros(
                (self.n_classes, len(padded)), dtype=torch.int64, device=rows.device
            )
            for c, start, end in self._class_blocks():
                # more than 16
                tall = torch.nn.functional.pad(rows[start:end], (0, 0, 0, max(0, 24 - end + start)))
                products = torch._int_mm(tall, right)[: end - start].clamp_(how.low, how.high)
                if how.classes is None:
                    totals[c] += products.sum(0, dtype=torch.int64) - (end - start) * how.low
                else:
                    added = (products.long() - how.low) * how.factor
                    totals[c] += added.div_(divisors[start:end], rounding_mode="floor").sum(0)
        scores: Integers = totals[:, : len(candidates)].cpu().numpy()
        return scores

    def _candidates(self, first: int) -> NDArray[Any]:
        how, end = self.scoring, first + (TILE_ON_DEVICE if self._on_device else TILE)
        return how.arithmetic.integers(
            self.public[first : min(end, self._end_of_shard(first))], how.centre, public=True
        )

    def _class_blocks(self) -> Iterator[tuple[int, int, int]]:
        """For each block of private rows of one class: the class, and the start and end of the
        block.
        """
        # up to each class, which is sorted
        groups = np.searchsorted(self.classes, range(self.n_classes), side="right")
        start = 0
        for c, end in enumerate(np.concatenate([[0], self.ends])[groups].tolist()):
            for first in range(start, end, ROWS):
                yield c, first, min(first + ROWS, end)
            start = end

    def _row_blocks(self) -> Iterator[tuple[int, slice, Integers]]:
        """For each block of private rows: its start, its groups, and where the rows of each group
        end in the block.
        """
        for start in range(0, len(self.rows), ROWS):
            end = min(start + ROWS, len(self.rows))
            first, last = (
                int(np.searchsorted(self.ends, place, side="right")) for place in (start, end - 1)
            )
            yield (
                start,
                slice(first, last + 1),
                np.minimum(self.ends[first : last + 1], end) - start,
            )


def shard_width(n_classes: int) -> int:
    """Candidates in a shard."""
    return TILE * min(SHARD_TILES, max(1, SHARD_BYTES // (8 * TILE * n_classes)))


@phase(SCORING)
def shards_in_memory(scorer: TileScorer) -> list[Integers]:
    """All scores as arrays (C, TILE), side by side."""
    starts = [first for number in range(scorer.count) for first in scorer.tiles(number)]
    tiles = in_threads(scorer.function(), starts)
    return list(progress(tiles, "scores", len(scorer.public), lambda tile: tile.shape[1]))


@phase(SCORING)
def shards_in_folder(
    scorer: TileScorer, checkpoint: Checkpoint, engine: Engine | None
) -> list[Integers]:
    """All shards, as mapped files; finished ones are not computed again."""
    missing = [
        number for number in range(scorer.count) if not _finished(scorer, checkpoint, number)
    ]
    if engine is None:
        function = scorer.function()
        for number in missing:
            tiles = in_threads(function, scorer.tiles(number))
            label = f"scores, part {number + 1} of {scorer.count}"
            _write(checkpoint, number, progress(tiles, label, len(scorer.tiles(number))))
    elif missing:
        folder = checkpoint.folder
        in_files = replace(
            scorer, public=to_files(scorer.public, folder), rows=to_files(scorer.rows, folder)
        )
        for _ in progress(
            engine.map(partial(_work, in_files, checkpoint), missing), "shards", len(missing)
        ):
            pass
    return [checkpoint.read(_file(number)) for number in range(scorer.count)]


def _work(in_files: TileScorer, checkpoint: Checkpoint, number: int) -> None:
    """Compute a shard in a worker, which gets the files of the arrays."""
    scorer = replace(in_files, public=in_files.public.open(), rows=in_files.rows.open())
    _write(checkpoint, number, in_threads(scorer.function(), scorer.tiles(number)))


def _file(number: int) -> str:
    return f"{number:05d}.npy"


def _finished(scorer: TileScorer, checkpoint: Checkpoint, number: int) -> bool:
    """Whether the file of a shard exists, whole and of the right shape."""
    width = min(scorer.shard, len(scorer.public) - number * scorer.shard)
    try:
        scores = checkpoint.read(_file(number))
    except (OSError, ValueError):
        return False
    return bool(scores.dtype == np.int64 and scores.shape == (scorer.n_classes, width))


def _write(checkpoint: Checkpoint, number: int, tiles: Iterator[Integers]) -> None:
    scores = np.concatenate(list(tiles), axis=1)
    try:
        checkpoint.write(_file(number), scores)
    except OSError as error:
        fault = (
            f"{checkpoint.folder} cannot take {scores.nbytes} bytes of scores ({one_line(error)})"
        )
        raise InputError(f"{fault}; choose another folder") from error
