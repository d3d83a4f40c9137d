"""`auto` and its rivals on random problems of two classes, on which no constant was chosen.

python benchmarks/utility/two_classes.py EMBEDDINGS --out FOLDER [--problems 150] [--workers 2]

Problems are drawn as in `routes.py`, but with only two classes; the report, two-classes.md, is that of
`rivals.py`. If you choose a constant on problems from `FIRST` on, raise `FIRST` first.
"""

from pathlib import Path
from typing import Any

from rivals import accuracies, report
from routes import command, drawn

FIRST = 8000


def work(embeddings: Path, number: int) -> dict[str, Any]:
    """Facts of a problem, and each method's accuracies by seed, in percent; nothing if it cannot be drawn."""
    problem = drawn(embeddings, number, most=2)
    return {} if problem is None else accuracies(*problem)


def main() -> None:
    """Run."""
    command("auto and its rivals on random problems of two classes.", work, FIRST, 150, "two-classes.md", report)


if __name__ == "__main__":
    main()
