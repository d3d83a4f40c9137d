"""Small torch networks by name, for teachers and students of pictures and of rows.

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

# Groups of channels, each of which is normalised together.
GROUPS = 8

# The least side of a picture, and the records that are scored at once.
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
    flat_width = 32 * (height // 4) * (width // 4)
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(flat_width, 64),
        nn.ReLU(),
        nn.Linear(64, n_classes),
    )


def vgg(shape: Shape, n_classes: int) -> nn.Module:
    """Like VGG: three times two convolutions and a pooling, with 16, 32 and 64 channels."""
    nn = load_torch().nn
    channels, height, width = _picture(shape, "vgg")
    layers: list[Any] = []
    n_inputs = channels
    for n_outputs in (16, 32, 64):
        layers += _convolution(n_inputs, n_outputs)
        layers.append(nn.ReLU())
        layers += _convolution(n_outputs, n_outputs)
        layers += [nn.MaxPool2d(2), nn.ReLU()]
        n_inputs = n_outputs

    flat_width = 64 * (height // 8) * (width // 8)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat_width, n_classes))


def resnet(shape: Shape, n_classes: int) -> nn.Module:
    """Like ResNet: a convolution, then residual blocks of 16, 32 and 64 channels."""
    nn = load_torch().nn

    class Residual(nn.Module):  # type: ignore[misc, name-defined]  # torch is not looked into
        """Two convolutions beside a shortcut; where the channels grow, the sides are halved."""

        def __init__(self, n_inputs: int, n_outputs: int) -> None:
            super().__init__()
            grows = n_inputs != n_outputs
            stride = 2 if grows else 1
            self.main = nn.Sequential(
                *_convolution(n_inputs, n_outputs, stride),
                nn.ReLU(),
                *_convolution(n_outputs, n_outputs),
            )
            if grows:
                self.shortcut = nn.Conv2d(n_inputs, n_outputs, 1, stride)
            else:
                self.shortcut = nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.relu(self.main(x) + self.shortcut(x))

    channels, height, width = _picture(shape, "resnet")
    flat_width = 64 * math.ceil(height / 4) * math.ceil(width / 4)
    return nn.Sequential(
        *_convolution(channels, 16),
        nn.ReLU(),
        Residual(16, 16),
        Residual(16, 32),
        Residual(32, 64),
        nn.Flatten(),
        nn.Linear(flat_width, n_classes),
    )


NETWORKS: dict[str, Factory] = {
    "linear": linear,
    "mlp": mlp,
    "cnn": cnn,
    "vgg": vgg,
    "resnet": resnet,
}


def weight_shapes(kind: str, shape: Shape, n_classes: int) -> dict[str, Shape]:
    """The shape of each array of `weights` of a network in `NETWORKS`; torch is not needed.

    Names begin with the place of a layer in its sequence; layers without weights count too.
    """
    if kind == "linear":
        return _layer(1, math.prod(shape), n_classes)
    if kind == "mlp":
        return _layer(1, math.prod(shape), 128) | _layer(3, 128, n_classes)

    channels, height, width = _picture(shape, kind)
    if kind == "cnn":
        return _cnn_shapes(channels, height, width, n_classes)
    if kind == "vgg":
        return _vgg_shapes(channels, height, width, n_classes)
    return _resnet_shapes(channels, height, width, n_classes)


def _cnn_shapes(channels: int, height: int, width: int, n_classes: int) -> dict[str, Shape]:
    """The shapes of `cnn`."""
    convolutions = {
        "0.weight": (16, channels, 3, 3),
        "0.bias": (16,),
        "3.weight": (32, 16, 3, 3),
        "3.bias": (32,),
    }
    flat_width = 32 * (height // 4) * (width // 4)
    return convolutions | _layer(7, flat_width, 64) | _layer(9, 64, n_classes)


def _vgg_shapes(channels: int, height: int, width: int, n_classes: int) -> dict[str, Shape]:
    """The shapes of `vgg`."""
    shapes: dict[str, Shape] = {}
    n_inputs = channels
    for place, n_outputs in ((0, 16), (7, 32), (14, 64)):
        shapes |= _normalised_convolution("", place, n_inputs, n_outputs)
        shapes |= _normalised_convolution("", place + 3, n_outputs, n_outputs)
        n_inputs = n_outputs

    flat_width = 64 * (height // 8) * (width // 8)
    return shapes | _layer(22, flat_width, n_classes)


def _resnet_shapes(channels: int, height: int, width: int, n_classes: int) -> dict[str, Shape]:
    """The shapes of `resnet`."""
    shapes = _normalised_convolution("", 0, channels, 16)
    for place, n_inputs, n_outputs in ((3, 16, 16), (4, 16, 32), (5, 32, 64)):
        main = f"{place}.main."
        shapes |= _normalised_convolution(main, 0, n_inputs, n_outputs)
        shapes |= _normalised_convolution(main, 3, n_outputs, n_outputs)
        if n_inputs != n_outputs:
            shapes[f"{place}.shortcut.weight"] = (n_outputs, n_inputs, 1, 1)
            shapes[f"{place}.shortcut.bias"] = (n_outputs,)

    flat_width = 64 * math.ceil(height / 4) * math.ceil(width / 4)
    return shapes | _layer(7, flat_width, n_classes)


def _layer(place: int, n_inputs: int, n_outputs: int) -> dict[str, Shape]:
    """The shapes of a linear layer."""
    return {f"{place}.weight": (n_outputs, n_inputs), f"{place}.bias": (n_outputs,)}


def _normalised_convolution(
    prefix: str, place: int, n_inputs: int, n_outputs: int
) -> dict[str, Shape]:
    """The shapes of a convolution and its normalisation, as `_convolution` makes them."""
    norm = f"{prefix}{place + 1}"
    return {
        f"{prefix}{place}.weight": (n_outputs, n_inputs, 3, 3),
        f"{norm}.weight": (n_outputs,),
        f"{norm}.bias": (n_outputs,),
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
    class_scores = scores(module, X)
    if among is None:
        return np.asarray(class_scores.argmax(axis=1), dtype=np.int64)

    positions = class_scores[:, among].argmax(axis=1)
    return np.asarray(among[positions], dtype=np.int64)


def scores(module: nn.Module, X: Any) -> NDArray[np.float32]:
    """Scores of each record for each class before softmax, of shape (n, n_classes), in evaluation
    mode.
    """
    torch = load_torch()
    module.eval()
    module_device = next(module.parameters()).device

    # Without records there is one empty block, which gives the scores their shape.
    blocks = []
    with torch.no_grad(), exactly():
        for start in range(0, max(len(X), 1), BLOCK_ROWS):
            records = as_tensor(X[start : start + BLOCK_ROWS])
            blocks.append(module(records.to(module_device)).cpu())
    return np.asarray(torch.cat(blocks).numpy())


def weights(module: nn.Module) -> dict[str, NDArray[Any]]:
    """The arrays of a module by name, as safetensors takes them."""
    return {
        name: np.ascontiguousarray(tensor.cpu().numpy())
        for name, tensor in module.state_dict().items()
    }


def device() -> str:
    """The device on which networks are trained: "cuda" where there is one, else "cpu"."""
    torch = load_torch()
    if torch.cuda.is_available():
        return "cuda"
    return "cpu"


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
    if records.dtype == np.uint8:
        return tensor / 255
    return tensor


def _convolution(n_inputs: int, n_outputs: int, stride: int = 1) -> list[nn.Module]:
    """A convolution and its normalisation, which has a bias."""
    nn = load_torch().nn
    convolution = nn.Conv2d(n_inputs, n_outputs, 3, stride, padding=1, bias=False)
    return [convolution, nn.GroupNorm(GROUPS, n_outputs)]


def _picture(shape: Shape, name: str) -> tuple[int, int, int]:
    """Channels, height and width of pictures; refuse other shapes."""
    if len(shape) != 3 or min(shape[1:]) < LEAST_SIDE:
        rule = (
            f"needs pictures of shape (channels, height, width) with sides of {LEAST_SIDE} or more"
        )
        remedy = "reshape them, or choose 'linear' or 'mlp'"
        raise InputError(f"network {name!r} {rule}, not records of shape {shape}; {remedy}")
    channels, height, width = shape
    return channels, height, width
