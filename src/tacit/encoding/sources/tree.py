"""The files of a folder, zip or tar archive by name. Nothing is extracted to disk."""

import gzip
import lzma
import math
import os
import stat
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import one_line
from tacit.encoding.sources.base import Record, facts_of, file_stamp, stamp
from tacit.errors import InputError

TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

# what reading an archive may raise; RuntimeError if it is encrypted
FAULTS = (
    OSError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
)


class Tree(ABC):
    """Files of a folder or archive.

    Attributes
    ----------
    path : Path
    names : list of str
        Files, with / between folders: sorted, or in the order of a tar archive, which can only be
        read forward.
    folders : list of str
        Folders at the top, with files or without.
    others : tuple of str
        What is not a file, such as a link in an archive.
    stamp : str
        Changes when a file does.
    """

    path: Path
    stamp: str
    names: list[str]
    folders: list[str]
    others: tuple[str, ...] = ()

    @abstractmethod
    def open(self, name: str) -> IO[bytes]:
        """Open a file to read from."""

    def read(self, name: str) -> bytes:
        """Read all of a file."""
        try:
            with self.open(name) as file:
                return file.read()
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def record(self, name: str) -> Record:
        """Return a file as a record: its path if it has one, so that workers open it, else its
        content.
        """
        return self.read(name)

    def records(self, names: Sequence[str | None]) -> Callable[[int], Iterator[Record]]:
        """Return a function for `Source.records`, which yields these files from a position on, and
        None for None.
        """

        def records(start: int) -> Iterator[Record]:
            for name in names[start:]:
                yield None if name is None else self.record(name)

        return records

    def find(self, *file_names: str) -> str | None:
        """Find the first file with one of these names in any folder, with or without `.gz`; None if
        there is none.
        """
        packed_names = [f"{name}.gz" for name in file_names]
        candidates = {*file_names, *packed_names}
        for name in self.names:
            _, _, file_name = name.rpartition("/")
            if file_name in candidates:
                return name
        return None

    def open_unpacked(self, name: str) -> IO[bytes]:
        """Open a file to read from, unpacked if it ends in .gz."""
        file = self.open(name)
        if name.endswith(".gz"):
            return gzip.open(file)  # type: ignore[return-value]
        return file


class Folder(Tree):
    """A folder on disk. Links are followed; a cycle of links is an error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folders = []
        # the walk adds the folders at the top
        files = sorted(_walk(path, "", (), self.folders))
        self.folders.sort()
        self.names = [name for name, _ in files]
        self.stamp = stamp(files)

    def open(self, name: str) -> IO[bytes]:
        return (self.path / name).open("rb")

    def record(self, name: str) -> Record:
        return self.path / name


def _walk(
    folder: Path, prefix: str, ancestors: tuple[tuple[int, int], ...], top_folders: list[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and facts of each file; hidden files and folders are passed over.

    `prefix` is the path of the folder, with a slash at its end; `ancestors` are the device and
    inode of each folder above it. Folders at the top are added to `top_folders`.
    """
    try:
        status = folder.stat()
        entries = list(os.scandir(folder))
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read ({error.strerror}); check its permissions"
        ) from error
    inode = (status.st_dev, status.st_ino)
    if inode in ancestors:
        raise InputError(
            f"{folder} is a link to a folder that holds it, which never ends; remove the link"
        )

    for entry in entries:
        if entry.name.startswith("."):
            continue
        name = f"{prefix}{entry.name}"
        try:
            status = entry.stat()
        except OSError:
            # a link to nothing or to itself is a file that cannot be decoded
            yield name, ()
            continue

        if not stat.S_ISDIR(status.st_mode):
            yield name, facts_of(status)
            continue
        if not prefix:
            top_folders.append(entry.name)
        yield from _walk(folder / entry.name, f"{name}/", (*ancestors, inode), top_folders)


class Zip(Tree):
    """A zip archive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stamp = file_stamp(path)
        try:
            self._file = zipfile.ZipFile(path)
        except FAULTS as error:
            raise damaged(path, error) from error

        self.names = []
        self._members: dict[str, zipfile.ZipInfo] = {}
        visible_names = []
        for member in self._file.infolist():
            # some programs on Windows write backslashes
            name = member.filename.replace("\\", "/")
            if _is_hidden(name):
                continue
            visible_names.append(name)
            is_folder = name.endswith("/")
            if not is_folder:
                self.names.append(name)
                self._members[name] = member

        self.names.sort()
        _check_once(self.names, path)
        self.folders = _top_folders(visible_names)

    def open(self, name: str) -> IO[bytes]:
        return self._file.open(self._members[name])


class Tar(Tree):
    """A tar archive, packed or not. Reading backwards in a packed one starts again from its
    beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stamp = file_stamp(path)
        try:
            self._file = tarfile.open(path)  # noqa: SIM115 - it stays open for reading
            members = self._file.getmembers()
        except FAULTS as error:
            raise damaged(path, error) from error

        self.names = []
        self._members: dict[str, tarfile.TarInfo] = {}
        others = []
        for member in members:
            if _is_hidden(member.name):
                continue
            # a hard link has the content of a file in the archive; a symbolic link may lead out
            if member.isfile() or member.islnk():
                name = member.name.removeprefix("./")
                self.names.append(name)
                self._members[name] = member
            elif not member.isdir():
                others.append(member.name)

        _check_once(self.names, path)
        self.others = tuple(others)
        self.folders = _top_folders(self.names)

    def open(self, name: str) -> IO[bytes]:
        try:
            file = self._file.extractfile(self._members[name])
        except KeyError as error:
            raise damaged(self.path, error) from error
        # `names` lists only files
        assert file is not None
        return file


def _check_once(names: list[str], path: Path) -> None:
    """Refuse an archive that holds a name twice."""
    if len(set(names)) < len(names):
        repeated, _ = Counter(names).most_common(1)[0]
        raise InputError(
            f"{path} holds {repeated!r} twice; make the archive again, with each file once"
        )


def _is_hidden(name: str) -> bool:
    """Tell whether a file lies in a hidden folder, is hidden, or was added by macOS."""
    for part in name.split("/"):
        if part == "__MACOSX":
            return True
        # "./" stands for the top folder
        if part.startswith(".") and part != ".":
            return True
    return False


def _top_folders(names: Iterable[str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in names if "/" in name})


def tree(path: Path) -> Tree | None:
    """Open the files of a folder or archive; None if `path` is another file."""
    if path.is_dir():
        return Folder(path)
    if path.name.endswith((".zip", *TARS)):
        return _archive(path, file_stamp(path))
    return None


@lru_cache(maxsize=1)
def _archive(path: Path, _: str) -> Tree:
    """Open an archive; cached by its stamp, since listing the members of a compressed archive reads
    all of it.
    """
    if path.name.endswith(".zip"):
        return Zip(path)
    return Tar(path)


def damaged(path: Any, error: BaseException) -> InputError:
    """Return the error for a file or archive that cannot be read."""
    return InputError(f"{path} is truncated or damaged ({one_line(error)}); get it again")  # type: ignore[arg-type]


def read_exactly(file: IO[bytes], size: int, path: Any) -> bytes:
    """Read `size` bytes; a file that ends before is an error."""
    try:
        data = file.read(size)
    except FAULTS as error:
        raise damaged(path, error) from error
    if len(data) < size:
        raise InputError(f"{path} ends {size - len(data)} bytes too early; get it again")
    return data


def read_arrays(
    open_file: Callable[[], IO[bytes]], offset: int, shape: tuple[int, ...], path: Any
) -> Callable[[int], Iterator[NDArray[np.uint8]]]:
    """Return a function that yields arrays of bytes from a position on: `shape[0]` arrays lie in a
    file after `offset`.
    """
    n_arrays, *array_shape = shape
    size = math.prod(array_shape)

    def arrays(start: int) -> Iterator[NDArray[np.uint8]]:
        with open_file() as file:
            try:
                file.seek(offset + start * size)
            except FAULTS as error:
                raise damaged(path, error) from error
            for _ in range(start, n_arrays):
                data = read_exactly(file, size, path)
                yield np.frombuffer(data, np.uint8).reshape(array_shape)

    return arrays
