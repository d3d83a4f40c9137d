"""Black-box audits: refit a learner on public rows, and guess from its probabilities alone which
canaries were in the data.

The refits of an audit have independent noise and independent fair coins (`game.py`). An attack
(`attacks.py`) learns from the first quarter of them, which also decides how many guesses it makes;
it guesses on the others. Two kinds of bounds follow, and the error is split among all of them.

- Guesses: all refits on which it guesses are together one run of a mechanism that has as many
  canaries as there are coins. A coin moves one refit alone, so this mechanism keeps the promise of
  one refit, and the bounds of one run apply. Nothing is assumed of the noise.
- Rates: each refit counts once (`run_rates.py`). This needs FEWEST_RUNS refits.
"""

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import engine
from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.measure.auditing.attacks import ATTACKS, Floats, Signals, signals_of
from tacit.measure.auditing.bounds import (
    ALARM_ERROR,
    AUDITS,
    LEVEL,
    Guesses,
    delta_of_alarm,
    epsilon_of_guesses,
    epsilon_of_mu,
    epsilon_of_rates,
    mu_of_rates,
    share,
)
from tacit.measure.auditing.game import Game, draw_coins
from tacit.measure.auditing.result import FAIR_COINS, INDEPENDENT_RUNS, ONE_GAUSSIAN, Audit, Bound
from tacit.measure.auditing.run_rates import RunRates
from tacit.privacy.guarantee import Guarantee

Coins = NDArray[np.bool_]

# refits of a part, which is a file of a checkpoint
PART = 8

# numbers of refits, and seconds for all of them where the number is not given
FEWEST_REFITS, MOST_REFITS = 16, 1024
SECONDS = 60.0

# an attack learns from the first of so many parts of the refits
LEARNS_FROM = 4

# fewest refits on which an attack guesses, for bounds by rates
FEWEST_RUNS = 24

# candidates of which the refits that an attack learns from choose: parts of the coins that are
# guessed, and false-positive rates
PARTS = (0.005, 0.02, 0.08, 0.3, 1.0)
FALSE_POSITIVE_RATES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
MOST_GUESSES = 4000

# of the file of a checkpoint that keeps the number of refits
NUMBER = "refits.txt"

Fit = Callable[[NDArray[Any], NDArray[Any], NDArray[Any] | None, int], Any]
"""Fits a learner to rows, labels and persons, with noise of a seed; returns the fitted learner."""


def black_box_audit(
    fit: Fit,
    game: Game,
    promise: Guarantee,
    *,
    subject: str,
    delta: float,
    refits: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    folder: Path | None = None,
    key: str = "",
) -> Audit:
    """Audit what `fit` learns, by its probabilities on the canaries of a game.

    Parameters
    ----------
    fit : callable
        Picklable.
    promise : Guarantee
        Of one fit, under the unit of the game.
    refits : int, optional
        A number of 16 or more; by default as many as take a minute, at most 1024.
    folder : Path, optional
        Checkpoint, from which an interrupted audit resumes; `key` stands for all that decides it.
    """
    if refits is not None and refits < FEWEST_REFITS:
        raise InputError(
            f"refits={refits} must be {FEWEST_REFITS} or more, of which an attack learns from a"
            " quarter; correct it"
        )
    checkpoint = None
    if folder is not None:
        checkpoint = Checkpoint(folder, key)
    refit = partial(_refit_part, fit, game, seed)
    if refits is None:
        refits = _refits_in_time(refit, checkpoint, jobs)

    signals = _all_signals(refit, game, refits, jobs, checkpoint)
    coins = np.array([_coins_of(game, seed, number) for number in range(refits)])
    return Audit(
        subject=subject,
        unit=promise.unit,
        promise=promise.epsilon(delta),
        delta=delta,
        bounds=tuple(bounds_of(signals, coins, promise, delta)),
        seed=seed,
        setup=f"{refits} refits",
    )


def bounds_of(signals: Signals, coins: Coins, promise: Guarantee, delta: float) -> list[Bound]:
    """Return the bounds of all attacks, from the signals and coins of all refits."""
    n_learning = len(coins) // LEARNS_FROM
    learning = signals.of_refits(slice(n_learning))
    guessing = signals.of_refits(slice(n_learning, None))
    coins_learned = coins[:n_learning]
    coins_guessed = coins[n_learning:]

    has_rates = len(coins_guessed) >= FEWEST_RUNS
    # an alarm by mu needs a promise that is one of Gaussian noise
    is_gaussian = _is_gaussian(promise, delta)
    n_bounds = len(ATTACKS) * (2 if has_rates else 1)
    errors = (share(1 - LEVEL, n_bounds), share(ALARM_ERROR / AUDITS, n_bounds))
    alarm_delta = delta_of_alarm(delta, is_pure=math.isfinite(promise.epsilon()))

    bounds = []
    for name, attack in ATTACKS.items():
        learned = CoinScores(attack(learning, coins_learned, None), coins_learned)
        guessed = CoinScores(attack(learning, coins_learned, guessing), coins_guessed)

        bounds.append(
            Bound(
                f"{name}, guesses",
                _by_guesses(learned, guessed, delta, errors[0]),
                _by_guesses(learned, guessed, alarm_delta, errors[1]),
                FAIR_COINS,
                promise_at_alarm=promise.epsilon(alarm_delta),
                delta_at_alarm=alarm_delta,
            )
        )
        if has_rates:
            shown, alarm = (
                _by_rates(learned, guessed, delta, error, as_mu=is_gaussian) for error in errors
            )
            assumption = ONE_GAUSSIAN if is_gaussian else INDEPENDENT_RUNS
            bounds.append(Bound(f"{name}, rates", shown, alarm, assumption))
    return bounds


def _is_gaussian(promise: Guarantee, delta: float) -> bool:
    """Tell whether the promise is that of its mu, so that a larger mu breaks it."""
    if promise.mu is None:
        return False
    return math.isclose(epsilon_of_mu(promise.mu, delta), promise.epsilon(delta), rel_tol=1e-6)


@dataclass(frozen=True, eq=False)
class CoinScores:
    """Scores of an attack and the coins that it is to guess, of shape (refits, canaries)."""

    values: Floats
    coins: Coins

    def guesses(self, part: float) -> Guesses:
        """Guess a part of the coins: 1 for the largest scores, 0 for as many of the smallest."""
        n_coins = self.coins.size
        of_each = max(1, min(int(n_coins * part), MOST_GUESSES) // 2)
        ordered = self.coins.ravel()[np.argsort(self.values, axis=None, kind="stable")]
        right = int(ordered[-of_each:].sum() + (~ordered[:of_each]).sum())
        return Guesses(right, 2 * of_each, n_coins)

    def threshold(self, false_positive_rate: float) -> float:
        """Return the score that coins of 0 exceed at this rate."""
        return float(np.quantile(self.values[~self.coins], 1 - false_positive_rate))

    def rates(self, threshold: float) -> RunRates:
        """Guess 1 for scores above a threshold."""
        above = self.values > threshold
        return RunRates(
            hits=(above & self.coins).mean(axis=1), false_alarms=(above & ~self.coins).mean(axis=1)
        )


def _by_guesses(learned: CoinScores, guessed: CoinScores, delta: float, error: float) -> float:
    """Bound epsilon by as many guesses as would have been best where the attack learned."""
    best = max(PARTS, key=lambda part: epsilon_of_guesses(learned.guesses(part), delta, error))
    return epsilon_of_guesses(guessed.guesses(best), delta, error)


def _by_rates(
    learned: CoinScores, guessed: CoinScores, delta: float, error: float, *, as_mu: bool
) -> float:
    """Bound epsilon by rates at the threshold that would have been best where the attack learned.

    With `as_mu`, it is that of the bound on mu.
    """

    def bound(scores: CoinScores, threshold: float) -> float:
        rates = scores.rates(threshold)
        if as_mu:
            return mu_of_rates(rates, error)
        return epsilon_of_rates(rates, delta, error)

    thresholds = [learned.threshold(rate) for rate in FALSE_POSITIVE_RATES]
    best = max(thresholds, key=lambda threshold: bound(learned, threshold))
    lower = bound(guessed, best)
    return epsilon_of_mu(lower, delta) if as_mu else lower


def _all_signals(
    refit: Callable[[int], Floats],
    game: Game,
    refits: int,
    jobs: int,
    checkpoint: Checkpoint | None,
) -> Signals:
    """Return the signals of all refits, from the checkpoint as far as they are there."""
    n_parts = -(-refits // PART)
    parts: dict[int, Floats] = {}
    for part in range(n_parts):
        kept = _kept(checkpoint, part)
        if kept is not None:
            parts[part] = kept

    missing = [part for part in range(n_parts) if part not in parts]
    results = engine("joblib", jobs).map(partial(_numbered, refit), missing)
    with closing(results):
        for part, signals in progress(results, "parts of refits", len(missing)):
            parts[part] = signals
            if checkpoint is not None:
                checkpoint.write(_name(part), signals)

    all_parts = np.concatenate([parts[part] for part in range(n_parts)])[:refits]
    m = game.n_canaries
    return Signals(all_parts[:, :m], all_parts[:, m : 2 * m], all_parts[:, 2 * m :])


def _numbered(refit: Callable[[int], Floats], part: int) -> tuple[int, Floats]:
    """Return the number of a part too, since an engine returns parts in any order."""
    return part, refit(part)


def _refit_part(fit: Fit, game: Game, seed: int, part: int) -> Floats:
    """Return the signals of PART refits, one row each."""
    rows = []
    for number in range(part * PART, (part + 1) * PART):
        records, labels, persons = game.data(_coins_of(game, seed, number))
        model = fit(records, labels, persons, _seed_of(seed, number))
        rows.append(np.concatenate(signals_of(model.predict_proba, game)))
    return np.array(rows)


def _coins_of(game: Game, seed: int, number: int) -> Coins:
    """Return the coins of a refit, which do not depend on how many refits there are."""
    rng = np.random.default_rng([seed, number, 0])
    return draw_coins(game.n_canaries, rng)


def _seed_of(seed: int, number: int) -> int:
    """Return the seed of the noise of a refit, independent of its coins."""
    return int(np.random.default_rng([seed, number, 1]).integers(2**31))


def _refits_in_time(
    refit: Callable[[int], Floats], checkpoint: Checkpoint | None, jobs: int
) -> int:
    """Return a power of two of refits that take about SECONDS, by the time of one part.

    A checkpoint keeps the number, so that an audit resumes with it.
    """
    if checkpoint is not None and checkpoint.has(NUMBER):
        return int(checkpoint.path(NUMBER).read_text(encoding="utf-8"))

    # the first part also loads and compiles
    first = refit(0)
    started = perf_counter()
    refit(0)
    seconds = (perf_counter() - started) / PART / jobs
    refits = 1 << max(0, int(math.log2(SECONDS / seconds)))
    refits = min(max(refits, FEWEST_REFITS), MOST_REFITS)

    if checkpoint is not None:
        checkpoint.write(_name(0), first)
        checkpoint.write(NUMBER, str(refits).encode())
    return refits


def _name(part: int) -> str:
    """Return the name of a part in a checkpoint."""
    return f"signals-{part}.npy"


def _kept(checkpoint: Checkpoint | None, part: int) -> Floats | None:
    """Return a finished part of a checkpoint; None if it is missing or damaged."""
    if checkpoint is None or not checkpoint.has(_name(part)):
        return None
    try:
        return np.array(checkpoint.read(_name(part)))
    except (OSError, ValueError):
        return None
