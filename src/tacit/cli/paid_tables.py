"""`tacit evaluate --tables`: figures from the paid tables of several parts of the records."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.answers import check_picture
from tacit.cli.paid_evaluation import Paid, check_states_paid_figures, utility_of
from tacit.cli.paid_output import is_table_file, show_paid, tell_of_outputs, write_output
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError, excerpt

if TYPE_CHECKING:
    from tacit.measure.evaluation import Evaluation
    from tacit.releases.release import Release

OF_TABLES = ("tables", "overlapping", "moving", "by")
"""Options of paid figures that go with tables of several parts; `by` is what their groups are."""


def check_of_tables(paid: Paid, **others: Any) -> None:
    """Refuse options that do not go with tables of several parts, by name."""
    if paid.tables is None:
        raise InputError(
            "there is no test set; name a store or file after the release, or add up the tables of"
            " several owners by --tables T1.json T2.json"
        )
    given = [name for name, value in others.items() if value]
    for option in fields(paid):
        is_given = getattr(paid, option.name) != option.default
        if is_given and option.name not in OF_TABLES:
            given.append(option.name)
    if given:
        option_name = given[0].replace("_", "-")
        raise InputError(
            f"--{option_name} says how test rows are measured, and --tables without a test set adds"
            " up tables that were; leave it out, or name the test set"
        )


def evaluate_tables(
    release: Path, paid: Paid, *, record: bool, out: Path | None, force: bool, json: bool
) -> None:
    """Add up tables of several parts of the records and print the figures."""
    from tacit.compute.atomic import check_writable
    from tacit.measure.evaluation import Evaluation
    from tacit.releases.release import Release

    if out is not None and is_table_file(out):
        check_writable(out, force=force)
    else:
        check_picture(out, force=force)

    with shown_progress():
        loaded = Release.load(release).verify()
        if record:
            check_states_paid_figures(loaded, release)
        files = [Path(file) for file in paid.tables or ()]
        result = Evaluation.combine(
            _tables(loaded, release, files), overlapping=paid.overlapping, moving=paid.moving
        )
    if record and (result.noise == "research" or not result.guarantee_.bounded):
        raise InputError(
            "--record needs tables whose noise is secret; leave --record out, or ask the owners for"
            " tables without --noise research"
        )

    names = words_of_parts([row.name for row in result.parts])
    if record:
        loaded.with_utility(utility_of(result, names, paid.by)).save(
            release, force=True, allow_research=True
        )
    write_output(result, out, force=force)
    heading = f"{release} on tables of {names}: private rows, {len(loaded.classes)} classes"
    show_paid(result, heading, charged=False, json=json)
    if not json:
        tell_of_outputs(release, out, record=record)


def words_of_parts(names: Sequence[str]) -> str:
    """Name the parts of a sum, each once, five at most."""
    from tacit.privacy.parts import part_key

    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(part_key(name), name)
    distinct = list(by_key.values())
    shown = ", ".join(distinct[:5])
    if len(distinct) > 5:
        shown += f" and {len(distinct) - 5} more"
    number = "1 part" if len(distinct) == 1 else f"{len(distinct)} parts"
    return f"{number} ({shown})"


def _tables(loaded: "Release", folder: Path, files: Sequence[Path]) -> "Iterator[Evaluation]":
    """Read the tables one by one; refuse those of another release."""
    from tacit.measure.evaluation import Evaluation
    from tacit.measure.part_tables import difference

    for file in files:
        table = Evaluation.load(file)
        fault = difference("class", table.classes.tolist(), loaded.classes.tolist())
        if table.release_sha256 != loaded.sha256:
            fault = (
                f"its arrays have the hash {table.release_sha256[:16]}, not {loaded.sha256[:16]}"
            )
        if fault is not None:
            raise InputError(
                f"{file} is of another release than {folder} ({excerpt(fault)}); evaluate this"
                " release at every owner"
            )
        yield table
