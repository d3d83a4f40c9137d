"""torchvision, of the extra `encoders`, and a workaround for one that does not fit torch."""

from typing import Any

from tacit.compute.extras import check_installed
from tacit.compute.libraries.torch import load_torch

# Keeps the libraries of operators alive: torch forgets the operators of one that is freed.
_operators: list[Any] = []


def load_torchvision() -> Any:
    """Return torchvision, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    load_torch("encoders")
    check_installed("torchvision")
    declare_operators()
    import torchvision

    return torchvision


def declare_operators() -> None:
    """Let the import of torchvision pass, by this process or a library, if torchvision lacks
    compiled operators.

    A torchvision from PyPI beside a torch for processors alone lacks them, and then fails at
    import. No encoder runs them, so they are declared without code.
    """
    torch = load_torch("encoders")
    try:
        import torchvision  # noqa: F401
    except ImportError:
        return
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _operators.append(library)
