"""`torchvision:MODEL/WEIGHTS`, such as torchvision:vit_h_14/IMAGENET1K_SWAG_E2E_V1: features before
the classifier.
"""

from pathlib import Path
from typing import Any

from tacit.compute.libraries.torch import load_torch
from tacit.compute.libraries.torchvision import load_torchvision
from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import loading, state_of, suggestion, weight_files
from tacit.errors import InputError

# models whose structure in torchvision depends on whether weights are loaded; timm has them too
UNSUPPORTED = ("densenet", "googlenet", "inception", "squeezenet")


def load(request: Request) -> Backbone:
    """Load a classifier of torchvision; without WEIGHTS, those that torchvision takes by
    default.
    """
    model, _, tag = request.name.partition("/")
    weights = pretrained_weights(model, tag or "DEFAULT")
    name = f"torchvision:{model}/{weights.name}"
    file = _file(name, weights.url, request.weights)
    module = classifier(model, weights)
    with loading(name, file):
        module.load_state_dict(state_of(file))
    cut_classifier(module, name, len(weights.meta["categories"]))
    input = picture_input(input_facts(weights.transforms()), name)
    return OnTorch(module, module, request, name, input)


def pretrained_weights(model: str, tag: str) -> Any:
    """Return the entry of torchvision's table of weights."""
    models = load_torchvision().models
    supported_models = [
        name for name in models.list_models(module=models) if not name.startswith(UNSUPPORTED)
    ]
    if model not in supported_models:
        hint = suggestion(model, supported_models, "torchvision.models.list_models()")
        raise InputError(f"torchvision:{model} is not a classifier that tacit knows; {hint}")

    # weights without categories are not those of a classifier
    entries = models.get_model_weights(model)
    tags = [entry.name for entry in entries if entry.meta.get("categories")]
    if tag not in (*tags, "DEFAULT"):
        raise InputError(
            f"torchvision has no weights {tag!r} of {model}; choose from: {', '.join(tags)}"
        )
    return entries[tag]


def _file(name: str, url: str, folder: Path | None) -> Path:
    """Return the file of weights in a folder, or in the cache of torch's hub."""
    torch = load_torch("encoders")
    file_name = Path(url).name
    if folder is None:
        path = Path(torch.hub.get_dir(), "checkpoints", file_name)
        if not path.is_file():
            raise InputError(
                f"no weights of {name} on this machine; get them with `curl --create-dirs -o {path}"
                f" {url}` where there is a network, or give a folder that holds them with --weights"
            )
        return path

    if (folder / file_name).is_file():
        return folder / file_name
    files = weight_files(folder) if folder.is_dir() else []
    if len(files) != 1:
        raise InputError(
            f"--weights {folder} holds no {file_name}, nor one other file of weights; give its"
            " folder"
        )
    return files[0]


def classifier(model: str, weights: Any) -> Any:
    """Build the model as torchvision does for these weights, without them."""
    models = load_torchvision().models
    options = {}
    if model.startswith("vit_"):
        # vision transformers are built for pictures of one size
        options["image_size"] = weights.transforms().crop_size[0]
    return models.get_model(model, num_classes=len(weights.meta["categories"]), **options)


def cut_classifier(module: Any, name: str, classes: int) -> None:
    """Replace the last linear layer, which returns class scores, by the identity."""
    torch = load_torch("encoders")
    linear_layers = [
        path for path, layer in module.named_modules() if isinstance(layer, torch.nn.Linear)
    ]
    last = linear_layers[-1]
    if module.get_submodule(last).out_features != classes:
        raise InputError(
            f"{name} does not end in a linear layer of {classes} classes; use torch: with a sidecar"
        )
    module.set_submodule(last, torch.nn.Identity())


def input_facts(transform: Any) -> dict[str, Any]:
    """Return the fields of `PictureInput` for torchvision's evaluation transform."""
    (size,) = transform.crop_size
    (resize_to,) = transform.resize_size
    return {
        "size": (size, size),
        "resize_to": resize_to,
        "resize": transform.interpolation.value,
        "mean": transform.mean,
        "std": transform.std,
    }
