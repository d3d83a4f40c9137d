"""ProjectedPrototypes: noisy class sums or public rows, and a linear layer learned in front of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.timing import SELECTION, SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.base import DEFAULT_BUDGET, Released, shortened
from tacit.learners.common.balance import BalancedClassifier, n_records
from tacit.learners.common.descent import descend
from tacit.learners.common.head import scores_of_empty
from tacit.learners.common.parameters import flag, real, whole
from tacit.learners.common.rows import Floats, exact_class_sums, unit_rows_about
from tacit.learners.common.softmax import Exact, Parts, exact_gradient, logits, residuals
from tacit.learners.prototypes.scores import scoring
from tacit.learners.prototypes.scores.window import PUBLIC, needs_public, window
from tacit.learners.prototypes.selection import candidates, class_scores, select_one
from tacit.mechanisms import exponential, gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import IntegerRows, rounded
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

NOISE_IN_LAYER = 1.0  # norm that noise may add to a row of the layer; chosen, as all defaults here, on CIFAR-10
SUMS = "sums"

Gradient = Callable[[Floats], Floats]
"""From a layer of shape (p, d) to the sum of its gradients over records."""


class ProjectedPrototypes(BalancedClassifier):
    """Classify by the nearest prototype, seen through a linear layer that is learned privately.

    The prototype S_c of a class is the sum of its records' unit vectors plus Gaussian noise, or a public row that is
    chosen privately. A layer W of shape (p, d) then learns, by gradient descent with noise in every step, to bring
    records near to their class's W S_c. It starts as the principal axes of the unit S_c: with all of them that is where
    `NoisySumPrototypes` ends, or `PublicPrototypes` with k = 1.
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
    prototypes : {"sums", "public"}, default="sums"
        What stands for a class before the layer: a noisy sum, or one of the public rows, less their mean and made unit
        again, chosen by the exponential mechanism as in `PublicPrototypes` with k = 1.
    d_min, d_max : float or "public", default="public"
        Window of similarities for prototypes="public", as in `PublicPrototypes`.
    share : float, default=0.7
        Share of the budget for the prototypes, from 0.1 to 0.9; the layer gets the rest.
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
    indices_ : ndarray of shape (C,)
        Positions of the chosen rows in `public`, with prototypes="public".
    window_ : tuple of float
        The window used, with prototypes="public".
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one Gaussian event per class for the sums and one for the counts, and one per step, of sensitivity `clip`
    in Frobenius norm under add/remove. With prototypes="public" the sums give way to one exponential mechanism per
    class: of the whole rho it costs rho_1 = share rho, at epsilon = sqrt(8 rho_1), and T steps of noise multiplier
    sigma cost T/(2 sigma^2). An approximate budget is calibrated for all events together. During a step the unit
    prototypes q_c = W S_c/|W S_c| are constants, since S and W are released. With r the softmax of scale <W x, q_c>
    less the one-hot label, the gradient of a record is the outer product of sum_c r_c q_c and x, so clipping needs
    their two norms alone. Both rows come from exact products of whole numbers, so that they do not depend, in their
    bits, on the other records. See `tacit.mechanisms.gaussian`, `tacit.mechanisms.exponential` and
    `tacit.mechanisms.outer_products`.
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
        prototypes: str = SUMS,
        d_min: float | str = PUBLIC,
        d_max: float | str = PUBLIC,
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
        self.prototypes = prototypes
        self.d_min = d_min
        self.d_max = d_max
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

    def _from_public(self) -> bool:
        """Whether prototypes are public rows, once the parameters that go with it are checked."""
        if not isinstance(self.prototypes, str) or self.prototypes not in (SUMS, PUBLIC):
            raise InputError(f"prototypes={shortened(self.prototypes)} must be {SUMS!r} or {PUBLIC!r}; leave it out")
        from_public = bool(self.prototypes == PUBLIC)
        needs_public(self.d_min, self.d_max)
        if not from_public and (self.d_min, self.d_max) != (PUBLIC, PUBLIC):
            window_given = f"d_min={self.d_min!r}, d_max={self.d_max!r}"
            raise InputError(f"{window_given} are for prototypes={PUBLIC!r}; leave them out, or pass that")
        return from_public

    def _multiplier(self) -> float:
        z = super()._multiplier()
        if z == 0 or not self._from_public():
            return z
        return _beside_selection(Budget.parse(self.budget), Unit(self.unit), *self._split())

    def _split(self) -> tuple[float, float, int]:
        """Shares of the budget for prototypes and for counts, and the number of steps."""
        return real("share", self.share, 0.1, 0.9), self._count_share(), whole("steps", self.steps, 1, 10**4)

    def _multipliers(self) -> tuple[float, float]:
        """Noise multipliers of the sums and of a step."""
        z, split = self._multiplier(), self._split()
        return z / math.sqrt(split[0]), _of_step(z, *split)

    def _epsilon(self) -> float:
        """Of the choice of public rows."""
        return _epsilon(self._multiplier(), self._split()[0])

    def _check(self, width: int) -> None:
        super()._check(width)
        if self._from_public():
            public = candidates(self.public, width)
            self.window_ = window(self.d_min, self.d_max, public, self.centre_)
            self._scoring_ = scoring(public, *self.window_, centre=self.centre_)

    def _event(self) -> Event:
        if self.dimension is not None:
            whole("dimension", self.dimension, 1, 2**20)
        real("scale", self.scale, 1e-3, 1e4)
        real("clip", self.clip, 1e-6, 10)
        if self.learning_rate is not None:
            real("learning_rate", self.learning_rate, 1e-9, 1e9)
        if self._from_public():
            flag("balanced", self.balanced)
            return _cost(self._multiplier(), *self._split())
        of_sums, of_step = self._multipliers()
        return self._composed([gaussian.event(of_sums), self.steps * outer_products.event(of_step)])

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        of_step = self._multipliers()[1]
        if of_step == 0:
            with phase(SET_UP):
                exact = list(self._row_blocks(X, labels, "rows"))
                counts = self._class_counts(exact, noise)
            sums = self._prototypes(X, labels, noise)
            empty = scores_of_empty(counts[:, None])
            offsets = self._log_shares(counts) + empty
            self._descend(lambda layer: self._exact_gradient(layer, sums, offsets, exact), sums, counts)
            self.intercepts_ = np.minimum(self.intercepts_, empty)
            return
        sums = self._prototypes(X, labels, noise)
        with phase(SET_UP):
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

    def _prototypes(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> Floats:
        """S_c: noisy class sums, or the chosen public rows."""
        if self._from_public():
            return self._chosen_rows(X, labels, noise)
        return self._sums(X, labels, noise)

    @phase(SET_UP)
    def _sums(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> Floats:
        rows, of_sums = self._row_blocks(X, labels, "class sums"), self._multipliers()[0]
        shape = {"n_classes": len(self.classes_), "width": X.shape[1]}
        if of_sums == 0:
            return exact_class_sums(rows, **shape)
        return gaussian.noisy_class_sums(rows, noise_multiplier=of_sums, noise=noise, **shape)

    def _chosen_rows(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> Floats:
        how, epsilon = self._scoring_, self._epsilon()
        with class_scores(how, self.public, X, labels, len(self.classes_)) as totals:
            rows = progress(totals, "selection", len(self.classes_))
            with phase(SELECTION):
                chosen = [select_one(row, sensitivity=how.sensitivity, epsilon=epsilon, noise=noise) for row in rows]
        self.indices_ = np.array(chosen)
        return unit_rows_about(np.asarray(self.public[self.indices_]), self.centre_)

    def _products(
        self, layer: Floats, sums: Floats, offsets: Floats, parts: Parts
    ) -> Iterator[tuple[Floats, IntegerRows]]:
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
        self.intercepts_ = scores_of_empty(sums)

    def _learning_rate(self, n: float, width: int) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        longest = 40.0 if self.public is None else 10.0
        noise = self._multipliers()[1] * self.clip * self.steps**1.5 * math.sqrt(width)
        return min(longest, NOISE_IN_LAYER * 3 * n / noise) if noise > 0 else longest

    def _release(self) -> Released:
        of_sums, of_step = self._multipliers()
        if self._from_public():
            what = "one public record per class, through a privately learned layer"
            of_prototypes: dict[str, Any] = {
                "selection": f"exponential, epsilon {self._epsilon():g} per class",
                "clip window of 1 + cosine": list(self.window_),
            }
        else:
            what = "one noisy sum of unit rows per class, through a privately learned layer"
            of_prototypes = {"noise multiplier of the class sums": of_sums}
        facts = self._facts() | {
            "gradient clip norm": float(self.clip),
            **of_prototypes,
            "noise multiplier of a step": of_step,
            "steps": self.steps,
            "sampling": "none; every record is used in every step",
        }
        return self._released(what, facts)


def _epsilon(z: float, share: float) -> float:
    """Of a selection that costs this share of a Gaussian of multiplier z: epsilon^2/8 = share/(2 z^2)."""
    return 2 * math.sqrt(share) / z if z > 0 else math.inf


def _of_step(z: float, share: float, of_counts: float, steps: int) -> float:
    """Noise multiplier of a step, where all steps cost what these shares leave."""
    return z * math.sqrt(steps / (1 - share - of_counts))


def _cost(z: float, share: float, of_counts: float, steps: int) -> Event:
    """A selection, the steps, and counts where they are bought: the rho of one Gaussian of multiplier z."""
    selection = exponential.event(_epsilon(z, share), "exponential")
    step = outer_products.event(_of_step(z, share, of_counts, steps))
    counts = [gaussian.event(z / math.sqrt(of_counts))] if of_counts else []
    return compose([selection, steps * step, *counts])


@lru_cache(maxsize=1024)
def _beside_selection(budget: Budget, unit: Unit, share: float, of_counts: float, steps: int) -> float:
    """The least z at which `_cost` keeps the budget."""

    def cost(inverse: float) -> Event:
        return Guarantee(Unit.ADD_REMOVE, _cost(1 / inverse, share, of_counts, steps)).to(unit).event

    precision = 1e-6 if budget.kind == "approx" else 1e-12  # a loss distribution takes a tenth of a second
    return 1 / calibrate(budget, cost, 1e-12, 1e6, precision)


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
