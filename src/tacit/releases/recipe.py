"""Prediction from the files of a release with numpy and safetensors alone, as lines of Python
for its card.

The lines follow from what the document states of the decision and of the shapes of arrays. They
compute what `tacit.models.decisions` computes, but for rounding and for rows whose squares leave
the range of floating point. Ten lines suffice for all decisions but networks of convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.models.decisions import (
    Decision,
    LinearHead,
    NearestPrototype,
    NetworkHead,
    QuadraticHead,
)
from tacit.models.label_sets import THRESHOLDS
from tacit.models.probabilities import ARRAY
from tacit.models.scaling import MEAN, SCALE
from tacit.releases.measured import PredictionSets
from tacit.releases.schema import Contents, has_several_labels, sets_of

# Shapes of the arrays of a release, by name.
Shapes = dict[str, tuple[int, ...]]

# The lines that every recipe has, at its beginning and at its end.
HEAD = (
    "import json",
    "import numpy as np",
    "from safetensors.numpy import load_file",
    'X, arrays = np.asarray(X, float), load_file("arrays.safetensors")',
)
LABELS = (
    'labels = np.array(json.load(open("release.json",'
    ' encoding="utf-8"))["contents"]["classes"])[scores.argmax(1)]'
)

# Of several labels a row: a label is there where its probability reaches its threshold.
LABEL_SETS = (
    f'labels = 1 / (1 + np.exp(-arrays["{ARRAY}"][0] * scores)) >= arrays["{THRESHOLDS}"]',
    'classes = json.load(open("release.json", encoding="utf-8"))["contents"]["classes"]',
)

# Prediction sets: probabilities, scores of classes, and the most likely class always.
PROBABILITIES = (
    f'scale, even = arrays["{ARRAY}"]',
    "p = np.exp(scale * (scores - scores.max(1, keepdims=True)))",
    "p = (1 - even) * p / p.sum(1, keepdims=True) + even / p.shape[1]",
)
SCORES_OF_CLASSES = {
    "probability": "1 - p",
    "cumulative": "np.array([[row[row > one].sum() for one in row] for row in p])",
}

# Of rows that were scaled by public statistics.
SCALED = f'X = (X - arrays["{MEAN}"]) / arrays["{SCALE}"]'

# Rows of length 1, and directions of rows about the centre. Rows of zeros have no direction: they
# are divided by 1e-150, below which squares of entries underflow, and are not centred, so that they
# stay zeros.
UNIT = "unit = lambda rows: rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-150)"
ABOUT = (
    "about = lambda rows: unit(np.where(rows.any(-1, keepdims=True), unit(rows) -"
    ' arrays["centre"], 0))'
)

# Layers of networks, on pictures of shape (n, height, width, channels): these lines have channels
# last, where torch has them before height and width.
WINDOWS = "from numpy.lib.stride_tricks import sliding_window_view as windows"

# Weights are of shape (outputs, inputs, height, width). Windows of their size are of shape (n,
# height, width, channels, and height and width of the window): the sum runs over the last three.
CONVOLUTION = (
    "def convolution(x, name, pad=1):  # records last in channels",
    '    w = arrays[name + ".weight"]',
    "    x = windows(np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)]), w.shape[2:], (1, 2))",
    '    return np.tensordot(x, w, ([3, 4, 5], [1, 2, 3])) + arrays.get(name + ".bias", 0)',
)

# The largest of every two by two pixels: windows begin at every second one.
POOL = "pool = lambda x: windows(x, (2, 2), (1, 2))[:, ::2, ::2].max((4, 5))"
RELU = "relu = lambda x: np.maximum(x, 0)"

# torch's GroupNorm with 8 groups of channels (`models.networks.GROUPS`) and its default epsilon:
# pixels (axis 1) and channels of a group (axis 3) are normalised together.
NORM = (
    "def norm(x, name):  # of groups of channels",
    "    groups = x.reshape(len(x), -1, 8, x.shape[3] // 8)",
    (
        "    groups = (groups - groups.mean((1, 3), keepdims=True)) / np.sqrt(groups.var((1, 3),"
        " keepdims=True) + 1e-5)"
    ),
    '    return groups.reshape(x.shape) * arrays[name + ".weight"] + arrays[name + ".bias"]',
)


def recipe(contents: Contents) -> list[str]:
    """Lines that find the `labels` of rows `X`, an array of shape (n, d), run in the folder of the
    release.

    Of several labels a row, `labels` are truth values of shape (n, K), in the order of `classes`.
    """
    shapes = {array.name: array.shape for array in contents.arrays}
    lines_of_scores = _SCORES[type(contents.decision)]
    lines = lines_of_scores(contents.decision, contents.width, shapes)
    if has_several_labels(contents):
        lines = [*lines, *LABEL_SETS]
    else:
        lines = [*lines, LABELS]
    sets = sets_of(contents)
    if sets is not None:
        lines = [*lines, *_sets(sets)]
    if MEAN in shapes:
        # right after the line that reads X, which ends HEAD
        lines.insert(lines.index(HEAD[-1]) + 1, SCALED)
    return lines


def _sets(sets: PredictionSets) -> list[str]:
    """Lines that find the `sets` of rows, (n, C), from their scores."""
    if not isinstance(sets.threshold, float):
        return ["sets = np.ones(scores.shape, bool)"]
    return [
        *PROBABILITIES,
        f"sets = {SCORES_OF_CLASSES[sets.score]} <= {sets.threshold!r}",
        "sets[np.arange(len(sets)), scores.argmax(1)] = True",
    ]


def _nearest(decision: NearestPrototype, width: int, shapes: Shapes) -> list[str]:
    lines = [*HEAD]
    pooling = decision.pooling
    if pooling > 1:
        # means over consecutive columns, without a remainder
        columns = width // pooling
        lines.append(
            f"X = X[:, :{columns * pooling}].reshape(len(X), {columns}, {pooling}).mean(axis=2)"
        )

    # prototypes are of shape (C, d), or (C, k, d) with k for each class, whose scores are averaged
    several = len(shapes.get("prototypes", ())) == 3
    if decision.metric == "euclidean":
        return [*lines, *_distances(several)]
    return [*lines, *_unit(shapes), *_cosines(decision, shapes, several)]


def _distances(several: bool) -> list[str]:
    """Scores by the distance to a prototype, or by the mean distance to those of a class."""
    distances = "[np.linalg.norm(X - one, axis=1) for one in prototypes]"
    mean = ""
    if several:
        distances = (
            "[[np.linalg.norm(X - one, axis=1) for one in of_class] for of_class in prototypes]"
        )
        mean = ".mean(axis=1)"
    return [
        'prototypes = arrays["prototypes"].astype(float)',
        f"scores = -np.array({distances}){mean}.T",
    ]


def _cosines(decision: NearestPrototype, shapes: Shapes, several: bool) -> list[str]:
    """Scores by the cosine with a prototype, or by the mean cosine with those of a class."""
    normalise_rows = _normalised(shapes)
    normalise_prototypes = normalise_rows
    if decision.centred == "rows":
        # rows alone are centred
        normalise_prototypes = "unit"

    # the mean cosine is the product with the mean direction
    directions = "directions"
    axes = "1"
    if several:
        directions = "directions.mean(axis=1)"
        axes = "(1, 2)"

    # a class whose prototypes are all zeros has no direction, and is the farthest
    return [
        f'directions = {normalise_prototypes}(arrays["prototypes"].astype(float))',
        f"scores = {normalise_rows}(X) @ {directions}.T",
        f"scores[:, ~directions.any({axes})] = -np.inf",
    ]


def _linear(decision: LinearHead, width: int, shapes: Shapes) -> list[str]:
    scores = f'scores = {_normalised(shapes)}(X) @ arrays["coefficients"].T + arrays["intercepts"]'
    return [*HEAD, *_unit(shapes), scores]


def _quadratic(decision: QuadraticHead, width: int, shapes: Shapes) -> list[str]:
    squares = '(rows @ arrays["axes"]) ** 2 @ arrays["squares"].T'
    return [
        *HEAD,
        *_unit(shapes),
        f"rows = {_normalised(shapes)}(X)",
        f'scores = {squares} + rows @ arrays["coefficients"].T + arrays["intercepts"]',
    ]


def _unit(shapes: Shapes) -> list[str]:
    """The definitions of the functions that normalise rows."""
    if "centre" in shapes:
        return [UNIT, ABOUT]
    return [UNIT]


def _normalised(shapes: Shapes) -> str:
    """The name of the function that normalises rows."""
    if "centre" in shapes:
        return "about"
    return "unit"


def _network(decision: NetworkHead, width: int, shapes: Shapes) -> list[str]:
    """Lines of a network of `models.networks`, in float32 as torch computes it.

    Numbers in the names of arrays are the places of the layers in the network's `Sequential`, where
    layers without weights, such as ReLU, count too.
    """
    inputs = "X"
    if decision.scale != 1:
        inputs = f"X / {decision.scale}"
    if decision.network == "linear":
        return [*HEAD, f"x = np.float32({inputs})", _last("x", 1)]
    if decision.network == "mlp":
        hidden = 'x = np.maximum(x @ arrays["1.weight"].T + arrays["1.bias"], 0)'
        return [*HEAD, f"x = np.float32({inputs})", hidden, _last("x", 3)]

    # channels go last for the layers, and back to torch's order where pictures become flat rows
    picture = f"x = np.float32({inputs}).reshape{(-1, *decision.shape)}.transpose(0, 2, 3, 1)"
    flat = "x.transpose(0, 3, 1, 2).reshape(len(x), -1)"

    # imports stand together, before the line that reads X
    lines = [*HEAD[:-1], WINDOWS, HEAD[-1], *CONVOLUTION]
    if decision.network == "cnn":
        return [*lines, POOL, RELU, picture, *_cnn(flat)]
    if decision.network == "vgg":
        return [*lines, *NORM, RELU, POOL, picture, *_vgg(flat)]
    return [*lines, *NORM, RELU, picture, *_resnet(flat)]


def _cnn(flat: str) -> list[str]:
    return [
        'x = relu(pool(convolution(relu(pool(convolution(x, "0"))), "3")))',
        f'x = relu({flat} @ arrays["7.weight"].T + arrays["7.bias"])',
        _last("x", 9),
    ]


def _vgg(flat: str) -> list[str]:
    # three stages of seven layers: a convolution, its norm and a ReLU, twice, with a pooling before
    # the second ReLU
    return [
        "for i in (0, 7, 14):",
        '    x = relu(norm(convolution(x, f"{i}"), f"{i + 1}"))',
        '    x = relu(pool(norm(convolution(x, f"{i + 3}"), f"{i + 4}")))',
        _last(flat, 22),
    ]


def _resnet(flat: str) -> list[str]:
    # A convolution of stride 2 is every second pixel of the convolution of stride 1. The shortcut
    # of a block that keeps its sides is the identity; otherwise it is a convolution of one pixel,
    # which needs no padding.
    return [
        'x = relu(norm(convolution(x, "0"), "1"))',
        'for block, step in (("3", 1), ("4", 2), ("5", 2)):',
        (
            '    main = relu(norm(convolution(x, block + ".main.0")[:, ::step, ::step], block +'
            ' ".main.1"))'
        ),
        '    main = norm(convolution(main, block + ".main.3"), block + ".main.4")',
        (
            "    x = relu(main + (x if step == 1 else convolution(x[:, ::2, ::2], block +"
            ' ".shortcut", 0)))'
        ),
        _last(flat, 7),
    ]


def _last(rows: str, layer: int) -> str:
    """The scores by the last layer."""
    return f'scores = {rows} @ arrays["{layer}.weight"].T + arrays["{layer}.bias"]'


# The lines of each decision up to its scores, from the decision, the width of rows, and shapes.
_SCORES: dict[type[Decision], Callable[[Any, int, Shapes], list[str]]] = {
    NearestPrototype: _nearest,
    LinearHead: _linear,
    QuadraticHead: _quadratic,
    NetworkHead: _network,
}
