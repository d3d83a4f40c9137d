"""The integers in which scores are computed. A new arithmetic is a new entry of `ARITHMETICS`.

Unit rows are scaled and rounded to the nearest integers, so every product and every partial sum of
a product is an integer that the arithmetic holds exactly, in any order, block shape, number of
threads or device. For rows of d columns:

float32     norm at most N = 2^12: |partial sums| <= N^2 = 2^24, by Cauchy and Schwarz
float64     norm at most N = 2^18: 2^36
int8        entries at most 127: |sums| <= 127^2 (d + 4) < 2^31 for d <= 2^17, in int32. The scale
            follows from public rows. All rows are first rotated by the same matrix (`_rotate` of
            the kernels), which keeps their products and spreads large columns, which would force a
            small scale. Four columns are added to the d; they correct each product for the rounding
            errors of both rows along the public mean.
int8-cuda   the same integers on a CUDA device

Rounding to the nearest moves a row of norm s by sqrt(d)/2 at most, so s = N - sqrt(d)/2 keeps the
norm below N. The rounding error of an entry has variance 1/12. So the errors of two rows change
their product by s sqrt(2/12) typically, and their cosine, which is the product over s^2, by
sqrt(1/6)/s. In int8 what the mean accounts for is corrected: sqrt((1 - |mean|^2)/6)/s is left if
rows lie about the public mean, which is unknown for private rows. A window is too narrow for an
arithmetic if sqrt(1/6)/s is a large share of it.

The choice of an arithmetic uses public facts alone: scores depend on it, so a choice by private
rows would be a use of them that no guarantee covers.
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

# rows that are rounded at once
BLOCK = 256

# Number of first public rows, whose largest entry decides the scale of int8. A larger entry of
# another row is clipped, which costs precision and no privacy.
SAMPLE = 1024

# The kernel returns integers alone. At this scale they tell the largest entry to a millionth.
FINE = 2.0**20

# "auto" considers int8 if the public rows have this many entries; fewer are scored quickly anyway
LARGE = 2**27

# functions of torch.cpu, each of which says that the processor multiplies int8
INT8_CHECKS = ("_is_amx_tile_supported", "_is_vnni_supported")

# int8 sums stay below 2^31 up to this many columns
INT8_COLUMNS = 2**17

# A person adds at most 2^37 to a score. So does a record under the other units (2 N^2 in float64),
# so scores of fewer than 2^26 persons or records fit 64 bits.
SHARED_BITS = 37

# Largest typical rounding error of a product, as a share of the window.
ERROR = 0.25
ERROR_AUTO = 0.02  # under "auto"


@dataclass(frozen=True)
class Arithmetic:
    """Integers of one type.

    Rows have a norm of at most `norm` (0 if only entries are bounded) and entries of at most
    `limit`, a float as the kernels take it. `scaled` sets `scale`, the norm of a unit row before
    rounding. If rows are rotated it also sets `mean` (d,), the mean of rotated public rows; `mean`
    is None otherwise.
    """

    name: str
    dtype: str
    norm: int
    limit: float
    scale: float = 0.0
    mean: Floats | None = field(default=None, repr=False, compare=False)

    @property
    def rotated(self) -> bool:
        """Tell whether rows are rotated, and corrected along the public mean."""
        return not self.norm

    def scaled(self, public: Any, centre: Floats | None = None) -> "Arithmetic":
        """Return this arithmetic with its scale, and mean, for these public rows."""
        width = public.shape[1]
        if not self.rotated:
            # s = N - sqrt(d)/2, so that a rounded row has norm N at most, less the float error
            return replace(self, scale=(self.norm - math.sqrt(width) / 2) * SLACK)

        sample = public[:SAMPLE]
        rotated = np.empty(sample.shape)
        _round_rotated(
            sample, centre, scale=FINE, limit=math.inf, out=rotated, along=np.zeros(width)
        )

        # A unit row has an entry of 1/sqrt(d) at least. The maximum matters where the sample has
        # rows of zeros alone, which would divide by 0.
        largest_entry = max(float(np.abs(rotated).max()) / FINE, 1 / math.sqrt(width))
        mean = rotated.mean(axis=0) / FINE
        return replace(self, scale=self.limit / largest_entry, mean=mean)

    def window(self, d_min: float, d_max: float) -> tuple[int, int]:
        """Return clip bounds of 1 + cosine as bounds of an integer product."""
        # a product of two rows of norm `scale` is scale^2 times their cosine
        low = round((d_min - 1) * self.scale**2)
        high = round((d_max - 1) * self.scale**2)
        return low, high

    def width(self, columns: int) -> int:
        """Return the number of columns of integer rows."""
        if self.rotated:
            return columns + 4
        return columns

    def integers(
        self, rows: Any, centre: Floats | None = None, *, public: bool = False
    ) -> NDArray[Any]:
        """Return rows as integers, (b, width); rows of zeros stay zero.

        A product is always that of a `public` row p and a private row x. If rows are rotated, both
        have four more columns, which add a + b to <p, x>, where a and b are the rounding errors of
        <p, m> and <x, m> for the public mean m:

            columns of p    a_high   a_low   127      1
            columns of x    127      1       b_high   b_low

        with a = 127 a_high + a_low, and b likewise.
        """
        if self.mean is None:
            # rows are not rotated
            return _rounded(rows, centre, self.scale, self.limit, self.dtype)

        columns = rows.shape[1]
        integers = np.zeros((len(rows), self.width(columns)), self.dtype)
        errors = _round_rotated(
            rows, centre, self.scale, self.limit, integers, self.mean * self.scale
        )

        # Each error takes two entries: errors = high * limit + low. An error too large for both is
        # clipped, so a part of it is corrected.
        high = np.rint(errors / self.limit).clip(-self.limit, self.limit)
        low = np.rint(errors - high * self.limit).clip(-self.limit, self.limit)

        # The entries 127 and 1 that multiply the errors of the other row; 0 in a row of zeros, so
        # that its products stay 0.
        present = integers.any(axis=1)
        row_errors = (high, low)
        factors = (present * self.limit, present)
        if public:
            integers[:, columns:] = np.column_stack(row_errors + factors)
        else:
            integers[:, columns:] = np.column_stack(factors + row_errors)
        return integers

    def error(self, d_min: float, d_max: float) -> float:
        """Return a bound on the typical rounding error of a cosine, as a share of the window."""
        return math.sqrt(1 / 6) / (self.scale * (d_max - d_min))

    def products(
        self, rows: NDArray[Any], candidates: NDArray[Any], buffer: NDArray[Any]
    ) -> NDArray[Any]:
        """Compute inner products of r rows and t candidates, (r, t), in a corner of `buffer`."""
        out = buffer[: len(rows), : len(candidates)]
        if self.dtype != "int8":
            return np.matmul(rows, candidates.T, out=out)

        torch = load_torch()
        left = torch.from_numpy(rows)
        right = torch.from_numpy(candidates).T
        # torch's one product of int8 that adds up in int32; it has no public name
        torch._int_mm(left, right, out=torch.from_numpy(out))
        return out

    def buffer(self, rows: int, candidates: int) -> NDArray[Any]:
        """Return a buffer for `products`."""
        dtype = self.dtype
        if dtype == "int8":
            # the type in which int8 products add up
            dtype = "int32"
        return np.empty((rows, candidates), dtype)


ARITHMETICS = {
    arithmetic.name: arithmetic
    for arithmetic in (
        # name, type, norm, limit
        Arithmetic("float32", "float32", 2**12, 2.0**24),
        Arithmetic("float64", "float64", 2**18, 2.0**36),
        Arithmetic("int8", "int8", 0, 127.0),
        # told apart by its name: `clipped.py` multiplies on the device
        Arithmetic("int8-cuda", "int8", 0, 127.0),
    )
}

# the name by which `arithmetic_for` chooses
AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Scoring:
    """Rule by which scores are computed; it follows from public facts alone.

    A product of rows is clipped to [low, high]; `clipped` is False if no product lies outside. Each
    record adds its product less `low`, times `factor`, to the score of its class. `centre` (d,) is
    subtracted from unit rows on both sides, which are then normalised again. Under a unit per
    person `classes` is the number of classes, and what a record adds is divided by its person's
    number of records; otherwise `classes` is None.
    """

    arithmetic: Arithmetic
    low: int
    high: int
    clipped: bool
    centre: Floats | None = None
    classes: int | None = None

    @property
    def sensitivity(self) -> int:
        """Most by which one record, or one person in all classes together, raises a score."""
        rounding = 0
        if self.classes is not None and not self.clipped:
            # Unclipped scores of persons are rounded down once for each class: see `unclipped.py`.
            rounding = 2 * self.classes
        return (self.high - self.low) * self.factor + rounding

    @property
    def factor(self) -> int:
        """Power of 2 by which clipped scores are multiplied under a unit per person.

        What a record adds is then divided by its person's number of records and rounded down. The
        larger it is before, the less rounding takes of it.
        """
        if self.classes is None or not self.clipped:
            return 1

        # The bit length of W - 1 is log2 W, rounded up, for the window W: so W times the factor is
        # at most 2^SHARED_BITS.
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
    """Return the rule that scores public rows of shape (m, d) within a window.

    `name` is that of an arithmetic. `classes` is the number of classes under a unit per person, and
    None under a unit per record.
    """
    check_usable(name, public.shape[1])

    # 1 + cosine lies in [0, 2]. The window of all similarities clips nothing, so one sum of rows
    # for each class is enough: so few products that the finest arithmetic serves, whatever `name`.
    if (d_min, d_max) == (0, 2):
        exact = ARITHMETICS["float64"].scaled(public)
        bound = exact.norm**2
        return Scoring(exact, -bound, bound, clipped=False, centre=centre, classes=classes)

    arithmetic = arithmetic_for(name, public, d_min, d_max, centre)
    low, high = arithmetic.window(d_min, d_max)
    return Scoring(arithmetic, low, high, clipped=True, centre=centre, classes=classes)


def arithmetic_for(
    name: str, public: Any, d_min: float, d_max: float, centre: Floats | None = None
) -> Arithmetic:
    """Return the arithmetic of this name, with its scale.

    "auto" is the fastest that resolves the window on this machine; only public facts decide.
    """
    if name != AUTO:
        arithmetic = ARITHMETICS[name].scaled(public, centre)
        # where the finest does not resolve the window, no other does
        if arithmetic.error(d_min, d_max) > ERROR and name != "float64":
            raise InputError(
                f"arithmetic={name!r} cannot resolve d_min={d_min}, d_max={d_max}; leave it out, or"
                " widen"
            )
        return arithmetic

    # the fastest first
    names = ["float32", "float64"]
    if math.prod(public.shape) >= LARGE and int8_is_faster(public.shape[1]):
        names.insert(0, "int8")
    for name in names:
        arithmetic = ARITHMETICS[name].scaled(public, centre)
        if arithmetic.error(d_min, d_max) <= ERROR_AUTO:
            return arithmetic

    # none resolves the window that well; the finest is closest
    return ARITHMETICS["float64"].scaled(public)


def _rounded(
    rows: Any, centre: Floats | None, scale: float, limit: float, dtype: str
) -> NDArray[Any]:
    """Unit rows times `scale`, rounded to integers of at most `limit`."""
    # here and below: numba is loaded on first use
    from tacit.mechanisms.kernels import round_rows, row_buffer

    integers = np.empty(rows.shape, dtype)
    for place, block in _blocks(rows, centre):
        round_rows(block, scale, limit, integers[place], row_buffer(block))
    return integers


def _round_rotated(
    rows: Any, centre: Floats | None, scale: float, limit: float, out: NDArray[Any], along: Floats
) -> Floats:
    """Write rotated rows, scaled and clipped to `limit`, as integers to `out`.

    Return the rounding errors of their products with `along` (d,), of shape (b,).
    """
    from tacit.mechanisms.kernels import rotation_signs, round_rotated, row_buffer

    errors = np.empty(len(rows))
    signs = rotation_signs(rows.shape[1])
    for place, block in _blocks(rows, centre):
        buffer = row_buffer(block)
        round_rotated(block, scale, limit, out[place], buffer, signs, along, errors[place])
    return errors


def _blocks(rows: Any, centre: Floats | None) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Rows in blocks that kernels can read, about the centre if there is one."""
    from tacit.mechanisms.kernels import readable

    for start in range(0, len(rows), BLOCK):
        place = slice(start, start + BLOCK)
        block = rows[place]
        if centre is not None:
            block = unit_rows_about(block, centre)
        yield place, readable(np.asarray(block))


def check_name(name: Any) -> None:
    """Refuse a name that is not of an arithmetic."""
    is_arithmetic = isinstance(name, str) and name in ARITHMETICS
    if name != AUTO and not is_arithmetic:
        raise InputError(
            f"arithmetic={name!r} must be {AUTO} or one of {', '.join(ARITHMETICS)}; leave it out"
        )


def check_usable(name: str, width: int) -> None:
    """Refuse an arithmetic that cannot take rows of this width.

    It is refused too if a library or device that it needs is missing.
    """
    check_name(name)
    if not name.startswith("int8"):
        return
    if width > INT8_COLUMNS:
        raise InputError(
            f"arithmetic={name!r} takes rows of {INT8_COLUMNS} columns at most, not {width}; leave"
            " it out"
        )

    # Loaded before threads start: each sets its number of torch threads as it starts, if torch is
    # loaded by then.
    torch = load_torch()

    if name == "int8-cuda" and not torch.cuda.is_available():
        raise InputError(
            f"arithmetic={name!r} needs a CUDA device, and torch sees none; leave it out"
        )


@lru_cache(maxsize=8)
def int8_is_faster(width: int) -> bool:
    """Measure whether this machine multiplies int8 faster than float32.

    Without torch or a processor that multiplies int8, nothing is measured and int8 is slower. Each
    width is measured once.
    """
    if not is_installed("torch") or width > INT8_COLUMNS:
        return False

    # some versions of torch lack a check
    torch = load_torch()
    checks = [getattr(torch.cpu, name) for name in INT8_CHECKS if hasattr(torch.cpu, name)]
    if not any(check() for check in checks):
        return False

    # one thread each, as when tiles are computed; smaller than a tile, to save time
    with one_thread_each():
        return speed("int8", 256, 1024, width) > speed("float32", 256, 1024, width)


def speed(name: str, rows: int, candidates: int, width: int, runs: int = 5) -> float:
    """Return the operations per second of a product of this shape, the best of `runs`."""
    arithmetic = ARITHMETICS[name]
    left = np.ones((rows, width), arithmetic.dtype)
    right = np.ones((candidates, width), arithmetic.dtype)
    buffer = arithmetic.buffer(rows, candidates)

    # the first run warms up and does not count
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        arithmetic.products(left, right, buffer)
        times.append(time.perf_counter() - start)

    # each entry of a product is `width` multiplications and additions
    operations = 2 * rows * candidates * width
    return operations / min(times[1:])
