"""`transformers:NAME`, such as transformers:facebook/dinov2-small: pictures, or texts where the
model takes them.

Features are, in this order: those of a model that has an image and a text side (CLIP, SigLIP); for
pictures the mean over a convolutional map, or the first token; for texts the mean over the tokens
that are no padding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tacit.compute.documents import read_object
from tacit.data.rows import one_line
from tacit.encoding.encoders.base import Backbone, OtherKindError, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.pictures import PictureInput, picture_input
from tacit.encoding.encoders.weights import folder_of, loading, other_files
from tacit.encoding.encoders.windows import windows
from tacit.errors import InputError

RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
PROCESSOR = "preprocessor_config.json"

# of ConvNeXT
DEFAULT_CROP = 224 / 256

MOST_TOKENS = 512


def load(request: Request) -> Backbone:
    """Load a model saved with `save_pretrained`; code that a repository brings along is never
    run.
    """
    ready("transformers")
    from transformers import AutoModel

    folder = folder_of(request.name, request.weights, config="config.json")
    name = f"transformers:{request.name}"
    with loading(name, folder), quiet():
        module = AutoModel.from_pretrained(folder, local_files_only=True)

    if request.kind == "picture":
        preparation = _preparation(folder)
        return OnTorch(module, partial(_picture_features, module), request, name, preparation)

    has_text_side = hasattr(module, "get_text_features")
    takes_texts = module.main_input_name == "input_ids"
    if not has_text_side and not takes_texts:
        fault = f"{name} takes pictures, and the source holds texts"
        raise OtherKindError(f"{fault}; choose sentence-transformers:")
    from transformers import AutoTokenizer

    with loading(f"the tokenizer of {name}", folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    config = getattr(module.config, "text_config", module.config)
    n_positions = getattr(config, "max_position_embeddings", MOST_TOKENS)
    longest = min(tokenizer.model_max_length, n_positions, MOST_TOKENS)

    # SigLIP reads the last position, and was trained on texts padded to the full length
    padding = "max_length" if module.config.model_type.startswith("siglip") else "longest"
    tokenize = partial(
        tokenizer, padding=padding, truncation=True, max_length=longest, return_tensors="pt"
    )
    run = partial(_text_features, module)
    return OnTorch(
        module,
        run,
        request,
        name,
        tokenize=tokenize,
        files=other_files(folder),
        cut=partial(windows, tokenizer, longest),
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Disable the progress bars of transformers within the block."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def _picture_features(module: Any, pixels: Any) -> Any:
    """Compute features of pictures, (n, dim)."""
    if hasattr(module, "get_image_features"):
        features = module.get_image_features(pixel_values=pixels)
        return getattr(features, "pooler_output", features)
    features = module(pixel_values=pixels).last_hidden_state
    if features.ndim == 4:
        # a convolutional map, (n, dim, height, width)
        return features.mean(dim=(2, 3))
    # (n, tokens, dim)
    return features[:, 0]


def _text_features(module: Any, tokens: Any) -> Any:
    """Compute features of texts, (n, dim)."""
    if hasattr(module, "get_text_features"):
        features = module.get_text_features(**tokens)
        return getattr(features, "pooler_output", features)

    # the mean over tokens, (n, tokens, dim), without those of the padding
    mask = tokens["attention_mask"].unsqueeze(-1)
    features = module(**tokens).last_hidden_state.float()
    return (features * mask).sum(1) / mask.sum(1)


def _preparation(folder: Path) -> PictureInput:
    """Read how pictures are prepared for a model."""
    path = folder / PROCESSOR
    try:
        facts = read_object(path)
    except (OSError, ValueError) as error:
        fault = f"{path} is missing or no JSON, and states how pictures are prepared"
        raise InputError(f"{fault} ({one_line(error)}); get it again") from error
    return picture_input(input_facts(facts, folder), path)


def input_facts(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the fields of `PictureInput` for the settings of an image processor."""
    size = facts.get("size")
    if not facts.get("do_resize", True) or size is None or facts.get("do_pad"):
        raise InputError(
            f"{folder / PROCESSOR} asks for something that is not supported; use onnx: with a"
            " sidecar"
        )

    target, cut = _target_and_cut(facts)
    if cut is None and isinstance(target, int):
        raise InputError(
            f"{folder / PROCESSOR} keeps proportions and cuts nothing, so sizes differ; use onnx:"
            " instead"
        )

    factor = 1.0
    if facts.get("do_rescale", True):
        factor = facts.get("rescale_factor", 1 / 255)
    mean = (0.0,)
    std = (1.0,)
    if facts.get("do_normalize", True):
        mean = facts.get("image_mean", mean)
        std = facts.get("image_std", std)
    return {
        "size": cut or target,
        "resize_to": target,
        "resize": RESAMPLING.get(facts.get("resample", 2), "bilinear"),
        "scale": 1 / factor,
        "mean": mean,
        "std": std,
    }


def _target_and_cut(facts: dict[str, Any]) -> tuple[int | tuple[int, int], Any]:
    """Return the size to which a picture is resized, and that of the middle that is cut out, if
    any.
    """
    target = _sides(facts["size"])
    is_convnext = "ConvNext" in str(facts.get("image_processor_type", ""))
    if is_convnext and isinstance(target, int) and target < 384:
        # its processor states the size of the cut, and resizes to more
        return int(target / facts.get("crop_pct", DEFAULT_CROP)), (target, target)

    cut = None
    if facts.get("do_center_crop") and facts.get("crop_size") is not None:
        cut = _sides(facts["crop_size"])
    if isinstance(cut, int):
        cut = (cut, cut)
    return target, cut


def _sides(size: Any) -> int | tuple[int, int]:
    """Return the length of the shorter side, or height and width."""
    if isinstance(size, int):
        return (size, size)
    if "shortest_edge" in size:
        return int(size["shortest_edge"])
    return int(size["height"]), int(size["width"])
