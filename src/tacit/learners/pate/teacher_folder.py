"""The folder of a run's teachers: votes and weights, one teacher at a time, so that an interrupted run can go on.

`plan.json` holds a hash per teacher of all that decides it: settings, the rows and records of its part, and what is
asked. Then there are `00012.npy`, the votes of teacher 12, and for networks `00012.safetensors`, its weights. All of it
is private.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.compute.documents import read_json
from tacit.data.formats.npy import map_npy
from tacit.errors import InputError, excerpt


class TeacherFolder:
    """Votes and weights of the teachers of one plan.

    Parameters
    ----------
    folder : path
        Created if it is absent.
    hashes : sequence of str
        One for each teacher.
    n_asked : int
        Votes of each teacher.
    n_classes : int

    Raises
    ------
    InputError
        If the folder holds another plan.
    """

    def __init__(self, folder: Path, hashes: Sequence[str], n_asked: int, n_classes: int) -> None:
        self.folder, self.n_asked, self.n_classes = folder, n_asked, n_classes
        plan = folder / "plan.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found = read_json(plan) if plan.exists() else None
        except (OSError, ValueError) as error:
            raise InputError(f"{plan} cannot be read ({excerpt(str(error))}); choose another folder") from error
        if found is None:
            with atomic_file(plan) as temporary:
                temporary.write_text(json.dumps({"teachers": list(hashes)}, indent=1), encoding="utf-8")
        elif found != {"teachers": list(hashes)}:
            raise InputError(f"{plan} is of teachers with other records, queries or settings; choose another folder")

    def has(self, number: int) -> bool:
        """Whether the votes of a teacher are here."""
        return self._votes(number).exists()

    def read(self, number: int) -> NDArray[np.int64]:
        """Votes of a teacher, of shape (n_asked,)."""
        path = self._votes(number)
        remedy = "delete it, or choose another folder"
        try:
            votes = map_npy(path)
        except InputError as error:
            raise InputError(f"{path} is not an array of votes ({excerpt(str(error))}); {remedy}") from error
        valid = votes.shape == (self.n_asked,) and votes.dtype.kind == "i"
        if not valid or not np.all((votes >= 0) & (votes < self.n_classes)):
            raise InputError(f"{path} does not hold {self.n_asked} votes for {self.n_classes} classes; {remedy}")
        return np.asarray(votes, dtype=np.int64)

    def write(self, number: int, votes: NDArray[np.int64], weights: Mapping[str, NDArray[Any]] | None) -> None:
        """Keep what a teacher says, and its weights if it is a network; the votes come last."""
        from safetensors.numpy import save_file

        if weights is not None:
            with atomic_file(self._votes(number).with_suffix(".safetensors"), force=True) as temporary:
                save_file(dict(weights), temporary)
        with atomic_file(self._votes(number)) as temporary, temporary.open("wb") as file:
            np.save(file, votes.astype(np.int32), allow_pickle=False)

    def _votes(self, number: int) -> Path:
        return self.folder / f"{number:05d}.npy"
