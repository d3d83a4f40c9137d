"""Randomizing labels: time relative to drawing as many 64-bit random integers with numpy, growth, and memory.

Prints Markdown. 10,000,000 labels, 1,000 classes, 200 priors. `--quick` uses few labels, for the tests.
"""

import argparse
import resource

import numpy as np
from timing import seconds

from tacit.learners.label_dp.randomizers import RR, RRWithPrior
from tacit.mechanisms.noise import NoiseSource, ResearchNoise, SecureNoise

CLASSES, PRIORS = 1000, 200


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Randomizing labels.")
    parser.add_argument("--quick", action="store_true", help="few labels")
    most = 20_000 if parser.parse_args().quick else 10_000_000
    rng = np.random.default_rng(0)
    randomizer = RRWithPrior(1.0, rng.dirichlet(np.full(CLASSES, 0.05), PRIORS))
    plain = RR(1.0, CLASSES)
    sources: dict[str, NoiseSource] = {"research": ResearchNoise(0), "secure": SecureNoise()}

    labels, which = rng.integers(0, CLASSES, most), rng.integers(0, PRIORS, most)
    drawing = seconds(lambda: rng.integers(0, 2**64, most, dtype=np.uint64), 3)
    print(f"### {most} labels of {CLASSES} classes\n")
    print("| what | time | over drawing integers |\n|---|---|---|")
    print(f"| numpy draws as many 64-bit integers | {drawing:.3f} s | 1 |")
    for name, source in sources.items():
        one = seconds(lambda source=source: plain.sample(labels, source), 3)
        many = seconds(lambda source=source: randomizer.sample(labels, source, which), 3)
        print(f"| randomized response, {name} noise | {one:.3f} s | {one / drawing:.1f} |")
        print(f"| with {PRIORS} priors, {name} noise | {many:.3f} s | {many / drawing:.1f} |")

    print("\n### Growth with the number of labels (200 priors, secure noise)\n")
    print("| labels | time | memory beyond labels and answers, at most |\n|---|---|---|")
    for size in (most // 100, most // 10, most):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        taken = seconds(lambda size=size: randomizer.sample(labels[:size], sources["secure"], which[:size]), 1)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"| {size} | {taken:.3f} s | {more:.0f} MiB |")


if __name__ == "__main__":
    main()
