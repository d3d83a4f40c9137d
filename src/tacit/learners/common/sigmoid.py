"""Log-loss of linear heads with one sigmoid per label: exact residuals and sums of gradients.

The log-loss is summed over the labels, of which a record may have several. Its gradient by the
heads is, for a record with labels y (0 or 1), the outer product of the residual
1/(1 + exp(-logits)) - y and the row. So its norm is the product of two norms, and one clip of the
residual's norm bounds all labels together: the sums of `outer_products.noisy_products` and their
event are the same however many labels there are.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.learners.common.softmax import Residuals
from tacit.mechanisms import outer_products
from tacit.models.rows import Floats
from tacit.privacy.unit import Unit

# a logit below this has a probability below 1e-300
LEAST_LOGIT = -700.0


class SigmoidResiduals(Residuals):
    """Sigmoid of logits plus offsets, less the labels (b, K), 0 or 1: as `Residuals` otherwise.

    Each entry is a function of its logit alone, to the last bit.
    """

    def of(self, right: Floats) -> Floats:
        """Residuals of right rows (b, d), of shape (b, K)."""
        result: Floats = right @ self.head.T
        result *= self.unit
        result += self.offsets

        # 1/(1 + exp(-logit)), in place
        np.maximum(result, LEAST_LOGIT, out=result)
        np.negative(result, out=result)
        np.exp(result, out=result)
        result += 1.0
        np.reciprocal(result, out=result)

        result -= self.labels
        if self.clip != 1:
            result /= self.clip
        return result


def gradient_sensitivity(unit: Unit, clip: float, n_labels: int) -> float:
    """Return by how much the sum of clipped gradients moves under `unit`, in units of the clip
    norm.

    Another set of labels changes each entry of a residual by 1 at most, and so the residual by
    sqrt(n_labels); clipping lengthens no difference. Two clipped gradients differ by 2 at most: for
    four labels, probabilities of 1/2 and the complement of the labels they differ by that.
    """
    if unit is Unit.CHANGE_LABEL:
        # the factor covers the rounding of the root
        distance = math.sqrt(n_labels) * (1 + 2.0**-50)
        return outer_products.moved_by_left_rows(distance / clip, n_labels)
    return outer_products.PRODUCTS.under(unit)
