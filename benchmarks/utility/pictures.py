"""`auto` and its rivals on Fashion-MNIST and MNIST, encoded as the stored pictures are.

python benchmarks/utility/pictures.py EMBEDDINGS --data DATA --out FOLDER [--workers 2]

DATA has fashion_mnist.npz, mnist.npz and mobilenetv2_in1k_160.onnx. 10,000 and 2,500 pictures of
each are encoded, which takes ten minutes. The private records are those of one data set, or of both
as 20 classes, at several imbalances, budgets and pools of public rows: some held back, or Tiny
ImageNet. FOLDER gets a file for each cell, so that an interrupted run resumes, and pictures.md: the
tables of `rivals.py`. Noise is `research`, since nothing is released.
"""

import argparse
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from problems import IMAGES, TINY, Problem, read
from rivals import accuracies, report
from routes import resumed_results

import tacit
from tacit.cli.main import main as command
from tacit.compute.atomic import atomic_file
from tacit.data.imbalance import imbalanced_subset

SIDECAR = Path(__file__).resolve().parents[2] / "examples" / "mobilenetv2_in1k_160.json"

# pictures of each split that are encoded
NAMES = ("fashion_mnist", "mnist")
ROWS = {"train": 10_000, "test": 2_500}

# the axes of the cells: private data sets, kind and number of public rows, imbalance, rough epsilon
SETS = (("fashion_mnist",), ("mnist",), NAMES)
POOLS = (("own", 1_000), ("own", 1_500), ("foreign", 1_000), ("foreign", 30_000))
RATIOS = (1, 10, 100)
EPSILONS = (0.1, 0.5, 2.0)
CELLS = list(itertools.product(SETS, POOLS, RATIOS, EPSILONS))

# random stream of the public rows
STREAM = 7


def encode(embeddings: Path, data: Path, out: Path) -> None:
    """Write the stores that are missing."""
    for name, (split, n_pictures) in itertools.product(NAMES, ROWS.items()):
        store = out / name / split
        if store.exists():
            continue

        store.parent.mkdir(exist_ok=True)
        pixels = out / f"{name}_{split}.npz"
        with np.load(data / f"{name}.npz") as arrays:
            x = arrays[f"{split}_x"][:n_pictures]
            y = arrays[f"{split}_y"][:n_pictures]
        np.savez(pixels, x=x, y=y)

        words = ["encode", pixels, "--mirror", "--classes", 10, "--out", store]
        words += ["--encoder", f"onnx:{data / 'mobilenetv2_in1k_160.onnx'}"]
        words += ["--sidecar", SIDECAR]
        words += ["--projection", embeddings / IMAGES / "public_svd256_basis.npy"]
        if command(list(map(str, words))):
            raise SystemExit(f"{pixels} could not be encoded")


def rows_of(
    out: Path, names: tuple[str, ...], split: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the rows of these data sets, and labels that tell their classes apart."""
    rows = []
    labels = []
    for position, name in enumerate(names):
        store = tacit.EmbeddingStore.open(out / name / split)
        rows.append(np.asarray(store.x))
        labels.append(np.asarray(store.y) + 10 * position)
    return np.concatenate(rows), np.concatenate(labels)


def problem(embeddings: Path, out: Path, number: int) -> tuple[Problem, float]:
    """Return the records of a cell, and its rough epsilon."""
    names, pool, ratio, rough_epsilon = CELLS[number]
    x, y = rows_of(out, names, "train")
    test_x, test_y = rows_of(out, names, "test")

    # the first cell with these data sets and public rows, so that all of them hold back the same
    first_cell = CELLS.index((names, pool, RATIOS[0], EPSILONS[0]))
    rng = np.random.default_rng([STREAM, first_cell])
    order = rng.permutation(len(x))
    kind, n_public = pool
    if kind == "own":
        public = x[order[:n_public]]
        order = order[n_public:]
    else:
        foreign, _ = read(embeddings, TINY, "train")
        public = foreign[rng.permutation(len(foreign))[:n_public]]

    x = x[order]
    y = y[order]
    rows = imbalanced_subset(y, ratio, number)
    return Problem(x[rows], y[rows], test_x, test_y, public, 10 * len(names)), rough_epsilon


def work(embeddings: Path, number: int, *, stores: Path) -> dict[str, Any]:
    """Return facts of a cell, and each method's accuracies."""
    return accuracies(*problem(embeddings, stores, number))


def main() -> None:
    """Read the command line, encode, compute the missing cells, and write the tables."""
    parser = argparse.ArgumentParser(description="auto and its rivals on Fashion-MNIST and MNIST.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the pictures and the encoder"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    encode(arguments.embeddings, arguments.data, out)
    problems = resumed_results(
        partial(work, stores=out),
        arguments.embeddings,
        out / "cells",
        range(len(CELLS)),
        arguments.workers,
    )
    with atomic_file(out / "pictures.md", force=True) as part:
        part.write_text("\n".join(report(problems)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
