"""`tacit evaluate --budget`: figures on private test rows, paid for and charged to their ledger."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tacit.cli.common import (
    class_labels,
    ledger_of,
    one_label_each,
    present_figures,
    read_lines,
    tell_of_no_ledger,
)
from tacit.cli.options import LabelMeaning, Noise, PriceBudget, PriceUnit
from tacit.cli.paid_output import show_paid, tell_of_outputs, write_output
from tacit.compute.progress_display import shown_progress
from tacit.data.locations import located
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.measure.evaluation import Evaluation
    from tacit.measure.paid_figures import Figures
    from tacit.privacy.ledger import Ledger
    from tacit.releases.measured import PaidUtility
    from tacit.releases.release import Release


@Parameter(name="*")
@dataclass(frozen=True)
class Paid:
    """Options of a paid evaluation.

    Parameters
    ----------
    by
        A column that says to which group each test row belongs: of the table, where it is then no
        feature unless the release takes it by name, or of the metadata of the store; or
        TABLE#COLUMN, or a file with one value a row. Figures by group cost nothing more.
    groups
        The declared values of that column: a file with one a line, or values with commas between
        them. Rows of any other value are the group "other".
    tables
        What is counted in each class: right, predicted (the confusion table) or confidence (the
        calibration), with commas between them; all share the budget. Without test rows: files of
        tables that --out wrote, to add up.
    part
        Declared name of the part of all records that the test rows are, such as "hospital A". It is
        charged to the ledger by that name, and --out T.json writes a table for others to add up.
    overlapping
        With --tables T1.json T2.json: a record may be in several parts, so their costs add up.
        Otherwise parts of different names are declared to have no record (under a unit per person:
        no person) in common.
    moving
        With --tables T1.json T2.json: a replaced record may belong to another part than before.
    ledger
        The ledger of the test rows to charge; by default the one beside them, if there is one.
    seed
        Seed of research noise.
    """

    budget: PriceBudget = None
    by: str | None = None
    groups: str | None = None
    tables: Annotated[tuple[str, ...] | None, Parameter(name="--tables", consume_multiple=True)] = (
        None
    )
    part: str | None = None
    overlapping: bool = False
    moving: bool = False
    unit: PriceUnit = None
    ledger: Path | None = None
    noise: Noise = "secure"
    seed: int | None = None


def check_paid(paid: Paid, **unpaid: Any) -> bool:
    """Tell whether figures are paid for; refuse options that do not go with it.

    `unpaid` are options of an evaluation that is not paid for, by name.
    """
    if paid.budget is None:
        tables = paid.tables or ()
        if any(name.endswith(".json") for name in tables):
            raise InputError(
                f"--tables {' '.join(tables)} adds up tables that owners measured, and takes"
                " no test set; leave the test set out"
            )
        for option in fields(paid):
            if getattr(paid, option.name) != option.default:
                raise InputError(
                    f"--{option.name} is for figures that are paid for; add --budget, such as"
                    " --budget rho=.05, or leave it out"
                )
        return False

    for name, value in unpaid.items():
        if value:
            raise InputError(
                f"--{name.replace('_', '-')} does not go with --budget, whose figures are those of"
                " one paid table; leave one of them out"
            )
    for name in ("overlapping", "moving"):
        if getattr(paid, name):
            raise InputError(
                f"--{name} is for tables of several parts; leave it out, and give it with --tables"
                " T1.json T2.json"
            )
    if paid.noise == "research" and paid.seed is None:
        raise InputError("--noise research needs a seed; add --seed 0")
    return True


def check_table_file(out: Path, paid: Paid, *, force: bool) -> None:
    """Refuse a file of tables that could not be written or added up, before anything is read."""
    from tacit.compute.atomic import check_writable

    if paid.budget is None:
        raise InputError(
            f"--out {out} is a file of noisy tables, which are paid for; say by --budget what they"
            " may cost"
        )
    if paid.part is None:
        raise InputError(
            f"--out {out} is a file of tables for others to add up, which names the part of the"
            ' records; add --part, such as --part "hospital A"'
        )
    if _is_not_for_release(paid):
        raise InputError(
            f"--out {out} needs a finite budget and noise that is not seeded; leave it out, or pay"
            " for tables that may be handed out"
        )
    check_writable(out, force=force)


def _is_not_for_release(paid: Paid) -> bool:
    """Tell whether figures would have seeded noise, or none."""
    from tacit.privacy.budget import Budget as PrivacyBudget

    return paid.noise == "research" or PrivacyBudget.parse(paid.budget or "").infinite


def check_recordable(release: Path) -> None:
    """Refuse to record figures in a release that was published."""
    from tacit.releases.reading import is_release

    if not is_release(release):
        fault = f"{release} was published, or is in git, so nothing is recorded in it"
        raise InputError(f"{fault}; record in the release that it was made from, then publish that")


def true_labels(release: "Release", data: "Data", path: Path, label_kind: LabelMeaning) -> Any:
    """Return the labels of test rows, as values of the release's classes."""
    reason = "the release predicts one; give rows of one label each"
    truth = one_label_each(data, path, reason)
    if truth.dtype.kind == release.classes.dtype.kind:
        return truth
    return class_labels(data, path, release.classes.tolist(), label_kind)


def evaluate_paid(
    release: Path,
    store: Path,
    paid: Paid,
    rows: Mapping[str, Any],
    *,
    label_kind: LabelMeaning,
    record: bool,
    out: Path | None,
    force: bool,
    json: bool,
) -> None:
    """Measure a release on private rows and print the figures; `rows` says how they are read."""
    from tacit.data.synthetic import check_not_synthetic
    from tacit.releases.release import Release

    with shown_progress():
        loaded = Release.load(release).verify()
        if loaded.several:
            raise InputError(
                f"{release} predicts several labels a row, and a paid evaluation counts one; leave"
                " --budget out"
            )
        if record:
            _check_record(loaded, release, paid)
        data, by = _data_and_groups(loaded, store, paid, rows)
        truth = true_labels(loaded, data, store, label_kind)
        if record:
            check_not_synthetic(data.card, store)
        ledger = ledger_of(paid.ledger, located(store, rows["split"]), data)
        with data.places.in_errors():
            result = paid_figures(loaded, data, truth, by, paid, ledger)

    if record:
        utility = utility_of(result, data.identity, paid.by)
        loaded.with_utility(utility).save(release, force=True, allow_research=True)
    heading = f"{release} on {store}: private rows, {len(loaded.classes)} classes"
    write_output(result, out, force=force)
    charged = ledger is not None
    show_paid(result, heading, charged=charged, json=json)
    if not json:
        if not charged:
            tell_of_no_ledger(store)
        tell_of_outputs(release, out, record=record)


def _check_record(loaded: "Release", folder: Path, paid: Paid) -> None:
    """Refuse, before a charge, to record what a release cannot state."""
    check_states_paid_figures(loaded, folder)
    if _is_not_for_release(paid):
        raise InputError(
            "--record needs a finite budget and noise that is not seeded; leave --record out, or"
            " give --budget rho=.05 without --noise research"
        )


def check_states_paid_figures(loaded: "Release", folder: Path) -> None:
    """Refuse to record figures in a release that was published, or that cannot state them."""
    from tacit.releases.measured import PAID_SINCE

    check_recordable(folder)
    if loaded.document.version < PAID_SINCE:
        raise InputError(
            f"{folder} is of version {loaded.document.version}, and figures that were paid for are"
            f" stated from version {PAID_SINCE} on; fit it again, or leave --record out"
        )


def utility_of(result: "Evaluation", identity: str, by: str | None) -> "PaidUtility":
    """Return the figures of a paid evaluation as a release states them."""
    from tacit.releases.fields import NOT_STATED, Recorded
    from tacit.releases.measured import CombinedUtility, GroupUtility, PaidUtility
    from tacit.releases.provenance import one_line
    from tacit.releases.statement import statement_of_figures

    overall = result.overall
    intervals = overall.class_intervals()
    utility = PaidUtility(
        **_stated(overall),
        test_set=one_line(identity),
        per_class=present_figures(overall.per_class),
        per_class_intervals={str(label): ends for label, ends in intervals.items()},
        grouped_by=one_line(NOT_STATED if by is None else Path(by).name),
        groups=tuple(
            GroupUtility(name=one_line(name), **_stated(figures))
            for name, figures in result.groups.items()
        ),
        # research noise is refused beforehand
        noise="opendp" if result.noise == "opendp" else "secure",
        guarantee=Recorded.of(result.guarantee_),
        statement=statement_of_figures(result.guarantee_, result.noise),
    )
    # a document states the parts where figures are of several
    if result.combination is None or len(result.parts) == 1:
        return utility
    return CombinedUtility(**dict(utility), combination=result.combination)


def _stated(figures: "Figures") -> dict[str, Any]:
    """Return the figures of all records, or of a group, as a release states them."""
    from tacit.releases.measured import HIDDEN

    stated: dict[str, Any] = {"records": figures.records}
    for name in ("accuracy", "balanced_accuracy"):
        value = getattr(figures, name)
        stated[name] = HIDDEN if math.isnan(value) else value
    stated["accuracy_interval"] = figures.interval("accuracy")
    stated["interval"] = figures.interval("balanced_accuracy")
    return stated


def paid_figures(
    release: "Release",
    data: "Data",
    truth: Any,
    by: Any,
    paid: Paid,
    ledger: "Ledger | None",
) -> "Evaluation":
    """Measure a release on private rows; the ledger is charged before noise is drawn."""
    from tacit.measure.evaluating import evaluate

    return evaluate(
        release,
        data.x,
        truth,
        budget=paid.budget or "",
        persons=data.persons,
        by=by,
        groups=None if paid.groups is None else _declared_groups(paid.groups),
        tables=_kinds_of_tables(paid),
        unit=paid.unit or "add-remove",
        ledger=ledger,
        noise=paid.noise,
        random_state=paid.seed,
        part=paid.part,
    )


def _kinds_of_tables(paid: Paid) -> list[str]:
    """Return what `--tables` counts in each class."""
    if paid.tables is None:
        return ["right"]
    return ",".join(paid.tables).split(",")


def _data_and_groups(
    release: "Release", store: Path, paid: Paid, rows: Mapping[str, Any]
) -> "tuple[Data, Any]":
    """Read the test rows, and the value of each by which it belongs to a group; None without
    groups.
    """
    from tacit.cli.table_rows import data_for, grouped_data_for
    from tacit.data.tables import is_table, open_table

    if (paid.by is None) != (paid.groups is None):
        raise InputError(
            "--by names a column and --groups its declared values, since those that occur are"
            " private; give both, or neither"
        )
    if paid.by is None:
        return data_for(release, store, **rows), None

    file, mark, column = paid.by.rpartition("#")
    if mark and is_table(Path(file)):
        data = data_for(release, store, **rows)
        return data, _joined(open_table(Path(file)).column(column), data)
    if Path(paid.by).is_file():
        return data_for(release, store, **rows), _lines(Path(paid.by), "by")
    return grouped_data_for(release, store, paid.by, **rows)


def _joined(values: list[Any], data: "Data") -> list[Any]:
    """Return the values of a table's records in the order of the rows that were made of them.

    A store states positions in its source where they differ from its rows; without them, or where
    the table is too short to be the source, its records are the rows.
    """
    import numpy as np

    positions = data.origin.rows
    is_source = np.array_equal(positions, np.arange(len(positions)))
    if is_source or positions.max() >= len(values):
        return values
    return [values[position] for position in positions]


def _declared_groups(text: str) -> list[str]:
    """Return the groups of `--groups`: the lines of a file, or values with commas between them."""
    if Path(text).is_file():
        return _lines(Path(text), "groups")
    return [name.strip() for name in text.split(",")]


def _lines(path: Path, option: str) -> list[str]:
    try:
        return read_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--{option} {path} is not a readable text file; give one value a line"
        ) from error
