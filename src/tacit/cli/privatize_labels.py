"""`tacit privatize-labels`: a table with its label column randomized, row by row."""

from pathlib import Path
from typing import Literal

from tacit.cli.common import read_classes, say
from tacit.cli.options import Noise, Out
from tacit.compute.numbers import read_number
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError


def privatize_labels(
    table: Path,
    /,
    *,
    column: str,
    out: Out,
    budget: str,
    classes: str | None = None,
    values: Path | None = None,
    randomizer: Literal[
        "rr", "rr-top-k", "rr-with-prior", "blocks", "rr-on-bins", "unbiased"
    ] = "rr",
    prior: Path | None = None,
    k: int | None = None,
    loss: Literal["squared", "absolute"] = "squared",
    unit: Literal["change-label", "change-labels-of-person"] = "change-label",
    persons: str | None = None,
    ledger: Path | None = None,
    identity: str | None = None,
    noise: Noise = "secure",
    seed: int | None = None,
    allow_research: bool = False,
    force: bool = False,
) -> None:
    """Randomize the labels of a table. All other columns stay as they are, and are not protected.

    Rows keep their order, which is public too: shuffle a table that is sorted or grouped by label
    first.

    Parameters
    ----------
    table
        A .csv or .parquet file; it may be larger than the memory.
    column
        The label column, of text or whole numbers, or of numbers with --values.
    out
        The new table, of the same kind; beside it OUT.tacit.json says how it was made.
    budget
        epsilon=1, rho=0.5 or epsilon=1,delta=1e-6, for one label.
    classes
        The public class list: a number N for 0..N-1, a file with one class a line, or classes with
        commas between them. Labels are compared with it as texts.
    values
        Instead, for rr-on-bins and unbiased: a file with the values that a label may have, rising,
        one per line.
    randomizer
        How a label is randomized. With blocks the column holds numbers of blocks of classes.
    prior
        A file with the public probability of each class or value, one per line, in their order. For
        rr-top-k, rr-with-prior and blocks it may have a row for each label, one probability for
        each class: .npy, .npz, .parquet or text with commas. Only .npy may be larger than the
        memory.
    k
        For rr-top-k: how many of the likeliest classes it answers with.
    loss
        For rr-on-bins: the loss that bins are chosen for.
    unit
        With change-labels-of-person the labels of a person share the budget.
    persons
        For change-labels-of-person: the column that says whose each label is. It stays as it is,
        and is public.
    ledger
        The ledger to charge; asking the same labels again costs again. By default the one beside
        the table, if there is one.
    identity
        Name of the labels in the ledger; by default the table's.
    seed
        Seed of research noise.
    allow_research
        Write a table that is not for release, stamped so.
    force
        Overwrite the output.
    """
    from tacit.learners.label_dp.tables import randomize_table

    with shown_progress():
        count, guarantee = randomize_table(
            table,
            out,
            column=column,
            budget=budget,
            classes=read_classes(classes),
            values=_numbers(values),
            randomizer=randomizer,
            prior=prior,
            k=k,
            loss=loss,
            unit=unit,
            persons=persons,
            ledger=ledger,
            identity=identity,
            noise=noise,
            seed=seed,
            allow_research=allow_research,
            force=force,
        )
    say(f"{out}: {count} labels of column {column!r} randomized by {randomizer}")
    say(guarantee.statement())


def _numbers(path: Path | None) -> list[float] | None:
    """The values of --values, one per line."""
    if path is None:
        return None
    try:
        return [read_number(line) for line in path.read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        raise InputError(
            f"--values {path} is not a readable file of numbers; give one per line"
        ) from error
