"""Encoders in Python: `tacit.encode`, and `tacit.Encoder` for pipelines of scikit-learn."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.compute.progress import progress
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import BATCH, Features
from tacit.encoding.encoders.batches import check_workers, encode_records, warn_of_cut
from tacit.encoding.encoders.pictures import Unreadable, rgb_pixels
from tacit.encoding.sources.arrays import are_pictures, check_pixels, picture
from tacit.encoding.sources.base import Kind, Record
from tacit.encoding.sources.folders import PICTURES
from tacit.errors import InputError


def encode(
    images: Any,
    encoder: str | Features | Callable[[Any], Any],
    *,
    batch: int | None = None,
    workers: int = 0,
    **options: Any,
) -> NDArray[np.float32]:
    """Turn pictures or texts into rows of features.

    Parameters
    ----------
    images : array or sequence of length n
        Pixels as bytes, (n, height, width), or with channels last or first; or a list of paths, of
        bytes of picture files, or of Pillow images; or a list of texts. For a callable, whatever it
        takes.
    encoder : str, Features or callable
        "FAMILY:NAME" (see `tacit.encoding.encoders`), what `load_encoder` returned, or a function
        from a batch of `images` to an array (n, dim). It must treat each record alone, and must not
        have been fitted to private records: both are outside every guarantee.
    batch : int, optional
        Records at a time.
    workers : int
        Processes that decode pictures.
    **options
        Of `load_encoder`: weights, sidecar, device, precision, mirror, projection, long.

    Returns
    -------
    ndarray of shape (n, dim), float32

    Raises
    ------
    InputError
        If the encoder is unknown or its weights are not on this machine, or a record cannot be
        decoded or encoded.

    Warns
    -----
    UserWarning
        If texts are longer than the encoder reads, with their number; `long="mean"` reads all of
        them.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> pictures = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    >>> tacit.encode(pictures, lambda batch: batch.reshape(len(batch), -1) / 255).shape
    (6, 192)
    """
    check_workers(workers)
    if isinstance(encoder, str):
        load = partial(_load, encoder, options)
        return _encode_by_features(images, load, batch, workers, stacklevel=2)
    if isinstance(encoder, Features):
        return _encode_by_features(images, lambda kind: encoder, batch, workers, stacklevel=2)

    if options:
        raise InputError(
            f"{', '.join(options)} is for encoders by name; leave it out for one that is a function"
        )
    if not callable(encoder):
        raise InputError(
            f"encoder={encoder!r:.60} is neither a name nor a function; write FAMILY:NAME, or"
            " pass one"
        )
    if batch is not None and batch < 1:
        raise InputError(f"batch={batch} must be at least 1; leave it out for {BATCH}")
    return _encode_by_function(images, encoder, batch or BATCH)


@dataclass(eq=False, repr=False)
class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An encoder as the first step of a scikit-learn pipeline.

    `fit` does nothing and reads no data, so the pipeline has the guarantee of the learner that
    follows.

    Parameters
    ----------
    encoder : str or callable
        As in `tacit.encode`.
    weights, sidecar, device, precision, mirror, projection, long
        As in `tacit.encoding.encoders.load_encoder`.
    batch, workers : int
        As in `tacit.encode`.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> pictures, y = rng.integers(0, 256, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2
    >>> flat = tacit.Encoder(lambda batch: batch.reshape(len(batch), -1) / 255)
    >>> learner = tacit.NoisySumPrototypes(
    ...     budget="rho=0.5", classes=2, noise="research", random_state=0
    ... )
    >>> pipeline = make_pipeline(flat, learner).fit(pictures, y)
    >>> pipeline[-1].guarantee_ == learner.promise()
    True
    """

    encoder: Any
    _: KW_ONLY
    weights: Any = None
    sidecar: Any = None
    device: str = "auto"
    precision: str = "auto"
    mirror: bool = False
    projection: Any = None
    batch: int | None = None
    workers: int = 0
    long: str | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing; an encoder is public and fixed."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode pictures or texts, as `tacit.encode` does; (n, dim)."""
        if not isinstance(self.encoder, str):
            return encode(X, self.encoder, batch=self.batch, workers=self.workers)
        check_workers(self.workers)
        return _encode_by_features(X, self._features, self.batch, self.workers, stacklevel=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # a copy in another process loads the encoder again
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_loaded"}

    def _features(self, kind: Kind) -> Features:
        """Return the encoder, loaded again only if the options or the kind of the records
        changed.
        """
        options = self.get_params()
        del options["batch"]
        del options["workers"]
        key = (kind, sorted(map(str, options.items())))

        cached_key, features = getattr(self, "_loaded", (None, None))
        if features is None or cached_key != key:
            encoder = options.pop("encoder")
            features = _load(encoder, options, kind)
            self._loaded = (key, features)
        return features


def _load(encoder: str, options: dict[str, Any], kind: Kind) -> Features:
    return load_encoder(encoder, kind=kind, **options)


def _encode_by_features(
    images: Any,
    load: Callable[[Kind], Features],
    batch: int | None,
    workers: int,
    *,
    stacklevel: int,
) -> NDArray[np.float32]:
    """Encode records by an encoder that is loaded for their kind, (n, dim), and warn of texts that
    it does not read to their end.
    """
    rows, n_cut = encode_and_count(images, load, batch, workers)
    warn_of_cut(n_cut, stacklevel=stacklevel + 1)
    return rows


def encode_and_count(
    images: Any, load: Callable[[Kind], Features], batch: int | None = None, workers: int = 0
) -> tuple[NDArray[np.float32], int]:
    """Return the rows of records, (n, dim), by an encoder that is loaded for their kind, and the
    number of texts that it does not read to their end.
    """
    kind, records = _records(images)
    features = load(kind)
    takes_texts = features.backbone.input is None
    if takes_texts and kind == "picture":
        raise InputError("the encoder takes texts, and these are pictures")
    if not takes_texts and kind == "text":
        raise InputError("the encoder takes pictures, and these are texts")
    return encode_records(records, features, batch, workers)


def _encode_by_function(
    images: Any, function: Callable[[Any], Any], batch: int
) -> NDArray[np.float32]:
    """Encode records by a user's function of a batch; (n, dim)."""
    if not hasattr(images, "__len__"):
        images = _as_list(images)
    n = len(images)
    if n == 0:
        raise InputError("there are no records to encode; give one at least")

    blocks: list[NDArray[np.float32]] = []
    for start in progress(range(0, n, batch), "encoding", -(-n // batch)):
        records = images[start : start + batch]
        rows = np.asarray(function(records))
        dim = blocks[0].shape[1] if blocks else None
        _check_rows(rows, len(records), dim, start)
        is_first_batch = not blocks
        if is_first_batch and len(records) > 1:
            row_alone = np.asarray(function(records[:1]))
            _check_same_alone(row_alone, rows[:1])
        blocks.append(rows.astype(np.float32))
    return np.concatenate(blocks)


def _check_rows(rows: NDArray[Any], n_records: int, dim: int | None, start: int) -> None:
    """Refuse what is no row of finite numbers for each record, of `dim` numbers unless it is None.

    The first row is that of record `start`.
    """
    if rows.ndim != 2 or len(rows) != n_records or rows.dtype.kind not in "fiu":
        fault = f"the encoder returned {rows.dtype} {rows.shape} for {n_records} records"
        raise InputError(f"{fault}; return numbers, (n, dim)")
    if dim is not None and rows.shape[1] != dim:
        raise InputError(
            f"the encoder returned {dim} features and then {rows.shape[1]}; return as many"
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        place = start + int(finite.argmin())
        raise InputError(
            f"record {place} has features that are not finite; fix the encoder, or leave it out"
        )


def _check_same_alone(row_alone: NDArray[Any], row_in_batch: NDArray[Any]) -> None:
    """Refuse an encoder that mixes records: no guarantee about one record would hold.

    Both rows are of the first record, (1, dim).
    """
    is_same = False
    if row_alone.shape == row_in_batch.shape:
        # kernels of other batch sizes round differently, and reduced precision more so
        tolerance = 1e-2 * np.abs(row_in_batch).max()
        is_same = np.allclose(row_alone, row_in_batch, rtol=1e-2, atol=tolerance)
    if not is_same:
        raise InputError(
            "the encoder gives record 0 different features alone than in a batch, so that one"
            " record would change many rows; make it treat each record alone"
        )


def _as_list(images: Any) -> list[Any]:
    try:
        return list(images)
    except TypeError as error:
        raise InputError(
            f"images={images!r:.60} is not a list of records; give a list or an array"
        ) from error


def _records(images: Any) -> tuple[Kind, Sequence[Record]]:
    """Return the kind of the records, and the records as a sequence."""
    if isinstance(images, str | bytes | Path):
        raise InputError(f"images={str(images)!r:.60} is one record; give a list of them")
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OUS":
        check_pixels(images.shape, images.dtype, "images")
        return "picture", [picture(pixels) for pixels in images]

    records = _as_list(images)
    if not records:
        raise InputError("there are no records to encode; give one at least")
    non_texts = [place for place, record in enumerate(records) if not isinstance(record, str)]
    if not non_texts:
        return _paths_or_texts(records)

    # among few other records, the texts are meant
    if len(non_texts) < len(records) / 2:
        place = non_texts[0]
        raise InputError(
            f"record {place} is {type(records[place]).__name__} among texts; leave it out"
        )
    return "picture", [_picture(record, place) for place, record in enumerate(records)]


def _paths_or_texts(texts: list[str]) -> tuple[Kind, Sequence[Record]]:
    """Return texts as pictures if all of them are paths of files, else as texts.

    A text that looks like the path of a picture is refused if there is no such file.
    """
    # the system refuses to look for longer paths
    paths = [Path(text) for text in texts if len(text) < 4096 and "\n" not in text]
    if len(paths) == len(texts) and all(os.path.isfile(path) for path in paths):
        return "picture", paths
    for path in paths:
        if path.suffix.lower() in PICTURES and not os.path.isfile(path):
            raise InputError(f"record {path} does not exist; check its path")
    return "text", texts


def _picture(record: Any, place: int) -> Record:
    """Return a picture as a record: a path, bytes of a file, or pixels."""
    if isinstance(record, Path | bytes):
        return record

    is_pillow_image = hasattr(record, "convert")
    if is_pillow_image:
        try:
            return rgb_pixels(record)
        except (Unreadable, OSError) as error:
            raise InputError(f"record {place} cannot be encoded ({error}); leave it out") from error

    pixels = np.asarray(record)
    if pixels.dtype != np.uint8 or not are_pictures((1, *pixels.shape)):
        fault = f"record {place} is {type(record).__name__}"
        raise InputError(f"{fault}; give pixels as bytes, paths, Pillow images or texts")
    return picture(pixels)
