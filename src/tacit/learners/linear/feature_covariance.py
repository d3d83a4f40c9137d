"""FeatureCovariance: logistic regression by noisy gradients over noisy second moments (DP-FC)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.compute.progress import progress
from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.common.budget_split import Part
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import real
from tacit.learners.common.preconditioning import damping_for, divided
from tacit.learners.common.softmax import (
    Blocks,
    clip_norm_under,
    gradient_sensitivity,
    noisy_gradient,
)
from tacit.learners.common.sums import second_moments
from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.linear.name_centre import Gradient, NameCentre
from tacit.learners.linear.second_order import SecondOrderClassifier
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spectrum
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

# the parts of the budget
MOMENTS = "moments"
GRADIENTS = "gradients"

# largest learning rate: the best on CIFAR-10. Without this bound, 100 classes diverged on CIFAR-100
LONGEST = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureCovariance(SecondOrderClassifier):
    """Classify by logistic regression, learned from noisy gradients over noisy second moments.

    Rows are divided by their norm, at fit and at predict. G, the sum of x x' over all records, is
    noised once. Then every epoch moves the head by -learning_rate (G + damping I)^-1 g, where g is
    the noised sum of all records' gradients of softmax cross-entropy, each clipped. Directions in
    which rows vary little are learned as fast as the others, so few epochs suffice.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is the same descent without noise and clipping.
    epochs : int, optional
        Number of steps, each over all records; by default 20, or 40 under an infinite budget.
    learning_rate : float, optional
        By default the number of classes, with which the first step is Newton's, but at most 10.
    clip : float, default=1.0
        Bound on the norm of a record's gradient, which is at most sqrt(2).
    damping : float, optional
        By default ridge C + s sqrt(d), s being the standard deviation of the noise on an entry of
        G; or more, so that noise in all epochs adds at most 0.5 to a logit, as estimated from the
        noisy G.
    counts, balanced, ridge, intercept
        As in `GradientDescent`. balanced=False needs no counts.
    names
        As in `GradientDescent`.

    Attributes
    ----------
    damping_ : float
        As used; a function of the noisy G.
    coefficients_, intercepts_, name_scale_, centre_, classes_, guarantee_, spent_
        As in `GradientDescent`.

    Notes
    -----
    Guarantee: 1 + epochs Gaussian events with one multiplier s, so that rho = (1 + epochs)/(2 s^2):
    one for G, of sensitivity 1, and one per epoch, of sensitivity `clip`, both in Frobenius norm
    under add/remove. One more per class is for the counts. Under change-label, and for the labels
    of a person, G is exact and costs nothing, since rows are public. Under change-label gradients
    are clipped as in `GradientDescent`. Logits are exact, as in `GradientDescent`. Under a unit per
    person, a person's contribution to G or to a gradient is bounded like a record's otherwise. See
    `tacit.mechanisms.outer_products`.
    Source: Mehta et al. 2023 (DP-FC), with the full batch in every step; Menon et al. 2021 for the
    logit adjustment. The damping is tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.FeatureCovariance(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    trains_logits = True
    summary = "one linear score per class, by noisy gradients over noisy second moments (DP-FC)"

    clip: float = 1.0
    names: Any = None

    default_epochs = (20, 40)

    def _parts(self) -> dict[str, Part]:
        counts = self._declared_counts()
        epochs = self._epochs()
        # the second moments, and the gradient of each epoch, get the same share
        share_of_release = (1 - counts.share) / (1 + epochs)
        moments = Part(share_of_release, outer_products.MOMENTS)
        gradients = Part(epochs * share_of_release, outer_products.PRODUCTS, releases=epochs)
        return {MOMENTS: moments, GRADIENTS: gradients} | counts.parts

    def _clip(self) -> float:
        """Return the clip norm in use."""
        return clip_norm_under(Unit(self.unit), real("clip", self.clip, 1e-6, 10))

    def _moments_noise(self) -> float:
        """Return the standard deviation of the noise on an entry of G; 0 where rows are public."""
        return self._split().noise(MOMENTS)

    def _epoch_noise(self) -> float:
        """Return the standard deviation of the noise on an entry of a gradient, in clip norms."""
        sensitivity = gradient_sensitivity(Unit(self.unit), self._clip(), len(self.classes_))
        return self._split().noise(GRADIENTS, sensitivity)

    def _event(self) -> Event:
        self._clip()
        self._check_steps()
        return super()._event()

    def _matrices(self) -> Matrices:
        return Matrices(held=2.5, decomposed=1, noised=self._noised(1, self._moments_noise()))

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        with phase(SET_UP):
            blocks = prepared.block_list(exact=self._infinite())
            counts = None
            if self.balanced:
                counts = self._counts().draw(blocks, len(self.classes_), noise)
            moments = self._moments(blocks, prepared.width, noise)

        with phase(SOLVING):
            # before `spectrum`, which overwrites the moments
            sum_of_squares = float(np.trace(moments))
            values, vectors = spectrum(moments)
            self.damping_ = self._damping(values)

            name_centre = self._name_centre(prepared, counts, sum_of_squares)
            gradient = self._gradient(blocks, counts, noise)
            if name_centre is not None:
                gradient = name_centre.follow(gradient)
            theta = self._descend(gradient, values, vectors)

        facts = {
            "gradient clip norm": self._clip(),
            "noise multiplier of the second moments": self._moments_noise(),
            "noise multiplier of an epoch": self._epoch_noise(),
            "epochs": self._epochs(),
            "damping": self.damping_,
            **self._counts().facts(),
            "sampling": "none; every record is used in every epoch",
        }
        self.name_scale_ = 0.0
        if name_centre is not None:
            self.name_scale_ = name_centre.scale
            theta = theta + name_centre.head
            facts = facts | name_centre.facts()
        title = "one linear score per class, by noisy gradients over noisy second moments"
        return self._head(prepared, title, theta, facts)

    def _moments(self, blocks: Blocks, width: int, noise: NoiseSource) -> Floats:
        """Return the noisy second moments G, (width, width)."""
        return second_moments(
            blocks,
            width=width,
            multiplier=self._moments_noise(),
            noise=noise,
            rows_are_public=self._public_rows(),
        )

    def _descend(self, gradient: Gradient, values: Floats, vectors: Floats) -> Floats:
        """Return the head (C, width) after all epochs, from zero."""
        epochs = self._epochs()
        rate = self._learning_rate()
        theta = np.zeros((len(self.classes_), len(values)))
        for _ in progress(range(epochs), "epochs", epochs):
            penalised = gradient(theta) + self.ridge * theta
            theta = theta - rate * divided(penalised, values, vectors, self.damping_)
        return theta

    def _gradient(self, blocks: Blocks, counts: Floats | None, noise: NoiseSource) -> Gradient:
        """Return the gradient to descend. Counts serve only to balance the classes."""
        z = self._epoch_noise()
        clip = self._clip()
        offsets = np.zeros(len(self.classes_))
        if counts is not None:
            offsets = self._counts().log_shares(counts)
        return lambda head: noisy_gradient(
            head, offsets, blocks, clip=clip, multiplier=z, noise=noise
        )

    def _name_centre(
        self, prepared: UnitRows, counts: Floats | None, sum_of_squares: float
    ) -> NameCentre | None:
        """Return the start and centre of the ridge, if there are names.

        Without counts the noisy sum of squared norms stands for the number of records, since rows
        have norm 1.
        """
        if prepared.names is None:
            return None

        n_classes = len(self.classes_)
        counts_noise = self._counts().noise
        if counts is None:
            counts = np.full(n_classes, sum_of_squares / n_classes)
            # the sum is the trace, so `width` independent draws add up
            counts_noise = self._moments_noise() * math.sqrt(prepared.width) / n_classes
        return NameCentre(
            prepared.names,
            counts,
            counts_noise=counts_noise,
            noise=self._epoch_noise() * self._clip(),
            steps=self._epochs(),
            shrinkage=1.0 if self._infinite() else min(self._clip(), 1.0),
            intercept=prepared.intercept,
        )

    def _learning_rate(self) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        return min(float(len(self.classes_)), LONGEST)

    def _damping(self, values: Floats) -> float:
        """Return the damping as passed, or by the eigenvalues of the noisy G."""
        if self.damping is not None:
            return float(self.damping)

        # steps of the ridge alone must not overshoot, nor eigenvalues of the noise count
        least = self.ridge * len(self.classes_) + self._moments_noise() * math.sqrt(len(values))
        # noise of all epochs in a coordinate, which is divided like the gradients
        deviation = (
            self._learning_rate() * self._clip() * self._epoch_noise() * math.sqrt(self._epochs())
        )
        return damping_for(values, deviation, least)
