"""`tacit evaluate`: how well a release does on a test set."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.answers import (
    USUAL,
    check_picture,
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
    AnyEncoder,
    Features,
    Force,
    Json,
    LabelMeaning,
    Labels,
    LabelSeparator,
    MaybeOut,
    Persons,
    Split,
)
from tacit.cli.paid_evaluation import Paid, check_paid, check_recordable, evaluate_paid, true_labels
from tacit.cli.prediction_sets import (
    calibrate,
    check_alone,
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
    from tacit.models.metrics import Scores
    from tacit.models.set_figures import SetFigures
    from tacit.releases.release import LabelSetUtility, Release, Utility


def evaluate(
    release: Path,
    store: Path,
    /,
    *,
    class_sizes: Path | None = None,
    record: bool = False,
    public_test: bool = False,
    x: Features = None,
    y: Labels = None,
    labels: LabelMeaning = "value",
    label_separator: LabelSeparator = None,
    persons: Persons = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    at_least: float | None = None,
    foreign: Path | None = None,
    sets: float | None = None,
    score: Literal["probability", "cumulative"] = "probability",
    allow_research: bool = False,
    out: MaybeOut = None,
    paid: Paid | None = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Measure accuracy on labelled rows that were not trained on.

    Of a release of several labels a row, the figures are mean average precision, micro and macro
    F1, the share of rows whose whole set of labels is right, and the calibration error.

    Figures are exact, so those on rows that are not declared public are outside the guarantee and
    for their owner alone: a line, and `outside_guarantee` of --json, say so.
    With --budget they are noisy and protect the test rows, at a price that the ledger of these rows
    counts: accuracy, balanced accuracy and accuracy per class, and by group with --by and --groups,
    with intervals that cover the noise.

    Of exact figures only those on public rows are recorded: rows of a store that was declared
    public when it was made, or of a plain file that --public-test declares public. Rows that a
    ledger covers are private whatever was declared.

    Where the test set has ids of persons, intervals are over persons: rows of one person are alike,
    and an interval that takes them for independent is too short.

    Parameters
    ----------
    release
        Folder of a release.
    store
        The test set: a store's folder, or any file that `tacit import` reads. If the release states
        the columns of a table, a table, whose columns are matched by name.
    class_sizes
        The private training data, whose class sizes decide which classes are small. The minority
        accuracy then shown depends on them; recorded in the card, they are listed as unprotected.
        Of several labels a row, they decide which third of the labels is rare; left out, the sizes
        that the release holds do, or else the test set.
    record
        Write the figures into the release's card; the rows must be public, or the figures paid for.
    public_test
        Declare that all rows and labels of a plain file are public.
    at_least
        Also measure answers of this probability or more, above 0.5: how many rows are answered, and
        how many answers are right, at each level of the tree that the release carries; 0.9 if it
        carries one.
    foreign
        A store or file of rows of no class: measure how well they are told from the test rows, and
        how many of either tacit predict --refuse leaves without a label.
    sets
        Instead of measuring, make prediction sets that hold the right class of at least this share
        of new rows, such as 0.9. The rows are then private calibration records, and the threshold
        of the sets is paid for by --budget. The release carries the sets, by --record or --out.
    score
        With --sets: take the likeliest classes down to one probability (smallest sets), or until
        their probabilities add up.
    allow_research
        With --sets: write sets with research noise, by which the release is stamped.
    out
        A picture of coverage against accuracy, over probabilities from 0.51 to 0.99: a file .svg,
        .pdf or .png. With --budget: a picture of the figures by group. With --sets: folder of the
        new release.
    """
    from tacit.models.answers import checked_share
    from tacit.releases.release import Release

    reading = {"x": x, "y": y, "persons": persons, "split": split, "any_encoder": any_encoder}
    if sets is not None:
        check_alone(
            class_sizes=class_sizes,
            public_test=public_test,
            label_separator=label_separator,
            at_least=at_least,
            foreign=foreign,
        )
        calibrate(
            release,
            store,
            paid or Paid(),
            reading,
            level=sets,
            score=score,
            allow_research=allow_research,
            record=record,
            out=out,
            force=force,
            label_kind=labels,
            json=json,
        )
        return
    if allow_research:
        raise InputError("--allow-research is for prediction sets; add --sets 0.9, or leave it out")

    if public_test and not record:
        raise InputError(
            "--public-test is needed only to record figures; add --record, or leave it out"
        )

    if at_least is not None:
        checked_share(at_least)
    check_picture(out, force=force)
    if paid is not None and check_paid(
        paid,
        class_sizes=class_sizes,
        public_test=public_test,
        at_least=at_least,
        foreign=foreign,
    ):
        evaluate_paid(
            release,
            store,
            paid,
            reading,
            label_kind=labels,
            record=record,
            out=out,
            force=force,
            json=json,
        )
        return

    with shown_progress():
        loaded = Release.load(release).verify()
        if record:
            check_recordable(release)
        data = data_for(
            loaded,
            store,
            x=x,
            y=y,
            persons=persons,
            label_separator=label_separator,
            split=split,
            any_encoder=any_encoder,
        )
        if record:
            _check_public(store, split, data, public_test=public_test)

        if loaded.several:
            if at_least is not None or out is not None:
                raise InputError(
                    f"{release} predicts several labels a row, each by a threshold of its own, so"
                    " --at-least and --out do not apply; leave them out"
                )
            label_set_scores = score_label_sets(
                loaded,
                data,
                store,
                label_kind=labels,
                class_sizes=class_sizes,
                label_separator=label_separator,
            )
        else:
            truth, scores = _score_classes(loaded, data, store, labels, class_sizes)

        found = None
        if at_least is not None or out is not None or loaded.tree is not None:
            probabilities = loaded.predict_proba(data.x)
            found = coverage_of(loaded, probabilities, truth, at_least or USUAL)
        of_sets = None
        if not loaded.several:
            of_sets = figures_of_sets(loaded, data.x, truth, data.persons)
        of_foreign = None
        if foreign is not None:
            of_foreign = foreign_figures(loaded, data.x, foreign, any_encoder=any_encoder)

    n_rows = len(data.x)
    if record:
        utility: Utility | LabelSetUtility
        if loaded.several:
            utility = label_set_utility(label_set_scores, data.identity, n_rows)
        else:
            utility = utility_of(scores, data.identity, n_rows)
        loaded.with_utility(utility).save(release, force=True, allow_research=True)

    # figures are recorded of public rows alone
    outside = not record and _is_private(store, split, data)
    rows = f"{n_rows} rows{number_of_persons(data.persons)}"
    if loaded.several:
        heading = f"{release} on {store}: {rows}"
        show_label_sets(label_set_scores, heading, outside=outside, json=json)
        return
    if out is not None:
        draw_coverage(loaded, probabilities, truth, out, force=force)
    if json:
        _print_json(scores, found, of_foreign, of_sets, outside=outside)
        return
    n_present = len(present_figures(scores.per_class))
    say(f"{release} on {store}: {rows}, {n_present} of {len(loaded.classes)} classes")
    if outside:
        say(OUTSIDE)
    _print_scores(scores)
    if found is not None:
        print_coverage(found)
    if of_sets is not None:
        print_figures_of_sets(of_sets)
    if of_foreign is not None:
        print_foreign(of_foreign)
    if out is not None:
        say(f"{out}: coverage against accuracy")


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


def _print_json(
    scores: "Scores",
    found: "Coverage | None",
    of_foreign: dict[str, Any] | None,
    of_sets: "SetFigures | None",
    *,
    outside: bool,
) -> None:
    """Print the figures that there are as one JSON object; a class without test rows has null."""
    figures = asdict(scores)
    figures["outside_guarantee"] = outside
    if found is not None:
        figures["answers"] = coverage_facts(found)
    if of_foreign is not None:
        figures["foreign"] = of_foreign
    if of_sets is not None:
        figures["sets"] = facts_of_sets(of_sets)
    present = present_figures(scores.per_class)
    figures["per_class"] = {str(label): present.get(str(label)) for label in scores.per_class}
    print_json({name: figure for name, figure in figures.items() if figure is not None})


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


def _check_public(store: Path, split: str | None, data: "Data", *, public_test: bool) -> None:
    """Refuse to record figures on rows that a ledger covers, or that nobody declared public."""
    from tacit.data.locations import located
    from tacit.data.manifest import NAME
    from tacit.data.synthetic import is_synthetic

    if is_synthetic(data.card):
        raise InputError(
            f"{store} is synthetic, drawn from a release, so figures on it measure no release;"
            " leave --record out, or evaluate public records"
        )
    place = located(store, split)
    ledger = ledger_of(None, place, data)
    if ledger is not None:
        fault = (
            f"{store} holds private rows: {ledger.path} counts their uses, so no figure on them is"
            " recorded"
        )
        raise InputError(f"{fault}; leave --record out, or evaluate public rows")
    if data.declared_public:
        return
    fault = (
        f"{store} is not declared public, and figures on private rows would reveal facts about them"
    )
    if (place / NAME).is_file():
        raise InputError(
            f"{fault}; leave --record out, or, only if all its rows and labels are public, "
            f"copy it with tacit import {store} --out COPY --declare-public"
        )
    if not public_test:
        remedy = (
            "leave --record out, or, only if all its rows and labels are public, add --public-test"
        )
        raise InputError(f"{fault}; {remedy}")
