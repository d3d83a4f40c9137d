"""torch, of the extras `torch`, `dpsgd` and `encoders`."""

from typing import TYPE_CHECKING, Any

from tacit.compute.extras import check_installed

if TYPE_CHECKING:
    from torch import Tensor as Tensor
    from torch import nn as nn


def load_torch(extra: str = "torch") -> Any:
    """Return torch, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("torch", extra)
    import torch

    return torch
