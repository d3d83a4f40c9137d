"""Encoders: public models that turn pictures and texts into rows of features.

| name | file | takes |
|---|---|---|
| `timm:NAME` | `timm.py` | pictures |
| `torchvision:MODEL/WEIGHTS` | `torchvision.py` | pictures |
| `open_clip:MODEL/TAG` | `open_clip.py` | pictures, texts |
| `transformers:NAME` | `transformers.py` | pictures, texts |
| `sentence-transformers:NAME` | `sentence_transformers.py` | texts |
| `onnx:FILE` | `onnx.py` | pictures |
| `torch:module.path` | `torch.py` | pictures, texts |

A new family is a file with `load(request)`, and its line in `FAMILIES`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import existing, file_hash
from tacit.data.formats.npy import map_npy
from tacit.encoding.encoders.base import Features, Request
from tacit.encoding.sources.base import Kind
from tacit.errors import InputError

FAMILIES: dict[str, tuple[Kind, ...]] = {
    "timm": ("picture",),
    "torchvision": ("picture",),
    "open_clip": ("picture", "text"),
    "transformers": ("picture", "text"),
    "sentence-transformers": ("text",),
    "onnx": ("picture",),
    "torch": ("picture", "text"),
}
"""The kinds of records that each family takes. Its module has the same name."""


def load_encoder(
    encoder: str,
    *,
    kind: Kind = "picture",
    weights: Path | str | None = None,
    sidecar: Path | str | None = None,
    device: str = "auto",
    precision: str = "auto",
    mirror: bool = False,
    projection: Path | str | None = None,
) -> Features:
    """Load an encoder from this machine; nothing is ever downloaded.

    Parameters
    ----------
    encoder : str
        FAMILY:NAME; see the table of this package.
    kind : {"picture", "text"}
        What it will be given.
    weights : path, optional
        A local folder of weights; by default they are looked for in the local cache.
    sidecar : path, optional
        For onnx: and torch:, a JSON file that states the input; see `PictureInput`.
    device : str
        "auto" takes a GPU where there is one.
    precision : {"auto", "float32", "bfloat16"}
        "auto" takes bfloat16 where the machine multiplies it natively.
    mirror : bool
        Average the features of each picture and of its mirror image.
    projection : path, optional
        An `.npy` file of a public matrix, (dim, new_dim), that features are multiplied by.

    Returns
    -------
    Features
        A callable, from a batch to rows of float32.

    Raises
    ------
    InputError
        If the family or the model is unknown, weights are not on this machine, or an option does not apply.
    """
    family, colon, name = encoder.partition(":")
    if not colon or not name or family not in FAMILIES:
        raise InputError(f"encoder={encoder!r} is unknown; write FAMILY:NAME, with one of: {', '.join(FAMILIES)}")
    if not encoder.isprintable():
        raise InputError(f"encoder={encoder!r} is no plain text; write FAMILY:NAME")
    if sidecar is not None and family not in ("onnx", "torch"):
        raise InputError(f"sidecar={str(sidecar)!r} does not apply to {family}:, which knows its input; leave it out")
    if kind not in FAMILIES[family]:
        takes, instead = ("pictures", "sentence-transformers") if kind == "text" else ("texts", "timm")
        raise InputError(f"{encoder} takes {takes}, and the source holds {kind}s; choose {instead}:")
    if mirror and kind == "text":
        raise InputError("mirror=True is for pictures, and the source holds texts; leave it out")
    matrix = None if projection is None else _matrix(Path(projection))
    request = Request(
        name,
        None if weights is None else existing(weights),
        kind,
        device,
        precision,
        None if sidecar is None else existing(sidecar),
    )
    backbone = import_module(f"{__name__}.{family.replace('-', '_')}").load(request)
    facts: dict[str, Any] = {}
    if backbone.input is not None:
        facts["input"] = backbone.input.model_dump(mode="json")
    if mirror:
        facts["mirror"] = "mean of the features of the picture and of its mirror image"
    if projection is not None:
        facts["projection_sha256"] = file_hash(Path(projection))
    return Features(backbone, mirror, matrix, facts)


def _matrix(path: Path) -> NDArray[np.float32]:
    matrix = map_npy(existing(path))
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not np.isfinite(matrix).all():
        raise InputError(f"{path} is {matrix.dtype} of shape {matrix.shape}; a projection is a matrix of finite floats")
    with np.errstate(over="ignore"):
        narrow = np.asarray(matrix, np.float32)
    if not np.isfinite(narrow).all():
        raise InputError(f"{path} holds numbers beyond float32; scale the matrix")
    return narrow
