"""Sources of pictures and texts, one file for each way in which people store them; docs/encoders.md lists them.

A new archive is a file with `splits(files)` and `read(files, split)`, and its name in `ARCHIVES`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.data import tables
from tacit.data.arrays import existing
from tacit.data.formats import huggingface
from tacit.encoding.sources import arrays, cifar, columns, folders, food101, mnist, stl10
from tacit.encoding.sources.base import Source
from tacit.encoding.sources.tree import Tree, tree
from tacit.errors import InputError

ARCHIVES = (mnist, cifar, stl10, food101)
ARRAYS = (".npy", ".npz")


def splits(path: Path | str) -> list[str]:
    """Names of the splits of a source, such as train and test; empty if it has none."""
    path = existing(path)
    if path.is_dir() and huggingface.is_dataset_dict(path):
        return huggingface.splits(path)
    if path.suffix in ARRAYS:
        return arrays.splits(path)
    files = None if tables.is_table(path) else tree(path)
    if files is None:
        return []
    found: list[str] = (_archive(files) or folders).splits(files)
    return found


def open_source(
    path: Path | str,
    split: str | None = None,
    *,
    labels: Path | str | None = None,
    x: str | None = None,
    y: str | None = None,
    public: bool = False,
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
    public : bool
        Whether the labels of a table are left unread.

    Raises
    ------
    InputError
        If there is no such source, it is damaged or empty, or an option does not apply to it.
    """
    path, table = existing(path), None if labels is None else existing(labels)
    source = _open(path, split, table, x, y, public)
    return replace(source, folder=path) if path.is_dir() else source


def _open(path: Path, split: str | None, table: Path | None, x: str | None, y: str | None, public: bool) -> Source:
    names = splits(path)
    if split is None and len(names) == 1:
        split = names[0]
    if (names or split is not None) and split not in names:
        fault = "several splits" if split is None else f"no split {split!r}"
        raise InputError(f"{path} has {fault}; choose --split from: {', '.join(names) or 'none, so leave it out'}")
    if path.suffix in ARRAYS:
        return arrays.read(path, split, table, x, y)
    if tables.is_table(path) or (path.is_dir() and huggingface.is_dataset_dict(path)):
        _refuse(path, labels=table)
        return columns.read(path if split is None else path / split, x, y, public)
    files = tree(path)
    if files is None:
        endings = ".zip, .tar, .tar.gz, .npy, .npz, " + ", ".join(tables.KINDS)
        raise InputError(f"{path} has an unknown ending; give a folder, or a file that ends in {endings}")
    archive = _archive(files)
    if archive is None or split is None:
        return folders.read(files, split, table, x, y, public)
    _refuse(path, labels=table, x=x, y=y)
    source: Source = archive.read(files, split)
    return source


def _archive(files: Tree) -> Any:
    """The module of ARCHIVES that knows these files."""
    return next((archive for archive in ARCHIVES if archive.splits(files)), None)


def _refuse(path: Path, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} {value} does not apply to {path}; leave it out")
