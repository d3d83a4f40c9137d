"""ProjectedPrototypes: noisy class sums, and a linear layer learned in front of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.base import DEFAULT_BUDGET, Released
from tacit.learners.common.balance import BalancedClassifier, n_records
from tacit.learners.common.descent import descend
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.rows import Floats, exact_class_sums
from tacit.learners.common.softmax import Exact, Parts, exact_gradient, logits, residuals
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import Rounded, rounded
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

NOISE_IN_LAYER = 1.0  # norm that noise may add to a row of the layer; chosen, as all defaults here, on CIFAR-10
FARTHEST = -1e9

Gradient = Callable[[Floats], Floats]
"""From a layer of shape (p, d) to the sum of its gradients over records."""


class ProjectedPrototypes(BalancedClassifier):
    """Classify by the nearest class sum, seen through a linear layer that is learned privately.

    Per class, the sum of the records' unit vectors plus Gaussian noise, S_c. A layer W of shape (p, d) then learns, by
    gradient descent with noise in every step, to bring records near to their class's W S_c. It starts as the principal
    axes of the unit S_c: with all of them that is where `NoisySumPrototypes` ends.
    The score of class c is <W x, W S_c/|W S_c|>. By default small classes are at no disadvantage: see `balanced`.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the same descent without noise and clipping.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit row, which is then
        made unit again. Scores then differ more between classes, and the layer has more to learn from.
    share : float, default=0.7
        Share of the budget for the sums, from 0.1 to 0.9; the layer gets the rest.
    dimension : int, optional
        p, by default the smaller of C and d, which is also the most that makes a difference.
    steps : int, default=60
        Number of steps.
    scale : float, default=20.0
        Factor of the scores in the softmax.
    learning_rate : float, optional
        Factor of the mean gradient. By default 40, or 10 with public rows, but at most 3 n/(steps^2 z clip sqrt(d)),
        at which noise adds a vector of norm about 1 to each row of W; z is the multiplier of all steps together.
    clip : float, default=1.0
        Bound on the norm of a record's gradient, that of the cross-entropy divided by `scale`.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as unprotected. They
        scale the steps and balance the classes. If omitted, noisy counts are bought with 1 % of the budget.
    balanced : bool, default=True
        Learn the layer for equally frequent classes: beside the log of each class's noisy share of the records.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (C, d), float64
        W' W S_c/|W S_c|.
    intercepts_ : ndarray of shape (C,), float64
        Zero; far below all scores for a class without records under an infinite budget.
    projection_ : ndarray of shape (p, d), float64
        W.
    prototypes_ : ndarray of shape (C, p), float64
        W S_c.
    learning_rate_ : float
        As used; a function of the noisy or declared counts.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one Gaussian event per class for the sums and one for the counts, and one per step, of sensitivity `clip`
    in Frobenius norm under add/remove. During a step the unit prototypes q_c = W S_c/|W S_c| are constants, since S
    and W are released. With r the softmax of scale <W x, q_c> less the one-hot label, the gradient of a record is the
    outer product of sum_c r_c q_c and x, so clipping needs their two norms alone. Both rows come from exact products
    of whole numbers, so that they do not depend, in their bits, on the other records. See `tacit.mechanisms.gaussian`
    and `tacit.mechanisms.outer_products`.
    Source: the projection ablation of Wahdany et al. 2024. Theirs learns through prototypes that are means of the
    records at hand, so that no record has a gradient of its own to clip.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.ProjectedPrototypes(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    intercept = 0.0

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        classes: Any = None,
        public: Any = None,
        share: float = 0.7,
        dimension: int | None = None,
        steps: int = 60,
        scale: float = 20.0,
        learning_rate: float | None = None,
        clip: float = 1.0,
        counts: int | Sequence[int] | None = None,
        balanced: bool = True,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.budget = budget
        self.classes = classes
        self.public = public
        self.share = share
        self.dimension = dimension
        self.steps = steps
        self.scale = scale
        self.learning_rate = learning_rate
        self.clip = clip
        self.counts = counts
        self.balanced = balanced
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _multipliers(self) -> tuple[float, float]:
        """Noise multipliers of the sums and of a step."""
        z, share = self._multiplier(), real("share", self.share, 0.1, 0.9)
        steps = whole("steps", self.steps, 1, 10**4)
        return z / math.sqrt(share), z * math.sqrt(steps / (1 - share - self._count_share()))

    def _event(self) -> Event:
        if self.dimension is not None:
            whole("dimension", self.dimension, 1, 2**20)
        real("scale", self.scale, 1e-3, 1e4)
        real("clip", self.clip, 1e-6, 10)
        if self.learning_rate is not None:
            real("learning_rate", self.learning_rate, 1e-9, 1e9)
        of_sums, of_step = self._multipliers()
        return self._composed([gaussian.event(of_sums), self.steps * outer_products.event(of_step)])

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        of_sums, of_step = self._multipliers()
        if of_step == 0:
            with phase(SET_UP):
                exact = list(self._row_blocks(X, labels, "rows"))
                counts = self._class_counts(exact, noise)
                sums = exact_class_sums(exact, n_classes=len(self.classes_), width=X.shape[1])
            offsets = self._log_shares(counts) + _of_empty(sums)
            self._descend(lambda layer: self._exact_gradient(layer, sums, offsets, exact), sums, counts)
            return
        with phase(SET_UP):
            sums = gaussian.noisy_class_sums(
                self._row_blocks(X, labels, "class sums"),
                n_classes=len(self.classes_),
                width=X.shape[1],
                noise_multiplier=of_sums,
                noise=noise,
            )
            parts = [(rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
            counts = self._class_counts(parts, noise)
        offsets = self._log_shares(counts)

        def gradient(layer: Floats) -> Floats:
            total = outer_products.noisy_products(
                self._products(layer, sums, offsets, parts),
                shape=layer.shape,
                noise_multiplier=of_step,
                noise=noise,
            )
            return total * self.clip

        self._descend(gradient, sums, counts)

    def _products(self, layer: Floats, sums: Floats, offsets: Floats, parts: Parts) -> Iterator[tuple[Floats, Rounded]]:
        """Left and right row of each record's gradient, in units of `clip`."""
        unit = _unit_prototypes(layer, sums)
        for rows, own in parts:
            yield pulls(residuals(rows, own, self.scale * (unit @ layer), offsets), unit) / self.clip, rows

    def _exact_gradient(self, layer: Floats, sums: Floats, offsets: Floats, parts: Exact) -> Floats:
        unit = _unit_prototypes(layer, sums)
        result: Floats = unit.T @ exact_gradient(self.scale * (unit @ layer), offsets, parts)
        return result

    @phase(SOLVING)
    def _descend(self, gradient: Gradient, sums: Floats, counts: Floats) -> None:
        """Nesterov's method from the principal axes of the unit sums, by mean gradients."""
        n = n_records(counts)
        self.learning_rate_ = self._learning_rate(n, sums.shape[1])
        start: Floats = np.linalg.svd(_unit(sums), full_matrices=False)[2][: self.dimension]
        layer = descend(gradient, start, rate=self.learning_rate_ / n, steps=self.steps)
        self.projection_, self.prototypes_ = layer, sums @ layer.T
        self.coefficients_ = _unit_prototypes(layer, sums) @ layer
        self.intercepts_ = _of_empty(sums)

    def _learning_rate(self, n: float, width: int) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        longest = 40.0 if self.public is None else 10.0
        noise = self._multipliers()[1] * self.clip * self.steps**1.5 * math.sqrt(width)
        return min(longest, NOISE_IN_LAYER * 3 * n / noise) if noise > 0 else longest

    def _release(self) -> Released:
        of_sums, of_step = self._multipliers()
        facts = self._facts() | {
            "gradient clip norm": float(self.clip),
            "noise multiplier of the class sums": of_sums,
            "noise multiplier of a step": of_step,
            "steps": self.steps,
            "sampling": "none; every record is used in every step",
        }
        return self._released("one noisy sum of unit rows per class, through a privately learned layer", facts)


def pulls(residuals: Floats, prototypes: Floats) -> Floats:
    """Residuals of shape (b, C) times prototypes of shape (C, p), each row by its own values alone.

    Residuals have norm sqrt(2) at most; as whole numbers their products with whole numbers are exact.
    """
    return math.sqrt(2) * logits(rounded(residuals / math.sqrt(2)), prototypes.T)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _unit_prototypes(layer: Floats, sums: Floats) -> Floats:
    return _unit(sums @ layer.T)


def _of_empty(sums: Floats) -> Floats:
    """Scores of classes whose sum is zero, which has no direction: without noise, those without records."""
    return np.where(sums.any(axis=1), 0.0, FARTHEST)
