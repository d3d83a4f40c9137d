"""`tacit votes`: labels from the votes of teachers, within every group's budget."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.common import read_classes, say, shown_progress
from tacit.cli.drawing import check_drawing, draw_for_owner
from tacit.cli.learner import check_folder, literal
from tacit.cli.options import Force, Noise
from tacit.compute.numbers import read_number
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
    aggregator: Literal["confident", "gnmax", "interactive", "laplace"] = "confident",
    collector: Literal["gnmax", "upsampling", "vanishing", "weighting"] = "gnmax",
    budgets: str | None = None,
    shares: str | None = None,
    teacher_groups: Path | None = None,
    copies: str | None = None,
    sigma: float | None = None,
    sigma1: float | None = None,
    threshold: float | None = None,
    gamma: float | None = None,
    confidence: float | None = None,
    student_scores: Path | None = None,
    n_labels: int | None = None,
    delta: float = 1e-5,
    stopping: Literal["filter", "data-dependent"] = "filter",
    unit: Literal["replace", "replace-person"] = "replace",
    noise: Noise = "secure",
    seed: int | None = None,
    limits: str | None = None,
    truth: Path | None = None,
    folder: Path | None = None,
    figures: Path | None = None,
    force: Force = False,
) -> None:
    """Turn votes into labels that may be handed out.

    Parameters
    ----------
    votes
        Whole numbers, one row a query, one column a teacher: .npy; .npz with one array or one named
        votes; .csv or .tsv with a header; or .parquet.
    out
        Folder for labels.csv, guarantee.json and statement.txt.
    classes
        A number N for 0..N-1. If left out it is read off the votes, which is listed as unprotected.
    aggregator
        How votes become an answer, if any.
    collector
        How budget groups vote together.
    budgets
        Epsilon of each group, such as a=1,b=2,c=3, or one number for all.
    shares
        Share of each group in the records, such as a=.5,b=.3,c=.2; the columns are laid out in this
        order.
    teacher_groups
        Instead of shares: a text file with the group of each teacher's records, one line per
        teacher, or several groups separated by spaces.
    copies
        For upsampling: how many teachers hold a record of each group, such as a=1,b=2.
    sigma
        Standard deviation of the noise on each count, in votes.
    sigma1
        The same for the check of the confident and interactive aggregators.
    threshold
        Votes that the top class must have, about, to be answered.
    gamma
        For laplace: noise of scale 1/gamma.
    confidence
        For interactive: where teachers and student agree, the student's label counts if its
        probability exceeds this.
    student_scores
        For interactive: a file like that of the votes, with the student's probability of each class
        (predict_proba), one row a query, one column a class. It must be public, learned from labels
        that were released before.
    n_labels
        Stop after so many labels.
    delta
        Where budgets are read.
    stopping
        The costs that decide when voting ends; data-dependent repeats published tables, under
        research noise alone.
    unit
        What reaches one teacher only: replace for each record, replace-person for each person with
        all their records.
    seed
        Seed of research noise.
    limits
        Smaller budgets at which this voting is read too, at no further cost: .25,.5 or, with
        groups, a=.5,b=1, or a list of those: "[{'a': .5, 'b': 1}, {'a': .8, 'b': 1.6}]".
    truth
        A file like that of the votes, with the true class of each query in one column, or -1 where
        it is not known: the tables then have the accuracy of labels by class.
    folder
        Private folder that keeps the answers, and tables: votings.csv, queries.csv, and
        readings.csv of --limits. The same command takes the answers from it and draws no noise
        again, which would cost as much again.
    figures
        Private folder for figures of what labels cost and of how far teachers agree.
    """
    import numpy as np

    from tacit.compute.atomic import atomic_folder, check_writable
    from tacit.data.labels import class_list
    from tacit.data.matrices import read_matrix
    from tacit.learners.pate import aggregate, readings
    from tacit.learners.pate.data_dependent import consensus
    from tacit.learners.pate.readings import limits_of
    from tacit.learners.pate.run_folder import RunFolder
    from tacit.learners.pate.scheme import scheme
    from tacit.learners.pate.tables import (
        holds_labels,
        label_accuracies,
        query_rows,
        reading_row,
        voting_row,
        write_labels,
    )

    check_writable(out, force=force, ours=holds_labels)
    for option, path in (("folder", folder), ("figures", figures)):
        check_folder(path, out, option=option)
    if figures is not None:
        check_drawing()
    if truth is not None and folder is None:
        raise InputError(f"--truth {truth} is for the tables in a folder; name one with --folder")
    ballots, declared = read_matrix(votes, "votes"), read_classes(classes)
    listed = _largest(ballots) + 1 if declared is None else declared
    right = None if truth is None else _truth(truth, len(ballots), class_list(listed))
    facts: dict[str, Any] = {
        "aggregator": aggregator,
        "collector": collector,
        "budgets": _numbers("budgets", budgets),
        "shares": _numbers("shares", shares),
        "teacher_groups": None if teacher_groups is None else _groups(teacher_groups),
        "copies": _copies(copies),
        "delta": delta,
        "n_labels": n_labels,
        "unit": unit,
        "sigma": sigma,
        "sigma1": sigma1,
        "threshold": threshold,
        "gamma": gamma,
        "confidence": confidence,
    }
    smaller = None if limits is None else literal(limits)
    if smaller is not None and ballots.ndim == 2:  # before any noise is drawn
        limits_of(smaller, scheme(*ballots.shape, **facts), stopping)
    with shown_progress():
        answers = aggregate(
            ballots,
            classes=listed,
            student_scores=(
                None if student_scores is None else read_matrix(student_scores, "student_scores")
            ),
            stopping=stopping,
            noise=noise,
            random_state=seed,
            folder=folder,
            **facts,
        )
    found = [] if smaller is None else readings(answers, smaller)
    if folder is not None:
        settings = {
            "budget": budgets,
            "collector": collector,
            "stopping": stopping,
            "noise": noise,
            "seed": seed,
        }
        names = {int(c): c for c in class_list(listed)}
        of_labels = {} if right is None else label_accuracies(answers.labels, right, names)
        tables = {
            "votings": [voting_row(answers, settings, of_labels)],
            "queries": query_rows(answers, names),
            "readings": [reading_row(one) for one in found],
        }
        RunFolder(folder).write_tables(tables)
    if figures is not None:
        draw_for_owner(
            figures, answers, consensus(np.searchsorted(np.sort(class_list(listed)), ballots))
        )
    with atomic_folder(out, force=force, ours=holds_labels) as part:
        write_labels(part, answers, delta=delta, noise=noise, classes_declared=declared is not None)
    _print_answers(out, answers, delta, noise)
    for one in found:
        say(f"read at {one.limit}: {one.answered} labels for the first {one.asked} queries")


def _largest(ballots: Any) -> int:
    """The largest class that is voted for; one vote by mistake would make millions of classes."""
    largest = int(ballots.max(initial=0)) if ballots.dtype.kind in "iu" else 0
    if largest >= MOST_CLASSES:
        raise InputError(
            f"a vote is for class {largest}; state more than {MOST_CLASSES} classes with --classes"
        )
    return largest


def _truth(path: Path, queries: int, classes: Sequence[Any]) -> Any:
    """The true classes in a file, of shape (queries,); -1 where one is not known."""
    from tacit.data.matrices import read_matrix

    values = read_matrix(path, "truth")
    truth = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if truth.shape != (queries,) or truth.dtype.kind not in "iu":
        rule = f"pass one whole number for each of {queries} queries"
        raise InputError(
            f"--truth {path} has shape {values.shape} and dtype {values.dtype}; {rule}"
        )
    others = set(truth.tolist()) - set(classes) - {-1}
    if others:
        raise InputError(
            f"--truth {path} has {min(others)}, which is not one of the {len(classes)} classes;"
            " write -1"
        )
    return truth


def _numbers(option: str, text: str | None) -> Any:
    """`a=1,b=2` as a dict of floats, a number alone as a float."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return read_number(text)
        pairs = [item.partition("=") for item in text.split(",")]
        numbers = {group.strip(): read_number(value) for group, _, value in pairs}
    except ValueError as error:
        raise InputError(
            f"--{option} {text} cannot be read; write a=1,b=2, or one number"
        ) from error
    if len(numbers) < len(pairs):
        raise InputError(f"--{option} {text} names a group twice; name each once")
    return numbers


def _groups(path: Path) -> list[list[str]]:
    """The groups of each teacher, from the lines of a file; an empty line is a teacher without a
    group.
    """
    try:
        return [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--teacher-groups {path} is not a readable text file; give one line per teacher"
        ) from error


def _copies(text: str | None) -> Any:
    copies = _numbers("copies", text)
    if isinstance(copies, float):
        raise InputError(f"--copies {copies:g} names no group; write a=1,b=2")
    return copies and {
        group: int(value) if value.is_integer() else value for group, value in copies.items()
    }


def _print_answers(out: Path, answers: "Answers", delta: float, noise: str) -> None:
    groups: list[str | None] = [name for name, _ in answers.guarantee_.groups] or [None]
    say(
        f"{out}: {answers.answered} labels for the first {answers.asked} of {len(answers.labels)}"
        " queries"
    )
    say(answers.guarantee_.statement(delta))
    for name, known in zip(groups, answers.epsilon_given_votes().values(), strict=True):
        of_group = f"{name}: " if name else ""
        say(
            f"{of_group}spent epsilon {answers.spent_.epsilon(delta, name):.4g} at delta ="
            f" {delta:g}; given these votes {known:.4g} (internal: it depends on them, do not"
            " publish it)"
        )
    if noise != "secure":
        say("Not for release: research noise is seeded.")
