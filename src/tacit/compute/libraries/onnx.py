"""onnx, of the extra of this name."""

from typing import TYPE_CHECKING, Any

from tacit.compute.extras import check_installed

if TYPE_CHECKING:
    from onnx import ModelProto as ModelProto


def load_onnx() -> Any:
    """Return onnx, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("onnx")
    import onnx
    import onnx.checker
    import onnx.compose
    import onnx.helper
    import onnx.numpy_helper
    import onnx.shape_inference

    return onnx
