"""`tacit votes`: labels from the votes of teachers, within every group's budget."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import read_classes, shown_progress
from tacit.cli.options import Force, Noise
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.learners.pate import Answers

MOST_CLASSES = 1000  # where they are read off the votes


def votes(
    votes: Path,
    /,
    *,
    out: Path,
    classes: str | None = None,
    aggregator: str = "confident",
    collector: str = "gnmax",
    budgets: str | None = None,
    shares: str | None = None,
    copies: str | None = None,
    sigma: float | None = None,
    sigma1: float | None = None,
    threshold: float | None = None,
    gamma: float | None = None,
    n_labels: int | None = None,
    delta: float = 1e-5,
    stopping: str = "filter",
    unit: str = "replace",
    noise: Noise = "secure",
    seed: int | None = None,
    force: Force = False,
) -> None:
    """Turn votes into labels that may be handed out.

    Parameters
    ----------
    votes
        A .npy file of whole numbers, one row a query, one column a teacher.
    out
        Folder for labels.csv, guarantee.json and statement.txt.
    classes
        A number N for 0..N-1. If left out it is read off the votes, which is listed as unprotected.
    aggregator
        confident, gnmax or laplace.
    collector
        How budget groups vote together: gnmax, upsampling, vanishing or weighting.
    budgets
        Epsilon of each group, such as a=1,b=2,c=3, or one number for all.
    shares
        Share of each group in the records, such as a=.5,b=.3,c=.2; the columns are laid out in this order.
    copies
        For upsampling: how many teachers hold a record of each group, such as a=1,b=2.
    sigma
        Standard deviation of the noise on each count, in votes.
    sigma1
        The same for the check of the confident aggregator.
    threshold
        Votes that the top class must have, about, to be answered.
    gamma
        For laplace: noise of scale 1/gamma.
    n_labels
        Stop after so many labels.
    delta
        Where budgets are read.
    stopping
        filter, or data-dependent to repeat published tables, under research noise alone.
    unit
        What reaches one teacher only: replace for each record, replace-person for each person with all their records.
    seed
        Seed of research noise.
    """
    from tacit.compute.atomic import atomic_folder, check_writable
    from tacit.data.formats.npy import map_npy
    from tacit.learners.pate import aggregate
    from tacit.learners.pate.labels_folder import holds_labels, write_labels

    check_writable(out, force=force, ours=holds_labels)
    if not votes.exists():
        raise InputError(f"{votes} does not exist; give a .npy file of votes")
    ballots, declared = map_npy(votes), read_classes(classes)
    with shown_progress():
        answers = aggregate(
            ballots,
            classes=_largest(ballots) + 1 if declared is None else declared,
            aggregator=aggregator,
            collector=collector,
            budgets=_numbers("budgets", budgets),
            shares=_numbers("shares", shares),
            copies=_copies(copies),
            sigma=sigma,
            sigma1=sigma1,
            threshold=threshold,
            gamma=gamma,
            n_labels=n_labels,
            delta=delta,
            stopping=stopping,
            unit=unit,
            noise=noise,
            random_state=seed,
        )
    with atomic_folder(out, force=force, ours=holds_labels) as part:
        write_labels(part, answers, delta=delta, noise=noise, classes_declared=declared is not None)
    _print_answers(out, answers, delta, noise)


def _largest(ballots: Any) -> int:
    """The largest class that is voted for; one vote by mistake would make millions of classes."""
    largest = int(ballots.max(initial=0)) if ballots.dtype.kind in "iu" else 0
    if largest >= MOST_CLASSES:
        raise InputError(f"a vote is for class {largest}; state more than {MOST_CLASSES} classes with --classes")
    return largest


def _numbers(option: str, text: str | None) -> Any:
    """`a=1,b=2` as a dict of floats, a number alone as a float."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        pairs = [item.partition("=") for item in text.split(",")]
        numbers = {group.strip(): float(value) for group, _, value in pairs}
    except ValueError as error:
        raise InputError(f"--{option} {text} cannot be read; write a=1,b=2, or one number") from error
    if len(numbers) < len(pairs):
        raise InputError(f"--{option} {text} names a group twice; name each once")
    return numbers


def _copies(text: str | None) -> Any:
    copies = _numbers("copies", text)
    if isinstance(copies, float):
        raise InputError(f"--copies {copies:g} names no group; write a=1,b=2")
    return copies and {group: int(value) if value.is_integer() else value for group, value in copies.items()}


def _print_answers(out: Path, answers: "Answers", delta: float, noise: str) -> None:
    groups: list[str | None] = [name for name, _ in answers.guarantee_.groups] or [None]
    print(f"{out}: {answers.answered} labels for the first {answers.asked} of {len(answers.labels)} queries")
    print(answers.guarantee_.statement(delta))
    for name, raw in zip(groups, answers.internal_.epsilon.values(), strict=True):
        of_group = f"{name}: " if name else ""
        print(
            f"{of_group}spent epsilon {answers.spent_.epsilon(delta, name):.4g} at delta = {delta:g}; given these "
            f"votes {raw:.4g} (internal: it depends on them, do not publish it)"
        )
    if noise != "secure":
        print("Not for release: research noise is seeded.")
