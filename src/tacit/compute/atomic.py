"""Outputs that appear whole or not at all.

An output is written under a hidden name beside its final name, and renamed at the end. A failure or
a Ctrl-C removes it, so nothing half-written ever has the final name. Until it is renamed, only its
owner can read it: it may hold private data that the final output does not, and a kill leaves it
behind. A folder is replaced only by a folder of the same kind, and ledgers in it are carried over.
"""

import glob
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import InputError

# Files that a folder keeps when it is replaced: ledgers.
KEPT = "*.ledger.jsonl"

# Part of temporary names, since a file system may be shared with other hosts; cut, since most file
# systems take names of 255 bytes at most.
_HOST = re.sub(r"\W", "_", socket.gethostname())[:64]


def check_writable(
    path: Path | str, *, force: bool = False, ours: Callable[[Path], bool] | None = None
) -> Path:
    """Check before any work that the file or folder `path` can be created; return it as a Path.

    With `force` it may exist; `ours` tells whether an existing folder that is not empty may be
    replaced.
    """
    path = Path(path)
    # a link that leads nowhere does not "exist", but would be replaced
    if (path.exists() or path.is_symlink()) and not force:
        raise InputError(
            f"{path} exists; choose another name, or overwrite it with --force (force=True)"
        )
    if ours is not None and path.exists():
        is_folder = path.is_dir() and not path.is_symlink()
        may_replace = is_folder and (not any(path.iterdir()) or ours(path))
        if not may_replace:
            fault = f"{path} holds something else, so it is not replaced"
            raise InputError(f"{fault}; choose another name")

    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; create it first, or choose another output")

    # os.access may be wrong on read-only mounts and for root, so create a file and remove it.
    try:
        _temporary(path).touch()
        _temporary(path).unlink()
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); choose another output"
        ) from error
    return path


def remove_parts(path: Path) -> None:
    """Remove what killed processes on this host left of `path`; call it before this process writes
    `path`.
    """
    for part in path.absolute().parent.glob(f".{glob.escape(path.name)}.*.part"):
        # a temporary name is .NAME.HOST-PROCESS.part
        owner = part.name.removeprefix(f".{path.name}.").removesuffix(".part")
        host, _, process = owner.rpartition("-")
        if host == _HOST and process.isdecimal() and not _other_process_runs(process):
            _remove(part)


def _other_process_runs(number: str) -> bool:
    """Tell whether a process of this number, other than this process, may run."""
    if number == str(os.getpid()):
        return False
    # without /proc, as on macOS, nothing tells that the process ended, so it may run
    return Path(f"/proc/{number}").exists() or not Path("/proc/self").exists()


def _temporary(path: Path) -> Path:
    """The hidden name under which this process writes `path`."""
    return path.absolute().parent / f".{path.name}.{_HOST}-{os.getpid()}.part"


@contextmanager
def atomic_folder(
    path: Path | str, *, ours: Callable[[Path], bool], force: bool = False
) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends well; see
    `check_writable`.
    """
    path = check_writable(path, force=force, ours=ours)
    temporary = _temporary(path)

    # The mode of an ordinary new folder, which the final folder gets. The umask decides it, which a
    # process can read only by setting it, for all its threads.
    temporary.mkdir()
    mode = stat.S_IMODE(temporary.stat().st_mode)
    temporary.chmod(0o700)
    try:
        yield temporary
        temporary.chmod(mode)
        _replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def write_folder(
    path: Path | str,
    files: Mapping[str, bytes],
    *,
    ours: Callable[[Path], bool],
    force: bool = False,
) -> Path:
    """Write files by name to a new folder, whole or not at all; return its path."""
    with atomic_folder(path, ours=ours, force=force) as temporary:
        for name, data in files.items():
            (temporary / name).write_bytes(data)
    return Path(path)


@contextmanager
def atomic_file(path: Path | str, *, force: bool = False, private: bool = False) -> Iterator[Path]:
    """Yield a temporary file name that becomes `path` when the block ends well.

    With `private` the final file is for its owner alone, as the temporary file always is.
    """
    path = check_writable(path, force=force)
    temporary, mode = _new_part(path)
    try:
        yield temporary
        _finish(temporary, 0o600 if private else mode)
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise


@contextmanager
def atomic_files(
    first: Path | str, second: Path | str, *, force: bool = False
) -> Iterator[tuple[Path, Path]]:
    """Yield two temporary file names that become `first` and `second` when the block ends well.

    A failure or a Ctrl-C leaves both files as they were. A kill between the two renames may leave
    the new first file beside the old second one.
    """
    first = check_writable(first, force=force)
    second = check_writable(second, force=force)
    first_part, mode = _new_part(first)
    second_part, _ = _new_part(second)
    backup = first_part.with_suffix(".old")
    try:
        yield first_part, second_part
        for part in (first_part, second_part):
            _finish(part, mode)

        existed = first.exists()
        if existed:
            shutil.copy2(first, backup)
        try:
            first_part.replace(first)
            second_part.replace(second)
        except BaseException:
            if existed:
                backup.replace(first)
            else:
                first.unlink(missing_ok=True)
            raise
    except BaseException:
        _remove(first_part)
        _remove(second_part)
        raise
    finally:
        _remove(backup)


def _new_part(path: Path) -> tuple[Path, int]:
    """Create the temporary file of `path` for its owner alone; return it with the mode of an
    ordinary new file.
    """
    temporary = _temporary(path)
    temporary.touch()
    mode = stat.S_IMODE(temporary.stat().st_mode)

    # Create it again for its owner alone: a process that has it open could read on after a chmod.
    temporary.unlink()
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL, 0o600))
    return temporary, mode


def _finish(temporary: Path, mode: int) -> None:
    """Give a finished temporary file its mode and wait until its contents are on the disk.

    They are there before the name is, so a crash of the machine leaves the old file or the whole
    new one.
    """
    temporary.chmod(mode)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())


def _replace(temporary: Path, path: Path) -> None:
    """Rename a finished folder to its final name, in place of the folder there, if there is one."""
    if not path.exists():
        temporary.rename(path)
        return

    # Ledgers are linked, not copied: a process that has one open keeps writing to the same file.
    for ledger in path.rglob(KEPT):
        link = temporary / ledger.relative_to(path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.hardlink_to(ledger)

    # A folder cannot be renamed over one that is not empty, so the folder there is renamed first.
    old = temporary.with_suffix(".old")
    path.rename(old)
    try:
        temporary.rename(path)
    except BaseException:
        old.rename(path)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
