"""Labels that spread over the graph of nearest neighbours [Zhou et al. 2004]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.learners.common.models import as_rows

NEIGHBOURS = 10
FROM_NEIGHBOURS = 0.9  # share of a label that comes from neighbours; the rest is the released label
COMPONENTS = 50


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Which records are among the nearest of which, in their principal components: a sparse (n, n)
    graph of 0 and 1.
    """

    graph: Any

    @classmethod
    def of(cls, records: NDArray[Any]) -> Self:
        """The graph of records, each of which counts among its own nearest."""
        from sklearn.decomposition import PCA
        from sklearn.neighbors import kneighbors_graph

        rows = as_rows(records).astype(np.float32)
        components = min(COMPONENTS, *rows.shape)
        features = PCA(components, svd_solver="covariance_eigh").fit_transform(rows)
        return cls(kneighbors_graph(features, min(NEIGHBOURS, len(rows)), include_self=True))

    def spread(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The label of each record, of shape (n,), given some; -1 where there is none, and where
        none arrives.
        """
        from sklearn.semi_supervised import LabelSpreading

        spreading = LabelSpreading(
            kernel=lambda *_: self.graph, alpha=FROM_NEIGHBOURS, max_iter=200
        )
        spreading.fit(np.zeros((len(labels), 1)), labels)
        return np.where(spreading.label_distributions_.any(axis=1), spreading.transduction_, -1)
