"""From private rows, make a release that anybody may read: digits, in Python.

python examples/first_release.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

import tacit
from tacit.data.digits import DigitsSplit, load_digits_split

BUDGET = "rho=0.5"


def learner() -> tacit.NoisySumPrototypes:
    """State everything public, before any data is read: the budget and the class list."""
    return tacit.NoisySumPrototypes(BUDGET, classes=range(10))


def publish(digits: DigitsSplit, folder: Path) -> tacit.Release:
    """Fit on the private rows, save the release, and read it back as anybody could."""
    centre = digits.public_x.mean(axis=0)  # computed from public rows, so it has no privacy cost
    clf = learner().fit(digits.private_x - centre, digits.private_y)
    tacit.Release.of(clf, name="digits", intended_use="an example").save(folder)
    return tacit.Release.load(folder).verify()


def accuracy(release: tacit.Release, digits: DigitsSplit) -> float:
    """Share of the test rows that the release classifies correctly; test rows are centred like the
    private rows.
    """
    centre = digits.public_x.mean(axis=0)
    return float(np.mean(release.predict(digits.test_x - centre) == digits.test_y))


def main(folder: Path) -> None:
    print(learner().promise().statement())
    digits = load_digits_split()
    release = publish(digits, folder)
    print(
        f"\n{folder} may be published; accuracy on {len(digits.test_y)} test rows:"
        f" {accuracy(release, digits):.3f}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "digits-release"))
