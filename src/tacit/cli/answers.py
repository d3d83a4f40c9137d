"""Answers of a probability that is asked for: columns of `tacit predict`, figures and the picture
of `tacit evaluate`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import say
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.models.answers import Answers
    from tacit.models.coverage import Coverage
    from tacit.releases.release import Release

# the probability that is asked for where no option says another
USUAL = 0.9


def answer_columns(answers: "Answers") -> dict[str, Any]:
    """Return the columns of a table of answers."""
    return {
        "label": answers.label,
        "level": answers.level,
        "probability": answers.probability,
    }


def check_picture(out: Path | None, *, force: bool) -> None:
    """Refuse the file of a picture that cannot be drawn or written, before anything is read."""
    if out is None:
        return
    from tacit.cli.drawing import check_drawing
    from tacit.compute.atomic import check_writable
    from tacit.report.answering import FORMATS

    if out.suffix.removeprefix(".") not in FORMATS:
        endings = ", ".join(f".{kind}" for kind in FORMATS)
        raise InputError(f"--out {out} must end in {endings}; give for example {out.stem}.svg")
    check_drawing()
    check_writable(out, force=force)


def coverage_of(release: "Release", probabilities: Any, truth: Any, at_least: float) -> "Coverage":
    """Score the answers of a probability of `at_least`."""
    from tacit.models.coverage import coverages

    if release.several:
        raise InputError(
            f"{release.source} gives each row any set of labels, so no class is the answer; leave"
            " --at-least and --out out"
        )

    (found,) = coverages(probabilities, truth, release.classes, release.tree, [at_least])
    return found


def coverage_facts(found: "Coverage") -> dict[str, Any]:
    """Return the figures of answers for a JSON object."""
    return asdict(found)


def print_coverage(found: "Coverage") -> None:
    """Print how many rows are answered, and how many answers are right, over all and by level."""
    say(f"answered at probability {found.at_least:g} or more: {_shares(found)}")
    if len(found.levels) > 1:
        for level in found.levels:
            say(f"  at level {level.level}: {_shares(level)}")


def draw_coverage(
    release: "Release", probabilities: Any, truth: Any, out: Path, *, force: bool
) -> None:
    """Draw coverage against accuracy, beside that of classes alone if the release has a tree."""
    from tacit.compute.atomic import atomic_file
    from tacit.models.coverage import coverages
    from tacit.report.answering import coverage_image

    alone = coverages(probabilities, truth, release.classes, None)
    series = {"classes": alone}
    if release.tree is not None:
        with_tree = coverages(probabilities, truth, release.classes, release.tree)
        series = {"with fall-back": with_tree, "classes alone": alone}
    image = coverage_image(series, out.suffix.removeprefix("."))
    with atomic_file(out, force=force) as temporary:
        temporary.write_bytes(image)


def _shares(found: Any) -> str:
    """Write the shares of answers and of right ones."""
    if found.right is None:
        return "none"
    return f"{100 * found.answered:.1f} % of rows, {100 * found.right:.1f} % of them right"
