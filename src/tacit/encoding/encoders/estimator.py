"""Encoders in Python: `tacit.encode`, and `tacit.Encoder` for pipelines of scikit-learn."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.compute.progress import progress
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import BATCH, Features
from tacit.encoding.encoders.batches import check_workers, encode_records
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
        Of `load_encoder`: weights, sidecar, device, precision, mirror, projection.

    Returns
    -------
    ndarray of shape (n, dim), float32

    Raises
    ------
    InputError
        If the encoder is unknown or its weights are not on this machine, or a record cannot be
        decoded or encoded.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> pictures = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    >>> tacit.encode(pictures, lambda batch: batch.reshape(len(batch), -1) / 255).shape
    (6, 192)
    """
    check_workers(workers)
    if isinstance(encoder, str):
        return _encode_by_features(
            images, lambda kind: load_encoder(encoder, kind=kind, **options), batch, workers
        )
    if isinstance(encoder, Features):
        return _encode_by_features(images, lambda _: encoder, batch, workers)
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
    weights, sidecar, device, precision, mirror, projection
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing; an encoder is public and fixed."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode pictures or texts, as `tacit.encode` does; (n, dim)."""
        if not isinstance(self.encoder, str):
            return encode(X, self.encoder, batch=self.batch, workers=self.workers)
        check_workers(self.workers)
        return _encode_by_features(X, self._features, self.batch, self.workers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def _features(self, kind: Kind) -> Features:
        """The encoder, loaded again only if the options or the kind of the records changed."""
        options = {
            name: value
            for name, value in self.get_params().items()
            if name not in ("batch", "workers")
        }
        key = (kind, sorted(map(str, options.items())))
        loaded = getattr(self, "_loaded", None)
        if loaded is None or loaded[0] != key:
            self._loaded = loaded = (
                key,
                load_encoder(options.pop("encoder"), kind=kind, **options),
            )
        return loaded[1]


def _encode_by_features(
    images: Any, load: Callable[[Kind], Features], batch: int | None, workers: int
) -> NDArray[np.float32]:
    """Rows by an encoder that is loaded for the kind of the records."""
    kind, records = _records(images)
    features = load(kind)
    if (features.backbone.input is None) != (kind == "text"):
        raise InputError(
            f"the encoder takes {'texts' if kind == 'picture' else 'pictures'}, and these are"
            f" {kind}s"
        )
    return encode_records(records, features, batch, workers)


def _encode_by_function(
    images: Any, function: Callable[[Any], Any], batch: int
) -> NDArray[np.float32]:
    images = images if hasattr(images, "__len__") else _listed(images)
    n = len(images)
    if not n:
        raise InputError("there are no records to encode; give one at least")
    parts: list[NDArray[np.float32]] = []
    for first in progress(range(0, n, batch), "encoding", -(-n // batch)):
        records = images[first : first + batch]
        rows = np.asarray(function(records))
        if rows.ndim != 2 or len(rows) != len(records) or rows.dtype.kind not in "fiu":
            said = f"the encoder returned {rows.dtype} {rows.shape} for {len(records)} records"
            raise InputError(f"{said}; return numbers, (n, dim)")
        width = rows.shape[1]
        if parts and width != parts[0].shape[1]:
            raise InputError(
                f"the encoder returned {parts[0].shape[1]} features and then {width}; return as"
                " many"
            )
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            place = first + int(finite.argmin())
            raise InputError(
                f"record {place} has features that are not finite; fix the encoder, or leave it out"
            )
        if not parts and len(records) > 1:
            _check_alone(np.asarray(function(records[:1])), rows[:1])
        parts.append(rows.astype(np.float32))
    return np.concatenate(parts)


def _check_alone(alone: NDArray[Any], among: NDArray[Any]) -> None:
    """Refuse an encoder that mixes records: no guarantee about one record would hold."""
    if alone.shape != among.shape or not np.allclose(
        alone, among, rtol=1e-2, atol=1e-2 * np.abs(among).max()
    ):
        raise InputError(
            "the encoder gives record 0 different features alone than in a batch, so that one"
            " record would change many rows; make it treat each record alone"
        )


def _listed(images: Any) -> list[Any]:
    try:
        return list(images)
    except TypeError as error:
        raise InputError(
            f"images={images!r:.60} is not a list of records; give a list or an array"
        ) from error


def _records(images: Any) -> tuple[Kind, Sequence[Record]]:
    """The kind of the records, and the records as a sequence."""
    if isinstance(images, str | bytes | Path):
        raise InputError(f"images={str(images)!r:.60} is one record; give a list of them")
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OUS":
        check_pixels(images.shape, images.dtype, "images")
        return "picture", [picture(pixels) for pixels in images]
    records = _listed(images)
    if not records:
        raise InputError("there are no records to encode; give one at least")
    if all(isinstance(record, str) for record in records):
        paths = [Path(text) for text in records if len(text) < 4096 and "\n" not in text]
        if len(paths) == len(records) and all(os.path.isfile(path) for path in paths):
            return "picture", paths
        gone = next(
            (
                path
                for path in paths
                if path.suffix.lower() in PICTURES and not os.path.isfile(path)
            ),
            None,
        )
        if gone is not None:
            raise InputError(f"record {gone} does not exist; check its path")
        return "text", records
    others = [place for place, record in enumerate(records) if not isinstance(record, str)]
    if len(others) < len(records) / 2:
        raise InputError(
            f"record {others[0]} is {type(records[others[0]]).__name__} among texts; leave it out"
        )
    return "picture", [_picture(record, place) for place, record in enumerate(records)]


def _picture(record: Any, place: int) -> Record:
    if isinstance(record, Path | bytes):
        return record
    if hasattr(record, "convert"):  # of Pillow
        try:
            return rgb_pixels(record)
        except (Unreadable, OSError) as error:
            raise InputError(f"record {place} cannot be encoded ({error}); leave it out") from error
    pixels = np.asarray(record)
    if pixels.dtype != np.uint8 or not are_pictures((1, *pixels.shape)):
        said = f"record {place} is {type(record).__name__}"
        raise InputError(f"{said}; give pixels as bytes, paths, Pillow images or texts")
    return picture(pixels)
