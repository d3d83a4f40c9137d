"""Small torch networks by name: what teachers and students of pictures and rows are made of.

None holds statistics of its training batches (no BatchNorm) or draws at random (no dropout), so
that many of them can be trained side by side in one program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.extras import check_installed
from tacit.compute.libraries.torch import load_torch
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor, nn

Shape = tuple[int, ...]
Factory = Callable[[Shape, int], "nn.Module"]

GROUPS = 8  # of channels that are normalised together
LEAST_SIDE = 8
BLOCK_ROWS = 1024


def linear(shape: Shape, n_classes: int) -> nn.Module:
    """A linear score per class.

    Like every network here it takes float32 records (b, *shape) to scores (b, n_classes). `shape`
    is (d,) for rows and (channels, height, width) for pictures.
    """
    nn = load_torch().nn
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), n_classes))


def mlp(shape: Shape, n_classes: int) -> nn.Module:
    """One hidden layer of 128 units."""
    nn = load_torch().nn
    return nn.Sequential(
        nn.Flatten(), nn.Linear(math.prod(shape), 128), nn.ReLU(), nn.Linear(128, n_classes)
    )


def cnn(shape: Shape, n_classes: int) -> nn.Module:
    """Two convolutions of 16 and 32 channels, each pooled, and a hidden layer of 64 units."""
    nn = load_torch().nn
    channels, height, width = _picture(shape, "cnn")
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * (height // 4) * (width // 4), 64), nn.ReLU(),
        nn.Linear(64, n_classes),
    )  # fmt: skip


def vgg(shape: Shape, n_classes: int) -> nn.Module:
    """Like VGG: three times two convolutions and a pooling, with 16, 32 and 64 channels."""
    nn = load_torch().nn
    channels, height, width = _picture(shape, "vgg")
    layers: list[Any] = []
    for after in (16, 32, 64):
        layers += [
            *_convolution(channels, after),
            nn.ReLU(),
            *_convolution(after, after),
            nn.MaxPool2d(2),
            nn.ReLU(),
        ]
        channels = after
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(channels * (height // 8) * (width // 8), n_classes)
    )


def resnet(shape: Shape, n_classes: int) -> nn.Module:
    """Like ResNet: a convolution, then residual blocks of 16, 32 and 64 channels."""
    nn = load_torch().nn

    class Residual(nn.Module):  # type: ignore[misc, name-defined]  # torch is not looked into
        """Two convolutions beside a shortcut; where the channels grow, the sides are halved."""

        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            stride = 1 if before == after else 2
            self.main = nn.Sequential(
                *_convolution(before, after, stride), nn.ReLU(), *_convolution(after, after)
            )
            self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(before, after, 1, stride)

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.relu(self.main(x) + self.shortcut(x))

    channels, height, width = _picture(shape, "resnet")
    return nn.Sequential(
        *_convolution(channels, 16), nn.ReLU(),
        Residual(16, 16), Residual(16, 32), Residual(32, 64),
        nn.Flatten(), nn.Linear(64 * math.ceil(height / 4) * math.ceil(width / 4), n_classes),
    )  # fmt: skip


NETWORKS: dict[str, Factory] = {
    "linear": linear,
    "mlp": mlp,
    "cnn": cnn,
    "vgg": vgg,
    "resnet": resnet,
}


def weight_shapes(kind: str, shape: Shape, n_classes: int) -> dict[str, Shape]:
    """The shape of each array of `weights` of a network in `NETWORKS`; torch is not needed."""
    if kind == "linear":
        return _layer(1, math.prod(shape), n_classes)
    if kind == "mlp":
        return _layer(1, math.prod(shape), 128) | _layer(3, 128, n_classes)
    channels, height, width = _picture(shape, kind)
    if kind == "cnn":
        flat = 32 * (height // 4) * (width // 4)
        convolutions = {
            "0.weight": (16, channels, 3, 3),
            "0.bias": (16,),
            "3.weight": (32, 16, 3, 3),
            "3.bias": (32,),
        }
        return convolutions | _layer(7, flat, 64) | _layer(9, 64, n_classes)
    if kind == "vgg":
        shapes: dict[str, Shape] = {}
        for place, after in ((0, 16), (7, 32), (14, 64)):
            shapes |= _normalised("", place, channels, after) | _normalised(
                "", place + 3, after, after
            )
            channels = after
        return shapes | _layer(22, 64 * (height // 8) * (width // 8), n_classes)
    shapes = _normalised("", 0, channels, 16)
    for place, before, after in ((3, 16, 16), (4, 16, 32), (5, 32, 64)):
        main = f"{place}.main."
        shapes |= _normalised(main, 0, before, after) | _normalised(main, 3, after, after)
        if before != after:
            shapes |= {
                f"{place}.shortcut.weight": (after, before, 1, 1),
                f"{place}.shortcut.bias": (after,),
            }
    return shapes | _layer(7, 64 * math.ceil(height / 4) * math.ceil(width / 4), n_classes)


def _layer(place: int, before: int, after: int) -> dict[str, Shape]:
    return {f"{place}.weight": (after, before), f"{place}.bias": (after,)}


def _normalised(prefix: str, place: int, before: int, after: int) -> dict[str, Shape]:
    """Of a convolution and its normalisation, as `_convolution` makes them."""
    norm = f"{prefix}{place + 1}"
    return {
        f"{prefix}{place}.weight": (after, before, 3, 3),
        f"{norm}.weight": (after,),
        f"{norm}.bias": (after,),
    }


def network(kind: str | Factory) -> Factory:
    """The factory of a network: a name in `NETWORKS`, or a function from (shape, n_classes) to a
    torch module.
    """
    check_installed("torch")
    if callable(kind):
        return kind
    if not isinstance(kind, str) or kind not in NETWORKS:
        raise InputError(
            f"network {kind!r} is unknown; choose one of {', '.join(NETWORKS)}, or pass a factory"
        )
    return NETWORKS[kind]


def predict(module: nn.Module, X: Any, *, among: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Class index of each record of X, of shape (n,), chosen among these class indices, by default
    among all.
    """
    best = scores(module, X)[:, slice(None) if among is None else among].argmax(axis=1)
    return best if among is None else np.asarray(among[best], dtype=np.int64)


def scores(module: nn.Module, X: Any) -> NDArray[np.float32]:
    """Scores of each record for each class before softmax, of shape (n, n_classes), in evaluation
    mode.
    """
    torch = load_torch()
    module.eval()
    place, starts = next(module.parameters()).device, range(0, max(len(X), 1), BLOCK_ROWS)
    with torch.no_grad(), exactly():
        blocks = [
            module(as_tensor(X[start : start + BLOCK_ROWS]).to(place)).cpu() for start in starts
        ]
    return np.asarray(torch.cat(blocks).numpy())


def weights(module: nn.Module) -> dict[str, NDArray[Any]]:
    """The arrays of a module by name, as safetensors takes them."""
    return {
        name: np.ascontiguousarray(tensor.cpu().numpy())
        for name, tensor in module.state_dict().items()
    }


def device() -> str:
    """Where networks are trained: "cuda" where there is one, else "cpu"."""
    torch = load_torch()
    return "cuda" if torch.cuda.is_available() else "cpu"


def exactly() -> AbstractContextManager[None]:
    """Convolutions on a CUDA device give the same bits each time, and none is rounded to TF32, in
    this context.
    """
    cudnn = load_torch().backends.cudnn
    flags: AbstractContextManager[None] = cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
    return flags


def as_tensor(records: Any) -> Tensor:
    """Records as float32; pictures of type uint8 are divided by 255."""
    torch = load_torch()
    records = np.asarray(records)
    tensor = torch.from_numpy(np.array(records, dtype=np.float32))
    return tensor / 255 if records.dtype == np.uint8 else tensor


def _convolution(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    nn = load_torch().nn
    return [nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.GroupNorm(GROUPS, after)]


def _picture(shape: Shape, name: str) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) < LEAST_SIDE:
        rule = (
            f"needs pictures of shape (channels, height, width) with sides of {LEAST_SIDE} or more"
        )
        remedy = "reshape them, or choose 'linear' or 'mlp'"
        raise InputError(f"network {name!r} {rule}, not records of shape {shape}; {remedy}")
    channels, height, width = shape
    return channels, height, width
