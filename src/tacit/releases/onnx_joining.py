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
from tacit.releases.onnx_graph import EARLIEST_OPSET, INPUT, Graph, Head, check_size, head_model

if TYPE_CHECKING:
    from tacit.compute.libraries.onnx import ModelProto

# Types in which a store holds rows.
DTYPES = ("float16", "float32")

# Before the names of the encoder's tensors, which might be those of the release.
PREFIX = "encoder/"

# An end beyond every side, for slices; far within the 64 bits of an end in ONNX.
BEYOND = 2**62

# Both are names of the domain of ONNX's own operators.
DEFAULT_DOMAINS = ("", "ai.onnx")


def joined_model(
    head: Head,
    encoder: Path,
    *,
    sidecar: Path | str | None = None,
    mirror: bool = False,
    projection: Path | str | None = None,
    dtype: str = "float32",
) -> ModelProto:
    """Return the graph of encoder and release; arguments as the options of `tacit encode`.

    Raises
    ------
    InputError
        If onnx is not installed, the files cannot be read, or the encoder's features do not fit the
        release.
    """
    load_onnx()
    if dtype not in DTYPES:
        fault = f"dtype={dtype!r} must be one of {', '.join(DTYPES)}"
        raise InputError(f"{fault}; give that of the store of the fit")

    model = _read(encoder)
    matrix = None
    if projection is not None:
        matrix = read_projection(Path(projection))
    if sidecar is None:
        sidecar = encoder.with_suffix(".json")
    sidecar = Path(sidecar)
    facts = read_sidecar(sidecar, f"onnx:{encoder}")  # with the encoder's name for messages

    # without the names of tensors, the facts are those of the pictures
    input_name = facts.pop("input", None)
    output_name = facts.pop("output", None)
    pictures = picture_input(facts, sidecar)
    input_tensor = _input_tensor(model, input_name, encoder)
    output_names = [tensor.name for tensor in model.graph.output]
    features_name = tensor_called(output_name, output_names, "output", encoder)

    # Three parts: mirrored pictures before the encoder, the encoder, what is stored of its
    # features. Parts are joined by names: a node writes the tensor that the next part reads.
    before = Graph("before")
    batch_name = input_tensor.name
    if mirror:
        batch_name = _with_mirrored(before, batch_name, pictures)
    before.add("Identity", batch_name, output=PREFIX + input_tensor.name)
    after = Graph("after")
    _add_stored_rows(after, PREFIX + features_name, mirror, matrix, dtype)

    # the model of the release alone, before which the other parts are put
    result = head_model(head, _opset(model, encoder))
    _put_before(result, model, input_tensor, before, after)
    _add_properties(
        result,
        {
            "encoder": encoder.name,
            "picture_input": pictures.model_dump_json(),
            "mirror": str(mirror).lower(),
        },
    )
    check_size(result)
    _check_fit(result, encoder)
    return result


def _input_tensor(model: ModelProto, name: str | None, encoder: Path) -> Any:
    """Return the input for pictures: that of this name, or the first."""
    # some files list the weights among the inputs
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {tensor.name: tensor for tensor in model.graph.input if tensor.name not in weights}
    return inputs[tensor_called(name, list(inputs), "input", encoder)]


def _add_properties(model: ModelProto, properties: dict[str, str]) -> None:
    """Add entries to the metadata of a model."""
    existing = {entry.key: entry.value for entry in model.metadata_props}
    load_onnx().helper.set_model_props(model, existing | properties)


def _opset(model: ModelProto, encoder: Path) -> int:
    """Return the opset of the encoder's operators, which the whole graph then has."""
    # a file may list the domain under both names
    versions = [item.version for item in model.opset_import if item.domain in DEFAULT_DOMAINS]
    opset = max(versions, default=0)
    if opset < EARLIEST_OPSET:
        fault = f"{encoder} has opset {opset}, and {EARLIEST_OPSET} or later is needed"
        raise InputError(f"{fault}; export it again so")
    return opset


def _put_before(
    release: ModelProto, encoder: ModelProto, input_tensor: Any, before: Graph, after: Graph
) -> None:
    """Put an encoder, and the nodes before and after it, into the model of a release.

    The input is then that of the encoder, without PREFIX in its name.
    """
    onnx = load_onnx()
    prefixed = onnx.compose.add_prefix(encoder, PREFIX)
    head = release.graph
    joined = onnx.helper.make_graph(
        [*before.nodes, *prefixed.graph.node, *after.nodes, *head.node],
        "encoder and release",
        [input_tensor],
        list(head.output),
        [*before.constants, *prefixed.graph.initializer, *after.constants, *head.initializer],
    )
    release.graph.CopyFrom(joined)

    # The encoder may use operators beside those of ONNX, functions of its file, and a later file
    # format.
    other_domains = [item for item in encoder.opset_import if item.domain not in DEFAULT_DOMAINS]
    release.opset_import.extend(other_domains)
    release.functions.extend(prefixed.functions)
    release.ir_version = max(release.ir_version, encoder.ir_version)


def _check_fit(result: ModelProto, encoder: Path) -> None:
    """Refuse a graph whose parts do not fit each other."""
    onnx = load_onnx()
    try:
        onnx.checker.check_model(result)
        onnx.shape_inference.infer_shapes(result, strict_mode=True)
    except Exception as error:  # faults of a stranger's model have many types
        fault = f"{encoder} does not fit the release ({one_line(error)})"
        remedy = "give the encoder of its rows, with the projection and mirror of that run"
        raise InputError(f"{fault}; {remedy}") from error


def _read(encoder: Path) -> ModelProto:
    """Read a model file, or refuse a file that is none."""
    onnx = load_onnx()
    if not encoder.is_file():
        raise InputError(f"{encoder} does not exist; give the ONNX file of the encoder")
    try:
        return onnx.load(encoder)
    except Exception as error:  # the parser of protocol buffers has errors of its own
        fault = f"{encoder} is not an ONNX file ({one_line(error)})"
        raise InputError(f"{fault}; give that of the encoder") from error


def _with_mirrored(graph: Graph, tensor: str, pictures: PictureInput) -> str:
    """Add the same pictures mirrored, after the pictures themselves: (n, ...) becomes (2n, ...)."""
    # the axis of columns, from left to right
    axis = 3 if pictures.layout == "nchw" else 2
    # the slice runs backwards, from the last column to beyond the first one
    start = graph.constant([-1], np.int64)
    stop = graph.constant([-BEYOND], np.int64)
    axes = graph.constant([axis], np.int64)
    step = graph.constant([-1], np.int64)
    mirrored = graph.add("Slice", tensor, start, stop, axes, step)
    return graph.add("Concat", tensor, mirrored, axis=0)


def _add_stored_rows(
    graph: Graph, features: str, mirror: bool, projection: NDArray[Any] | None, dtype: str
) -> None:
    """Add what `tacit encode` stores of these features, as the input of the release."""
    rows = graph.reshape(features, 0, -1)  # one row for each picture
    if mirror:
        rows = _mean_of_halves(graph, rows)
    # rows are stored in `dtype`, and predictions read them as float32
    rows = graph.cast(graph.cast(rows, dtype), np.float32)
    if projection is not None:
        projected = graph.add("MatMul", rows, graph.constant(projection, np.float32))
        rows = graph.cast(graph.cast(projected, dtype), np.float32)

    # under the name that the nodes of the release read
    graph.add("Identity", rows, output=INPUT)


def _mean_of_halves(graph: Graph, rows: str) -> str:
    """Average the features of each picture, in the first half, and of its mirror image.

    The rows of shape (2n, d) become rows of shape (n, d).
    """
    # each half in one long row: (2, n d), with a mean of shape (1, n d)
    halves = graph.reshape(rows, 2, -1)
    means = graph.add("Mul", graph.sum(halves, 0), graph.constant(0.5, np.float32))

    # the number of columns is read from the rows, since the encoder's file may leave it open
    first = graph.constant([1], np.int64)
    end = graph.constant([2], np.int64)
    width = graph.add("Slice", graph.add("Shape", rows), first, end)
    shape = graph.add("Concat", graph.constant([-1], np.int64), width, axis=0)
    return graph.add("Reshape", means, shape)
