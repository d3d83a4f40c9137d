"""`tacit forecast`: the accuracy to expect, before any private record is touched."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.answers import check_picture
from tacit.cli.common import read_classes, say
from tacit.cli.json_output import print_json
from tacit.cli.learner import check_options, known_method, literal
from tacit.cli.options import (
    Features,
    Force,
    Json,
    Labels,
    MaybeOut,
    Method,
    Split,
    Unit,
)
from tacit.compute.progress_display import shown_progress

if TYPE_CHECKING:
    from tacit.measure.forecast_result import Forecast, ForecastRow

STAND_IN = {"labels": "classes of the public rows", "clusters": "clusters of the public rows"}


def forecast(
    method: Method,
    /,
    *,
    public: Path,
    classes: str,
    records: int,
    imbalance: float = 1.0,
    budgets: str = "epsilon=0.1,epsilon=0.5,epsilon=2",
    unit: Unit = None,
    pseudo_classes: Literal["both", "labels", "clusters"] = "both",
    spread: float | None = None,
    records_per_person: int = 1,
    delta: float = 1e-6,
    seeds: int = 3,
    jobs: int | None = None,
    x: Features = None,
    y: Labels = None,
    split: Split = None,
    folder: Path | None = None,
    out: MaybeOut = None,
    json: Json = False,
    force: Force = False,
    **parameters: str,
) -> None:
    """Forecast the accuracy of a fit from public facts and public rows alone.

    Classes of the public rows, and clusters of them, stand in for the private classes; the method
    learns them with research noise. No private record is read and nothing is charged. What you
    state about the private records is declared: nothing protects it, so state what is public, or a
    guess.

    Parameters
    ----------
    public
        Public rows of the same encoder: a store, or any file that `tacit import` reads; its labels
        are used if it has any. Rows that a ledger covers are refused.
    classes
        The private classes: a number, a file with one class a line, or classes with commas between
        them.
    records
        Private records of the largest class.
    imbalance
        Size of the largest class divided by that of the smallest.
    budgets
        Budgets of one kind, with commas between them. An epsilon alone is pure, or at --delta where
        the method takes no pure budget.
    pseudo_classes
        What stands in for the private classes: classes of the public rows, clusters of them, or
        both.
    spread
        Share of the variance that lies between the private classes, from 0 to 1, if you know it;
        for clusters.
    records_per_person
        Under a unit per person, the records of each.
    delta
        Where epsilon is stated.
    seeds
        Fits of each budget, which differ in pseudo-classes, rows and noise.
    jobs
        Processes that fit at the same time; by default two, or one where the public rows are few.
    folder
        Where finished fits are kept, so that an interrupted forecast resumes.
    out
        A picture of accuracy against epsilon: a file .svg, .pdf or .png.
    parameters
        Further parameters of the method, such as --k 5.
    """
    from tacit.measure.forecasting import forecast as run_forecast

    method = known_method(method)
    check_options(forecast, method, parameters)
    check_picture(out, force=force)
    declared = read_classes(classes)
    values = {name.replace("-", "_"): literal(text) for name, text in parameters.items()}

    with shown_progress():
        rows, labels = _public_rows(public, x, y, split)
        try:
            found = run_forecast(
                method,
                public=rows,
                labels=labels,
                classes=declared,
                records=records,
                imbalance=imbalance,
                budgets=budgets,
                unit=unit,
                pseudo_classes=pseudo_classes,
                spread=spread,
                records_per_person=records_per_person,
                delta=delta,
                seeds=seeds,
                jobs=jobs,
                folder=folder,
                **values,
            )
        except KeyboardInterrupt:
            if folder is None:
                raise
            raise KeyboardInterrupt(
                f"interrupted; finished fits are kept in {folder}, run it again to go on"
            ) from None

    if out is not None:
        _draw(found, out, force=force)
    if json:
        print_json(found.facts())
        return
    _print(found)
    if out is not None:
        say(f"{out}: accuracy against epsilon")


def _public_rows(path: Path, x: str | None, y: str | None, split: str | None) -> Any:
    """Return the rows and labels of public data that no ledger covers."""
    from tacit.cli.public_rows import check_uncovered
    from tacit.data.imports import read_data
    from tacit.data.locations import located

    data = read_data(path, x=x, y=y, split=split, role="train")
    check_uncovered(None, located(path, split), data)
    if data.several:
        # of several labels a row none is its class
        return data.x, None
    return data.x, data.labels


def _draw(found: "Forecast", out: Path, *, force: bool) -> None:
    from tacit.compute.atomic import atomic_file
    from tacit.report.forecasts import forecast_image

    image = forecast_image(found, out.suffix.removeprefix("."))
    with atomic_file(out, force=force) as temporary:
        temporary.write_bytes(image)


def _print(found: "Forecast") -> None:
    """Print what was declared and guessed, the table and the sentence."""
    from tacit.privacy.decimals import rounded_up

    delta = rounded_up(found.delta)
    say(f"forecast for {found.method}, from public rows alone; epsilon at delta {delta}")
    say(f"declared, and protected by nothing: {', '.join(found.declared)}")
    for guess in found.guesses:
        say(f"guess: {guess}")
    for kind in dict.fromkeys(row.pseudo_classes for row in found.table):
        remark = " (the last line goes by these)" if kind == found.basis else ""
        say(f"{STAND_IN[kind]} stand in for the private classes{remark}:")
        for row in found.rows(kind):
            say(f"  {_line(row, found.delta)}")
    say(found.sentence)


def _line(row: "ForecastRow", delta: float) -> str:
    from tacit.measure.forecast_result import label_of

    spread = ""
    if not math.isnan(row.sd):
        spread = f" (sd {row.sd:.3f} over seeds)"
    return (
        f"{label_of(row.budget, delta)}: balanced accuracy {row.balanced:.3f}{spread},"
        f" smallest 25 % of classes {row.minority:.3f}"
    )
