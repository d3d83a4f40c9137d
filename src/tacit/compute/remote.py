"""Files and folders at URLs, such as `s3://bucket/folder`: listed and read, never written.

`pyarrow.fs` opens s3, gs and abfs; other schemes, and those that a build of pyarrow lacks, are
opened by fsspec and the library that fsspec names for them. A URL may hold credentials
(`s3://KEY:SECRET@bucket`, `?secret=...`): they are used to open it, and no text of a `RemotePath`
holds them.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PosixPath, PurePosixPath
from types import SimpleNamespace
from typing import IO, Any
from urllib.parse import unquote

from tacit.compute.extras import missing
from tacit.errors import InputError, TacitError, excerpt

# schemes that pyarrow may open; gs waits a quarter of an hour for a server by default
PYARROW = ("s3", "gs", "gcs", "abfs", "abfss")
FSSPEC = ("hf", "memory")
SCHEMES = (*PYARROW, *FSSPEC, "file")
_WAIT = "retry_limit_seconds=30"

# one slash is what pathlib leaves of two
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/{1,2}(?!/?$)(.*)", re.DOTALL)

# copies of data are deleted when Python ends
_copies: list[tempfile.TemporaryDirectory[str]] = []


def as_path(path: str | Path) -> Path:
    """Return the path of a file, or that of a URL.

    Raises
    ------
    InputError
        If it is a URL of a scheme that is not read.
    """
    if isinstance(path, RemotePath):
        return path
    match = _URL.fullmatch(str(path))
    if match is None or Path(path).exists():
        return Path(path)
    scheme = match[1].lower()
    if scheme == "file":
        return Path("/" + unquote(match[2]).removeprefix("localhost/").lstrip("/"))
    if scheme not in SCHEMES:
        # the rest may hold a password
        raise InputError(
            f"a URL of scheme {scheme!r} is not read; give a path or a URL of {', '.join(SCHEMES)}"
        )
    return RemotePath.of_url(scheme, match[2])


class RemotePath(PosixPath):
    """The path of a file or folder at a URL, with the methods of a path that read.

    To those that it lacks, it is the path of a file that does not exist.

    Parameters
    ----------
    root : _Root
        The bucket, with its filesystem.
    names : tuple of str
        The names on the way from there.
    kind : {"file", "folder"}, optional
        What is there, if it is known.
    """

    def __new__(cls, root: "_Root", names: tuple[str, ...], kind: str | None = None) -> Any:
        return super().__new__(cls, _text(root, names))

    def __init__(self, root: "_Root", names: tuple[str, ...], kind: str | None = None) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(_text(root, names))
        self._root = root
        self._names = names
        self._kind = kind

    @classmethod
    def of_url(cls, scheme: str, rest: str) -> "RemotePath":
        """Return the path of a URL, whose credentials stay with its filesystem."""
        body, mark, query = rest.partition("?")
        user = ""
        start, at, end = body.rpartition("@")
        # in other places `@` is a letter of a name, or hf's mark of a version
        is_user = at and "/" not in start and scheme != "memory" and scheme != "hf"
        has_password = ":" in start
        if has_password or is_user:
            user = start + at
            body = end
        host, *names = body.split("/")
        root = _Root(scheme, user, host, mark + query)
        return cls(root, _inside(tuple(name for name in names if name), f"a URL of {scheme}"))

    def __str__(self) -> str:
        return _text(self._root, self._names)

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> Any:
        return RemotePath, (self._root, self._names, self._kind)

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> "RemotePath":  # type: ignore[override]
        return RemotePath(self._root, (*self._names, *PurePosixPath(name).parts))

    @property
    def name(self) -> str:
        """Last name on the path."""
        return self._names[-1] if self._names else self._root.host

    @property
    def suffix(self) -> str:
        """Ending of the name."""
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All endings of the name."""
        return PurePosixPath(self.name).suffixes

    @property
    def stem(self) -> str:
        """The name without its last ending."""
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> "RemotePath":
        """The folder that holds this."""
        return RemotePath(self._root, self._names[:-1])

    @property
    def parents(self) -> Any:
        """No folders of this machine lie around it."""
        return ()

    def with_name(self, name: str) -> "RemotePath":
        """Return the path of that name in the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> "RemotePath":
        """Return the path with another ending."""
        return self.with_name(self.stem + suffix)

    def relative_to(self, folder: Any, *others: Any, **options: Any) -> Any:  # type: ignore[override]
        """Return the names from a folder to this."""
        return PurePosixPath(*self._names[len(folder._names) :])

    def resolve(self, strict: bool = False) -> "RemotePath":
        """Return the path itself: there are no links."""
        return self

    def absolute(self) -> "RemotePath":
        """Return the path itself."""
        return self

    def exists(self, **options: Any) -> bool:
        """Tell whether a file or a folder is there."""
        return self._kind_there() is not None

    def is_file(self, **options: Any) -> bool:
        """Tell whether a file is there."""
        return self._kind_there() == "file"

    def is_dir(self, **options: Any) -> bool:
        """Tell whether a folder is there, or files whose keys begin with its name."""
        return self._kind_there() == "folder"

    def stat(self, **options: Any) -> Any:
        """Return the size of a file."""
        with self.faults():
            return SimpleNamespace(st_size=self.filesystem.get_file_info(self.key).size)

    def iterdir(self) -> "Iterator[RemotePath]":  # type: ignore[override]
        """Yield what a folder holds."""
        return self._listed(recursive=False)

    def rglob(self, pattern: str = "*", **options: Any) -> "Iterator[RemotePath]":  # type: ignore[override]
        """Yield all files and folders below a folder; the pattern is *."""
        return self._listed(recursive=True)

    def glob(self, pattern: str, **options: Any) -> "Iterator[RemotePath]":  # type: ignore[override]
        """Yield what matches `PATTERN` in a folder, or `*/NAME` in its folders."""
        folder, _, name = pattern.rpartition("/")
        for path in self.iterdir():
            if folder and path.is_dir():
                if (path / name).exists():
                    yield path / name
            elif not folder and PurePosixPath(path.name).match(pattern):
                yield path

    def open(self, mode: str = "rb", *arguments: Any, **options: Any) -> IO[Any]:  # type: ignore[override]
        """Open a file to read its bytes."""
        with self.faults():
            file: IO[Any] = self.filesystem.open_input_file(self.key)
            return file

    def copied(self, *beside: str) -> Path:
        """Copy a file or folder, and files beside it that exist, to this machine; the copies are
        deleted when Python ends.
        """
        from pyarrow.fs import LocalFileSystem, copy_files

        folder = tempfile.TemporaryDirectory(prefix="tacit-")
        _copies.append(folder)
        names = [name for name in beside if self.with_name(name).is_file()]
        # Folders are listed by `rglob`, which refuses names that lead out of the copy.
        for path in (self, *self.rglob(), *map(self.with_name, names)):
            target = Path(folder.name) / path.relative_to(self.parent)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.faults():
                filesystems = (self.filesystem, LocalFileSystem())
                copy_files(path.key, str(target), *filesystems)
        return Path(folder.name) / self.name

    @property
    def filesystem(self) -> Any:
        """The filesystem of pyarrow."""
        return self._root.opened[0]

    @property
    def key(self) -> str:
        """The path within the filesystem."""
        return "/".join((self._root.opened[1].rstrip("/"), *self._names))

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn what a filesystem raises into one line without credentials."""
        try:
            yield
        except TacitError:
            raise
        except FileNotFoundError:
            raise InputError(f"{self} does not exist; check its name") from None
        # libraries of filesystems raise errors of their own, whose words may hold credentials
        except Exception as error:
            raise InputError(
                f"{self} cannot be read ({self.reason(error)}); check the URL, and that this"
                " machine may read it"
            ) from None

    def reason(self, error: Exception) -> str:
        """Return the words of an error; only its kind if the URL holds credentials."""
        if self._root.user or self._root.query:
            return type(error).__name__
        return excerpt(" ".join(str(error).split())) or type(error).__name__

    def _kind_there(self) -> str | None:
        """Return what is at the path: a file, a folder, or nothing."""
        from pyarrow.fs import FileType

        if self._kind is None:
            with self.faults():
                kind = self.filesystem.get_file_info(self.key).type
            self._kind = {FileType.File: "file", FileType.Directory: "folder"}.get(kind)
        return self._kind

    def _listed(self, *, recursive: bool) -> "Iterator[RemotePath]":
        from pyarrow.fs import FileSelector, FileType

        if not self.is_dir():
            return
        with self.faults():
            entries = self.filesystem.get_file_info(FileSelector(self.key, recursive=recursive))
        n_names_of_folder = len(PurePosixPath(self.key).parts)
        for info in entries:
            names = _inside(PurePosixPath(info.path).parts[n_names_of_folder:], self)
            kind = "file" if info.type == FileType.File else "folder"
            yield RemotePath(self._root, (*self._names, *names), kind)


def _inside(names: tuple[str, ...], where: object) -> tuple[str, ...]:
    """Return names on the way to a file; refuse one that leads out of a folder.

    A bucket may hold any names, and they become paths of this machine where data are copied.
    """
    if ".." in names:
        raise InputError(f"{where} has the name '..' in a path, which is not read; rename the file")
    return names


def _text(root: "_Root", names: tuple[str, ...]) -> str:
    """Return a URL without credentials and options."""
    return "/".join((f"{root.scheme}://{root.host}", *names))


class _Root:
    """The scheme, credentials, host and options of a URL, and the filesystem that they open."""

    def __init__(self, scheme: str, user: str, host: str, query: str) -> None:
        self.scheme = scheme
        self.user = user
        self.host = host
        self.query = query

    def __reduce__(self) -> Any:
        return _Root, (self.scheme, self.user, self.host, self.query)

    @cached_property
    def opened(self) -> tuple[Any, str]:
        """The filesystem, and the path of the host within it."""
        from pyarrow import ArrowInvalid, ArrowNotImplementedError
        from pyarrow.fs import FileSystem

        query = self.query
        if self.scheme in ("gs", "gcs") and "retry_limit_seconds" not in query:
            query = f"{query}&{_WAIT}" if query else f"?{_WAIT}"
        if self.scheme not in PYARROW:
            return self._by_fsspec()
        try:
            opened: tuple[Any, str] = FileSystem.from_uri(
                f"{self.scheme}://{self.user}{self.host}{query}"
            )
            return opened
        except ArrowNotImplementedError:
            # this build of pyarrow lacks it
            return self._by_fsspec()
        except ArrowInvalid:
            # adlfs takes abfs://CONTAINER without an account
            if self.scheme.startswith("abfs"):
                return self._by_fsspec()
            raise InputError(
                f"{self.scheme}://{self.host} has options that pyarrow.fs does not know; see its"
                " documentation of URIs"
            ) from None

    def _by_fsspec(self) -> tuple[Any, str]:
        from pyarrow.fs import FSSpecHandler, PyFileSystem

        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]
        except ImportError:
            raise missing("fsspec") from None
        try:
            files, path = url_to_fs(f"{self.scheme}://{self.user}{self.host}{self.query}")
        except ImportError as error:
            reason = excerpt(str(error.__cause__ or error))
            raise InputError(
                f"URLs of scheme {self.scheme!r} need a library that is not there ({reason});"
                " install it"
            ) from None
        return PyFileSystem(FSSpecHandler(files)), path
