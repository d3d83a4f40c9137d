"""Audit every method for the table of docs/audit.md: `make audit`, at most 300 seconds of processor
time, two audits at the same time.

`audit.json` has all bounds, and the rates that attacks on pairs reached; `audit.md` the table, and
`docs/pictures/audit.svg` the picture, which `--draw` makes again from `audit.json`. The status is 1
where a bound exceeds its promise.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import tacit
from tacit.measure.auditing.result import Audit
from tacit.privacy.guarantee import rounded_up
from tacit.report.vega import render

HERE = Path(__file__).parent
BUDGETS = {"label-private": "epsilon=1"}
BUDGET = "rho=0.5"
# Runs on each data set of a pair; a fit of `auto` takes ten times as long as others.
RUNS = 600
FEWER_RUNS = {"auto": 200}
METHODS = [*tacit.METHODS, "top-k"]
# the slowest first
ORDER = sorted(METHODS, key=lambda method: method not in ("auto", "pate", "public", "top-k"))
PICTURE = HERE.parents[1] / "docs" / "pictures" / "audit.svg"


def audited(method: str) -> tuple[Audit, float]:
    """The audit of one method, and the seconds of processor time that it took."""
    start = process_time()
    runs = FEWER_RUNS.get(method, RUNS)
    audit = tacit.audit(method, BUDGETS.get(method, BUDGET), runs=runs)
    return audit, process_time() - start


def measured() -> dict[str, Any]:
    """The results of all audits as JSON values."""
    audits = Parallel(n_jobs=2, verbose=5)(delayed(audited)(method) for method in ORDER)
    results = dict(zip(ORDER, audits, strict=True))
    seconds = sum(seconds for _, seconds in audits)
    facts: dict[str, Any] = {"processor seconds": round(seconds), "audits": {}}
    for method in METHODS:
        audit, seconds = results[method]
        facts["audits"][method] = {
            "runs": FEWER_RUNS.get(method, RUNS),
            "processor seconds": round(seconds, 1),
            "points": audit.points,
            "promise shown": rounded_up(audit.promise),
            "bound shown": audit.best.shown,
        } | audit.to_json()
    return facts


def table(facts: dict[str, Any]) -> str:
    """A line for each method: its best bound."""
    lines = [
        "| method | unit | promise | lower bound | attack | assumption |",
        "|---|---|---|---|---|---|",
    ]
    for method, audit in facts["audits"].items():
        best = max(audit["bounds"], key=lambda bound: bound["epsilon"])
        numbers = f"{audit['promise shown']} | {audit['bound shown']}"
        where = f"{best['attack']} | {best['assumption']}"
        lines.append(f"| `{method}` | {audit['unit']} | {numbers} | {where} |")
    return "\n".join(lines) + "\n"


def picture(facts: dict[str, Any]) -> bytes:
    """The trade-off curve that rho = 0.5 promises, and the rates that attacks on pairs prove.

    Only methods of this promise are drawn: the promises of selections and of PATE are other curves.
    """
    promise = tacit.NoisySumPrototypes(BUDGET, classes=2).promise()
    rates = np.linspace(0, 1, 101)
    curve = [{"fpr": rate, "tpr": promise.attack_rate(rate)} for rate in rates.tolist()]
    points = []
    for method, audit in facts["audits"].items():
        same_promise = math.isclose(audit["promise"], promise.epsilon(audit["delta"]), rel_tol=1e-6)
        if audit["unit"] != "add-remove" or not same_promise:
            continue
        for false_rate, true_rate in audit["points"]:
            points.append({"fpr": false_rate, "tpr": true_rate, "method": method})

    def axis(field: str, title: str, scale: dict[str, Any]) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "title": title, "scale": scale}

    x = axis("fpr", "false-positive rate", {"domain": [0, 1]})
    y = axis("tpr", "true-positive rate", {"domain": [0, 1]})
    kind = {"field": "method", "type": "nominal", "sort": METHODS}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 420,
        "height": 320,
        "background": "white",
        "layer": [
            {"data": {"values": curve}, "mark": "line", "encoding": {"x": x, "y": y}},
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {"x": x, "y": y, "color": kind, "shape": kind | {"legend": None}},
            },
        ],
    }
    return render(chart, "svg")


def main() -> int:
    """Audit all methods, or draw what is stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()

    stored = HERE / "audit.json"
    if not options.draw:
        facts = measured()
        stored.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    facts = json.loads(stored.read_text(encoding="utf-8"))
    text = table(facts)
    (HERE / "audit.md").write_text(text, encoding="utf-8")
    PICTURE.write_bytes(picture(facts))
    print(text)
    return int(any(audit["exceeded"] for audit in facts["audits"].values()))


if __name__ == "__main__":
    sys.exit(main())
