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

Row = dict[str, Any]

_BLOCK = 512


def teacher_rows(allocation: Allocation, votes: Votes) -> list[Row]:
    """A row for each teacher: its records, their groups, and its accuracy on the test set if there
    is one.
    """
    groups = allocation.teacher_groups or [()] * len(allocation.parts)
    measured = (
        [None] * len(allocation.parts) if votes.accuracies is None else votes.accuracies.tolist()
    )
    return [
        {"teacher": i, "records": len(part), "groups": " ".join(names), "test_accuracy": accuracy}
        for i, (part, names, accuracy) in enumerate(
            zip(allocation.parts, groups, measured, strict=True)
        )
    ]


def voting_row(answers: Answers, settings: Mapping[str, Any], measured: Mapping[str, Any]) -> Row:
    """The one row of `votings.csv`: settings, counts, privacy costs, and what was measured of the
    labels.
    """
    scheme = answers.scheme
    facts = {
        "teachers": scheme.collector.n_teachers,
        "aggregator": str(scheme.aggregator),
        **settings,
    }
    counts = {
        "delta": scheme.delta,
        "queries": scheme.n_queries,
        "asked": answers.asked,
        "answered": answers.answered,
    }
    names: list[str | None] = [name for name, _ in answers.spent_.groups] or [None]
    spent = {
        f"epsilon {name or 'all'}": answers.spent_.epsilon(scheme.delta, name) for name in names
    }
    internal = {
        f"internal epsilon {name}": value for name, value in answers.epsilon_given_votes().items()
    }
    return facts | counts | dict(measured) | _of_a_query(answers) | spent | internal


def query_rows(answers: Answers, names: Mapping[int, Any]) -> list[Row]:
    """A row for each query that was asked: the name of its label, and what each group has spent
    after it at most.

    Costs are in the currency of the filter, which `votings.csv` names.
    """
    scheme, rows = answers.scheme, list[Row]()
    account = Filter(scheme.collector, scheme.aggregator, scheme.allowances)
    spent = np.zeros(len(account.groups))
    for start in range(0, answers.asked, _BLOCK):
        part = slice(start, min(start + _BLOCK, answers.asked))
        of_all = scheme.collector.sensitivities(part)
        paid, labels = answers.paid[part], answers.labels[part]
        check, label = account.costs(np.broadcast_to(of_all, (len(of_all), len(paid))))
        after = spent[:, None] + np.cumsum(check + np.where(paid, label, 0.0), axis=1)
        spent = after[:, -1]
        of_groups = [
            after[account.groups == place].max(axis=0).tolist()
            for place in range(len(scheme.budgets))
        ]
        for i, (bought, c) in enumerate(zip(paid.tolist(), labels.tolist(), strict=True)):
            costs = {
                f"spent {group}": values[i]
                for group, values in zip(scheme.budgets, of_groups, strict=True)
            }
            rows.append(
                {"query": start + i, "label": names.get(c, ""), "bought": int(bought), **costs}
            )
    return rows


def reading_row(reading: Reading) -> Row:
    """A row of `readings.csv`."""
    spent = reading.spent_
    names: list[str | None] = [name for name, _ in spent.groups] or [None]
    costs = {f"epsilon {name or 'all'}": spent.epsilon(spent.delta or 0.0, name) for name in names}
    counts = {
        "asked": reading.asked,
        "answered": reading.answered,
        "labels": int(np.sum(reading.labels >= 0)),
    }
    return {"limit": reading.limit, **counts, **costs, "test_accuracy": reading.test_accuracy}


def accuracies(
    name: str, right: NDArray[np.bool_], truth: NDArray[Any], names: Mapping[int, Any]
) -> Row:
    """The share that is right, and the same of each true class; None where there is none to
    measure.
    """
    of_classes = {f"{name} of {label}": _mean(right[truth == c]) for c, label in names.items()}
    return {name: _mean(right)} | of_classes


def label_accuracies(labels: NDArray[Any], truth: NDArray[Any], names: Mapping[int, Any]) -> Row:
    """`accuracies` of the labels of queries, and how many there are of each true class; -1 is no
    label.
    """
    known = (labels >= 0) & (truth >= 0)
    numbers = {f"labels of {label}": int(np.sum(truth[known] == c)) for c, label in names.items()}
    return (
        accuracies("label_accuracy", labels[known] == truth[known], truth[known], names) | numbers
    )


def _mean(right: NDArray[np.bool_]) -> float | None:
    return float(right.mean()) if len(right) else None


def _of_a_query(answers: Answers) -> Row:
    """What each group is allowed, and what one query and its label cost it at most, in the currency
    of the filter.
    """
    facts: Row = {}
    aggregator = answers.scheme.aggregator
    for group, allowance in answers.scheme.allowances.items():
        sensitivity, order = float(np.max(answers.sensitivity[group])), order_of(allowance)
        check = aggregator.check(sensitivity, order)
        facts[f"currency {group}"], facts[f"allowed {group}"] = allowance.currency, allowance.total
        facts[f"cost of a check {group}"] = 0.0 if check is None else allowance.cost(check)
        facts[f"cost of a label {group}"] = allowance.cost(aggregator.label(sensitivity, order))
    return facts


FILES = {"guarantee.json", "labels.csv", "statement.txt"}


def write_labels(
    folder: Path, answers: Answers, *, delta: float, noise: str, classes_declared: bool
) -> None:
    """Write the files into an existing folder; the statement gives epsilon at `delta`.

    Labels of research noise are stamped as not for release; a class list that was not declared is
    named as unprotected.
    """
    guarantee = answers.guarantee_
    if not classes_declared:
        guarantee = replace(
            guarantee, unprotected=(*guarantee.unprotected, "class list (read off the votes)")
        )
    rows = (f"{query},{label}" for query, label in enumerate(answers.labels.tolist()))
    (folder / "labels.csv").write_text("\n".join(["query,label", *rows]) + "\n", encoding="utf-8")
    (folder / "guarantee.json").write_text(
        json.dumps(guarantee.to_json(), indent=2) + "\n", encoding="utf-8"
    )
    stamp = (
        "" if noise == "secure" else "NOT FOR RELEASE: made with research noise, which is seeded.\n"
    )
    (folder / "statement.txt").write_text(
        f"{stamp}{guarantee.statement(delta)}\n", encoding="utf-8"
    )


def holds_labels(folder: Path) -> bool:
    """Whether a folder holds these files and nothing else."""
    return {path.name for path in folder.iterdir()} == FILES
