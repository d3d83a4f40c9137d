"""Charge two releases to one allowance; the third is refused before it reads a record.

python examples/shared_ledger.py [FOLDER]
"""

import sys
from pathlib import Path

import tacit
from tacit.data.digits import DigitsSplit, load_digits_split

ALLOWANCE = "rho=1"


def noisy_sum(digits: DigitsSplit, ledger: tacit.Ledger) -> tacit.NoisySumPrototypes:
    """The first release spends half of the allowance: rho = 0.5."""
    clf = tacit.NoisySumPrototypes("rho=0.5", classes=range(10), ledger=ledger)
    return clf.fit(digits.private_x, digits.private_y)


def public(digits: DigitsSplit, ledger: tacit.Ledger) -> tacit.PublicPrototypes:
    """The second release spends the other half: a selection at pure epsilon 2 is (2^2)/8 =
    0.5-zCDP.
    """
    clf = tacit.PublicPrototypes(
        "epsilon=2", public=digits.public_x, classes=range(10), ledger=ledger
    )
    return clf.fit(digits.private_x, digits.private_y)


def refused(digits: DigitsSplit, ledger: tacit.Ledger) -> str:
    """The third release would exceed the allowance; return the refusal."""
    try:
        noisy_sum(digits, ledger)
    except tacit.TacitError as error:
        return str(error)
    raise AssertionError("the ledger accepted a third release")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ledger = tacit.Ledger(folder / "digits.ledger.jsonl", identity="digits")
    ledger.allow(ALLOWANCE)
    digits = load_digits_split()
    for fit in (noisy_sum, public):
        release = tacit.Release.of(fit(digits, ledger), name=fit.__name__)
        release.save(folder / fit.__name__)
        print(f"{fit.__name__}: {release.document.pattern.ledger}")
    print(f"third: {refused(digits, ledger)}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "digits-ledger"))
