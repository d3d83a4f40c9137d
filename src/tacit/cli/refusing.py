"""Figures of `tacit evaluate --foreign`: how well a release tells rows of no class from its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import say
from tacit.cli.table_rows import data_for
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.releases.release import Release

# shares of familiar rows that `refuse` may ask for
SHARES = (0.01, 0.05, 0.1, 0.2)


def foreign_figures(
    release: "Release", x: Any, foreign: Path, *, any_encoder: bool
) -> dict[str, Any]:
    """Return the area under the ROC curve, and the refused shares of test rows and foreign rows.

    A release without a posterior has no shares: it would need further rows like those trained on.
    """
    from tacit.models.metrics import area_under_roc

    rows = data_for(release, foreign, any_encoder=any_encoder).x
    if not len(x) or not len(rows):
        raise InputError(f"--foreign {foreign} needs rows of no class and test rows; add some")

    of_test = release.strangeness(x)
    figures: dict[str, Any] = {
        "foreign_rows": len(rows),
        "area_under_roc": area_under_roc(of_test, release.strangeness(rows)),
    }
    if release.simulates_rows:
        test, others = release.unfamiliarity(x), release.unfamiliarity(rows)
        figures["refused"] = {
            str(share): {
                "test": float((test > 1 - share).mean()),
                "foreign": float((others > 1 - share).mean()),
            }
            for share in SHARES
        }
    return figures


def print_foreign(figures: dict[str, Any]) -> None:
    """Print the figures as lines."""
    measure = "unfamiliarity" if "refused" in figures else "1 less the largest probability"
    say(
        f"rows of no class: {figures['foreign_rows']}; area under the ROC curve"
        f" {figures['area_under_roc']:.4f} by {measure}"
    )
    for share, refused in figures.get("refused", {}).items():
        say(
            f"--refuse {share} refuses {refused['test']:.4f} of the test rows and"
            f" {refused['foreign']:.4f} of the rows of no class"
        )
