"""`tacit subset`: fewer records of a labelled data set, balanced or imbalanced, for research."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import (
    check_declaration,
    labels_of,
    number_of_persons,
    say,
    tell_of_case,
    tell_of_ledger,
)
from tacit.cli.options import LabelSeparator, Out, Persons
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def subset(
    data: Path,
    /,
    *,
    out: Out,
    imbalance: float | None = None,
    seed: int = 0,
    rows: int | None = None,
    persons: Persons = None,
    label_separator: LabelSeparator = None,
    declare_public: bool = False,
    force: bool = False,
) -> None:
    """Keep a long-tailed or balanced subset of a labelled data set: the records that plans use at
    this ratio and seed.

    For research: classes are cut to sizes by their private labels, and no guarantee covers that.

    Parameters
    ----------
    data
        A store, or a file that can be imported.
    out
        Folder of the new store. It keeps the identity of the data, whose records it holds.
    imbalance
        Ratio of the largest to the smallest class. At 1 every class is cut to the size of the
        smallest. By default no class is cut, and `rows` must be given.
    seed
        Decides which class gets which size and which records stay; `subset_seed` in plans.
    rows
        How many records to take the subset of, as `rows` in plans; all of them by default.
    declare_public
        State in the store that all its rows and labels are public, so that figures on them may be
        published.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import check_writable, remove_parts
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.imports import read_data
    from tacit.data.label_sets import labels_to_write
    from tacit.data.locations import located
    from tacit.data.manifest import dtype_of, is_store

    if imbalance is None and rows is None:
        raise InputError(
            "subset keeps every record without --imbalance or --rows; give at least one of them"
        )
    _check_numbers(imbalance, seed)
    if located(data).resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(f"--out {out} is the data itself, or lies in it; name another folder")
    check_writable(out, force=force, ours=is_store)

    source = read_data(data, persons=persons, label_separator=label_separator, role="train")
    if declare_public:
        check_declaration(data, located(data), source)
    labels = labels_of(source, data)
    if imbalance is not None and source.several:
        raise InputError(
            f"--imbalance {imbalance:g} cuts classes to sizes, and records of {data} may have"
            " several labels, so that each counts in several classes; take --rows alone"
        )
    if rows is not None and not 1 <= rows <= len(labels):
        raise InputError(
            f"--rows {rows} must be from 1 to the {len(labels)} records of {data}; correct it"
        )

    declared = source.classes if source.classes_declared else None
    subset = _subset(labels, declared, rows or len(labels), imbalance, seed)
    subset_persons = None
    if source.persons is not None:
        subset_persons = source.persons[subset]

    card = {**source.card, "subset": {"imbalance": imbalance, "seed": seed, "rows": rows}}
    remove_parts(out)
    with shown_progress():
        EmbeddingStore.write(
            out,
            source.x[subset],
            labels_to_write(source, subset),
            classes=declared,
            card=card,
            identity=source.identity,
            names=source.names,
            names_card=source.names_card,
            dtype=dtype_of(source.x),
            force=force,
            persons=subset_persons,
            declared_public=declare_public or source.declared_public,
            metadata=source.origin.at(subset).columns(),
        )

    rows_of_persons = f"{len(labels)} rows{number_of_persons(subset_persons)}"
    if imbalance is None:
        say(f"{out}: {len(subset)} of {rows_of_persons}")
    else:
        say(f"{out}: {len(subset)} of {rows_of_persons}, imbalance {imbalance:g}")
        say(
            "For research: class sizes were chosen by the private labels, and no guarantee covers"
            " that."
        )
    tell_of_case(source.persons)
    tell_of_ledger(data, source, out)


def _check_numbers(imbalance: float | None, seed: int) -> None:
    """Refuse a ratio or a seed that is out of range."""
    if imbalance is not None and not 1 <= imbalance < math.inf:
        raise InputError(
            f"--imbalance {imbalance:g} must be a finite ratio >= 1, largest to smallest;"
            " correct it"
        )
    if seed < 0:
        raise InputError(f"--seed {seed} must be 0 or more; correct it")


def _subset(
    labels: "NDArray[Any]", declared: Any, n_rows: int, imbalance: float | None, seed: int
) -> "NDArray[np.int64]":
    """Positions of the first `n_rows` records, in plans' order, cut to the imbalance; ascending."""
    import numpy as np

    from tacit.data.imbalance import imbalanced_subset
    from tacit.data.labels import encode_labels
    from tacit.data.splits import first_rows

    rows = first_rows(len(labels), n_rows)
    if imbalance is None:
        return rows
    classes = list(declared or np.unique(labels).tolist())
    class_indices = encode_labels(labels, classes)[rows]
    return rows[np.sort(imbalanced_subset(class_indices, imbalance, seed, len(classes)))]
