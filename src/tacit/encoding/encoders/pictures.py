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

# weights of red, green and blue in grey: ITU-R 601-2, as Pillow's "L"
LUMA = np.array([[0.299, 0.587, 0.114]], np.float32)

# largest resized picture, before the middle is cut out
MOST_PIXELS = 1 << 26

# -a of Keys' bicubic kernel (1981): a = -.75 in torch and OpenCV, -.5 in Pillow
KEYS = 0.75


class Unreadable(ValueError):
    """A record that cannot be decoded; the message says why, without its name."""


class PictureInput(BaseModel):
    """Preparation of pictures for an encoder.

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
    def _check_fields(self) -> Self:
        if min(self.size) < 1 or max(self.size) > 8192:
            raise ValueError(f"size {self.size} must be from 1 to 8192")

        if self.resize_to is not None and np.less(self.resize_to, self.size).any():
            raise ValueError(f"resize_to {self.resize_to} is smaller than size {self.size}")

        n_channels = 1 if self.channels == "grey" else 3
        allowed_lengths = (1, n_channels)
        right_lengths = len(self.mean) in allowed_lengths and len(self.std) in allowed_lengths
        if not right_lengths or min(self.std) <= 0:
            raise ValueError(
                f"mean and std need 1 or {n_channels} numbers, those of std above zero"
            )
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of prepared pictures."""
        if self.resize == "bicubic-float":
            return np.dtype(np.float32)
        return np.dtype(np.uint8)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[Any]:
        """Resize a decoded picture, (height, width, 3), and cut out the middle.

        Returns (3, height, width), bytes or floats in 0..255.
        """
        old_height, old_width = picture.shape[:2]
        height, width = self._resized_sides(old_height, old_width)
        if height * width > MOST_PIXELS:
            raise Unreadable(
                f"its sides are as {old_width} to {old_height}, too far apart to resize"
            )

        resized: NDArray[Any]
        if self.resize == "bicubic-float":
            resized = bicubic_float(picture, height, width)
        else:
            if (old_height, old_width) != (height, width):
                picture = self._resize_with_pillow(picture, height, width)
            resized = picture.transpose(2, 0, 1)

        cut_height, cut_width = self.size
        top = round((height - cut_height) / 2)
        left = round((width - cut_width) / 2)
        return np.ascontiguousarray(resized[:, top : top + cut_height, left : left + cut_width])

    def _resize_with_pillow(
        self, picture: NDArray[np.uint8], height: int, width: int
    ) -> NDArray[np.uint8]:
        Image = load_pillow().Image
        method = Image.Resampling[self.resize.upper()]
        return np.asarray(Image.fromarray(picture).resize((width, height), method))

    def _resized_sides(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width before the middle is cut out."""
        target = self.size if self.resize_to is None else self.resize_to
        if not isinstance(target, int):
            return target

        # the shorter side gets the target's length, and the proportions stay
        if height <= width:
            return target, int(target * width / height)
        return int(target * height / width), target

    def scaled(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Turn prepared pictures, (n, 3, height, width), into the encoder's input."""
        if self.channels == "grey":
            # sum over the channels, which leaves (1, n, height, width)
            batch = np.tensordot(LUMA, batch, axes=(1, 1)).transpose(1, 0, 2, 3)
        elif self.channels == "bgr":
            batch = batch[:, ::-1]

        keeps_values = self.scale == 1 and not any(self.mean) and set(self.std) == {1.0}
        if batch.dtype == np.float32 and keeps_values:
            return self._laid_out(batch)

        n_channels = batch.shape[1]
        mean = np.broadcast_to(np.array(self.mean), n_channels)
        std = np.broadcast_to(np.array(self.std), n_channels)

        # (x / scale - mean) / std, channel by channel, without a copy of the batch
        values = np.empty(batch.shape, np.float32)
        for channel in range(n_channels):
            channel_values = values[:, channel]
            factor = np.float32(1 / (self.scale * std[channel]))
            np.multiply(batch[:, channel], factor, out=channel_values)
            if mean[channel]:
                channel_values -= np.float32(mean[channel] / std[channel])
        return self._laid_out(values)

    def _laid_out(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the batch, (n, channels, height, width), in the layout of the encoder."""
        if self.layout == "nhwc":
            batch = batch.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(batch)


def picture_input(facts: Any, where: Path | str) -> PictureInput:
    """Read the input that a file or a model states; the error names the first fault."""
    try:
        return PictureInput.model_validate(facts)
    except ValidationError as error:
        fault = error.errors()[0]
        key = excerpt(".".join(map(str, fault["loc"]))) or "it"
        keys = ", ".join(PictureInput.model_fields)
        raise InputError(
            f"{where}: {key}: {fault['msg']}; the keys are {keys}, and for onnx: input, output"
        ) from error


def load_pillow() -> Any:
    """Return Pillow, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("PIL")
    import PIL.Image
    import PIL.ImageOps

    return PIL


def decoded(record: Record) -> NDArray[np.uint8]:
    """Decode a picture into (height, width, 3) bytes.

    Raises Unreadable if there is no picture, or it is damaged.
    """
    Image = load_pillow().Image
    if isinstance(record, np.ndarray):
        if record.ndim == 2:
            record = np.repeat(record[:, :, None], 3, axis=2)
        return np.ascontiguousarray(record[:, :, :3])
    if record is None:
        raise Unreadable("there is no such file")

    try:
        if isinstance(record, Path) and record.exists() and not record.is_file():
            raise Unreadable("it is no regular file")
        file = record if isinstance(record, Path) else io.BytesIO(record)  # type: ignore[arg-type]
        with Image.open(file) as image:
            return rgb_pixels(image)
    except Unreadable:
        raise
    except FileNotFoundError as error:
        raise Unreadable("there is no such file") from error
    except Exception as error:  # decoders of broken files raise nearly anything
        raise Unreadable(_reason(record, error)) from error


def _reason(record: Record, error: Exception) -> str:
    """Say why Pillow failed on a file or on bytes, without the file's name."""
    empty_file = isinstance(record, Path) and record.is_file() and not record.stat().st_size
    if record == b"" or empty_file:
        return "the file is empty"

    # compared by name: Pillow is imported only where pictures are decoded
    if type(error).__name__ == "UnidentifiedImageError":
        return "it is no picture that Pillow knows"
    return one_line(error).replace(str(record), "it")


def rgb_pixels(image: Any) -> NDArray[np.uint8]:
    """Return the first frame of a Pillow image, upright and RGB, as (height, width, 3) bytes."""
    pillow = load_pillow()
    with warnings.catch_warnings():
        # Pillow warns about odd tags and transparency, which are handled here
        warnings.simplefilter("ignore")
        upright = pillow.ImageOps.exif_transpose(_eight_bit(image))
        return np.asarray(upright.convert("RGB"))


def _eight_bit(image: Any) -> Any:
    """Return a picture whose channels have eight bits each."""
    sixteen_bit = image.mode.startswith("I;16")
    # Pillow opens some 16-bit grey files with 32 bits a pixel
    widened = image.mode == "I" and image.format in ("PNG", "PPM")
    if sixteen_bit or widened:
        pixels = np.asarray(image).astype(np.uint32)
        upper_bits = (pixels >> 8).clip(0, 255).astype(np.uint8)
        narrow = load_pillow().Image.fromarray(upper_bits)
        # the tag of the orientation is read later
        narrow.getexif().update(image.getexif())
        return narrow

    if image.mode in ("I", "F"):
        raise Unreadable(
            f"its pixels are {image.mode} (32 bits), which have no known white; convert it to 8"
            " bits"
        )

    if image.mode == "P" and "transparency" in image.info:
        return image.convert("RGBA")
    return image


def content(picture: NDArray[np.uint8]) -> str:
    """Return 128 bits of a hash of a picture's size and pixels, whatever file it came in."""
    total = hashlib.blake2b(f"{picture.shape}".encode(), digest_size=16)
    total.update(np.ascontiguousarray(picture).data)
    return total.hexdigest()


def bicubic_float(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.float32]:
    """Resize by bicubic interpolation as torch and OpenCV compute it.

    Returns (3, height, width), clamped to 0..255.
    """
    # the kernel is separable: first along the height, then along the width
    old_lines = picture.reshape(len(picture), -1)
    taller = _interpolated(old_lines, height).reshape(height, -1, 3)

    # (old width, 3 * height): the width comes first, so that each column is a line
    old_columns = np.ascontiguousarray(taller.transpose(1, 2, 0)).reshape(-1, 3 * height)
    resized = _interpolated(old_columns, width)

    # the kernel has negative weights, so sums may leave the range of bytes
    np.clip(resized, 0, 255, out=resized)
    return np.ascontiguousarray(resized.reshape(width, 3, height).transpose(1, 2, 0))


def _interpolated(lines: NDArray[Any], n_new: int) -> NDArray[np.float32]:
    """Interpolate between lines, (n_old, d): each of the n_new lines is a sum of the nearest four.

    The sum is taken in a fixed order, so that its bits do not change.
    """
    places, weights = _taps(len(lines), n_new)
    total: NDArray[np.float32] = lines[places[0]] * weights[0]
    for place, weight in zip(places[1:], weights[1:], strict=True):
        total += lines[place] * weight
    return total


@lru_cache(maxsize=64)
def _taps(n_old: int, n_new: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the places of the four old lines in each new line, (4, n_new), and their weights.

    Weights are of shape (4, n_new, 1). Beyond an edge, the last line repeats.
    """
    # centres of the new lines, counted in old lines; lines are sampled at half numbers
    centre = (np.arange(n_new) + 0.5) * n_old / n_new - 0.5
    places = np.floor(centre).astype(np.intp) - 1 + np.arange(4)[:, None]
    distance = np.abs(centre - places)

    # Keys' kernel with a = -KEYS: one cubic up to distance 1, another from 1 to 2
    near = ((2 - KEYS) * distance - (3 - KEYS)) * distance**2 + 1
    far = ((-KEYS * distance + 5 * KEYS) * distance - 8 * KEYS) * distance + 4 * KEYS
    weights = np.where(distance <= 1, near, far).astype(np.float32)
    return places.clip(0, n_old - 1), weights[:, :, None]
