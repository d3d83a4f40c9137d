"""`torch:module.path`: a torch module of the user's, or a function without arguments that makes
one.

`--weights` is a file of its state dict, or a folder with one. Its attribute `picture_input`, a dict
with the keys of `PictureInput`, or `--sidecar` states what it takes. A module that takes lists of
texts has `picture_input = None`.
"""

import inspect
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from tacit.compute.libraries.torch import load_torch
from tacit.data.rows import one_line
from tacit.encoding.encoders.base import Backbone, OtherKindError, Request
from tacit.encoding.encoders.on_torch import OnTorch
from tacit.encoding.encoders.onnx import read_sidecar
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import loading, state_of, weight_files
from tacit.errors import InputError

ATTRIBUTE = "picture_input"


def load(request: Request) -> Backbone:
    """The module that the path leads to; modules in the working directory are found too."""
    name = f"torch:{request.name}"
    module = _module(request.name)
    if request.weights is not None:
        files = weight_files(request.weights) if request.weights.is_dir() else [request.weights]
        if not files or not files[0].is_file():
            raise InputError(
                f"--weights {request.weights} holds no weights; give a state dict (.safetensors or"
                " .pt)"
            )
        with loading(name, files[0]):
            module.load_state_dict(state_of(files[0]))
    stated = (
        getattr(module, ATTRIBUTE, {})
        if request.sidecar is None
        else read_sidecar(request.sidecar, name)
    )
    code = inspect.getsourcefile(type(module)) if type(module).__module__ in sys.modules else None
    files = [] if code is None else [Path(code)]
    if request.kind == "text":
        if stated is not None:
            said = f"{name} takes pictures, and the source holds texts"
            raise OtherKindError(f"{said}; set {ATTRIBUTE} = None if it takes texts")
        return OnTorch(module, module, request, name, files=files)
    if not stated:
        said = f"{name} does not say what pictures it takes"
        raise InputError(f"{said}; set its attribute {ATTRIBUTE}, or give --sidecar")
    return OnTorch(
        module, module, request, name, picture_input(stated, name), files=files, slices=False
    )


def _module(path: str) -> Any:
    torch = load_torch("encoders")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as python -m does
    try:
        module = resolve_name(path)
        if not isinstance(module, torch.nn.Module):
            module = module()
    except Exception as error:  # the user's code may raise anything
        said = f"{type(error).__name__}: {one_line(error)}"
        raise InputError(f"torch:{path} cannot be made ({said}); check the path") from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"torch:{path} is a {type(module).__name__}; give a torch.nn.Module, or what makes one"
        )
    return module
