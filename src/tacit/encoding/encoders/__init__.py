"""Encoders: public models that turn pictures and texts into rows of features.

A new family is a file with `load(request)`, which returns a `Backbone`, and its line in `FAMILIES`.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import existing_here, file_hash
from tacit.data.formats.npy import map_npy
from tacit.encoding.encoders.base import Features, OtherKindError, Request
from tacit.encoding.sources.base import Kind
from tacit.errors import InputError


class Family(NamedTuple):
    """Names of a family's models, the records that it takes, and the places of its weights."""

    model: str
    takes: tuple[Kind, ...]
    weights: str


# families whose tokenizers tell how much of a text is read
LONG_TEXTS = ("transformers", "sentence-transformers")

HUB = "the cache of the Hugging Face hub, or `--weights FOLDER`"
FAMILIES = {
    "timm": Family("NAME", ("picture",), HUB),
    "torchvision": Family(
        "MODEL/WEIGHTS", ("picture",), "the cache of torch's hub, or `--weights FOLDER`"
    ),
    "open_clip": Family("MODEL/TAG", ("picture", "text"), HUB),
    "transformers": Family("NAME", ("picture", "text"), HUB),
    "sentence-transformers": Family("NAME", ("text",), HUB),
    "onnx": Family("FILE", ("picture",), "the file, with a sidecar"),
    "torch": Family("module.path", ("picture", "text"), "your own code, weights by `--weights`"),
    "edges": Family("SIDE", ("picture",), "no weights: directions of edges, for small pictures"),
}
"""The families by name. The module of a family has the same name; docs/encoders.md shows this
table.
"""


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
    long: str | None = None,
) -> Features:
    """Load an encoder from this machine; nothing is ever downloaded.

    Parameters
    ----------
    encoder : str
        FAMILY:NAME, such as "timm:resnet18.a1_in1k"; `FAMILIES` lists the families.
    kind : {"picture", "text"}
        The records that it will encode.
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
    long : {"mean"}, optional
        Features of a text that is longer than the encoder reads: the mean over windows of the text,
        of length 1 if the encoder's rows are. By default the encoder reads the beginning.

    Returns
    -------
    Features
        A callable, from a batch to rows of float32.

    Raises
    ------
    InputError
        If the family or the model is unknown, weights are not on this machine, or an option does
        not apply.
    """
    family, name = _family_and_name(encoder)
    if sidecar is not None and family not in ("onnx", "torch"):
        raise InputError(
            f"sidecar={str(sidecar)!r} does not apply to {family}:, which knows its input; leave"
            " it out"
        )
    if kind not in FAMILIES[family].takes:
        raise _other_kind(encoder, kind)
    if mirror and kind == "text":
        raise InputError("mirror=True is for pictures, and the source holds texts; leave it out")

    if long not in (None, "mean"):
        raise InputError(f"long={long!r} is unknown; pass 'mean', or leave it out")
    if long is not None and family not in LONG_TEXTS:
        raise InputError(
            f"long={long!r} does not apply to {family}:, which does not tell how much of a text it"
            f" reads; choose one of {', '.join(LONG_TEXTS)}"
        )
    if long is not None and kind == "picture":
        raise InputError(f"long={long!r} is for texts, and the source holds pictures; leave it out")

    matrix = None if projection is None else read_projection(Path(projection))
    request = Request(
        name,
        weights=None if weights is None else existing_here(weights),
        kind=kind,
        device=device,
        precision=precision,
        sidecar=None if sidecar is None else existing_here(sidecar),
    )
    module = import_module(f"{__name__}.{family.replace('-', '_')}")
    backbone = module.load(request)

    facts: dict[str, Any] = {}
    if backbone.input is not None:
        facts["input"] = backbone.input.model_dump(mode="json")
    if mirror:
        facts["mirror"] = "mean of the features of the picture and of its mirror image"
    if long is not None:
        facts["long"] = "mean of the features of windows of the text"
    if projection is not None:
        facts["projection_sha256"] = file_hash(Path(projection))
    reload = partial(
        load_encoder,
        encoder,
        kind=kind,
        weights=weights,
        sidecar=sidecar,
        # another process may have no GPU, or one where this process has none
        device=getattr(backbone, "device", device),
        precision=precision,
        mirror=mirror,
        projection=projection,
        long=long,
    )
    return Features(backbone, mirror, matrix, long is not None, facts, reload)


def _family_and_name(encoder: str) -> tuple[str, str]:
    """Return the parts of FAMILY:NAME; an unknown family is refused."""
    family, _, name = encoder.partition(":")
    if not name or family not in FAMILIES:
        raise InputError(
            f"encoder={encoder!r} is unknown; write FAMILY:NAME, with one of: {', '.join(FAMILIES)}"
        )
    if not encoder.isprintable():
        raise InputError(f"encoder={encoder!r} is not plain text; write FAMILY:NAME")
    return family, name


def _other_kind(encoder: str, kind: Kind) -> OtherKindError:
    """Return the error for an encoder that does not take records of this kind."""
    if kind == "text":
        return OtherKindError(
            f"{encoder} takes pictures, and the source holds texts; choose sentence-transformers:"
        )
    return OtherKindError(f"{encoder} takes texts, and the source holds pictures; choose timm:")


def read_projection(path: Path) -> NDArray[np.float32]:
    """Read the public matrix, (dim, new_dim), of a file; anything else is refused."""
    matrix = map_npy(existing_here(path))
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not np.isfinite(matrix).all():
        raise InputError(
            f"{path} is {matrix.dtype} of shape {matrix.shape}; a projection is a matrix of finite"
            " floats"
        )
    with np.errstate(over="ignore"):
        narrow = np.asarray(matrix, np.float32)
    if not np.isfinite(narrow).all():
        raise InputError(f"{path} holds numbers beyond float32; scale the matrix")
    return narrow
