"""The one entry to audits: of a method, a learner or a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.errors import InputError, quoted
from tacit.measure.auditing.result import Audit
from tacit.measure.auditing.subjects import subject_of
from tacit.measure.auditing.white_box import RUNS, audit_method
from tacit.mechanisms.noise import NoiseSource, ResearchNoise, SecureNoise
from tacit.privacy.accounting import check_delta
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit
from tacit.releases.release import Release

if TYPE_CHECKING:
    from tacit.learners.common.base import PrivateClassifier

DELTA = 1e-5
LEAST_RUNS = 100


def audit(
    audited: str | PrivateClassifier | Release,
    budget: Budget | str | None = None,
    *,
    public: Any = None,
    labels: Any = None,
    refits: int | None = None,
    jobs: int = 1,
    folder: Path | str | None = None,
    delta: float = DELTA,
    seed: int = 0,
    unit: Unit | str | None = None,
    runs: int = RUNS,
    noise: Literal["research", "secure"] = "research",
) -> Audit:
    """Bound what a method reveals from below, and hold the bound against its promise.

    The method is fitted to synthetic data with a canary and without it, many times, and attacked
    with knowledge of everything but the canary. A method of noisy sums is also attacked in one run
    with 100,000 canaries.

    Parameters
    ----------
    audited : str, learner or Release
        The name of a method, published names included; a learner, whose parameters are kept while
        its classes, public rows and names become synthetic; or a release, whose learner is refitted
        on public rows.
    budget : Budget or str, optional
        By default that of the learner or method; a release has its own.
    public : array-like of shape (n, d), optional
        Of a release: public rows of its encoder.
    labels : array-like of shape (n,), optional
        Of a release: labels of the public rows; by default what it predicts.
    refits : int, optional
        Of a release: 16 or more; by default as many as take about a minute, at most 1024.
    jobs : int, default=1
        Of a release: refits at the same time, in processes.
    folder : str or Path, optional
        Of a release: private folder of a checkpoint, from which an interrupted audit resumes.
    delta : float, default=1e-5
        Where epsilon is promised and bounded.
    seed : int, default=0
        Of all draws, which it repeats.
    unit : Unit or str, optional
        The neighbouring relation of the promise and of the canaries; by default the method's own.
    runs : int, default=2000
        Runs on each of two neighbouring data sets; at least 100.
    noise : {"research", "secure"}
        The source that is audited. Secure noise, which releases are made with, has no seed, so that
        the audit cannot be repeated exactly.

    Returns
    -------
    Audit
        `epsilon_lower` at `confidence`, beside `promise`; `exceeded` if a bound at confidence 1 -
        1e-6 over all audits together is above the promise; `bounds` of each attack, with its
        assumption.

    Raises
    ------
    InputError
        If the method is unknown, or draws noise for which no attack is known.

    Examples
    --------
    >>> import tacit
    >>> result = tacit.audit("noisy-sum", "rho=0.5", runs=200)
    >>> 3 < result.epsilon_lower < result.promise, result.exceeded
    (True, False)
    """
    check_delta(delta)
    _check_whole("seed", seed, 0)
    _check_whole("runs", runs, LEAST_RUNS)
    if isinstance(audited, Release):
        from tacit.measure.auditing.of_release import audit_release

        _check_of_release(public, budget=budget, unit=unit)
        return audit_release(
            audited,
            public,
            labels,
            delta=delta,
            refits=refits,
            seed=seed,
            jobs=jobs,
            folder=folder,
        )
    if public is not None or labels is not None:
        raise InputError("public and labels are for releases; a method is audited without them")
    if noise not in ("research", "secure"):
        raise InputError(f"noise={quoted(noise)} must be 'research' or 'secure'; leave it out")

    source: NoiseSource = SecureNoise()
    if noise == "research":
        source = ResearchNoise(seed)
    return audit_method(subject_of(audited, budget, unit), delta, seed, source, runs)


def _check_of_release(public: Any, **others: Any) -> None:
    """Refuse arguments that are for methods, and missing rows."""
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name}={quoted(value)}: a release states its own; leave it out")
    if public is None:
        raise InputError("public is missing; pass public rows of the encoder of the release")


def _check_whole(name: str, number: Any, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InputError(
            f"{name}={quoted(number)} must be a whole number >= {least}; pass for example"
            f" {name}={max(least, 0)}"
        )
