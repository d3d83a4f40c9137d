"""Write one small file of each format, to keep with the version of tacit that wrote it.

`python tools/written.py` writes tests/formats/written/VERSION, with a store, a ledger and a
release. From 1.0 on every version has this folder, and every later version reads it
(docs/releases.md, "Which formats are read"). `tests/formats/test_formats.py` fails if a folder is
missing or cannot be read.
"""

import argparse
from pathlib import Path

import numpy as np

import tacit

WRITTEN = Path(__file__).resolve().parents[1] / "tests" / "formats" / "written"


def write(folder: Path) -> None:
    """Write a store of 30 records of 3 classes, a ledger with one charge, and the release that it
    was charged for.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    rows = np.eye(3, 4)[labels] + 0.1 * rng.normal(size=(30, 4))

    store = tacit.EmbeddingStore.write(folder / "store", rows.astype(np.float32), labels, classes=3)
    ledger = tacit.Ledger(folder / "ledger.jsonl", identity="made up")
    ledger.allow("rho=1")
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=3, ledger=ledger)
    learner.fit(store.x, store.labels)
    tacit.Release.of(learner, name="kept").save(folder / "release")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    target = WRITTEN / tacit.__version__
    if target.exists():
        parser.error(f"{target} exists; a file that a version wrote is never written again")
    write(target)
    print(f"wrote {target}")
