"""Records labelled with an inner node of a tree: their gradients, and the sums of nodes.

Let v be a node, L the leaves below it, p the softmax of a record, and P the sum of p over L. A
record labelled v may be of any class in L, so its loss is -log P, with the gradient p - q in the
logits, where q is p restricted to L and divided by P. For a leaf, q is one-hot.

Unit: that of the gradients, counts or sums.

Norm of a gradient. Entries of p - q outside of L are those of p, which add up to 1 - P. An entry in
L is -p_j (1 - P)/P, and these add up to -(1 - P). The sum of squares of numbers of one sign is at
most the square of their sum, so

    |p - q|^2 <= 2 (1 - P)^2 <= 2,

which is the bound of records labelled with a leaf: the same clip applies.

Theorem (changed labels): a record's label decides q alone, which stays in the simplex, so the
gradient moves by |q - q'| <= sqrt(2), as between two leaves.

Counts and sums. Each inner node has a count or sum of its own beside those of the leaves, and a
record adds to that of its label alone. So these are sums of C + V classes, with the event and the
sensitivity of sums of classes, for records and for persons. What is made of them is
post-processing.

Source: the marginal likelihood of a set of labels is that of partial labels (Jin and Ghahramani
2002, "Learning with multiple labels").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.trees import Tree
from tacit.learners.common.softmax import Residuals
from tacit.models.rows import Floats

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """The labels that a record may have, numbered: the C leaves, then the V inner nodes.

    Parameters
    ----------
    labels : array of shape (C + V,)
    starts, leaves : int arrays of shapes (V + 1,) and (any,)
        `leaves[starts[v] : starts[v + 1]]` are the leaves below inner node v.
    """

    labels: NDArray[Any]
    starts: Integers
    leaves: Integers

    @classmethod
    def of(cls, tree: Tree, classes: NDArray[Any]) -> Nodes:
        """Return the nodes of a tree over its leaves."""
        names = classes.tolist()
        tree = tree.over(names)
        below: dict[Any, list[int]] = {}
        for position, name in enumerate(names):
            for node in tree.path(name)[:-1]:
                below.setdefault(node, []).append(position)

        ends = np.cumsum([len(leaves) for leaves in below.values()])
        return cls(
            labels=np.array([*names, *below]),
            starts=np.append(0, ends).astype(np.int64),
            leaves=np.concatenate(list(below.values())).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_inner(self) -> int:
        """Number of inner nodes, V."""
        return len(self.starts) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves, C."""
        return len(self.labels) - self.n_inner

    def below(self, inner: int) -> Integers:
        """Return the leaves below an inner node."""
        return self.leaves[self.starts[inner] : self.starts[inner + 1]]

    def counts_of_leaves(self, counts: Floats, uncertainty: float) -> Floats:
        """Return the number of records of each leaf, (C,), from noisy counts of nodes (C + V,).

        The records of an inner node are divided among its leaves by their counts, raised by
        `uncertainty`.
        """
        own = counts[: self.n_leaves]
        weights = np.maximum(own, 0.0) + uncertainty
        result = own.copy()
        for inner in range(self.n_inner):
            leaves = self.below(inner)
            shares = weights[leaves] / weights[leaves].sum()
            result[leaves] += counts[self.n_leaves + inner] * shares
        return result

    def sums_of_leaves(self, sums: Floats, noise: float) -> Floats:
        """Return the sum of each leaf, (C, d), from noisy sums of nodes (C + V, d).

        The sum of an inner node is divided equally among its leaves, after it is shrunk by the
        share of its squared length that noise of standard deviation `noise` leaves to its records
        (the estimator of James and Stein), so that nodes without records add next to nothing.
        """
        result = sums[: self.n_leaves].copy()
        for inner in range(self.n_inner):
            total = sums[self.n_leaves + inner]
            energy = float(total @ total)
            if energy == 0:
                continue
            signal = max(1 - len(total) * noise**2 / energy, 0.0)
            leaves = self.below(inner)
            result[leaves] += signal * total / len(leaves)
        return result


def sums_of_leaves(sums: Floats, nodes: Nodes | None, noise: float) -> Floats:
    """Return the sum of each leaf, (C, d), from noisy sums of all labels that a record may have."""
    if nodes is None:
        return sums
    return nodes.sums_of_leaves(sums, noise)


@dataclass(frozen=True)
class NodeResiduals(Residuals):
    """Residuals of records that may be labelled with an inner node: p - q of the module's text."""

    nodes: Nodes

    def _subtract(self, weights: Floats) -> None:
        from tacit.mechanisms.kernels import shares_less_node

        shares_less_node(weights, self.labels, self.nodes.starts, self.nodes.leaves)
