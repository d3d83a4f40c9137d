"""Changes of records that keep their class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

MOST_SHIFT = 2  # pixels
MOST_TURN = 20.0  # degrees
MOST_STRETCH = 0.2
CUT = 0.3  # side of the square, as a share of the picture's
DROPPED = 0.2  # share of entries


def shifted(pictures: Tensor, shifts: Tensor, flips: Tensor) -> Tensor:
    """Pictures moved by whole pixels, zeros coming in at the border, some of them mirrored left to right.

    Parameters
    ----------
    pictures : Tensor of shape (n, channels, height, width)
    shifts : integer Tensor of shape (n, 2)
        Pixels down and to the right, each in [-MOST_SHIFT, MOST_SHIFT].
    flips : bool Tensor of shape (n,)
        Which are mirrored.

    Returns
    -------
    Tensor of the shape of `pictures`
    """
    import torch

    n, channels, height, width = pictures.shape
    padded = torch.nn.functional.pad(pictures, (MOST_SHIFT,) * 4)
    across = torch.arange(width, device=pictures.device).expand(n, width)
    across = torch.where(flips[:, None], across.flip(1), across) + MOST_SHIFT - shifts[:, 1:]
    down = torch.arange(height, device=pictures.device) + MOST_SHIFT - shifts[:, :1]
    number = torch.arange(n, device=pictures.device)[:, None, None, None]
    channel = torch.arange(channels, device=pictures.device)[:, None, None]
    return padded[number, channel, down[:, None, :, None], across[:, None, None, :]]


def distorted(pictures: Tensor, generator: Generator) -> Tensor:
    """Pictures turned by up to 20 degrees, stretched and sheared by up to a fifth, moved, and with a square cut out.

    Parameters
    ----------
    pictures : Tensor of shape (n, channels, height, width)
    generator : torch.Generator
        Of the device of `pictures`.

    Returns
    -------
    Tensor of the shape of `pictures`
    """
    import torch

    n, _, height, width = pictures.shape

    def uniform(largest: float, *shape: int) -> Tensor:
        return largest * (2 * torch.rand(n, *shape, generator=generator, device=pictures.device) - 1)

    angle, shear = uniform(math.radians(MOST_TURN)), uniform(MOST_STRETCH)
    across, down = 1 + uniform(MOST_STRETCH), 1 + uniform(MOST_STRETCH)
    right, low = uniform(2 * MOST_SHIFT / width), uniform(2 * MOST_SHIFT / height)
    first = torch.stack([angle.cos() * across, shear - angle.sin() * down, right], dim=1)
    second = torch.stack([angle.sin() * across, angle.cos() * down, low], dim=1)
    grid = torch.nn.functional.affine_grid(torch.stack([first, second], dim=1), pictures.shape, align_corners=False)
    moved = torch.nn.functional.grid_sample(pictures, grid, align_corners=False)

    near = [  # of a random centre, by row and by column
        (torch.arange(side, device=pictures.device) - (side / 2) * (1 + uniform(1, 1))).abs() < CUT * side / 2
        for side in (height, width)
    ]
    return moved.masked_fill((near[0][:, :, None] & near[1][:, None, :])[:, None], 0)


def dropped(rows: Tensor, generator: Generator) -> Tensor:
    """Rows of which each entry is 0 with probability a fifth."""
    import torch

    return rows * (torch.rand(rows.shape, generator=generator, device=rows.device) >= DROPPED)
