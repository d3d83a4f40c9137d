"""Memory and time of d x d matrices.

For learners whose cost grows with the square of the number of columns d.
"""

import warnings
from dataclasses import dataclass

from tacit.compute.memory import available_memory
from tacit.compute.threads import thread_count
from tacit.errors import InputError
from tacit.models.spectra import MOST_ENTRIES

# A fit that takes more than either is warned of.
WARN_BYTES = 2**30
WARN_SECONDS = 30.0

# With more columns than `WIDE`, matrices may take `MOST_BYTES` of memory.
WIDE = 4096
MOST_BYTES = 2**31

# seconds on one core: a decomposition takes SPECTRUM d^3, a draw of OpenDP's noise takes DRAW
SPECTRUM = 2e-10
DRAW = 1e-5

BYTES_OF_FLOAT64 = 8
BYTES_OF_PUBLIC_ENTRY = 8 + 4  # in float64 and float32


@dataclass(frozen=True)
class Matrices:
    """The d x d matrices of float64 that a fit needs.

    Parameters
    ----------
    held : float
        Matrices in memory at once, as measured; up to 0.2 GiB of workspace come on top.
    decomposed : int
        Matrices that are decomposed.
    noised : int
        Matrices that get OpenDP's noise; other noise takes a hundredth of the time.
    public_rows : int
        Rows in memory in float64 and float32, up to `MOST_ENTRIES` entries.
    """

    held: float
    decomposed: int
    noised: int = 0
    public_rows: int = 0

    def check(self, width: int) -> None:
        """Warn of a fit that takes much memory or time, and refuse a fit that does not fit.

        Both follow from public facts alone.
        """
        size = self._bytes(width)
        needs = (
            f"{width} columns make matrices of {width} x {width}, which take about {size / 1e9:.3g}"
            " GB of memory"
        )
        remedy = (
            "project all rows to fewer columns, by a PCA of public rows for example, or choose"
            " noisy-sum"
        )
        if width > WIDE and size > MOST_BYTES:
            raise InputError(
                f"{needs}; the most beyond {WIDE} columns is {MOST_BYTES / 1e9:.3g} GB; {remedy}"
            )

        # None where the system does not tell
        available = available_memory()
        if available is not None and size > available:
            raise InputError(
                f"{needs}, and this machine has {available / 1e9:.3g} GB available; {remedy}"
            )

        seconds = self._seconds(width)
        if size > WARN_BYTES or seconds > WARN_SECONDS:
            warnings.warn(
                f"{needs} and roughly {_duration(seconds)}; to save it, {remedy}", stacklevel=2
            )

    def _bytes(self, width: int) -> float:
        matrices = self.held * BYTES_OF_FLOAT64 * width**2
        public_entries = min(self.public_rows * width, MOST_ENTRIES)
        return matrices + BYTES_OF_PUBLIC_ENTRY * public_entries

    def _seconds(self, width: int) -> float:
        decompositions = self.decomposed * SPECTRUM * width**3
        # a matrix is symmetric, so only its upper triangle gets noise
        draws = self.noised * width * (width + 1) / 2
        return (decompositions + draws * DRAW) / thread_count()


def _duration(seconds: float) -> str:
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds > 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
