"""Shared by families that run on torch: device and precision."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.extras import check_installed
from tacit.compute.libraries.torch import load_torch
from tacit.compute.libraries.torchvision import declare_operators
from tacit.data.arrays import combined_hash, file_hash
from tacit.data.rows import one_line
from tacit.encoding.encoders.base import Backbone, Request, flat, in_slices
from tacit.encoding.encoders.pictures import PictureInput
from tacit.errors import InputError


def ready(library: str) -> None:
    """Check that torch and a library are there, and let the library import torchvision."""
    load_torch("encoders")
    check_installed(library)
    declare_operators()


class OnTorch(Backbone):
    """A torch module in evaluation mode.

    `run` maps a tensor of pictures, a list of texts, or what `tokenize` makes of texts, to a tensor
    of features. The `files` decide the features too: code, or those of a tokenizer. With `slices`,
    several threads may run the module at once, each on a few pictures. `cut` gives the windows of a
    text; see `Backbone.windows`.
    """

    def __init__(
        self,
        module: Any,
        run: Callable[[Any], Any],
        request: Request,
        name: str,
        input: PictureInput | None = None,
        *,
        tokenize: Callable[[list[str]], Any] | None = None,
        files: Sequence[Path] = (),
        slices: bool = True,
        cut: Callable[[str], list[str]] | None = None,
    ) -> None:
        torch = load_torch("encoders")
        self.device = _device(request.device)
        self.bfloat16 = _bfloat16(request.precision, self.device)
        self.module = module.eval().to(self.device).requires_grad_(False)
        self.run = run
        self.input = input
        self.tokenize = tokenize
        self.cut = cut
        self.slices = slices and input is not None and self.device == "cpu"
        self.card = {
            "name": name,
            "weights_sha256": _hash_of_tensors(module.state_dict()),
            "precision": "bfloat16" if self.bfloat16 else "float32",
            "library": f"torch {torch.__version__}",
        }
        if files:
            self.card["files_sha256"] = combined_hash(file_hash(path) for path in files)

    def windows(self, text: str) -> list[str]:
        return [text] if self.cut is None else self.cut(text)

    def forward(self, inputs: Any) -> NDArray[np.float32]:
        if not self.slices:
            return self._features(inputs)
        torch = load_torch("encoders")

        # each slice runs in one thread
        use_one_thread = partial(torch.set_num_threads, 1)
        return in_slices(self._features, inputs, torch.get_num_threads(), use_one_thread)

    def _features(self, inputs: Any) -> NDArray[np.float32]:
        torch = load_torch("encoders")
        if self.input is not None:
            inputs = torch.from_numpy(inputs).to(self.device)
        elif self.tokenize is not None:
            inputs = self.tokenize(inputs).to(self.device)

        precision: AbstractContextManager[Any] = nullcontext()
        if self.bfloat16:
            device_type = self.device.split(":")[0]
            precision = torch.autocast(device_type, torch.bfloat16)
        with torch.inference_mode(), precision:
            rows = self.run(inputs)
        return flat(rows.float().cpu().numpy())


def _device(name: str) -> str:
    """Return the device that is used: by default a GPU where there is one."""
    torch = load_torch("encoders")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device={name!r} cannot be used ({one_line(error)}); leave it out"
        ) from error
    return name


def _bfloat16(precision: str, device: str) -> bool:
    """Tell whether to compute in bfloat16: "auto" does where the machine multiplies it natively."""
    torch = load_torch("encoders")
    if precision not in ("auto", "float32", "bfloat16"):
        raise InputError(f"precision={precision!r} is unknown; choose auto, float32 or bfloat16")
    if precision != "auto":
        return precision == "bfloat16"
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))

    # torch has no public function that tells
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name)() for name in checks if hasattr(torch.cpu, name))


def _hash_of_tensors(state: Any) -> str:
    """Return the SHA-256 over the names, types and values of a model's tensors, whatever file they
    came in.
    """
    torch = load_torch("encoders")
    total = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        if tensor.numel() > 0:
            values = tensor.reshape(-1).view(torch.uint8)
            total.update(values.numpy().data)
    return total.hexdigest()
