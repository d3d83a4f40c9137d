"""The problems of the table: real embeddings as private data, made imbalanced, and public rows of the same encoder."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.imbalance import imbalanced_subset

IMAGES, TEXT = "mobilenetv2-in1k-160", "all-minilm-l6-v2"
PUBLIC_ROWS = 30_000
RATIOS = {"cifar10": (1, 10, 50, 100), "cifar100": (1, 10, 50, 100), "banking77": (1, 10)}
PRIVATE = {"cifar10": f"{IMAGES}/cifar10", "cifar100": f"{IMAGES}/cifar100", "banking77": f"{TEXT}/banking77"}
PUBLIC = {
    "cifar10": (f"{IMAGES}/tiny_imagenet",),
    "cifar100": (f"{IMAGES}/tiny_imagenet",),
    "banking77": (f"{TEXT}/agnews", f"{TEXT}/sst2"),
}


@dataclass(frozen=True)
class Problem:
    """Private rows, test rows and public rows."""

    x: NDArray[np.float16]
    y: NDArray[np.int64]
    test_x: NDArray[np.float16]
    test_y: NDArray[np.int64]
    public: NDArray[np.float16]
    n_classes: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Private records per class."""
        return np.bincount(self.y, minlength=self.n_classes)


@lru_cache(maxsize=1)
def balanced(folder: Path, name: str) -> Problem:
    """The complete data set; `folder` holds the embeddings."""

    def rows(store: str, split: str) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
        parts = (np.load(folder / store / f"{split}_{part}.npy") for part in "xy")
        x, y = parts
        return x, y.astype(np.int64)

    x, y = rows(PRIVATE[name], "train")
    public = np.concatenate([rows(store, "train")[0] for store in PUBLIC[name]])[:PUBLIC_ROWS]
    return Problem(x, y, *rows(PRIVATE[name], "test"), public, int(y.max()) + 1)


def problem(folder: Path, name: str, ratio: float, seed: int) -> Problem:
    """The data set with this imbalance ratio; the seed determines which classes are small and which rows are kept."""
    whole = balanced(folder, name)
    if ratio == 1:
        return whole
    kept = imbalanced_subset(whole.y, ratio, seed)
    return Problem(whole.x[kept], whole.y[kept], whole.test_x, whole.test_y, whole.public, whole.n_classes)
