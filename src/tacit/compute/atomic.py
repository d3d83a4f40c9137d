"""Outputs that appear whole or not at all.

Work goes to a hidden name beside the target, on the same file system, and is renamed at the end.
A failure or an interrupt removes it, so nothing half-written ever carries the final name.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import InputError


def check_writable(path: Path | str, *, force: bool = False) -> Path:
    """Check before any work that `path` can be created; return it as a Path.

    Raises
    ------
    InputError
        If it exists and `force` is false, or its folder does not exist or cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise InputError(f"{path} exists; choose another name, or overwrite it with --force (force=True)")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; create it first, or choose another output")
    try:  # os.access knows nothing of read-only mounts or of root, so try it
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); choose an output elsewhere") from error
    return path


def _temporary(path: Path) -> Path:
    return path.absolute().parent / f".{path.name}.{os.getpid()}.part"


@contextmanager
def atomic_folder(path: Path | str, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends well."""
    path = check_writable(path, force=force)
    temporary = _temporary(path)
    temporary.mkdir()
    try:
        yield temporary
        _replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


@contextmanager
def atomic_file(path: Path | str, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary file name that becomes `path` when the block ends well."""
    path = check_writable(path, force=force)
    temporary = _temporary(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise


def _replace(temporary: Path, path: Path) -> None:
    if not path.exists():
        temporary.rename(path)
        return
    old = temporary.with_suffix(".old")  # a folder cannot be renamed over a full one
    path.rename(old)
    try:
        temporary.rename(path)
    except BaseException:
        old.rename(path)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
