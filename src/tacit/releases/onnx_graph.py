"""A release as an ONNX graph: from embeddings to label and probabilities.

The graph has one input, `embeddings` of shape (n, d) and type float32 with any n, and two outputs:
`label` of shape (n,) and the type of the class list, and `probabilities` of shape (n, C) and type
float32. Of several labels a row, `labels` of 0 and 1, of shape (n, K) and type int64, take the
place of `label`. Inside it computes in float64, in which `Release.predict` and `predict_proba`
compute; convolutions, which torch computes in float32 too, are the exception. It uses no operator
outside the default domain, and none whose form changed after opset 13, so that it can be joined
with an encoder of any later opset.
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
from tacit.models.label_sets import LabelSets
from tacit.models.probabilities import Probabilities
from tacit.models.scaling import Scaling
from tacit.releases.card import render_card
from tacit.releases.schema import Document, TaskContents, sets_of

if TYPE_CHECKING:
    from tacit.compute.libraries.onnx import ModelProto

# The operators and the file format of ONNX 1.12 (2022), for a graph that stands alone.
OPSET = 17
IR_VERSION = 8

# The first opset whose operators all have the form that they have here. A graph that is joined with
# an encoder takes the encoder's opset, from this one on.
EARLIEST_OPSET = 13

# Most bytes of a protocol buffer.
MAX_BYTES = 2**31 - 1

# Names of the input and of the outputs.
INPUT = "embeddings"
LABEL = "label"
LABELS = "labels"
PROBABILITIES = "probabilities"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Head:
    """The parts of a release that a graph of it needs; `sha256` is the hash of the arrays' file."""

    document: Document
    arrays: Arrays
    probabilities: Probabilities
    sha256: str
    label_sets: LabelSets | None = None

    @property
    def classes(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""
        return np.array(self.document.contents.classes)


class Graph:
    """Nodes and constants in the order in which they were added.

    Tensors are named by their number and a prefix. Every method that adds a node returns the name
    of the tensor that the node computes.
    """

    def __init__(self, prefix: str = "head") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant tensor."""
        name = f"{self.prefix}/constant_{len(self.constants)}"
        array = np.ascontiguousarray(np.asarray(value, dtype))
        self.constants.append(load_onnx().numpy_helper.from_array(array, name))
        return name

    def add(
        self,
        operator: str,
        *inputs: str | NDArray[Any] | float,
        output: str = "",
        **attributes: Any,
    ) -> str:
        """Append a node with one output; inputs that are numbers become constants in float64."""
        tensors = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        result = output or f"{self.prefix}/{operator}_{len(self.nodes)}"
        node_name = f"{self.prefix}/node_{len(self.nodes)}"
        node = load_onnx().helper.make_node(
            operator, tensors, [result], name=node_name, **attributes
        )
        self.nodes.append(node)
        return result

    def cast(self, tensor: str, dtype: Any, output: str = "") -> str:
        """Convert a tensor to another type."""
        onnx_type = load_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", tensor, output=output, to=onnx_type)

    def sum(self, tensor: str, axis: int) -> str:
        """Sum along an axis, which stays with length 1."""
        return self.add("ReduceSum", tensor, self.constant([axis], np.int64), keepdims=1)

    def reshape(self, tensor: str, *shape: int) -> str:
        """Give a tensor another shape; 0 keeps a side, -1 is what remains."""
        return self.add("Reshape", tensor, self.constant(shape, np.int64))

    def lengths(self, rows: str) -> str:
        """Compute the Euclidean norms of rows, (n, 1), with 1 for rows of zeros."""
        squares = self.add("Mul", rows, rows)
        norms = self.add("Sqrt", self.sum(squares, 1))
        is_positive = self.add("Greater", norms, 0.0)
        return self.add("Where", is_positive, norms, 1.0)

    def lengths_about(self, rows: str, centre: NDArray[Any] | None) -> tuple[str, str]:
        """`tacit.models.rows.with_lengths_about`: rows, and what to divide them by."""
        if centre is None:
            return rows, self.lengths(rows)

        # above 0 also where squares would underflow to 0
        sum_of_magnitudes = self.sum(self.add("Abs", rows), 1)
        unit_rows = self.add("Div", rows, self.lengths(rows))
        centred = self.add("Sub", unit_rows, centre)
        # rows of zeros have no direction, so they stay zeros
        is_not_zero = self.add("Greater", sum_of_magnitudes, 0.0)
        centred = self.add("Where", is_not_zero, centred, 0.0)
        return centred, self.lengths(centred)


def head_model(head: Head, opset: int = OPSET) -> ModelProto:
    """The graph of a release, with its guarantee and card in the metadata.

    Raises
    ------
    InputError
        If onnx is not installed, or the graph is too large for a file.
    """
    onnx = load_onnx()
    helper = onnx.helper
    document = head.document
    contents = document.contents
    classes = head.classes

    graph = Graph()
    rows = graph.cast(INPUT, np.float64)
    scaling = Scaling.stated(head.arrays)
    if scaling is not None:
        rows = graph.add("Sub", rows, scaling.mean)
        rows = graph.add("Div", rows, scaling.scale)
    arrays = deciding(head.arrays)  # those that the decision reads
    scores = _scores(graph, contents.decision, arrays, rows, len(classes))
    if head.label_sets is None:
        _add_outputs(graph, scores, classes, head.probabilities)
        label_output = helper.make_tensor_value_info(LABEL, _label_type(classes), ["n"])
    else:
        _add_label_sets(graph, scores, head.label_sets)
        int64 = onnx.TensorProto.INT64
        label_output = helper.make_tensor_value_info(LABELS, int64, ["n", len(classes)])

    float32 = onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(INPUT, float32, ["n", contents.width])]
    outputs = [
        label_output,
        helper.make_tensor_value_info(PROBABILITIES, float32, ["n", len(classes)]),
    ]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "release", inputs, outputs, graph.constants),
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


# what a file or page says of a release with a tree
CLASSES_ALONE = (
    "the most likely class, even where its probability is small: answers by inner nodes of the tree"
    " (--at-least) and refusals (--refuse) are those of tacit predict"
)


def metadata(head: Head) -> dict[str, str]:
    """Return what the file states beside the graph: name, stamp, guarantee, card, classes, hash."""
    document = head.document
    facts = {
        "name": document.product.name,
        "stamp": document.stamp or "",
        "guarantee": json.dumps(document.guarantee.model_dump(mode="json"), ensure_ascii=False),
        "card": render_card(document),
        "classes": json.dumps(head.classes.tolist(), ensure_ascii=False),
        "arrays_sha256": head.sha256,
    }
    contents = document.contents
    if isinstance(contents, TaskContents) and contents.task.tree:
        facts["tree"] = json.dumps(dict(contents.task.tree), ensure_ascii=False)
        facts["answers"] = CLASSES_ALONE
    sets = sets_of(contents)
    if sets is not None:
        facts["sets"] = sets.rule
    return facts


def check_size(model: ModelProto) -> None:
    """Refuse a graph that no file can hold."""
    size = model.ByteSize()
    if size > MAX_BYTES:
        fault = f"the graph has {size} bytes, at most {MAX_BYTES} fit a file"
        raise InputError(f"{fault}; use fewer classes")


def _label_type(classes: NDArray[Any]) -> int:
    """Return ONNX's type of labels."""
    onnx = load_onnx()
    # not every version of onnx maps the types of texts
    if classes.dtype.kind == "U":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(classes.dtype))


def _add_label_sets(graph: Graph, scores: str, label_sets: LabelSets) -> None:
    """Add which labels each row has, and their probabilities, as `LabelSets` defines them."""
    # 1 / (1 + exp(-scale * score))
    exponentials = graph.add("Exp", graph.add("Mul", scores, -label_sets.scale))
    probabilities = graph.add("Div", 1.0, graph.add("Add", exponentials, 1.0))

    # not GreaterOrEqual, whose form changed after opset 13
    below = graph.add("Less", probabilities, label_sets.thresholds)
    graph.cast(graph.add("Not", below), np.int64, LABELS)
    graph.cast(probabilities, np.float32, PROBABILITIES)


def _add_outputs(
    graph: Graph, scores: str, classes: NDArray[Any], probabilities: Probabilities
) -> None:
    """Add label and probabilities of similarities (n, C), as `Probabilities.of` defines them."""
    best = graph.add("ArgMax", scores, axis=1, keepdims=1)
    # onnx takes texts as objects
    class_type = object if classes.dtype.kind == "U" else classes.dtype
    index = graph.add("Squeeze", best, graph.constant([1], np.int64))
    graph.add("Gather", graph.constant(classes, class_type), index, output=LABEL, axis=0)

    # A softmax of the similarities less the largest. Where all are -inf, so is the largest, and the
    # difference would be NaN: 0 is subtracted instead, and the result replaced by 0, so that all
    # classes get the same share.
    largest = graph.add("GatherElements", scores, best, axis=1)
    is_finite = graph.add("Greater", largest, -np.inf)
    zero = graph.constant(0.0)
    below = graph.add("Sub", scores, graph.add("Where", is_finite, largest, zero))
    below = graph.add("Where", is_finite, below, zero)
    shares = graph.add("Exp", graph.add("Mul", below, probabilities.scale))
    shares = graph.add("Div", shares, graph.sum(shares, 1))

    if probabilities.even > 0:
        # A part of the probability is spread evenly over the classes that are possible, as 1.0 and
        # 0.0; where none is, over all.
        is_possible = graph.cast(graph.add("Greater", scores, -np.inf), np.float64)
        is_possible = graph.add("Where", is_finite, is_possible, 1.0)
        even_shares = graph.add("Div", is_possible, graph.sum(is_possible, 1))
        shares = graph.add("Mul", shares, 1 - probabilities.even)
        even_shares = graph.add("Mul", even_shares, probabilities.even)
        shares = graph.add("Add", shares, even_shares)
    graph.cast(shares, np.float32, PROBABILITIES)


def _scores(graph: Graph, decision: Decision, arrays: Arrays, rows: str, n_classes: int) -> str:
    """Add the similarities of rows (n, d), of shape (n, C), in float64."""
    if isinstance(decision, NetworkHead):
        return _network(graph, decision, arrays, rows, n_classes)

    # others, such as the positions of public rows, decide nothing
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
    """Add the similarities of rows to the prototypes of each class: cosines or distances."""
    prototypes = arrays["prototypes"]
    if prototypes.ndim == 2:
        # one prototype a class: (C, d) becomes (C, 1, d)
        prototypes = prototypes[:, None, :]
    width = prototypes.shape[2]

    if decision.pooling > 1:
        rows = _pooled(graph, rows, width, decision.pooling)
    if decision.metric == "euclidean":
        return _negative_distances(graph, prototypes, rows)

    centre = arrays.get("centre")
    prototype_centre = centre
    if decision.centred == "rows":
        # rows alone are centred
        prototype_centre = None
    directions, is_empty = mean_directions(prototypes, prototype_centre)
    rows, lengths = graph.lengths_about(rows, centre)

    # the mean cosine to the k prototypes of a class is the product with their mean direction
    cosines = graph.add("Div", graph.add("MatMul", rows, directions.T), lengths)
    if not is_empty.any():
        return cosines

    # a class whose prototypes are all zeros is impossible
    return graph.add("Where", graph.constant(is_empty, bool), -np.inf, cosines)


def _pooled(graph: Graph, rows: str, width: int, pooling: int) -> str:
    """Average neighbouring columns, `pooling` at a time; columns beyond the last group are cut."""
    start = graph.constant([0], np.int64)
    stop = graph.constant([width * pooling], np.int64)
    axis = graph.constant([1], np.int64)
    rows = graph.add("Slice", rows, start, stop, axis)
    groups = graph.reshape(rows, 0, width, pooling)
    sums = graph.reshape(graph.sum(groups, 2), 0, width)
    return graph.add("Div", sums, pooling)


def _negative_distances(graph: Graph, prototypes: NDArray[Any], rows: str) -> str:
    """Add the negative mean distance of each row to the k prototypes (C, k, d) of each class.

    |u - p|^2 is computed as |u|^2 - 2 u p + |p|^2, about the mean of all prototypes, where less is
    lost by rounding.
    """
    n_classes, k, width = prototypes.shape
    middle = prototypes.mean(axis=(0, 1))
    rows = graph.add("Sub", rows, middle)
    centred = (prototypes - middle).reshape(-1, width)

    products = graph.add("MatMul", rows, -2 * centred.T)
    squares = graph.add("Add", graph.sum(graph.add("Mul", rows, rows), 1), products)
    squares = graph.add("Add", squares, (centred**2).sum(axis=1))
    distances = graph.add("Sqrt", graph.add("Max", squares, 0.0))

    class_sums = graph.sum(graph.reshape(distances, 0, n_classes, k), 2)
    return graph.add("Div", graph.reshape(class_sums, 0, n_classes), -k)


def _linear(graph: Graph, decision: LinearHead | QuadraticHead, arrays: Arrays, rows: str) -> str:
    """Add the scores <w_c, u> + b_c of unit rows u, about the centre if there is one.

    A `QuadraticHead` adds sum_j s_cj <a_j, u>^2, with "axes" a of shape (d, p) and "squares" s of
    shape (C, p).
    """
    rows, lengths = graph.lengths_about(rows, arrays.get("centre"))
    products = graph.add("MatMul", rows, arrays["coefficients"].T)
    scores = graph.add("Div", products, lengths)
    if "squares" in arrays:
        along_axes = graph.add("Div", graph.add("MatMul", rows, arrays["axes"]), lengths)
        squares = graph.add("Mul", along_axes, along_axes)
        scores = graph.add("Add", scores, graph.add("MatMul", squares, arrays["squares"].T))
    return graph.add("Add", scores, arrays["intercepts"])


def _network(graph: Graph, decision: NetworkHead, arrays: Arrays, rows: str, n_classes: int) -> str:
    """Add the scores of a network, whose layers take and return float32."""
    scaled = graph.cast(graph.add("Div", rows, decision.scale), np.float32)
    records = graph.reshape(scaled, -1, *decision.shape)
    network = decision.module(arrays, n_classes)
    return graph.cast(_layer(graph, network, records), np.float64)


def _layer(graph: Graph, layer: Any, records: str) -> str:
    """Add one layer of the networks in `tacit.models.networks`, in float32."""
    kind = type(layer).__name__
    if kind == "Sequential":
        for part in layer:
            records = _layer(graph, part, records)
        return records
    if kind == "Residual":
        main = _layer(graph, layer.main, records)
        shortcut = _layer(graph, layer.shortcut, records)
        return graph.add("Relu", graph.add("Add", main, shortcut))
    if kind == "Identity":
        return records
    if kind == "ReLU":
        return graph.add("Relu", records)
    if kind == "Flatten":
        return graph.add("Flatten", records, axis=1)
    if kind == "MaxPool2d":
        # a whole number in torch, for height and width; in a `Conv2d` it is a pair
        kernel = [layer.kernel_size] * 2
        return graph.add("MaxPool", records, kernel_shape=kernel, strides=[layer.stride] * 2)
    if kind == "Linear":
        return _linear_layer(graph, layer, records)
    if kind == "Conv2d":
        return _convolution(graph, layer, records)
    if kind == "GroupNorm":
        return _group_norm(graph, layer, records)
    raise InputError(f"layer {kind} has no form in ONNX here; choose another network")


def _linear_layer(graph: Graph, layer: Any, records: str) -> str:
    # in float64, so that the rounding of torch's float32 products is all that differs from torch
    exact = graph.cast(records, np.float64)
    products = graph.add("MatMul", exact, layer.weight.detach().numpy().T)
    return graph.cast(graph.add("Add", products, layer.bias.detach().numpy()), np.float32)


def _convolution(graph: Graph, layer: Any, records: str) -> str:
    tensors = [layer.weight]
    if layer.bias is not None:
        tensors.append(layer.bias)
    constants = [graph.constant(tensor.detach().numpy(), np.float32) for tensor in tensors]
    return graph.add(
        "Conv",
        records,
        *constants,
        pads=list(layer.padding) * 2,  # before height and width, then after them
        kernel_shape=list(layer.kernel_size),
        strides=list(layer.stride),
    )


def _group_norm(graph: Graph, layer: Any, records: str) -> str:
    """Normalise groups of channels, then scale and shift each channel.

    ONNX normalises single instances, so each group becomes an instance with one long row.
    """
    n_groups = layer.num_groups
    ones = graph.constant(np.ones(n_groups), np.float32)
    zeros = graph.constant(np.zeros(n_groups), np.float32)
    shape = graph.add("Shape", records)
    groups = graph.reshape(records, 0, n_groups, -1)
    normal = graph.add("InstanceNormalization", groups, ones, zeros, epsilon=layer.eps)
    normal = graph.add("Reshape", normal, shape)

    # of shape (channels, 1, 1), for records of shape (n, channels, height, width)
    weight = graph.constant(layer.weight.detach().numpy()[:, None, None], np.float32)
    bias = graph.constant(layer.bias.detach().numpy()[:, None, None], np.float32)
    return graph.add("Add", graph.add("Mul", normal, weight), bias)
