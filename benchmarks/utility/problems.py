"""The problems of the table: real embeddings as private data, made imbalanced, and public knowledge
about them.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.imbalance import imbalanced_subset

IMAGES, TEXT = "mobilenetv2-in1k-160", "all-minilm-l6-v2"
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
STREAM = 20  # of the classes that are chosen and the rows that are held back


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
    """Rows and labels of a split of a stored data set."""
    x, y = (np.load(folder / store / f"{split}_{part}.npy") for part in "xy")
    return x, y.astype(np.int64)


@lru_cache(maxsize=1)
def balanced(folder: Path, name: str, seed: int, names: Path | None) -> Problem:
    """All private records of a setting; the seed determines which classes and public rows are
    chosen.
    """
    setting, rng = SETTINGS[name], np.random.default_rng([STREAM, seed])
    (x, y), (test_x, test_y) = (
        read(folder, setting.private, "train"),
        read(folder, setting.private, "test"),
    )
    of_names = None if names is None else np.load(names).get(setting.private)
    if setting.n_classes is not None:
        chosen = np.sort(
            np.random.default_rng(STREAM).permutation(int(y.max()) + 1)[: setting.n_classes]
        )
        position = np.full(int(y.max()) + 1, -1)
        position[chosen] = np.arange(len(chosen))
        x, y, test_x, test_y = (
            x[position[y] >= 0],
            position[y],
            test_x[position[test_y] >= 0],
            position[test_y],
        )
        y, test_y = y[y >= 0], test_y[test_y >= 0]
        of_names = None if of_names is None else of_names[chosen]
    if setting.held_back:
        order = rng.permutation(len(x))
        aside, kept = order[: setting.held_back], np.sort(order[setting.held_back :])
        public, x, y = x[aside], x[kept], y[kept]
    else:
        public = np.concatenate([read(folder, store, "train")[0] for store in setting.foreign])[
            : setting.rows
        ]
    return Problem(x, y, test_x, test_y, public, int(y.max()) + 1, of_names)


def problem(folder: Path, name: str, ratio: float, seed: int, names: Path | None = None) -> Problem:
    """The setting with this imbalance ratio; the seed determines which classes are small and which
    rows are kept.
    """
    whole = balanced(folder, name, seed if SETTINGS[name].held_back else 0, names)
    if ratio == 1:
        return whole
    kept = imbalanced_subset(whole.y, ratio, seed)
    return Problem(
        whole.x[kept],
        whole.y[kept],
        whole.test_x,
        whole.test_y,
        whole.public,
        whole.n_classes,
        whole.names,
    )
