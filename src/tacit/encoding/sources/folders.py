"""Pictures in folders or archives: a class per subfolder, or a flat folder beside a table of
labels.

Another level of folders may be named after persons: PERSON/CLASS/x.png is level 1,
CLASS/PERSON/x.png level 2.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.tables import open_table
from tacit.encoding.sources import base
from tacit.encoding.sources.base import SPLITS, Source, file_stamp, named_classes, stamp
from tacit.encoding.sources.columns import LABELS, choose_column
from tacit.encoding.sources.tree import Tree
from tacit.errors import InputError

PICTURES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".webp",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".jp2",
    ".avif",
)
FILES = ("file", "file_name", "filename", "path", "image", "image_path", "picture", "name", "id")
TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".csv.gz")


def splits(files: Tree) -> list[str]:
    """Return the top folders that are named as splits, where there are no others."""
    names = [name for name in files.folders if name.lower() in SPLITS]
    if len(names) < len(files.folders):
        return []
    return names


def read(
    files: Tree,
    split: str | None,
    labels: Path | None,
    x: str | None,
    y: str | None,
    persons: str | None,
    level: int | None,
    public: bool,
) -> Source:
    """Pictures of a folder or archive, or of one split of it."""
    prefix = "" if split is None else f"{split}/"
    names = [name for name in files.names if name.startswith(prefix)]
    pictures = [name for name in names if name.lower().endswith(PICTURES)]
    others = (*files.others, *(name for name in names if not name.lower().endswith(PICTURES)))
    if not pictures:
        raise base.empty(files.path, f"pictures ({', '.join(PICTURES[:4])}, ...)")
    table = labels
    if table is None and not public:
        table = _table_in(files, [name for name in others if "/" not in name.removeprefix(prefix)])
    if table is not None:
        if level is not None:
            said = f"--persons-folder {level} does not apply to pictures that {table} names"
            raise InputError(f"{said}; name its column of ids with --persons")
        return _labelled(files, prefix, pictures, others, table, x, y, persons)
    if any(name is not None for name in (x, y, persons)):
        said = "--x, --y and --persons name columns of a table"
        raise InputError(f"{said}; give the table with --labels, or leave them out")
    inner, ids = _without_persons(
        [name.removeprefix(prefix) for name in pictures], level, files.path
    )
    flat = [name for name in inner if "/" not in name]
    if flat and len(flat) < len(inner):
        raise InputError(
            f"{files.path} has pictures beside its subfolders (first: {flat[0]}); move each into"
            " the folder of its class, or give a table of labels with --labels"
        )

    labels_of_pictures = None
    classes = None
    if not flat:
        labels_of_pictures, classes = _labels_by_subfolder(files, prefix, names, inner, level)
    return Source(
        "picture",
        pictures,
        files.records(pictures),
        stamp(files.stamp, pictures),
        labels_of_pictures,
        classes,
        left_out=others,
        persons=ids,
        hidden=0 if level is None else prefix.count("/") + level,
    )


def _without_persons(names: list[str], level: int | None, where: Path) -> tuple[list[str], Any]:
    """Paths without the folder of the person at this level, and the ids."""
    if level is None:
        return names, None
    paths = [name.split("/") for name in names]
    if any(len(folders) <= level for folders in paths):  # no name is shown, since it may be an id
        fault = (
            f"has pictures that lie in fewer than {level} folders, the last of which is the"
            " person's"
        )
        raise InputError(f"{where} {fault}; correct --persons-folder {level}, or move them")
    inner = ["/".join(folders[: level - 1] + folders[level:]) for folders in paths]
    return inner, base.persons_of([folders[level - 1] for folders in paths], len(paths), where)


def _labels_by_subfolder(
    files: Tree, prefix: str, names: list[str], pictures: list[str], level: int | None
) -> tuple[Any, Any]:
    """Return the labels of the pictures, and the class list.

    Classes are the subfolders; in a folder on disk, those without pictures too.
    """
    if files.path.is_dir():
        class_folders = _subfolders(files.path / prefix)
        if level == 1:
            # the folders above are those of persons
            class_folders = [inner for person in class_folders for inner in _subfolders(person)]
        classes = sorted({folder.name for folder in class_folders})
    else:
        paths = [name.removeprefix(prefix) for name in names]
        if level == 1:
            paths = [path.partition("/")[2] for path in paths]
        classes = sorted({path.partition("/")[0] for path in paths if "/" in path})

    class_values = named_classes(classes, files.path)
    labels = np.array([name.partition("/")[0] for name in pictures])
    numbers = base.numbers(classes)
    if numbers is not None:
        # digits/0, digits/1, ...
        class_values = named_classes(sorted(numbers), files.path)
        labels = labels.astype(np.int64)
    return base.labels_of(labels, len(pictures), files.path), class_values


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]


def _table_in(files: Tree, names: Sequence[str]) -> Path | None:
    """Return the table of labels that lies among the pictures of a folder, if there is one."""
    tables = [name for name in names if name.lower().endswith(TABLES)]
    if not tables or not files.path.is_dir():
        return None
    if len(tables) > 1:
        raise InputError(
            f"{files.path} holds several tables ({', '.join(tables)}); name the one of labels with"
            " --labels"
        )
    return files.path / tables[0]


def _labelled(
    files: Tree,
    prefix: str,
    pictures: list[str],
    others: tuple[str, ...],
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
) -> Source:
    """Pictures in the order of a table that names them."""
    table = open_table(path)
    person = choose_column(table.names, persons, (), "persons", path)
    columns = [name for name in table.names if name != person]
    file = choose_column(columns, x, FILES, "x", path)
    label = choose_column(columns, y, LABELS, "y", path)
    if file is None or label is None or file == label:
        listing = ", ".join(table.names)
        raise InputError(
            f"{path} has the columns {listing}; name the one of files with --x, that of labels"
            " with --y"
        )
    listed = [str(value).replace("\\", "/") for value in table.column(file)]
    if not listed:
        raise InputError(f"{path} has no rows; give one for each picture")
    found = _find(listed, prefix, pictures, path)
    if not any(found):
        raise InputError(
            f"{path} names no picture of {files.path} (first: {listed[0]!r}); choose its column"
            " with --x"
        )
    twice, times = Counter(name for name in found if name is not None).most_common(1)[0]
    if times > 1:
        raise InputError(f"{path} names {twice!r} twice; keep one row per picture")
    unlisted = sorted(set(pictures) - set(found))
    return Source(
        "picture",
        listed,
        files.records(found),
        stamp(files.stamp, file_stamp(path), file, label),
        base.class_values(table.column(label), len(listed), path),
        left_out=(*(name for name in others if files.path / name != path), *unlisted),
        persons=(
            None if person is None else base.persons_of(table.column(person), len(listed), path)
        ),
    )


def _find(listed: list[str], prefix: str, pictures: list[str], path: Path) -> list[str | None]:
    """Return the picture of each row of a table.

    A row names it by its path, else by its file name if no other picture has it, or either without
    its ending.
    """
    forms = _pictures_by_form(pictures, prefix)
    picture_of_row: list[str | None] = []
    for row, name in enumerate(listed):
        candidates = next((form[name] for form in forms if name in form), [])
        if len(candidates) > 1:
            either = " or ".join(candidates[:2])
            raise InputError(
                f"{path} row {row} names {name!r}, which may be {either}; give the path"
            )
        picture_of_row.append(candidates[0] if candidates else None)
    return picture_of_row


def _pictures_by_form(pictures: list[str], prefix: str) -> list[dict[str, list[str]]]:
    """Return pictures by each form of their names, the most specific form first."""
    by_path: dict[str, list[str]] = {}
    by_file: dict[str, list[str]] = {}
    by_path_without_ending: dict[str, list[str]] = {}
    by_file_without_ending: dict[str, list[str]] = {}
    for name in pictures:
        inner = name.removeprefix(prefix)
        file = inner.rpartition("/")[2]
        by_path.setdefault(inner, []).append(name)
        by_file.setdefault(file, []).append(name)
        by_path_without_ending.setdefault(inner.rpartition(".")[0], []).append(name)
        by_file_without_ending.setdefault(file.rpartition(".")[0], []).append(name)
    return [by_path, by_file, by_path_without_ending, by_file_without_ending]
