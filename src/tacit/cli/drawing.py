"""Figures of a voting, in a folder that only the owner of the data can read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import say

if TYPE_CHECKING:
    from tacit.learners.pate import Answers


def check_drawing() -> None:
    """Refuse to go on without the libraries that draw."""
    from tacit.compute.extras import check_installed

    for library in ("altair", "vl_convert"):
        check_installed(library)


def draw_for_owner(folder: Path, answers: "Answers", shares: Any) -> None:
    """Draw the figures of a voting; `shares` are the numbers of queries by consensus."""
    from tacit.learners.pate.run_folder import RunFolder
    from tacit.report.votings import write_figures

    RunFolder(folder)  # makes it private
    write_figures(folder, answers, shares)
    say(f"{folder}: figures, private as the votes are; only cost.svg follows from what is released")
