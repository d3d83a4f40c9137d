"""A folder of labels that a voting released, with their guarantee: `labels.csv`, `guarantee.json`,
`statement.txt`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.learners.pate.voting import Answers

FILES = {"guarantee.json", "labels.csv", "statement.txt"}


def write_labels(
    folder: Path, answers: Answers, *, delta: float, noise: str, classes_declared: bool
) -> None:
    """Write the files into an existing folder; the statement gives epsilon at `delta`.

    Labels of research noise are stamped as not for release; a class list that was not declared is
    named as unprotected.
    """
    guarantee = answers.guarantee_
    if not classes_declared:
        guarantee = replace(
            guarantee, unprotected=(*guarantee.unprotected, "class list (read off the votes)")
        )
    rows = (f"{query},{label}" for query, label in enumerate(answers.labels.tolist()))
    (folder / "labels.csv").write_text("\n".join(["query,label", *rows]) + "\n", encoding="utf-8")
    (folder / "guarantee.json").write_text(
        json.dumps(guarantee.to_json(), indent=2) + "\n", encoding="utf-8"
    )
    stamp = (
        "" if noise == "secure" else "NOT FOR RELEASE: made with research noise, which is seeded.\n"
    )
    (folder / "statement.txt").write_text(
        f"{stamp}{guarantee.statement(delta)}\n", encoding="utf-8"
    )


def holds_labels(folder: Path) -> bool:
    """Whether a folder holds these files and nothing else."""
    return {path.name for path in folder.iterdir()} == FILES
