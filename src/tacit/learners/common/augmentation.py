"""Changes of records that keep their class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.compute.libraries.torch import load_torch

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor

# pixels
MOST_SHIFT = 2


def shifted(pictures: Tensor, shifts: Tensor, flips: Tensor) -> Tensor:
    """Shift pictures by pixels, with zeros at the border, and mirror some of them.

    Parameters
    ----------
    pictures : tensor of shape (n, channels, height, width)
    shifts : tensor of shape (n, 2)
        Pixels down and to the right, at most `MOST_SHIFT` either way.
    flips : tensor of shape (n,)
        True for pictures that are mirrored left to right.
    """
    torch = load_torch()
    n, channels, height, width = pictures.shape
    target = pictures.device
    padded = torch.nn.functional.pad(pictures, (MOST_SHIFT,) * 4)

    # for each picture, the column of `padded` that each column of the result shows, (n, width)
    columns = torch.arange(width, device=target).expand(n, width)
    columns = torch.where(flips[:, None], columns.flip(1), columns)
    columns = columns + MOST_SHIFT - shifts[:, 1:]

    # and its rows, (n, height)
    rows = torch.arange(height, device=target) + MOST_SHIFT - shifts[:, :1]

    # four indices that broadcast to (n, channels, height, width)
    picture = torch.arange(n, device=target)[:, None, None, None]
    channel = torch.arange(channels, device=target)[:, None, None]
    return padded[picture, channel, rows[:, None, :, None], columns[:, None, None, :]]
