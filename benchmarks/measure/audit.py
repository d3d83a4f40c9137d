"""Audit every method for the table of docs/audit.md: `make audit`, minutes on two cores.

`audit.csv` has a line for each method; `audit.json` the rates that attacks on pairs reached, for
the picture. The status is 1 where a bound exceeds its promise.
"""

import csv
import json
import sys
from pathlib import Path

from joblib import Parallel, delayed

import tacit
from tacit.measure.auditing.result import Audit
from tacit.privacy.guarantee import rounded_up

HERE = Path(__file__).parent
BUDGETS = {"label-private": "epsilon=1"}
BUDGET = "rho=0.5"
METHODS = [*tacit.METHODS, "top-k"]
# the slowest first
ORDER = sorted(METHODS, key=lambda method: method not in ("auto", "pate", "public", "top-k"))
COLUMNS = ["method", "unit", "promise", "lower bound", "attack", "assumption"]


def audited(method: str, runs: int) -> Audit:
    """The audit of one method."""
    return tacit.audit(method, BUDGETS.get(method, BUDGET), runs=runs)


def main() -> int:
    """Audit all methods; an argument is the number of runs."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    audits = Parallel(n_jobs=2, verbose=5)(delayed(audited)(method, runs) for method in ORDER)
    results = dict(zip(ORDER, audits, strict=True))

    with (HERE / "audit.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for method in METHODS:
            audit = results[method]
            best = audit.best
            promise = rounded_up(audit.promise)
            row = [method, audit.unit, promise, best.shown, best.attack, best.assumption]
            writer.writerow(row)
            print(*row, sep=" | ")
    facts = {"runs": runs} | {
        method: {"points": results[method].points} | results[method].to_json() for method in METHODS
    }
    (HERE / "audit.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return int(any(audit.exceeded for audit in audits))


if __name__ == "__main__":
    sys.exit(main())
