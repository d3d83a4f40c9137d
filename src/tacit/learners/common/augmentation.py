"""Changes of records that keep their class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.compute.libraries.torch import load_torch

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor

MOST_SHIFT = 2  # pixels


def shifted(pictures: Tensor, shifts: Tensor, flips: Tensor) -> Tensor:
    """Pictures of shape (n, channels, height, width), shifted by pixels with zeros at the border,
    some mirrored.

    `shifts`, of shape (n, 2), are pixels down and to the right; `flips`, of shape (n,), are
    mirrored left to right.
    """
    torch = load_torch()
    n, channels, height, width = pictures.shape
    padded = torch.nn.functional.pad(pictures, (MOST_SHIFT,) * 4)
    across = torch.arange(width, device=pictures.device).expand(n, width)
    across = torch.where(flips[:, None], across.flip(1), across) + MOST_SHIFT - shifts[:, 1:]
    down = torch.arange(height, device=pictures.device) + MOST_SHIFT - shifts[:, :1]
    number = torch.arange(n, device=pictures.device)[:, None, None, None]
    channel = torch.arange(channels, device=pictures.device)[:, None, None]
    return padded[number, channel, down[:, None, :, None], across[:, None, None, :]]
