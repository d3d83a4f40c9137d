"""`auto` and its rivals on random problems of two classes, on which no constant was chosen.

python benchmarks/utility/two_classes.py EMBEDDINGS --out FOLDER [--problems 150] [--workers 2]

Problems are drawn as in `routes.py`, but with only two classes; the report, two-classes.md, is that
of `rivals.py`. If you choose a constant on problems from `FIRST` on, raise `FIRST` first.
"""

from functools import partial

from rivals import report, work
from routes import command

FIRST = 8000


def main() -> None:
    """Run."""
    command(
        "auto and its rivals on random problems of two classes.",
        partial(work, most_classes=2),
        FIRST,
        150,
        "two-classes.md",
        report,
    )


if __name__ == "__main__":
    main()
