"""The problems of the table: real embeddings as private data, made imbalanced.

Beside them stands what is public: rows of the same kind, and rows of class names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.imbalance import imbalanced_subset

# folders of the encoders, and stores within them
IMAGES = "mobilenetv2-in1k-160"
TEXT = "all-minilm-l6-v2"
TINY = f"{IMAGES}/tiny_imagenet"
NEWS = (f"{TEXT}/agnews", f"{TEXT}/sst2")


@dataclass(frozen=True)
class Setting:
    """A private data set, where public rows come from, and the imbalance ratios.

    The pool is that of other data sets (`foreign`), or `held_back` rows of the private set that are
    no private records. With `n_classes`, a fixed choice of classes; with `few`, fewer budgets,
    seeds and methods.
    """

    private: str
    foreign: tuple[str, ...] = ()
    rows: int = 30_000
    held_back: int = 0
    ratios: tuple[int, ...] = (1, 10, 100)
    n_classes: int | None = None
    few: bool = True


SETTINGS = {
    "cifar10": Setting(f"{IMAGES}/cifar10", (TINY,), ratios=(1, 10, 50, 100), few=False),
    "cifar100": Setting(f"{IMAGES}/cifar100", (TINY,), ratios=(1, 10, 50, 100), few=False),
    "banking77": Setting(f"{TEXT}/banking77", NEWS, ratios=(1, 10), few=False),
    "clinc150": Setting(f"{TEXT}/clinc150", NEWS),
    "agnews": Setting(f"{TEXT}/agnews", (f"{TEXT}/banking77", f"{TEXT}/clinc150")),
    "cifar10, 1,000 foreign rows": Setting(f"{IMAGES}/cifar10", (TINY,), 1_000),
    "cifar10, 1,500 own rows": Setting(f"{IMAGES}/cifar10", held_back=1_500),
    "cifar100, 3,000 own rows": Setting(f"{IMAGES}/cifar100", held_back=3_000),
    "banking77, 1,500 own rows": Setting(f"{TEXT}/banking77", held_back=1_500, ratios=(1, 10)),
    "clinc150 of 20 classes, 900 own rows": Setting(
        f"{TEXT}/clinc150", held_back=900, ratios=(1, 10), n_classes=20
    ),
    "agnews, 1,200 own rows": Setting(f"{TEXT}/agnews", held_back=1_200),
    "sst2, 1,200 own rows": Setting(f"{TEXT}/sst2", held_back=1_200),
    "tiny imagenet of 20 classes, 1,500 own rows": Setting(TINY, held_back=1_500, n_classes=20),
}

# random stream of the classes and of the rows that are held back
STREAM = 20


@dataclass(frozen=True)
class Problem:
    """Private rows, test rows, public rows, and rows of class names where there are some."""

    x: NDArray[np.float16]
    y: NDArray[np.int64]
    test_x: NDArray[np.float16]
    test_y: NDArray[np.int64]
    public: NDArray[np.float16]
    n_classes: int
    names: NDArray[np.float32] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Private records per class."""
        return np.bincount(self.y, minlength=self.n_classes)


def read(folder: Path, store: str, split: str) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """Return rows and labels of a split of a stored data set."""
    x = np.load(folder / store / f"{split}_x.npy")
    y = np.load(folder / store / f"{split}_y.npy")
    return x, y.astype(np.int64)


def read_rows(folder: Path, stores: Sequence[str]) -> NDArray[np.float16]:
    """Return the training rows of several stored data sets."""
    return np.concatenate([read(folder, store, "train")[0] for store in stores])


def with_classes(
    x: NDArray[np.float16], y: NDArray[np.int64], classes: NDArray[np.int64]
) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """Return the rows of some classes, with the position in `classes` as label."""
    # position of each class, -1 for those that are left out
    positions = np.full(max(int(y.max()), int(classes.max())) + 1, -1)
    positions[classes] = np.arange(len(classes))
    labels = positions[y]
    rows = labels >= 0
    return x[rows], labels[rows]


@lru_cache(maxsize=1)
def balanced(folder: Path, name: str, seed: int, names: Path | None) -> Problem:
    """Return all private records of a setting; the seed decides which rows are held back."""
    setting = SETTINGS[name]
    x, y = read(folder, setting.private, "train")
    test_x, test_y = read(folder, setting.private, "test")
    name_rows = None
    if names is not None:
        name_rows = np.load(names).get(setting.private)

    if setting.n_classes is not None:
        # the same classes at all seeds
        all_classes = np.random.default_rng(STREAM).permutation(int(y.max()) + 1)
        classes = np.sort(all_classes[: setting.n_classes])
        x, y = with_classes(x, y, classes)
        test_x, test_y = with_classes(test_x, test_y, classes)
        if name_rows is not None:
            name_rows = name_rows[classes]

    if setting.held_back:
        order = np.random.default_rng([STREAM, seed]).permutation(len(x))
        public = x[order[: setting.held_back]]
        private_rows = np.sort(order[setting.held_back :])
        x = x[private_rows]
        y = y[private_rows]
    else:
        public = read_rows(folder, setting.foreign)[: setting.rows]
    return Problem(x, y, test_x, test_y, public, int(y.max()) + 1, name_rows)


def problem(folder: Path, name: str, ratio: float, seed: int, names: Path | None = None) -> Problem:
    """Return a setting with this imbalance ratio.

    The seed decides which classes are small and which of their rows stay.
    """
    # without rows that are held back, all seeds share the rows in memory
    held_back_seed = seed if SETTINGS[name].held_back else 0
    whole = balanced(folder, name, held_back_seed, names)
    if ratio == 1:
        return whole
    rows = imbalanced_subset(whole.y, ratio, seed)
    return replace(whole, x=whole.x[rows], y=whole.y[rows])
