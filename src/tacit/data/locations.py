"""Locations of data: the store, file or split that a path or `FOLDER#SPLIT` names."""

from pathlib import Path

from tacit.compute.remote import RemotePath, as_path
from tacit.data.arrays import existing
from tacit.data.formats import huggingface, npy, parts
from tacit.data.manifest import NAME as MANIFEST
from tacit.errors import InputError


def located(path: str | Path, split: str | None = None) -> Path:
    """Return the path of the data: `path` itself, or the store or `.npy` file of one split of a
    folder.
    """
    file, _ = location_and_split(path, split)
    return file


def splits(folder: str | Path) -> list[str]:
    """Return the names of the splits in a folder of `.npy` files, of parts of a table, or of a
    saved `DatasetDict`; empty if it has none.
    """
    folder = as_path(folder)
    is_whole = (folder / MANIFEST).exists() or huggingface.is_dataset(folder)
    if is_whole:
        return []
    if huggingface.is_dataset_dict(folder):
        return huggingface.splits(folder)
    return npy.splits(folder) or parts.splits(folder)


def location_and_split(path: str | Path, split: str | None) -> tuple[Path, str | None]:
    """Return the file or folder to read, and the split to choose in it.

    The split is None where the store or file holds nothing else, or none was asked for.
    """
    path, split = _split_in_name(as_path(path), split)
    existing(path)

    stores = sorted(manifest.parent.name for manifest in path.glob(f"*/{MANIFEST}"))
    if stores:
        if split not in stores:
            raise InputError(f"{path} holds the stores {_with_warning(stores)}; choose a split")
        return path / split, None

    # only splits that are .npy files have a path of their own
    is_store = (path / MANIFEST).exists()
    is_saved = huggingface.is_dataset(path) or huggingface.is_dataset_dict(path)
    if is_store or is_saved or not path.is_dir():
        return path, split
    names = npy.splits(path)
    choice_is_open = split is None and len(names) > 1
    if not names or choice_is_open:
        # no data, or several splits: whoever reads the folder refuses it
        return path, split

    # a split of one file is that file; one of a pair of files is read by its name
    split = chosen_split(path, split)
    file = npy.published(path, split)
    if file is None:
        return path, split
    return file, None


def _split_in_name(path: Path, split: str | None) -> tuple[Path, str | None]:
    """Return folder and split of `FOLDER#SPLIT`, unless a file has that name."""
    name, mark, part = str(path).rpartition("#")
    if not mark or path.exists():
        return path, split
    folder = Path(name)
    if isinstance(path, RemotePath):
        folder = path.with_name(path.name.removesuffix(mark + part))
    if split is not None:
        raise InputError(
            f"split={split} does not apply to {path}, which names one; leave one of them out"
        )
    if not folder.is_dir():
        raise InputError(
            f"{path}: {folder} is not a folder with splits; check its name, or leave #{part} out"
        )
    return folder, part


def chosen_split(folder: Path, split: str | None) -> str:
    """Return the split of that name, or else the only one whose name ends in it."""
    names = splits(folder)
    if split in names:
        return split
    matching = names
    if split is not None:
        matching = [name for name in names if name.endswith(f"_{split}")]
    if len(matching) == 1:
        return matching[0]

    fault = "several splits"
    if not matching:
        fault = f"no split {split!r}"
    elif split:
        fault = f"several splits for {split!r}"
    raise InputError(f"{folder} has {fault}; choose split from: {_with_warning(matching or names)}")


def _with_warning(splits: list[str]) -> str:
    """Return names of splits as text, with a warning of those that serve to test."""
    text = ", ".join(splits)
    test_splits = [name for name in splits if "test" in name.lower()]
    if test_splits:
        text += f" (never learn from {', '.join(test_splits)})"
    return text
