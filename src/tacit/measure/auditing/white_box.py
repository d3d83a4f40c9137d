"""The audit of a method: its attacks, and the lower bounds that they prove together."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.measure.auditing.bounds import (
    ALARM_ERROR,
    AUDITS,
    LEVEL,
    delta_of_alarm,
    epsilon_of_guesses,
    epsilon_of_mu,
    epsilon_of_rates,
    mu_of_guesses,
    mu_of_rates,
    share,
)
from tacit.measure.auditing.one_run import (
    OneRun,
    guesses_of_labels,
    guesses_of_selections,
    guesses_of_sums,
)
from tacit.measure.auditing.pair_attacks import (
    PROBES,
    furthest,
    probes,
    scores_of_releases,
    scores_of_transcripts,
    scores_of_votes,
    widest,
)
from tacit.measure.auditing.result import (
    FAIR_COINS,
    INDEPENDENT_AXES,
    INDEPENDENT_RUNS,
    ONE_GAUSSIAN,
    Audit,
    Bound,
)
from tacit.measure.auditing.scores import Scores
from tacit.measure.auditing.subjects import Subject
from tacit.measure.auditing.transcripts import LeakFoundError
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.accounting import has_exact_mu

RUNS = 2000
"""Runs on each data set of a pair."""


class Claim(NamedTuple):
    """A lower bound on epsilon at a delta, as a function of delta and of the bound's error.

    An alarm holds it at `alarm_delta` against the promise there.
    """

    attack: str
    epsilon: Callable[[float, float], float]
    alarm_delta: float
    assumption: str
    decides: bool = True


def audit_method(
    subject: Subject, delta: float, seed: int, source: NoiseSource, runs: int = RUNS
) -> Audit:
    """Audit a method by all attacks that apply to it."""
    promise = subject.promise
    one_run_delta = delta_of_alarm(delta, is_pure=math.isfinite(promise.event.pure))
    points: list[tuple[float, float]] = []
    if promise.event.pure == 0:
        claims = [_certain("none: the promise is 0 and a fit uses no record", 0.0)]
    else:
        try:
            claims = _claims(subject, (delta, one_run_delta), seed, source, runs, points)
        except LeakFoundError as leak:
            attack = f"two fits with the same noisy values differ in {leak}"
            claims = [_certain(attack, math.inf)]

    error = share(1 - LEVEL, len(claims))
    alarm_error = share(ALARM_ERROR / AUDITS, len(claims))
    bounds = tuple(
        Bound(
            claim.attack,
            claim.epsilon(delta, error),
            claim.epsilon(claim.alarm_delta, alarm_error),
            claim.assumption,
            claim.decides,
            promise.epsilon(claim.alarm_delta),
            claim.alarm_delta,
        )
        for claim in claims
    )
    return Audit(
        subject.name,
        subject.unit,
        promise.epsilon(delta),
        delta,
        bounds,
        seed,
        points=tuple(points),
    )


def _certain(attack: str, epsilon: float) -> Claim:
    """A claim that needs no statistics."""
    return Claim(attack, lambda delta, error: epsilon, 1e-5, "none")


def _claims(
    subject: Subject,
    deltas: tuple[float, float],
    seed: int,
    source: NoiseSource,
    runs: int,
    points: list[tuple[float, float]],
) -> list[Claim]:
    """The claims of all attacks; `points` gets the rates that attacks on pairs reached.

    `deltas` are those of alarms, by pairs and by one run.
    """
    delta, one_run_delta = deltas
    rng = np.random.default_rng([seed, 1])
    exact_mu = has_exact_mu(subject.promise.event.base())
    if hasattr(type(subject.template), "randomizer"):
        run = guesses_of_labels(subject, source, rng)
        return [_claim_of_one_run("noisy labels", run, one_run_delta)]

    # votes show which pair is attacked, and not the distance of an average fit
    fits = 1 if subject.template.has_votes else PROBES
    found = probes(subject, source, fits=fits)
    kinds = {use.kind for probe in found for use in probe.without}
    if subject.template.has_votes:
        pair, scores = scores_of_votes(subject, found, runs, source)
        attack = f"votings, {pair.canary}"
    elif "choice" in kinds:
        pair = widest(found)
        scores = scores_of_releases(subject, pair, runs, source)
        attack = f"released rows, {pair.canary}"
    elif kinds:
        probe = furthest(found)
        scores = scores_of_transcripts(subject, probe, runs, source)
        attack = f"likelihood ratio, {probe.pair.canary}"
    else:
        raise InputError(
            f"{subject.name} draws no noise that an audit knows of; draw it from a NoiseSource"
        )

    claims = _claims_of_pairs(attack, scores, delta, exact_mu, points)
    if "choice" in kinds and not subject.template.has_votes:
        selections = guesses_of_selections(subject, source, rng)
        if selections is not None:
            claims.append(_claim_of_one_run("a record of each class", selections, one_run_delta))
        return claims

    one_run = guesses_of_sums(subject, source, rng)
    if one_run is not None:
        claims.append(_claim_of_one_run("sums, on axes of every class", one_run, one_run_delta))
        claims += _claims_of_sums(one_run, delta)
    return claims


def _claims_of_pairs(
    attack: str,
    scores: Scores,
    delta: float,
    exact_mu: bool,
    points: list[tuple[float, float]],
) -> list[Claim]:
    """Bounds from runs on a pair: for any mechanism, and by the trade-off curve of a Gaussian."""
    pilot_error = 1 - LEVEL
    rates = scores.rates_for_epsilon(delta, pilot_error)
    true_rate, false_rate = rates.bounds(pilot_error)
    points.append((false_rate, true_rate))
    claims = [Claim(attack, partial(epsilon_of_rates, rates), delta, INDEPENDENT_RUNS)]
    if exact_mu:
        counted = scores.rates_for_mu(pilot_error)
        true_rate, false_rate = counted.bounds(pilot_error)
        points.append((false_rate, true_rate))
        claims.append(
            Claim(
                f"{attack}, bound on mu",
                lambda delta, error: epsilon_of_mu(mu_of_rates(counted, error), delta),
                delta,
                ONE_GAUSSIAN,
            )
        )
    return claims


def _claim_of_one_run(what: str, run: OneRun, alarm_delta: float) -> Claim:
    """The bound from one run for any mechanism."""
    attack = f"one run, {run.guesses.canaries:,} canaries: {what}"
    return Claim(attack, partial(epsilon_of_guesses, run.guesses), alarm_delta, FAIR_COINS)


def _claims_of_sums(run: OneRun, delta: float) -> list[Claim]:
    """Bounds on mu from one run: for any dependence of the canaries, and for none."""
    attack = f"one run, {run.guesses.canaries:,} canaries: sums, bound on mu"
    return [
        Claim(
            attack,
            lambda delta, error: epsilon_of_mu(mu_of_guesses(run.guesses, error), delta),
            delta,
            f"{FAIR_COINS}; the release is mu-GDP for some mu",
        ),
        Claim(
            f"{attack}, independent axes",
            lambda delta, error: epsilon_of_mu(mu_of_rates(run.all_counts, error), delta),
            delta,
            INDEPENDENT_AXES,
            decides=False,
        ),
    ]
