"""What the generator of mutants changes, and what it leaves alone."""

import sys
from pathlib import Path

import pytest

SOURCE = '''"""Not 1 + 2."""

from functools import lru_cache


@lru_cache(maxsize=8)
def cost(sigma: "1 + 1", n: int = 5) -> float:
    """Not 3 * 4."""
    if n < 0:
        raise ValueError(f"n={n + 1} is below {2 * 3}")
    return 0.5 * sigma / n
'''


@pytest.fixture
def generate(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import generate

    monkeypatch.setattr(generate, "ROOT", tmp_path)
    (tmp_path / "own.py").write_text(SOURCE, encoding="utf-8")
    yield generate
    for name in ("generate", "run", "mutants"):
        sys.modules.pop(name, None)


def test_each_change_is_of_one_place_that_is_computed(generate):
    lines = SOURCE.splitlines()
    changed = set()
    for change in generate.changes("own.py"):
        after = change.applied(SOURCE).splitlines()
        compile("\n".join(after), "own.py", "exec")
        (number,) = (i for i in range(len(lines)) if after[i] != lines[i])
        changed.add(after[number].strip())
    assert changed == {
        'def cost(sigma: "1 + 1", n: int = 6) -> float:',
        'def cost(sigma: "1 + 1", n: int = 10) -> float:',
        'def cost(sigma: "1 + 1", n: int = 2) -> float:',
        "if (n <= 0):",
        "if n < 1:",
        "return 1.0 * sigma / n",
        "return 0.25 * sigma / n",
        "return (0.5 / sigma) / n",
        "return 0.5 / n",
        "return (sigma) / n",
        "return (0.5 * sigma * n)",
        "return (0.5 * sigma)",
    }


def test_a_change_elsewhere_than_stated_is_refused(generate):
    change, *_ = generate.changes("own.py")
    with pytest.raises(AssertionError, match="Change"):
        change.applied("\n" + SOURCE)


def test_the_listed_survivors_are_those_that_no_test_killed(generate):
    change, *others = generate.changes("own.py")
    found = [generate.asdict(one) | {"verdict": "killed"} for one in others]
    found.append(generate.asdict(change) | {"verdict": generate.SURVIVES})
    assert (
        generate.summary(found)
        == f"own.py:{change.line}: {change.old} -> {change.new}\ngenerated mutants: 1 of"
        f" {len(found)} survive"
    )
