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
from routes import measured

import tacit
from tacit.cli.main import main as command
from tacit.compute.atomic import atomic_file
from tacit.data.imbalance import imbalanced_subset

SIDECAR = Path(__file__).resolve().parents[2] / "examples" / "mobilenetv2_in1k_160.json"
SETS = (("fashion_mnist",), ("mnist",), ("fashion_mnist", "mnist"))
ROWS = {"train": 10_000, "test": 2_500}
POOLS = (("own", 1_000), ("own", 1_500), ("foreign", 1_000), ("foreign", 30_000))  # public rows
RATIOS, EPSILONS = (1, 10, 100), (0.1, 0.5, 2.0)
CELLS = list(itertools.product(SETS, POOLS, RATIOS, EPSILONS))


def encode(embeddings: Path, data: Path, out: Path) -> None:
    """Write the stores that are missing."""
    for (name,), (split, count) in itertools.product(SETS[:2], ROWS.items()):
        if (out / name / split).exists():
            continue
        (out / name).mkdir(exist_ok=True)
        pixels = out / f"{name}_{split}.npz"
        with np.load(data / f"{name}.npz") as arrays:
            np.savez(pixels, x=arrays[f"{split}_x"][:count], y=arrays[f"{split}_y"][:count])
        given = {
            "encoder": f"onnx:{data / 'mobilenetv2_in1k_160.onnx'}",
            "sidecar": SIDECAR,
            "projection": embeddings / IMAGES / "public_svd256_basis.npy",
            "classes": 10,
            "out": out / name / split,
        }
        options = [str(word) for option, value in given.items() for word in (f"--{option}", value)]
        if command(["encode", str(pixels), "--mirror", *options]):
            raise SystemExit(f"{pixels} could not be encoded")


def rows_of(
    out: Path, names: tuple[str, ...], split: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows of these data sets, and labels that tell their classes apart."""
    stores = [tacit.EmbeddingStore.open(out / name / split) for name in names]
    labels = [np.asarray(store.y) + 10 * number for number, store in enumerate(stores)]
    return np.concatenate([np.asarray(store.x) for store in stores]), np.concatenate(labels)


def problem(embeddings: Path, out: Path, number: int) -> tuple[Problem, float]:
    """A cell: its records, and its rough epsilon."""
    names, (kind, count), ratio, rough = CELLS[number]
    (x, y), (test_x, test_y) = rows_of(out, names, "train"), rows_of(out, names, "test")
    rng = np.random.default_rng([7, CELLS.index((names, (kind, count), RATIOS[0], EPSILONS[0]))])
    order = rng.permutation(len(x))
    if kind == "own":
        public, order = x[order[:count]], order[count:]
    else:
        pool = read(embeddings, TINY, "train")[0]
        public = pool[rng.permutation(len(pool))[:count]]
    x, y = x[order], y[order]
    kept = imbalanced_subset(y, ratio, number)
    return Problem(x[kept], y[kept], test_x, test_y, public, 10 * len(names)), rough


def work(embeddings: Path, number: int, *, stores: Path) -> dict[str, Any]:
    """Facts of a cell, and each method's accuracies."""
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
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    encode(given.embeddings, given.data, given.out)
    of_cell = partial(work, stores=given.out)
    found = measured(
        of_cell, given.embeddings, given.out / "cells", range(len(CELLS)), given.workers
    )
    with atomic_file(given.out / "pictures.md", force=True) as part:
        part.write_text("\n".join(report(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
