"""`open_clip:MODEL/TAG`, such as open_clip:ViT-B-32/laion2b_s34b_b79k: pictures, or texts with the
same model.
"""

from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import folder_of, loading
from tacit.errors import InputError


def load(request: Request) -> Backbone:
    """Load a model of open_clip from a folder as the hub has it: open_clip_config.json and
    weights.
    """
    ready("open_clip")
    import open_clip

    repository = request.name if request.weights is not None else _repository(request.name)
    folder = folder_of(repository, request.weights, config="open_clip_config.json")
    name = f"open_clip:{request.name}"
    source = f"local-dir:{folder}"
    with loading(name, folder):
        module = open_clip.create_model(source, require_pretrained=True)
    if request.kind == "text":
        with loading(name, folder):
            tokenizer = open_clip.get_tokenizer(source)
        return OnTorch(module, module.encode_text, request, name, tokenize=tokenizer)

    facts = input_facts(open_clip.get_model_preprocess_cfg(module), name)
    return OnTorch(module, module.encode_image, request, name, picture_input(facts, name))


def _repository(name: str) -> str:
    """Return the hub's name of a model and tag."""
    import open_clip

    model, _, tag = name.rpartition("/")
    facts = open_clip.get_pretrained_cfg(model, tag) if model else {}
    names_a_model = bool({model, tag} & set(open_clip.list_models()))
    if "hf_hub" not in facts and not names_a_model:
        # a repository that open_clip does not list
        return name

    if not facts.get("hf_hub"):
        model = model or tag
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(model)[:8]) or "none"
        raise InputError(
            f"open_clip has no weights {tag!r} of {model!r} on the hub; write MODEL/TAG, tags:"
            f" {tags}"
        )
    return str(facts["hf_hub"]).rstrip("/")


def input_facts(facts: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of `PictureInput` for open_clip's evaluation transform."""
    size = facts["size"]
    if isinstance(size, int):
        size = (size, size)
    height, width = size
    fields = {
        "size": (height, width),
        "resize": facts["interpolation"],
        "mean": facts["mean"],
        "std": facts["std"],
    }
    if facts["resize_mode"] == "squash":
        return fields
    if facts["resize_mode"] != "shortest" or height != width:
        fault = f"{name} resizes by {facts['resize_mode']!r}, which tacit does not know"
        raise InputError(f"{fault}; use onnx: with a sidecar")
    return fields | {"resize_to": height}
