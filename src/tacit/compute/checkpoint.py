"""Checkpoints: the finished parts of a long computation, from which an interrupted run resumes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.errors import InputError

KEY = "key.txt"


class Checkpoint:
    """A folder of finished parts, one file each; a new folder is readable by its owner alone.

    A file appears whole or not at all, so leftovers of a killed run are ignored. `key` is a hash of
    everything that decides the parts; it is not needed if the name of the folder or of each part is
    such a hash. A folder of another key is refused, or with `replace` emptied. The files of a
    `private` one are readable by their owner alone too.
    """

    def __init__(
        self, folder: Path, key: str | None = None, *, replace: bool = False, private: bool = False
    ) -> None:
        self.folder = folder
        self.private = private
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if key is not None:
                self._claim(key, replace)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be used ({error.strerror}); choose another folder"
            ) from error

    def path(self, name: str) -> Path:
        """Where a part is, or will be."""
        return self.folder / name

    def has(self, name: str) -> bool:
        """Tell whether a part is finished."""
        return self.path(name).is_file()

    def read(self, name: str) -> NDArray[Any]:
        """A finished array, read-only and mapped into memory; OSError or ValueError if it is absent
        or damaged.
        """
        return np.lib.format.open_memmap(self.path(name), mode="r")

    def write(self, name: str, content: NDArray[Any] | bytes) -> None:
        """Finish a part: an array, which `read` returns, or the bytes of a file."""
        with (
            atomic_file(self.path(name), force=True, private=self.private) as part,
            part.open("wb") as file,
        ):
            if isinstance(content, bytes):
                file.write(content)
            else:
                np.save(file, content, allow_pickle=False)

    def clear(self) -> None:
        """Remove the folder.

        The key goes first, so that after a kill the next run with `replace` starts afresh, and any
        other run refuses the folder.
        """
        self.path(KEY).unlink(missing_ok=True)
        shutil.rmtree(self.folder)

    def _claim(self, key: str, replace: bool) -> None:
        """Write the key into the folder, unless it is there; the folder must be empty, or is
        emptied.
        """
        path = self.path(KEY)
        # The size comes first, since a file of another program may be huge.
        if path.is_file() and path.stat().st_size == len(key) and path.read_bytes() == key.encode():
            return

        if replace:
            self.clear()
            self.folder.mkdir(mode=0o700)
        elif self._has_files():
            content = f"other files and no {KEY}"
            if path.exists():
                content = f"work on other records, queries or settings, by its {KEY}"
            raise InputError(f"{self.folder} holds {content}; choose another folder")
        self.write(KEY, key.encode())

    def _has_files(self) -> bool:
        """Tell whether the folder has files other than locks and temporary files, whose names begin
        with a dot.
        """
        return any(not file.name.startswith(".") for file in self.folder.iterdir())
