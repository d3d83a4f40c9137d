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

DIRECTIONS, BLUR, STEP = 8, 2.5, 4
SMOOTHING = 0.7  # of the picture, in pixels like BLUR
SMALLEST, LARGEST = 8, 64
BATCH = 256


def load(request: Request) -> Backbone:
    """The map for pictures of SIDE x SIDE pixels."""
    side = request.name
    if not side.isdecimal() or not SMALLEST <= int(side) <= LARGEST:
        said = f"edges:{side} names no side from {SMALLEST} to {LARGEST} pixels"
        raise InputError(f"{said}; write edges:28 for pictures of 28 x 28")
    if request.weights is not None:
        raise InputError(
            f"--weights {request.weights} is for encoders with weights; leave it out for edges:"
        )
    return Edges(int(side))


class Edges(Backbone):
    """The map for pictures of `side` x `side` pixels."""

    batch = BATCH

    def __init__(self, side: int) -> None:
        from scipy.ndimage import gaussian_filter1d

        # weights of the pixels of a column, or of a row, at each point of the grid
        self._around = gaussian_filter1d(np.eye(side, dtype=np.float32), BLUR, axis=0)[
            STEP // 2 :: STEP
        ]
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

        down, right = np.gradient(
            gaussian_filter(inputs[:, 0], (0, SMOOTHING, SMOOTHING)), axis=(1, 2)
        )
        strength, turn = (
            np.hypot(down, right),
            np.arctan2(down, right) % (2 * np.pi) * (DIRECTIONS / (2 * np.pi)),
        )
        maps = []
        for direction in range(DIRECTIONS):
            apart = np.abs(turn - direction)
            share = np.clip(1 - np.minimum(apart, DIRECTIONS - apart), 0, None)
            maps.append(self._around @ (strength * share) @ self._around.T)
        rows = np.sqrt(np.stack(maps, axis=-1).reshape(len(inputs), -1))
        return np.asarray(
            rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float32
        )
