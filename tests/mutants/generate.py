"""Generate mutants of the privacy arithmetic, run the tests on each, and list those that survive.

Every numeric constant, comparison, arithmetic operator and factor of `src/tacit/privacy` and
`src/tacit/mechanisms` is changed, one at a time. Docstrings, messages, type hints and cache sizes
are left alone. First the tests of the changed module run on every mutant, then, on what survived,
those of both folders and the contract tests. The first failure kills a mutant, and so does a test
that takes longer than a minute.

A survivor is either equivalent (no observable effect) or a gap in the tests: a person has to judge
which.

Usage: python tests/mutants/generate.py --out VERDICTS.jsonl [--only PATH ...] [--sample N --seed S]
[--quick]

Verdicts are appended to the file given by --out as they are found; the last one on a mutant holds.
A later run with the same file goes on where it was stopped, and the summary at the end covers the
whole file.
"""

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from run import ROOT, import_libraries, tree, verdict

from mutants import MUTANTS

FOLDERS = ("src/tacit/privacy", "src/tacit/mechanisms")
SECONDS_PER_TEST = 60
SURVIVES, SURVIVES_OWN = "survives", "survives the tests of its module"
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Change:
    """Replace the text `old`, which starts at this place of the file, by `new`."""

    file: str
    line: int
    column: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The text of the file with this change."""
        lines = text.splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        assert text.startswith(self.old, start), self
        return text[:start] + self.new + text[start + len(self.old) :]


def constants(value: float) -> list[float]:
    """Other values for a constant: one more, twice and half of it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if isinstance(value, float):
        return [2 * value, value / 2] if value else [1.0]
    return {0: [1], 1: [2], 2: [3, 1]}.get(value, [value + 1, 2 * value, value // 2])


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of this node."""
    match node:
        case ast.Constant(value=int() | float()):
            yield from map(ast.Constant, constants(node.value))
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                if type(operator) in COMPARISONS:
                    ops = [*node.ops[:i], COMPARISONS[type(operator)](), *node.ops[i + 1 :]]
                    yield ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
            yield from [node.left] if isinstance(node.op, ast.Mult | ast.Div) else []
            yield from [node.right] if isinstance(node.op, ast.Mult) else []
        case ast.AugAssign() if type(node.op) in OPERATORS:
            yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)


def arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    """This node and those below it that decide what is computed."""
    match node:
        case ast.Raise() | ast.JoinedStr():
            return
        case (
            ast.Call(func=ast.Attribute(attr="warn" | "lru_cache"))
            | ast.Call(func=ast.Name(id="lru_cache"))
        ):
            return
        case ast.BinOp(left=ast.Constant(value=str()) | ast.List() | ast.Tuple()):
            return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from arithmetic(child)


def changes(file: str) -> list[Change]:
    """Every change of a file, in the order of its lines."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    found = {}
    for node in arithmetic(ast.parse(text)):
        for other in alternatives(node):
            old = ast.get_source_segment(text, node)
            column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
            plain = isinstance(other, ast.AugAssign | ast.Constant)
            new = ast.unparse(other) if plain else f"({ast.unparse(other)})"
            change = Change(file, node.lineno, column, old, new)
            found.setdefault(ast.dump(ast.parse(change.applied(text))), change)
    return sorted(found.values(), key=lambda change: (change.line, change.column))


def own_tests(file: str) -> str:
    """The tests of a module: those of its name, then those of its listed mutants."""
    own = f"tests/{Path(file).parent.name}/test_{Path(file).stem}.py"
    named = sorted({each.tests.partition("::")[0] for each in MUTANTS if each.file == file} - {own})
    return " ".join([*([own] if (ROOT / own).exists() else []), *named])


def other_tests(file: str) -> str:
    """The tests of both folders, the module's first, and of all learners."""
    folders = sorted(
        ("tests/privacy", "tests/mechanisms"),
        key=lambda tests: not tests.endswith(Path(file).parent.name),
    )
    return " ".join([*folders, "tests/contracts"])


class TimeLimit:
    """The process is killed when a test, or the collection of the tests, takes too long; no
    thorough test runs.
    """

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.get_closest_marker("thorough") is None]

    def pytest_sessionstart(self) -> None:
        signal.alarm(SECONDS_PER_TEST)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        signal.alarm(SECONDS_PER_TEST)

    def pytest_sessionfinish(self) -> None:
        signal.alarm(0)


def _run(change: Change, tests: str, folder: str, sender: Connection) -> None:
    os.setpgrp()  # so that what the tests start ends with this process
    copy = tree(folder)
    path = copy / change.file
    path.write_text(change.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    sender.send(verdict(copy, tests, TimeLimit()))


def _outcome(change: Change, tests: str) -> tuple[str, str, int | None]:
    """What `verdict` found and the exit status, of a process that is ended with all that it
    started.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = multiprocessing.get_context("fork").Process(
            target=_run, args=(change, tests, folder, sender)
        )
        process.start()
        try:
            while process.is_alive() and not receiver.poll(0.1):
                pass
            fault, killer = receiver.recv() if receiver.poll() else ("", "")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
    return fault, killer, process.exitcode


def judged(change: Change, tests: str, survives: str) -> dict[str, str | int]:
    """The verdict of these tests on one mutant: "killed ..." or `survives`, and the test that
    killed it.
    """
    started = time.monotonic()
    fault, killer, status = _outcome(change, tests) if tests else (SURVIVES, "", 0)
    if status == -signal.SIGALRM:
        fate = "killed by timeout"
    elif fault.startswith(SURVIVES):
        fate = survives
    else:
        fate = "killed" if killer else f"killed: {fault[-200:] or f'exit status {status}'}"
    return asdict(change) | {
        "verdict": fate,
        "killer": killer,
        "seconds": round(time.monotonic() - started),
    }


def described(verdict: dict[str, str | int]) -> str:
    """Where the change is and what it is, on one line."""
    texts = (" ".join(str(verdict[name]).split()) for name in ("old", "new"))
    return f"{verdict['file']}:{verdict['line']}: {' -> '.join(texts)}"


def summary(verdicts: Sequence[dict[str, str | int]]) -> str:
    """The survivors, and how many mutants there were."""
    alive = [found for found in verdicts if found["verdict"] in (SURVIVES, SURVIVES_OWN)]
    return "\n".join(
        [*map(described, alive), f"generated mutants: {len(alive)} of {len(verdicts)} survive"]
    )


def parsed() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        description="Generate mutants, run the tests on each, list the survivors."
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="file of verdicts, JSON lines; it is appended to"
    )
    parser.add_argument(
        "--only", nargs="+", default=FOLDERS, help="files or folders, relative to the repository"
    )
    parser.add_argument(
        "--sample", type=int, help="run this many mutants, drawn at random, and not all"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument(
        "--quick", action="store_true", help="run the tests of the changed module and no others"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    return parser.parse_args()


def chosen(arguments: argparse.Namespace) -> list[Change]:
    """The changes that the arguments name."""
    paths = [
        path
        for name in arguments.only
        for path in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]
    ]
    found = [change for path in paths for change in changes(path.relative_to(ROOT).as_posix())]
    if arguments.sample is not None:
        random.Random(arguments.seed).shuffle(found)
    return found[: arguments.sample]  # a larger sample holds the smaller ones


def main() -> None:
    """Run what is not in the file of verdicts yet."""
    arguments = parsed()
    todo = chosen(arguments)
    if arguments.list:
        print("\n".join(described(asdict(change)) for change in todo))
        return
    arguments.out.touch()
    lines = map(json.loads, arguments.out.read_text(encoding="utf-8").splitlines())
    verdicts = {
        Change(*(found[name] for name in Change.__dataclass_fields__)): found for found in lines
    }
    import_libraries()
    with arguments.out.open("a", encoding="utf-8") as file:

        def judge(change: Change, tests: str, survives: str) -> None:
            verdicts[change] = judged(change, tests, survives)
            print(json.dumps(verdicts[change]), file=file, flush=True)

        for change in todo:
            if change not in verdicts:
                judge(change, own_tests(change.file), SURVIVES_OWN)
        for change in todo:
            if verdicts[change]["verdict"] == SURVIVES_OWN and not arguments.quick:
                judge(change, other_tests(change.file), SURVIVES)
    print(summary(list(verdicts.values())))


if __name__ == "__main__":
    main()
