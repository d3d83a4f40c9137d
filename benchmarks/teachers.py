"""Training teachers: what fits cost by number of teachers, and many in one program against one
after another.

Prints Markdown. First come whole fits by command, in one process: the same private records are
dealt out to more and more teachers. Then linear teachers are compared with scikit-learn's
LogisticRegression at its defaults, one by one on all cores of this process, and small convolutional
networks with the same networks trained one by one. `tacit` chooses between the two by
`faster_batched` for this machine. `--fits` measures fits alone, `--quick` uses few teachers, for
the tests. Needs torch.
"""

import argparse
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from timing import seconds, table, watched

from tacit.learners.common.training import Training, faster_batched, train_many
from tacit.models.networks import device, predict

CLASSES = 10


def rows(
    n_teachers: int, n: int = 200, d: int = 256, test: int = 2000, seed: int = 0
) -> tuple[list[Any], Any, Any]:
    """Parts of each teacher, and test rows and labels: clusters that overlap, like embeddings."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(CLASSES, d))

    def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, CLASSES, size)
        return (0.35 * centres[y] + rng.normal(size=(size, d))).astype(np.float32), y

    return [draw(n) for _ in range(n_teachers)], *draw(test)


def pictures(n_teachers: int, n: int = 240) -> list[Any]:
    """Parts of each teacher: images of 28 x 28 pixels, in which the place of a bright square shows
    the class.
    """
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(n_teachers):
        y = rng.integers(0, CLASSES, n)
        x = rng.integers(0, 128, (n, 1, 28, 28), dtype=np.uint8)
        for row, label in enumerate(y):
            x[row, 0, 2 * label : 2 * label + 8, 4:12] = 255
        parts.append((x, y))
    return parts


def fits(numbers: list[int], records: int, queries: int) -> None:
    """Processor time and memory of `tacit fit pate --folder`, and the files that it keeps, by
    number of teachers.
    """
    found = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _, x, y = rows(0, d=32, test=records)
        np.savez(folder / "private.npz", x=x, y=y)
        np.savez(folder / "public.npz", x=rows(0, d=32, test=queries, seed=1)[1])
        line = [
            "fit",
            "pate",
            f"{folder}/private.npz",
            "--public",
            f"{folder}/public.npz",
            "--classes",
            str(CLASSES),
        ]
        line += ["--budget", "epsilon=1,delta=1e-5", "--force", "--out", f"{folder}/student"]
        for number in numbers:
            for teacher in ("logistic-regression", "linear"):
                run = folder / f"{number}-{teacher}"
                before = processor_seconds()
                _, peak = watched(
                    [*line, "--n-teachers", str(number), "--teacher", teacher, "--folder", str(run)]
                )
                taken, kept = processor_seconds() - before, len(list((run / "teachers").iterdir()))
                size = f"{records // number}"
                found.append(
                    [
                        teacher,
                        f"{number}",
                        size,
                        f"{taken:.0f} s",
                        f"{peak / 2**20:.0f} MiB",
                        f"{kept}",
                    ]
                )
    title = (
        f"`tacit fit pate`: {records} private and {queries} public records of 32 columns, {CLASSES}"
        " classes"
    )
    header = [
        "teacher",
        "teachers",
        "records each",
        "processor time",
        "peak anonymous memory",
        "files of teachers",
    ]
    table(title, header, found)


def processor_seconds() -> float:
    """Processor time of the commands that ended; unlike time by the clock, it hardly depends on
    what else runs.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Training teachers.")
    parser.add_argument("--quick", action="store_true", help="few teachers")
    parser.add_argument("--fits", action="store_true", help="the cost of fits alone")
    given = parser.parse_args()
    few = given.quick
    n_linear, n_networks = (5, 2) if few else (250, 8)
    fits(*(([20, 40], 1_000, 200) if few else ([100, 1_000, 10_000], 100_000, 3_000)))
    if given.fits:
        return

    parts, test_x, test_y = rows(n_linear)
    one_by_one = seconds(lambda: [LogisticRegression().fit(x, y) for x, y in parts], 3)
    together = seconds(lambda: train_many("linear", parts, CLASSES, Training()), 3)
    classifiers = [LogisticRegression().fit(x, y) for x, y in parts]
    modules = train_many("linear", parts, CLASSES, Training())
    theirs = np.mean([classifier.score(test_x, test_y) for classifier in classifiers])
    ours = np.mean([np.mean(predict(module, test_x) == test_y) for module in modules])
    print(
        f"\n### {n_linear} linear teachers, 200 records of 256 columns each, {CLASSES} classes, on"
        f" {device()}\n"
    )
    print("| what | time | accuracy, mean | |\n|---|---|---|---|")
    print(
        f"| scikit-learn's LogisticRegression, one by one | {one_by_one:.2f} s | {theirs:.3f} | 1 |"
    )
    print(
        f"| linear, in one program | {together:.2f} s | {ours:.3f} | {one_by_one / together:.1f}"
        " times faster |"
    )

    training = Training(epochs=2 if few else 10)
    digits = pictures(n_networks)
    alone = seconds(lambda: train_many("cnn", digits, CLASSES, training, batched=False), 1)
    batched = seconds(lambda: train_many("cnn", digits, CLASSES, training, batched=True), 1)
    chosen = "batched" if faster_batched("cnn") else "one by one"
    print(
        f"\n### {n_networks} small convolutional teachers, 240 pictures each, {training.epochs}"
        " epochs\n"
    )
    print("| one by one | in one program | ratio | chosen here |\n|---|---|---|---|")
    print(f"| {alone:.2f} s | {batched:.2f} s | {alone / batched:.2f} | {chosen} |")

    if few:
        return
    print("\n### Growth with the number of linear teachers\n\n| teachers | time |\n|---|---|")
    for size in (25, 250, 1000):
        many = (parts * 4)[:size]
        taken = seconds(lambda many=many: train_many("linear", many, CLASSES, Training()), 1)
        print(f"| {size} | {taken:.2f} s |")


if __name__ == "__main__":
    main()
