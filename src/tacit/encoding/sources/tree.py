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
FAULTS = (
    OSError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
)
"""Errors that reading an archive may raise; RuntimeError if it is encrypted."""


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
        """A file to read from."""

    def read(self, name: str) -> bytes:
        """All of a file."""
        try:
            with self.open(name) as file:
                return file.read()
        except FAULTS as error:
            raise damaged(self.path, error) from error

    def record(self, name: str) -> Record:
        """A file as a record: its path if it has one, so that workers open it, else its content."""
        return self.read(name)

    def records(self, names: Sequence[str | None]) -> Callable[[int], Iterator[Record]]:
        """A function for `Source.records`: it yields these files from a position on, and None for
        None.
        """
        return lambda start: (None if name is None else self.record(name) for name in names[start:])

    def find(self, *names: str) -> str | None:
        """The first of these file names in any folder, with or without `.gz`; None if there is
        none.
        """
        wanted = [alias for name in names for alias in (name, f"{name}.gz")]
        return next((name for name in self.names if name.rpartition("/")[2] in wanted), None)

    def plain(self, name: str) -> IO[bytes]:
        """A file to read from, unpacked if it ends in .gz."""
        file = self.open(name)
        return gzip.open(file) if name.endswith(".gz") else file  # type: ignore[return-value]


class Folder(Tree):
    """A folder on disk. Links are followed; a cycle of links is an error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folders = []
        facts = sorted(_walk(path, "", (), self.folders))
        self.folders.sort()
        self.names = [name for name, _ in facts]
        self.stamp = stamp(facts)

    def open(self, name: str) -> IO[bytes]:
        return (self.path / name).open("rb")

    def record(self, name: str) -> Record:
        return self.path / name


def _walk(
    folder: Path, prefix: str, above: tuple[tuple[int, int], ...], top: list[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and facts of each file; hidden ones are passed over."""
    try:
        facts = folder.stat()
        entries = list(os.scandir(folder))
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read ({error.strerror}); check its permissions"
        ) from error
    inode = facts.st_dev, facts.st_ino
    if inode in above:
        raise InputError(
            f"{folder} is a link to a folder that holds it, which never ends; remove the link"
        )
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            facts = entry.stat()
        except OSError:  # a link to nothing or to itself: a file that cannot be decoded
            yield f"{prefix}{entry.name}", ()
            continue
        if not stat.S_ISDIR(facts.st_mode):
            yield f"{prefix}{entry.name}", facts_of(facts)
            continue
        if not prefix:
            top.append(entry.name)
        yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", (*above, inode), top)


class Zip(Tree):
    """A zip archive."""

    def __init__(self, path: Path) -> None:
        self.path, self.stamp = path, file_stamp(path)
        try:
            self._file = zipfile.ZipFile(path)
        except FAULTS as error:
            raise damaged(path, error) from error
        listed = [(member.filename.replace("\\", "/"), member) for member in self._file.infolist()]
        listed = [(name, member) for name, member in listed if not _is_hidden(name)]
        self._members = {name: member for name, member in listed if not name.endswith("/")}
        self.names = sorted(name for name, _ in listed if not name.endswith("/"))
        _check_once(self.names, path)
        self.folders = _top_folders(name for name, _ in listed)

    def open(self, name: str) -> IO[bytes]:
        return self._file.open(self._members[name])


class Tar(Tree):
    """A tar archive, packed or not. Reading backwards in a packed one starts again from its
    beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.stamp = path, file_stamp(path)
        try:
            self._file = tarfile.open(path)  # noqa: SIM115 - it stays open for reading
            members = [member for member in self._file.getmembers() if not _is_hidden(member.name)]
        except FAULTS as error:
            raise damaged(path, error) from error
        files = [member for member in members if member.isfile() or member.islnk()]
        self.names = [member.name.removeprefix("./") for member in files]
        _check_once(self.names, path)
        self._members = dict(zip(self.names, files, strict=True))
        self.others = tuple(
            member.name
            for member in members
            if not (member.isfile() or member.islnk() or member.isdir())
        )
        self.folders = _top_folders(self.names)

    def open(self, name: str) -> IO[bytes]:
        try:
            file = self._file.extractfile(self._members[name])
        except KeyError as error:
            raise damaged(self.path, error) from error
        assert file is not None  # `names` lists only files
        return file


def _check_once(names: list[str], path: Path) -> None:
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InputError(
            f"{path} holds {twice!r} twice; make the archive again, with each file once"
        )


def _is_hidden(name: str) -> bool:
    return any(
        (part.startswith(".") and part != ".") or part == "__MACOSX" for part in name.split("/")
    )


def _top_folders(names: Iterable[str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in names if "/" in name})


def tree(path: Path) -> Tree | None:
    """The files of a folder or archive; None if `path` is another file."""
    if path.is_dir():
        return Folder(path)
    return _archive(path, file_stamp(path)) if path.name.endswith((".zip", *TARS)) else None


@lru_cache(maxsize=1)
def _archive(path: Path, _: str) -> Tree:
    """Cached, since listing the members of a compressed archive reads all of it."""
    return Zip(path) if path.name.endswith(".zip") else Tar(path)


def damaged(where: Any, error: BaseException) -> InputError:
    """The error for a file or archive that cannot be read."""
    return InputError(f"{where} is truncated or damaged ({one_line(error)}); get it again")  # type: ignore[arg-type]


def read_exactly(file: IO[bytes], size: int, where: Any) -> bytes:
    """`size` bytes; a file that ends before is an error."""
    try:
        data = file.read(size)
    except FAULTS as error:
        raise damaged(where, error) from error
    if len(data) < size:
        raise InputError(f"{where} ends {size - len(data)} bytes too early; get it again")
    return data


def read_arrays(
    open_file: Callable[[], IO[bytes]], offset: int, shape: tuple[int, ...], where: Any
) -> Callable[[int], Iterator[NDArray[np.uint8]]]:
    """A function that yields arrays of bytes from a position on: `shape[0]` of them lie in a file
    after `offset`.
    """
    rows, *sides = shape
    size = math.prod(sides)

    def arrays(start: int) -> Iterator[NDArray[np.uint8]]:
        with open_file() as file:
            try:
                file.seek(offset + start * size)
            except FAULTS as error:
                raise damaged(where, error) from error
            for _ in range(start, rows):
                yield np.frombuffer(read_exactly(file, size, where), np.uint8).reshape(sides)

    return arrays
