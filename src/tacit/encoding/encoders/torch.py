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
    """Load the module that the path leads to; modules in the working directory are found too."""
    name = f"torch:{request.name}"
    module = _module(request.name)
    if request.weights is not None:
        _load_weights(module, request.weights, name)

    if request.sidecar is None:
        input_facts = getattr(module, ATTRIBUTE, {})
    else:
        input_facts = read_sidecar(request.sidecar, name)

    # the code of the module decides the features too
    files = []
    if type(module).__module__ in sys.modules:
        code = inspect.getsourcefile(type(module))
        if code is not None:
            files = [Path(code)]

    if request.kind == "text":
        if input_facts is not None:
            fault = f"{name} takes pictures, and the source holds texts"
            raise OtherKindError(f"{fault}; set {ATTRIBUTE} = None if it takes texts")
        return OnTorch(module, module, request, name, files=files)
    if not input_facts:
        fault = f"{name} does not say what pictures it takes"
        raise InputError(f"{fault}; set its attribute {ATTRIBUTE}, or give --sidecar")

    # a user's module need not be safe to run in several threads
    input = picture_input(input_facts, name)
    return OnTorch(module, module, request, name, input, files=files, slices=False)


def _load_weights(module: Any, path: Path, name: str) -> None:
    """Load the state dict of a file, or of the first file of weights in a folder."""
    files = weight_files(path) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InputError(
            f"--weights {path} holds no weights; give a state dict (.safetensors or .pt)"
        )
    with loading(name, files[0]):
        module.load_state_dict(state_of(files[0]))


def _module(path: str) -> Any:
    """Return the torch module that a path names, or that the function there makes."""
    torch = load_torch("encoders")
    working_directory = str(Path.cwd())
    if working_directory not in sys.path:
        # as python -m does
        sys.path.insert(0, working_directory)
    try:
        module = resolve_name(path)
        if not isinstance(module, torch.nn.Module):
            module = module()
    except Exception as error:
        # the user's code may raise anything
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise InputError(f"torch:{path} cannot be made ({reason}); check the path") from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"torch:{path} is a {type(module).__name__}; give a torch.nn.Module, or what makes one"
        )
    return module
