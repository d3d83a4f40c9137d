"""Run the quick plans, store their scores, check the claims, and write the page.

python benchmarks/papers/run.py DATA [--work FOLDER] [--only NAME ...] [--jobs 2] [--collect]

DATA holds the embeddings that the plans name. FOLDER keeps the cells of the sweeps: an interrupted
run resumes there, and a plan that changed computes its new cells alone. cells.csv and runs.csv
beside this file get the scores, the date, the version and the hash of each plan. `--collect` stores
the cells that an interrupted run left, and computes none. The command fails if a claim does not get
the kind of verdict that `claims.py` expects.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import stored
from claims import CLAIMS

from tacit.experiments.run import prepare
from tacit.version import __version__


def run(
    name: str, data: Path, work: Path, jobs: int, collect: bool
) -> tuple[list[stored.Row], stored.Run]:
    """Compute the missing cells of a quick plan; return all its rows, and the run."""
    plan = stored.QUICK / f"{name}.yaml"
    plan_hash = stored.plan_hash(plan)
    folder = work / name
    is_resumed = folder.exists()
    spent = 0.0 if collect else sweep(plan, folder, data, jobs)

    # what an interrupted run of the same plan took counts too
    previous = stored.read_runs().get(name)
    if is_resumed and previous is not None and previous.hash == plan_hash:
        spent += previous.processor_seconds

    state = prepare(plan, folder, data)
    results = [state.results[cell.key] for cell in state.cells if cell.key in state.results]
    rows = stored.rows_of(name, results)
    print(f"{name}: {len(rows)} cells, {spent:.0f} s of processor time", flush=True)

    # the day of the newest cell, since earlier runs may have left cells
    date = max((result.started for result in results), default="")[:10]
    stored_run = stored.Run(
        plan=name,
        cells=len(rows),
        of=len(state.cells),
        hash=plan_hash,
        date=date,
        version=__version__,
        processor_seconds=round(spent),
    )
    return rows, stored_run


def sweep(plan: Path, folder: Path, data: Path, jobs: int) -> float:
    """Compute the missing cells of a plan; return the processor seconds that this took.

    The plan runs in a process of its own, whose workers have ended when it ends.
    """
    before = _seconds_of_children()
    command = [sys.executable, "-m", "tacit", "sweep", plan, "--data", data, "--out", folder]
    subprocess.run([*command, "--jobs", str(jobs)], check=True)
    return _seconds_of_children() - before


def _seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def store(rows: Iterable[stored.Row], runs: Iterable[stored.Run]) -> None:
    """Replace the stored rows of the plans that ran."""
    runs = {run.plan: run for run in runs}
    kept = [row for row in stored.read_rows() if row.plan not in runs]
    stored.write([*kept, *rows], {**stored.read_runs(), **runs}.values())


def unexpected(cells: stored.Cells) -> list[str]:
    """Return a line for each claim whose verdict is not of the kind that it expects."""
    lines = []
    for claim in CLAIMS:
        finding = page.finding_of(claim, cells)
        kind = claim.expects if finding is None else finding.kind
        if kind != claim.expects:
            lines.append(f"{claim.plan}: {claim.text}: {kind}, and not: {claim.expects}")
    return lines


def main() -> None:
    """Read the command line and run the plans."""
    parser = argparse.ArgumentParser(description="Run the quick plans and check the claims.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("papers"))
    parser.add_argument("--only", nargs="*", default=[], help="names of plans")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--collect", action="store_true", help="compute no cells")
    arguments = parser.parse_args()

    for path in sorted(stored.QUICK.glob("*.yaml")):
        if not arguments.only or path.stem in arguments.only:
            # run times are measured on a machine that does nothing else
            jobs = 1 if path.stem == "run-times" else arguments.jobs
            rows, stored_run = run(
                path.stem, arguments.data, arguments.work, jobs, arguments.collect
            )
            store(rows, [stored_run])

    page.write()
    lines = unexpected(page.all_cells())
    if lines:
        sys.exit("\n".join(["claims that the results no longer decide as expected:", *lines]))


if __name__ == "__main__":
    main()
