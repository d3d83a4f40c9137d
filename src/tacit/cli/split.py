"""`tacit split`: a private, a public and a test store from one data set, by position and by
person.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import (
    check_declaration,
    number_of_persons,
    say,
    tell_of_case,
    tell_of_ledger,
)
from tacit.cli.options import LabelSeparator, Out, Persons
from tacit.compute.progress_display import shown_progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tacit.data.imports import Data


def split(
    data: Path,
    /,
    *,
    out: Out,
    n_public: int,
    n_test: int = 0,
    n_private: int | None = None,
    seed: int = 0,
    persons: Persons = None,
    label_separator: LabelSeparator = None,
    declare_public: bool = False,
    force: bool = False,
) -> None:
    """Deal a data set to a private, a public and a test store, by position and never by features or
    labels.

    Where the data have ids of persons, each person is dealt out whole, so that no person is in two
    parts. A part of N records then gets their share of the persons, and its number of records is
    approximate.

    Each row keeps its position in the source (column row of metadata.parquet) and, where it has
    one, its name there (record); in the public part without the folders of the name.

    Parameters
    ----------
    data
        A store, or a file that can be imported.
    out
        Folder of the stores `private`, `public` (without labels and ids of persons) and `test`.
    n_public
        Records of the public part. Their features will not be protected.
    n_test
        Records of the test part, which will not be protected at all.
    n_private
        Records of the private part, 0 for none; all the others if left out.
    seed
        Public: which record goes where.
    declare_public
        State in the stores `public` and `test` that all their rows and labels are public, so that
        figures on them may be published. The part `private` is public only if the data were
        declared so.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_folder, remove_parts
    from tacit.data.imports import read_data
    from tacit.data.locations import located
    from tacit.data.manifest import holds_stores
    from tacit.data.splits import split as deal

    source = read_data(data, persons=persons, label_separator=label_separator, role="train")
    if declare_public:
        check_declaration(data, located(data), source)
    parts = deal(
        len(source.x),
        n_public=n_public,
        n_test=n_test,
        n_private=n_private,
        seed=seed,
        persons=source.persons,
    )
    rows_of_part = {"private": parts.private, "public": parts.public, "test": parts.test}

    lines = []
    remove_parts(out)
    with shown_progress(), atomic_folder(out, force=force, ours=holds_stores) as temporary:
        for name, rows in rows_of_part.items():
            if len(rows):
                summary = _write_part(
                    temporary / name, name, source, rows, declare_public=declare_public
                )
                lines.append(f"{out / name}: {summary}")

    say("\n".join(lines))
    tell_of_case(source.persons)
    tell_of_ledger(data, source, out / "private")


def _write_part(
    path: Path, name: str, source: "Data", rows: "NDArray[np.int64]", *, declare_public: bool
) -> str:
    """Write the store of one part, and return its numbers of rows and persons in words."""
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.label_sets import labels_to_write
    from tacit.data.manifest import dtype_of

    persons = None
    if source.persons is not None:
        persons = source.persons[rows]
    labels = labels_to_write(source, rows)
    origin = source.origin.at(rows)
    stored_persons = persons

    # the private part has the identity of the data, so that a ledger adds up what both are charged
    identity = source.identity
    if name != "private":
        identity = f"{source.identity}-{name}"
    declared_public = source.declared_public or (declare_public and name != "private")

    if name == "public":
        labels = None
        stored_persons = None
        # folders may be named after labels or persons
        origin = origin.without_folders()

    EmbeddingStore.write(
        path,
        source.x[rows],
        labels,
        classes=source.classes if source.classes_declared else None,
        card=source.card,
        identity=identity,
        names=source.names,
        names_card=source.names_card,
        dtype=dtype_of(source.x),
        persons=stored_persons,
        metadata=origin.columns(),
        declared_public=declared_public,
    )
    unlabelled = ", no labels" if labels is None else ""
    return f"{len(rows)} rows{number_of_persons(persons)}{unlabelled}"
