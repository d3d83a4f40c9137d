"""Pictures in folders or archives: a class per subfolder, or a flat folder beside a table of
labels.

Folders that hold all pictures, as in photos/cat/x.png and photos/dog/y.png, are no class: the
folders below the deepest of them are. Names are compared in Unicode NFC.

Another level of folders may be named after persons: PERSON/CLASS/x.png is level 1,
CLASS/PERSON/x.png level 2.
"""

import glob
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.texts import nfc
from tacit.data.tables import open_table
from tacit.encoding.sources import base
from tacit.encoding.sources.base import SPLITS, Faults, Source, file_stamp, named_classes, stamp
from tacit.encoding.sources.columns import LABELS, choose_column
from tacit.encoding.sources.tree import FAULTS, Tree, damaged
from tacit.errors import InputError, RowError

PICTURES = (
    ".jpg",
    ".jpeg",
    ".jfif",
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
# a file with the class of a picture, as WebDataset keeps it, and the bytes of it that are read
CLASS = ".cls"
MOST_BYTES = 4096
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
    faults: Faults | None = None,
    separator: str | None = None,
) -> Source:
    """Read pictures of a folder or archive, or of one split of it.

    A table names them, or NAME.cls beside NAME.jpg has the class of each, as WebDataset keeps it,
    or the folders that they lie in are their classes. Folders at `level` are persons, counted from
    1 within the split. Records without a label or an id are added to `faults`; if that is None,
    they are refused.
    """
    prefix = "" if split is None else f"{split}/"
    names = [name for name in files.names if name.startswith(prefix)]
    pictures = [name for name in names if _is_picture(name)]
    other_files = (*files.others, *(name for name in names if not _is_picture(name)))
    if not pictures:
        raise base.empty(files.path, f"pictures ({', '.join(PICTURES[:4])}, ...)")

    table = labels
    if table is None and not public:
        # labels of public pictures are not read
        top_files = [name for name in other_files if "/" not in name.removeprefix(prefix)]
        table = _table_in(files, top_files)
    if table is not None:
        if level is not None:
            fault = f"--persons-folder {level} does not apply to pictures that {table} names"
            raise InputError(f"{fault}; name its column of ids with --persons")
        return _read_by_table(
            files, prefix, pictures, other_files, table, x, y, persons, faults, separator
        )
    if separator is not None:
        raise InputError(
            f"--label-separator {separator} is for the labels of a table; give the table with"
            " --labels, or leave it out"
        )
    if any(name is not None for name in (x, y, persons)):
        fault = "--x, --y and --persons name columns of a table"
        raise InputError(f"{fault}; give the table with --labels, or leave them out")
    class_files = {} if public else _class_files(pictures, other_files)
    if class_files:
        return _read_by_class_files(
            files, prefix, pictures, other_files, class_files, level, faults
        )
    return _read_by_folders(files, prefix, names, pictures, other_files, level)


def _is_picture(name: str) -> bool:
    return name.lower().endswith(PICTURES)


def _key(name: str) -> str:
    """Return the path of a file up to the first dot of its name, by which WebDataset joins the
    files of a record.
    """
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}{file.partition('.')[0]}"


def _class_files(pictures: list[str], other_files: Sequence[str]) -> dict[str, str]:
    """Return the files that hold a class, by the key of their record; none if no picture has
    one.
    """
    class_files = {_key(name): name for name in other_files if name.endswith(CLASS)}
    if class_files.keys().isdisjoint(map(_key, pictures)):
        return {}
    return class_files


def _read_by_class_files(
    files: Tree,
    prefix: str,
    pictures: list[str],
    other_files: tuple[str, ...],
    class_files: dict[str, str],
    level: int | None,
    faults: Faults | None,
) -> Source:
    """Read pictures whose classes are in files beside them: positions in a class list, or names."""
    _, ids = _without_persons([name.removeprefix(prefix) for name in pictures], level, files.path)
    texts = {key: _class_text(files, name) for key, name in class_files.items()}
    values = [texts.get(_key(name)) for name in pictures]
    labels = base.class_values(values, len(pictures), files.path, faults)
    used = set(class_files.values())
    return Source(
        "picture",
        pictures,
        files.records(pictures),
        stamp(files.stamp, pictures),
        labels,
        left_out=tuple(name for name in other_files if name not in used),
        persons=ids,
        hidden=0 if level is None else prefix.count("/") + level,
        label_kind="index",
        faults=faults or {},
    )


def _class_text(files: Tree, name: str) -> str:
    """Read a file that holds a class."""
    try:
        with files.open(name) as file:
            return file.read(MOST_BYTES).decode("utf-8").strip()
    except FAULTS as error:
        raise damaged(files.path, error) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{files.path} has {CLASS} files that are no text; give one class in each"
        ) from error


def _read_by_folders(
    files: Tree,
    prefix: str,
    names: list[str],
    pictures: list[str],
    other_files: tuple[str, ...],
    level: int | None,
) -> Source:
    """Read pictures whose folders are their classes, or that lie in a flat folder without
    labels.
    """
    # paths in the split, without the folders of persons: CLASS/x.png, or x.png in a flat folder
    inner_names, ids = _without_persons(
        [name.removeprefix(prefix) for name in pictures], level, files.path
    )
    flat_names = [name for name in inner_names if "/" not in name]
    if flat_names and len(flat_names) < len(inner_names):
        raise InputError(
            f"{files.path} has pictures beside its subfolders (first: {flat_names[0]}); move each"
            " into the folder of its class, or give a table of labels with --labels"
        )

    labels = None
    classes = None
    if not flat_names:
        # folders of other files, such as annotations, are no classes
        in_use = {name.removeprefix(prefix).partition("/")[0] for name in pictures}
        of_others = {name.removeprefix(prefix).partition("/")[0] for name in names} - in_use
        has_empty = len(_subfolders_of(files, prefix, [], level) - of_others) > 1
        root = [] if has_empty else _common_root(inner_names)
        _check_below(files, root, inner_names, has_empty=has_empty)
        labels, classes = _labels_by_subfolder(files, prefix, names, inner_names, root, level)
    return Source(
        "picture",
        pictures,
        files.records(pictures),
        stamp(files.stamp, pictures),
        labels,
        classes,
        left_out=other_files,
        persons=ids,
        hidden=0 if level is None else prefix.count("/") + level,
    )


def _without_persons(names: list[str], level: int | None, path: Path) -> tuple[list[str], Any]:
    """Return paths without the folder of the person at this level, and the ids."""
    if level is None:
        return names, None

    inner_names = []
    ids = []
    for name in names:
        parts = name.split("/")
        if len(parts) <= level:
            # the error shows no name, since it may be an id
            fault = (
                f"has pictures that lie in fewer than {level} folders, the last of which is the"
                " person's"
            )
            raise InputError(f"{path} {fault}; correct --persons-folder {level}, or move them")
        ids.append(parts.pop(level - 1))
        inner_names.append("/".join(parts))
    return inner_names, base.persons_of(ids, len(ids), path)


def _common_root(pictures: list[str]) -> list[str]:
    """Return the folders above the class folders: those that hold all pictures in other folders."""
    folders = [name.split("/")[:-1] for name in pictures]
    first, last = min(folders), max(folders)
    depth = 0
    while depth < min(len(first), len(last)) and first[depth] == last[depth]:
        depth += 1

    # pictures in the common folder itself: it is their class
    depth = min(depth, min(map(len, folders)) - 1)
    return first[:depth]


def _check_below(files: Tree, root: list[str], pictures: list[str], *, has_empty: bool) -> None:
    """Refuse splits below another folder, and the only class folder if it has pictures beside
    subfolders, which may be the classes.
    """
    paths = [name.split("/")[len(root) :] for name in pictures]
    below = {path[0] for path in paths}
    if root and all(folder.lower() in SPLITS for folder in below):
        folder = "/".join(root)
        raise InputError(
            f"{files.path} has the splits {', '.join(sorted(below))} below {folder}/; give that"
            " folder, or make the archive of what is in it"
        )

    depths = {len(path) for path in paths}
    if len(below) == 1 and not has_empty and min(depths) < 3 <= max(depths):
        # the error shows no name below, which may be an id
        raise InputError(
            f"{files.path} has one folder, {'/'.join([*root, *below])}, with pictures beside its"
            " subfolders; move each into the folder of its class"
        )


def _labels_by_subfolder(
    files: Tree,
    prefix: str,
    names: list[str],
    pictures: list[str],
    root: list[str],
    level: int | None,
) -> tuple[Any, Any]:
    """Return the labels of the pictures, and the class list.

    Classes are the subfolders of the root; in a folder on disk, those without pictures too.
    """
    if files.path.is_dir():
        folders = _subfolders_of(files, prefix, root, level)
    else:
        paths = [name.removeprefix(prefix).split("/") for name in names]
        folders = set()
        for parts in paths:
            if level is not None and len(parts) > level:
                parts.pop(level - 1)
            if parts[: len(root)] == root and len(parts) > len(root) + 1:
                folders.add(parts[len(root)])
    classes = sorted({nfc(folder) for folder in folders})

    class_values = named_classes(classes, files.path)
    labels = np.array([nfc(name.split("/")[len(root)]) for name in pictures])
    numbers = base.numbers(classes)
    if numbers is not None:
        # digits/0, digits/1, ...
        class_values = named_classes(sorted(numbers), files.path)
        labels = labels.astype(np.int64)
    return base.labels_of(labels, len(pictures), files.path), class_values


def _subfolders_of(files: Tree, prefix: str, root: list[str], level: int | None) -> set[str]:
    """Return the names of the folders in a folder on disk, without those of persons at a level; for
    an archive, which seldom lists folders without files, none.
    """
    if not files.path.is_dir():
        return set()
    pattern = [glob.escape(folder) for folder in root]
    if level is not None and level <= len(root) + 1:
        pattern.insert(level - 1, "*")

    top = files.path / prefix
    folders = [top]
    if pattern:
        folders = list(top.glob("/".join(pattern)))
    return {
        path.name
        for folder in folders
        if folder.is_dir() and not folder.name.startswith(".")
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    }


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


def _read_by_table(
    files: Tree,
    prefix: str,
    pictures: list[str],
    other_files: tuple[str, ...],
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    faults: Faults | None,
    separator: str | None,
) -> Source:
    """Read pictures in the order of a table that names them."""
    table = open_table(path)
    person_column = choose_column(table.names, persons, (), "persons", path)
    other_columns = [name for name in table.names if name != person_column]
    file_column = choose_column(other_columns, x, FILES, "x", path)
    label_column = choose_column(other_columns, y, LABELS, "y", path)
    if file_column is None or label_column is None or file_column == label_column:
        columns = ", ".join(table.names)
        raise InputError(
            f"{path} has the columns {columns}; name the one of files with --x, that of labels"
            " with --y"
        )

    # tables from Windows have backslashes
    row_names = [str(value).replace("\\", "/") for value in table.column(file_column)]
    if not row_names:
        raise InputError(f"{path} has no rows; give one for each picture")
    with table.places.in_errors():
        picture_of_row = _pictures_of_rows(row_names, prefix, pictures, path)
    _check_picture_of_row(picture_of_row, row_names, path, files.path)

    # pictures that the table does not name are left out; the table itself is in use
    left_out = [name for name in other_files if files.path / name != path]
    left_out += sorted(set(pictures) - set(picture_of_row))
    ids = None
    with table.places.in_errors():
        labels, classes = base.table_labels(table.column(label_column), path, faults, separator)
        if person_column is not None:
            ids = base.persons_of(table.column(person_column), len(row_names), path, faults)
    return Source(
        "picture",
        row_names,
        files.records(picture_of_row),
        stamp(files.stamp, file_stamp(path), file_column, label_column),
        labels,
        classes,
        left_out=tuple(left_out),
        persons=ids,
        faults=faults or {},
        places=table.places,
    )


def _check_picture_of_row(
    picture_of_row: list[str | None], row_names: list[str], path: Path, folder: Path
) -> None:
    """Refuse a table that names no picture, or one picture twice."""
    pictures = [name for name in picture_of_row if name is not None]
    if not pictures:
        raise InputError(
            f"{path} names no picture of {folder} (first: {row_names[0]!r}); choose its column with"
            " --x"
        )
    most_frequent, times = Counter(pictures).most_common(1)[0]
    if times > 1:
        raise InputError(f"{path} names {most_frequent!r} twice; keep one row per picture")


def _pictures_of_rows(
    row_names: list[str], prefix: str, pictures: list[str], path: Path
) -> list[str | None]:
    """Return the picture of each row of a table; None for a row that names none.

    A row names it by its path, else by its file name if no other picture has it, or either without
    its ending.
    """
    forms = _pictures_by_form(pictures, prefix)
    picture_of_row: list[str | None] = []
    for row, row_name in enumerate(row_names):
        name = nfc(row_name)
        candidates = next((form[name] for form in forms if name in form), [])
        if len(candidates) > 1:
            either = " or ".join(candidates[:2])
            fault = f" names {name!r}, which may be {either}; give the path"
            raise RowError(f"{path} ", row, fault)
        picture_of_row.append(candidates[0] if candidates else None)
    return picture_of_row


def _pictures_by_form(pictures: list[str], prefix: str) -> list[dict[str, list[str]]]:
    """Return pictures by each form of their names, the most specific form first."""
    paths: dict[str, list[str]] = {}
    files: dict[str, list[str]] = {}
    paths_without_ending: dict[str, list[str]] = {}
    files_without_ending: dict[str, list[str]] = {}
    for name in pictures:
        path = nfc(name.removeprefix(prefix))
        file = path.rpartition("/")[2]
        paths.setdefault(path, []).append(name)
        files.setdefault(file, []).append(name)
        paths_without_ending.setdefault(path.rpartition(".")[0], []).append(name)
        files_without_ending.setdefault(file.rpartition(".")[0], []).append(name)
    return [paths, files, paths_without_ending, files_without_ending]
