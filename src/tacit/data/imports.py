"""Data by path: an embedding store, or any file or folder that can be imported into one.

| path | features and labels |
|---|---|
| folder of an embedding store | those of the store |
| `.npy`, or a pair of them | features, then labels; `card.json` beside them if it lists the file |
| `NAME.npy` beside `NAME_targets.npy` | features, and the labels beside them |
| `.npz`, `.safetensors` | `x`/`X`/`features`/`embeddings`, `y`/`labels`/`targets`, `classes` |
| `.npz` of several splits | `{split}_x` and `{split}_y`, such as `train_x` and `train_y` |
| `.parquet` | a column of lists, or all columns of floats; `label`/`labels`/`y`/`target`/`class` |
| `.arrow`, `.feather`, `.ipc` | as for Parquet |
| folder of such files | as for one file; `NAME=VALUE` in the name of a folder is a column |
| folder of `.csv` or `.jsonl` files | as for one file |
| `.jsonl`, `.jsonl.gz` | as for Parquet |
| `.h5`, `.hdf5` | as for `.npz` |
| `.csv`, `.tsv`, `.csv.gz` | all columns, with a heading or none; labels are named as in Parquet |
| folder of `datasets.save_to_disk` | as for Parquet; a `ClassLabel` declares the classes |
| folder of `{split}_x.npy`, `{split}_y.npy` | as for `.npy` |
| folder of `{split}.npy`, `{split}_targets.npy` | as for `.npy` |

Ids of persons are those that a store carries, or are named by `persons`: a column or array of the
data, or a file.

Bytes of shape (n, height, width) or (n, channels, height, width) are pictures: they become rows,
and the card has their shape.

Records may have several labels: a column of lists, an array of shape (n, classes) of truth values,
or texts whose labels `label_separator` separates. They are read as a matrix of truth values.

A URL, such as `s3://bucket/folder`, takes the place of a path: Parquet and Arrow are read from
there, and other kinds are copied to a temporary folder, which is deleted when Python ends.

`FOLDER#SPLIT` names a split of a folder; `train` also stands for the one split whose name ends in
`_train`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tacit.compute.remote import RemotePath, as_path
from tacit.data.arrays import COLUMNS, Arrays, choose, make_arrays
from tacit.data.embeddings import EmbeddingStore
from tacit.data.formats import card as cards
from tacit.data.formats import (
    hdf5,
    huggingface,
    json_lines,
    npy,
    npz,
    parts,
    safetensors,
    table,
    text,
)
from tacit.data.formats.arrow import as_numpy
from tacit.data.ids import is_ids_file, places_of_ids, read_ids
from tacit.data.label_lists import checked_separator
from tacit.data.label_sets import labels_to_write
from tacit.data.locations import chosen_split, located, location_and_split, splits
from tacit.data.manifest import NAME as MANIFEST
from tacit.data.persons import stored_ids
from tacit.data.rows import check_rows
from tacit.data.sizes import check_width
from tacit.data.streams import StreamedRows
from tacit.errors import InputError

Paths = str | Path | Sequence[str | Path]
Data = Arrays | EmbeddingStore
TABLES = {
    **dict.fromkeys(parts.KINDS, table.read),
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), text.read),
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), json_lines.read),
}
"""The function that reads a table, by its ending: as READERS, what separates labels, and the column
of groups.
"""
READERS = {
    ".npz": npz.read,
    ".safetensors": safetensors.read,
    **TABLES,
    **dict.fromkeys((".h5", ".hdf5"), hdf5.read),
}
"""The function that reads a file, by its ending: from the path, the names x, y and persons, and the
width, to `Arrays`.
"""
SUFFIXES = (".npy", *READERS)

# documents of what was released, which holds no records
RELEASED = {"summary.json": "a summary", "release.json": "a release"}


def read_data(
    paths: Paths,
    *,
    x: str | None = None,
    y: str | None = None,
    persons: str | None = None,
    label_separator: str | None = None,
    split: str | None = None,
    card: str | Path | None = None,
    width: int | None = None,
    check: bool = True,
    stream: bool = False,
    role: str | None = None,
    group: str | None = None,
) -> Data:
    """Open a store or read files.

    Parameters
    ----------
    paths : path or sequence of paths
        A store, a file or a folder; two `.npy` files are features and labels.
    x, y : str, optional
        Names of the features and labels inside the file, where they are not the usual ones.
    persons : str, optional
        Whose record each row is: a file of ids (one per line, an `.npy` array, a table with
        FILE#COLUMN), else the name of a column or array of the data. Left out for a store that
        carries ids.
    label_separator : str, optional
        What separates the labels of a record in a column of texts, such as "|".
    split : str, optional
        Which split of a folder or `.npz` file that has several.
    card : path, optional
        A `card.json` with the class list and public facts of the files.
    width : int, optional
        The number of columns that the features must have; another is refused before they are read.
    check : bool
        Whether every row is checked; False is for callers that check rows as they use them.
    stream : bool
        Whether `x` may be `StreamedRows`, for callers that read it once, in order. Otherwise it is
        an array: one too large for the memory is mapped from a temporary file.
    role : {"train", "test"}, optional
        The split of an `.npz` file with several if `split` names none: the use of the rows.
    group : str, optional
        A column of a table that is no feature and becomes `groups`.

    Returns
    -------
    EmbeddingStore or Arrays
        Both have `x`, `labels`, `persons`, `classes`, `classes_declared`, `identity`, `card`,
        `content_hash`.

    Raises
    ------
    InputError
        If a file is missing, unreadable or of unknown form, ids are missing or not one a row, or a
        row breaks the rules of `check_rows`.
    StoreError
        If the store is damaged.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    files = [as_path(path) for path in paths]

    # `persons` names a file of ids, or else a column or array of the data
    column = None
    if persons is not None and not is_ids_file(persons):
        column = persons

    if label_separator is not None:
        checked_separator(label_separator)
    if len(files) == 1:
        data = _read_path(files[0], x, y, column, label_separator, split, width, role, group)
    elif len(files) == 2 and all(located(file).suffix == ".npy" for file in files):
        _refuse_options(files[0], x=x, y=y, split=split, label_separator=label_separator)
        _refuse_column(files[0], column)
        _refuse_groups(files[0], group)
        features, labels = (_on_this_machine(located(file)) for file in files)
        data = npy.read(features, labels, width=width)
    else:
        paths_text = ", ".join(map(str, files))
        raise InputError(
            f"cannot read [{paths_text}] together; give one file or folder, or a pair X.npy y.npy"
        )

    if isinstance(data, Arrays) and isinstance(data.x, StreamedRows) and not stream:
        data = replace(data, x=data.x.stored())

    if card is not None:
        data = _with_card(data, Path(card), files[0])

    if persons is not None and column is None:
        with places_of_ids(persons).in_errors():
            data = _with_persons(data, read_ids(persons))
    elif column is not None and isinstance(data, EmbeddingStore):
        # readers of files have read the column already
        data = _with_persons(data, _metadata_column(data, column))

    if check:
        source = data.folder if isinstance(data, EmbeddingStore) else data.files[0]
        with data.places.in_errors():
            check_rows(data.x, name=str(source))
    return data


def identity_of(path: str | Path, split: str | None = None) -> str:
    """Return the name under which a ledger knows the private data at `path`, without reading
    them.
    """
    path, split = location_and_split(path, split)
    if path.is_file() and parts.ending(path) in SUFFIXES:
        return text.stem(path)
    if (path / MANIFEST).exists():
        return EmbeddingStore.open(path).identity
    if splits(path):
        return _split_identity(path, chosen_split(path, split))
    if huggingface.is_dataset(path) or parts.is_parts(path):
        return path.absolute().name
    raise _unknown(path)


def split_within(path: str | Path, split: str | None, role: str) -> str | None:
    """Return the split that is read of a `.npz` file with arrays such as `train_x` and `test_x`;
    None for other data, whose splits differ in their path, and for data at a URL.
    """
    file, split = location_and_split(path, split)
    if file.suffix != ".npz" or isinstance(file, RemotePath):
        return None
    return npz.split_of(file, split, role)


def _split_identity(folder: Path, split: str) -> str:
    return f"{folder.absolute().name}-{split}"


def _read_path(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    separator: str | None,
    split: str | None,
    width: int | None,
    role: str | None,
    group: str | None,
) -> Data:
    """Read one file or folder; `persons` is a column or array of it."""
    path, split = location_and_split(path, split)
    path = _on_this_machine(path)
    if path.is_dir():
        return _read_folder(path, x, y, persons, separator, split, width, group)
    if path.suffix == ".npz" and x is None and y is None:
        part = npz.split_of(path, split, role)
        if part is not None:
            _refuse_options(path, label_separator=separator)
            _refuse_groups(path, group)
            return npz.read_split(path, part, persons, width)
    return _read_file(path, x, y, persons, separator, split, width, group)


def _read_file(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    separator: str | None,
    split: str | None,
    width: int | None,
    group: str | None,
) -> Arrays:
    _refuse_options(path, split=split)
    ending = parts.ending(path)
    if ending == ".npy":
        _refuse_options(path, x=x, y=y, label_separator=separator)
        _refuse_column(path, persons)
        _refuse_groups(path, group)
        return npy.read(path, npy.targets_of(path), width=width)
    if ending not in READERS:
        raise _unknown(path)
    if ending in TABLES:
        return TABLES[ending](path, x, y, persons, width, separator, group)
    _refuse_options(path, label_separator=separator)
    _refuse_groups(path, group)
    read = READERS[ending]
    return read(path, x, y, persons, width)


def _read_folder(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    separator: str | None,
    split: str | None,
    width: int | None,
    group: str | None,
) -> Data:
    if (path / MANIFEST).exists():
        _refuse_options(path, x=x, y=y, split=split, label_separator=separator)
        _refuse_groups(path, group)
        store = EmbeddingStore.open(path)
        check_width(path, (store.rows, store.dim), width)
        return store

    if huggingface.is_dataset(path):
        _refuse_options(path, split=split)
        return huggingface.read(path, x, y, persons, width=width, separator=separator, group=group)
    if huggingface.is_dataset_dict(path):
        name = chosen_split(path, split)
        identity = _split_identity(path, name)
        return huggingface.read(
            path / name,
            x,
            y,
            persons,
            identity=identity,
            width=width,
            separator=separator,
            group=group,
        )

    if npy.splits(path):
        _refuse_options(path, x=x, y=y, label_separator=separator)
        _refuse_column(path, persons)
        _refuse_groups(path, group)
        name = chosen_split(path, split)
        features = path / f"{name}_x.npy"
        labels = path / f"{name}_y.npy"
        return npy.read(
            features,
            labels if labels.is_file() else None,
            identity=_split_identity(path, name),
            width=width,
        )
    if parts.is_parts(path):
        return _read_parts(path, x, y, persons, separator, split, width, group)
    raise _unknown(path)


def _read_parts(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    separator: str | None,
    split: str | None,
    width: int | None,
    group: str | None,
) -> Arrays:
    """Read a folder of parts of a table, or one of its splits."""
    name = None
    identity = path.absolute().name
    if parts.splits(path):
        name = chosen_split(path, split)
        identity = _split_identity(path, name)
    else:
        _refuse_options(path, split=split)
    if parts.are_texts(path):
        files = parts.text_paths(path, name)
        read = text.read_files
        if "json" in parts.ending(files[0]):
            read = json_lines.read_files
        return read(files, path, identity, x, y, persons, width, separator, group)
    table_parts = parts.open_parts(path, name)
    return table.read_parts(table_parts, path, identity, x, y, persons, width, separator, group)


def _on_this_machine(path: Path) -> Path:
    """Return a path from which data are read: Parquet and Arrow at a URL from there, other kinds
    from a copy on this machine.
    """
    if not isinstance(path, RemotePath):
        return path
    if path.is_file():
        is_part = parts.ending(path) in parts.KINDS
    else:
        is_saved = huggingface.is_dataset(path) or huggingface.is_dataset_dict(path)
        is_store = (path / MANIFEST).exists()
        is_part = not (is_saved or is_store or parts.are_texts(path)) and parts.is_parts(path)
    if is_part:
        return path
    if path.suffix == ".npy":
        return path.copied(f"{path.stem}{npy.TARGETS}", "card.json")
    return path.copied()


def _with_card(data: Data, card: Path, path: Path) -> Arrays:
    """Return the data with the class list and the facts of a card, which replace their own."""
    if not isinstance(data, Arrays):
        raise InputError(f"{path} is a store, which has a card; leave card= out")
    classes, card_facts = cards.read(card)
    if classes is None and data.classes_declared:
        classes = data.classes

    # the shape of pictures and names of columns are read from the file, and no card states them
    facts = dict(card_facts)
    for fact in ("shape", COLUMNS):
        if fact in data.card:
            facts[fact] = data.card[fact]
    return make_arrays(
        data.x,
        labels_to_write(data),
        data.files,
        data.identity,
        classes,
        facts,
        data.persons,
        # labels beside a card are positions in its class list
        label_kind="index",
        places=data.places,
    )


def _metadata_column(store: EmbeddingStore, name: str) -> NDArray[Any]:
    """Return a column of a store's metadata."""
    table = store.metadata()
    choose(table.column_names, name, (), "persons", store.folder)
    return as_numpy(table[name])


def _with_persons(data: Data, ids: Any) -> Arrays:
    """Return the data with these ids of persons; data that carry ids are refused."""
    if data.persons is not None:
        raise InputError(f"{data.identity} carries person ids; leave persons out")
    persons = stored_ids(ids, len(data.x))
    if isinstance(data, Arrays):
        return replace(data, persons=persons)
    return Arrays(
        x=data.x,
        labels=data.labels,
        classes=data.classes if data.classes_declared or data.several else None,
        identity=data.identity,
        files=(data.folder / MANIFEST,),
        card=data.card,
        names=data.names,
        names_card=data.names_card,
        persons=persons,
        declared_public=data.declared_public,
        stated_origin=data.origin,
        classes_derived=not data.classes_declared,
    )


def _unknown(path: Path) -> InputError:
    for file, kind in RELEASED.items():
        if (path / file).is_file():
            return InputError(
                f"{path} holds {kind} and no records; give a store, a file or a table"
            )
    if path.is_dir():
        kinds = "a store, a saved data set nor a folder of SPLIT_x.npy or SPLIT_train.npy files"
        return InputError(f"{path} is neither {kinds}; check its name")
    return InputError(f"{path} has an unknown ending; give {', '.join(SUFFIXES)}, or a folder")


def _refuse_column(path: Path, persons: str | None) -> None:
    if persons is not None:
        raise InputError(
            f"persons={persons} is not a file, and {path} has no columns; give a file, one id per"
            " line"
        )


def _refuse_groups(path: Path, group: str | None) -> None:
    if group is not None:
        raise InputError(
            f"by={group} is not a file, and {path} has no columns; give a file with one value a row"
        )


def _refuse_options(path: Path, **options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name}={value} does not apply to {path}; leave it out")
