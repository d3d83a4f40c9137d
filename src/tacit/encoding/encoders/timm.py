"""`timm:NAME`, such as timm:vit_base_patch16_224.augreg_in21k: features before the classifier."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import folder_of, loading, weight_files
from tacit.errors import InputError

HUB = "timm"
CONFIG = "config.json"


def load(request: Request) -> Backbone:
    """A model of timm from a folder as the hub has it (config.json and weights), or of weights alone."""
    ready("timm")
    import timm

    name = request.name.removeprefix(f"{HUB}/")
    if not timm.is_model(name):
        near = get_close_matches(name, timm.list_models(pretrained=True), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "timm.list_models() lists them"
        raise InputError(f"timm knows no model {name!r}; {hint}")
    own = timm.get_pretrained_cfg(name)
    folder = folder_of(_repository(name, None if own is None else own.hf_hub_id), request.weights)
    with loading(f"timm:{name}", folder):
        if (folder / CONFIG).is_file():
            module = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0)
        else:
            overlay = {"file": str(weight_files(folder)[0])}
            module = timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay)
    architecture = module.pretrained_cfg.get("architecture", name)
    if architecture != name.partition(".")[0]:
        raise InputError(f"{folder} holds {architecture}, not {name}; name the model that it holds")
    wanted = picture_input(_input(timm.data.resolve_model_data_config(module)), f"timm:{name}")
    return OnTorch(module, module, request, f"timm:{name}", wanted)


def _repository(name: str, hub_id: str | None) -> str:
    """timm/ in a model's facts stands for timm/ and its name."""
    if not hub_id:
        return f"{HUB}/{name}"
    return hub_id + name if hub_id.endswith("/") else hub_id


def _input(facts: dict[str, Any]) -> dict[str, Any]:
    """timm's evaluation transform in our words."""
    _, height, width = facts["input_size"]
    resize = {"size": (height, width), "resize": facts["interpolation"], "mean": facts["mean"], "std": facts["std"]}
    larger = tuple(math.floor(side / facts["crop_pct"]) for side in (height, width))
    if facts["crop_mode"] == "squash":
        return resize | {"resize_to": larger}
    if facts["crop_mode"] != "center" or height != width:
        raise InputError(f"timm's crop_mode {facts['crop_mode']!r} is not known here; use onnx: with a sidecar instead")
    return resize | {"resize_to": larger[0]}
