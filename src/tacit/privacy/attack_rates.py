"""From events to attack rates: how well any attack tells neighbouring data sets apart.

Both numbers are exact for Gaussian events, and for one use of an event that states its own. For all
other sums of events they are the smallest of several valid bounds.
"""

import math
from collections.abc import Callable

from tacit.errors import InputError
from tacit.privacy.accounting import epsilon, has_exact_mu, single_use, without_free_parts
from tacit.privacy.events import Event

# e^700 is about the largest power that a float holds; a rate of 1 is reached long before.
_MOST_EXPONENT = 700


def attack_rate(event: Event, false_positive_rate: float) -> float:
    """Largest true-positive rate of any attack that tells neighbouring data sets apart, at this
    false-positive rate.

    The trade-off function of Gaussian events, and of one use of an event that states its own;
    `attained` says whether an attack reaches it. For all other sums of events the smallest of
    several bounds.
    """
    if not 0 <= false_positive_rate <= 1:
        raise InputError(
            f"false_positive_rate={false_positive_rate} must be from 0 to 1; pass for example 0.01"
        )
    if false_positive_rate == 1:
        return 1.0

    event = without_free_parts(event.base())
    if event.pure == 0:
        return false_positive_rate
    if has_exact_mu(event):
        return _gaussian_rate(event.mu, false_positive_rate)

    single = single_use(event)
    if single is not None:
        closed_form = single.attack_rate(false_positive_rate)
        if closed_form is not None:
            return closed_form
    return bounded_attack_rate(event, false_positive_rate)


def attained(event: Event) -> bool:
    """Return whether an attack on some neighbouring data sets reaches `attack_rate` and
    `advantage`.
    """
    event = without_free_parts(event.base())
    if has_exact_mu(event):
        return True
    single = single_use(event)
    return single is not None and single.attained


def bounded_attack_rate(
    event: Event, false_positive_rate: float, epsilon_at: Callable[[Event, float], float] = epsilon
) -> float:
    """Smallest of the bounds on `attack_rate` that follow from the advantage, pure epsilon, epsilon
    at deltas and mu.

    `epsilon_at` is the function that computes epsilon at delta.
    """
    bound_by_advantage = false_positive_rate + bounded_advantage(event, epsilon_at)
    return min(attack_rate_by_curve(event, false_positive_rate, epsilon_at), bound_by_advantage)


def attack_rate_by_curve(
    event: Event, false_positive_rate: float, epsilon_at: Callable[[Event, float], float]
) -> float:
    """`bounded_attack_rate` without the bound by the advantage."""
    fpr = false_positive_rate
    if event.pure == 0:
        return fpr

    # (epsilon, delta)-DP: a true-positive rate is at most e^epsilon times the false one, plus delta
    bounds = []
    for delta in attack_deltas(fpr):
        bounds.append(math.exp(min(epsilon_at(event, delta), _MOST_EXPONENT)) * fpr + delta)

    # pure epsilon: the same at delta 0, and for the rates of negatives
    bounds.append(math.exp(min(event.pure, _MOST_EXPONENT)) * fpr)
    bounds.append(1 - math.exp(-event.pure) * (1 - fpr))

    if math.isfinite(event.mu):
        bounds.append(_gaussian_rate(event.mu, fpr))
    return min(1.0, *bounds)


def _gaussian_rate(mu: float, false_positive_rate: float) -> float:
    """Return the true-positive rate of the best test of N(0, 1) against N(mu, 1)."""
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(false_positive_rate) + mu))


def attack_deltas(false_positive_rate: float) -> list[float]:
    """The deltas at which `attack_rate` evaluates epsilon."""
    return [false_positive_rate * 10.0**-power for power in range(7)]


def advantage(event: Event) -> float:
    """Most by which the true-positive rate of any attack exceeds its false-positive rate: the total
    variation distance.

    2 Phi(mu/2) - 1 of Gaussian events; in closed form for one use of an event that states it; for
    all other sums of events the smallest of several bounds.
    """
    event = without_free_parts(event.base())
    single = single_use(event)
    if single is not None:
        closed_form = single.total_variation()
        if closed_form is not None:
            return closed_form
    return bounded_advantage(event)


def bounded_advantage(event: Event, epsilon_at: Callable[[Event, float], float] = epsilon) -> float:
    """Smallest of these bounds on `advantage`.

    2 Phi(mu/2) - 1; tanh(epsilon/2) of a pure epsilon; (exp(epsilon) - 1 + 2 delta) / (exp(epsilon)
    + 1) at each of `advantage_deltas` [Kairouz, Oh and Viswanath 2015, Thm 2.1]; sqrt(rho/2) by
    Pinsker's inequality. `epsilon_at` is the function that computes epsilon at delta.
    """
    if event.pure == 0:
        return 0.0

    curve = [(event.pure, 0.0)]
    for delta in advantage_deltas(event):
        curve.append((epsilon_at(event, delta), delta))

    # (e^x - 1 + 2 delta)/(e^x + 1) as t + delta (1 - t) with t = tanh(x/2), which cannot overflow
    bounds = []
    for bound, delta in curve:
        bounds.append(math.tanh(bound / 2) + delta * (1 - math.tanh(bound / 2)))

    if math.isfinite(event.mu):
        bounds.append(math.erf(event.mu / math.sqrt(8)))
    if math.isfinite(event.rho):
        bounds.append(math.sqrt(event.rho / 2))
    return min(1.0, *bounds)


def advantage_deltas(event: Event) -> tuple[float, ...]:
    """Return the deltas at which `advantage` evaluates epsilon.

    There are none where mu is finite and not loose because of sampling.
    """
    mu_is_tight = math.isfinite(event.mu) and not any(part.sampled for part, _ in event.contained())
    if mu_is_tight:
        return ()
    return (0.1, 0.03, 0.01, 0.001)
