"""Accounting of noisy votes: time relative to a plain loop over the same formulas, growth, and
memory.

Prints Markdown. The loop evaluates the formulas vote by vote, vectorised over orders, like
published analysis code. `--quick` uses few votes, for the tests.
"""

import argparse
import math
import resource

import numpy as np
from scipy.special import log_ndtr
from timing import seconds

import tacit

SIGMA, SIGMA1, THRESHOLD = 40.0, 150.0, 200.0
ORDERS = 1 + np.geomspace(0.02, 5000, 100)


def votes(n: int) -> np.ndarray:
    """Votes of 250 teachers on 10 classes, with varying agreement."""
    rng = np.random.default_rng(0)
    return rng.multinomial(250, rng.dirichlet(np.full(10, 0.15), n))


def label_cost(counts: np.ndarray) -> np.ndarray:
    """The data-dependent privacy cost of one label at all orders, step by step."""
    independent = ORDERS / SIGMA**2
    top = int(np.argmax(counts))
    leads = counts[top] - np.delete(counts, top)
    log_q = np.logaddexp.reduce(log_ndtr(-leads / (math.sqrt(2) * SIGMA)))
    log_q = min(log_q, math.log1p(-1 / len(counts)))
    mu2 = SIGMA * math.sqrt(-log_q)
    mu1 = mu2 + 1
    e1, e2 = mu1 / SIGMA**2, mu2 / SIGMA**2
    if (
        mu2 <= 1
        or -log_q <= e2
        or log_q > (mu2 - 1) * e2 - mu2 * (math.log(mu1 / (mu1 - 1)) + math.log(mu2 / (mu2 - 1)))
    ):
        return independent
    q = math.exp(log_q)
    log_a = math.log1p(-q) - math.log1p(-math.exp((log_q + e2) * (mu2 - 1) / mu2))
    log_b = e1 - log_q / (mu1 - 1)
    total = np.logaddexp(math.log1p(-q) + (ORDERS - 1) * log_a, log_q + (ORDERS - 1) * log_b)
    return np.where(mu1 >= ORDERS, np.minimum(total / (ORDERS - 1), independent), independent)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Accounting of noisy votes.")
    parser.add_argument("--quick", action="store_true", help="few votes")
    few = parser.parse_args().quick
    n, most = (300, 3_000) if few else (10_000, 1_000_000)
    counts = votes(n)

    def one_by_one() -> np.ndarray:
        return np.sum([label_cost(row) for row in counts], axis=0)

    def at_once(**given: object) -> np.ndarray:
        return tacit.pate.rdp(counts, sigma=SIGMA, orders=ORDERS, **given)

    slow, fast = seconds(one_by_one, 3), seconds(at_once)
    both = seconds(lambda: at_once(aggregator="confident", sigma1=SIGMA1, threshold=THRESHOLD))
    worst = float(np.max(np.abs(at_once() / one_by_one() - 1)))
    print(f"### Accounting of {n} votes at {len(ORDERS)} orders (250 teachers, 10 classes)\n")
    print("| what | time | over a plain loop |\n|---|---|---|")
    print(f"| plain loop, GNMax | {slow:.3f} s | 1 |")
    print(
        f"| `tacit.pate.rdp`, GNMax (largest difference {worst:.0e}) | {fast:.3f} s |"
        f" {slow / fast:.0f} times faster |"
    )
    print(f"| `tacit.pate.rdp`, Confident | {both:.3f} s | |")
    print(
        "\n### Growth with the number of votes\n\n| votes | time | memory beyond the votes, at most"
        " |\n|---|---|---|"
    )
    for size in (most // 100, most // 10, most):
        counts = votes(size)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        taken = seconds(lambda counts=counts: tacit.pate.rdp(counts, sigma=SIGMA, orders=ORDERS), 1)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"| {size} | {taken:.2f} s | {more:.0f} MiB |")


if __name__ == "__main__":
    main()
