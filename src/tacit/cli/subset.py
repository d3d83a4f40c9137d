"""`tacit subset`: an imbalanced store from a balanced one, for research."""

import math
from pathlib import Path

from tacit.cli.common import (
    check_declaration,
    labels_of,
    number_of_persons,
    say,
    shown_progress,
    tell_of_case,
    tell_of_ledger,
)
from tacit.cli.options import Persons
from tacit.errors import InputError


def subset(
    data: Path,
    /,
    *,
    out: Path,
    imbalance: float,
    seed: int = 0,
    rows: int | None = None,
    persons: Persons = None,
    declare_public: bool = False,
    force: bool = False,
) -> None:
    """Keep a long-tailed subset of a labelled data set: the records that plans use at this ratio
    and seed.

    For research: classes are cut to sizes by their private labels, and no guarantee covers that.

    Parameters
    ----------
    data
        A store, or a file that can be imported.
    out
        Folder of the new store. It keeps the identity of the data, whose records it holds.
    imbalance
        Ratio of the largest to the smallest class. At 1 all records are kept, as in plans.
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
    import numpy as np

    from tacit.compute.atomic import check_writable, remove_parts
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.imbalance import imbalanced_subset
    from tacit.data.imports import located, read_data
    from tacit.data.labels import encode_labels
    from tacit.data.manifest import dtype_of, is_store
    from tacit.data.splits import first_rows

    if not 1 <= imbalance < math.inf:
        raise InputError(
            f"--imbalance {imbalance:g} must be a finite ratio >= 1, largest to smallest;"
            " correct it"
        )
    if seed < 0:
        raise InputError(f"--seed {seed} must be 0 or more; correct it")
    if located(data).resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(f"--out {out} is the data itself, or lies in it; name another folder")
    check_writable(out, force=force, ours=is_store)
    source = read_data(data, persons=persons)
    if declare_public:
        check_declaration(data, located(data), source)
    labels = labels_of(source, data)
    if rows is not None and not 1 <= rows <= len(labels):
        raise InputError(
            f"--rows {rows} must be from 1 to the {len(labels)} records of {data}; correct it"
        )
    declared = source.classes if source.classes_declared else None
    chosen = first_rows(len(labels), rows or len(labels))
    if imbalance > 1:
        classes = list(declared or np.unique(labels).tolist())
        indexes = encode_labels(labels, classes)[chosen]
        chosen = chosen[np.sort(imbalanced_subset(indexes, imbalance, seed, len(classes)))]
    card = {**source.card, "subset": {"imbalance": imbalance, "seed": seed, "rows": rows}}
    remove_parts(out)
    with shown_progress():
        EmbeddingStore.write(
            out,
            source.x[chosen],
            labels[chosen],
            classes=declared,
            card=card,
            identity=source.identity,
            names=source.names,
            names_card=source.names_card,
            dtype=dtype_of(source.x),
            force=force,
            persons=None if source.persons is None else source.persons[chosen],
            declared_public=declare_public or source.declared_public,
            metadata=source.origin.at(chosen).columns(),
        )
    kept = number_of_persons(None if source.persons is None else source.persons[chosen])
    say(f"{out}: {len(chosen)} of {len(labels)} rows{kept}, imbalance {imbalance:g}")
    say(
        "For research: class sizes were chosen by the private labels, and no guarantee covers that."
    )
    tell_of_case(source.persons)
    tell_of_ledger(data, source, out)
