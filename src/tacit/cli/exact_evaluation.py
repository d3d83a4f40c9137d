"""`tacit evaluate` without a price: exact figures on test rows, which are recorded of public rows
alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.cli.answers import (
    USUAL,
    coverage_facts,
    coverage_of,
    draw_coverage,
    print_coverage,
)
from tacit.cli.common import (
    is_covered,
    ledger_of,
    number_of_persons,
    one_label_each,
    present_figures,
    say,
    utility_of,
)
from tacit.cli.json_output import print_json
from tacit.cli.label_set_figures import (
    OUTSIDE,
    label_set_utility,
    score_label_sets,
    show_label_sets,
)
from tacit.cli.options import (
    LabelMeaning,
)
from tacit.cli.paid_evaluation import check_recordable, true_labels
from tacit.cli.paid_output import tell_of_record
from tacit.cli.prediction_sets import (
    facts_of_sets,
    figures_of_sets,
    print_figures_of_sets,
)
from tacit.cli.refusing import foreign_figures, print_foreign
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.data.imports import Data
    from tacit.models.coverage import Coverage
    from tacit.models.label_set_metrics import LabelSetScores
    from tacit.models.metrics import Scores
    from tacit.models.set_figures import SetFigures
    from tacit.releases.release import LabelSetUtility, Release, Utility


@dataclass(frozen=True)
class Exact:
    """Options of an evaluation without a price; the verb documents them."""

    record: bool
    public_test: bool
    label_kind: LabelMeaning
    label_separator: str | None
    class_sizes: Path | None
    at_least: float | None
    foreign: Path | None
    out: Path | None
    force: bool
    json: bool


class ClassFigures(NamedTuple):
    """Figures of a release of one label a row; None for what was not asked for."""

    truth: "NDArray[Any]"
    """The true class of each row, (n,)."""
    scores: "Scores"
    probabilities: "NDArray[Any] | None"
    """Of each row and class, (n, C), for the picture of coverage."""
    coverage: "Coverage | None"
    sets: "SetFigures | None"
    foreign: dict[str, Any] | None


def evaluate_exactly(folder: Path, store: Path, rows: Mapping[str, Any], options: Exact) -> None:
    """Measure a release on test rows, record the figures if asked to, and print them.

    `rows` says how the test rows are read.
    """
    from tacit.releases.release import Release

    split = rows["split"]
    with shown_progress():
        release = Release.load(folder).verify()
        if options.record:
            check_recordable(folder)
        data = data_for(release, store, label_separator=options.label_separator, **rows)
        if options.record:
            _check_public(
                store, split, data, public_test=options.public_test, several=release.several
            )

        figures: ClassFigures | LabelSetScores
        if release.several:
            figures = _label_set_figures(release, folder, data, store, options)
        else:
            any_encoder = rows["any_encoder"]
            figures = _class_figures(release, data, store, options, any_encoder=any_encoder)

    if options.record:
        _record(release, folder, data, figures)

    # figures are recorded of public rows alone
    outside = not options.record and _is_private(store, split, data)
    heading = f"{folder} on {store}: {len(data.x)} rows{number_of_persons(data.persons)}"
    if isinstance(figures, ClassFigures):
        _show(release, figures, heading, options, outside=outside)
    else:
        show_label_sets(figures, heading, outside=outside, json=options.json)
    if options.record and not options.json:
        tell_of_record(folder)


def _label_set_figures(
    release: "Release", folder: Path, data: "Data", store: Path, options: Exact
) -> "LabelSetScores":
    """Measure a release of several labels a row."""
    unsuited = [options.at_least, options.out, options.foreign]
    if any(option is not None for option in unsuited):
        raise InputError(
            f"{folder} predicts several labels a row, each by a threshold of its own, so"
            " --at-least, --out and --foreign do not apply; leave them out"
        )
    return score_label_sets(
        release,
        data,
        store,
        label_kind=options.label_kind,
        class_sizes=options.class_sizes,
        label_separator=options.label_separator,
    )


def _class_figures(
    release: "Release", data: "Data", store: Path, options: Exact, *, any_encoder: bool
) -> ClassFigures:
    """Measure a release of one label a row."""
    truth, scores = _score_classes(release, data, store, options.label_kind, options.class_sizes)

    probabilities = None
    coverage = None
    asks_for_coverage = options.at_least is not None or options.out is not None
    if asks_for_coverage or release.tree is not None:
        probabilities = release.predict_proba(data.x)
        coverage = coverage_of(release, probabilities, truth, options.at_least or USUAL)

    foreign = None
    if options.foreign is not None:
        foreign = foreign_figures(release, data.x, options.foreign, any_encoder=any_encoder)
    return ClassFigures(
        truth=truth,
        scores=scores,
        probabilities=probabilities,
        coverage=coverage,
        sets=figures_of_sets(release, data.x, truth, data.persons),
        foreign=foreign,
    )


def _record(
    release: "Release", folder: Path, data: "Data", figures: "ClassFigures | LabelSetScores"
) -> None:
    """Write the figures into the card of the release."""
    utility: Utility | LabelSetUtility
    if isinstance(figures, ClassFigures):
        utility = utility_of(figures.scores, data.identity, len(data.x))
    else:
        utility = label_set_utility(figures, data.identity, len(data.x))
    release.with_utility(utility).save(folder, force=True, allow_research=True)


def _show(
    release: "Release", figures: ClassFigures, heading: str, options: Exact, *, outside: bool
) -> None:
    """Draw the picture of coverage if asked to, and print the figures."""
    if options.out is not None:
        draw_coverage(
            release, figures.probabilities, figures.truth, options.out, force=options.force
        )
    if options.json:
        _print_json(figures, outside=outside)
        return

    n_present = len(present_figures(figures.scores.per_class))
    say(f"{heading}, {n_present} of {len(release.classes)} classes")
    if outside:
        say(f"{OUTSIDE}; --budget rho=.05 pays for figures that may be shown")
    _print_scores(figures.scores)
    if figures.coverage is not None:
        print_coverage(figures.coverage)
    if figures.sets is not None:
        print_figures_of_sets(figures.sets)
    if figures.foreign is not None:
        print_foreign(figures.foreign)
    if options.out is not None:
        say(f"{options.out}: coverage against accuracy")


def _score_classes(
    release: "Release", data: "Data", path: Path, label_kind: LabelMeaning, class_sizes: Path | None
) -> "tuple[NDArray[Any], Scores]":
    """Return the true classes, and how often those that are predicted are right."""
    from tacit.models import metrics

    truth = true_labels(release, data, path, label_kind)
    sizes = None
    if class_sizes is not None:
        sizes = _class_sizes(class_sizes, release.classes)
    predicted = release.predict(data.x)
    with data.places.in_errors():
        scores = metrics.evaluate(truth, predicted, release.classes, sizes, data.persons)
    return truth, scores


def _class_sizes(path: Path, classes: "NDArray[Any]") -> "NDArray[np.int64]":
    """Number of training records of each class, in the order of the release's classes."""
    import numpy as np

    from tacit.data.imports import read_data

    reason = "a record counts in several classes; leave --class-sizes out"
    labels = one_label_each(read_data(path, role="train"), path, reason)
    return np.array([(labels == label).sum() for label in classes])


def _print_json(figures: ClassFigures, *, outside: bool) -> None:
    """Print the figures that there are as one JSON object; a class without test rows has null."""
    per_class = figures.scores.per_class
    facts = asdict(figures.scores)
    facts["outside_guarantee"] = outside
    if figures.coverage is not None:
        facts["answers"] = coverage_facts(figures.coverage)
    facts["foreign"] = figures.foreign
    if figures.sets is not None:
        facts["sets"] = facts_of_sets(figures.sets)
    present = present_figures(per_class)
    facts["per_class"] = {str(label): present.get(str(label)) for label in per_class}
    print_json({name: fact for name, fact in facts.items() if fact is not None})


def _print_scores(scores: "Scores") -> None:
    """Print the accuracies with their intervals, and how they differ between classes."""
    import numpy as np

    from tacit.models import intervals

    by_person = scores.persons is not None
    entity = "persons" if by_person else "rows"
    for name, accuracy, (low, high) in (
        ("accuracy", scores.accuracy, scores.accuracy_interval),
        ("balanced accuracy", scores.balanced, scores.interval),
    ):
        interval = f"95 % interval over test {entity} {low:.4f} to {high:.4f}"
        say(f"{name} {accuracy:.4f} ({interval})")
    if by_person:
        say(f"intervals over persons are {intervals.BY_PERSON}")

    recalls = list(present_figures(scores.per_class).values())
    lowest, middle, highest = np.quantile(recalls, [0, 0.5, 1])
    say(f"per class: lowest {lowest:.4f}, median {middle:.4f}, highest {highest:.4f}")
    if scores.minority is not None:
        say(
            f"minority accuracy {scores.minority:.4f} (25 % smallest training classes; depends on"
            " private counts)"
        )


def _is_private(store: Path, split: str | None, data: "Data") -> bool:
    """Tell whether the rows are not declared public, or a ledger counts what is spent on them."""
    from tacit.data.locations import located
    from tacit.data.synthetic import is_synthetic

    if is_synthetic(data.card):
        return False
    return not data.declared_public or is_covered(located(store, split), data)


def _check_public(
    store: Path, split: str | None, data: "Data", *, public_test: bool, several: bool
) -> None:
    """Refuse to record figures on rows that a ledger covers, or that nobody declared public.

    Where the release predicts several labels a row, no figures can be paid for.
    """
    from tacit.data.locations import located
    from tacit.data.manifest import NAME
    from tacit.data.synthetic import is_synthetic

    if is_synthetic(data.card):
        raise InputError(
            f"{store} is synthetic, drawn from a release, so figures on it measure no release;"
            " leave --record out, or evaluate public records"
        )
    remedy = "leave --record out"
    if not several:
        remedy = "pay for figures with --budget rho=.05, leave --record out"
    place = located(store, split)
    ledger = ledger_of(None, place, data)
    if ledger is not None:
        fault = (
            f"{store} holds private rows: {ledger.path} counts their uses, so no exact figure on"
            " them is recorded"
        )
        raise InputError(f"{fault}; {remedy}, or evaluate public rows")
    if data.declared_public:
        return
    fault = (
        f"{store} is not declared public, and figures on private rows would reveal facts about them"
    )
    if (place / NAME).is_file():
        raise InputError(
            f"{fault}; {remedy}, or, only if all its rows and labels are public,"
            f" copy it with tacit import {store} --out COPY --declare-public"
        )
    if not public_test:
        raise InputError(
            f"{fault}; {remedy}, or, only if all its rows and labels are public, add --public-test"
        )
