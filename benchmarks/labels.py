"""Randomizing labels: time relative to drawing as many 64-bit random integers with numpy, growth,
and memory.

Prints Markdown. 10,000,000 labels, 1,000 classes, 200 priors; and answers with blocks of 150
classes, 100,000 labels with a prior each, also as whole calls of `tacit.label_dp.randomize`.
`--quick` uses few labels, for the tests.
"""

import argparse
import resource

import numpy as np
from timing import processor_seconds, seconds

import tacit
from tacit.compute.threads import thread_count
from tacit.learners.label_dp.blocks import Blocks
from tacit.learners.label_dp.randomizers import RR, RRWithPrior
from tacit.mechanisms.noise import NoiseSource, ResearchNoise, SecureNoise

CLASSES, PRIORS = 1000, 200
OF_BLOCKS = 150  # classes
# deviation of the log probabilities of surer priors: most of the mass on one or two classes
SURER = 6.0
RUN = 1 << 15  # labels that a stream takes at a time


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
        before = peak()
        taken = seconds(
            lambda size=size: randomizer.sample(labels[:size], sources["secure"], which[:size]), 1
        )
        print(f"| {size} | {taken:.3f} s | {peak() - before:.0f} MiB |")
    blocks(rng, most // 100)


def blocks(rng: np.random.Generator, most: int) -> None:
    """Answers with blocks, by a prior for each label: first streamed, then with all priors in
    memory.
    """
    labels, noise = rng.integers(0, OF_BLOCKS, most), SecureNoise()
    print(
        f"\n### Blocks of {OF_BLOCKS} classes, a prior for each label, streamed {RUN} labels at a"
        " time\n"
    )
    print("| labels | time | memory beyond labels, at most |\n|---|---|---|")
    Blocks(1.0, priors(rng, RUN))  # compiles
    for size in (most // 10, most):
        before, taken = peak(), 0.0
        for start in range(0, size, RUN):
            part = labels[start : min(start + RUN, size)]
            rows, each = priors(rng, len(part)), np.arange(len(part))
            taken += seconds(
                lambda rows=rows, part=part, each=each: Blocks(1.0, rows).sample(part, noise, each),
                1,
            )
        print(f"| {size} | {taken:.3f} s | {peak() - before:.0f} MiB |")

    rows, each, plain = priors(rng, most), np.arange(most), RR(1.0, OF_BLOCKS)
    one = processor_seconds(lambda: plain.sample(labels, noise), 5)
    print(f"\n### {most} labels of {OF_BLOCKS} classes, secure noise\n")
    print("| what | processor time | over plain randomized response |\n|---|---|---|")
    print(f"| plain randomized response | {one:.3f} s | 1 |")
    for name, call in {
        "its random words, from the operating system": lambda: noise.words(most),
        "to read every probability: numpy adds up the rows": lambda: rows.sum(axis=1),
        "to write as many blocks: numpy fills an array": lambda: np.full(
            rows.shape, 1, dtype=np.uint8
        ),
    }.items():
        taken = processor_seconds(call, 3)
        print(f"| {name} | {taken:.3f} s | {taken / one:.1f} |")
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        taken = processor_seconds(
            lambda epsilon=epsilon: Blocks(epsilon, rows).sample(labels, noise, each), 3
        )
        print(
            f"| partitions and answers, epsilon {epsilon:g} | {taken:.3f} s | {taken / one:.1f} |"
        )
    chosen = Blocks(1.0, rows)
    for name, call in {
        "answers alone": lambda: chosen.sample(labels, noise, each),
        "log likelihoods": lambda: chosen.log_likelihood(labels % 2, each),
    }.items():
        taken = processor_seconds(call, 3)
        print(f"| {name}, epsilon 1 | {taken:.3f} s | {taken / one:.1f} |")
    whole_calls(labels, rows)


def whole_calls(labels: np.ndarray, rows: np.ndarray) -> None:
    """What a user waits for: `tacit.label_dp.randomize` with a prior for each label, against
    randomized response.
    """
    print(
        f"\n### `tacit.label_dp.randomize` of {len(labels)} labels, wall time, {thread_count()}"
        " cores\n"
    )
    print(
        "| epsilon | `rr` | `blocks` with a prior for each label | multiple | with surer priors |"
        " multiple |"
    )
    print("|---|---|---|---|---|---|")
    surer = priors(np.random.default_rng(1), len(labels), SURER)
    for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0, 8.0):
        asked = {"budget": f"epsilon={epsilon:g}", "classes": range(OF_BLOCKS)}
        one, usual, sure = (
            seconds(
                lambda asked=asked, more=more: tacit.label_dp.randomize(labels, **asked, **more), 5
            )
            for more in (
                {"randomizer": "rr"},
                *({"randomizer": "blocks", "prior": table} for table in (rows, surer)),
            )
        )
        print(
            f"| {epsilon:g} | {one:.3f} s | {usual:.3f} s | {usual / one:.1f} | {sure:.3f} s |"
            f" {sure / one:.1f} |"
        )


def priors(rng: np.random.Generator, count: int, deviation: float = 1.5) -> np.ndarray:
    """Probabilities as of scores by class names: softmax of 10 times a cosine; of shape (count,
    OF_BLOCKS), float32.
    """
    scores = np.exp(
        rng.standard_normal((count, OF_BLOCKS), dtype=np.float32) * np.float32(deviation)
    )
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def peak() -> float:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
