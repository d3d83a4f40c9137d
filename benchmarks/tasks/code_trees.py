"""Answers from a tree: CLINC150, whose 150 kinds of query lie in ten domains, by `auto`.

    python benchmarks/tasks/code_trees.py EMBEDDINGS --out code_trees.csv --picture code-trees.svg

EMBEDDINGS is a folder with the sets clinc150 (and its tree.csv), banking77, agnews and sst2, each
of train_x.npy, train_y.npy and so on, as benchmarks/utility/run.py reads them; the last three are
the public rows. `--only-picture` draws the picture of figures that are stored.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.models.coverage import ASKED, Coverage, coverage
from tacit.report.answering import coverage_image

EPSILONS = (0.5, 2.0)
DELTA = 1e-5
SEEDS = 5
PUBLIC = ("banking77", "agnews", "sst2")
COLUMNS = (
    "epsilon",
    "seed",
    "tree",
    "at_least",
    "answered",
    "right",
    "answered_1",
    "right_1",
    "answered_2",
    "right_2",
)


def figures(embeddings: Path) -> Iterator[dict[str, Any]]:
    """Measure each fit, with its tree and without, at each probability that is asked for."""
    folder = embeddings / "clinc150"
    classes = json.loads((folder / "card.json").read_text())["classes"]
    tree = tacit.Tree.read(folder / "tree.csv")
    x, y, test_x, test_y = (
        np.load(folder / f"{name}.npy") for name in ("train_x", "train_y", "test_x", "test_y")
    )
    names = np.array(classes)
    public = np.concatenate([np.load(embeddings / name / "train_x.npy") for name in PUBLIC])

    for epsilon in EPSILONS:
        for seed in range(SEEDS):
            learner = tacit.AutoPrototypes(
                f"epsilon={epsilon},delta={DELTA}",
                public=public,
                classes=classes,
                noise="research",
                random_state=seed,
            )
            learner.fit(x, names[y])
            for carried in (tree, None):
                release = tacit.Release.of(learner, tree=carried)
                for at_least in ASKED:
                    answers = release.answers(test_x, at_least=at_least)
                    found = coverage(answers, names[test_y], carried, at_least=at_least, deepest=2)
                    yield _line(found, epsilon, seed, with_tree=carried is not None)


def _line(found: Coverage, epsilon: float, seed: int, *, with_tree: bool) -> dict[str, Any]:
    """Return a line of the table."""
    line: dict[str, Any] = {
        "epsilon": epsilon,
        "seed": seed,
        "tree": int(with_tree),
        "at_least": found.at_least,
        "answered": round(found.answered, 4),
        "right": _rounded(found.right),
    }
    for level in found.levels:
        line[f"answered_{level.level}"] = round(level.answered, 4)
        line[f"right_{level.level}"] = _rounded(level.right)
    return line


def _rounded(share: float | None) -> float | str:
    return "" if share is None else round(share, 4)


def stored(path: Path) -> list[dict[str, float]]:
    """Read the lines of a table; a share of no answers is nan."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [{name: float(text or "nan") for name, text in line.items()} for line in lines]


def mean(lines: list[dict[str, float]], column: str, **place: float) -> float:
    """Mean of a column over seeds, at a place such as epsilon=2, tree=1, at_least=0.9."""
    values = [line[column] for line in lines if all(line[name] == place[name] for name in place)]
    return float(np.mean(values))


def picture(lines: list[dict[str, float]], kind: str) -> bytes:
    """Draw coverage against accuracy, in means over seeds."""
    series = {}
    for epsilon in EPSILONS:
        for tree, name in ((1.0, "with fall-back"), (0.0, "classes alone")):
            points = []
            for at_least in ASKED:
                place = {"epsilon": epsilon, "tree": tree, "at_least": at_least}
                answered = mean(lines, "answered", **place)
                points.append(Coverage(at_least, answered, mean(lines, "right", **place), ()))
            series[f"epsilon {epsilon:g}, {name}"] = points
    title = "CLINC150 by auto, without names: coverage against accuracy"
    return coverage_image(series, kind, title)


def main() -> None:
    """Measure, store and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--only-picture", action="store_true")
    arguments = parser.parse_args()

    if not arguments.only_picture:
        with arguments.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            for line in figures(arguments.embeddings):
                writer.writerow(line)

    image = picture(stored(arguments.out), arguments.picture.suffix.removeprefix("."))
    arguments.picture.write_bytes(image)


if __name__ == "__main__":
    main()
