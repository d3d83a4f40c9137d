"""`open_clip:MODEL/TAG`, such as open_clip:ViT-B-32/laion2b_s34b_b79k: pictures, or texts with the same model."""

from __future__ import annotations

from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import picture_input
from tacit.encoding.encoders.weights import folder_of, loading
from tacit.errors import InputError


def load(request: Request) -> Backbone:
    """A model of open_clip from a folder as the hub has it: open_clip_config.json and weights."""
    ready("open_clip")
    import open_clip

    folder = folder_of(_repository(request), request.weights, config="open_clip_config.json")
    name, source = f"open_clip:{request.name}", f"local-dir:{folder}"
    with loading(name, folder):
        module = open_clip.create_model(source, require_pretrained=True)
        tokenizer = open_clip.get_tokenizer(source) if request.kind == "text" else None
    if tokenizer is not None:
        backbone = OnTorch(
            module, lambda texts: module.encode_text(tokenizer(texts).to(backbone.device)), request, name, None
        )
        return backbone
    facts = _input(open_clip.get_model_preprocess_cfg(module), name)
    return OnTorch(module, module.encode_image, request, name, picture_input(facts, name))


def _repository(request: Request) -> str:
    """The hub's name of a model and tag."""
    import open_clip

    model, _, tag = request.name.rpartition("/")
    if request.weights is not None:
        return request.name
    facts = open_clip.get_pretrained_cfg(model, tag) if model else {}
    if "hf_hub" not in facts and not {model, tag} & set(open_clip.list_models()):
        return request.name  # a repository of its own
    if not facts.get("hf_hub"):
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(model or tag)[:8]) or "none"
        raise InputError(
            f"open_clip has no weights {tag!r} of {model or tag!r} on the hub; write MODEL/TAG, tags: {tags}"
        )
    return str(facts["hf_hub"]).rstrip("/")


def _input(facts: dict[str, Any], name: str) -> dict[str, Any]:
    size = facts["size"]
    pair = (size, size) if isinstance(size, int) else tuple(size)
    own = {"size": pair, "resize": facts["interpolation"], "mean": facts["mean"], "std": facts["std"]}
    if facts["resize_mode"] == "squash":
        return own
    if facts["resize_mode"] != "shortest" or pair[0] != pair[1]:
        raise InputError(
            f"{name} resizes by {facts['resize_mode']!r}, which is not known here; use onnx: with a sidecar"
        )
    return own | {"resize_to": pair[0]}
