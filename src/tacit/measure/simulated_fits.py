"""Fits on pseudo-classes: the real learner, with research noise, at the sizes of a stated task.

A public set may have fewer rows than the task has records. Rows are then repeated, so that each
stands for several records. A fit takes at most `MOST_RECORDS`: a larger task is made smaller by a
factor, and the noise with it. Noise that is f times smaller, relative to sums of f times fewer
records, disturbs their means as much, so the budget is multiplied by `scaled`.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines.workers import one_thread_each
from tacit.compute.progress import unreported
from tacit.compute.shared import caching
from tacit.data.imbalance import class_sizes
from tacit.learners.common.base import PrivateClassifier
from tacit.measure.pseudo_classes import (
    Integers,
    Kind,
    PseudoClasses,
    pseudo_classes_of_clusters,
    pseudo_classes_of_labels,
)
from tacit.models.metrics import minority
from tacit.models.rows import Floats
from tacit.privacy import accounting
from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

# most records of a fit; a task of more is made smaller, with its noise
MOST_RECORDS = 20_000

# share of the rows of a pseudo-class that test, and the most rows that test in all
TEST_SHARE = 0.2
MOST_TEST_ROWS = 5000


class Accuracy(NamedTuple):
    """Accuracies of a fit on test rows of the pseudo-classes."""

    balanced: float
    minority: float
    """Over the 25 % smallest classes; of classes of one size, over all."""


@dataclass(frozen=True)
class StatedTask:
    """Public facts about private records, as they are declared."""

    n_classes: int
    records: int
    """Of the largest class."""
    imbalance: float
    """Size of the largest class divided by that of the smallest."""
    records_per_person: int = 1

    def sizes(self, factor: float, rng: np.random.Generator) -> Integers:
        """Return the size of each class of a task that is `factor` times as large."""
        sizes = class_sizes(self.records, self.n_classes, self.imbalance, rng)
        return np.asarray(np.maximum(np.rint(sizes * factor), 1), np.int64)

    @property
    def total(self) -> int:
        """The number of records."""
        return int(class_sizes(self.records, self.n_classes, self.imbalance).sum())


@dataclass(frozen=True, eq=False)
class SimulatedFits:
    """Fits of one learner on pseudo-classes, each kept in a checkpoint if there is one."""

    learner_class: type[PrivateClassifier]
    parameters: Mapping[str, Any]
    """Of the learner, without its budget, classes, noise and public rows."""
    task: StatedTask
    rows: Floats
    """Public rows, of shape (m, d)."""
    labels: Integers | None
    """Their classes, of shape (m,), if they have any."""
    spread: float
    """Of clusters."""
    checkpoint: Checkpoint | None = None
    results: dict[str, Accuracy] = field(default_factory=dict)
    """Accuracies of the fits so far, by the name of their files in the checkpoint."""
    cached: dict[tuple[Kind, int], PseudoClasses] = field(default_factory=dict)
    """Pseudo-classes so far, of a kind and a seed."""

    def accuracy(self, kind: Kind, budget: Budget, seed: int, factor: float = 1.0) -> Accuracy:
        """Return the accuracy of a fit on a task `factor` times as large, or the one in the
        checkpoint.
        """
        name = result_file(kind, budget, seed, factor)
        if name in self.results:
            return self.results[name]
        if self.checkpoint is not None and self.checkpoint.has(name):
            accuracy = Accuracy(*self.checkpoint.read(name).tolist())
        else:
            accuracy = self._measure(kind, budget, seed, factor)
            if self.checkpoint is not None:
                self.checkpoint.write(name, np.array(accuracy))
        self.results[name] = accuracy
        return accuracy

    def record(self, kind: Kind, budget: Budget, seed: int, accuracy: Accuracy) -> None:
        """Take the accuracy of a fit of the stated task that another process has measured."""
        self.results[result_file(kind, budget, seed, 1.0)] = accuracy

    def without_results(self) -> "SimulatedFits":
        """Return a copy with nothing in memory but the rows, for another process."""
        return replace(self, results={}, cached={})

    def pseudo_classes(self, kind: Kind, seed: int) -> PseudoClasses:
        """Return the pseudo-classes of a seed."""
        if (kind, seed) not in self.cached:
            self.cached[kind, seed] = self._drawn(kind, seed)
        return self.cached[kind, seed]

    def _drawn(self, kind: Kind, seed: int) -> PseudoClasses:
        rng = np.random.default_rng(seed)
        if kind == "clusters":
            return pseudo_classes_of_clusters(self.rows, self.task.n_classes, self.spread, rng)
        assert self.labels is not None
        return pseudo_classes_of_labels(self.rows, self.labels, self.task.n_classes, rng)

    def _measure(self, kind: Kind, budget: Budget, seed: int, factor: float) -> Accuracy:
        pseudo = self.pseudo_classes(kind, seed)
        rng = np.random.default_rng([seed, 1])
        shrinking = min(1.0, MOST_RECORDS / (factor * self.task.total))
        sizes = self.task.sizes(factor * shrinking, rng)
        train, test = drawn_rows(pseudo.labels, sizes, rng)

        learner = self.learner(scaled(budget, 1 / shrinking), pseudo.public, seed)
        persons = None
        if Unit(learner.unit).per_person:
            # records of a person are of any classes
            people = np.arange(len(train)) // self.task.records_per_person
            persons = rng.permutation(people)
        # fits of one seed have the same public rows, so what is learned from these is cached
        with one_thread_each(), caching(), unreported(), warnings.catch_warnings():
            # they are about settings of the fit to come, which repeats them
            warnings.simplefilter("ignore", UserWarning)
            learner.fit(pseudo.rows[train], pseudo.labels[train], persons)
            predicted = learner.predict(pseudo.rows[test])
        return accuracy_of(pseudo.labels[test], predicted, sizes, self.task.imbalance)

    def learner(self, budget: Budget, public: Floats | None, seed: int = 0) -> PrivateClassifier:
        """Return the learner of a budget."""
        values: dict[str, Any] = {"budget": budget, "classes": self.task.n_classes}
        accepted = self.learner_class.flat_parameters()
        if "public" in accepted and public is not None:
            # clusters of few rows may hold the same rows as the public ones
            values |= {"public": public, "allow_overlap": True}
        values |= {"noise": "research", "random_state": seed}
        return self.learner_class.of_flat(**values, **self.parameters)


def result_file(kind: Kind, budget: Budget, seed: int, factor: float) -> str:
    """Return the name of the file in the checkpoint that has the accuracy of a fit."""
    facts = f"{kind} {budget} {seed} {factor!r}"
    return sha256(facts.encode()).hexdigest()[:20] + ".npy"


def accuracy_of(
    truth: Integers, predicted: Integers, sizes: Integers, imbalance: float
) -> Accuracy:
    """Return the accuracies of predicted classes 0..C-1, of which the test rows hold all."""
    is_right = predicted == truth
    right = np.bincount(truth, weights=is_right, minlength=len(sizes))
    shares = right / np.bincount(truth, minlength=len(sizes))
    smallest = minority(sizes) if imbalance > 1 else np.arange(len(sizes))
    return Accuracy(float(shares.mean()), float(shares[smallest].mean()))


def drawn_rows(
    labels: Integers, sizes: Integers, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return rows to learn from, `sizes` of each class, and rows to test, which are others.

    Where a class has fewer rows than its size, its rows are repeated.
    """
    train = []
    test = []
    for label, size in enumerate(sizes.tolist()):
        positions = rng.permutation(np.flatnonzero(labels == label))
        n_test = _test_rows(len(positions), len(sizes))
        test.append(positions[:n_test])
        train.append(np.resize(positions[n_test:], size))
    return np.concatenate(train), np.concatenate(test)


def _test_rows(n_rows: int, n_classes: int) -> int:
    """Return how many of the rows of a class test."""
    return max(1, min(int(TEST_SHARE * n_rows), MOST_TEST_ROWS // n_classes))


def strength(budget: Budget) -> float:
    """Return a number that grows as noise falls: `scaled` by f multiplies it by f.

    It is epsilon of a pure budget, and the mu of Gaussian noise of the others.
    """
    if budget.kind == "pure":
        assert budget.epsilon is not None
        return budget.epsilon
    return 1 / budget.gaussian()


def scaled(budget: Budget, factor: float) -> Budget:
    """Return the budget whose noise is `factor` times smaller."""
    if budget.infinite or factor == 1:
        return budget
    if budget.rho is not None:
        return Budget.zcdp(budget.rho * factor**2)
    if budget.mu is not None:
        return Budget.gdp(budget.mu * factor)
    assert budget.epsilon is not None
    if budget.delta is None:
        return Budget.pure(budget.epsilon * factor)
    mu = factor / budget.gaussian()
    return Budget.approx(accounting.gaussian_epsilon(mu, budget.delta), budget.delta)


def without_privacy(learner_class: type[PrivateClassifier]) -> Budget:
    """Return the infinite budget of a kind that the learner takes."""
    kind = learner_class.budget_kinds[0]
    if kind == "pure":
        return Budget.pure(math.inf)
    if kind == "approx":
        return Budget.approx(math.inf, 1e-6)
    if kind == "gdp":
        return Budget.gdp(math.inf)
    return Budget.zcdp(math.inf)


def rows_to_learn_from(labels: Integers) -> int:
    """Return the rows to learn from that the median pseudo-class has."""
    counts = np.bincount(labels)
    n_rows = int(np.median(counts))
    return n_rows - _test_rows(n_rows, len(counts))


def content_hash(arrays: list[NDArray[Any] | None]) -> str:
    """Return a hash of arrays, for the key of a checkpoint."""
    digest = sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
