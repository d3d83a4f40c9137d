"""Memory and time of d x d matrices, for learners whose cost grows with the square of the
columns.
"""

import warnings
from dataclasses import dataclass

from tacit.compute.memory import available_memory
from tacit.compute.threads import thread_count
from tacit.errors import InputError
from tacit.models.spectra import MOST_ENTRIES

WARN_BYTES, WARN_SECONDS = 2**30, 30.0
WIDE, MOST_BYTES = 4096, 2**31  # beyond so many columns, matrices may take so much memory
SPECTRUM = 2e-10  # seconds on one core, times d^3
DRAW = 1e-5  # seconds on one core for one draw of secure noise


@dataclass(frozen=True)
class Matrices:
    """Numbers of d x d matrices of float64 that a fit holds at once, decomposes, and adds secure
    noise to.

    `held` was measured; up to 0.2 GiB of workspace come on top. `public_rows` are held too, in
    float64 and float32, up to `MOST_ENTRIES` entries.
    """

    held: float
    decomposed: int
    noised: int = 0
    public_rows: int = 0

    def check(self, width: int) -> None:
        """Warn of a fit that takes much memory or time, and refuse one that does not fit, from
        public facts alone.
        """
        available = available_memory()
        size = self.held * 8 * width**2 + 12 * min(self.public_rows * width, MOST_ENTRIES)
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
        if available is not None and size > available:
            raise InputError(
                f"{needs}, and this machine has {available / 1e9:.3g} GB available; {remedy}"
            )
        draws = self.noised * width * (width + 1) / 2
        seconds = (self.decomposed * SPECTRUM * width**3 + draws * DRAW) / thread_count()
        if size > WARN_BYTES or seconds > WARN_SECONDS:
            warnings.warn(
                f"{needs} and roughly {_duration(seconds)}; to save it, {remedy}", stacklevel=2
            )


def _duration(seconds: float) -> str:
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds > 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
