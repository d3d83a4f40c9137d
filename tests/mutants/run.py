"""Kill the mutants: edit one line of a shipped file in a temporary tree, run its tests, and expect them to fail.

Fails if a mutant survives, if a line to edit is not found exactly once, or if the tests fail without any edit.
Usage: python tests/mutants/run.py [WORD ...] runs the mutants whose name holds every word.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
WORKERS = os.cpu_count() or 1


def tree(folder: str) -> Path:
    """A copy of what the tests need."""
    copy = Path(folder) / "repository" / "main"
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def tests_pass(copy: Path, tests: list[str], *options: str) -> tuple[bool, str]:
    """Whether the tests pass on the tree, not on the installed package, and what they printed."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import tacit; print(tacit.__file__)"],
        cwd=copy, env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if not where.startswith(str(copy)):
        raise SystemExit(f"tests would run on {where.strip()}, not on the copy in {copy}")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *tests]
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {tests}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode == 0, run.stdout


def survives(mutant: Mutant) -> tuple[str, float]:
    """Empty when the mutant is killed, else what went wrong; and the seconds that it took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = tree(folder)
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"no longer applies: {mutant.old!r} occurs {text.count(mutant.old)} times in {mutant.file}", 0.0
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        passed, _ = tests_pass(copy, [mutant.tests])
        return f"survives {mutant.tests}" if passed else "", time.monotonic() - started


def main() -> int:
    """Run all, or those named."""
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in sys.argv[1:])]
    if not chosen:
        raise SystemExit(f"no mutant's name holds {' and '.join(sys.argv[1:])}")
    files = sorted({mutant.tests for mutant in chosen})
    with tempfile.TemporaryDirectory() as folder:
        passed, output = tests_pass(tree(folder), files, "-n", "auto", "--dist", "worksteal")
    if not passed:
        print(output)
        print("the tests fail without any mutant")
        return 1
    failures = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        for mutant, (fault, seconds) in zip(chosen, pool.map(survives, chosen), strict=True):
            failures += bool(fault)
            verdict = f"{'FAULT ' if fault else 'killed'}  {mutant.name}{': ' + fault if fault else ''}"
            print(f"{verdict} ({seconds:.0f} s)", flush=True)
    print(f"mutants: {len(chosen) - failures} killed, {failures} at large")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
