"""The event that dominates several: it costs as much as each of them in every respect.

Parallel composition charges the largest cost of any part. Events are ordered only where one is
known to cost as much as another at every delta and every Renyi order, and after every conversion to
another unit: sums of Gaussian events by their mu, sums of other kinds term by term. Where no event
of several dominates, they share a bound: pure epsilon or rho, whichever is finite first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from tacit.privacy.events import (
    ZCDP,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    compose,
)

# Kinds of which the event with less noise or a larger cost dominates: more noise is noise added to
# less noise, and a larger bound holds too.
_ORDERED = (Gaussian, Laplace, Exponential, PureDP, ZCDP)


def dominating(events: Iterable[Event]) -> Event:
    """Return an event that costs as much as each of these at least, in every respect.

    It is one of them if that one dominates the others: of sums of Gaussian events, the one with
    the largest mu. Otherwise it is `PureDP` of the largest epsilon, `ZCDP` of the largest rho, or
    the sum of all, the first of these that is finite; the sum too where a sample is drawn.

    Examples
    --------
    >>> dominating([Gaussian(2.0), Gaussian(1.0)])
    Gaussian(noise_multiplier=1.0)
    >>> dominating([Gaussian(2.0), PureDP(1.0)]).rho == PureDP(1.0).rho
    True
    """
    distinct = sorted(set(events), key=_key)
    if not distinct:
        return compose(())
    if len(distinct) == 1:
        return distinct[0]

    # Without parallel composition an event costs more under a change of the label.
    candidates = [*distinct, *(event.base() for event in distinct)]
    largest_rho = max(event.rho for event in distinct)
    for candidate in dict.fromkeys(candidates):
        if candidate.rho < largest_rho:
            continue
        if all(_dominates(candidate, event) for event in distinct):
            return candidate

    return _bound(distinct)


def _dominates(larger: Event, smaller: Event) -> bool:
    """Tell whether one event is known to cost as much as another one in every respect, and after
    every conversion to another unit.
    """
    if larger == smaller:
        return True
    if isinstance(larger, Parallel) and isinstance(smaller, Parallel):
        return larger.over == smaller.over and _dominates(larger.event, smaller.event)
    if _is_gaussian(larger) and _is_gaussian(smaller):
        costs_after_change = larger.for_label_change().mu >= smaller.for_label_change().mu
        return larger.mu >= smaller.mu and costs_after_change
    if not (_is_ordered(larger) and _is_ordered(smaller)):
        return False

    if larger.base() == larger:
        # a change of the label costs no more than a removal and an addition in one class
        smaller = smaller.base()
    if type(larger) is PureDP:
        return larger.epsilon >= smaller.pure
    if type(larger) is ZCDP:
        return larger.rho >= smaller.rho
    if type(larger) in (Laplace, Exponential):
        return type(smaller) is type(larger) and larger.pure >= smaller.pure

    # sums, term by term
    terms = larger.counted()
    smaller_terms = smaller.counted()
    # an event that is no sum has itself as its only term, which would be compared without end
    is_no_sum = len(terms) == 1 and terms[0][0] == larger
    if is_no_sum or len(terms) != len(smaller_terms):
        return False
    return all(
        count >= smaller_count and _dominates(event, smaller_event)
        for (event, count), (smaller_event, smaller_count) in zip(terms, smaller_terms, strict=True)
    )


def _is_gaussian(event: Event) -> bool:
    """Tell whether an event is a sum of Gaussian noise alone, whose privacy curve follows from its
    mu.
    """
    return all(type(kind) is Gaussian for kind, _ in event.base().counted())


def _is_ordered(event: Event) -> bool:
    """Tell whether an event is a sum of kinds that are ordered by their parameter."""
    return all(type(kind) in _ORDERED for kind, _ in event.base().counted())


def _bound(events: Sequence[Event]) -> Event:
    """An event of which no more is known than that it costs as much as each of these."""
    kinds = [kind for event in events for kind, _ in event.contained()]
    if any(kind.for_record_of_person() != kind for kind in kinds):
        # one record of a person may cost more than the person: no bound of both is known
        return compose(event.base() for event in events)

    pure = max(event.pure for event in events)
    if math.isfinite(pure):
        return PureDP(pure)
    rho = max(event.rho for event in events)
    if math.isfinite(rho):
        return ZCDP(rho)
    return compose(event.base() for event in events)


def _key(event: Event) -> str:
    """The order of events: any that depends on nothing but their values."""
    return json.dumps(event.to_json())
