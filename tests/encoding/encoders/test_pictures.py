"""Decoding every kind of picture, and resizing against references."""

import io

import numpy as np
import pytest
from PIL import Image

from tacit.encoding.encoders.pictures import (
    PictureInput,
    Unreadable,
    bicubic_float,
    content,
    decoded,
)

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (9, 7, 3), dtype=np.uint8)


def saved(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def test_lossless_colours():
    image = Image.fromarray(RGB)
    for form in ("png", "bmp", "tiff", "ppm"):
        assert (decoded(saved(image, form)) == RGB).all()
    assert (decoded(RGB) == RGB).all()
    assert (decoded(np.dstack([RGB, RGB[..., 0]])) == RGB).all()


def test_grey_palette_bits_and_transparency():
    grey = RGB[..., 0]
    assert (decoded(saved(Image.fromarray(grey), "png")) == grey[..., None]).all()
    assert (decoded(grey) == grey[..., None]).all()
    palette = Image.fromarray(RGB).quantize(8)
    assert (decoded(saved(palette, "png")) == np.asarray(palette.convert("RGB"))).all()
    assert (
        decoded(saved(palette, "png", transparency=0)) == np.asarray(palette.convert("RGB"))
    ).all()
    bits = Image.fromarray(grey > 127)
    assert set(np.unique(decoded(saved(bits, "png"))).tolist()) <= {0, 255}
    alpha = Image.fromarray(np.dstack([RGB, grey]))
    assert (decoded(saved(alpha, "png")) == RGB).all()
    assert (
        decoded(saved(Image.fromarray(np.dstack([grey, grey]), "LA"), "png")) == grey[..., None]
    ).all()


@pytest.mark.parametrize("form", ["png", "tiff", "ppm"])
def test_16_bit_grey_keeps_its_upper_bits(form):
    wide = (RGB[..., 0].astype(np.uint16) << 8) + 77
    assert (decoded(saved(Image.fromarray(wide), form)) == RGB[..., :1]).all()


def test_cmyk():
    image = Image.fromarray(np.full((8, 8, 4), (0, 255, 255, 0), np.uint8), "CMYK")
    assert np.abs(decoded(saved(image, "jpeg")).astype(int) - (255, 0, 0)).max() < 8


def test_of_a_moving_picture_the_first_frame():
    frames = [Image.fromarray(np.full((5, 5), value, np.uint8)) for value in (10, 200)]
    assert (decoded(saved(frames[0], "gif", save_all=True, append_images=frames[1:])) == 10).all()


def test_pictures_are_turned_upright():
    image = Image.fromarray(RGB)
    exif = image.getexif()
    exif[0x0112] = 6
    assert (decoded(saved(image, "png", exif=exif)) == np.rot90(RGB, -1)).all()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"no picture at all", "no picture that Pillow knows"),
        (saved(Image.fromarray(np.zeros((64, 64), np.uint8)), "png")[:60], "."),
        (
            saved(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), "jpeg")[:900],
            "truncated",
        ),
        (saved(Image.fromarray(np.zeros((4, 4), np.float32)), "tiff"), "no known white"),
        (None, "no such file"),
    ],
)
def test_what_cannot_be_decoded(data, said, tmp_path):
    with pytest.raises(Unreadable, match=said):
        decoded(data)
    if data is not None:
        (tmp_path / "x.png").write_bytes(data)
        with pytest.raises(Unreadable, match=said) as error:
            decoded(tmp_path / "x.png")
        assert str(tmp_path) not in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(Unreadable, match="no such file"):
        decoded(tmp_path / "gone.png")


def test_content_is_that_of_the_pixels():
    png, bmp = (content(decoded(saved(Image.fromarray(RGB), form))) for form in ("png", "bmp"))
    assert png == bmp
    assert content(RGB) != content(RGB[::-1])
    assert content(np.zeros((2, 3, 3), np.uint8)) != content(np.zeros((3, 2, 3), np.uint8))


@pytest.mark.parametrize("size", [(20, 30), (9, 7), (4, 3)])
def test_bicubic_float_is_that_of_torch(size):
    import torch

    wanted = torch.nn.functional.interpolate(
        torch.tensor(RGB).permute(2, 0, 1)[None].float(), size, mode="bicubic", align_corners=False
    )
    found = bicubic_float(RGB, *size)
    assert found.dtype == np.float32
    assert np.abs(found - wanted[0].clamp(0, 255).numpy()).max() < 1e-3


def test_input_in_every_layout():
    batch = RGB.transpose(2, 0, 1)[None]
    plain = PictureInput(size=(9, 7), scale=255, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    wanted = (RGB / 255 - (0.1, 0.2, 0.3)) / (0.5, 0.6, 0.7)
    assert np.allclose(plain.scaled(batch)[0], wanted.transpose(2, 0, 1), atol=1e-6)
    last = PictureInput(size=(9, 7), layout="nhwc", channels="bgr", scale=1)
    assert (last.scaled(batch)[0] == RGB[..., ::-1]).all()
    grey = PictureInput(size=(9, 7), channels="grey", scale=1)
    wanted = np.asarray(Image.fromarray(RGB).convert("L"))
    assert grey.scaled(batch).shape == (1, 1, 9, 7)
    assert np.abs(grey.scaled(batch)[0, 0] - wanted).max() <= 1


def test_shorter_side_and_middle():
    wide = RNG.integers(0, 256, (10, 31, 3), dtype=np.uint8)
    own = PictureInput(size=(20, 20), resize_to=20, resize="nearest")
    resized = np.asarray(Image.fromarray(wide).resize((62, 20), Image.Resampling.NEAREST))
    assert (own.prepare(wide) == resized[:, 21:41].transpose(2, 0, 1)).all()
    assert own.prepare(wide.transpose(1, 0, 2)).shape == (3, 20, 20)
