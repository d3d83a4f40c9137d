"""Record the noise of a fit, and replay the fit on other data with the released values forced to be
the same.

A guarantee bounds what one release tells about its private inputs, and everything else must follow
from releases and public facts. So a replay on any other data set must draw the same noise, in the
same order, and publish the same. The private inputs of each release may differ, and how far they
differ on neighbouring data is the privacy loss.

Noise passes through `NoiseSource`, so `Tape` stands in its place. Two mechanisms release less than
they draw, and are recorded as a whole: responses to labels, which are functions of uniform words,
and the sets of `top_k.select_set`, which hide the rank of the worst member.
"""

import dataclasses
import math
import types
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.randomizers import Response
from tacit.learners.label_dp.vectors import SymmetricUnary
from tacit.learners.pate.filter import order_of
from tacit.mechanisms import top_k, unary
from tacit.mechanisms.noise import NoiseSource, ResearchNoise
from tacit.privacy.events import Gaussian, Laplace, NoisyArgmax, NoisyCheck, PureDP

PRIVATE = {
    "votes_",
    "consensus_",
    "internal_",
    "parts_",
}  # attributes that are documented as private


class LeakError(AssertionError):
    """A replay differed in something that no guarantee covers."""


@dataclass(frozen=True)
class Call:
    """A use of noise: its public parameters, the private input that it hides, and the value that it
    released.
    """

    kind: str
    public: tuple[Any, ...]
    private: Any
    released: Any


class Tape(NoiseSource):
    """Draw research noise and record it, or release what another tape recorded."""

    def __init__(self, seed, earlier=None):
        self.source = ResearchNoise(seed)
        self.earlier = earlier
        self.calls = []

    def use(self, kind, public, private, draw):
        """Release `draw()`, or the value that the earlier tape released at this place."""
        private = np.array(private)
        public = (*public, private.shape if kind != "response" else len(private))
        released = draw() if self.earlier is None else self._earlier(kind, public)
        self.calls.append(Call(kind, public, private, released))
        return np.array(released) if isinstance(released, np.ndarray) else released

    def _earlier(self, kind, public):
        place = len(self.calls)
        if place == len(self.earlier):
            raise LeakError(f"a replay uses {kind} once more than the {place} uses of noise before")
        call = self.earlier[place]
        if call.kind != kind or not equal(call.public, public):
            raise LeakError(
                f"use {place} of noise was {call.kind} {call.public} and is {kind} {public}"
            )
        return call.released

    def gaussian(self, values, scale):
        return self.use("gaussian", (scale,), values, lambda: self.source.gaussian(values, scale))

    def laplace(self, values, scale):
        return self.use("laplace", (scale,), values, lambda: self.source.laplace(values, scale))

    def noisy_max(self, scores, scale, noise):
        return self.use(
            "noisy max", (scale, noise), scores, lambda: self.source.noisy_max(scores, scale, noise)
        )

    def subset(self, n, k):
        return self.use("subset", (n, k), (), lambda: self.source.subset(n, k))

    def bernoulli(self, p):
        return self.use("bernoulli", (p,), (), lambda: self.source.bernoulli(p))

    def words(self, n):
        return self.use("words", (n,), (), lambda: self.source.words(n))


@contextmanager
def taped(monkeypatch, tape):
    """Let learners draw their noise from the tape."""
    with monkeypatch.context() as patch:
        for module in ("tacit.learners.common.base", "tacit.learners.pate.voting"):
            patch.setattr(import_module(module), "noise_source", lambda *_: tape)
        for kind in (Response, Blocks, SymmetricUnary):
            patch.setattr(kind, "sample", _taped_response(kind.sample, tape))
        patch.setattr(top_k, "select_set", _taped_set(top_k.select_set, tape))
        yield tape


def _taped_response(sample, tape):
    def taped_sample(randomizer, labels, noise, which=None):
        prior = np.zeros(len(labels), dtype=np.int64) if which is None else which
        public = type(randomizer).__name__, _losses_of(randomizer), prior
        return tape.use(
            "response", public, labels, lambda: sample(randomizer, labels, tape.source, which)
        )

    return taped_sample


def _taped_set(select_set, tape):
    def taped_select(scores, k, *, sensitivity, epsilon, noise, classes=1):
        facts = {"sensitivity": sensitivity, "epsilon": epsilon, "classes": classes}
        public = k, top_k.rank_scale(len(scores), k, **facts)
        return tape.use(
            "set", public, scores, lambda: select_set(scores, k, noise=tape.source, **facts)
        )

    return taped_select


def _losses_of(randomizer):
    """The largest loss between two labels under each prior, from how words are dealt out: (priors,
    labels, labels).
    """
    if isinstance(randomizer, SymmetricUnary):
        return unary.epsilon_of(randomizer.words) * (1 - np.eye(randomizer.n_classes))[None]
    with np.errstate(divide="ignore"):
        logs = np.log(randomizer.matrix())
    logs = logs[None] if logs.ndim == 2 else logs
    possible = np.isfinite(logs[:, :1])
    assert np.array_equal(np.isfinite(logs), np.broadcast_to(possible, logs.shape)), (
        "an output excludes labels"
    )
    logs = np.where(possible, logs, 0.0)
    return np.abs(logs[:, :, None] - logs[:, None]).max(axis=3)


@dataclass(frozen=True)
class Cost:
    """Bounds on the privacy loss between two private inputs: epsilon, and rho."""

    pure: float
    rho: float

    def __add__(self, other):
        return Cost(self.pure + other.pure, self.rho + other.rho)

    def most(self, other):
        """The larger of both bounds."""
        return Cost(max(self.pure, other.pure), max(self.rho, other.rho))


NOTHING = Cost(0.0, 0.0)


def cost(before, after):
    """The privacy loss of one call between the private inputs of two fits."""
    moved = after.private - before.private
    if not moved.any():
        return NOTHING
    return COSTS[before.kind](moved, before, after)


def _gaussian(moved, before, after):
    return Cost(math.inf, float(np.square(moved / before.public[0]).sum()) / 2)


def _laplace(moved, before, after):
    return _pure(np.abs(moved).sum() / before.public[0])


def _noisy_max(moved, before, after):
    scale, noise = before.public[:2]
    spread = float(moved.max() - moved.min()) / scale
    return Cost(spread, spread**2 / 8) if noise == "gumbel" else _pure(spread)


def _set(moved, before, after):
    """Scores of a set are rounded: `tacit.mechanisms.top_k`."""
    spread = float(moved.max() - moved.min())
    spread = (spread + 2) / before.public[1] if spread else 0.0
    return Cost(spread, spread**2 / 8)


def _response(moved, before, after):
    _, losses, priors, _ = before.public
    return _pure(losses[priors, before.private, after.private].sum())


def _pure(epsilon):
    return Cost(float(epsilon), PureDP(float(epsilon)).rho)


COSTS = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "noisy max": _noisy_max,
    "set": _set,
    "response": _response,
}


def costs(before, after):
    """The privacy losses of the events of two fits.

    Two calls are one event if their noise is the same and their shapes are not: parts of one vector
    (`gaussian.noisy_sums_and_counts`). So are the choices of all classes, over which a record or
    person is bounded.
    """
    events = []
    last = None
    for one, other in zip(before, after, strict=True):
        if last is not None and _of_one_event(last, one):
            events[-1] += cost(one, other)
        else:
            events.append(cost(one, other))
        last = one
    return events


def _of_one_event(last, call):
    if last.kind != call.kind or call.kind == "response":
        return False
    same_scale = last.public[0] == call.public[0]
    return same_scale and (call.kind in ("noisy max", "set") or last.public != call.public)


def check_within(total, event, what):
    """Refuse a privacy loss above what the event states: epsilon where it states one, else rho."""
    name = "pure" if math.isfinite(event.pure) else "rho"
    spent, stated = getattr(total, name), getattr(event, name)
    assert spent <= stated * (1 + 1e-9), f"{what} spends {name} {spent:.6g} of {stated:.6g}"


def check_published(learner, other):
    """Refuse any difference between what two fitted learners publish."""
    names = {
        name
        for name in (*vars(learner), *vars(other))
        if name.endswith("_") and name not in PRIVATE
    }
    for name in sorted(names):
        if not equal(getattr(learner, name, None), getattr(other, name, None)):
            raise LeakError(f"{name} depends on private data beyond what was released")


def equal(one, other):
    """Whether two values are equal, through containers and attributes; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and all(map(equal, one.ravel(), other.ravel()))
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(
            equal(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, types.FunctionType | type):
        return one is other
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if dataclasses.is_dataclass(one) or type(one).__eq__ is object.__eq__:
        return equal(_attributes(one), _attributes(other))
    return bool(one == other)


def _attributes(value):
    return {
        name: each for name, each in getattr(value, "__dict__", {}).items() if name not in PRIVATE
    }


def check_voting(before, after, answers, group=None):
    """Refuse two votings whose released checks and labels lose more than the allowance of a group
    states.

    Noise is drawn for blocks of queries, of which the last may reach beyond the end of the voting.
    Of noisy counts no more is released than a class, or whether a threshold is reached.
    """
    scheme = answers.scheme
    allowance = scheme.allowances[group or next(iter(scheme.allowances))]
    stated = answers.guarantee_.event if group is None else dict(answers.guarantee_.groups)[group]
    spent = 0.0
    for event, n in _events_of_votes(before, after, answers, order_of(allowance)).items():
        spent += n * allowance.cost(event)
    most = allowance.cost(stated)
    assert spent <= most * (1 + 1e-9), (
        f"votes spend {spent:.6g} of {most:.6g} in {allowance.currency}"
    )


def _events_of_votes(before, after, answers, order):
    """The events of the queries that were asked, and how many there are of each."""
    pairs = list(zip(before, after, strict=True))
    checks = [pair for pair in pairs if pair[0].private.ndim == 1]
    labels = [pair for pair in pairs if pair[0].private.ndim == 2]
    events = Counter()
    for moved, scale, _ in _rows(checks, answers.asked):
        distance = abs(float(moved))
        if distance:
            noise = scale / distance
            events[Gaussian(noise) if order is None else NoisyCheck(noise, order)] += 1
    for moved, scale, kind in _rows(labels, answers.answered):
        if not moved.any():
            continue
        if kind == "laplace":
            events[Laplace(scale / np.abs(moved).sum())] += 1
            continue
        noise = scale / float(np.linalg.norm(moved))
        events[Gaussian(noise) if order is None else NoisyArgmax(math.sqrt(2) * noise, order)] += 1
    return events


def _rows(pairs, most):
    """What moved in the first rows of these calls, the scale of their noise, and its kind."""
    rows = [
        (moved, before.public[0], before.kind)
        for before, after in pairs
        for moved in after.private - before.private
    ]
    return rows[:most]
