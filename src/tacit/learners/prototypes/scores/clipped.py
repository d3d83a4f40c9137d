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

# candidates in a tile
TILE = 2048

# candidates in a tile on a CUDA device: larger products are faster there, and with ROWS records
# they are 32 MiB, which still stay in the device's cache
TILE_ON_DEVICE = 4 * TILE

# private records that are multiplied with a tile at once
ROWS = 1024

# most bytes of scores, and most tiles, in a shard
SHARD_BYTES = 2**26
SHARD_TILES = 32

# An int8 product on a CUDA device (`torch._int_mm`) takes more than 16 records; its columns and its
# candidates are multiples of 8.
DEVICE_ROWS = 24
DEVICE_MULTIPLE = 8


@dataclass(frozen=True, eq=False)
class TileScorer:
    """Clipped scores of candidates (m, d), computed tile by tile.

    `rows` are the private records as integers, in groups; `ends` (g,) says where each group ends.
    Under a unit per record there is a group for each class. Under a unit per person what a record
    adds is divided by its person's number of records, and a group holds the records of one class
    with one divisor; `classes` and `divisors`, both (g,), have them. `public` are the candidates,
    and `shard` is how many of them a shard has, a multiple of TILE. Shards are numbered from 0.
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
        """Return the first candidate of each tile of a shard."""
        first = number * self.shard
        return range(first, self._end_of_shard(first), self._tile_width)

    def function(self) -> Callable[[int], Integers]:
        """Return the function that computes a tile, in any thread.

        Private rows are copied to a CUDA device once, here.
        """
        if not self._on_device:
            return self.tile

        # a copy in memory first, since rows may be mapped from a file
        torch = load_torch()
        rows = torch.from_numpy(np.array(self.rows)).cuda()
        missing_columns = -rows.shape[1] % DEVICE_MULTIPLE
        rows = torch.nn.functional.pad(rows, (0, missing_columns))

        # the divisor of each row, (n, 1)
        group_sizes = np.diff(self.ends, prepend=0)
        divisors = np.repeat(self.divisors, group_sizes)[:, None]
        return partial(self._tile_on_device, rows, torch.from_numpy(divisors).cuda(), Lock())

    @property
    def _on_device(self) -> bool:
        return self.scoring.arithmetic.name == "int8-cuda"

    @property
    def _tile_width(self) -> int:
        if self._on_device:
            return TILE_ON_DEVICE
        return TILE

    def _end_of_shard(self, first: int) -> int:
        """End of the shard in which this candidate lies."""
        number = first // self.shard
        return min((number + 1) * self.shard, len(self.public))

    def tile(self, first: int) -> Integers:
        """Compute the scores of the candidates from `first` on, (C, up to TILE)."""
        from tacit.mechanisms.kernels import add_clipped, add_shares

        rule = self.scoring
        candidates = self._candidates(first)
        totals = np.zeros((self.n_classes, len(candidates)), np.int64)
        buffer = rule.arithmetic.buffer(ROWS, len(candidates))

        for start, groups, ends in self._row_blocks():
            rows = self.rows[start : start + ROWS]
            products = rule.arithmetic.products(rows, candidates, buffer)
            if rule.classes is None:
                # groups are classes; a slice is a view, so the kernel adds to `totals` itself
                add_clipped(products, ends, rule.low, rule.high, totals[groups])
            else:
                # several groups may be of one class: each is added to the total of its class
                classes = self.classes[groups]
                divisors = self.divisors[groups]
                add_shares(
                    products, ends, classes, divisors, rule.low, rule.high, rule.factor, totals
                )
        return totals

    def _tile_on_device(self, rows: Any, divisors: Any, lock: Any, first: int) -> Integers:
        """Compute the scores of the candidates of a tile on a CUDA device.

        Threads round candidates side by side; the `lock` lets one thread at a time give work to the
        device.
        """
        torch = load_torch()
        rule = self.scoring
        candidates = self._candidates(first)

        # zeros up to the next multiple on both sides
        n_padded = -(-len(candidates) // DEVICE_MULTIPLE) * DEVICE_MULTIPLE
        padded = np.zeros((n_padded, rows.shape[1]), np.int8)
        padded[: len(candidates), : candidates.shape[1]] = candidates

        with lock:
            right = torch.from_numpy(padded).cuda().T
            totals = torch.zeros((self.n_classes, n_padded), dtype=torch.int64, device=rows.device)
            for c, start, end in self._class_blocks():
                n_rows = end - start

                # rows of zeros fill up a short block, and their products are dropped
                missing_rows = max(0, DEVICE_ROWS - n_rows)
                left = torch.nn.functional.pad(rows[start:end], (0, 0, 0, missing_rows))
                products = torch._int_mm(left, right)[:n_rows].clamp_(rule.low, rule.high)

                # a record adds its product less `low`, as in `add_clipped` and `add_shares`
                if rule.classes is None:
                    totals[c] += products.sum(0, dtype=torch.int64) - n_rows * rule.low
                else:
                    shares = (products.long() - rule.low) * rule.factor
                    totals[c] += shares.div_(divisors[start:end], rounding_mode="floor").sum(0)

        scores: Integers = totals[:, : len(candidates)].cpu().numpy()
        return scores

    def _candidates(self, first: int) -> NDArray[Any]:
        """Candidates of the tile that begins with `first`, as integers."""
        end = min(first + self._tile_width, self._end_of_shard(first))
        return self.scoring.arithmetic.integers(
            self.public[first:end], self.scoring.centre, public=True
        )

    def _class_blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield the class, the start and the end of each block of private rows of one class."""
        # `classes` is sorted: the number of groups up to and including each class, then of rows
        n_groups = np.searchsorted(self.classes, range(self.n_classes), side="right")
        class_ends = np.concatenate([[0], self.ends])[n_groups].tolist()

        start = 0
        for c, class_end in enumerate(class_ends):
            for first in range(start, class_end, ROWS):
                yield c, first, min(first + ROWS, class_end)
            start = class_end

    def _row_blocks(self) -> Iterator[tuple[int, slice, Integers]]:
        """Yield the start and the groups of each block of private rows, and the ends of the groups.

        Ends are positions in the block.
        """
        for start in range(0, len(self.rows), ROWS):
            end = min(start + ROWS, len(self.rows))

            # the groups of the first and of the last row: the first group that ends after the row
            first_group = int(np.searchsorted(self.ends, start, side="right"))
            last_group = int(np.searchsorted(self.ends, end - 1, side="right"))
            groups = slice(first_group, last_group + 1)

            # the last group may go on in the next block
            ends_in_block = np.minimum(self.ends[groups], end) - start
            yield start, groups, ends_in_block


def shard_width(n_classes: int) -> int:
    """Return the number of candidates in a shard."""
    # scores are int64
    bytes_of_tile = 8 * TILE * n_classes
    n_tiles = max(1, SHARD_BYTES // bytes_of_tile)
    return TILE * min(SHARD_TILES, n_tiles)


@phase(SCORING)
def shards_in_memory(scorer: TileScorer) -> list[Integers]:
    """Compute all scores, as an array (C, t) for each tile of t consecutive candidates."""
    starts = [first for number in range(scorer.count) for first in scorer.tiles(number)]
    tiles = in_threads(scorer.function(), starts)
    return list(progress(tiles, "scores", len(scorer.public), lambda tile: tile.shape[1]))


@phase(SCORING)
def shards_in_folder(
    scorer: TileScorer, checkpoint: Checkpoint, engine: Engine | None
) -> list[Integers]:
    """Compute all shards that no earlier run finished, and return all as mapped files."""
    missing = [
        number for number in range(scorer.count) if not _finished(scorer, checkpoint, number)
    ]
    if engine is None:
        _compute_in_threads(scorer, checkpoint, missing)
    elif missing:
        _compute_on_engine(scorer, checkpoint, missing, engine)
    return [checkpoint.read(_file(number)) for number in range(scorer.count)]


def _compute_in_threads(scorer: TileScorer, checkpoint: Checkpoint, numbers: list[int]) -> None:
    function = scorer.function()
    for number in numbers:
        starts = scorer.tiles(number)
        label = f"scores, part {number + 1} of {scorer.count}"
        tiles = progress(in_threads(function, starts), label, len(starts))
        _write(checkpoint, number, tiles)


def _compute_on_engine(
    scorer: TileScorer, checkpoint: Checkpoint, numbers: list[int], engine: Engine
) -> None:
    folder = checkpoint.folder
    scorer_of_files = replace(
        scorer, public=to_files(scorer.public, folder), rows=to_files(scorer.rows, folder)
    )
    finished = engine.map(partial(_work, scorer_of_files, checkpoint), numbers)
    # workers write the files; their results are None, and are drawn to wait for all
    for _ in progress(finished, "shards", len(numbers)):
        pass


def _work(scorer_of_files: TileScorer, checkpoint: Checkpoint, number: int) -> None:
    """Compute a shard in a worker, to which the files of the arrays are sent, not the arrays."""
    scorer = replace(
        scorer_of_files, public=scorer_of_files.public.open(), rows=scorer_of_files.rows.open()
    )
    _write(checkpoint, number, in_threads(scorer.function(), scorer.tiles(number)))


def _file(number: int) -> str:
    return f"{number:05d}.npy"


def _finished(scorer: TileScorer, checkpoint: Checkpoint, number: int) -> bool:
    """Tell whether the file of a shard exists, whole and of the right shape."""
    # the last shard may be narrower
    width = min(scorer.shard, len(scorer.public) - number * scorer.shard)
    try:
        scores = checkpoint.read(_file(number))
    except (OSError, ValueError):
        return False
    return bool(scores.dtype == np.int64 and scores.shape == (scorer.n_classes, width))


def _write(checkpoint: Checkpoint, number: int, tiles: Iterator[Integers]) -> None:
    """Write the tiles of a shard, side by side, to its file."""
    scores = np.concatenate(list(tiles), axis=1)
    try:
        checkpoint.write(_file(number), scores)
    except OSError as error:
        fault = (
            f"{checkpoint.folder} cannot take {scores.nbytes} bytes of scores ({one_line(error)})"
        )
        raise InputError(f"{fault}; choose another folder") from error
