"""`timm:NAME`, such as timm:vit_base_patch16_224.augreg_in21k: features before the classifier."""

import math
from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import folder_of, loading, suggestion, weight_files
from tacit.errors import InputError


def load(request: Request) -> Backbone:
    """Load a model of timm from a folder as the hub has it (config.json and weights), or of weights
    alone.
    """
    ready("timm")
    import timm

    name = request.name.removeprefix("timm/")
    if not timm.is_model(name):
        hint = suggestion(name, timm.list_models(pretrained=True), "timm.list_models()")
        raise InputError(f"timm knows no model {name!r}; {hint}")

    # timm's table states a repository, or a namespace in which it has the model's name
    pretrained = timm.get_pretrained_cfg(name)
    repository = (pretrained and pretrained.hf_hub_id) or "timm/"
    if repository.endswith("/"):
        repository += name
    folder = folder_of(repository, request.weights)
    with loading(f"timm:{name}", folder):
        if (folder / "config.json").is_file():
            module = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0)
        else:
            overlay = {"file": str(weight_files(folder)[0])}
            module = timm.create_model(
                name, pretrained=True, num_classes=0, pretrained_cfg_overlay=overlay
            )

    # a name is ARCHITECTURE.TAG
    architecture = module.pretrained_cfg.get("architecture", name)
    if architecture != name.partition(".")[0]:
        raise InputError(f"{folder} holds {architecture}, not {name}; name the model that it holds")
    facts = input_facts(timm.data.resolve_model_data_config(module))
    return OnTorch(module, module, request, f"timm:{name}", picture_input(facts, f"timm:{name}"))


def input_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `PictureInput` for timm's evaluation transform."""
    _, height, width = facts["input_size"]
    fields = {
        "size": (height, width),
        "resize": facts["interpolation"],
        "mean": facts["mean"],
        "std": facts["std"],
    }

    # pictures are resized to more than is cut out
    resize_to = tuple(math.floor(side / facts["crop_pct"]) for side in (height, width))
    if facts["crop_mode"] == "squash":
        return fields | {"resize_to": resize_to}
    if facts["crop_mode"] != "center" or height != width:
        raise InputError(
            f"timm's crop_mode {facts['crop_mode']!r} is not supported; use onnx: with a sidecar"
            " instead"
        )
    return fields | {"resize_to": resize_to[0]}
