"""Figures of a release of several labels a row on a test set, to be printed or recorded."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import class_labels, present_figures, say
from tacit.cli.json_output import print_json
from tacit.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.data.imports import Data
    from tacit.models.label_set_metrics import LabelSetScores
    from tacit.models.label_sets import RareBy
    from tacit.releases.release import LabelSetUtility, Release


OUTSIDE = (
    "outside the guarantee: these rows are not declared public, so the figures are exact facts"
    " about them, for their owner alone"
)


def score_label_sets(
    release: "Release",
    data: "Data",
    path: Path,
    *,
    label_kind: str,
    class_sizes: Path | None,
    label_separator: str | None,
) -> "LabelSetScores":
    """Predict the labels of the rows and measure them.

    Labels are rare by the training data of `class_sizes`, else by the sizes that the release holds,
    else by the test set.
    """
    from tacit.models.carried import carried
    from tacit.models.label_set_metrics import evaluate_label_sets

    truth = _label_sets_of(data, path, release.classes.tolist(), label_kind)
    sizes: NDArray[Any] | None = None
    rare_by: RareBy = "counts in the test set"
    posterior = carried(release.arrays)
    if class_sizes is not None:
        sizes = _training_counts(class_sizes, release, label_separator)
        rare_by = "training counts"
    elif posterior is not None:
        sizes = posterior.posterior.sizes
        rare_by = "counts that the release holds"

    return evaluate_label_sets(
        truth,
        release.predict(data.x),
        release.predict_proba(data.x),
        release.classes,
        sizes,
        data.persons,
        rare_by=rare_by,
    )


def _label_sets_of(
    data: "Data", path: Path, classes: list[Any], label_kind: str = "value"
) -> "NDArray[np.bool_]":
    """Return which of the classes each row has, (n, K); rows of one label each are refused."""
    if data.labels is not None and not data.several:
        raise InputError(
            f"{path} has one label a row, and the release predicts several; name what separates"
            " labels with --label-separator, or give a store of several labels a record"
        )
    truth: NDArray[np.bool_] = class_labels(data, path, classes, label_kind)
    return truth


def _training_counts(
    path: Path, release: "Release", label_separator: str | None
) -> "NDArray[np.int64]":
    """Number of training records of each label, in the order of the release's classes."""
    from tacit.data.imports import read_data

    data = read_data(path, role="train", label_separator=label_separator)
    counts: NDArray[np.int64] = _label_sets_of(data, path, release.classes.tolist()).sum(axis=0)
    return counts


def label_set_utility(scores: "LabelSetScores", identity: str, rows: int) -> "LabelSetUtility":
    """Figures on a public test set, for the card."""
    from tacit.models import intervals
    from tacit.releases.provenance import one_line
    from tacit.releases.release import LabelSetUtility
    from tacit.releases.schema import PUBLIC_TEST_SET

    by_person = scores.persons is not None
    how = f"persons, {intervals.BY_PERSON}" if by_person else "rows, Wilson's"
    return LabelSetUtility(
        test_set=one_line(identity),
        rows=rows,
        mean_average_precision=scores.mean_average_precision,
        interval=scores.interval,
        interval_of=(
            "mean average precision over persons" if by_person else "mean average precision"
        ),
        micro_f1=scores.micro_f1,
        macro_f1=scores.macro_f1,
        exact_match=scores.exact_match,
        calibration_error=scores.calibration_error,
        rare_third=scores.rare_third,
        rare_by=scores.rare_by,
        per_label=present_figures(scores.per_label),
        protection=PUBLIC_TEST_SET,
        seeds=f"this one release; the interval is over test {how}{_warning(scores)}",
    )


def _warning(scores: "LabelSetScores") -> str:
    """Words on labels with few test records; empty if there are none."""
    from tacit.models.label_set_metrics import ENOUGH_RECORDS

    if not scores.few_records:
        return ""
    return (
        f"; {scores.few_records} labels have fewer than {ENOUGH_RECORDS} test records, so average"
        " precision is too high on average and its interval may be too short"
    )


def show_label_sets(scores: "LabelSetScores", about: str, *, outside: bool, json: bool) -> None:
    """Print the figures, as one JSON object or after words about the rows."""
    if not json:
        say(f"{about}, {len(present_figures(scores.per_label))} of {len(scores.per_label)} labels")
        if outside:
            say(OUTSIDE)
        _print_figures(scores)
        return

    # a label without test rows has null
    figures = asdict(scores)
    figures["outside_guarantee"] = outside
    figures["per_label"] = {str(label): value for label, value in scores.per_label.items()}
    print_json({name: figure for name, figure in figures.items() if figure is not None})


def _print_figures(scores: "LabelSetScores") -> None:
    """Print the figures with their intervals, and how labels differ."""
    import numpy as np

    from tacit.models import intervals

    by_person = scores.persons is not None
    entity = "persons" if by_person else "rows"
    for name, figure, interval in (
        ("mean average precision", scores.mean_average_precision, scores.interval),
        ("micro F1", scores.micro_f1, scores.micro_f1_interval),
        ("macro F1", scores.macro_f1, scores.macro_f1_interval),
        ("exact match", scores.exact_match, scores.exact_match_interval),
    ):
        low, high = interval
        say(f"{name} {figure:.4f} (95 % interval over test {entity} {low:.4f} to {high:.4f})")
    if by_person:
        say(f"intervals over persons are {intervals.BY_PERSON}")
    say(f"calibration error {scores.calibration_error:.4f}")

    lowest, middle, highest = np.quantile(
        list(present_figures(scores.per_label).values()), [0, 0.5, 1]
    )
    say(
        f"average precision per label: lowest {lowest:.4f}, median {middle:.4f}, highest"
        f" {highest:.4f}"
    )
    if scores.rare_third is not None and scores.rare_third_interval is not None:
        low, high = scores.rare_third_interval
        private = " (private counts)" if scores.rare_by == "training counts" else ""
        say(
            f"rare third {scores.rare_third:.4f} (95 % interval over test {entity} {low:.4f} to"
            f" {high:.4f}; mean average precision of the third of labels that is rarest by"
            f" {scores.rare_by}{private})"
        )
    if scores.few_records:
        say(_warning(scores).removeprefix("; "))
