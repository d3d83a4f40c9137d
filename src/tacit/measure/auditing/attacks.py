"""Membership attacks that read a model's probabilities alone.

Each attack scores every canary in every refit that it did not learn from; a larger score says that
the coin is 1. A bound on guesses is valid for any score that knows no coin of those refits.

Source: Yeom et al. 2018 (threshold on the loss); Carlini et al. 2022 (LiRA); Zarifzadeh, Liu and
Shokri 2024 (RMIA).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from tacit.measure.auditing.game import Game, State

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]

# probabilities are kept this far from 0 and 1 before logarithms
LEAST = 1e-300

# refits from which LiRA estimates a variance of each canary
FEW_REFITS = 64


@dataclass(frozen=True, eq=False)
class Signals:
    """What refits show of each canary and of the reference rows.

    Attributes
    ----------
    log_odds, log_likelihoods : ndarray of shape (refits, canaries)
        Of the labels of a canary, mean over its records; minus those of the other state, if it has
        records.
    references : ndarray of shape (refits, references)
        Log likelihoods of the reference rows' labels.
    """

    log_odds: Floats
    log_likelihoods: Floats
    references: Floats

    def of_refits(self, refits: slice) -> "Signals":
        """Select refits."""
        return Signals(self.log_odds[refits], self.log_likelihoods[refits], self.references[refits])


def signals_of(
    probabilities: Callable[[NDArray[Any]], Floats], game: Game
) -> tuple[Floats, Floats, Floats]:
    """Return one refit's rows of `Signals`; `probabilities` is the `predict_proba` of the model."""
    odds_in, likelihoods_in = _of_state(probabilities, game.ins)
    odds_out, likelihoods_out = _of_state(probabilities, game.outs)
    _, references = _of_labels(probabilities(game.reference_rows), game.reference_labels)
    return odds_in - odds_out, likelihoods_in - likelihoods_out, references


def _of_state(
    probabilities: Callable[[NDArray[Any]], Floats], state: State
) -> tuple[Floats, Floats]:
    """Return log odds and log likelihoods of the labels of each canary, means over its records."""
    n_canaries, n_records = state.rows.shape[:2]
    if n_records == 0:
        return np.zeros(n_canaries), np.zeros(n_canaries)

    rows = state.rows.reshape(n_canaries * n_records, -1)
    labels = state.labels.reshape(n_canaries * n_records, *state.labels.shape[2:])
    odds, likelihoods = _of_labels(probabilities(rows), labels)
    means = [values.reshape(n_canaries, n_records).mean(axis=1) for values in (odds, likelihoods)]
    return means[0], means[1]


def _of_labels(probabilities: Floats, labels: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return log odds and log likelihoods of class indices (n,), or of sets of labels (n, K)."""
    if labels.ndim == 2:
        # labels of a row are taken for independent; an attack may be wrong
        right = np.log(np.maximum(np.where(labels, probabilities, 1 - probabilities), LEAST))
        wrong = np.log(np.maximum(np.where(labels, 1 - probabilities, probabilities), LEAST))
        return (right - wrong).sum(axis=1), right.sum(axis=1)

    positions = np.arange(len(labels))
    of_label = probabilities[positions, labels]
    # the sum of the others, since 1 - p loses the digits of a p near 1
    others = probabilities.copy()
    others[positions, labels] = 0
    likelihoods = np.log(np.maximum(of_label, LEAST))
    return likelihoods - np.log(np.maximum(others.sum(axis=1), LEAST)), likelihoods


def threshold(learned: Signals, coins: Coins, guessed: Signals | None) -> Floats:
    """Score by the likelihood of the canary's label: that of a small loss."""
    if guessed is None:
        return learned.log_likelihoods
    return guessed.log_likelihoods


def lira(learned: Signals, coins: Coins, guessed: Signals | None) -> Floats:
    """Score by the likelihood ratio of a canary's log odds, normal for each state of its coin.

    Means are those of the canary in the refits with these `coins`, from which the attack learns;
    variances too if there are enough refits, else one for all canaries.
    """
    odds = learned.log_odds
    n_in = coins.sum(axis=0)
    n_out = (~coins).sum(axis=0)
    sum_in = np.where(coins, odds, 0).sum(axis=0)
    sum_out = np.where(coins, 0, odds).sum(axis=0)
    mean_in = sum_in / np.maximum(n_in, 1)
    mean_out = sum_out / np.maximum(n_out, 1)

    squares = (odds - np.where(coins, mean_in, mean_out)) ** 2
    variance = squares.mean(axis=0)
    if len(odds) < FEW_REFITS:
        variance = np.full_like(variance, variance.mean())
    sd = np.sqrt(np.maximum(variance, np.finfo(float).tiny))

    if guessed is None:
        # each refit is scored by the others, else it would seem easy to guess
        mean_in = (sum_in - np.where(coins, odds, 0)) / np.maximum(n_in - coins, 1)
        mean_out = (sum_out - np.where(coins, 0, odds)) / np.maximum(n_out - ~coins, 1)
    else:
        odds = guessed.log_odds
    ratio: Floats = norm.logpdf(odds, mean_in, sd) - norm.logpdf(odds, mean_out, sd)
    return ratio


def rmia(learned: Signals, coins: Coins, guessed: Signals | None) -> Floats:
    """Score by how many reference rows gained less likelihood than the canary, beside their mean
    over the refits from which the attack learns.
    """
    if guessed is None:
        guessed = learned
    gains = guessed.log_likelihoods - learned.log_likelihoods.mean(axis=0)
    reference_gains = guessed.references - learned.references.mean(axis=0)
    n_refits, n_references = reference_gains.shape

    shares = np.empty_like(gains)
    for refit in range(n_refits):
        ordered = np.sort(reference_gains[refit])
        shares[refit] = np.searchsorted(ordered, gains[refit]) / n_references
    # where a canary is beyond all reference rows, its gain decides
    score: Floats = shares + np.tanh(gains) / (2 * n_references)
    return score


ATTACKS: dict[str, Callable[[Signals, Coins, Signals | None], Floats]] = {
    "threshold": threshold,
    "LiRA": lira,
    "RMIA": rmia,
}
"""Each takes signals of refits with their coins, from which it learns, and those to score; None
for the scores of those that it learned from, which choose among thresholds.
"""
