"""`tacit import`: arrays and tables to a store."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.cli.common import (
    check_declaration,
    declared_classes,
    is_covered,
    kind_of,
    number_of_persons,
    read_classes,
    say,
    tell_of_case,
    tell_of_columns,
    tell_of_ledger,
)
from tacit.cli.names import names_for
from tacit.cli.options import LabelMeaning, LabelSeparator, Out, Persons
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.imports import Data
    from tacit.data.names import ClassNames


def import_(
    *files: Path,
    out: Out,
    x: str | None = None,
    y: str | None = None,
    persons: Persons = None,
    split: str | None = None,
    card: Path | None = None,
    classes: str | None = None,
    labels: LabelMeaning = "value",
    label_separator: LabelSeparator = None,
    names: str | None = None,
    identity: str | None = None,
    declare_public: bool = False,
    dtype: Literal["float16", "float32", "float64"] | None = None,
    force: bool = False,
) -> None:
    """Make a store from files. A folder with several splits becomes a folder of stores, one per
    split.

    Pictures, bytes of shape (n, height, width) or (n, channels, height, width), become rows from 0
    to 1; `tacit fit` knows their shape from the store. For an encoder's embeddings of them use
    `tacit encode`.

    Parameters
    ----------
    files
        A pair X.npy Y.npy, or one .npz, .parquet, .safetensors, or a folder saved by Hugging Face
        datasets or holding SPLIT_x.npy and SPLIT_y.npy, or NAME_train.npy and
        NAME_train_targets.npy. FOLDER#SPLIT is one split.
        A card.json beside .npy files is read if it lists them.
    out
        Folder of the store.
    x
        Name of the features inside the file, where it is not a usual one.
    y
        Name of the labels inside the file, where it is not a usual one.
    split
        Which split of a folder that has several.
    card
        A card.json with the class list and public facts of the files.
    classes
        The class list as a public fact: a number N for 0..N-1, a file with one class a line, or
        classes with commas between them.
    names
        Rows of class names that the store shall carry: a store or file with rows labelled by class,
        or with one row for each class in their order. By default those that an imported store
        carries; `none` leaves them out.
    identity
        Declared name of the private data, under which a ledger knows it; by default that of an
        imported store, or of data with a ledger, so that copies share it, else the store's name.
    declare_public
        State in the store that all its rows and labels are public, so that figures on them may be
        published.
    dtype
        How rows are stored: by default float16 if the file holds that type, else float32.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_folder, remove_parts
    from tacit.data.ids import is_ids_file
    from tacit.data.imports import read_data
    from tacit.data.locations import located, splits
    from tacit.data.manifest import holds_stores

    if not files:
        raise InputError("no files to import; give for example X.npy Y.npy, or one .npz file")
    declared = read_classes(classes)
    parts = splits(files[0]) if len(files) == 1 and files[0].is_dir() else []
    if persons is not None and split is None and len(parts) > 1 and is_ids_file(persons):
        raise InputError(f"--persons {persons} has the ids of one split; import each with --split")
    identity_is_given = identity is not None

    def import_part(folder: Path, part: str | None, identity: str, overwrite: bool) -> str:
        """Write the store of one split, or of all files, and return a line about it."""
        # rows are read once, as the store is written, unless names are compared with them
        stream = names is None
        data = read_data(
            files,
            x=x,
            y=y,
            persons=persons,
            label_separator=label_separator,
            split=part,
            card=card,
            check=False,
            stream=stream,
        )
        tell_of_columns(data, files[0])
        place = located(files[0], part)
        if declare_public:
            check_declaration(files[0], place, data)
        class_list = declared_classes(declared, data)
        class_names = names_for(names, data, class_list, place)

        # A copy holds the same records, so its uses belong into the ledger of the data.
        if not identity_is_given and _has_identity(place, data):
            identity = data.identity

        store = _write(
            folder,
            data,
            class_list,
            class_names,
            labels=kind_of(data, class_list, labels),
            identity=identity,
            dtype=dtype,
            force=overwrite,
            declared_public=declare_public or data.declared_public,
        )
        tell_of_case(store.persons)
        tell_of_ledger(place, data, folder)
        return _summary(store, class_names)

    identity = identity or out.name
    remove_parts(out)
    with shown_progress():
        if split is not None or len(parts) < 2:
            say(f"{out}: {import_part(out, split, identity, force)}")
            return

        with atomic_folder(out, force=force, ours=holds_stores) as temporary:
            summaries = {}
            for part in parts:
                summaries[part] = import_part(temporary / part, part, f"{identity}-{part}", False)

    for part, summary in summaries.items():
        say(f"{out / part}: {summary}")


def _has_identity(place: Path, data: "Data") -> bool:
    """Return true if the data are a store, or a ledger counts what is spent on them."""
    from tacit.data.manifest import NAME

    return is_covered(place, data) or (place / NAME).is_file()


def _write(
    folder: Path,
    data: "Data",
    classes: Any,
    class_names: "ClassNames | None",
    **options: Any,
) -> "EmbeddingStore":
    """Write a store of the data; further options are those of `EmbeddingStore.write`."""
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.label_sets import labels_to_write

    with data.places.in_errors():
        return EmbeddingStore.write(
            folder,
            _features(data),
            labels_to_write(data),
            persons=data.persons,
            classes=classes,
            card=data.card,
            names=None if class_names is None else class_names.rows,
            names_card=None if class_names is None else class_names.facts,
            metadata=data.origin.columns(),
            **options,
        )


def _features(data: "Data") -> Any:
    """Return the features; pixels in bytes become numbers from 0 to 1, as networks take them."""
    import numpy as np

    are_pixels = data.x.dtype == np.uint8 and "shape" in data.card
    if are_pixels:
        return np.divide(data.x, 255, dtype=np.float32)
    return data.x


def _summary(store: "EmbeddingStore", class_names: "ClassNames | None") -> str:
    """Return a line about a store."""
    facts = [f"{store.rows} rows{number_of_persons(store.persons)} of width {store.dim}"]
    if store.labels is None:
        facts.append("no labels")
    if store.classes_declared and store.classes:
        facts.append(f"{len(store.classes)} classes")
    else:
        facts.append("no declared classes")
    if store.several:
        facts.append("several labels a record")
    if class_names is not None:
        facts.append(f"{class_names.count} rows of class names")
    return ", ".join(facts)
