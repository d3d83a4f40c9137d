"""Audits of releases of CIFAR-10 by refits on public rows of Tiny ImageNet.

    python benchmarks/measure/audit_releases.py DATA [METHOD=REFITS ...]

DATA has the embeddings, as DATA/cifar10/train_x.npy. Each method is fitted to 5,000 records of
CIFAR-10 and audited by 3,000 rows of Tiny ImageNet with the labels that the release predicts, in
one process. The table is written to audit_releases.csv beside this file, a row for each method.
"""

import csv
import sys
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np

from tacit.learners.methods import METHODS, load
from tacit.measure.auditing.of_release import audit_release
from tacit.releases.release import Release

OUT = Path(__file__).with_suffix(".csv")
FIELDS = ("method", "unit", "promise", "lower_bound", "attack", "refits", "seconds")
BUDGETS = {"public": "epsilon=1", "label-private": "epsilon=1"}
N = 5000

# so many take less than a minute each
REFITS = {
    "noisy-sum": 1024,
    "least-squares": 256,
    "coinpress": 512,
    "gradient-descent": 64,
    "auto": 48,
    "public": 128,
    "label-private": 24,
}


def rows_of(data, name, part="train"):
    """Rows and labels of a set."""
    x = np.load(data / name / f"{part}_x.npy", mmap_mode="r")[:N].astype(np.float32)
    return x, np.load(data / name / f"{part}_y.npy")[:N].astype(int)


def release_of(method, private, public):
    """A release of the method, fitted to private rows."""
    learner_class = load(METHODS[method])
    parameters = {"public": public} if learner_class.needs_public else {}
    learner = learner_class(BUDGETS.get(method, "rho=0.5"), classes=10, **parameters)
    return Release.of(learner.fit(*private), name=method)


def main(data, refits):
    """Audit each method, and write its row at once."""
    private = rows_of(data, "cifar10")
    public, _ = rows_of(data, "tiny_imagenet", "test")
    rows = {}
    if OUT.exists():
        with OUT.open() as file:
            rows = {row["method"]: row for row in csv.DictReader(file)}

    for method, number in refits.items():
        release = release_of(method, private, public[:2000])
        started = perf_counter()
        audit = audit_release(release, public[2000:], refits=number)
        rows[method] = {
            "method": method,
            "unit": audit.unit.value,
            "promise": f"{audit.promise:.4f}",
            "lower_bound": f"{audit.epsilon_lower:.4f}",
            "attack": audit.best.attack,
            "refits": audit.setup.partition(" ")[0],
            "seconds": f"{perf_counter() - started:.0f}",
        }
        print(audit, audit.setup, sep="\n", flush=True)
        with OUT.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows.values())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    given = (argument.partition("=") for argument in sys.argv[2:])
    main(Path(sys.argv[1]), {method: int(number) for method, _, number in given} or REFITS)
