"""The integers in which scores are computed. A new arithmetic is a new entry of `ARITHMETICS`.

Unit rows are scaled and rounded to the nearest integers, so every product and every partial sum of
a product is an integer that the arithmetic holds exactly, in any order, block shape, number of
threads or device:

float32     norm at most N = 2^12: |partial sums| <= N^2 = 2^24, by Cauchy and Schwarz
float64     norm at most N = 2^18: 2^36
int8        entries at most 127: |sums| <= 127^2 (d + 4) < 2^31 for d <= 2^17, in int32. The scale
            follows from public rows. All rows are first rotated by the same matrix (`_rotate` of
            the kernels), which keeps their products and spreads large columns, which would force a
            small scale. Four more columns correct each product for the rounding errors of both rows
            along the public mean.
int8-cuda   the same integers on a CUDA device

Rounding to the nearest moves a row of norm s by sqrt(d)/2 at most, so s = N - sqrt(d)/2 keeps the
norm below N. It changes a cosine by sqrt(1/6)/s typically; in int8 by sqrt((1 - |mean|^2)/6)/s if
rows lie about the public mean, which is unknown for private rows. A window is too narrow for an
arithmetic if sqrt(1/6)/s is a large share of it.
The choice of an arithmetic uses public facts alone, since its rounding is part of the mechanism.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines.workers import one_thread_each
from tacit.compute.extras import is_installed
from tacit.compute.libraries.torch import load_torch
from tacit.errors import InputError
from tacit.mechanisms.rounding import SLACK
from tacit.models.rows import Floats, unit_rows_about

BLOCK = 256  # rows that are rounded at once
SAMPLE = 1024  # first public rows, whose largest entry decides the scale of int8
FINE = 2.0**20  # scale at which the largest entry is measured
# numbers in the public rows from which "auto" considers int8: fewer are scored quickly anyway
LARGE = 2**27
INT8_CHECKS = ("_is_amx_tile_supported", "_is_vnni_supported")
# a person adds at most 2^37 to a score, as a record does: 2^26 of them stay in 64 bits
SHARED_BITS = 37
ERROR = 0.25  # typical rounding error of a product that is allowed, as a share of the window
ERROR_AUTO = 0.02  # the same under "auto"


@dataclass(frozen=True)
class Arithmetic:
    """Integers of one type.

    Rows have a norm of at most `norm` (0 if only entries are bounded) and entries of at most
    `limit`. `scaled` sets `scale`, the norm of a unit row before rounding, and `mean` (d,), that of
    public rows if rows are rotated.
    """

    name: str
    dtype: str
    norm: int
    limit: float
    scale: float = 0.0
    mean: Floats | None = field(default=None, repr=False, compare=False)

    @property
    def rotated(self) -> bool:
        """Whether rows are rotated, and corrected along the public mean."""
        return not self.norm

    def scaled(self, public: Any, centre: Floats | None = None) -> "Arithmetic":
        """This arithmetic with its scale, and mean, for these public rows."""
        if not self.rotated:
            return replace(self, scale=(self.norm - math.sqrt(public.shape[1]) / 2) * SLACK)
        sample = public[:SAMPLE]
        rotated = np.empty(sample.shape)
        _round_rotated(sample, centre, FINE, math.inf, rotated, np.zeros(public.shape[1]))
        largest = max(float(np.abs(rotated).max()) / FINE, 1 / math.sqrt(public.shape[1]))
        return replace(self, scale=self.limit / largest, mean=rotated.mean(axis=0) / FINE)

    def window(self, d_min: float, d_max: float) -> tuple[int, int]:
        """Clip bounds of 1 + cosine as bounds of an integer product."""
        low, high = (round((bound - 1) * self.scale**2) for bound in (d_min, d_max))
        return low, high

    def width(self, columns: int) -> int:
        """Columns of integer rows."""
        return columns + 4 if self.rotated else columns

    def integers(
        self, rows: Any, centre: Floats | None = None, *, public: bool = False
    ) -> NDArray[Any]:
        """Rows as integers, (b, width), for products of a `public` row and a private row; rows of
        zeros stay zero.
        """
        if self.mean is None:
            return _rounded(rows, centre, self.scale, self.limit, self.dtype)
        columns = rows.shape[1]
        integers = np.zeros((len(rows), self.width(columns)), self.dtype)
        lost = _round_rotated(
            rows, centre, self.scale, self.limit, integers, self.mean * self.scale
        )
        high = np.rint(lost / self.limit).clip(-self.limit, self.limit)
        low = np.rint(lost - high * self.limit).clip(-self.limit, self.limit)
        present = integers.any(axis=1)
        # factors of the other row: they restore `lost`
        errors, factors = (high, low), (present * self.limit, present)
        integers[:, columns:] = np.column_stack(errors + factors if public else factors + errors)
        return integers

    def error(self, d_min: float, d_max: float) -> float:
        """A bound on the typical rounding error of a cosine, as a share of the window."""
        return math.sqrt(1 / 6) / (self.scale * (d_max - d_min))

    def products(
        self, rows: NDArray[Any], candidates: NDArray[Any], buffer: NDArray[Any]
    ) -> NDArray[Any]:
        """Inner products, (r, t), written to the first r rows of `buffer`."""
        out = buffer[: len(rows), : len(candidates)]
        if self.dtype != "int8":
            return np.matmul(rows, candidates.T, out=out)
        torch = load_torch()
        torch._int_mm(
            torch.from_numpy(rows), torch.from_numpy(candidates).T, out=torch.from_numpy(out)
        )
        return out

    def buffer(self, rows: int, candidates: int) -> NDArray[Any]:
        """A buffer for `products`."""
        return np.empty((rows, candidates), np.int32 if self.dtype == "int8" else self.dtype)


ARITHMETICS = {
    arithmetic.name: arithmetic
    for arithmetic in (
        Arithmetic("float32", "float32", 2**12, 2.0**24),
        Arithmetic("float64", "float64", 2**18, 2.0**36),
        Arithmetic("int8", "int8", 0, 127.0),
        Arithmetic("int8-cuda", "int8", 0, 127.0),
    )
}
AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Scoring:
    """How scores are computed, from public facts alone.

    A product of rows is clipped to [low, high]. `centre` (d,) is subtracted from unit rows on both
    sides, which are then made unit again. Under a unit per person `classes` is the number of
    classes, and what a record adds is divided by its person's number of records; else it is None.
    """

    arithmetic: Arithmetic
    low: int
    high: int
    clipped: bool
    centre: Floats | None = None
    classes: int | None = None

    @property
    def sensitivity(self) -> int:
        """The most by which one record, or one person in all classes together, raises a score."""
        rounding = 2 * self.classes if self.classes is not None and not self.clipped else 0
        return (self.high - self.low) * self.factor + rounding

    @property
    def factor(self) -> int:
        """A power of 2 by which clipped scores are multiplied before they are divided: rounding
        then takes little.
        """
        if self.classes is None or not self.clipped:
            return 1
        return 1 << max(0, SHARED_BITS - (self.high - self.low - 1).bit_length())


def scoring(
    public: Any,
    d_min: float,
    d_max: float,
    *,
    centre: Floats | None = None,
    name: str = AUTO,
    classes: int | None = None,
) -> Scoring:
    """How to score public rows of shape (m, d) within a window, in the arithmetic of this name.

    `classes` is their number under a unit per person, and None under a unit per record.
    """
    check_usable(name, public.shape[1])
    if (d_min, d_max) == (0, 2):
        exact = ARITHMETICS["float64"].scaled(public)
        return Scoring(
            exact, -(exact.norm**2), exact.norm**2, clipped=False, centre=centre, classes=classes
        )
    chosen = arithmetic_for(name, public, d_min, d_max, centre)
    return Scoring(
        chosen, *chosen.window(d_min, d_max), clipped=True, centre=centre, classes=classes
    )


def arithmetic_for(
    name: str, public: Any, d_min: float, d_max: float, centre: Floats | None = None
) -> Arithmetic:
    """The arithmetic of this name; "auto" chooses one by the public rows, the window and the
    machine.
    """
    if name != AUTO:
        chosen = ARITHMETICS[name].scaled(public, centre)
        if chosen.error(d_min, d_max) > ERROR and name != "float64":
            raise InputError(
                f"arithmetic={name!r} cannot resolve d_min={d_min}, d_max={d_max}; leave it out, or"
                " widen"
            )
        return chosen
    names = ["float32", "float64"]
    if math.prod(public.shape) >= LARGE and int8_is_faster(public.shape[1]):
        names.insert(0, "int8")
    scaled = (ARITHMETICS[name].scaled(public, centre) for name in names)
    fine = (arithmetic for arithmetic in scaled if arithmetic.error(d_min, d_max) <= ERROR_AUTO)
    return next(fine, ARITHMETICS["float64"].scaled(public))


def _rounded(
    rows: Any, centre: Floats | None, scale: float, limit: float, dtype: str
) -> NDArray[Any]:
    from tacit.mechanisms.kernels import round_rows, row_buffer

    integers = np.empty(rows.shape, dtype)
    for place, block in _blocks(rows, centre):
        round_rows(block, scale, limit, integers[place], row_buffer(block))
    return integers


def _round_rotated(
    rows: Any, centre: Floats | None, scale: float, limit: float, out: NDArray[Any], along: Floats
) -> Floats:
    """Write rotated rows as integers to `out`; return the rounding errors of their products with
    `along`.
    """
    from tacit.mechanisms.kernels import rotation_signs, round_rotated, row_buffer

    lost, signs = np.empty(len(rows)), rotation_signs(rows.shape[1])
    for place, block in _blocks(rows, centre):
        round_rotated(block, scale, limit, out[place], row_buffer(block), signs, along, lost[place])
    return lost


def _blocks(rows: Any, centre: Floats | None) -> Iterator[tuple[slice, NDArray[Any]]]:
    from tacit.mechanisms.kernels import readable

    for start in range(0, len(rows), BLOCK):
        place = slice(start, start + BLOCK)
        yield (
            place,
            readable(
                np.asarray(rows[place] if centre is None else unit_rows_about(rows[place], centre))
            ),
        )


def check_name(name: Any) -> None:
    """Refuse a name that is not of an arithmetic."""
    if name != AUTO and (not isinstance(name, str) or name not in ARITHMETICS):
        raise InputError(
            f"arithmetic={name!r} must be {AUTO} or one of {', '.join(ARITHMETICS)}; leave it out"
        )


def check_usable(name: str, width: int) -> None:
    """Refuse an arithmetic that needs a library or device that is missing, or cannot take rows of
    this width.
    """
    check_name(name)
    if not name.startswith("int8"):
        return
    if width > 2**17:
        raise InputError(
            f"arithmetic={name!r} takes rows of {2**17} columns at most, not {width}; leave it out"
        )
    torch = load_torch()  # before threads start, which set its own

    if name == "int8-cuda" and not torch.cuda.is_available():
        raise InputError(
            f"arithmetic={name!r} needs a CUDA device, and torch sees none; leave it out"
        )


@lru_cache(maxsize=8)
def int8_is_faster(width: int) -> bool:
    """Whether this machine multiplies int8 faster than float32, by a short measurement if its
    processor has int8.
    """
    if not is_installed("torch") or width > 2**17:
        return False
    torch = load_torch()
    if not any(getattr(torch.cpu, name, bool)() for name in INT8_CHECKS):
        return False
    with one_thread_each():  # as when tiles are computed
        return speed("int8", 256, 1024, width) > speed("float32", 256, 1024, width)


def speed(name: str, rows: int, candidates: int, width: int, runs: int = 5) -> float:
    """Operations per second of a product of this shape, the best of `runs`."""
    arithmetic = ARITHMETICS[name]
    left, right = (np.ones((n, width), arithmetic.dtype) for n in (rows, candidates))
    buffer = arithmetic.buffer(rows, candidates)
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        arithmetic.products(left, right, buffer)
        times.append(time.perf_counter() - started)
    return 2 * rows * candidates * width / min(times[1:])
