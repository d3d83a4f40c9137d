"""From a picture file to the array that an encoder takes: decoding, resizing, cropping, scaling.

Every picture is turned upright by its EXIF tag, made RGB (transparency is dropped, 16-bit grey
keeps its upper eight bits), and of a moving picture the first frame is taken.
"""

import hashlib
import io
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tacit.compute.extras import check_installed
from tacit.data.rows import one_line
from tacit.encoding.sources.base import Record
from tacit.errors import InputError, excerpt

LUMA = np.array([[0.299, 0.587, 0.114]], np.float32)  # ITU-R 601-2, as Pillow's "L"
MOST_PIXELS = 1 << 26  # of a picture before the middle is cut out
KEYS = 0.75  # negated parameter of the bicubic kernel in torch and OpenCV; Pillow has .5


class Unreadable(ValueError):
    """A record that cannot be decoded; the message says why, without its name."""


class PictureInput(BaseModel):
    """How an encoder wants its pictures.

    Parameters
    ----------
    size : (int, int)
        Height and width of what it takes.
    resize_to : int or (int, int), optional
        A number is the length of the shorter side, a pair the height and width whatever the
        proportions; the middle of `size` is cut out then. By default `size` itself.
    resize : str
        "nearest", "bilinear", "bicubic", "lanczos" are Pillow's, which smooth when they shrink and
        round to bytes. "bicubic-float" is that of torch and OpenCV: no smoothing, no rounding,
        clamped to 0..255.
    channels : {"rgb", "bgr", "grey"}
    layout : {"nchw", "nhwc"}
        Whether channels come first or last.
    scale : float
        What bytes are divided by: 255 for pixels in 0..1, 1 for 0..255.
    mean, std : list of float
        Of each channel after scaling; subtracted, and divided by.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: tuple[int, int]
    resize_to: int | tuple[int, int] | None = None
    resize: Literal["nearest", "bilinear", "bicubic", "lanczos", "bicubic-float"] = "bicubic"
    channels: Literal["rgb", "bgr", "grey"] = "rgb"
    layout: Literal["nchw", "nhwc"] = "nchw"
    scale: float = Field(255.0, gt=0)
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if min(self.size) < 1 or max(self.size) > 8192:
            raise ValueError(f"size {self.size} must be from 1 to 8192")
        if self.resize_to is not None and np.less(self.resize_to, self.size).any():
            raise ValueError(f"resize_to {self.resize_to} is smaller than size {self.size}")
        count = 1 if self.channels == "grey" else 3
        if (
            len(self.mean) not in (1, count)
            or len(self.std) not in (1, count)
            or min(self.std) <= 0
        ):
            raise ValueError(f"mean and std need 1 or {count} numbers, those of std above zero")
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of prepared pictures."""
        return np.dtype(np.float32 if self.resize == "bicubic-float" else np.uint8)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[Any]:
        """A decoded picture, (height, width, 3), resized and cut: (3, height, width), bytes or
        floats in 0..255.
        """
        old = picture.shape[:2]
        height, width = self._new_sides(*old)
        if height * width > MOST_PIXELS:
            raise Unreadable(f"its sides are as {old[1]} to {old[0]}, too far apart to resize")
        if self.resize == "bicubic-float":
            resized: NDArray[Any] = bicubic_float(picture, height, width)
        else:
            if old != (height, width):
                Image = load_pillow().Image
                method = Image.Resampling[self.resize.upper()]
                picture = np.asarray(Image.fromarray(picture).resize((width, height), method))
            resized = picture.transpose(2, 0, 1)
        top, left = round((height - self.size[0]) / 2), round((width - self.size[1]) / 2)
        return np.ascontiguousarray(
            resized[:, top : top + self.size[0], left : left + self.size[1]]
        )

    def _new_sides(self, height: int, width: int) -> tuple[int, int]:
        """Height and width before the middle is cut out."""
        target = self.size if self.resize_to is None else self.resize_to
        if not isinstance(target, int):
            return target
        return (
            (target, int(target * width / height))
            if height <= width
            else (int(target * height / width), target)
        )

    def scaled(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Prepared pictures, (n, 3, height, width), as the encoder's input."""
        if self.channels == "grey":
            batch = np.tensordot(LUMA, batch, axes=(1, 1)).transpose(1, 0, 2, 3)
        elif self.channels == "bgr":
            batch = batch[:, ::-1]
        channels = batch.shape[1]
        if (
            batch.dtype == np.float32
            and self.scale == 1
            and not any(self.mean)
            and set(self.std) == {1.0}
        ):
            return np.ascontiguousarray(
                batch if self.layout == "nchw" else batch.transpose(0, 2, 3, 1)
            )
        values = np.empty(batch.shape, np.float32)
        std, mean = (
            np.broadcast_to(np.array(numbers), channels) for numbers in (self.std, self.mean)
        )
        for channel in range(channels):
            scaled = values[:, channel]
            np.multiply(batch[:, channel], np.float32(1 / (self.scale * std[channel])), out=scaled)
            if mean[channel]:
                scaled -= np.float32(mean[channel] / std[channel])
        return (
            values if self.layout == "nchw" else np.ascontiguousarray(values.transpose(0, 2, 3, 1))
        )


def picture_input(facts: Any, where: Path | str) -> PictureInput:
    """The input that a file or a model states; the error names the first fault."""
    try:
        return PictureInput.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        place = excerpt(".".join(map(str, first["loc"]))) or "it"
        known = ", ".join(PictureInput.model_fields)
        said = f"{where}: {place}: {first['msg']}"
        raise InputError(f"{said}; the keys are {known}, and for onnx: input, output") from error


def load_pillow() -> Any:
    """Return Pillow, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("PIL")
    import PIL.Image
    import PIL.ImageOps

    return PIL


def decoded(record: Record) -> NDArray[np.uint8]:
    """A picture as (height, width, 3) bytes; raises Unreadable if there is none, or it is
    damaged.
    """
    Image = load_pillow().Image
    if isinstance(record, np.ndarray):
        pixels = record if record.ndim == 3 else np.repeat(record[:, :, None], 3, axis=2)
        return np.ascontiguousarray(pixels[:, :, :3])
    if record is None:
        raise Unreadable("there is no such file")
    try:
        if isinstance(record, Path) and record.exists() and not record.is_file():
            raise Unreadable("it is no regular file")
        with Image.open(record if isinstance(record, Path) else io.BytesIO(record)) as image:  # type: ignore[arg-type]
            return of_pillow(image)
    except Unreadable:
        raise
    except FileNotFoundError as error:
        raise Unreadable("there is no such file") from error
    except Exception as error:  # decoders of broken files raise nearly anything
        if record == b"" or (
            isinstance(record, Path) and record.is_file() and not record.stat().st_size
        ):
            raise Unreadable("the file is empty") from error
        unknown = type(error).__name__ == "UnidentifiedImageError"
        said = (
            "it is no picture that Pillow knows"
            if unknown
            else one_line(error).replace(str(record), "it")
        )
        raise Unreadable(said) from error


def of_pillow(image: Any) -> NDArray[np.uint8]:
    """The first frame of a Pillow image, upright and RGB, as (height, width, 3) bytes."""
    pillow = load_pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd tags and transparency, which are handled here
        return np.asarray(pillow.ImageOps.exif_transpose(_eight_bit(image)).convert("RGB"))


def _eight_bit(image: Any) -> Any:
    """A picture whose channels have eight bits each."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        wide = np.asarray(image).astype(np.uint32)
        narrow = load_pillow().Image.fromarray((wide >> 8).clip(0, 255).astype(np.uint8))
        narrow.getexif().update(image.getexif())
        return narrow
    if image.mode in ("I", "F"):
        raise Unreadable(
            f"its pixels are {image.mode} (32 bits), which have no known white; convert it to 8"
            " bits"
        )
    return image.convert("RGBA") if image.mode == "P" and "transparency" in image.info else image


def content(picture: NDArray[np.uint8]) -> str:
    """128 bits of a hash of a picture's size and pixels, whatever file it came in."""
    total = hashlib.blake2b(f"{picture.shape}".encode(), digest_size=16)
    total.update(np.ascontiguousarray(picture).data)
    return total.hexdigest()


def bicubic_float(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.float32]:
    """Bicubic interpolation as torch and OpenCV compute it, (3, height, width), clamped to
    0..255.
    """
    rows = _interpolated(picture.reshape(len(picture), -1), height).reshape(height, -1, 3)
    columns = np.ascontiguousarray(rows.transpose(1, 2, 0)).reshape(-1, 3 * height)
    both = _interpolated(columns, width)
    np.clip(both, 0, 255, out=both)
    return np.ascontiguousarray(both.reshape(width, 3, height).transpose(1, 2, 0))


def _interpolated(lines: NDArray[Any], new: int) -> NDArray[np.float32]:
    """`new` lines between those given, (old, n), each a sum of the four nearest."""
    places, weights = _taps(len(lines), new)
    total: NDArray[np.float32] = lines[places[0]] * weights[0]
    for place, weight in zip(places[1:], weights[1:], strict=True):
        total += lines[place] * weight
    return total


@lru_cache(maxsize=64)
def _taps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The four old lines that each new one takes, (4, new), and their weights, (4, new, 1); the
    last one repeats.
    """
    centre = (np.arange(new) + 0.5) * old / new - 0.5
    places = np.floor(centre).astype(np.intp) - 1 + np.arange(4)[:, None]
    distance = np.abs(centre - places)
    near = ((2 - KEYS) * distance - (3 - KEYS)) * distance**2 + 1
    far = ((-KEYS * distance + 5 * KEYS) * distance - 8 * KEYS) * distance + 4 * KEYS
    weights = np.where(distance <= 1, near, far).astype(np.float32)
    return places.clip(0, old - 1), weights[:, :, None]
