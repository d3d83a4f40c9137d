"""A central noisy sum of all records, with the noise of one or of many summaries."""

import numpy as np
from numpy.typing import NDArray

import tacit


def central_sum(
    x: NDArray[np.generic],
    y: NDArray[np.generic],
    public: NDArray[np.generic],
    *,
    n_classes: int,
    budget: tacit.Budget,
    n_noises: int,
    seed: int,
) -> tacit.AutoPrototypes:
    """Fit `auto` without gradient steps to sums with the noise of so many summaries, each of which
    costs the budget.
    """
    multiplier = budget.gaussian()
    learner = tacit.AutoPrototypes(
        tacit.Budget.zcdp(1 / (2 * n_noises * multiplier**2)),
        classes=n_classes,
        public=public,
        refine=False,
        noise="research",
        random_state=seed,
    )
    return learner.fit(x, y)
