"""Decisions by released arrays: all that a prediction needs, for learners and for releases alike.

To add a decision: a frozen dataclass here that fills in `Decision`, and its name in `AnyDecision`.
The schema of a release is derived from its fields.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.compute.libraries.torch import load_torch
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import InputError
from tacit.models.networks import NETWORKS, network, scores, weight_shapes
from tacit.models.rows import Floats, inner_products, unit_rows_about, with_lengths_about

# Rows that are predicted at once, in a thread.
BLOCK = 256

METRICS = ("cosine", "euclidean")

Arrays = Mapping[str, NDArray[Any]]

InnerProducts = Callable[[Floats, Floats], Floats]
"""Maps rows of shapes (b, d) and (C, d) to their inner products, of shape (b, C)."""


@dataclass(frozen=True)
class Decision(ABC):
    """The class of a row is the class that it is most similar to, by a similarity that each
    decision defines.
    """

    rule: str = field(kw_only=True)
    """Its name in a release."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}

    @abstractmethod
    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        """Return why these arrays cannot decide about rows of this width; None if they can."""

    @abstractmethod
    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        """Return the function from rows of shape (b, d) to similarities of shape (b, C).

        It treats each row by itself, except in `products`.
        """

    def similarities(
        self, arrays: Arrays, rows: NDArray[Any], *, products: InnerProducts = inner_products
    ) -> Floats:
        """Return the similarity of each row (n, d) to each class, of shape (n, C); larger is
        nearer.

        With `rowwise_inner_products` each row's similarities are independent of the other rows, to
        the last bit.
        """
        return self._by_blocks(self._similarity(arrays, products), rows)

    def nearest(self, arrays: Arrays, rows: Any) -> NDArray[np.int64]:
        """Return the position of the class that each row is most similar to, the first of equals,
        of shape (n,).

        Rows are read in blocks, since they may lie in files that are larger than the memory.
        """
        return self.by_blocks(arrays, rows, lambda similarities: np.argmax(similarities, axis=1))

    def by_blocks(
        self, arrays: Arrays, rows: Any, function: Callable[[Floats], NDArray[Any]]
    ) -> NDArray[Any]:
        """Return the results of a function on the similarities (b, C) of blocks of rows, joined
        along their first axis.

        Neither the rows nor their similarities are ever in memory whole. Blocks run in threads.
        """
        similarity = self._similarity(arrays, inner_products)
        return self._by_blocks(lambda block: function(similarity(block)), rows)

    def _by_blocks(self, function: Callable[[Floats], NDArray[Any]], rows: Any) -> NDArray[Any]:
        """The results of a function on blocks of rows (b, d), joined along their first axis."""

        def block_result(start: int) -> NDArray[Any]:
            return function(np.asarray(rows[start : start + BLOCK], np.float64))

        # Without rows there is one empty block, which gives the result its shape.
        starts = range(0, max(len(rows), 1), BLOCK)
        results = progress(in_threads(block_result, starts), "predicting", len(rows), len)

        joined = np.empty(0)
        for start, result in zip(starts, results, strict=True):
            if start == 0:
                joined = np.empty((len(rows), *result.shape[1:]), result.dtype)
            joined[start : start + BLOCK] = result
        return joined


@dataclass(frozen=True)
class NearestPrototype(Decision):
    """The class of a row is that of the nearest prototype.

    For "prototypes" of shape (C, k, d), nearness is the mean over the k. If there is a "centre" of
    shape (d,), it is subtracted from unit rows, which are then scaled to norm 1 again.

    Parameters
    ----------
    metric : {"cosine", "euclidean"}
        Cosine similarity, or minus the Euclidean distance. A prototype of zeros has no direction
        and is farthest by cosine.
    pooling : int, default=1
        Rows are first averaged over this many consecutive columns; a remainder is dropped.
    centred : {"rows", "rows and prototypes"}, default="rows"
        What the centre is subtracted from: prototypes that are rows themselves are treated as rows
        are.
    """

    rule: Literal["nearest prototype"] = field(default="nearest prototype", kw_only=True)
    metric: Literal["cosine", "euclidean"] = "cosine"
    pooling: int = 1
    centred: Literal["rows", "rows and prototypes"] = "rows"

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(
                f"metric={self.metric!r} must be one of {', '.join(METRICS)}; pass metric='cosine'"
            )
        if not 1 <= self.pooling < 2**31:
            raise InputError(f"pooling={self.pooling} must be 1 or more; leave it out")

    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        prototypes = arrays.get("prototypes")
        if prototypes is None or prototypes.dtype.kind != "f" or prototypes.ndim not in (2, 3):
            return "there is no floating-point array 'prototypes' of shape (C, d) or (C, k, d)"

        columns = width // self.pooling
        if len(prototypes) != n_classes or prototypes.shape[-1] != columns:
            return (
                f"prototypes of shape {prototypes.shape} do not fit {n_classes} classes and"
                f" {columns} columns"
            )

        # One index for each prototype, if there are any.
        indices = arrays.get("indices")
        if indices is not None and (
            indices.dtype.kind != "i" or indices.shape != prototypes.shape[:-1]
        ):
            return (
                f"indices of shape {indices.shape} do not fit prototypes of shape"
                f" {prototypes.shape}"
            )

        if "centre" in arrays and (self.metric != "cosine" or self.pooling != 1):
            return "a centre needs metric 'cosine' and pooling 1"
        return _not_of_shape(arrays, "centre", (width,)) or _superfluous(
            arrays, "prototypes", "indices", "centre"
        )

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        prototypes = np.asarray(arrays["prototypes"], dtype=np.float64)
        if prototypes.ndim == 2:
            prototypes = prototypes[:, None, :]
        if self.metric == "euclidean":
            return _euclidean(prototypes, self.pooling)

        centre = None
        if "centre" in arrays:
            centre = np.asarray(arrays["centre"], dtype=np.float64)
        prototype_centre = None
        if self.centred == "rows and prototypes":
            prototype_centre = centre
        return _cosine(prototypes, centre, prototype_centre, self.pooling, products)


@dataclass(frozen=True)
class LinearHead(Decision):
    """The class of a row is that of the largest linear score of the unit row.

    Scores are unit rows times "coefficients" of shape (C, d) plus "intercepts" of shape (C,). A
    "centre" is treated as in `NearestPrototype`.
    """

    rule: Literal["linear"] = field(default="linear", kw_only=True)

    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        for name in ("coefficients", "intercepts"):
            if name not in arrays:
                return f"there is no array {name!r}"
        return (
            _not_of_shape(arrays, "coefficients", (n_classes, width))
            or _not_of_shape(arrays, "intercepts", (n_classes,))
            or _not_of_shape(arrays, "centre", (width,))
            or _superfluous(arrays, "coefficients", "intercepts", "centre")
        )

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        return _linear(arrays, products)


@dataclass(frozen=True)
class QuadraticHead(Decision):
    """The class of a row is that of the largest quadratic score of the unit row.

    To the scores of `LinearHead` is added the square of the unit row along each of "axes" of shape
    (d, p), times "squares" of shape (C, p).
    """

    rule: Literal["quadratic"] = field(default="quadratic", kw_only=True)

    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        axes = arrays.get("axes")
        squares = arrays.get("squares")
        if axes is None or squares is None or axes.ndim != 2:
            return "there are no arrays 'axes' of shape (d, p) and 'squares' of shape (C, p)"
        linear = {name: array for name, array in arrays.items() if name not in ("axes", "squares")}
        return (
            LinearHead().fits(linear, n_classes, width)
            or _not_of_shape(arrays, "axes", (width, axes.shape[1]))
            or _not_of_shape(arrays, "squares", (n_classes, axes.shape[1]))
        )

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        return _linear(arrays, products)


@dataclass(frozen=True)
class NetworkHead(Decision):
    """The class of a row is that of the largest score of a network; for networks of convolutions
    that needs torch.

    Parameters
    ----------
    network : str
        A name in `NETWORKS`; the arrays are its weights.
    shape : tuple of int
        Of a record, which a row is reshaped to.
    scale : float, default=1.0
        Rows are divided by it: 255 for pictures of bytes.
    """

    rule: Literal["network"] = field(default="network", kw_only=True)
    network: str
    shape: tuple[int, ...]
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise InputError(
                f"network={self.network!r} is unknown; choose one of {', '.join(NETWORKS)}"
            )
        if min(self.shape, default=0) < 1 or not 1 <= self.scale <= 255:
            raise InputError(
                f"shape={self.shape} must have sides of 1 or more, and scale={self.scale} be 1"
                " to 255"
            )

    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        if math.prod(self.shape) != width:
            return f"shape {self.shape} does not fit {width} columns"

        required_shapes = weight_shapes(self.network, tuple(self.shape), n_classes)
        shapes = {name: array.shape for name, array in arrays.items()}
        is_float32 = all(array.dtype == np.float32 for array in arrays.values())
        if shapes != required_shapes or not is_float32:
            return (
                f"arrays are not the float32 weights of network {self.network!r} for {n_classes}"
                " classes"
            )
        return None

    def module(self, arrays: Arrays, n_classes: int) -> Any:
        """The network with these weights, a torch module."""
        torch = load_torch()
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        module = network(self.network)(tuple(self.shape), n_classes)
        module.load_state_dict(tensors)
        return module

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        # Names of arrays begin with the place of their layer; the last layer has the classes.
        last_layer = max(int(name.split(".")[0]) for name in arrays)
        if self.network in ("linear", "mlp"):
            return self._layers_similarity(arrays, last_layer, products)

        module = self.module(arrays, len(arrays[f"{last_layer}.bias"]))

        def similarity(rows: Floats) -> Floats:
            records = (rows / self.scale).reshape(-1, *self.shape)
            return np.asarray(scores(module, records), dtype=np.float64)

        return similarity

    def _layers_similarity(
        self, arrays: Arrays, last_layer: int, products: InnerProducts
    ) -> Callable[[Floats], Floats]:
        """The similarity by linear layers, in float64, with float32 between layers, as the exported
        graph has it.
        """
        # Every other layer has weights: the others flatten rows, or are rectifiers.
        layers = []
        for place in range(1, last_layer + 1, 2):
            weight = np.asarray(arrays[f"{place}.weight"], np.float64)
            bias = np.asarray(arrays[f"{place}.bias"], np.float64)
            layers.append((weight, bias))

        def similarity(rows: Floats) -> Floats:
            values = (rows / self.scale).astype(np.float32)
            for number, (weight, bias) in enumerate(layers):
                if number > 0:
                    values = np.maximum(values, 0)
                values = (products(values.astype(np.float64), weight) + bias).astype(np.float32)
            return values.astype(np.float64)

        return similarity


AnyDecision = NearestPrototype | LinearHead | QuadraticHead | NetworkHead


def pooled(rows: Floats, pooling: int) -> Floats:
    """Rows of shape (n, d) averaged over `pooling` consecutive columns, of shape (n, d //
    pooling).
    """
    if pooling == 1:
        return rows

    width = rows.shape[1] // pooling
    groups = rows[:, : width * pooling].reshape(len(rows), width, pooling)
    return np.asarray(groups.mean(axis=2))


def mean_directions(prototypes: Floats, centre: Floats | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Means (C, d) of the unit prototypes (C, k, d) of each class about a centre; and which classes
    have none, (C,).
    """
    k = prototypes.shape[1]
    directions = np.stack([unit_rows_about(prototypes[:, j], centre) for j in range(k)], axis=1)
    is_empty = ~directions.any(axis=(1, 2))
    return directions.mean(axis=1), np.asarray(is_empty)


def _not_of_shape(arrays: Arrays, name: str, shape: tuple[int, ...]) -> str | None:
    """Return the fault of an array that has another shape or no floats; None if it is absent."""
    array = arrays.get(name)
    if array is None:
        return None
    if array.dtype.kind == "f" and array.shape == shape:
        return None
    return (
        f"{name} of type {array.dtype} and shape {array.shape} must be floating point of shape"
        f" {shape}"
    )


def _superfluous(arrays: Arrays, *names: str) -> str | None:
    """Return the fault that there are arrays of other names; None if there are none."""
    superfluous = sorted(set(arrays) - set(names))
    if superfluous:
        return f"arrays {', '.join(superfluous)} have no part in the decision"
    return None


def _cosine(
    prototypes: Floats,
    centre: Floats | None,
    prototype_centre: Floats | None,
    pooling: int,
    products: InnerProducts,
) -> Callable[[Floats], Floats]:
    """Mean cosine of a row and the prototypes of each class; minus infinity for zeros."""
    mean, is_empty = mean_directions(prototypes, prototype_centre)

    def similarity(rows: Floats) -> Floats:
        rows, lengths = with_lengths_about(pooled(rows, pooling), centre)
        result = products(rows, mean) / lengths
        result[:, is_empty] = -np.inf
        return result

    return similarity


def _linear(arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
    """Linear score of the unit row, and its quadratic score where there are "squares"."""
    floats = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
    coefficients = floats["coefficients"]
    intercepts = floats["intercepts"]
    centre = floats.get("centre")

    def similarity(rows: Floats) -> Floats:
        rows, lengths = with_lengths_about(rows, centre)
        result = products(rows, coefficients) / lengths
        if "squares" in floats:
            along = products(rows, floats["axes"].T) / lengths
            result += products(along**2, floats["squares"])
        return result + intercepts

    return similarity


def _euclidean(prototypes: Floats, pooling: int) -> Callable[[Floats], Floats]:
    """Minus the mean distance of a row and the prototypes of each class."""
    from scipy.spatial.distance import cdist

    k = prototypes.shape[1]

    def similarity(rows: Floats) -> Floats:
        pooled_rows = pooled(rows, pooling)
        distances = [cdist(pooled_rows, prototypes[:, j]) for j in range(k)]
        return np.asarray(-np.mean(distances, axis=0))

    return similarity
