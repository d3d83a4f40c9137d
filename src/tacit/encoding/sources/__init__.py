"""Sources of pictures and texts, one file for each way in which people store them; docs/encoders.md
lists them.

A new archive is a file with `splits(files)` and `read(files, split)`, and its name in `ARCHIVES`.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tacit.data import tables
from tacit.data.arrays import existing_here
from tacit.data.formats import huggingface
from tacit.data.ids import is_ids_file, places_of_ids, read_ids
from tacit.data.label_lists import checked_separator
from tacit.encoding.sources import arrays, cifar, columns, folders, food101, mnist, stl10
from tacit.encoding.sources.base import Faults, Source, persons_of
from tacit.encoding.sources.tree import Tree, tree
from tacit.errors import InputError

ARCHIVES = (mnist, cifar, stl10, food101)
ARRAYS = (".npy", ".npz")


def splits(path: Path | str) -> list[str]:
    """Return the names of the splits of a source, such as train and test; empty if it has none."""
    path = existing_here(path)
    if path.is_dir() and huggingface.is_dataset_dict(path):
        return huggingface.splits(path)
    if path.suffix in ARRAYS:
        return arrays.splits(path)
    if tables.is_table(path):
        return []
    files = tree(path)
    if files is None:
        return []
    reader = _archive_reader(files) or folders
    names: list[str] = reader.splits(files)
    return names


def open_source(
    path: Path | str,
    split: str | None = None,
    *,
    labels: Path | str | None = None,
    x: str | None = None,
    y: str | None = None,
    persons: str | None = None,
    persons_folder: int | None = None,
    public: bool = False,
    skip_bad: bool = False,
    label_separator: str | None = None,
) -> Source:
    """Open a source of pictures or texts without decoding any.

    Parameters
    ----------
    path : path
        A folder, an archive, a table or an array of pixels; docs/encoders.md lists the forms.
    split : str, optional
        Which split of a source that has several.
    labels : path, optional
        For pictures in a flat folder, a table that names them; for `.npy`, an array.
    x, y : str, optional
        The columns or arrays of the content and the labels, where they do not have a usual name.
    persons : str, optional
        Whose record each is: a file of ids, see `tacit.data.ids.read_ids`, else a column of the
        table, or an array.
    persons_folder : int, optional
        Which folder of a picture's path is named after the person: 1 for PERSON/CLASS/x.png, 2 for
        CLASS/PERSON/x.png.
    public : bool
        Whether the labels of a table are left unread.
    skip_bad : bool
        Whether records without a label or an id become faults of the source, which are left out;
        otherwise they are refused.
    label_separator : str, optional
        What separates the labels of a record in a table's column of texts, such as "|". Lists have
        several labels without it.

    Raises
    ------
    InputError
        If there is no such source, it is damaged or empty, ids of persons are missing or not one a
        record, or an option does not apply to it.
    """
    path = existing_here(path)
    faults: Faults | None = {} if skip_bad else None
    table = None if labels is None else existing_here(labels)
    _check_persons(persons, persons_folder, public)
    if label_separator is not None:
        checked_separator(label_separator)
    separator = None if public else label_separator

    # `persons` names a file of ids, or else a column or array of the source
    has_ids_file = persons is not None and is_ids_file(persons)
    reopen = partial(
        open_source,
        path,
        split,
        labels=labels,
        x=x,
        y=y,
        persons=None if has_ids_file else persons,
        persons_folder=persons_folder,
        public=public,
        skip_bad=skip_bad,
        label_separator=label_separator,
    )
    if persons is not None and has_ids_file:
        source = _open(path, split, table, x, y, None, persons_folder, public, faults, separator)
        with places_of_ids(persons).in_errors():
            ids = persons_of(read_ids(persons), len(source), persons, faults)
        source = replace(source, persons=ids, faults=faults or {})
    else:
        source = _open(path, split, table, x, y, persons, persons_folder, public, faults, separator)
    if path.is_dir():
        source = replace(source, folder=path)
    return replace(source, reopen=reopen)


def _check_persons(persons: str | None, folder: int | None, public: bool) -> None:
    """Refuse ids that are given twice or for a public store, and folders that do not exist."""
    if folder is not None and folder < 1:
        raise InputError(
            f"--persons-folder {folder} must be 1 or more; give 1 for PERSON/CLASS/x.png"
        )
    if folder is not None and persons is not None:
        raise InputError(
            f"--persons {persons} and --persons-folder {folder} both give ids; leave one of"
            " them out"
        )
    if public and (folder is not None or persons is not None):
        raise InputError("--public keeps no person ids, which are private; leave them out")


def _open(
    path: Path,
    split: str | None,
    table: Path | None,
    x: str | None,
    y: str | None,
    persons: str | None,
    persons_folder: int | None,
    public: bool,
    faults: Faults | None,
    separator: str | None,
) -> Source:
    """Open a source; `persons` is a column or array of it."""
    split = _chosen_split(path, split)
    if path.suffix in ARRAYS:
        _refuse(path, persons_folder=persons_folder, label_separator=separator)
        return arrays.read(path, split, table, x, y, persons, faults)
    if tables.is_table(path) or (path.is_dir() and huggingface.is_dataset_dict(path)):
        _refuse(path, labels=table, persons_folder=persons_folder)
        table_path = path if split is None else path / split
        return columns.read(table_path, x, y, persons, public, faults, separator)
    files = tree(path)
    if files is None:
        endings = ".zip, .tar, .tar.gz, .npy, .npz, " + ", ".join(tables.KINDS)
        raise InputError(
            f"{path} has an unknown ending; give a folder, or a file that ends in {endings}"
        )
    reader = _archive_reader(files)
    if reader is None or split is None:
        return folders.read(
            files, split, table, x, y, persons, persons_folder, public, faults, separator
        )
    _refuse(path, labels=table, x=x, y=y, persons=persons, persons_folder=persons_folder)
    _refuse(path, label_separator=separator)
    source: Source = reader.read(files, split)
    return source


def _chosen_split(path: Path, split: str | None) -> str | None:
    """Return the split of that name, or the only one; None for a source without splits."""
    names = splits(path)
    if split is None and len(names) == 1:
        return names[0]
    if split in names or (split is None and not names):
        return split
    fault = "several splits" if split is None else f"no split {split!r}"
    choices = ", ".join(names) or "none, so leave it out"
    raise InputError(f"{path} has {fault}; choose --split from: {choices}")


def _archive_reader(files: Tree) -> Any:
    """Return the module of ARCHIVES that knows these files; None if none does."""
    for reader in ARCHIVES:
        if reader.splits(files):
            return reader
    return None


def _refuse(path: Path, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"--{name.replace('_', '-')} {value} does not apply to {path}; leave it out"
            )
