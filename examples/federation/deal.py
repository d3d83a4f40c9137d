"""Deal made-up records to three owners, each with a folder, and make the server's folder.

python deal.py FOLDER
"""

import shutil
import sys
from pathlib import Path

import numpy as np

import tacit
from recipe import FILE, PUBLIC, Recipe, sha256

WIDTH = 16
CLASSES = ("benign", "malignant", "normal")
# the third hospital has no record of the second class
RECORDS = {"hospital-1": (300, 200, 400), "hospital-2": (100, 150, 50), "hospital-3": (80, 0, 120)}
ALLOWANCE = "rho=1"


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    means = rng.normal(size=(len(CLASSES), WIDTH))

    def rows(sizes: tuple[int, ...]) -> np.ndarray:
        """Draw rows of each class about its mean."""
        drawn = np.repeat(means, sizes, axis=0)
        return (drawn + 0.7 * rng.normal(size=drawn.shape)).astype(np.float32)

    def labels(sizes: tuple[int, ...]) -> np.ndarray:
        return np.repeat(CLASSES, sizes)

    # the server has public rows, and here test records, which no owner has
    np.save(folder / PUBLIC, rows((200, 200, 200)))
    test = (100, 100, 100)
    np.savez(folder / "test.npz", x=rows(test), y=labels(test))
    recipe = Recipe(
        study="tissue in three hospitals, round 1",
        encoder="made up, 16 columns",
        width=WIDTH,
        classes=CLASSES,
        public_sha256=sha256(folder / PUBLIC),
        budget="rho=0.5",
        unit="add-remove",
    )
    (folder / FILE).write_text(recipe.to_json(), encoding="utf-8")

    for name, sizes in RECORDS.items():
        owner = folder / name
        owner.mkdir(mode=0o700)
        shutil.copy(folder / FILE, owner)
        shutil.copy(folder / PUBLIC, owner)
        store = tacit.EmbeddingStore.write(
            owner / "records", rows(sizes), labels(sizes), classes=CLASSES, identity=name
        )
        tacit.Ledger.beside(store.folder, name).allow(ALLOWANCE)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "federation"))
