"""The posterior of class means among the arrays of a release.

These arrays follow from what was released and from public rows, so they are post-processing and
cost nothing more. `predict` does not read them; `tacit adapt` makes a new decision of them. Each is
float32 and its name starts with `posterior.`; C is the number of
classes and p that of the public principal axes:

| array | shape | what it is |
|---|---|---|
| `posterior.axes` | (d, p) | the axes, where the decision holds no `axes` |
| `posterior.variances` | (p,) | second moments of public rows along the axes |
| `posterior.means`, `posterior.spreads` | (C, p) | mean and variance of each class's mean |
| `posterior.sizes` | (C,) | sizes of the classes, from noisy counts |
| `posterior.clarity` | (C,) | share of each noisy sum, in squared length, that is not noise |
| `posterior.shares` | (2,) | the share of variance within classes, and the trust in public rows |
| `posterior.names` | (C, p) | directions of the class names, where they were used |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.label_sets import THRESHOLDS
from tacit.models.posterior import ClassPosterior
from tacit.models.probabilities import ARRAY
from tacit.models.rows import Floats
from tacit.models.scaling import MEAN, SCALE

PREFIX = "posterior."
IN_RELEASE = (
    "; and the posterior of class means that follows from them (arrays posterior.*), to adapt it by"
)
LEAST = 1e-12  # floor for values that must stay positive in float32

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class CarriedPosterior:
    """A posterior of class means along public axes (d, p), and what else a decision by it needs.

    `variances` (p,) are second moments of public rows; `clarity` (C,) is that of the sums; `names`
    (C, p) are directions of class names, None where they were not used.
    """

    posterior: ClassPosterior
    axes: Floats
    variances: Floats
    clarity: Floats
    names: Floats | None = None

    def arrays(self, decision: Arrays) -> dict[str, NDArray[np.float32]]:
        """Return the arrays of the table above, to be stored beside those of a decision."""
        posterior = self.posterior
        values = {
            "variances": np.maximum(self.variances, LEAST),
            "means": posterior.mean,
            "spreads": np.maximum(posterior.variance, LEAST),
            "sizes": posterior.sizes,
            "clarity": self.clarity,
            "shares": np.array([posterior.within, posterior.trust]),
        }
        if "axes" not in decision:
            values["axes"] = self.axes
        if self.names is not None:
            values["names"] = self.names
        return {PREFIX + name: np.asarray(value, np.float32) for name, value in values.items()}


def deciding(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Select the arrays that a decision reads.

    The others are those of the posterior, of probabilities and thresholds, and of the scaling of
    rows.
    """
    other_names = (ARRAY, THRESHOLDS, MEAN, SCALE)
    return {
        name: array
        for name, array in arrays.items()
        if not name.startswith(PREFIX) and name not in other_names
    }


def carried(arrays: Arrays) -> CarriedPosterior | None:
    """Read the posterior among the arrays of a release, in float64; None if it carries none."""
    if PREFIX + "means" not in arrays:
        return None

    # where the posterior has no axes, those of the decision serve
    values = {"axes": np.asarray(arrays["axes"], np.float64)} if "axes" in arrays else {}
    for name, array in arrays.items():
        if name.startswith(PREFIX):
            values[name.removeprefix(PREFIX)] = np.asarray(array, np.float64)

    within, trust = map(float, values["shares"])
    posterior = ClassPosterior(
        values["means"], values["spreads"], values["sizes"], trust=trust, within=within
    )
    return CarriedPosterior(
        posterior, values["axes"], values["variances"], values["clarity"], values.get("names")
    )


def misfit(arrays: Arrays, n_classes: int, width: int) -> str | None:
    """Describe the first fault of a posterior's arrays; None without a fault or a posterior."""
    posterior_arrays = {
        name.removeprefix(PREFIX): array
        for name, array in arrays.items()
        if name.startswith(PREFIX)
    }
    if not posterior_arrays:
        return None

    has_own_axes = "axes" not in arrays
    axes = posterior_arrays.get("axes") if has_own_axes else arrays["axes"]
    if axes is None or axes.ndim != 2:
        return "a posterior needs its axes, of shape (d, p)"

    p = axes.shape[1]
    shapes: dict[str, tuple[int, ...]] = {
        "variances": (p,),
        "means": (n_classes, p),
        "spreads": (n_classes, p),
        "sizes": (n_classes,),
        "clarity": (n_classes,),
        "shares": (2,),
    }
    if has_own_axes:
        shapes["axes"] = (width, p)
    if "names" in posterior_arrays:
        shapes["names"] = (n_classes, p)
    if set(posterior_arrays) != set(shapes):
        names = ", ".join(sorted(posterior_arrays))
        return f"arrays of a posterior must be {', '.join(sorted(shapes))} and are {names}"

    for name, shape in shapes.items():
        array = posterior_arrays[name]
        if array.dtype != np.float32 or array.shape != shape:
            form = f"type {array.dtype} and shape {array.shape}"
            return f"{PREFIX}{name} of {form} must be float32 of shape {shape}"
        if not np.isfinite(array).all():
            return f"{PREFIX}{name} holds values that are not finite"
        if name in ("variances", "spreads", "sizes") and array.min() <= 0:
            return f"{PREFIX}{name} must be above 0"
        if name == "shares" and array[0] <= 0:
            return f"the first of {PREFIX}{name} must be above 0"
        if name in ("clarity", "shares") and (array.min() < 0 or array.max() > 1):
            return f"{PREFIX}{name} must lie from 0 to 1"
    return None
