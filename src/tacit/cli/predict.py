"""`tacit predict`: labels for new rows, from a release alone."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import STANDARD_OUTPUT, check_outside, say_done, text_file
from tacit.cli.options import AnyEncoder, Features, Force, Out, Split
from tacit.cli.prediction_sets import set_column
from tacit.cli.public_rows import check_uncovered
from tacit.cli.table_rows import data_for
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.releases.release import Release

    Columns = dict[str, NDArray[Any]]


def predict(
    release: Path,
    store: Path,
    /,
    *,
    out: Out,
    x: Features = None,
    split: Split = None,
    any_encoder: AnyEncoder = False,
    probabilities: bool = False,
    at_least: float | None = None,
    refuse: float | None = None,
    familiar: Path | None = None,
    foreign: Path | None = None,
    sets: bool = False,
    label_separator: str | None = None,
    force: Force = False,
) -> None:
    """Predict the class of every row and write them as a table.

    Parameters
    ----------
    release
        Folder of a release.
    store
        Rows: a store's folder, or any file that `tacit import` reads. If the release states the
        columns of a table, a table, whose columns are matched by name.
    out
        A .parquet or .csv file with the columns row and label, or - for CSV on standard output. A
        row is the position in the source
        that the store was made from, counted before records were left out; metadata.parquet of the
        store has the name there, if any. Of a release of several labels a row, the column is
        labels: in CSV the labels of a row with a separator between them, empty if it has none, and
        in Parquet a list.
    probabilities
        Add a column for each class with its probability, named after the class.
    at_least
        Answer only where this probability is reached, above 0.5: by the class, or else, if the
        release carries a tree, by the deepest node above it that reaches it. The columns are then
        row, label (empty, or -1 beside whole numbers, without an answer), level and probability.
    refuse
        Leave rows without a label that look like none of the classes, such that about this share of
        rows like those trained on has none. Comes before --at-least.
    familiar
        A store or file of rows like those trained on, from which the share is counted. A release of
        auto simulates such rows; others need them. They must be public, or records that no
        guarantee covers.
    foreign
        A store or file of public rows of no class, like those to be refused; with a release of auto
        they sharpen the measure.
    sets
        Add a column set with the classes that each row may have, the likeliest first, by the
        prediction sets that the release carries: a list in Parquet, in CSV the classes with a
        separator between them, or "all classes".
    label_separator
        Between the labels of a row, or of its set, in a CSV file; | if it is left out. tacit import
        --label-separator reads such a column.
    """
    import numpy as np

    from tacit.cli.answers import answer_columns
    from tacit.compute.atomic import check_writable
    from tacit.data.locations import located
    from tacit.models.answers import check_distinct, checked_share
    from tacit.releases.refusing import checked_refusal
    from tacit.releases.release import Release

    if at_least is not None:
        checked_share(at_least)
    if refuse is not None:
        checked_refusal(refuse)
    elif familiar is not None or foreign is not None:
        raise InputError(
            "--familiar and --foreign say which rows to refuse; add --refuse 0.05, or leave them"
            " out"
        )
    kind = ".csv" if out == STANDARD_OUTPUT else out.suffix
    if kind not in WRITERS:
        raise InputError(
            f"{out} must end in {' or '.join(WRITERS)}; give a file name such as {out.stem}.parquet"
        )
    if out != STANDARD_OUTPUT:
        check_outside(out, release)
        check_writable(out, force=force)
    with shown_progress():
        loaded = Release.load(release).verify()
        data = data_for(loaded, store, x=x, split=split, any_encoder=any_encoder)
        # names in the source are left out, since folders may be labels or persons
        columns: dict[str, Any] = {"row": data.origin.rows}
        if not loaded.several and not sets and label_separator is not None:
            raise InputError(
                f"--label-separator {label_separator} is for releases of several labels a row, and"
                f" {release} predicts one; leave it out"
            )
        of_classes = None
        members = None
        if sets:
            # rows are not scored twice
            of_classes, members = loaded.set_members(data.x)
        if probabilities:
            _check_columns(loaded, out, with_levels=at_least is not None, with_sets=sets)
            if of_classes is None:
                of_classes = loaded.predict_proba(data.x)
        refusal: dict[str, Any] = {}
        if refuse is not None:
            check_distinct(loaded.classes)
            refusal = {"refuse": refuse}
            for option, path in (("familiar", familiar), ("foreign", foreign)):
                if path is not None:
                    rows = data_for(loaded, path, any_encoder=any_encoder)
                    check_uncovered(None, located(path), rows)
                    refusal[option] = rows.x
        if at_least is not None:
            columns |= answer_columns(loaded.answers(data.x, at_least=at_least, **refusal))
        elif refuse is not None:
            columns["label"] = loaded.predict(data.x, **refusal)
        elif loaded.several:
            label_sets = _label_sets(loaded, data.x, of_classes)
            columns["labels"] = _as_written(label_sets, kind, label_separator)
        elif of_classes is not None:
            columns["label"] = loaded.classes[np.argmax(of_classes, axis=1)]
        else:
            columns["label"] = loaded.predict(data.x)
        if members is not None:
            separator = _separator(kind, label_separator)
            columns["set"] = set_column(loaded, members, of_classes, separator=separator)
        if probabilities and of_classes is not None:
            names = [str(label) for label in loaded.classes]
            columns |= dict(zip(names, of_classes.T, strict=True))
        with text_file(out, force=force) as temporary:
            WRITERS[kind](columns, temporary)
    say_done(out, f"{len(data.x)} rows")


def _check_columns(release: "Release", out: Path, *, with_levels: bool, with_sets: bool) -> None:
    """Refuse columns of probabilities that have the names of other columns."""
    names = [str(label) for label in release.classes]
    other_names = {"row", "labels" if release.several else "label"}
    if with_levels:
        other_names |= {"level", "probability"}
    if with_sets:
        other_names.add("set")
    for name in other_names & set(names):
        fault = f"class {name!r} has the name of another column of {out}"
        raise InputError(f"{fault}; leave --probabilities out, or use Release.predict_proba")


def _label_sets(release: "Release", x: Any, probabilities: Any) -> list[list[Any]]:
    """Return the labels of each row, in the order of the classes."""
    import numpy as np

    from tacit.models.label_sets import stated_label_sets

    if probabilities is None:
        chosen = release.predict(x)
    else:
        # rows are not scored twice
        rule = stated_label_sets(release.arrays)
        chosen = probabilities >= rule.thresholds  # type: ignore[union-attr]  # it has several
    classes = release.classes.tolist()
    return [[classes[place] for place in np.flatnonzero(row)] for row in chosen]


def _as_written(sets: list[list[Any]], kind: str, separator: str | None) -> Any:
    """Return the column of labels: lists in Parquet, texts in CSV."""
    import numpy as np

    separator = _separator(kind, separator)
    if separator is None:
        return sets

    texts = []
    for labels in sets:
        names = [str(label) for label in labels]
        for name in names:
            if separator in name or not separator:
                raise InputError(
                    f"label {name!r:.60} holds the separator {separator!r}; choose another with"
                    " --label-separator, or write Parquet"
                )
        texts.append(separator.join(names))
    return np.array(texts, dtype=object)


def _separator(kind: str, separator: str | None) -> str | None:
    """Return the separator of labels in texts; None in Parquet, which holds lists."""
    from tacit.models.label_sets import SEPARATOR

    if kind != ".parquet":
        return SEPARATOR if separator is None else separator
    if separator is not None:
        raise InputError(
            f"--label-separator {separator} is for CSV, and Parquet holds lists; leave it out"
        )
    return None


def _write_csv(columns: "Columns", path: Path) -> None:
    """Write a table as CSV; pyarrow, which would take longer to import than most tables to write,
    is not used.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_parquet(columns: "Columns", path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


WRITERS = {".parquet": _write_parquet, ".csv": _write_csv}
