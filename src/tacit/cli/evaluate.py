"""`tacit evaluate`: how well a release does on a test set."""

from pathlib import Path
from typing import Literal

from tacit.cli.answers import check_picture
from tacit.cli.exact_evaluation import Exact, evaluate_exactly
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
from tacit.cli.paid_evaluation import Paid, check_paid, check_table_file, evaluate_paid
from tacit.cli.paid_output import is_table_file
from tacit.cli.paid_tables import check_of_tables, evaluate_tables
from tacit.cli.prediction_sets import calibrate, check_alone
from tacit.errors import InputError


def evaluate(
    release: Path,
    store: Path | None = None,
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
    with intervals that cover the noise. Owners of several parts of the records each write a table
    of noisy counts (--part, --out T.json), and --tables T1.json T2.json adds them up.

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
        the columns of a table, a table, whose columns are matched by name. Left out with --tables
        T1.json T2.json, which adds up the paid tables of several owners.
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
        .pdf or .png. With --budget: a picture of the figures by group, or a file .json of the noisy
        tables, for others to add up. With --sets: folder of the new release.
    """
    from tacit.models.answers import checked_share

    reading = {"x": x, "y": y, "persons": persons, "split": split, "any_encoder": any_encoder}
    if store is None:
        check_of_tables(
            paid or Paid(),
            **reading,
            class_sizes=class_sizes,
            public_test=public_test,
            label_separator=label_separator,
            at_least=at_least,
            foreign=foreign,
            sets=sets,
            allow_research=allow_research,
        )
        evaluate_tables(release, paid or Paid(), record=record, out=out, force=force, json=json)
        return
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
    if out is not None and is_table_file(out):
        check_table_file(out, paid or Paid(), force=force)
    else:
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

    options = Exact(
        record=record,
        public_test=public_test,
        label_kind=labels,
        label_separator=label_separator,
        class_sizes=class_sizes,
        at_least=at_least,
        foreign=foreign,
        out=out,
        force=force,
        json=json,
    )
    evaluate_exactly(release, store, reading, options)
