"""Tiny models with random weights, saved as their libraries save them."""

import json
import sys

import numpy as np
import pytest

SIZE = 32


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder with a tiny model for each family, made on first use."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def onnx_model(models):
    """Mean over patches of 8 x 8, times a random matrix: a file, and its sidecar."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(3 * 16, 12)).astype(np.float32)
    nodes = [
        helper.make_node(
            "AveragePool", ["pixels"], ["pooled"], kernel_shape=[8, 8], strides=[8, 8]
        ),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 12])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = models / "tiny.onnx"
    onnx.save(model, path)
    path.with_suffix(".json").write_text(
        json.dumps({"size": [SIZE, SIZE], "scale": 255, "resize": "bilinear"})
    )
    return path


@pytest.fixture(scope="session")
def timm_model(models):
    from tacit.encoding.encoders.on_torch import ready

    ready("timm")
    import timm

    model = timm.create_model("test_vit.r160_in1k", pretrained=False, num_classes=7)
    folder = models / "timm"
    folder.mkdir()
    _save(model, folder)
    facts = {"architecture": "test_vit", "num_classes": 7, "num_features": model.num_features}
    (folder / "config.json").write_text(
        json.dumps(facts | {"pretrained_cfg": _plain(model.pretrained_cfg)})
    )
    return folder


@pytest.fixture(scope="session")
def torchvision_model(models):
    """A small model of torchvision under the name that its weights have in the cache of torch's
    hub.
    """
    from tacit.encoding.encoders.on_torch import ready

    ready("torchvision")
    import torch
    from torchvision.models import ShuffleNet_V2_X0_5_Weights, shufflenet_v2_x0_5

    folder = models / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    torch.save(
        shufflenet_v2_x0_5().state_dict(),
        folder / ShuffleNet_V2_X0_5_Weights.DEFAULT.url.rpartition("/")[2],
    )
    return folder


@pytest.fixture(scope="session")
def clip_model(models):
    """A CLIP of open_clip as the hub has it."""
    from tacit.encoding.encoders.on_torch import ready

    ready("open_clip")
    import open_clip

    tower = {"image_size": SIZE, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16}
    text = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
    facts = {"embed_dim": 24, "vision_cfg": tower, "text_cfg": text}
    model = open_clip.CLIP(**facts)
    folder = models / "clip"
    folder.mkdir()
    own = {
        "size": SIZE,
        "mean": [0.4, 0.5, 0.6],
        "std": [0.2, 0.3, 0.4],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": facts, "preprocess_cfg": own})
    )
    _save(model, folder, "open_clip_model.safetensors")
    return folder


@pytest.fixture(scope="session")
def vit_model(models):
    """A vision transformer of transformers."""
    from tacit.encoding.encoders.on_torch import ready

    ready("transformers")
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=SIZE,
        patch_size=8,
    )
    folder = models / "vit"
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    facts = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": SIZE, "width": SIZE},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(facts))
    return folder


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "private", "text"]


@pytest.fixture(scope="session")
def bert_model(models):
    """A text model of transformers with a vocabulary of ten words."""
    from tacit.encoding.encoders.on_torch import ready

    ready("transformers")
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    folder = models / "bert"
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    _save_tokenizer(folder, 32)
    return folder


def _save_tokenizer(folder, longest):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(
        WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    own.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=own,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=longest,
    ).save_pretrained(folder)


@pytest.fixture(scope="session")
def siglip_model(models):
    """A SigLIP of transformers with the same vocabulary."""
    from tacit.encoding.encoders.on_torch import ready

    ready("transformers")
    from transformers import SiglipConfig, SiglipModel

    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    words = {"vocab_size": len(WORDS), "max_position_embeddings": 16, "projection_size": 16}
    pictures = {"image_size": SIZE, "patch_size": 16}
    folder = models / "siglip"
    SiglipModel(
        SiglipConfig(text_config=sizes | words, vision_config=sizes | pictures)
    ).save_pretrained(folder)
    _save_tokenizer(folder, 64)
    return folder


@pytest.fixture(scope="session")
def sentence_model(models, bert_model):
    from tacit.encoding.encoders.on_torch import ready

    ready("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    body = Transformer(str(bert_model), max_seq_length=32)
    folder = models / "sentences"
    SentenceTransformer(
        modules=[body, Pooling(body.get_embedding_dimension()), Normalize()], device="cpu"
    ).save(str(folder))
    return folder


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user's own file with a torch module, in the working directory."""
    (tmp_path / "ours.py").write_text("""
import torch

class Net(torch.nn.Sequential):
    picture_input = {"size": [8, 8], "scale": 255}

    def __init__(self):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(192, 5))

class Texts(torch.nn.Module):
    picture_input = None

    def forward(self, texts):
        return torch.tensor([[float(len(text)), 1.0] for text in texts])

class Silent(torch.nn.Module):
    pass

def number():
    return 3

def broken():
    raise RuntimeError("no GPU here")
""")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("ours", None)


def _save(model, folder, name="model.safetensors"):
    from safetensors.torch import save_file

    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / name)


def _plain(facts):
    return {
        key: value
        for key, value in facts.items()
        if isinstance(value, str | int | float | list | tuple | bool)
    }


@pytest.fixture
def pictures():
    """Six pictures of different shapes."""
    rng = np.random.default_rng(1)
    return [
        rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        for size in ((40, 40), (50, 37), (32, 64), (90, 41), (33, 33), (32, 32))
    ]
