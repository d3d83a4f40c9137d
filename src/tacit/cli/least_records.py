"""`tacit fit --least-records`: compare a declared number with the records of each class."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.trees import Tree


def check_least_records(least: int | None, labels: Any, classes: Any, tree: "Tree | None") -> None:
    """Refuse a number of records that some class does not have, before anything is charged.

    `labels` are values of the class list of shape (n,), or truth values of shape (n, K). Records
    that are labelled with an inner node of a tree count for no class. The error goes to the owner,
    and does not say which class it is or how many records it has.
    """
    from tacit.data.labels import class_list

    if least is None:
        return
    if least < 1:
        raise InputError(f"--least-records {least} must be 1 or more; correct it, or leave it out")
    if labels is None:
        raise InputError(
            f"--least-records {least} does not apply to data without labels; leave it out"
        )

    if labels.ndim == 2:
        counts = labels.sum(axis=0).tolist()
    else:
        records = Counter(labels.tolist())
        listed = list(records) if classes is None else class_list(classes)
        if tree is not None:
            listed = tree.divided(listed)[0]
        counts = [records[label] for label in listed]
    if min(counts) < least:
        raise InputError(
            f"--least-records {least} does not hold: a class has fewer records; declare fewer, or"
            " leave the class out of --classes and the data"
        )
