"""Noisy gradient descent from the scores that AutoPrototypes has from its sums.

The loss is the softmax cross-entropy with log class shares added to the scores, so that classes weigh alike. The log
shares are multiplied by `BALANCE`, which is above 1 because the coefficients of small classes stay closer to the start:
few records, noise and the ridge hold them back. Each noisy gradient also says how the loss changes with the scale of
the scores: see `tacit.models.calibration`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.compute.timing import SOLVING, phase
from tacit.learners.common.balance import log_shares
from tacit.learners.common.descent import descend, learning_rate
from tacit.learners.common.softmax import noisy_gradient
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms.noise import NoiseSource
from tacit.models.calibration import Slopes
from tacit.models.rows import Floats

# where each was chosen: docs/auto.md
STEPS = 60
RIDGE, CLIP, LONGEST_STEP, BALANCE = 0.3, 1.0, 4.0, 1.1


@phase(SOLVING)
def refine(
    start: Floats,
    records: UnitRows,
    sizes: Floats,
    multiplier: float,
    noise: NoiseSource,
    slopes: Slopes | None = None,
) -> Floats:
    """Coefficients (C, d) after the descent, whose steps together cost `outer_products.event(multiplier)`.

    What the gradients say of the scale is added to `slopes`.
    """
    z, n, n_classes = multiplier * math.sqrt(STEPS), float(sizes.sum()), len(sizes)
    blocks, added = records.block_list(exact=z == 0), BALANCE * log_shares(sizes, 0.0)
    slopes = Slopes() if slopes is None else slopes
    slopes.clip, slopes.balance = (CLIP if z > 0 else math.inf), BALANCE

    def gradient(moved: Floats) -> Floats:
        head = start + moved
        of_loss = noisy_gradient(head, added, blocks, clip=CLIP, multiplier=z, noise=noise)
        slopes.values.append(float((head * of_loss).sum()) / n)
        slopes.noises.append(z * CLIP * float(np.linalg.norm(head)) / n)
        return of_loss + RIDGE * moved

    longest = LONGEST_STEP * n_classes
    rate = learning_rate(longest, records=n, n_classes=n_classes, noise=z * CLIP, steps=STEPS)
    return start + descend(gradient, np.zeros_like(start), rate=rate / n, steps=STEPS)


def facts(multiplier: float) -> dict[str, Any]:
    """For the card."""
    return {
        "gradient steps": STEPS,
        "noise multiplier of a step": multiplier * math.sqrt(STEPS),
        "gradient clip norm": CLIP,
        "log class shares": f"times {BALANCE:g}",
        "sampling": "none; every record is used in every step",
    }
