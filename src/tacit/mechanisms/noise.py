"""Sources of noise: `secure` and `opendp` for anything that may be released, `research` for
everything else.

All add noise to integers, since mechanisms compute scores and sums without rounding error.

`secure`    exact samplers. Gaussian and Laplace noise is continuous noise, rounded to integers
            (`deviates.py`), with random bits of OpenSSL's generator, which the operating system
            seeds (`limbs.py`). The index of the largest score plus Gumbel noise is drawn by
            `levels.py`. With exponential noise it is permute-and-flip [Ding et al. 2021]: every
            candidate flips a coin (`coins.py`), and one of those that show heads is chosen at
            random. These, and all other choices, use the operating system's random bits. There is
            no seed.
`opendp`    as `secure`, but for Gaussian and Laplace noise, which is discrete noise of the library
            OpenDP: for those who trust no other. It takes about a hundred times as long.
`research`  numpy in float64 from a seed: fast and repeatable, hence not private.
"""

import os
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.compute.extras import check_installed
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import BudgetError, InputError
from tacit.mechanisms.coins import flips_exp
from tacit.mechanisms.levels import choose

Integers = NDArray[np.int64]
Selection = Literal["gumbel", "exponential"]
Seed = int | np.random.Generator | np.random.RandomState | None

NOISES = ("secure", "opendp", "research")
"""Names of the sources."""

SAMPLERS = {
    "secure": "secure: rounded continuous noise",
    "opendp": "opendp",
    "research": "research",
}
"""The samplers of each source. The name of a source stays when its samplers change, so what was
drawn and stored carries this, and is neither taken up nor released as drawn by others."""

# Numbers that a thread draws at a time, for about ten milliseconds. Fewer numbers are drawn in one
# thread: to start others, and those of matrix products again, would take longer.
_CHUNK = 2**16
_CHUNK_OF_OPENDP = 1024

# 100 times noise of this scale is below 2^62.
_MOST_SCALE = 2.0**55


class NoiseSource(ABC):
    """The randomness that mechanisms draw from."""

    @abstractmethod
    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Add independent Gaussian noise of this standard deviation, a whole number, to each
        value.
        """

    @abstractmethod
    def laplace(self, values: Integers, scale: float) -> Integers:
        """Add independent Laplace noise of this scale, a whole number, to each value."""

    @abstractmethod
    def noisy_max(self, scores: Integers, scale: float, noise: Selection) -> int:
        """Index of the largest `score + scale * noise`, the noise standard Gumbel or
        exponential.
        """

    @abstractmethod
    def subset(self, n: int, k: int) -> Integers:
        """A uniformly random set of k distinct integers from 0 to n - 1, in increasing order."""

    @abstractmethod
    def bernoulli(self, p: Fraction) -> bool:
        """True with probability p."""

    @abstractmethod
    def words(self, n: int) -> NDArray[np.uint64]:
        """Uniformly random 64-bit words, of shape (n,)."""


class SecureNoise(NoiseSource):
    """Exact samplers with random bits that nobody can repeat."""

    def gaussian(self, values: Integers, scale: float) -> Integers:
        from tacit.mechanisms.deviates import add_gaussian_noise

        return _with_noise(values, _within(scale), add_gaussian_noise)

    def laplace(self, values: Integers, scale: float) -> Integers:
        from tacit.mechanisms.deviates import add_laplace_noise

        return _with_noise(values, _within(scale), add_laplace_noise)

    def noisy_max(self, scores: Integers, scale: float, noise: Selection) -> int:
        if noise == "gumbel":
            return choose(scores, scale, secrets.randbelow)

        # Permute-and-flip: a random candidate of those whose coin shows heads.
        gaps = scores.max() - scores
        heads = np.flatnonzero(flips_exp(gaps, scale, self.words, secrets.randbelow))
        return int(heads[secrets.randbelow(len(heads))])

    def subset(self, n: int, k: int) -> Integers:
        members = secrets.SystemRandom().sample(range(n), k)
        return np.sort(np.array(members, dtype=np.int64))

    def bernoulli(self, p: Fraction) -> bool:
        # Exact, in integers.
        return secrets.randbelow(p.denominator) < p.numerator

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def _with_noise(values: Integers, scale: float, add: Callable[[Integers, float], int]) -> Integers:
    """A copy of values of any shape, to which `add` has added noise in place."""
    if values.dtype != np.int64:
        raise TypeError(f"noise is added to int64, not to {values.dtype}")
    noisy = values.flatten()

    def add_to(chunk: Integers) -> Integers:
        add(chunk, scale)
        return chunk

    chunks = _chunks(noisy, _CHUNK)
    for _ in progress(in_threads(add_to, chunks), "secure noise", len(noisy), len):
        pass
    return noisy.reshape(values.shape)


def _chunks(values: Integers, size: int) -> list[Integers]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _within(scale: float) -> float:
    """The scale; an error if 100 times this noise could overflow 64-bit sums."""
    if scale > _MOST_SCALE:
        fault = f"noise of {scale:.3g} exceeds {_MOST_SCALE:.3g}: 64-bit sums overflow"
        raise BudgetError(f"{fault}; use fewer steps, or another method")
    return scale


def _integer_vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


class OpenDPNoise(SecureNoise):
    """Discrete Gaussian and discrete Laplace noise by the library OpenDP."""

    def __init__(self) -> None:
        check_installed("opendp")

    def gaussian(self, values: Integers, scale: float) -> Integers:
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        add_noise = make_gaussian(_integer_vectors(), l2_distance(T=float), scale=_within(scale))
        return self._added(add_noise, values)

    def laplace(self, values: Integers, scale: float) -> Integers:
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        add_noise = make_laplace(_integer_vectors(), l1_distance(T="i64"), scale=_within(scale))
        return self._added(add_noise, values)

    def _added(self, add_noise: Any, values: Integers) -> Integers:
        """Values of any shape with the noise of an OpenDP measurement."""
        flat = values.ravel()
        chunks = _chunks(flat, _CHUNK_OF_OPENDP)

        # OpenDP releases the GIL.
        noisy_chunks = progress(in_threads(add_noise, chunks), "secure noise", len(flat), len)
        noisy = [np.asarray(chunk, dtype=np.int64) for chunk in noisy_chunks]
        return np.concatenate(noisy).reshape(values.shape)


class ResearchNoise(NoiseSource):
    """Float64 noise from a seeded numpy Generator; results drawn with it are not for release."""

    def __init__(self, random_state: Seed) -> None:
        if isinstance(random_state, np.random.RandomState):
            # scikit-learn's checks pass one.
            random_state = int(random_state.randint(2**31))
        try:
            self.generator = np.random.default_rng(random_state)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"random_state={random_state!r} must be a whole number >= 0; pass 0"
            ) from error

    def gaussian(self, values: Integers, scale: float) -> Integers:
        noise = _within(scale) * self.generator.standard_normal(values.shape)
        return values + np.rint(noise).astype(np.int64)

    def laplace(self, values: Integers, scale: float) -> Integers:
        noise = self.generator.laplace(scale=_within(scale), size=values.shape)
        return values + np.rint(noise).astype(np.int64)

    def noisy_max(self, scores: Integers, scale: float, noise: Selection) -> int:
        # -log E is Gumbel noise with a longer tail than -log(-log U), since uniform floats lie on a
        # grid.
        draws = self.generator.standard_exponential(len(scores))
        if noise == "gumbel":
            draws = -np.log(draws)

        # Relative to the largest score, float64 resolves the scores that can win.
        return int(np.argmax((scores - scores.max()) / scale + draws))

    def subset(self, n: int, k: int) -> Integers:
        return np.sort(self.generator.choice(n, size=k, replace=False)).astype(np.int64)

    def bernoulli(self, p: Fraction) -> bool:
        return bool(self.generator.random() < p)

    def words(self, n: int) -> NDArray[np.uint64]:
        return self.generator.integers(0, 2**64, n, dtype=np.uint64)


_WITNESS: ContextVar[NoiseSource | None] = ContextVar("_WITNESS", default=None)


@contextmanager
def research_noise_from(source: NoiseSource) -> Iterator[None]:
    """Let `source` stand for research noise in this block, for audits.

    Noise of a release is never from it.
    """
    token = _WITNESS.set(source)
    try:
        yield
    finally:
        _WITNESS.reset(token)


def noise_source(noise: str, random_state: Seed = None) -> NoiseSource:
    """The source named by `noise`, one of NOISES; only research noise takes a seed."""
    if noise == "research":
        return _WITNESS.get() or ResearchNoise(random_state)
    if noise not in NOISES:
        raise InputError(
            f"noise={noise!r} must be 'secure', 'opendp' or 'research'; pass noise='secure' for a"
            " release"
        )
    if random_state is not None:
        warnings.warn(
            f"random_state is ignored with noise={noise!r}, which has no seed; pass"
            " noise='research' to repeat a run",
            stacklevel=2,
        )
    if noise == "opendp":
        return OpenDPNoise()
    return SecureNoise()
