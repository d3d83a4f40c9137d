"""`onnx:FILE`, a model for pictures, with a small file of JSON beside it that states its input.

The sidecar has the keys of `PictureInput`, and may have `input` and `output`, names of the model's
tensors:

    {"size": [160, 160], "layout": "nchw", "scale": 1, "resize": "bicubic"}
"""

from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from tacit.compute.documents import read_object
from tacit.compute.extras import check_installed
from tacit.data.arrays import combined_hash, file_hash
from tacit.data.rows import one_line
from tacit.encoding.encoders.base import Backbone, Request, flat, in_slices
from tacit.encoding.encoders.pictures import PictureInput, picture_input
from tacit.encoding.encoders.weights import loading
from tacit.errors import InputError

EXAMPLE = (
    '{"size": [224, 224], "layout": "nchw", "scale": 255, "mean": [0.485, 0.456, 0.406], "std":'
    " [0.229, 0.224, 0.225]}"
)


def load(request: Request) -> Backbone:
    """Load a model of onnxruntime on the processor."""
    check_installed("onnxruntime")
    path = Path(request.name)
    if request.weights is not None:
        path = request.weights / path if request.weights.is_dir() else request.weights
    if not path.is_file():
        raise InputError(f"{path} does not exist; give onnx:FILE, or its folder with --weights")

    sidecar = request.sidecar or path.with_suffix(".json")
    facts = read_sidecar(sidecar, f"onnx:{path}")
    input_name = facts.pop("input", None)
    output_name = facts.pop("output", None)
    return OnnxModel(path, picture_input(facts, sidecar), input_name, output_name)


class OnnxModel(Backbone):
    """A model in an ONNX file; its first input and output, unless they are named."""

    def __init__(
        self,
        path: Path,
        input: PictureInput,
        input_name: str | None = None,
        output_name: str | None = None,
    ) -> None:
        import onnxruntime

        # warnings about a model are for its author
        onnxruntime.set_default_logger_severity(3)
        self.path = path
        self.input = input
        self.session = _session(path, threads=1)
        inputs = {tensor.name: tensor for tensor in self.session.get_inputs()}
        outputs = [tensor.name for tensor in self.session.get_outputs()]
        self.input_name = tensor_called(input_name, list(inputs), "input", path)
        self.output_name = tensor_called(output_name, outputs, "output", path)

        input_tensor = inputs[self.input_name]
        batch_size = input_tensor.shape[0]
        if isinstance(batch_size, int):
            # batches of one size cannot be cut into slices, so that one run uses all cores
            self.batch = batch_size
            self.fixed_batch = True
            self.session = _session(path, threads=0)
        _check_shape(input, input_tensor.shape, input_tensor.type, path)
        self.card = {
            "name": f"onnx:{path.name}",
            "weights_sha256": _hash_of_model(path),
            "tensors": [self.input_name, self.output_name],
            "precision": "float32",
            "library": f"onnxruntime {onnxruntime.__version__}",
        }

    def forward(self, inputs: Any) -> NDArray[np.float32]:
        if self.fixed_batch:
            return self._features(inputs)
        return in_slices(self._features, inputs, cpu_count())

    def _features(self, inputs: Any) -> NDArray[np.float32]:
        (rows,) = self.session.run([self.output_name], {self.input_name: inputs})
        return flat(np.asarray(rows, np.float32))


def _hash_of_model(path: Path) -> str:
    """Return the hash of a model, or of the hashes of its files: large weights lie beside it."""
    weight_files = sorted(path.parent.glob(f"{path.name}*data"))
    if not weight_files:
        return file_hash(path)
    return combined_hash(file_hash(file) for file in (path, *weight_files))


def _session(path: Path, threads: int) -> Any:
    """Open a model that runs in so many threads; 0 stands for as many as there are cores."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads

    # idle threads leave the cores to what decodes
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with loading(f"onnx:{path.name}", path.parent):
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def read_sidecar(path: Path, model: str) -> dict[str, Any]:
    """Read the facts of a sidecar; the error for a missing or damaged one has an example."""
    if not path.is_file():
        raise InputError(
            f"{path} does not exist, and states what {model} takes; write there, for example,"
            f" {EXAMPLE}"
        )
    try:
        return read_object(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is not JSON ({one_line(error)}); write, for example, {EXAMPLE}"
        ) from error


def tensor_called(name: str | None, names: list[str], role: str, path: Path) -> str:
    """Return the name of the tensor called so, or of the first; an unknown name is refused."""
    if name is not None and name not in names:
        raise InputError(f"{path} has no {role} {name!r}; choose from: {', '.join(names)}")
    return name or names[0]


def _check_shape(input: PictureInput, shape: list[Any], kind: str, path: Path) -> None:
    """Check that a model takes what its sidecar states; a side that is not a number may have any
    length.
    """
    channels = 1 if input.channels == "grey" else 3
    if input.layout == "nchw":
        stated_sides = [channels, *input.size]
    else:
        stated_sides = [*input.size, channels]

    # a side that is not a number fits any length
    model_sides = shape[1:]
    fits = kind == "tensor(float)" and len(shape) == 4
    for side, stated_side in zip(model_sides, stated_sides, strict=False):
        if isinstance(side, int) and side != stated_side:
            fits = False
    if not fits:
        fault = f"{path} takes {kind} of shape {shape}, and its sidecar states {stated_sides}"
        raise InputError(f"{fault}; correct size or layout")
