"""A release joined with the ONNX file of its encoder: pictures in, label and probabilities out.

The input is that of the encoder's file: pictures that were decoded, resized and scaled as its
sidecar says, which the metadata repeat. What `tacit encode` does after the encoder is in the graph:
the mean with the mirrored pictures, the rounding to the type in which rows are stored, and the
projection.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.libraries.onnx import load_onnx
from tacit.data.rows import one_line
from tacit.encoding.encoders import read_projection
from tacit.encoding.encoders.onnx import read_sidecar, tensor_called
from tacit.encoding.encoders.pictures import PictureInput, picture_input
from tacit.errors import InputError
from tacit.releases.onnx_graph import EARLIEST, INPUT, Graph, Head, check_size, head_model

if TYPE_CHECKING:
    from tacit.compute.libraries.onnx import ModelProto

DTYPES = ("float16", "float32")
PREFIX = "encoder/"
LAST = 2**62  # an end beyond every side, for slices


def joined_model(
    head: Head,
    encoder: Path,
    *,
    sidecar: Path | str | None = None,
    mirror: bool = False,
    projection: Path | str | None = None,
    dtype: str = "float16",
) -> ModelProto:
    """The graph of encoder and release; arguments as the options of `tacit encode`.

    Raises
    ------
    InputError
        If onnx is not installed, the files cannot be read, or the encoder's features do not fit the
        release.
    """
    onnx = load_onnx()
    compose, helper = onnx.compose, onnx.helper
    if dtype not in DTYPES:
        raise InputError(
            f"dtype={dtype!r} must be one of {', '.join(DTYPES)}; give that of the store of the fit"
        )
    model = _read(encoder)
    matrix = None if projection is None else read_projection(Path(projection))
    sidecar = encoder.with_suffix(".json") if sidecar is None else Path(sidecar)
    facts = read_sidecar(sidecar, f"onnx:{encoder}")
    names = [facts.pop(name, None) for name in ("input", "output")]
    prepared = picture_input(facts, sidecar)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {tensor.name: tensor for tensor in model.graph.input if tensor.name not in weights}
    taken = tensor_called(names[0], list(inputs), "input", encoder)
    given = tensor_called(
        names[1], [tensor.name for tensor in model.graph.output], "output", encoder
    )
    opset = max(
        (each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0
    )
    if opset < EARLIEST:
        raise InputError(
            f"{encoder} has opset {opset}, and {EARLIEST} or later is needed; export it again so"
        )
    before, after = Graph("before"), Graph("after")
    start = _with_mirrored(before, taken, prepared) if mirror else taken
    before.add("Identity", start, output=PREFIX + taken)
    _rows_to_predict(after, PREFIX + given, mirror, matrix, dtype)
    encoding = compose.add_prefix(model, PREFIX).graph
    result = head_model(head, opset)
    joined = helper.make_graph(
        [*before.nodes, *encoding.node, *after.nodes, *result.graph.node],
        "encoder and release",
        [inputs[taken]],
        list(result.graph.output),
        [*before.constants, *encoding.initializer, *after.constants, *result.graph.initializer],
    )
    result.graph.CopyFrom(joined)
    others = [each for each in model.opset_import if each.domain not in ("", "ai.onnx")]
    result.opset_import.extend(others)
    result.functions.extend(compose.add_prefix(model, PREFIX).functions)
    result.ir_version = max(result.ir_version, model.ir_version)
    added = {
        "encoder": encoder.name,
        "picture_input": prepared.model_dump_json(),
        "mirror": str(mirror).lower(),
    }
    helper.set_model_props(result, {prop.key: prop.value for prop in result.metadata_props} | added)
    check_size(result)
    try:
        onnx.checker.check_model(result)
        onnx.shape_inference.infer_shapes(result, strict_mode=True)
    except Exception as error:  # what is wrong with a stranger's model has many types
        said = f"{encoder} does not fit the release ({one_line(error)})"
        raise InputError(
            f"{said}; give the encoder of its rows, with the projection and mirror of that run"
        ) from error
    return result


def _read(encoder: Path) -> ModelProto:
    """A model file; one that is none is refused."""
    onnx = load_onnx()
    if not encoder.is_file():
        raise InputError(f"{encoder} does not exist; give the ONNX file of the encoder")
    try:
        return onnx.load(encoder)
    except Exception as error:  # the parser of protocol buffers has errors of its own
        raise InputError(
            f"{encoder} is not an ONNX file ({one_line(error)}); give that of the encoder"
        ) from error


def _with_mirrored(graph: Graph, pictures: str, prepared: PictureInput) -> str:
    """Pictures, then the same mirrored."""
    axis = 3 if prepared.layout == "nchw" else 2
    bounds = [graph.constant([bound], np.int64) for bound in (-1, -LAST, axis, -1)]
    return graph.add("Concat", pictures, graph.add("Slice", pictures, *bounds), axis=0)


def _rows_to_predict(
    graph: Graph, features: str, mirror: bool, projection: NDArray[Any] | None, dtype: str
) -> None:
    """What `tacit encode` stores of these features, as the input of the release."""
    rows = graph.reshaped(features, 0, -1)
    if mirror:
        both = graph.add("Reshape", rows, graph.constant([2, -1], np.int64))
        halves = graph.add("Mul", graph.sum(both, 0), graph.constant(0.5, np.float32))
        width = graph.add(
            "Slice", graph.add("Shape", rows), *(graph.constant([at], np.int64) for at in (1, 2))
        )
        shape = graph.add("Concat", graph.constant([-1], np.int64), width, axis=0)
        rows = graph.add("Reshape", halves, shape)
    rows = graph.cast(graph.cast(rows, dtype), np.float32)
    if projection is not None:
        projected = graph.add("MatMul", rows, graph.constant(projection, np.float32))
        rows = graph.cast(graph.cast(projected, dtype), np.float32)
    graph.add("Identity", rows, output=INPUT)
