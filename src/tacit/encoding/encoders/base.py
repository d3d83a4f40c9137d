"""Shared parts of all families of encoders: the request, the backbone that it loads, and the
features computed with it.

An encoder is public. What was trained on private records is no encoder: it is outside the
guarantee.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import one_line
from tacit.encoding.encoders.pictures import PictureInput
from tacit.encoding.sources.base import Kind
from tacit.errors import InputError

BATCH = 32

# pictures that a thread takes at once
SLICE = 4

# batches of texts that are sorted by length together, so that little is padded
TEXT_WINDOW = 16


class OtherKindError(InputError):
    """An encoder of pictures is given texts, or the other way round."""


@dataclass(frozen=True)
class Request:
    """The options of `load_encoder` for a family; `name` is what follows the family's name and a
    colon.
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
        The pictures that it takes; None for texts.
    batch : int
        Records at a time.
    fixed_batch : bool
        Whether it takes batches of exactly this size.
    unit_rows : bool
        Whether features are rows of length 1.
    card : dict
        Public facts: name, hash of the weights, preprocessing.
    """

    input: PictureInput | None = None
    batch: int = BATCH
    fixed_batch: bool = False
    unit_rows: bool = False
    card: dict[str, Any]

    def windows(self, text: str) -> list[str]:
        """Cut a text into parts that the encoder reads whole.

        A text that it reads whole is its only part. So is every text of an encoder that does not
        tell how much it reads.
        """
        return [text]

    @abstractmethod
    def forward(self, inputs: Any) -> NDArray[np.float32]:
        """Compute the features, (n, dim), of an array that `PictureInput.scaled` returned, or of a
        list of texts.
        """


@dataclass
class Features:
    """A backbone, then the mean with mirrored pictures or over the windows of a long text, then a
    projection by a public matrix, (dim, new_dim).

    `reload` loads the same again in another process, where `load_encoder` made it.
    """

    backbone: Backbone
    mirror: bool = False
    projection: NDArray[np.float32] | None = None
    long_mean: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    reload: "Callable[[], Features] | None" = field(default=None, repr=False)
    _width: int = field(default=0, init=False, repr=False)

    def __call__(
        self, batch: NDArray[Any] | Sequence[str], dtype: Any = np.float32
    ) -> NDArray[np.float32]:
        """Compute the features, (n, dim), of prepared pictures, (n, 3, height, width), or of texts.

        They are rounded to `dtype`, in which rows are stored, before the projection: a store that
        is projected later has the same rows.
        """
        if self.backbone.input is None:
            rows = self._forward_texts(list(batch))
        else:
            rows = self._forward_pictures(self.backbone.input, np.asarray(batch))
        if self.projection is None:
            return rows
        if rows.shape[1] != len(self.projection):
            fault = (
                f"the projection has {len(self.projection)} rows and the encoder gives"
                f" {rows.shape[1]} features"
            )
            raise InputError(f"{fault}; give one of this encoder")
        with np.errstate(over="ignore"):
            rounded = rows.astype(dtype).astype(np.float32)
            return rounded @ self.projection

    def is_longer(self, text: str) -> bool:
        """Tell whether a text is longer than the encoder reads at once, as far as it tells."""
        return len(self.backbone.windows(text)) > 1

    def _forward_texts(self, texts: list[str]) -> NDArray[np.float32]:
        """Compute the features of texts; with `long_mean`, a longer text gets the mean of its
        windows, of length 1 if the encoder's rows are.
        """
        if not self.long_mean:
            return self._forward(texts)
        windows_by_text = [self.backbone.windows(text) for text in texts]
        windows = list(chain.from_iterable(windows_by_text))
        size = self.backbone.batch
        blocks = [
            self._forward(windows[first : first + size]) for first in range(0, len(windows), size)
        ]
        rows_of_windows = np.concatenate(blocks)

        rows = np.empty((len(texts), rows_of_windows.shape[1]), np.float32)
        first = 0
        for place, parts in enumerate(windows_by_text):
            mean = rows_of_windows[first : first + len(parts)].mean(axis=0)
            norm = np.linalg.norm(mean)
            if self.backbone.unit_rows and len(parts) > 1 and norm > 0:
                mean = mean / norm
            rows[place] = mean
            first += len(parts)
        return rows

    def _forward_pictures(self, input: PictureInput, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Compute the features of prepared pictures; with `mirror`, the mean with mirror images."""
        n = len(batch)
        if n < self.backbone.batch:
            # fill the batch: the last bits of a row depend on the batch size
            filling = np.repeat(batch[-1:], self.backbone.batch - n, axis=0)
            batch = np.concatenate([batch, filling])
        rows = self._forward(input.scaled(batch))
        if self.mirror:
            rows = rows + self._forward(input.scaled(batch[..., ::-1]))
            rows *= np.float32(0.5)
        return rows[:n]

    def _forward(self, inputs: Any) -> NDArray[np.float32]:
        """Compute the backbone's features, and check them: a row for each record, all of one
        width.
        """
        n = len(inputs)
        name = self.backbone.card["name"]
        try:
            rows = self.backbone.forward(inputs)
        except Exception as error:
            # a user's module may raise anything
            fault = f"{name} fails on {n} records ({type(error).__name__}: {one_line(error)})"
            raise InputError(f"{fault}; check what it takes, or try a smaller batch") from error
        self._width = self._width or rows.shape[-1]
        if rows.shape != (n, self._width):
            raise InputError(
                f"{name} gives {rows.shape} for {n} records; it must give ({n}, {self._width})"
            )
        return rows

    @property
    def stored_dtype(self) -> str:
        """Type in which rows are stored unless another is asked for.

        float16 holds three digits, which is enough for rows of length 1 and their means with
        mirrored pictures. Nothing bounds the size of other features, or of projected ones.
        """
        if self.backbone.unit_rows and self.projection is None:
            return "float16"
        return "float32"

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
    """Compute features in several threads, each of which runs the model on a few pictures.

    The threads of a library that share each layer wait for each other, longest where another
    process takes a core; slices do not, and their rows have the same bits for any number of
    threads.
    """
    n = len(pictures)
    slices = [pictures]
    if n > SLICE:
        if n % SLICE:
            # fill the last slice: the last bits of a row depend on the slice size
            filling = np.repeat(pictures[-1:], -n % SLICE, axis=0)
            pictures = np.concatenate([pictures, filling])
        slices = [pictures[first : first + SLICE] for first in range(0, n, SLICE)]
    with ThreadPoolExecutor(threads, initializer=prepare_thread) as pool:
        rows = np.concatenate(list(pool.map(run, slices)))
    return rows[:n]


def flat(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Flatten feature maps, (n, ...), to rows."""
    if features.ndim > 2:
        return features.reshape(len(features), -1)
    return features
