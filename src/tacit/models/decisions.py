"""How released arrays decide: all that a prediction needs, for learners and for releases alike.

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

BLOCK = 256  # rows that are predicted at once, in a thread
METRICS = ("cosine", "euclidean")

Arrays = Mapping[str, NDArray[Any]]

InnerProducts = Callable[[Floats, Floats], Floats]
"""From rows of shapes (b, d) and (C, d) to their inner products, of shape (b, C)."""


@dataclass(frozen=True)
class Decision(ABC):
    """The class of a row is the one that it is most similar to; each decision says what similar
    means.
    """

    rule: str = field(kw_only=True)
    """Its name in a release."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}

    @abstractmethod
    def fits(self, arrays: Arrays, n_classes: int, width: int) -> str | None:
        """What keeps these arrays from deciding about rows of this width; None if nothing does."""

    @abstractmethod
    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        """The function from rows of shape (b, d) to similarities of shape (b, C): row by row, but
        for `products`.
        """

    def similarities(
        self, arrays: Arrays, rows: NDArray[Any], *, products: InnerProducts = inner_products
    ) -> Floats:
        """How near each row (n, d) is to each class, by the released arrays, of shape (n, C);
        larger is nearer.

        With `rowwise_inner_products` each row's similarities are independent of the other rows, to
        the last bit.
        """
        return self._by_blocks(self._similarity(arrays, products), rows)

    def nearest(self, arrays: Arrays, rows: Any) -> NDArray[np.int64]:
        """Position of the class that each row is most similar to, the first of equals, of shape
        (n,).

        Rows are read in blocks, since they may lie in files that are larger than the memory.
        """
        similarity = self._similarity(arrays, inner_products)
        return self._by_blocks(lambda block: np.argmax(similarity(block), axis=1), rows)

    def _by_blocks(self, function: Callable[[Floats], NDArray[Any]], rows: Any) -> NDArray[Any]:
        """The results of a function on blocks of rows (b, d), joined along their first axis."""
        starts = range(0, max(len(rows), 1), BLOCK)
        blocks = in_threads(
            lambda start: function(np.asarray(rows[start : start + BLOCK], np.float64)), starts
        )
        result = np.empty(0)
        for start, block in zip(
            starts, progress(blocks, "predicting", len(rows), len), strict=True
        ):
            result = result if start else np.empty((len(rows), *block.shape[1:]), block.dtype)
            result[start : start + BLOCK] = block
        return result


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
        columns = width // self.pooling
        if prototypes is None or prototypes.dtype.kind != "f" or prototypes.ndim not in (2, 3):
            return "there is no floating-point array 'prototypes' of shape (C, d) or (C, k, d)"
        if (len(prototypes), prototypes.shape[-1]) != (n_classes, columns):
            return (
                f"prototypes of shape {prototypes.shape} do not fit {n_classes} classes and"
                f" {columns} columns"
            )
        indices = arrays.get("indices")
        if indices is not None and (indices.dtype.kind, indices.shape) != (
            "i",
            prototypes.shape[:-1],
        ):
            return (
                f"indices of shape {indices.shape} do not fit prototypes of shape"
                f" {prototypes.shape}"
            )
        if "centre" in arrays and (self.metric, self.pooling) != ("cosine", 1):
            return "a centre needs metric 'cosine' and pooling 1"
        return _not_of_shape(arrays, "centre", (width,)) or _unknown(
            arrays, "prototypes", "indices", "centre"
        )

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        prototypes = np.asarray(arrays["prototypes"], dtype=np.float64)
        if prototypes.ndim == 2:
            prototypes = prototypes[:, None, :]
        if self.metric == "cosine":
            centre = np.asarray(arrays["centre"], dtype=np.float64) if "centre" in arrays else None
            return _cosine(
                prototypes,
                centre,
                None if self.centred == "rows" else centre,
                self.pooling,
                products,
            )
        return _euclidean(prototypes, self.pooling)


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
            or _unknown(arrays, "coefficients", "intercepts", "centre")
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
        axes, squares = arrays.get("axes"), arrays.get("squares")
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
        weights = weight_shapes(self.network, tuple(self.shape), n_classes)
        shapes = {name: array.shape for name, array in arrays.items()}
        if weights != shapes or any(array.dtype != np.float32 for array in arrays.values()):
            return (
                f"arrays are not the float32 weights of network {self.network!r} for {n_classes}"
                " classes"
            )
        return None

    def module(self, arrays: Arrays, n_classes: int) -> Any:
        """The network with these weights, a torch module."""
        torch = load_torch()
        module = network(self.network)(tuple(self.shape), n_classes)
        module.load_state_dict(
            {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        )
        return module

    def _similarity(self, arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
        last = max(int(name.split(".")[0]) for name in arrays)
        if self.network in ("linear", "mlp"):
            return self._of_layers(arrays, last, products)
        module = self.module(arrays, len(arrays[f"{last}.bias"]))

        def similarity(rows: Floats) -> Floats:
            return np.asarray(
                scores(module, (rows / self.scale).reshape(-1, *self.shape)), dtype=np.float64
            )

        return similarity

    def _of_layers(
        self, arrays: Arrays, last: int, products: InnerProducts
    ) -> Callable[[Floats], Floats]:
        """In float64, with float32 between layers, as the exported graph has it."""
        layers = [
            tuple(np.asarray(arrays[f"{place}.{name}"], np.float64) for name in ("weight", "bias"))
            for place in range(1, last + 1, 2)
        ]

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
    width = rows.shape[1] // pooling
    return (
        rows
        if pooling == 1
        else rows[:, : width * pooling].reshape(len(rows), width, pooling).mean(axis=2)
    )


def mean_directions(prototypes: Floats, centre: Floats | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Means (C, d) of the unit prototypes (C, k, d) of each class about a centre; and which classes
    have none, (C,).
    """
    each = (unit_rows_about(prototypes[:, j], centre) for j in range(prototypes.shape[1]))
    directions = np.stack(list(each), axis=1)
    return directions.mean(axis=1), np.asarray(~directions.any(axis=(1, 2)))


def _not_of_shape(arrays: Arrays, name: str, shape: tuple[int, ...]) -> str | None:
    array = arrays.get(name)
    if array is None or (array.dtype.kind, array.shape) == ("f", shape):
        return None
    return (
        f"{name} of type {array.dtype} and shape {array.shape} must be floating point of shape"
        f" {shape}"
    )


def _unknown(arrays: Arrays, *known: str) -> str | None:
    unknown = sorted(set(arrays) - set(known))
    return f"arrays {', '.join(unknown)} have no part in the decision" if unknown else None


def _cosine(
    prototypes: Floats,
    centre: Floats | None,
    of_prototypes: Floats | None,
    pooling: int,
    products: InnerProducts,
) -> Callable[[Floats], Floats]:
    mean, empty = mean_directions(prototypes, of_prototypes)

    def similarity(rows: Floats) -> Floats:
        rows, lengths = with_lengths_about(pooled(rows, pooling), centre)
        result = products(rows, mean) / lengths
        result[:, empty] = -np.inf
        return result

    return similarity


def _linear(arrays: Arrays, products: InnerProducts) -> Callable[[Floats], Floats]:
    floats = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
    coefficients, intercepts, centre = (
        floats["coefficients"],
        floats["intercepts"],
        floats.get("centre"),
    )

    def similarity(rows: Floats) -> Floats:
        rows, lengths = with_lengths_about(rows, centre)
        result = products(rows, coefficients) / lengths
        if "squares" in floats:
            along = products(rows, floats["axes"].T) / lengths
            result += products(along**2, floats["squares"])
        return result + intercepts

    return similarity


def _euclidean(prototypes: Floats, pooling: int) -> Callable[[Floats], Floats]:
    from scipy.spatial.distance import cdist

    def similarity(rows: Floats) -> Floats:
        distances = [
            cdist(pooled(rows, pooling), prototypes[:, j]) for j in range(prototypes.shape[1])
        ]
        return np.asarray(-np.mean(distances, axis=0))

    return similarity
