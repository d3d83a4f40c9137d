"""Pictures in folders or archives: a class per subfolder, or a flat folder beside a table of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.tables import open_table
from tacit.encoding.sources.base import (
    SPLITS,
    Record,
    Source,
    class_values,
    empty,
    file_stamp,
    labels_of,
    named_classes,
    numbers,
    stamp,
)
from tacit.encoding.sources.columns import LABELS, choose_column
from tacit.encoding.sources.tree import Tree
from tacit.errors import InputError

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".avif")
FILES = ("file", "file_name", "filename", "path", "image", "image_path", "picture", "name", "id")
TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".csv.gz")


def splits(files: Tree) -> list[str]:
    """Top folders that are named as splits, where there are no others."""
    found = [name for name in files.folders if name.lower() in SPLITS]
    return found if found and len(found) == len(files.folders) else []


def read(files: Tree, split: str | None, labels: Path | None, x: str | None, y: str | None, public: bool) -> Source:
    """Pictures of a folder or archive, or of one split of it."""
    prefix = "" if split is None else f"{split}/"
    names = [name for name in files.names if name.startswith(prefix)]
    pictures = [name for name in names if name.lower().endswith(PICTURES)]
    others = (*files.others, *(name for name in names if not name.lower().endswith(PICTURES)))
    if not pictures:
        raise empty(files.path, f"pictures ({', '.join(PICTURES[:4])}, ...)")
    found = () if public else [name for name in others if "/" not in name.removeprefix(prefix)]
    table = labels or _table_in(files, found)
    if table is not None:
        return _labelled(files, prefix, pictures, others, table, x, y)
    if x is not None or y is not None:
        raise InputError("--x and --y name columns of a table; give the table with --labels, or leave them out")
    inner = [name.removeprefix(prefix) for name in pictures]
    flat = [name for name in inner if "/" not in name]
    if len(flat) == len(inner):
        return _source(files, pictures, others)
    if flat:
        raise InputError(
            f"{files.path} has pictures beside its subfolders (first: {flat[0]}); move each into the folder of its "
            "class, or give a table of labels with --labels"
        )
    return _source(files, pictures, others, [name.partition("/")[0] for name in inner], _classes(files, prefix, names))


def _classes(files: Tree, prefix: str, names: list[str]) -> list[str]:
    """Subfolders; in a folder on disk those without pictures too."""
    if files.path.is_dir():
        return sorted(one.name for one in (files.path / prefix).iterdir() if one.is_dir() and one.name[0] != ".")
    inner = [name.removeprefix(prefix) for name in names]
    return sorted({name.partition("/")[0] for name in inner if "/" in name})


def _source(
    files: Tree, pictures: list[str], others: tuple[str, ...], labels: Any = None, classes: list[str] | None = None
) -> Source:
    def records(start: int) -> Iterator[Record]:
        return (files.record(name) for name in pictures[start:])

    listed = None if classes is None else named_classes(classes, files.path)
    values = None if labels is None else np.array(labels)
    as_numbers = None if classes is None else numbers(classes)
    if as_numbers is not None and values is not None:  # digits/0, digits/1, ...
        listed, values = named_classes(sorted(as_numbers), files.path), values.astype(np.int64)
    own = None if values is None else labels_of(values, len(pictures), files.path)
    return Source("picture", pictures, records, stamp(files.stamp, pictures), own, listed, left_out=others)


def _table_in(files: Tree, names: Sequence[str]) -> Path | None:
    """A table of labels that lies among the pictures of a folder."""
    found = [name for name in names if name.lower().endswith(TABLES)]
    if not found or not files.path.is_dir():
        return None
    if len(found) > 1:
        raise InputError(
            f"{files.path} holds several tables ({', '.join(found)}); name the one of labels with --labels"
        )
    return files.path / found[0]


def _labelled(
    files: Tree, prefix: str, pictures: list[str], others: tuple[str, ...], path: Path, x: str | None, y: str | None
) -> Source:
    """Pictures in the order of a table that names them."""
    table = open_table(path)
    file = choose_column(table.names, x, FILES, "x", path)
    label = choose_column(table.names, y, LABELS, "y", path)
    if file is None or label is None or file == label:
        raise InputError(
            f"{path} has the columns {', '.join(table.names)}; name the one of files with --x, that of labels with --y"
        )
    listed = [str(value).replace("\\", "/") for value in table.column(file)]
    if not listed:
        raise InputError(f"{path} has no rows; give one for each picture")
    found = _found(listed, prefix, pictures, path)
    if not any(found):
        raise InputError(f"{path} names no picture of {files.path} (first: {listed[0]!r}); choose its column with --x")
    twice, times = Counter(name for name in found if name is not None).most_common(1)[0]
    if times > 1:
        raise InputError(f"{path} names {twice!r} twice; keep one row a picture")
    unlisted = tuple(sorted(set(pictures) - {name for name in found if name}))

    def records(start: int) -> Iterator[Record]:
        return (None if name is None else files.record(name) for name in found[start:])

    return Source(
        "picture",
        listed,
        records,
        stamp(files.stamp, file_stamp(path), file, label),
        class_values(table.column(label), len(listed), path),
        left_out=(*(name for name in others if files.path / name != path), *unlisted),
    )


def _found(listed: list[str], prefix: str, pictures: list[str], path: Path) -> list[str | None]:
    """The picture of each row: by its path, else by its file name if no other has it, or either without its ending."""
    forms: list[dict[str, list[str]]] = [{}, {}, {}, {}]
    for name in pictures:
        inner = name.removeprefix(prefix)
        own = inner.rpartition("/")[2]
        for form, key in zip(forms, (inner, own, inner.rpartition(".")[0], own.rpartition(".")[0]), strict=True):
            form.setdefault(key, []).append(name)
    found: list[str | None] = []
    for row, name in enumerate(listed):
        candidates = next((form[name] for form in forms if name in form), [])
        if len(candidates) > 1:
            raise InputError(
                f"{path} row {row} names {name!r}, which may be {' or '.join(candidates[:2])}; give the path"
            )
        found.append(candidates[0] if candidates else None)
    return found
