"""AutoPrototypes: time of its fits and of its gradient steps.

Fits are compared with those of scikit-learn's logistic regression, steps with their matrix
products.

python benchmarks/auto.py [--quick]

Prints Markdown. A step multiplies the n x d rows with the C x d head, and the n x C residuals with
the rows. The ceiling is the speed of these two products in float64 by numpy, in the same run. Each
time is the shortest of several.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from sklearn.linear_model import LogisticRegression
from timing import table

import tacit
from tacit.compute.progress import reporting
from tacit.learners.prototypes.refinement import STEPS
from tacit.mechanisms.noise import noise_source
from tacit.mechanisms.outer_products import UNIT

BUDGET = "rho=0.5"
ITERATIONS = STEPS

# private rows, public rows, columns, classes
FIT_SIZES = [(50_000, 30_000, 256, 100), (50_000, 30_000, 1280, 100)]
QUICK_FIT_SIZES = [(600, 500, 16, 3)]
GROWTH_SIZES = (10_000, 4_000, 128, 20)
QUICK_GROWTH_SIZES = (300, 200, 8, 3)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small arrays, for the tests")
    if parser.parse_args().quick:
        fits(QUICK_FIT_SIZES)
        growth(*QUICK_GROWTH_SIZES)
    else:
        fits(FIT_SIZES)
        growth(*GROWTH_SIZES)


def fits(sizes: list[tuple[int, int, int, int]]) -> None:
    """Time complete fits and single steps."""
    rows = []
    for n, m, d, n_classes in sizes:
        x, y = overlapping(n, d, n_classes)
        public = public_rows(m, d)
        peer = peer_seconds(x, y)
        for noise in ("research", "secure"):
            before = product_seconds(n, d, n_classes)
            fit, step = fit_seconds(x, y, public, n_classes, noise)
            products = min(before, product_seconds(n, d, n_classes))
            noise_of_step = noise_seconds(d, n_classes, noise)
            rows.append(
                [
                    f"{n} x {d}, {noise}",
                    f"{fit:.1f} s",
                    f"{fit / peer:.2f}",
                    f"{step * 1e3:.0f} ms",
                    f"{noise_of_step * 1e3:.1f} ms",
                    f"{products / step:.0%}",
                ]
            )
    header = [
        "rows, noise",
        "fit",
        f"over LogisticRegression, {ITERATIONS} iterations",
        "a step",
        "of it noise",
        "share of the products' ceiling",
    ]
    _, m, _, n_classes = sizes[0]
    table(f"Fits of auto ({n_classes} classes, {m} public rows)", header, rows)


def fit_seconds(
    x: np.ndarray, y: np.ndarray, public: np.ndarray, n_classes: int, noise: str
) -> tuple[float, float]:
    """Return the seconds of a fit, the shorter of two, and of its shortest step."""
    seed = 0 if noise == "research" else None
    learner = tacit.AutoPrototypes(
        BUDGET, public=public, classes=n_classes, noise=noise, random_state=seed
    )
    ends: list[float] = []

    def note_end(label: str, done: int, total: int) -> None:
        """Note the end of a step, which reports progress then."""
        if label == "gradient steps":
            ends.append(time.perf_counter())

    with reporting(note_end):
        fit = shortest_seconds(lambda: learner.fit(x, y))
    if not learner.refined_:
        raise SystemExit(
            f"auto took no gradient steps from {x.shape[0]} rows; pass more rows or a larger budget"
        )
    step = min(later - earlier for earlier, later in pairwise(ends))
    return fit, step


def peer_seconds(x: np.ndarray, y: np.ndarray) -> float:
    """Return the seconds of as many iterations of LogisticRegression as auto takes steps."""
    peer = LogisticRegression(max_iter=ITERATIONS, C=1e3, tol=1e-12)
    rows = unit_rows(x)
    with warnings.catch_warnings():
        # it warns that it has not converged
        warnings.simplefilter("ignore")
        fit = shortest_seconds(lambda: peer.fit(rows, y))
    return fit * ITERATIONS / peer.n_iter_[0]


def product_seconds(n: int, d: int, n_classes: int) -> float:
    """Return the seconds of the two products of a step."""
    rows = np.ones((n, d))
    head = np.ones((n_classes, d))
    residuals = np.ones((n, n_classes))
    return shortest_seconds(lambda: (rows @ head.T, residuals.T @ rows), STEPS // 2)


def noise_seconds(d: int, n_classes: int, noise: str) -> float:
    """Return the seconds of the noise of a step."""
    source = noise_source(noise)
    values = np.zeros((n_classes, d), dtype=np.int64)
    return shortest_seconds(lambda: source.gaussian(values, float(UNIT)), 3)


def growth(n: int, m: int, d: int, n_classes: int) -> None:
    """Print the time of a fit at four times one size over the time at that size.

    A ratio of 4 means proportional, 1 means no growth.
    """
    sizes = {"n": n, "m": m, "d": d, "C": n_classes}
    rows = []
    for noise in ("research", "secure"):
        base = seconds_at(noise, **sizes)
        row = [noise, f"{base:.2f} s"]
        for name, size in sizes.items():
            larger = sizes | {name: 4 * size}
            row.append(f"{seconds_at(noise, **larger) / base:.1f}")
        rows.append(row)
    title = (
        f"Growth of a fit of auto: time ratio at four times the size, from n={n}, m={m}, d={d},"
        f" C={n_classes}"
    )
    table(title, ["noise", "fit", *(f"4 {name}" for name in sizes)], rows)


def seconds_at(noise: str, n: int, m: int, d: int, C: int) -> float:
    """Return the seconds of a fit at these sizes, with gradient steps."""
    x, y = overlapping(n, d, C)
    fit, _ = fit_seconds(x, y, public_rows(m, d), C, noise)
    return fit


def overlapping(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows around class centres, in float16 as in a store.

    Centres are as far apart as a row is from its centre.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    centres = rng.normal(size=(n_classes, d))
    x = centres[y] + rng.standard_normal((n, d), dtype=np.float32)
    return x.astype(np.float16), y


def public_rows(m: int, d: int) -> np.ndarray:
    """Return rows about no class in particular."""
    return np.random.default_rng(1).normal(size=(m, d)).astype(np.float16)


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Return unit rows in float64, as auto learns from them."""
    wide = x.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def shortest_seconds(work: Callable[[], object], runs: int = 2) -> float:
    """Return the shortest time of a call."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
