"""Output of `tacit evaluate` with paid figures: what is printed, drawn and written."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import say
from tacit.cli.json_output import guarantee_facts, print_json

if TYPE_CHECKING:
    from tacit.measure.evaluation import Evaluation
    from tacit.measure.paid_figures import Figures

TABLE_ENDING = ".json"
"""Of a file of noisy tables."""


def is_table_file(out: Path | None) -> bool:
    """Tell whether an output is a file of noisy tables, and no picture."""
    return out is not None and out.suffix == TABLE_ENDING


def write_output(result: "Evaluation", out: Path | None, *, force: bool) -> None:
    """Write the noisy tables, or draw the figures by group."""
    if out is None:
        return
    if is_table_file(out):
        result.save(out, force=force)
    else:
        _draw(result, out, force=force)


def tell_of_outputs(release: Path, out: Path | None, *, record: bool) -> None:
    """Say what was written."""
    if record:
        tell_of_record(release)
    if is_table_file(out):
        say(f"{out}: the noisy tables; tacit evaluate {release} --tables {out} ... adds them up")
    elif out is not None:
        say(f"{out}: the figures by group")


def tell_of_record(release: Path) -> None:
    """Say where the figures were written."""
    say(f"{release}: the figures are recorded in item 15 of its card")


def _draw(result: "Evaluation", out: Path, *, force: bool) -> None:
    from tacit.compute.atomic import atomic_file
    from tacit.report.evaluations import evaluation_image

    image = evaluation_image(result, out.suffix.removeprefix("."))
    with atomic_file(out, force=force) as temporary:
        temporary.write_bytes(image)


def show_paid(result: "Evaluation", heading: str, *, charged: bool, json: bool) -> None:
    """Print the figures with their intervals, then what they cost."""
    if json:
        facts = _facts(result.overall)
        facts["groups"] = {name: _facts(figures) for name, figures in result.groups.items()}
        if result.parts:
            facts["parts"] = [row.model_dump(mode="json") for row in result.parts]
        facts["noise"] = result.noise
        facts["charged"] = charged
        print_json(facts | guarantee_facts(result.guarantee_))
        return

    say(heading)
    _print_figures(result.overall, "")
    shown = [share for share in result.per_class.values() if share == share]
    if shown:
        shown.sort()
        say(
            f"per class: lowest {shown[0]:.4f}, median {shown[len(shown) // 2]:.4f}, highest"
            f" {shown[-1]:.4f}"
        )
    hidden = result.overall.hidden_classes
    if hidden:
        say(f"noise hides whether {hidden} of {len(result.classes)} classes have rows")
    for name, figures in result.groups.items():
        _print_figures(figures, f"{name}: ")
    say("intervals at 95 % cover the sampling of the test rows and the noise")
    say(result.statement())


def _print_figures(figures: "Figures", prefix: str) -> None:
    for name, label in (("accuracy", "accuracy"), ("balanced_accuracy", "balanced accuracy")):
        value = getattr(figures, name)
        low, high = figures.interval(name)
        if value == value:
            say(f"{prefix}{label} {value:.4f} (95 % interval {low:.4f} to {high:.4f})")
        else:
            say(f"{prefix}{label} hidden by the noise (95 % interval {low:.4f} to {high:.4f})")
    _print_clear(figures, prefix)


def _print_clear(figures: "Figures", prefix: str) -> None:
    """Print balanced accuracy over the classes whose size noise does not hide, if it hides some."""
    n_clear = len(figures.clear_classes)
    if 1 < n_clear < len(figures.classes):
        low, high = figures.interval("clear_balanced_accuracy")
        say(
            f"{prefix}balanced accuracy over the {n_clear} of {len(figures.classes)} classes whose"
            f" size noise does not hide {figures.clear_balanced_accuracy:.4f} (95 % interval"
            f" {low:.4f} to {high:.4f})"
        )


def _facts(figures: "Figures") -> dict[str, Any]:
    """Return figures by the names that an evaluation without a price has for them."""
    intervals: Mapping[Any, tuple[float, float]] = figures.class_intervals()
    return {
        "accuracy": figures.accuracy,
        "accuracy_interval": figures.interval("accuracy"),
        "balanced": figures.balanced_accuracy,
        "interval": figures.interval("balanced_accuracy"),
        "clear_classes": len(figures.clear_classes),
        "clear_balanced": figures.clear_balanced_accuracy,
        "clear_interval": figures.interval("clear_balanced_accuracy"),
        "per_class": {str(label): share for label, share in figures.per_class.items()},
        "per_class_intervals": {str(label): ends for label, ends in intervals.items()},
        "records": figures.records,
    }
