"""`edges:SIDE`: how strong edges are in each of eight directions, around each point of a grid, as
unit rows.

It is a fixed map without weights, for small pictures of shapes: digits, letters, clothes. Pictures
become grey and SIDE x SIDE pixels; points of the grid are STEP pixels apart. It follows histograms
of oriented gradients [Dalal and Triggs 2005], with Gaussian weights in place of cells.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.pictures import PictureInput
from tacit.errors import InputError

DIRECTIONS = 8

# distance of grid points, and the standard deviation of the weights around each, in pixels
STEP = 4
BLUR = 2.5

# standard deviation by which pictures are smoothed before edges are taken, in pixels
SMOOTHING = 0.7

# sides of pictures
SMALLEST = 8
LARGEST = 64

BATCH = 256


def load(request: Request) -> Backbone:
    """Make the map for pictures of SIDE x SIDE pixels."""
    side = request.name
    if not side.isdecimal() or not SMALLEST <= int(side) <= LARGEST:
        fault = f"edges:{side} names no side from {SMALLEST} to {LARGEST} pixels"
        raise InputError(f"{fault}; write edges:28 for pictures of 28 x 28")
    if request.weights is not None:
        raise InputError(
            f"--weights {request.weights} is for encoders with weights; leave it out for edges:"
        )
    return Edges(int(side))


class Edges(Backbone):
    """The map for pictures of `side` x `side` pixels."""

    batch = BATCH
    unit_rows = True

    def __init__(self, side: int) -> None:
        from scipy.ndimage import gaussian_filter1d

        # weights of the pixels of a column, or of a row, at each point of the grid, (points, side)
        blurred = gaussian_filter1d(np.eye(side, dtype=np.float32), BLUR, axis=0)
        self._weights = blurred[STEP // 2 :: STEP]
        self.input = PictureInput(size=(side, side), channels="grey", scale=255.0)
        self.card = {
            "name": f"edges:{side}",
            "settings": {
                "directions": DIRECTIONS,
                "step": STEP,
                "blur": BLUR,
                "smoothing": SMOOTHING,
            },
        }

    def forward(self, inputs: Any) -> NDArray[np.float32]:
        from scipy.ndimage import gaussian_filter

        # gradients of pixels, (n, side, side): their lengths, and angles from 0 to DIRECTIONS
        smooth = gaussian_filter(inputs[:, 0], (0, SMOOTHING, SMOOTHING))
        down, right = np.gradient(smooth, axis=(1, 2))
        strength = np.hypot(down, right)
        angle = np.arctan2(down, right) % (2 * np.pi) * (DIRECTIONS / (2 * np.pi))

        maps = []
        for direction in range(DIRECTIONS):
            # a pixel is shared by the two directions beside its angle, in proportion
            distance = np.abs(angle - direction)
            share = np.clip(1 - np.minimum(distance, DIRECTIONS - distance), 0, None)
            maps.append(self._weights @ (strength * share) @ self._weights.T)

        # unit rows of roots: their products are Bhattacharyya coefficients of the edges' shares
        rows = np.sqrt(np.stack(maps, axis=-1).reshape(len(inputs), -1))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float32)
