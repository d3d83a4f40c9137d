"""What an encoder is here: a public function from pictures or texts to rows of features.

A family of encoders is one file with a function `load(request)` that returns a `Backbone`. What a user
trained on private records is no encoder: it is outside the guarantee.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import one_line
from tacit.encoding.encoders.pictures import PictureInput
from tacit.encoding.sources.base import Kind
from tacit.errors import InputError

BATCH = 32
SLICE = 4  # pictures that one thread takes at a time
TEXT_WINDOW = 16  # batches of texts that are sorted by length together, so that little is padded


@dataclass(frozen=True)
class Request:
    """What a family is asked to load.

    Parameters
    ----------
    name : str
        What follows the family's name and a colon.
    weights : path or None
        A local folder, or file, of weights.
    kind : {"picture", "text"}
    device : str
        "cpu", "cuda" or "auto".
    precision : {"auto", "float32", "bfloat16"}
    sidecar : path or None
        A file that states the input, for the families that cannot know it.
    """

    name: str
    weights: Path | None = None
    kind: Kind = "picture"
    device: str = "auto"
    precision: str = "auto"
    sidecar: Path | None = None


class Backbone(ABC):
    """A loaded encoder.

    Attributes
    ----------
    input : PictureInput or None
        How it wants pictures; None for texts.
    batch : int
        Records at a time.
    fixed_batch : bool
        Whether it takes batches of exactly this size.
    card : dict
        Public facts: name, hash of the weights, preprocessing.
    """

    input: PictureInput | None = None
    batch: int = BATCH
    fixed_batch: bool = False
    card: dict[str, Any]

    @abstractmethod
    def forward(self, inputs: Any) -> NDArray[np.float32]:
        """Features, (n, dim), of an array that `PictureInput.scaled` returned, or of a list of texts."""


@dataclass
class Features:
    """A backbone, and what is done with its output.

    Parameters
    ----------
    backbone : Backbone
    mirror : bool
        Whether each picture's features are the mean of its own and its mirror image's.
    projection : array of shape (dim, new_dim), optional
        A public matrix that features are multiplied by, after they were rounded to the type in which rows are kept:
        so a store that is projected later has the same rows.
    """

    backbone: Backbone
    mirror: bool = False
    projection: NDArray[np.float32] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    _width: int = field(default=0, init=False, repr=False)

    def __call__(self, batch: NDArray[Any] | Sequence[str], dtype: Any = np.float32) -> NDArray[np.float32]:
        """Features of prepared pictures, (n, 3, height, width), or of texts, for rows of `dtype`: (n, dim)."""
        if self.backbone.input is None:
            rows = self._forward(list(batch))
        else:
            rows = self._of_pictures(self.backbone.input, np.asarray(batch))
        if self.projection is None:
            return rows
        if rows.shape[1] != len(self.projection):
            raise InputError(
                f"the projection has {len(self.projection)} rows and the encoder gives {rows.shape[1]} features; "
                "give one of this encoder"
            )
        with np.errstate(over="ignore"):
            return rows.astype(dtype).astype(np.float32) @ self.projection

    def _of_pictures(self, wanted: PictureInput, batch: NDArray[Any]) -> NDArray[np.float32]:
        n = len(batch)
        if n < self.backbone.batch:  # fill the batch: the last bits of a row depend on the batch size
            batch = np.concatenate([batch, np.repeat(batch[-1:], self.backbone.batch - n, axis=0)])
        rows = self._forward(wanted.scaled(batch))
        if self.mirror:
            rows = rows + self._forward(wanted.scaled(batch[..., ::-1]))
            rows *= np.float32(0.5)
        return rows[:n]

    def _forward(self, inputs: Any) -> NDArray[np.float32]:
        """The backbone's features, one row for each record and all of one width."""
        n, name = len(inputs), self.backbone.card["name"]
        try:
            rows = self.backbone.forward(inputs)
        except Exception as error:  # a user's own module may raise anything
            said = f"{name} fails on {n} records ({type(error).__name__}: {one_line(error)})"
            raise InputError(f"{said}; check what it takes, or try a smaller batch") from error
        self._width = self._width or rows.shape[-1]
        if rows.shape != (n, self._width):
            raise InputError(
                f"{name} gives {rows.shape} for {n} records; it must give ({n}, {self._width}), a row for each"
            )
        return rows

    @property
    def card(self) -> dict[str, Any]:
        """Public facts about the encoder, the mirroring and the projection."""
        return self.backbone.card | self.facts


def in_slices(
    run: Callable[[NDArray[Any]], NDArray[np.float32]],
    pictures: NDArray[Any],
    threads: int,
    prepare_thread: Callable[[], object] | None = None,
) -> NDArray[np.float32]:
    """Features by several threads, each of which runs the model on a few pictures by itself.

    The threads of a library that share each layer wait for each other, longest where another process takes a core;
    slices do not, and their rows have the same bits for any number of threads.

    Parameters
    ----------
    run : callable
        From pictures to rows, in one thread.
    pictures : array
        As the model takes them.
    threads : int
    prepare_thread : callable, optional
        Called once in each thread.
    """
    n = len(pictures)
    if n <= SLICE:
        slices = [pictures]
    else:  # fill the last slice: the last bits of a row depend on the slice size
        padded = np.concatenate([pictures, np.repeat(pictures[-1:], -n % SLICE, axis=0)]) if n % SLICE else pictures
        slices = [padded[first : first + SLICE] for first in range(0, n, SLICE)]
    with ThreadPoolExecutor(threads, initializer=prepare_thread) as pool:
        return np.concatenate(list(pool.map(run, slices)))[:n]


def hash_of_tensors(state: Any) -> str:
    """SHA-256 over the names, types and values of a model's tensors, whatever file they came in."""
    import torch

    total = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
