"""Noisy gradient descent from the scores that AutoPrototypes has from its sums.

The loss is the softmax cross-entropy with log class shares added to the scores. They account for
the class sizes during the descent; a prediction leaves them out, so its scores treat classes as
equally frequent (logit adjustment, Menon et al. 2021). The log shares are multiplied by `BALANCE`,
which is above 1 because the coefficients of small classes stay closer to the start: few records,
noise and the ridge hold them back.

The ridge penalises the distance from the start. Let h be the within-class share
(`ClassPosterior.within`) and w the variances of public rows. If classes are Gaussian with
covariance h w, the best coefficients are m / (h w) for class means m of squared length 1 - h. For a
given w their squared length is proportional to (1 - h) / h^2. The expected squared distance from
the start is taken to be proportional to it too. A ridge is inversely proportional to an expected
square, so it is `RIDGE` h^2 / (1 - h), and at most `LARGEST_RIDGE`: where classes are diffuse about
a public centre of their own kind, 1 - h is near zero, and gradient steps would hardly move.

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
from tacit.learners.common.preconditioning import damping_for, divided
from tacit.learners.common.softmax import clip_norm_under, gradient_sensitivity, noisy_gradient
from tacit.learners.common.sums import second_moments
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.calibration import Slopes
from tacit.models.posterior import ClassPosterior
from tacit.models.rows import Floats
from tacit.models.spectra import spectrum
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

# largest learning rate: half of the bound for steps without momentum (`feature_covariance.py`),
# since longer steps with momentum oscillate where noise is small
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
    is added to `slopes`; without `slopes` it is dropped.
    """
    # noisy estimates: true class sizes are private
    sizes = posterior.sizes
    n_records = float(sizes.sum())

    n_classes, width = start.shape
    clip = rest.clip(sizes)
    step_noise = rest.noise_of_step(sizes)
    ridge = ridge_of(posterior)
    blocks = records.block_list(exact=step_noise == 0)

    # sizes of a posterior are at least 1, so nothing is added to them under the logarithm
    offsets = BALANCE * log_shares(sizes, 0.0)

    if slopes is None:
        slopes = Slopes()
    # without noise `noisy_gradient` clips nothing, whatever `clip` is
    slopes.clip = clip if step_noise > 0 else math.inf
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

    kind = records.residual_kind

    def gradient(change: Floats) -> Floats:
        head = start + change
        loss_gradient = noisy_gradient(
            head, offsets, blocks, clip=clip, multiplier=step_noise, noise=noise, kind=kind
        )

        # Scores scaled by exp(t) have the head exp(t) head. So the derivative of the mean loss by
        # t, at t = 0, is <head, gradient> / n; noise of one deviation in each entry of the gradient
        # becomes that deviation times |head| / n.
        slopes.values.append(float((head * loss_gradient).sum()) / n_records)
        slopes.noises.append(step_noise * clip * float(np.linalg.norm(head)) / n_records)

        # the gradient of the loss with its ridge, times (G + damping I)^-1
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
    # Noise that all steps would add to a coefficient if gradients were not divided: that of a
    # gradient, times the rate and steps^1.5 / 3 (Nesterov's method), as in `descent.learning_rate`.
    deviation = rate * rest.noise_of_step(sizes) * rest.clip(sizes) * STEPS**1.5 / 3

    # In a step the ridge alone takes back the share rate * ridge / damping of the distance from the
    # start, at most. The rate is C at most, so the first term keeps this share at 1 or below. The
    # second is of the order of the largest eigenvalue of a symmetric noise matrix of this width.
    least_damping = ridge * len(sizes) + rest.noise_of_moments * math.sqrt(len(values))
    return damping_for(values, deviation, least_damping, NOISE_IN_LOGIT)


def ridge_of(posterior: ClassPosterior) -> float:
    """Return the ridge about the start, from the share of variance within classes."""
    return min(RIDGE * posterior.within**2 / posterior.between, LARGEST_RIDGE)


@dataclass(frozen=True)
class Rest:
    """The rest of the budget, which pays for the descent, and the noise that it buys.

    `multiplier` is the noise multiplier of a single Gaussian release that would spend all of it,
    relative to the sensitivity of that release under `unit`; 0 without noise. Second moments and
    steps together cost the same: a release that gets the share f has multiplier / sqrt(f).
    """

    multiplier: float
    unit: Unit

    @property
    def rows_are_public(self) -> bool:
        """Tell whether second moments are exact and free; the steps get all of the rest then.

        It is false without noise: nothing is paid for then, and no row need be bounded.
        """
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
        # each step gets an equal part of this share
        share = 1.0 if self.rows_are_public else 1 - MOMENTS
        sensitivity = gradient_sensitivity(self.unit, self.clip(sizes), len(sizes))
        return self.multiplier * math.sqrt(STEPS / share) * sensitivity

    def facts(self, sizes: Floats) -> dict[str, Any]:
        """Return what the card says of the descent."""
        clip: float | str = "none"
        if self.multiplier > 0:
            clip = self.clip(sizes)
        # rows have norm 1, so the noise of second moments is in units of their bound
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

    It grows from half of `CLIP`, for equal sizes, to `CLIP`, where log sizes spread by 1 or more.

    >>> clip_norm(np.array([50.0, 50.0])), clip_norm(np.array([1.0, 100.0]))
    (0.5, 1.0)
    """
    spread = float(np.log(sizes).std())
    return CLIP * min(1.0, (1 + spread) / 2)
