"""Encoders in Python: `tacit.encode`, and `tacit.Encoder` for pipelines of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.compute.progress import progress
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import BATCH, Features
from tacit.encoding.encoders.batches import batch_size, batches_of, encode_batches
from tacit.encoding.encoders.pictures import Unreadable, of_pillow
from tacit.encoding.sources.arrays import check_pixels, picture
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
        Pixels as bytes, (n, height, width), or with channels last or first; or a list of paths, of bytes of picture
        files, or of Pillow images; or a list of texts. For a callable, whatever it takes.
    encoder : str, Features or callable
        "FAMILY:NAME" (see `tacit.encoding.encoders`), what `load_encoder` returned, or a function from a batch of
        `images` to an array (n, dim). It must treat each record alone, and must not have been fitted to private
        records: both are outside every guarantee.
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
        If the encoder is unknown or its weights are not on this machine, or a record cannot be decoded or encoded.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> pictures = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    >>> tacit.encode(pictures, lambda batch: batch.reshape(len(batch), -1) / 255).shape
    (6, 192)
    """
    _check_workers(workers)
    if not isinstance(encoder, str | Features):
        if options:
            raise InputError(f"{', '.join(options)} is for encoders by name; leave it out for one that is a function")
        if not callable(encoder):
            raise InputError(
                f"encoder={encoder!r:.60} is neither a name nor a function; write FAMILY:NAME, or pass one"
            )
        if batch is not None and batch < 1:
            raise InputError(f"batch={batch} must be at least 1; leave it out for {BATCH}")
        return _by_function(images, encoder, batch or BATCH)
    if isinstance(encoder, Features):
        return _by_features(images, lambda _: encoder, batch, workers)
    return _by_features(images, lambda kind: load_encoder(encoder, kind=kind, **options), batch, workers)


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An encoder as the first step of a scikit-learn pipeline.

    It learns nothing: `fit` only looks at the options, so the guarantee of what follows is that of the whole pipeline.

    Parameters
    ----------
    encoder : str or callable
        As in `tacit.encode`.
    weights, sidecar, projection : path, optional
        See `load_encoder`.
    device, precision : str
        See `load_encoder`.
    mirror : bool
        See `load_encoder`.
    batch : int, optional
        Records at a time.
    workers : int
        Processes that decode pictures.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> pictures, y = rng.integers(0, 256, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2
    >>> flat = tacit.Encoder(lambda batch: batch.reshape(len(batch), -1) / 255)
    >>> learner = tacit.NoisySumPrototypes(budget="rho=0.5", classes=2, noise="research", random_state=0)
    >>> pipeline = make_pipeline(flat, learner).fit(pictures, y)
    >>> pipeline[-1].guarantee_ == learner.promise()
    True
    """

    def __init__(
        self,
        encoder: Any,
        *,
        weights: Any = None,
        sidecar: Any = None,
        device: str = "auto",
        precision: str = "auto",
        mirror: bool = False,
        projection: Any = None,
        batch: int | None = None,
        workers: int = 0,
    ) -> None:
        self.encoder = encoder
        self.weights = weights
        self.sidecar = sidecar
        self.device = device
        self.precision = precision
        self.mirror = mirror
        self.projection = projection
        self.batch = batch
        self.workers = workers

    def fit(self, X: Any, y: Any = None) -> Encoder:
        """Do nothing; an encoder is public and fixed."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode pictures or texts, as `tacit.encode` does; (n, dim)."""
        if isinstance(self.encoder, str):
            _check_workers(self.workers)
            return _by_features(X, self._loaded, self.batch, self.workers)
        return encode(X, self.encoder, batch=self.batch, workers=self.workers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def _loaded(self, kind: Kind) -> Features:
        """The encoder, loaded once for these options."""
        options = {name: value for name, value in self.get_params().items() if name not in ("batch", "workers")}
        asked = (kind, sorted(map(str, options.items())))
        kept = getattr(self, "_kept", None)
        if kept is None or kept[0] != asked:
            self._kept = kept = (asked, load_encoder(options.pop("encoder"), kind=kind, **options))
        return kept[1]


def _check_workers(workers: Any) -> None:
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise InputError(f"workers={workers!r} must be a whole number, 0 or more; leave it out")


def _by_features(images: Any, load: Callable[[Kind], Features], batch: int | None, workers: int) -> NDArray[np.float32]:
    """Rows by an encoder that is loaded for the kind of the records."""
    kind, records = _records(images)
    features = load(kind)
    if (features.backbone.input is None) != (kind == "text"):
        raise InputError(f"the encoder takes {'texts' if kind == 'picture' else 'pictures'}, and these are {kind}s")
    batches = batches_of(iter(records), batch_size(features, batch))
    encoded = encode_batches(batches, features, np.dtype(np.float32), workers)
    found: list[NDArray[np.float32]] = []
    done = 0
    for one in progress(encoded, "encoding", len(records), lambda one: len(one.good)):
        for place, why in one.faults:
            raise InputError(f"record {done + place} cannot be encoded ({why}); leave it out")
        found.append(one.values)
        done += len(one.good)
    return np.concatenate(found)


def _by_function(images: Any, function: Callable[[Any], Any], batch: int) -> NDArray[np.float32]:
    """Rows by a function, a batch at a time."""
    images = images if hasattr(images, "__len__") else _listed(images)
    n = len(images)
    if not n:
        raise InputError("there are no records to encode; give one at least")
    found: list[NDArray[np.float32]] = []
    for first in progress(range(0, n, batch), "encoding", -(-n // batch)):
        given = images[first : first + batch]
        rows = np.asarray(function(given))
        if rows.ndim != 2 or len(rows) != len(given) or rows.dtype.kind not in "fiu":
            raise InputError(
                f"the encoder returned {rows.dtype} {rows.shape} for {len(given)} records; return numbers, (n, dim)"
            )
        if found and rows.shape[1] != found[0].shape[1]:
            raise InputError(
                f"the encoder returned {found[0].shape[1]} features and then {rows.shape[1]}; return as many"
            )
        if not np.isfinite(rows).all():
            wrong = first + int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise InputError(f"record {wrong} has features that are not finite; mend the encoder, or leave it out")
        if not found and len(given) > 1:
            _check_alone(np.asarray(function(given[:1])), rows[:1])
        found.append(rows.astype(np.float32))
    return np.concatenate(found)


def _check_alone(alone: NDArray[Any], among: NDArray[Any]) -> None:
    """Refuse an encoder that mixes records: no guarantee about one record would hold."""
    if alone.shape != among.shape or not np.allclose(alone, among, rtol=1e-2, atol=1e-2 * np.abs(among).max()):
        raise InputError(
            "the encoder gives record 0 other features alone than among others, so that one record would change many "
            "rows; make it treat each record alone"
        )


def _listed(images: Any) -> list[Any]:
    try:
        return list(images)
    except TypeError as error:
        raise InputError(f"images={images!r:.60} is no list of records; give a list or an array") from error


def _records(images: Any) -> tuple[Kind, Sequence[Record]]:
    """The kind of the records, and the records as a sequence."""
    if isinstance(images, str | bytes | Path):
        raise InputError(f"images={str(images)!r:.60} is one record; give a list of them")
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OUS":
        check_pixels(images.shape, images.dtype, "images")
        return "picture", _Pixels(images)
    records = _listed(images)
    if not records:
        raise InputError("there are no records to encode; give one at least")
    if all(isinstance(one, str) for one in records):
        paths = [Path(one) for one in records if len(one) < 4096 and "\n" not in one]
        if len(paths) == len(records) and all(_is_file(path) for path in paths):
            return "picture", paths
        gone = next((path for path in paths if path.suffix.lower() in PICTURES and not _is_file(path)), None)
        if gone is not None:
            raise InputError(f"record {gone} does not exist; check its path")
        return "text", records
    texts = sum(isinstance(one, str) for one in records)
    if texts > len(records) / 2:
        place = next(place for place, one in enumerate(records) if not isinstance(one, str))
        raise InputError(f"record {place} is {type(records[place]).__name__} among texts; leave it out")
    return "picture", [_record(one, place) for place, one in enumerate(records)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _record(one: Any, place: int) -> Record:
    if isinstance(one, Path | bytes):
        return one
    if hasattr(one, "convert"):  # of Pillow
        try:
            return of_pillow(one)
        except (Unreadable, OSError) as error:
            raise InputError(f"record {place} cannot be encoded ({error}); leave it out") from error
    array = np.asarray(one)
    if (
        array.dtype != np.uint8
        or 0 in array.shape
        or not (array.ndim == 2 or (array.ndim == 3 and (array.shape[2] in (1, 3, 4) or array.shape[0] in (1, 3))))
    ):
        raise InputError(f"record {place} is {type(one).__name__}; give pixels as bytes, paths, Pillow images or texts")
    return picture(array)


class _Pixels(Sequence[Record]):
    """An array of pictures, one at a time."""

    def __init__(self, pixels: NDArray[np.uint8]) -> None:
        self.pixels = pixels

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, place: Any) -> Any:
        return picture(self.pixels[place])
