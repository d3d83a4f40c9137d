"""GlobalAdapt: logistic regression with an adapted threshold (DPSGD-Global-Adapt)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.learners.common.balance import n_records
from tacit.learners.common.budget_split import Part
from tacit.learners.common.parameters import real
from tacit.learners.common.softmax import Blocks, ResidualKind, Residuals, residuals
from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.linear.gradient_descent import GRADIENTS, GradientDescent
from tacit.learners.linear.name_centre import Gradient
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.counts import COUNT, counted, noisy_count
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.rounding import row_norms
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.events import Event, Gaussian
from tacit.privacy.unit import Unit

# bounds of the threshold; no gradient of a unit row is longer than the first
LONGEST = math.sqrt(2)
SHORTEST = 1e-6

# the name of this part of the budget
ABOVE = "counts above the threshold"


@dataclass(kw_only=True, eq=False, repr=False)
class GlobalAdapt(GradientDescent):
    """Classify by logistic regression, learned from gradients scaled by an adapted threshold.

    Clipping changes the direction of the mean gradient if it shortens only some records' gradients.
    Here all gradients up to a threshold Z are scaled by clip/Z, and longer gradients are clipped to
    norm `clip`. After each step Z shrinks by exp(-decay) and grows with the noisy share of
    gradients above it, so that it settles where that share is `decay`. Rows are divided by their
    norm, at fit and at predict. Every step uses every record. By default small classes are at no
    disadvantage, as in `GradientDescent`.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is plain gradient descent.
    steps, learning_rate, counts, balanced, ridge, intercept, names
        As in `GradientDescent`; counts also turn the number of gradients above the threshold into a
        share.
    clip : float, default=1.0
        Bound on the norm of a record's scaled gradient.
    threshold : float, default=sqrt(2)
        Z of the first step; at most sqrt(2), the longest gradient of a unit row. Z is kept between
        1e-6 and sqrt(2).
    decay : float, default=0.1
        How fast Z shrinks, eta in the paper.
    tolerance : float, default=1.0
        Gradients longer than tolerance Z make Z grow, tau in the paper.
    threshold_share : float, default=0.01
        Share of the budget for the counts of gradients above the threshold.

    Attributes
    ----------
    thresholds_ : ndarray of shape (steps,)
        Z of each step; empty under an infinite budget.
    coefficients_, intercepts_, learning_rate_, name_scale_, centre_, classes_, guarantee_, spent_
        As in `GradientDescent`.

    Notes
    -----
    Guarantee: per step, one Gaussian event for the sum of scaled gradients, of sensitivity `clip`
    in Frobenius norm under add/remove, and one for the count of gradients above tolerance Z, of
    sensitivity 1; one more per class is for the class counts. rho = steps/(2 sigma^2) + steps/(2
    sigma_b^2) + that of the class counts. A record's scale depends on its own gradient and on
    earlier releases only, to the last bit. Under a unit per person the count adds up, over persons,
    the share of their gradients above the threshold. Divided by the total weight of the persons it
    becomes a share, so Z settles lower if people are in several classes. See
    `tacit.mechanisms.outer_products` and `tacit.mechanisms.counts`.
    Source: Esipova et al. 2023, on the full batch, so that no assumption about sampling is needed,
    with Nesterov's momentum; Menon et al. 2021 for the logit adjustment. Published code divides the
    count above the threshold by the actual number of records, which leaks that number.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.GlobalAdapt(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    trains_logits = True
    takes_several_labels = False
    summary = (
        "one linear score per class, by noisy logistic regression under an adapted threshold"
        " (DPSGD-Global-Adapt)"
    )

    # no parameters of this method
    most_labels: ClassVar[None] = None  # type: ignore[misc]
    tree: ClassVar[None] = None  # type: ignore[misc]

    threshold: float = LONGEST
    decay: float = 0.1
    tolerance: float = 1.0
    threshold_share: float = 0.01

    def _threshold_share(self) -> float:
        return real("threshold_share", self.threshold_share, 1e-6, 0.9)

    def _parts(self) -> dict[str, Part]:
        counts = self._declared_counts()
        share = self._threshold_share()
        gradients = Part(1 - share - counts.share, outer_products.PRODUCTS, releases=self._steps())
        above = Part(share, COUNT, releases=self._steps())
        return {GRADIENTS: gradients} | counts.parts | {ABOVE: above}

    def _clip(self) -> float:
        return real("clip", self.clip, 1e-6, 10)

    def _gradient_sensitivity(self) -> float:
        # The factor of a gradient jumps at the threshold, so that the difference which a changed
        # label makes may become longer: the smaller sensitivity of clipped gradients does not hold.
        return outer_products.PRODUCTS.under(Unit(self.unit))

    def _event(self) -> Event:
        real("threshold", self.threshold, SHORTEST, LONGEST)
        real("decay", self.decay, 0, 1)
        real("tolerance", self.tolerance, 1e-6, 1e6)
        return super()._event()

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        self.thresholds_ = np.zeros(0)
        released = super()._fit(prepared, noise)
        title = "one linear score per class, by noisy gradients under an adapted threshold"
        fact = {"noise multiplier of a count above the threshold": self._split().noise(ABOVE)}
        return replace(released, what=title, mechanism=released.mechanism | fact)

    def _shrinkage(self) -> float:
        if self._infinite():
            return 1.0
        return self.clip / max(self.threshold, 1.0)

    def _gradient(
        self,
        blocks: Blocks,
        counts: Floats,
        noise: NoiseSource,
        kind: ResidualKind = Residuals,
    ) -> Gradient:
        """Return the gradient to descend.

        Each call moves the threshold, except under an infinite budget.
        """
        if self._infinite():
            return super()._gradient(blocks, counts, noise, kind)

        z = self._step_noise()
        count_event = Gaussian(self._split().noise(ABOVE))
        offsets = self._counts().log_shares(counts)
        next_threshold = float(self.threshold)

        def gradient(head: Floats) -> Floats:
            nonlocal next_threshold
            threshold = next_threshold
            # number of gradients above the threshold, which the products of all blocks add up
            above: int | Fraction = 0

            def products() -> Iterator[Block]:
                nonlocal above
                for rows, labels, ends in blocks:
                    left, norms = scaled(
                        residuals(rows, labels, head, offsets, kind), threshold, self.clip
                    )
                    above += counted(norms > self.tolerance * threshold, ends)
                    yield Block(left, rows, ends)

            total = outer_products.noisy_products(
                products(), shape=head.shape, noise_multiplier=z, noise=noise
            )

            noisy_above = noisy_count(above, count_event, noise)
            share = min(max(noisy_above / n_records(counts), 0.0), 1.0)
            adapted = threshold * math.exp(share - self.decay)
            next_threshold = min(max(adapted, SHORTEST), LONGEST)
            self.thresholds_ = np.append(self.thresholds_, threshold)
            return total * self.clip

        return gradient


def scaled(left: Floats, threshold: float, clip: float) -> tuple[Floats, Floats]:
    """Scale rows to norm 1 at most, in units of `clip`; return them, and their norms before that.

    Rows up to the threshold Z are divided by it, which scales their norm by clip/Z; longer ones are
    clipped. The result for a row depends on the values of that row alone.
    """
    left = np.ascontiguousarray(left)
    norms = row_norms(left)
    divisors = np.where(norms <= threshold, threshold, np.maximum(norms, clip))
    return left / divisors[:, None], norms
