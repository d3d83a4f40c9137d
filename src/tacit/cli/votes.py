"""`tacit votes`: labels from the votes of teachers, within every group's budget."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.common import read_classes, say
from tacit.cli.drawing import check_drawing, draw_for_owner
from tacit.cli.learner import check_folder, literal
from tacit.cli.options import Force, Noise, Out
from tacit.compute.numbers import read_number
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.learners.pate import Answers
    from tacit.learners.pate.readings import Reading

MOST_CLASSES = 1000  # where they are read off the votes


def votes(
    votes: Path,
    /,
    *,
    out: Out,
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
        votes; .csv or .tsv with a header, as pandas writes it with or without an index; or
        .parquet.
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
    from tacit.compute.atomic import atomic_folder, check_writable
    from tacit.data.labels import class_list
    from tacit.data.matrices import read_matrix
    from tacit.learners.pate import aggregate, readings
    from tacit.learners.pate.readings import limits_of
    from tacit.learners.pate.scheme import scheme
    from tacit.learners.pate.tables import holds_labels, write_labels

    check_writable(out, force=force, ours=holds_labels)
    for option, path in (("folder", folder), ("figures", figures)):
        check_folder(path, out, option=option)
    if figures is not None:
        check_drawing()
    if truth is not None and folder is None:
        raise InputError(f"--truth {truth} is for the tables in a folder; name one with --folder")

    # (queries, teachers)
    ballots = read_matrix(votes, "votes")
    declared = read_classes(classes)
    n_classes_or_list = _largest(ballots) + 1 if declared is None else declared
    listed = class_list(n_classes_or_list)
    true_classes = None if truth is None else _truth(truth, len(ballots), listed)
    scores = None if student_scores is None else read_matrix(student_scores, "student_scores")

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

    smaller_budgets = None if limits is None else literal(limits)
    if smaller_budgets is not None and ballots.ndim == 2:
        # Refuse bad limits before any noise is drawn.
        limits_of(smaller_budgets, scheme(*ballots.shape, **facts), stopping)

    with shown_progress():
        answers = aggregate(
            ballots,
            classes=n_classes_or_list,
            student_scores=scores,
            stopping=stopping,
            noise=noise,
            random_state=seed,
            folder=folder,
            **facts,
        )
    smaller_votings = [] if smaller_budgets is None else readings(answers, smaller_budgets)

    if folder is not None:
        settings = {
            "budget": budgets,
            "collector": collector,
            "stopping": stopping,
            "noise": noise,
            "seed": seed,
        }
        _write_tables(folder, answers, smaller_votings, settings, listed, true_classes)
    if figures is not None:
        _draw(figures, answers, ballots, listed)
    with atomic_folder(out, force=force, ours=holds_labels) as part:
        write_labels(part, answers, delta=delta, noise=noise, classes_declared=declared is not None)

    _print_answers(out, answers, delta, noise)
    for voting in smaller_votings:
        say(
            f"read at {voting.limit}: {voting.answered} labels for the first {voting.asked} queries"
        )


def _write_tables(
    folder: Path,
    answers: "Answers",
    smaller_votings: Sequence["Reading"],
    settings: dict[str, Any],
    classes: Sequence[Any],
    true_classes: Any,
) -> None:
    """Write votings.csv, queries.csv and readings.csv into the private folder."""
    from tacit.learners.pate.run_folder import RunFolder
    from tacit.learners.pate.tables import (
        label_accuracies,
        query_rows,
        reading_row,
        voting_row,
    )

    names = {int(label): label for label in classes}
    accuracies = {}
    if true_classes is not None:
        accuracies = label_accuracies(answers.labels, true_classes, names)
    tables = {
        "votings": [voting_row(answers, settings, accuracies)],
        "queries": query_rows(answers, names),
        "readings": [reading_row(voting) for voting in smaller_votings],
    }
    RunFolder(folder).write_tables(tables)


def _draw(figures: Path, answers: "Answers", ballots: Any, classes: Sequence[Any]) -> None:
    """Draw the figures for the owner: what labels cost, and how far teachers agree."""
    import numpy as np

    from tacit.learners.pate.data_dependent import consensus

    # Votes as positions of classes, which need not be 0..N-1.
    positions = np.searchsorted(np.sort(classes), ballots)
    draw_for_owner(figures, answers, consensus(positions))


def _largest(ballots: Any) -> int:
    """Return the largest class that is voted for.

    A largest class of MOST_CLASSES or more is refused: one wrong vote would make millions of
    classes.
    """
    largest = 0
    if ballots.dtype.kind in "iu":
        largest = int(ballots.max(initial=0))
    if largest >= MOST_CLASSES:
        raise InputError(
            f"a vote is for class {largest}; state more than {MOST_CLASSES} classes with --classes"
        )
    return largest


def _truth(path: Path, queries: int, classes: Sequence[Any]) -> Any:
    """Return the true classes in a file, of shape (queries,); -1 where unknown."""
    from tacit.data.matrices import read_matrix

    values = read_matrix(path, "truth")
    is_one_column = values.ndim == 2 and values.shape[1] == 1
    truth = values[:, 0] if is_one_column else values
    if truth.shape != (queries,) or truth.dtype.kind not in "iu":
        rule = f"pass one whole number for each of {queries} queries"
        raise InputError(
            f"--truth {path} has shape {values.shape} and dtype {values.dtype}; {rule}"
        )
    undeclared = set(truth.tolist()) - set(classes) - {-1}
    if undeclared:
        raise InputError(
            f"--truth {path} has {min(undeclared)}, which is not one of the {len(classes)} classes;"
            " write -1"
        )
    return truth


def _numbers(option: str, text: str | None) -> Any:
    """Read `a=1,b=2` as a dict of floats, and a number alone as a float."""
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
    """Read the groups of each teacher, one line per teacher; an empty line is no group."""
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
    if copies is None:
        return None

    # Whole numbers as int; others stay floats, which the collector refuses.
    for group, number in copies.items():
        if number.is_integer():
            copies[group] = int(number)
    return copies


def _print_answers(out: Path, answers: "Answers", delta: float, noise: str) -> None:
    say(
        f"{out}: {answers.answered} labels for the first {answers.asked} of {len(answers.labels)}"
        " queries"
    )
    say(answers.guarantee_.statement(delta))

    from tacit.privacy.decimals import rounded_up

    # None where all records have one budget.
    groups: list[str | None] = [name for name, _ in answers.guarantee_.groups]
    if not groups:
        groups = [None]
    for group, epsilon_given_votes in zip(
        groups, answers.epsilon_given_votes().values(), strict=True
    ):
        prefix = f"{group}: " if group else ""
        epsilon = answers.spent_.epsilon(delta, group)
        say(
            f"{prefix}spent epsilon {rounded_up(epsilon)} at delta = {rounded_up(delta)}; given"
            f" these votes {rounded_up(epsilon_given_votes)} (internal: it depends on them, do not"
            " publish it)"
        )
    if noise == "research":
        say("Not for release: research noise is seeded.")
