"""Kill the mutants: change one place of a shipped file in a temporary tree, run its tests, and
expect them to fail.

Fails if a mutant survives, if a place to change is not found exactly once, or if a test that killed
one fails without any change too.
Usage: python tests/mutants/run.py [WORD ...] runs the mutants whose name holds every word.

Each mutant has a process of its own, forked from this one, which has imported the libraries but
nothing of tacit.
"""

import contextlib
import importlib
import io
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hypothesis
import pytest
from syntax import NoSuchPlace, mutated

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
WORKERS = os.cpu_count() or 1
LIBRARIES = [
    "numba",
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.utils",
    "pyarrow.parquet",
    "opendp.prelude",
    "dp_accounting",
    "pydantic",
    "safetensors.numpy",
    "cyclopts",
    "hypothesis",
    "_hypothesis_pytestplugin",
    "anyio.pytest_plugin",
    "xdist.plugin",
    "opendp.measurements",
    "numba.core.registry",
]


def tree(folder: str) -> Path:
    """A copy of what the tests need."""
    copy = Path(folder) / "repository" / "main"
    for name in ("src", "tests"):
        # what numba keeps is kept
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "docs").symlink_to(ROOT / "docs")
    return copy


def survives(mutant: Mutant) -> tuple[str, str, float]:
    """Empty when the mutant is killed, else what went wrong; the test that killed it; and the
    seconds that it took.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = tree(folder)
        path = copy / mutant.file
        source = path.read_text(encoding="utf-8")
        try:
            source = mutated(source, mutant.address, mutant.old, mutant.new)
        except NoSuchPlace as error:
            return f"does not apply: {error}", "", 0.0
        path.write_text(source, encoding="utf-8")
        fault, killer = verdict(copy, mutant.tests)
        return fault, killer, time.monotonic() - started


class Killer:
    """Slow and thorough tests go to the end, since a quick one mostly kills; the one that does is
    noted.
    """

    def __init__(self) -> None:
        self.name = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Order."""
        items.sort(
            key=lambda item: [
                item.get_closest_marker(name) is not None for name in ("thorough", "slow")
            ]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note."""
        if report.failed:
            self.name = report.nodeid.partition("[")[0]


def verdict(copy: Path, tests: str, *plugins: object) -> tuple[str, str]:
    """Run the tests in this process, on the tree and not on the installed package.

    Returns what went wrong, empty if a test failed, and the test that failed.
    """
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path.insert(0, str(copy / "src"))
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        # a diff of long lists takes minutes
        plain = ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
        plain += ["-p", "no:unraisableexception"]  # it collects garbage at the end
        arguments = ["-x", "-q", *plain, "--rootdir", str(copy), *tests.split()]
        status = pytest.main(arguments, plugins=[killer := Killer(), *plugins])
    where = str(getattr(sys.modules.get("tacit"), "__file__", ""))
    if not where.startswith(str(copy)):
        return f"was not run: the tests are of {where or 'nothing'}", ""
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or (
        status and not killer.name
    ):
        return f"could not be run: {output.getvalue()[-2000:]}", ""
    return f"survives {tests}" if status == pytest.ExitCode.OK else "", killer.name


def tests_pass(names: list[str]) -> bool:
    """Whether these tests pass without any edit, on all cores; what they print is shown if not."""
    with tempfile.TemporaryDirectory() as folder:
        copy = tree(folder)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-n",
            "auto",
        ]
        run = subprocess.run(
            [*command, "--dist", "worksteal", *names],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src")},
            capture_output=True,
            text=True,
        )
    if run.returncode:
        print(run.stdout + run.stderr)
    return run.returncode == 0


def import_libraries() -> None:
    """Import what the forked processes share, and nothing of tacit."""
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    for name in LIBRARIES:
        importlib.import_module(name)
    # a failing example is not made smaller, which can take twenty seconds
    hypothesis.settings.register_profile(
        "as found", phases=set(hypothesis.Phase) - {hypothesis.Phase.shrink}
    )
    hypothesis.settings.load_profile("as found")
    target = sys.modules["numba.core.registry"].cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
    assert "tacit" not in sys.modules


def main() -> int:
    """Run all, or those named."""
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in sys.argv[1:])]
    if not chosen:
        raise SystemExit(f"no mutant's name holds {' and '.join(sys.argv[1:])}")
    import_libraries()
    faults, killers = [], set()
    with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=1) as pool:
        for mutant, (fault, killer, seconds) in zip(
            chosen, pool.imap(survives, chosen), strict=True
        ):
            verdict = (
                f"{'FAULT ' if fault else 'killed'}  {mutant.name}{': ' + fault if fault else ''}"
            )
            if fault:
                faults.append(verdict)
            killers |= {killer} - {""}
            print(
                f"{verdict} ({seconds:.0f} s{', ' + killer.rpartition('::')[2] if killer else ''})",
                flush=True,
            )
    print(*faults, f"mutants: {len(chosen) - len(faults)} killed, {len(faults)} at large", sep="\n")
    if killers and not tests_pass(sorted(killers)):
        print("a test that killed fails without any mutant too")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
