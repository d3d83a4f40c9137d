"""Tables of a fit or a voting, for the owner of the data alone, and the folder of released labels.

`names` are those of classes. The folder holds labels that a voting released, with their guarantee:
`labels.csv`, `guarantee.json`, `statement.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learners.pate.ensemble import Votes
from tacit.learners.pate.filter import Filter, order_of
from tacit.learners.pate.readings import Reading
from tacit.learners.pate.teachers import Allocation
from tacit.learners.pate.voting import Answers
from tacit.privacy.guarantee import Guarantee

Row = dict[str, Any]

LABEL_FILES = {"guarantee.json", "labels.csv", "statement.txt"}

# Queries whose costs are computed together.
_BLOCK = 512


def teacher_rows(allocation: Allocation, votes: Votes) -> list[Row]:
    """A row for each teacher: its records, their groups, and its accuracy on the test set if there
    is one.
    """
    n_teachers = len(allocation.parts)
    groups = allocation.teacher_groups or [()] * n_teachers
    accuracies: list[float | None] = [None] * n_teachers
    if votes.accuracies is not None:
        accuracies = votes.accuracies.tolist()
    return [
        {
            "teacher": teacher,
            "records": len(allocation.parts[teacher]),
            "groups": " ".join(groups[teacher]),
            "test_accuracy": accuracies[teacher],
        }
        for teacher in range(n_teachers)
    ]


def record_rows(allocation: Allocation) -> list[Row]:
    """A row for each private record, by its position in the data: the teachers that learned from
    it.
    """
    order = np.concatenate(allocation.parts)
    sizes = [len(part) for part in allocation.parts]
    teachers = np.repeat(np.arange(len(sizes)), sizes)

    # records by position, and the teachers of each in ascending order
    by_record = np.lexsort((teachers, order))
    records, starts = np.unique(order[by_record], return_index=True)
    teachers_of_records = np.split(teachers[by_record], starts[1:])
    return [
        {"record": record, "teachers": " ".join(map(str, teachers_of_record.tolist()))}
        for record, teachers_of_record in zip(records.tolist(), teachers_of_records, strict=True)
    ]


def voting_row(answers: Answers, settings: Mapping[str, Any], accuracy: Mapping[str, Any]) -> Row:
    """The one row of `votings.csv`: settings, counts, privacy costs, and the accuracy of the
    labels.
    """
    scheme = answers.scheme
    row: Row = {
        "teachers": scheme.collector.n_teachers,
        "aggregator": str(scheme.aggregator),
        **settings,
        "delta": scheme.delta,
        "queries": scheme.n_queries,
        "asked": answers.asked,
        "answered": answers.answered,
        **accuracy,
    }
    row |= _query_costs(answers)
    row |= _epsilons(answers.spent_, scheme.delta)
    for group, epsilon in answers.epsilon_given_votes().items():
        row[f"internal epsilon {group}"] = epsilon
    return row


def query_rows(answers: Answers, names: Mapping[int, Any]) -> list[Row]:
    """A row for each query that was asked: the name of its label, and the largest cost so far to
    each group.

    Costs are in the currency of the filter, which `votings.csv` names.
    """
    scheme = answers.scheme
    account = Filter(scheme.collector, scheme.aggregator, scheme.allowances)
    spent = np.zeros(len(account.groups))
    rows: list[Row] = []
    for start in range(0, answers.asked, _BLOCK):
        block = slice(start, min(start + _BLOCK, answers.asked))
        paid = answers.paid[block]
        sensitivities = scheme.collector.sensitivities(block)
        by_query = np.broadcast_to(sensitivities, (len(sensitivities), len(paid)))

        # costs of each account after each query, of shape (accounts, queries)
        check, label = account.costs(by_query)
        spent_after = spent[:, None] + np.cumsum(check + np.where(paid, label, 0.0), axis=1)
        spent = spent_after[:, -1]

        # a group's cost is that of its most expensive account
        group_costs = {
            group: spent_after[account.groups == index].max(axis=0).tolist()
            for index, group in enumerate(scheme.budgets)
        }
        for i, label_index in enumerate(answers.labels[block].tolist()):
            row: Row = {
                "query": start + i,
                "label": names.get(label_index, ""),
                "bought": int(paid[i]),
            }
            for group, costs in group_costs.items():
                row[f"spent {group}"] = costs[i]
            rows.append(row)
    return rows


def reading_row(reading: Reading) -> Row:
    """A row of `readings.csv`."""
    row: Row = {
        "limit": reading.limit,
        "asked": reading.asked,
        "answered": reading.answered,
        "labels": int(np.sum(reading.labels >= 0)),
    }
    row |= _epsilons(reading.spent_, reading.spent_.delta or 0.0)
    row["test_accuracy"] = reading.test_accuracy
    return row


def accuracies(
    name: str, is_right: NDArray[np.bool_], truth: NDArray[Any], names: Mapping[int, Any]
) -> Row:
    """The share that is right, and the same of each true class; None where there is none to
    measure.
    """
    row: Row = {name: _mean(is_right)}
    for index, class_name in names.items():
        row[f"{name} of {class_name}"] = _mean(is_right[truth == index])
    return row


def label_accuracies(labels: NDArray[Any], truth: NDArray[Any], names: Mapping[int, Any]) -> Row:
    """`accuracies` of the labels of queries, and how many there are of each true class; -1 is no
    label.
    """
    has_both = (labels >= 0) & (truth >= 0)
    labels = labels[has_both]
    truth = truth[has_both]
    row = accuracies("label_accuracy", labels == truth, truth, names)
    for index, class_name in names.items():
        row[f"labels of {class_name}"] = int(np.sum(truth == index))
    return row


def _mean(is_right: NDArray[np.bool_]) -> float | None:
    return float(is_right.mean()) if len(is_right) else None


def _epsilons(spent: Guarantee, delta: float) -> Row:
    """Epsilon of each group, or of all records, at delta."""
    # plain PATE has one group, which its guarantee does not name
    groups: list[str | None] = [group for group, _ in spent.groups] or [None]
    return {f"epsilon {group or 'all'}": spent.epsilon(delta, group) for group in groups}


def _query_costs(answers: Answers) -> Row:
    """Allowance of each group, and the largest cost of one check and of one label to it, in the
    currency of the filter.
    """
    row: Row = {}
    aggregator = answers.scheme.aggregator
    for group, allowance in answers.scheme.allowances.items():
        sensitivity = float(np.max(answers.sensitivity[group]))
        order = order_of(allowance)
        check = aggregator.check(sensitivity, order)
        label = aggregator.label(sensitivity, order)
        row[f"currency {group}"] = allowance.currency
        row[f"allowed {group}"] = allowance.total
        row[f"cost of a check {group}"] = 0.0 if check is None else allowance.cost(check)
        row[f"cost of a label {group}"] = allowance.cost(label)
    return row


def write_labels(
    folder: Path, answers: Answers, *, delta: float, noise: str, classes_declared: bool
) -> None:
    """Write the files into an existing folder; the statement gives epsilon at `delta`.

    Labels of research noise are stamped as not for release; a class list that was not declared is
    named as unprotected.
    """
    guarantee = answers.guarantee_
    if not classes_declared:
        facts = (*guarantee.unprotected, "class list (read off the votes)")
        guarantee = replace(guarantee, unprotected=facts)

    lines = ["query,label"]
    for query, label in enumerate(answers.labels.tolist()):
        lines.append(f"{query},{label}")
    statement = guarantee.statement(delta)
    if noise == "research":
        stamp = "NOT FOR RELEASE: made with research noise, which is seeded."
        statement = f"{stamp}\n{statement}"

    document = json.dumps(guarantee.to_json(), indent=2)
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "guarantee.json").write_text(document + "\n", encoding="utf-8")
    (folder / "statement.txt").write_text(statement + "\n", encoding="utf-8")


def holds_labels(folder: Path) -> bool:
    """Return whether a folder holds these files and nothing else."""
    return {path.name for path in folder.iterdir()} == LABEL_FILES
