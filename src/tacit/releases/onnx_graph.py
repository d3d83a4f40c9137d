"""A release as an ONNX graph: from embeddings to label and probabilities.

The graph has one input, `embeddings` of shape (n, d) and type float32 with any n, and two outputs:
`label` of shape (n,) and the type of the class list, and `probabilities` of shape (n, C) and type
float32. Inside it computes in float64, in which `Release.predict` and `predict_proba` compute;
convolutions, which torch computes in float32 too, are the exception. It uses no operator outside
the default domain, and none whose form changed after opset 13, so that it can be joined with an
encoder of any later opset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.libraries.onnx import load_onnx
from tacit.errors import InputError
from tacit.models.carried import deciding
from tacit.models.decisions import (
    Decision,
    LinearHead,
    NearestPrototype,
    NetworkHead,
    QuadraticHead,
    mean_directions,
)
from tacit.models.probabilities import Probabilities
from tacit.models.scaling import Scaling
from tacit.releases.card import render_card
from tacit.releases.schema import Document

if TYPE_CHECKING:
    from tacit.compute.libraries.onnx import ModelProto

OPSET, IR_VERSION, EARLIEST = 17, 8, 13
MOST_BYTES = 2**31 - 1  # of a protocol buffer
INPUT, LABEL, PROBABILITIES = "embeddings", "label", "probabilities"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Head:
    """The parts of a release that a graph of it needs; `sha256` is the hash of the arrays' file."""

    document: Document
    arrays: Arrays
    probabilities: Probabilities
    sha256: str

    @property
    def classes(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""
        return np.array(self.document.contents.classes)


class Graph:
    """Nodes and constants in the order in which they were added; tensors are named by their number
    and a prefix.
    """

    def __init__(self, prefix: str = "head") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """The name of a constant tensor."""
        name = f"{self.prefix}/constant_{len(self.constants)}"
        array = np.ascontiguousarray(np.asarray(value, dtype))
        self.constants.append(load_onnx().numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node with one output and return its name."""
        name = output or f"{self.prefix}/{operator}_{len(self.nodes)}"
        place = f"{self.prefix}/node_{len(self.nodes)}"
        node = load_onnx().helper.make_node(operator, inputs, [name], name=place, **attributes)
        self.nodes.append(node)
        return name

    def cast(self, tensor: str, dtype: Any, output: str = "") -> str:
        """A tensor in another type."""
        onnx_type = load_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", tensor, output=output, to=onnx_type)

    def sum(self, tensor: str, axis: int) -> str:
        """Sums along an axis, which stays with length 1."""
        return self.add("ReduceSum", tensor, self.constant([axis], np.int64), keepdims=1)

    def reshaped(self, tensor: str, *shape: int) -> str:
        """A tensor of another shape; 0 keeps a side, -1 is what is left."""
        return self.add("Reshape", tensor, self.constant(shape, np.int64))

    def lengths(self, rows: str) -> str:
        """Euclidean norms of rows, (n, 1), and 1 for rows of zeros."""
        norms = self.add("Sqrt", self.sum(self.add("Mul", rows, rows), 1))
        return self.add(
            "Where", self.add("Greater", norms, self.constant(0.0)), norms, self.constant(1.0)
        )

    def lengths_about(self, rows: str, centre: NDArray[Any] | None) -> tuple[str, str]:
        """`tacit.models.rows.with_lengths_about`: rows, and what to divide them by."""
        if centre is None:
            return rows, self.lengths(rows)
        energy = self.sum(self.add("Abs", rows), 1)
        moved = self.add("Sub", self.add("Div", rows, self.lengths(rows)), self.constant(centre))
        rows = self.add(
            "Where", self.add("Greater", energy, self.constant(0.0)), moved, self.constant(0.0)
        )
        return rows, self.lengths(rows)


def head_model(head: Head, opset: int = OPSET) -> ModelProto:
    """The graph of a release, with its guarantee and card in the metadata.

    Raises
    ------
    InputError
        If onnx is not installed, or the graph is too large for a file.
    """
    onnx = load_onnx()
    helper, types = onnx.helper, onnx.TensorProto
    document, contents, classes = head.document, head.document.contents, head.classes
    graph = Graph()
    rows = graph.cast(INPUT, np.float64)
    scaling = Scaling.stated(head.arrays)
    if scaling is not None:
        moved = graph.add("Sub", rows, graph.constant(scaling.mean))
        rows = graph.add("Div", moved, graph.constant(scaling.scale))
    scores = _scores(graph, contents.decision, deciding(head.arrays), rows, len(classes))
    label_type = (
        types.STRING
        if classes.dtype.kind == "U"
        else helper.np_dtype_to_tensor_dtype(classes.dtype)
    )
    _outputs(graph, scores, classes, head.probabilities)
    inputs = [helper.make_tensor_value_info(INPUT, types.FLOAT, ["n", contents.width])]
    outputs = [
        helper.make_tensor_value_info(LABEL, label_type, ["n"]),
        helper.make_tensor_value_info(PROBABILITIES, types.FLOAT, ["n", len(classes)]),
    ]
    made = helper.make_graph(graph.nodes, "release", inputs, outputs, graph.constants)
    model = helper.make_model(
        made,
        producer_name="tacit",
        producer_version=document.implementation.versions.get("tacit", ""),
        doc_string=document.accounting.statement,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, metadata(head))
    check_size(model)
    onnx.checker.check_model(model)
    return model


def metadata(head: Head) -> dict[str, str]:
    """Metadata of the file: name, stamp, guarantee, card, classes and hash of the release."""
    document = head.document
    return {
        "name": document.product.name,
        "stamp": document.stamp or "",
        "guarantee": json.dumps(document.guarantee.model_dump(mode="json"), ensure_ascii=False),
        "card": render_card(document),
        "classes": json.dumps(head.classes.tolist(), ensure_ascii=False),
        "arrays_sha256": head.sha256,
    }


def check_size(model: ModelProto) -> None:
    """Refuse a graph that no file can hold."""
    if model.ByteSize() > MOST_BYTES:
        raise InputError(
            f"the graph has {model.ByteSize()} bytes, at most {MOST_BYTES} fit a file; use fewer"
            " classes"
        )


def _outputs(
    graph: Graph, scores: str, classes: NDArray[Any], probabilities: Probabilities
) -> None:
    """Label and probabilities of similarities (n, C): `Probabilities.of`."""
    best = graph.add("ArgMax", scores, axis=1, keepdims=1)
    of_classes = object if classes.dtype.kind == "U" else classes.dtype
    index = graph.add("Squeeze", best, graph.constant([1], np.int64))
    graph.add("Gather", graph.constant(classes, of_classes), index, output=LABEL, axis=0)
    largest = graph.add("GatherElements", scores, best, axis=1)
    finite = graph.add("Greater", largest, graph.constant(-np.inf))
    zero = graph.constant(0.0)
    below = graph.add("Sub", scores, graph.add("Where", finite, largest, zero))
    below = graph.add("Where", finite, below, zero)
    shares = graph.add("Exp", graph.add("Mul", below, graph.constant(probabilities.scale)))
    shares = graph.add("Div", shares, graph.sum(shares, 1))
    if probabilities.even > 0:
        possible = graph.cast(graph.add("Greater", scores, graph.constant(-np.inf)), np.float64)
        possible = graph.add("Where", finite, possible, graph.constant(1.0))
        spread = graph.add("Div", possible, graph.sum(possible, 1))
        shares = graph.add("Mul", shares, graph.constant(1 - probabilities.even))
        shares = graph.add(
            "Add", shares, graph.add("Mul", spread, graph.constant(probabilities.even))
        )
    graph.cast(shares, np.float32, PROBABILITIES)


def _scores(graph: Graph, decision: Decision, arrays: Arrays, rows: str, n_classes: int) -> str:
    """The similarities of rows (n, d), of shape (n, C), in float64."""
    if isinstance(decision, NetworkHead):
        return _network(graph, decision, arrays, rows, n_classes)
    floats = {
        name: np.asarray(array, np.float64)
        for name, array in arrays.items()
        if array.dtype.kind == "f"
    }
    forms: dict[type[Decision], Callable[..., str]] = {
        NearestPrototype: _nearest,
        LinearHead: _linear,
        QuadraticHead: _linear,
    }
    return forms[type(decision)](graph, decision, floats, rows)


def _nearest(graph: Graph, decision: NearestPrototype, arrays: Arrays, rows: str) -> str:
    prototypes = arrays["prototypes"]
    prototypes = prototypes[:, None, :] if prototypes.ndim == 2 else prototypes
    n_classes, k, columns = prototypes.shape
    if decision.pooling > 1:
        cut = [graph.constant([bound], np.int64) for bound in (0, columns * decision.pooling, 1)]
        rows = graph.add("Slice", rows, *cut)
        parts = graph.sum(graph.reshaped(rows, 0, columns, decision.pooling), 2)
        rows = graph.add("Div", graph.reshaped(parts, 0, columns), graph.constant(decision.pooling))
    if decision.metric == "euclidean":
        middle = prototypes.mean(axis=(0, 1))
        rows = graph.add("Sub", rows, graph.constant(middle))
        moved = (prototypes - middle).reshape(-1, columns)
        products = graph.add("MatMul", rows, graph.constant(-2 * moved.T))
        squares = graph.add("Add", graph.sum(graph.add("Mul", rows, rows), 1), products)
        squares = graph.add("Add", squares, graph.constant((moved**2).sum(axis=1)))
        distances = graph.add("Sqrt", graph.add("Max", squares, graph.constant(0.0)))
        of_classes = graph.sum(graph.reshaped(distances, 0, n_classes, k), 2)
        return graph.add("Div", graph.reshaped(of_classes, 0, n_classes), graph.constant(-k))
    centre = arrays.get("centre")
    mean, empty = mean_directions(prototypes, None if decision.centred == "rows" else centre)
    rows, lengths = graph.lengths_about(rows, centre)
    cosines = graph.add("Div", graph.add("MatMul", rows, graph.constant(mean.T)), lengths)
    return (
        graph.add("Where", graph.constant(empty, bool), graph.constant(-np.inf), cosines)
        if empty.any()
        else cosines
    )


def _linear(graph: Graph, decision: LinearHead | QuadraticHead, arrays: Arrays, rows: str) -> str:
    rows, lengths = graph.lengths_about(rows, arrays.get("centre"))
    scores = graph.add(
        "Div", graph.add("MatMul", rows, graph.constant(arrays["coefficients"].T)), lengths
    )
    if "squares" in arrays:
        along = graph.add("Div", graph.add("MatMul", rows, graph.constant(arrays["axes"])), lengths)
        squares = graph.add(
            "MatMul", graph.add("Mul", along, along), graph.constant(arrays["squares"].T)
        )
        scores = graph.add("Add", scores, squares)
    return graph.add("Add", scores, graph.constant(arrays["intercepts"]))


def _network(graph: Graph, decision: NetworkHead, arrays: Arrays, rows: str, n_classes: int) -> str:
    scaled = graph.cast(graph.add("Div", rows, graph.constant(decision.scale)), np.float32)
    records = graph.reshaped(scaled, -1, *decision.shape)
    return graph.cast(_layer(graph, decision.module(arrays, n_classes), records), np.float64)


def _layer(graph: Graph, layer: Any, records: str) -> str:
    """One layer of the networks in `tacit.models.networks`, in float32."""
    kind = type(layer).__name__
    if kind == "Sequential":
        for part in layer:
            records = _layer(graph, part, records)
        return records
    if kind == "Residual":
        both = graph.add(
            "Add", _layer(graph, layer.main, records), _layer(graph, layer.shortcut, records)
        )
        return graph.add("Relu", both)
    if kind == "Identity":
        return records
    if kind == "ReLU":
        return graph.add("Relu", records)
    if kind == "Flatten":
        return graph.add("Flatten", records, axis=1)
    if kind == "MaxPool2d":
        return graph.add(
            "MaxPool", records, kernel_shape=[layer.kernel_size] * 2, strides=[layer.stride] * 2
        )
    weights = {name: tensor.numpy() for name, tensor in layer.state_dict().items()}
    if kind == "Linear":  # in float64, so that only torch rounds
        products = graph.add(
            "MatMul", graph.cast(records, np.float64), graph.constant(weights["weight"].T)
        )
        return graph.cast(graph.add("Add", products, graph.constant(weights["bias"])), np.float32)
    if kind == "Conv2d":
        constants = [
            graph.constant(weights[name], np.float32)
            for name in ("weight", "bias")
            if name in weights
        ]
        sides: dict[str, Any] = {
            "kernel_shape": list(layer.kernel_size),
            "strides": list(layer.stride),
        }
        return graph.add("Conv", records, *constants, pads=list(layer.padding) * 2, **sides)
    if kind == "GroupNorm":
        return _group_norm(graph, layer, records)
    raise InputError(f"layer {kind} has no form in ONNX here; choose another network")


def _group_norm(graph: Graph, layer: Any, records: str) -> str:
    ones, zeros = (graph.constant(np.full(layer.num_groups, value), np.float32) for value in (1, 0))
    shape = graph.add("Shape", records)
    grouped = graph.reshaped(records, 0, layer.num_groups, -1)
    normal = graph.add("InstanceNormalization", grouped, ones, zeros, epsilon=layer.eps)
    normal = graph.add("Reshape", normal, shape)
    tensors = layer.weight.data, layer.bias.data
    weight, bias = (graph.constant(tensor.numpy()[:, None, None], np.float32) for tensor in tensors)
    return graph.add("Add", graph.add("Mul", normal, weight), bias)
