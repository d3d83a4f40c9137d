"""AutoPrototypes: its fits over those of scikit-learn's logistic regression, and its steps over
their matrix products.

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

BUDGET, ITERATIONS = "rho=0.5", STEPS


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small arrays, for the tests")
    quick = parser.parse_args().quick
    shapes = (
        [(600, 500, 16, 3)] if quick else [(50_000, 30_000, 256, 100), (50_000, 30_000, 1280, 100)]
    )
    fits(shapes)
    growth(*((300, 200, 8, 3) if quick else (10_000, 4_000, 128, 20)))


def fits(shapes: list[tuple[int, int, int, int]]) -> None:
    """Time complete fits and single steps."""
    rows = []
    for n, m, d, n_classes in shapes:
        (x, y), public = overlapping(n, d, n_classes), public_rows(m, d)
        peer = of_peer(x, y)
        for noise in ("research", "secure"):
            before = of_products(n, d, n_classes)
            fit, step = of_fit(x, y, public, n_classes, noise)
            products = min(before, of_products(n, d, n_classes))
            drawn = of_noise(d, n_classes, noise)
            rows.append(
                [
                    f"{n} x {d}, {noise}",
                    f"{fit:.1f} s",
                    f"{fit / peer:.2f}",
                    f"{step * 1e3:.0f} ms",
                    f"{drawn * 1e3:.1f} ms",
                    f"{products / step:.0%}",
                ]
            )
    header = [
        "rows, noise",
        "fit",
        f"over LogisticRegression, {ITERATIONS} iterations",
        "a step",
        "of it noise",
    ]
    header.append("share of the products' ceiling")
    table(f"Fits of auto ({shapes[0][3]} classes, {shapes[0][1]} public rows)", header, rows)


def of_fit(
    x: np.ndarray, y: np.ndarray, public: np.ndarray, n_classes: int, noise: str
) -> tuple[float, float]:
    """Seconds of a fit, the shorter of two, and of its shortest step."""
    seed = 0 if noise == "research" else None
    learner = tacit.AutoPrototypes(
        BUDGET, public=public, classes=n_classes, noise=noise, random_state=seed
    )
    ends: list[float] = []

    def reported(label: str, done: int, total: int) -> None:
        if label == "gradient steps":
            ends.append(time.perf_counter())

    with reporting(reported):
        fit = seconds(lambda: learner.fit(x, y))
    if not learner.refined_:
        raise SystemExit(
            f"auto took no gradient steps from {x.shape[0]} rows; pass more rows or a larger budget"
        )
    return fit, min(later - end for end, later in pairwise(ends))


def of_peer(x: np.ndarray, y: np.ndarray) -> float:
    """Seconds of as many iterations of scikit-learn's logistic regression as auto takes steps."""
    peer, rows = LogisticRegression(max_iter=ITERATIONS, C=1e3, tol=1e-12), unit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        time_of_fit = seconds(lambda: peer.fit(rows, y))
    return time_of_fit * ITERATIONS / peer.n_iter_[0]


def of_products(n: int, d: int, n_classes: int) -> float:
    """Seconds of the two products of a step."""
    rows, head, residuals = np.ones((n, d)), np.ones((n_classes, d)), np.ones((n, n_classes))
    return seconds(lambda: (rows @ head.T, residuals.T @ rows), STEPS // 2)


def of_noise(d: int, n_classes: int, noise: str) -> float:
    """Seconds of the noise of a step."""
    source, values = noise_source(noise), np.zeros((n_classes, d), dtype=np.int64)
    return seconds(lambda: source.gaussian(values, float(UNIT)), 3)


def growth(n: int, m: int, d: int, n_classes: int) -> None:
    """Time of a fit at four times one size over time at that size: 4 means proportional, 1 means no
    growth.
    """
    sizes = {"n": n, "m": m, "d": d, "C": n_classes}
    rows = []
    for noise in ("research", "secure"):
        base = of_size(noise, **sizes)
        grown = (of_size(noise, **(sizes | {key: 4 * size})) for key, size in sizes.items())
        rows.append([noise, f"{base:.2f} s", *(f"{fit / base:.1f}" for fit in grown)])
    title = (
        f"Growth of a fit of auto: time ratio at four times the size, from n={n}, m={m}, d={d},"
        f" C={n_classes}"
    )
    table(title, ["noise", "fit", *(f"4 {key}" for key in sizes)], rows)


def of_size(noise: str, n: int, m: int, d: int, C: int) -> float:
    """Seconds of a fit at these sizes, with gradient steps."""
    x, y = overlapping(n, d, C)
    return of_fit(x, y, public_rows(m, d), C, noise)[0]


def overlapping(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows around class centres, as far apart as a row is from its centre, in float16 as in a
    store.
    """
    rng = np.random.default_rng(0)
    y, centres = rng.integers(0, n_classes, n), rng.normal(size=(n_classes, d))
    return (centres[y] + rng.standard_normal((n, d), dtype=np.float32)).astype(np.float16), y


def public_rows(m: int, d: int) -> np.ndarray:
    """Rows about no class in particular."""
    return np.random.default_rng(1).normal(size=(m, d)).astype(np.float16)


def unit(x: np.ndarray) -> np.ndarray:
    """Unit rows in float64, as auto sees them."""
    wide = x.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def seconds(work: Callable[[], object], runs: int = 2) -> float:
    """The shortest time of a call."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
