"""Rows of the classes, drawn from the arrays of a release of `auto` alone.

All of this is post-processing of a release, so it has no privacy cost.

The model. Along the p public axes, rows of class c are

    x = g + a_c + e,    e ~ N(0, v_c + h W/p),

where g is the mean of the posterior class means, v_c (p,) the variance of the mean of class c, h
the share of variance within classes, and W the sum of the public variances. The centres a_c have
the directions of the released coefficients less their mean, and in root mean square the length of
the posterior class means about g.

Why the directions of the coefficients, and not of the means. Whoever trains a model on the rows
gets back which directions tell the classes apart. The coefficients state these: they are the
posterior means, divided by a spread within classes or moved by gradient steps. The spread is the
same along all axes, so the best linear rule for the drawn rows has the directions of the centres.
With the means as centres and the public spread about them, a model would have to find the released
coefficients as a ratio of the two, from a spread that is not that of the private rows.

Rows lie on the unit sphere, as embeddings of texts do: x has the direction of the row less the
public centre. A draw that the released decision labels as another class is replaced, up to `ROUNDS`
times. docs/synthetic-rows.md has what was measured, benchmarks/rejected.md what was not better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.models.carried import CarriedPosterior
from tacit.models.rows import Floats, unit_rows

# Draws of a row before one is kept that the release labels otherwise.
ROUNDS = 40

# Rows that are drawn at once.
BLOCK = 4096

Labels = NDArray[np.int64]

Rows = NDArray[np.float32]

Classify = Callable[[Rows], Labels]
"""Maps rows (b, d) to the positions of their classes, (b,)."""


@dataclass(frozen=True, eq=False)
class SyntheticClasses:
    """Distributions of rows: `centres` and `deviations` of the classes, both (C, p), along `axes`
    (d, p), about the public `centre` (d,).
    """

    centres: Floats
    deviations: Floats
    axes: Floats
    centre: Floats | None

    @classmethod
    def of(
        cls, known: CarriedPosterior, coefficients: Floats, centre: Floats | None
    ) -> SyntheticClasses:
        """Read the distributions off a posterior and coefficients (C, d)."""
        posterior = known.posterior
        width = len(known.variances)
        grand = posterior.mean.mean(axis=0)

        directions = (coefficients - coefficients.mean(axis=0)) @ known.axes
        length = float(np.linalg.norm(posterior.mean - grand))
        directions_length = float(np.linalg.norm(directions))
        if directions_length > 0:
            directions = directions * (length / directions_length)

        within = posterior.within * float(known.variances.sum()) / width
        deviations = np.sqrt(posterior.variance + within)
        return cls(grand + directions, deviations, known.axes, centre)

    def draw(self, labels: Labels, rng: np.random.Generator) -> Floats:
        """Draw a row of norm 1 for each label, (n, d)."""
        noise = rng.normal(size=(len(labels), self.centres.shape[1]))
        along_axes = self.centres[labels] + noise * self.deviations[labels]
        return on_sphere(unit_rows(along_axes @ self.axes.T), self.centre)


def on_sphere(directions: Floats, centre: Floats | None) -> Floats:
    """Rows of norm 1 that have these unit directions (n, d) from a centre of norm below 1.

    A row is centre + t direction, and t > 0 solves t^2 + 2 t <centre, direction> + |centre|^2 = 1.

    >>> on_sphere(np.array([[0.0, 1.0]]), np.array([0.6, 0.0]))
    array([[0.6, 0.8]])
    """
    if centre is None:
        return directions
    along = directions @ centre
    steps = np.sqrt(along**2 + 1 - centre @ centre) - along
    return np.asarray(centre + steps[:, None] * directions)


def drawn_rows(
    classes: SyntheticClasses, labels: Labels, classify: Classify, rng: np.random.Generator
) -> tuple[Rows, int]:
    """Draw rows (n, d) that the release labels with these labels, as far as `ROUNDS` draws of each
    give such; and the number of rows that it labels otherwise.
    """
    rows: Rows = np.empty((len(labels), len(classes.axes)), np.float32)
    n_unlike = 0
    for start in range(0, len(labels), BLOCK):
        block = labels[start : start + BLOCK]
        missing = np.arange(len(block))
        for _ in range(ROUNDS):
            # as they will be stored, since rounding may change the class of a row
            draws: Rows = classes.draw(block[missing], rng).astype(np.float32)
            rows[start + missing] = draws
            missing = missing[classify(draws) != block[missing]]
            if len(missing) == 0:
                break
        n_unlike += len(missing)
    return rows, n_unlike


def dealt_labels(n: int, sizes: Floats) -> Labels:
    """Deal n rows to classes in proportion to their sizes (C,), in the order of the classes.

    Numbers of rows are rounded down; those that remain go to the largest remainders, the first of
    equal ones.

    >>> dealt_labels(5, np.array([1.0, 3.0])).tolist()
    [0, 1, 1, 1, 1]
    """
    exact = n * sizes / sizes.sum()
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return np.repeat(np.arange(len(sizes)), counts)
