"""Prediction sets on the command line: `tacit evaluate --sets` pays for their threshold, `tacit
predict --sets` writes them, and `tacit evaluate` measures those that a release carries.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import ledger_of, say, tell_of_no_ledger
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import LabelMeaning
from tacit.cli.paid_evaluation import Paid, check_recordable, true_labels
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.models.prediction_sets import Score
    from tacit.models.set_figures import SetFigures
    from tacit.releases.release import Release

ALL_CLASSES = "all classes"
"""The set of all classes, in a text."""


def calibrate(
    release: Path,
    store: Path,
    paid: Paid,
    reading: Mapping[str, Any],
    *,
    level: float,
    score: "Score",
    allow_research: bool,
    record: bool,
    out: Path | None,
    force: bool,
    label_kind: LabelMeaning,
    json: bool,
) -> None:
    """Pay for the threshold of prediction sets, and write the release that carries it; `reading`
    says how the calibration records are read.
    """
    from tacit.data.locations import located
    from tacit.data.synthetic import check_not_synthetic
    from tacit.measure.prediction_sets import calibrate_sets
    from tacit.privacy.unit import Unit
    from tacit.releases.release import Release, check_takes_sets

    target = _target(release, record=record, out=out, force=force)
    check_alone(by=paid.by, groups=paid.groups, tables=paid.tables, part=paid.part)
    check_alone(overlapping=paid.overlapping, moving=paid.moving)
    if paid.budget is None:
        raise InputError(
            f"--sets {level:g} reads private calibration records, which is paid for; add"
            " --budget rho=0.05"
        )
    if paid.noise == "research" and not allow_research:
        raise InputError(
            "--noise research is seeded, so the sets would not be for release; use --noise secure,"
            " or add --allow-research"
        )

    with shown_progress():
        loaded = Release.load(release).verify()
        check_takes_sets(loaded.document, loaded.source)
        data = data_for(loaded, store, **reading)
        check_not_synthetic(data.card, store)
        truth = true_labels(loaded, data, store, label_kind)
        unit = paid.unit or Unit.ADD_REMOVE
        if unit.per_person and data.persons is None:
            fault = f"--unit {unit} needs person ids, and {store} has none"
            raise InputError(
                f"{fault}; name them with --persons FILE or COLUMN, or import them into the store"
            )
        ledger = ledger_of(paid.ledger, located(store, reading["split"]), data)
        with data.places.in_errors():
            calibrated = calibrate_sets(
                loaded,
                data.x,
                truth,
                level=level,
                budget=paid.budget,
                score=score,
                persons=data.persons,
                unit=unit,
                ledger=ledger,
                noise=paid.noise,
                random_state=paid.seed,
            )
        calibrated.save(target, force=record or force, allow_research=True)

    _show(calibrated, target, store, charged=ledger is not None, json=json)


def check_alone(**others: Any) -> None:
    """Refuse options that do not go with `--sets`, by name; those left out are None or False."""
    for name, value in others.items():
        if value is not None and value is not False:
            raise InputError(
                f"--{name.replace('_', '-')} measures a release, and --sets makes one; leave it"
                " out, and measure the new release with tacit evaluate"
            )


def _target(release: Path, *, record: bool, out: Path | None, force: bool) -> Path:
    """Return the folder that will hold the release with its sets, checked before anything is paid
    for.
    """
    from tacit.compute.atomic import check_writable
    from tacit.releases.reading import is_release

    if record == (out is not None):
        raise InputError(
            "--sets makes a release that carries the sets; add --record to write them into the"
            " release itself, or --out FOLDER for a new one"
        )
    if out is not None:
        return check_writable(out, force=force, ours=is_release)
    check_recordable(release)
    return release


def _show(release: "Release", target: Path, store: Path, *, charged: bool, json: bool) -> None:
    """Print the threshold, what it promises and what it cost."""
    from tacit.privacy.guarantee import Guarantee

    sets = release.prediction_sets
    assert sets is not None
    guarantee = Guarantee.from_json(sets.guarantee.model_dump())
    if json:
        facts = {
            "release": str(target),
            "level": sets.level,
            "score": sets.score,
            "threshold": sets.threshold,
            "charged": charged,
        }
        print_json(facts | guarantee_facts(guarantee))
        return

    say(f"{target}: prediction sets of level {sets.level:g}, calibrated on {store}")
    say(sets.rule)
    if not isinstance(sets.threshold, float):
        say(
            "the records are too few for this budget and level, or right classes have too small"
            " probabilities; calibrate on more records"
        )
    say(f"{sets.promise[0].upper()}{sets.promise[1:]}.")
    say(guarantee.statement(opening="The threshold of the sets hides"))
    say(f"{sets.about[0].upper()}{sets.about[1:]}.")
    if not charged:
        tell_of_no_ledger(store)


def set_column(
    release: "Release", members: Any, probabilities: Any, *, separator: str | None
) -> Any:
    """Return the column of sets: texts with a separator, or lists without one."""
    import numpy as np

    order = np.argsort(-probabilities, axis=1, kind="stable")
    classes = release.classes.tolist()
    sets = []
    for places, in_set in zip(order, members, strict=True):
        sets.append([classes[place] for place in places[in_set[places]]])
    if separator is None:
        return sets

    names = [str(label) for label in classes]
    for name in names:
        if not separator or separator in name:
            raise InputError(
                f"label {name!r:.60} holds the separator {separator!r}; choose another with"
                " --label-separator, or write Parquet"
            )
    can_be_named = ALL_CLASSES not in names
    texts = []
    for labels in sets:
        if len(labels) == len(classes) > 1 and can_be_named:
            texts.append(ALL_CLASSES)
        else:
            texts.append(separator.join(map(str, labels)))
    return np.array(texts, dtype=object)


def figures_of_sets(release: "Release", x: Any, truth: Any, persons: Any) -> "SetFigures | None":
    """Measure the sets that a release carries on test rows; None if it carries none."""
    from tacit.data.labels import class_indices
    from tacit.models.set_figures import set_figures

    sets = release.prediction_sets
    if sets is None:
        return None
    _, members = release.set_members(x)
    labels: NDArray[Any] = class_indices(truth, release.classes)
    return set_figures(members, labels, sets.level, persons)


def facts_of_sets(figures: "SetFigures") -> dict[str, Any]:
    """Return the figures of sets for a JSON object."""
    return asdict(figures)


def print_figures_of_sets(figures: "SetFigures") -> None:
    """Print coverage and size of sets."""
    low, high = figures.coverage_interval
    say(
        f"prediction sets hold the right class of {100 * figures.coverage:.1f} % of rows (95 %"
        f" interval {100 * low:.1f} to {100 * high:.1f}), with {100 * figures.level:g} % promised"
        " on average"
    )
    low, high = figures.mean_size_interval
    say(
        f"sets have {figures.mean_size:.2f} classes on average ({low:.2f} to {high:.2f});"
        f" {100 * figures.single:.1f} % have one"
    )
