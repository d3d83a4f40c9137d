"""What matrices of d x d cost in memory and time, for learners whose cost grows with the square of the columns."""

import warnings
from dataclasses import dataclass

from tacit.compute.memory import available_memory
from tacit.compute.threads import thread_count
from tacit.errors import InputError

WARN_BYTES, WARN_SECONDS = 2**30, 30.0
SPECTRUM = 2e-10  # seconds on one core, times d^3
DRAW = 1e-5  # seconds on one core for one draw of secure noise


@dataclass(frozen=True)
class Matrices:
    """The matrices of d x d of a fit, in float64.

    Parameters
    ----------
    held : float
        How many are in memory at the same time, copies and workspace included; measured.
    decomposed : int
        How many eigendecompositions are computed.
    noised : int
        How many symmetric matrices get secure noise.
    """

    held: float
    decomposed: int
    noised: int = 0

    def check(self, width: int) -> None:
        """Warn of a fit that takes much memory or time, from public facts alone.

        Raises
        ------
        InputError
            If the matrices do not fit into the memory of this machine.
        """
        size, available = self.held * 8 * width**2, available_memory()
        needs = f"{width} columns make matrices of {width} x {width}, which take about {size / 1e9:.3g} GB of memory"
        remedy = "project all rows to fewer columns, by a PCA of public rows for example, or choose noisy-sum"
        if available is not None and size > available:
            raise InputError(f"{needs}, and this machine has {available / 1e9:.3g} GB available; {remedy}")
        draws = self.noised * width * (width + 1) / 2
        seconds = (self.decomposed * SPECTRUM * width**3 + draws * DRAW) / thread_count()
        if size > WARN_BYTES or seconds > WARN_SECONDS:
            warnings.warn(f"{needs} and roughly {_duration(seconds)}; to save it, {remedy}", stacklevel=2)


def _duration(seconds: float) -> str:
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds > 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
