"""What learners by noisy full-batch gradients share: steps, learning rate, descent on softmax cross-entropy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.common.balance import BalancedClassifier, n_records
from tacit.learners.common.descent import descend, learning_rate
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.softmax import Parts, exact_gradient
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import rounded
from tacit.models.rows import Floats
from tacit.privacy.events import Event

Gradient = Callable[[Floats], Floats]
"""From a head of shape (C, d) to the sum of its gradients over records."""


class FirstOrderClassifier(BalancedClassifier):
    """A learner by Nesterov's method from zero. A new one fills in `_of_step` and `_noisy_gradient`."""

    steps: int | None
    learning_rate: float | None
    clip: float
    ridge: float

    @abstractmethod
    def _of_step(self) -> float:
        """Noise multiplier of the gradients of a step."""

    @abstractmethod
    def _noisy_gradient(self, parts: Parts, counts: Floats, noise: NoiseSource) -> Gradient:
        """What is descended at a finite budget."""

    def _steps(self) -> int:
        if self.steps is not None:
            return whole("steps", self.steps, 1, 10**4)
        if self._multiplier() == 0:
            return 200
        return 80 if self.public is None else 60

    def _composed(self, parts: list[Event]) -> Event:
        self._intercept()
        real("clip", self.clip, 1e-6, 10)
        real("ridge", self.ridge, 0, 1e9)
        if self.learning_rate is not None:
            real("learning_rate", self.learning_rate, 1e-9, 1e9)
        return super()._composed(parts)

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        width = self._head_width(X)
        if self._multiplier() == 0:
            with phase(SET_UP):
                exact = list(self._row_blocks(X, labels, "rows"))
                counts = self._class_counts(exact, noise)
            offsets = self._log_shares(counts)
            self._descend(lambda head: exact_gradient(head, offsets, exact), counts, width)
            return
        with phase(SET_UP):
            parts = [(rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
            counts = self._class_counts(parts, noise)
        self._descend(self._noisy_gradient(parts, counts, noise), counts, width)

    @phase(SOLVING)
    def _descend(self, gradient: Gradient, counts: Floats, width: int) -> None:
        """Steps by mean gradients, the number of records as counted."""
        n = n_records(counts)
        self.learning_rate_ = self._learning_rate(n)
        theta = descend(
            lambda head: gradient(head) + self.ridge * head,
            np.zeros((len(counts), width)),
            rate=self.learning_rate_ / n,
            steps=self._steps(),
        )
        self._set_head(theta)

    def _learning_rate(self, n: float) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        n_classes = len(self.classes_)
        longest = n_classes * (1.0 if self.public is None else 4.0)
        noise = self._of_step() * self.clip
        return learning_rate(longest, records=n, n_classes=n_classes, noise=noise, steps=self._steps())

    def _facts(self) -> dict[str, float | str]:
        return super()._facts() | {
            "gradient clip norm": float(self.clip),
            "noise multiplier of a step": self._of_step(),
            "steps": self._steps(),
            "sampling": "none; every record is used in every step",
        }
