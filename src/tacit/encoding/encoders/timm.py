"""`timm:NAME`, such as timm:vit_base_patch16_224.augreg_in21k: features before the classifier."""

import math
from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import folder_of, loading, suggestion, weight_files
from tacit.errors import InputError


def load(request: Request) -> Backbone:
    """A model of timm from a folder as the hub has it (config.json and weights), or of weights
    alone.
    """
    ready("timm")
    import timm

    name = request.name.removeprefix("timm/")
    if not timm.is_model(name):
        hint = suggestion(name, timm.list_models(pretrained=True), "timm.list_models()")
        raise InputError(f"timm knows no model {name!r}; {hint}")
    listed = timm.get_pretrained_cfg(name)
    repository = (listed and listed.hf_hub_id) or "timm/"
    folder = folder_of(
        repository + name if repository.endswith("/") else repository, request.weights
    )
    with loading(f"timm:{name}", folder):
        if (folder / "config.json").is_file():
            module = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0)
        else:
            overlay = {"file": str(weight_files(folder)[0])}
            module = timm.create_model(
                name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay
            )
    architecture = module.pretrained_cfg.get("architecture", name)
    if architecture != name.partition(".")[0]:
        raise InputError(f"{folder} holds {architecture}, not {name}; name the model that it holds")
    wanted = picture_input(input_facts(timm.data.resolve_model_data_config(module)), f"timm:{name}")
    return OnTorch(module, module, request, f"timm:{name}", wanted)


def input_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The fields of `PictureInput` for timm's evaluation transform."""
    _, height, width = facts["input_size"]
    fields = {
        "size": (height, width),
        "resize": facts["interpolation"],
        "mean": facts["mean"],
        "std": facts["std"],
    }
    larger = tuple(math.floor(side / facts["crop_pct"]) for side in (height, width))
    if facts["crop_mode"] == "squash":
        return fields | {"resize_to": larger}
    if facts["crop_mode"] != "center" or height != width:
        raise InputError(
            f"timm's crop_mode {facts['crop_mode']!r} is not supported; use onnx: with a sidecar"
            " instead"
        )
    return fields | {"resize_to": larger[0]}
