"""Noisy gradient descent from the scores that AutoPrototypes has from its sums.

The loss is the softmax cross-entropy with log class shares added to the scores, so that classes
weigh alike. The log shares are multiplied by `BALANCE`, which is above 1 because the coefficients
of small classes stay closer to the start: few records, noise and the ridge hold them back.

The ridge penalises the distance from the start. If classes are Gaussian with covariance h w, h the
within-class share, the best coefficients are m / (h w) for class means m of squared length 1 - h.
For a given w their squared length is proportional to (1 - h) / h^2. So is what we expect of the
squared distance, and the ridge is `RIDGE` h^2 / (1 - h). It is at most `LARGEST_RIDGE`: where
classes are diffuse about a public centre of their own kind, 1 - h is near zero, and gradient steps
would hardly move.

Gradients are clipped to half of `CLIP` if all classes have the same size: this halves the noise and
shortens the gradients of few records. Records of classes much smaller than others have long
gradients, so the clip norm grows with the standard deviation of the log class sizes, up to `CLIP`.
Under change-label a clip norm of sqrt(1/2) or more needs as much noise as no clipping, so it
becomes sqrt(2), which shortens no gradient.

A small part of the budget pays for the second moments G of the rows. Gradients are divided by G +
damping I, so that directions in which rows vary little are learned as fast as others. Each noisy
gradient also says how the loss changes with the scale of the scores: see
`tacit.models.calibration`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.compute.timing import SOLVING, phase
from tacit.learners.common.balance import log_shares
from tacit.learners.common.descent import NOISE_IN_LOGIT, descend
from tacit.learners.common.preconditioning import damping_for, divided, spectrum
from tacit.learners.common.softmax import clip_norm_under, gradient_sensitivity, noisy_gradient
from tacit.learners.common.sums import second_moments
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.calibration import Slopes
from tacit.models.posterior import ClassPosterior
from tacit.models.rows import Floats
from tacit.privacy.unit import Unit

# Where each constant was chosen is said in docs/auto.md.
STEPS = 30
RIDGE = 0.13
LARGEST_RIDGE = 0.3
BALANCE = 1.2

# share of the rest of the budget that the second moments get
MOMENTS = 0.02

# norm to which gradients are clipped at most
CLIP = 1.0

# largest learning rate: half of what steps without momentum may have
LONGEST = 5.0


@phase(SOLVING)
def refine(
    start: Floats,
    records: UnitRows,
    posterior: ClassPosterior,
    rest: Rest,
    noise: NoiseSource,
    slopes: Slopes | None = None,
) -> Floats:
    """Return coefficients (C, d) after the descent; it costs the rest of the budget.

    Class sizes, ridge and clip norm follow from the posterior. What the gradients say of the scale
    is added to `slopes`.
    """
    sizes = posterior.sizes
    n = float(sizes.sum())
    n_classes, width = start.shape
    clip = rest.clip(sizes)
    z = rest.noise_of_step(sizes)
    ridge = ridge_of(posterior)
    blocks = records.block_list(exact=z == 0)
    offsets = BALANCE * log_shares(sizes, 0.0)

    if slopes is None:
        slopes = Slopes()
    # without noise, gradients are not clipped
    slopes.clip = clip if z > 0 else math.inf
    slopes.balance = BALANCE

    moments_noise = rest.noise_of_moments
    moments = second_moments(
        blocks,
        width=width,
        multiplier=moments_noise,
        noise=noise,
        rows_are_public=rest.rows_are_public,
    )
    values, vectors = spectrum(moments)

    rate = _learning_rate(n_classes)
    damping = _damping(values, rest, sizes, ridge, rate)

    def gradient(change: Floats) -> Floats:
        head = start + change
        loss_gradient = noisy_gradient(head, offsets, blocks, clip=clip, multiplier=z, noise=noise)

        # The derivative of the loss by the logarithm of the scale of the scores.
        slopes.values.append(float((head * loss_gradient).sum()) / n)
        slopes.noises.append(z * clip * float(np.linalg.norm(head)) / n)
        return divided(loss_gradient + ridge * change, values, vectors, damping)

    return start + descend(gradient, np.zeros_like(start), rate=rate, steps=STEPS)


def _learning_rate(n_classes: int) -> float:
    """Return the rate of steps that are divided by G.

    If all classes are equally likely, the Hessian of a class is about G/C, so the step of Newton
    has the rate C.
    """
    return min(float(n_classes), LONGEST)


def _damping(values: Floats, rest: Rest, sizes: Floats, ridge: float, rate: float) -> float:
    """Return the damping of G, of eigenvalues `values`, with which noise adds little to a logit."""
    # noise in a logit adds up as in `learning_rate`
    deviation = rate * rest.noise_of_step(sizes) * rest.clip(sizes) * STEPS**1.5 / 3

    # The first term keeps steps of the ridge alone from overshooting; the second is of the order of
    # the largest eigenvalue of the noise.
    least = ridge * len(sizes) + rest.noise_of_moments * math.sqrt(len(values))
    return damping_for(values, deviation, least, NOISE_IN_LOGIT)


def ridge_of(posterior: ClassPosterior) -> float:
    """Return the ridge about the start, from the share of variance within classes."""
    return min(RIDGE * posterior.within**2 / posterior.between, LARGEST_RIDGE)


@dataclass(frozen=True)
class Rest:
    """The rest of the budget, which pays for the descent, and the noise that it buys.

    `multiplier` is the noise multiplier of one release that would spend all of it, relative to its
    sensitivity under `unit`. Second moments and steps together cost the same.
    """

    multiplier: float
    unit: Unit

    @property
    def rows_are_public(self) -> bool:
        """Tell whether second moments are exact and free; the steps get all of the rest then."""
        return self.multiplier > 0 and outer_products.MOMENTS.under(self.unit) == 0

    @property
    def noise_of_moments(self) -> float:
        """Standard deviation of the noise on an entry of the second moments."""
        sensitivity = outer_products.MOMENTS.under(self.unit)
        return self.multiplier * sensitivity / math.sqrt(MOMENTS)

    def clip(self, sizes: Floats) -> float:
        """Return the clip norm in use."""
        return clip_norm_under(self.unit, clip_norm(sizes))

    def noise_of_step(self, sizes: Floats) -> float:
        """Return the standard deviation of noise on an entry of a gradient, in clip norms."""
        share = 1.0 if self.rows_are_public else 1 - MOMENTS
        sensitivity = gradient_sensitivity(self.unit, self.clip(sizes), len(sizes))
        return self.multiplier * math.sqrt(STEPS / share) * sensitivity

    def facts(self, sizes: Floats) -> dict[str, Any]:
        """Return what the card says of the descent."""
        clip: float | str = "none"
        if self.multiplier > 0:
            clip = self.clip(sizes)
        return {
            "gradient steps": STEPS,
            "noise multiplier of the second moments": self.noise_of_moments,
            "noise multiplier of a step": self.noise_of_step(sizes),
            "gradient clip norm": clip,
            "log class shares": f"times {BALANCE:g}",
            "sampling": "none; every record is used in every step",
        }


def clip_norm(sizes: Floats) -> float:
    """Return the norm to which gradients are clipped, from the class sizes (C,).

    >>> clip_norm(np.array([50.0, 50.0])), clip_norm(np.array([1.0, 100.0]))
    (0.5, 1.0)
    """
    spread = float(np.log(sizes).std())
    return CLIP * min(1.0, (1 + spread) / 2)
