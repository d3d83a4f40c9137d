"""Every family, with a tiny model from a local folder: against its own library, and with what is
missing.
"""

import json

import numpy as np
import pytest
from PIL import Image

import tacit
from messages import stating
from tacit.encoding.encoders import load_encoder
from tacit.errors import InputError

TEXTS = ["a b c", "private text", "b", "a private text a b c a b c"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """An empty cache, and sockets that refuse."""
    import socket

    def refuse(*_):
        raise AssertionError("an encoder asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))


def close(found, wanted):
    assert found.dtype == np.float32
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_onnx(onnx_model, pictures):
    found = tacit.encode(pictures, f"onnx:{onnx_model}")
    import onnxruntime

    batch = [
        np.asarray(Image.fromarray(one).resize((32, 32), Image.Resampling.BILINEAR))
        for one in pictures
    ]
    wanted = onnxruntime.InferenceSession(str(onnx_model)).run(
        None, {"pixels": np.stack(batch).transpose(0, 3, 1, 2).astype(np.float32) / 255}
    )[0]
    close(found, wanted)


def test_timm_equals_its_own_transform(timm_model, pictures):
    features = load_encoder("timm:test_vit.r160_in1k", weights=timm_model, precision="float32")
    import timm
    import torch

    model = timm.create_model(f"local-dir:{timm_model}", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
    batch = torch.stack([transform(Image.fromarray(one)) for one in pictures])
    close(tacit.encode(pictures, features), model(batch).detach().numpy())
    assert features.card["name"] == "timm:test_vit.r160_in1k"


def test_timm_takes_weights_alone(timm_model, tmp_path, pictures):
    (tmp_path / "w.safetensors").write_bytes((timm_model / "model.safetensors").read_bytes())
    one, other = (
        load_encoder("timm:test_vit.r160_in1k", weights=folder) for folder in (timm_model, tmp_path)
    )
    assert one.card["weights_sha256"] == other.card["weights_sha256"]


def test_torchvision_equals_its_own_transform(torchvision_model, pictures, monkeypatch):
    features = load_encoder(
        "torchvision:shufflenet_v2_x0_5", weights=torchvision_model, precision="float32"
    )
    import torch
    from torchvision.models import ShuffleNet_V2_X0_5_Weights, shufflenet_v2_x0_5

    monkeypatch.setenv("TORCH_HOME", str(torchvision_model.parents[1]))
    weights = ShuffleNet_V2_X0_5_Weights.IMAGENET1K_V1
    model = shufflenet_v2_x0_5(weights=weights).eval()
    model.fc = torch.nn.Identity()
    batch = torch.stack([weights.transforms()(Image.fromarray(one)) for one in pictures])
    wanted = model(batch).detach().numpy()
    close(tacit.encode(pictures, features), wanted)
    assert features.card["name"] == "torchvision:shufflenet_v2_x0_5/IMAGENET1K_V1"
    close(
        tacit.encode(pictures, "torchvision:shufflenet_v2_x0_5/IMAGENET1K_V1", precision="float32"),
        wanted,
    )


@pytest.mark.parametrize(
    ("model", "tag", "side", "width"),
    [
        ("vit_b_16", "IMAGENET1K_V1", 224, 768),
        ("vit_b_16", "IMAGENET1K_SWAG_E2E_V1", 384, 768),
        ("vit_l_16", "IMAGENET1K_SWAG_LINEAR_V1", 224, 1024),
        ("vit_l_16", "IMAGENET1K_SWAG_E2E_V1", 512, 1024),
        ("vit_h_14", "IMAGENET1K_SWAG_LINEAR_V1", 224, 1280),
        ("vit_h_14", "IMAGENET1K_SWAG_E2E_V1", 518, 1280),
        ("resnet50", "IMAGENET1K_V2", 224, 2048),
        ("mobilenet_v3_small", "IMAGENET1K_V1", 224, 1024),
    ],
)
def test_torchvision_models_are_built_for_their_weights_and_lose_their_classifier(
    model, tag, side, width
):
    from tacit.encoding.encoders import torchvision as family
    from tacit.encoding.encoders.on_torch import ready

    ready("torchvision")
    import torch

    weights = family.pretrained_weights(model, tag)
    with torch.device("meta"):
        module = family.classifier(model, weights).eval()
        assert sum(one.numel() for one in module.parameters()) == weights.meta["num_params"]
        family.cut_classifier(module, model, 1000)
        assert module(torch.empty(2, 3, side, side)).shape == (2, width)
    assert family.input_facts(weights.transforms())["size"] == (side, side)


def test_a_network_without_a_classifier_is_not_cut():
    from tacit.encoding.encoders.torchvision import cut_classifier

    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4))
    with pytest.raises(InputError, match=stating("x", "1000 classes", "linear")):
        cut_classifier(module, "x", 1000)


def test_open_clip_equals_its_own_transform(clip_model, pictures):
    features = load_encoder("open_clip:tiny", weights=clip_model, precision="float32")
    import open_clip
    import torch

    model, transform = open_clip.create_model_from_pretrained(f"local-dir:{clip_model}")
    batch = torch.stack([transform(Image.fromarray(one)) for one in pictures])
    with torch.no_grad():
        close(tacit.encode(pictures, features), model.encode_image(batch).numpy())
        texts = load_encoder("open_clip:tiny", kind="text", weights=clip_model, precision="float32")
        tokens = open_clip.get_tokenizer(f"local-dir:{clip_model}")(TEXTS)
        close(tacit.encode(TEXTS, texts), model.encode_text(tokens).numpy())


def test_transformers_for_pictures(vit_model, pictures):
    found = tacit.encode(pictures, "transformers:tiny", weights=vit_model, precision="float32")
    import torch
    from transformers import AutoModel

    batch = [
        np.asarray(Image.fromarray(one).resize((32, 32), Image.Resampling.BILINEAR))
        for one in pictures
    ]
    pixels = torch.tensor(np.stack(batch).transpose(0, 3, 1, 2) / 255, dtype=torch.float32) * 2 - 1
    with torch.no_grad():
        close(found, AutoModel.from_pretrained(vit_model)(pixels).last_hidden_state[:, 0].numpy())


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (
            {
                "size": {"shortest_edge": 6},
                "do_center_crop": True,
                "crop_size": {"height": 3, "width": 2},
            },
            ((3, 2), 6),
        ),
        ({"size": {"shortest_edge": 36}, "do_center_crop": True, "crop_size": 32}, ((32, 32), 36)),
        ({"size": {"height": 30, "width": 31}}, ((30, 31), (30, 31))),
        ({"size": 32}, ((32, 32), (32, 32))),
        (
            {"size": {"shortest_edge": 224}, "image_processor_type": "ConvNextImageProcessor"},
            ((224, 224), 256),
        ),
    ],
)
def test_image_processors(facts, wanted, tmp_path):
    from tacit.encoding.encoders.transformers import input_facts

    found = input_facts(facts, tmp_path)
    assert (found["size"], found["resize_to"]) == wanted


@pytest.mark.parametrize(
    "facts",
    [{"size": {"shortest_edge": 36}}, {"size": 32, "do_pad": True}, {"do_resize": False}, {}],
)
def test_image_processors_that_are_not_known(facts, tmp_path):
    from tacit.encoding.encoders.transformers import input_facts

    with pytest.raises(InputError, match="use onnx:"):
        input_facts(facts, tmp_path)


def test_transformers_for_texts(bert_model):
    found = tacit.encode(TEXTS, "transformers:tiny", weights=bert_model, precision="float32")
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(bert_model),
        AutoTokenizer.from_pretrained(bert_model),
    )
    with torch.no_grad():
        for row, text in zip(found, TEXTS, strict=True):  # one at a time: no padding
            hidden = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
            close(row, hidden.mean(0).numpy())


def test_sentence_transformers(sentence_model):
    found = tacit.encode(
        TEXTS, "sentence-transformers:tiny", weights=sentence_model, precision="float32"
    )
    from sentence_transformers import SentenceTransformer

    close(found, SentenceTransformer(str(sentence_model), device="cpu").encode(TEXTS))
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_users_own_module(own_module, pictures):
    import torch
    from ours import Net

    torch.manual_seed(0)
    net = Net()
    torch.save(net.state_dict(), own_module / "net.pt")
    found = tacit.encode(
        pictures, "torch:ours.Net", weights=own_module / "net.pt", precision="float32"
    )
    batch = [
        np.asarray(Image.fromarray(one).resize((8, 8), Image.Resampling.BICUBIC))
        for one in pictures
    ]
    with torch.no_grad():
        close(
            found,
            net(
                torch.tensor(np.stack(batch).transpose(0, 3, 1, 2) / 255, dtype=torch.float32)
            ).numpy(),
        )
    assert tacit.encode(["ab", "c"], "torch:ours.Texts").tolist() == [[2, 1], [1, 1]]
    (own_module / "side.json").write_text(json.dumps({"size": [8, 8]}))
    assert tacit.encode(pictures, "torch:ours.Net", sidecar=own_module / "side.json").shape == (
        6,
        5,
    )


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        ("resnet", stating("encoder='resnet'", "FAMILY:NAME")),
        ("keras:resnet", "is unknown"),
        ("timm:", "is unknown"),
        ("timm:resnet1000", stating("timm", "'resnet1000'")),
        ("timm:resnet18.a1_in1k", stating("hf download timm/resnet18.a1_in1k")),
        ("torchvision:resnet", stating("torchvision:resnet", "resnet")),
        ("torchvision:squeezenet1_0", "not a classifier that tacit knows"),
        ("torchvision:xyz", "list_models.. lists them"),
        ("torchvision:vit_h_14/V7", stating("'V7'", "vit_h_14", "IMAGENET1K_SWAG_E2E_V1")),
        ("torchvision:vgg16/IMAGENET1K_FEATURES", stating("'IMAGENET1K_FEATURES'", "vgg16")),
        (
            "torchvision:vit_h_14/IMAGENET1K_SWAG_E2E_V1",
            stating("curl --create-dirs -o", "80465313.pth https://"),
        ),
        (
            "open_clip:ViT-B-32/laion2b_s34b_b79k",
            stating("hf download laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
        ),
        ("open_clip:ViT-B-32/nothing", "no weights 'nothing'"),
        ("transformers:facebook/dinov2-small", stating("hf download facebook/dinov2-small")),
        ("transformers:not a name", "get them with"),
        ("onnx:gone.onnx", "gone.onnx does not exist"),
        ("sentence-transformers:all-MiniLM-L6-v2", "takes texts"),
        ("torch:no.such", "cannot be made"),
        ("torch:ours.number", stating("int", "torch.nn.Module")),
        ("torch:ours.broken", "RuntimeError: no GPU here"),
        ("torch:ours.Silent", stating("pictures", "takes")),
    ],
)
def test_encoders_that_are_not_there(encoder, said, own_module, pictures):
    with pytest.raises(InputError, match=said):
        tacit.encode(pictures, encoder)


def test_texts_that_are_not_there():
    with pytest.raises(InputError, match=stating("torchvision:resnet18", "pictures", "texts")):
        tacit.encode(TEXTS, "torchvision:resnet18")
    with pytest.raises(
        InputError, match=stating("hf download sentence-transformers/all-MiniLM-L6-v2")
    ):
        tacit.encode(TEXTS, "sentence-transformers:all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    "family",
    [
        "timm:test_vit.r160_in1k",
        "torchvision:resnet18",
        "open_clip:x",
        "transformers:x",
        "torch:ours.Net",
    ],
)
def test_folders_without_weights(family, own_module, tmp_path, pictures):
    (tmp_path / "empty").mkdir()
    for weights, said in (
        (tmp_path / "empty", "--weights .* (holds no|needs)"),
        (tmp_path / "gone", "does not exist"),
    ):
        with pytest.raises(InputError, match=said):
            tacit.encode(pictures, family, weights=weights)


def test_damaged_weights(timm_model, vit_model, onnx_model, tmp_path, pictures):
    for model, family in ((timm_model, "timm:test_vit.r160_in1k"), (vit_model, "transformers:x")):
        folder = tmp_path / model.name
        folder.mkdir()
        for path in model.iterdir():
            data = path.read_bytes()
            (folder / path.name).write_bytes(data[:200] if path.suffix == ".safetensors" else data)
        with pytest.raises(InputError, match="cannot be loaded"):
            tacit.encode(pictures, family, weights=folder)
    (tmp_path / "bad.onnx").write_bytes(onnx_model.read_bytes()[:50])
    (tmp_path / "bad.json").write_text('{"size": [32, 32]}')
    with pytest.raises(InputError, match="cannot be loaded"):
        tacit.encode(pictures, f"onnx:{tmp_path / 'bad.onnx'}")


def test_weights_of_another_model(timm_model, torchvision_model, pictures):
    with pytest.raises(InputError, match=stating("torchvision:resnet18/IMAGENET1K_V1", "loaded")):
        tacit.encode(pictures, "torchvision:resnet18", weights=torchvision_model)
    with pytest.raises(InputError, match="holds test_vit, not resnet18"):
        tacit.encode(pictures, "timm:resnet18.a1_in1k", weights=timm_model)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no", "is not JSON"),
        ("[]", "no JSON object"),
        ("{}", "size: Field required"),
        ('{"size": [32, 32], "sise": 3}', "sise: Extra inputs"),
        ('{"size": [16, 16]}', "its sidecar states"),
        ('{"size": [32, 32], "layout": "nhwc"}', "its sidecar states"),
        ('{"size": [32, 32], "channels": "grey"}', "its sidecar states"),
        ('{"size": [32, 32], "resize_to": 20}', "smaller than size"),
        ('{"size": [32, 32], "mean": [1, 2]}', "mean and std need"),
        ('{"size": [32, 32], "output": "q"}', "no output 'q'"),
        ('{"size": [0, 32]}', "must be from 1"),
    ],
)
def test_sidecars_that_are_wrong(onnx_model, tmp_path, text, said, pictures):
    (tmp_path / "side.json").write_text(text)
    with pytest.raises(InputError, match=said):
        tacit.encode(pictures, f"onnx:{onnx_model}", sidecar=tmp_path / "side.json")


def test_a_model_without_a_sidecar(onnx_model, tmp_path, pictures):
    path = tmp_path / "lone.onnx"
    path.write_bytes(onnx_model.read_bytes())
    with pytest.raises(InputError, match=stating("lone.json", '{"size"')):
        tacit.encode(pictures, f"onnx:{path}")


def test_mirror_and_projection(onnx_model, tmp_path, pictures):
    plain = tacit.encode(pictures, f"onnx:{onnx_model}")
    flipped = tacit.encode([one[:, ::-1] for one in pictures], f"onnx:{onnx_model}")
    matrix = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    np.save(tmp_path / "p.npy", matrix)
    found = tacit.encode(pictures, f"onnx:{onnx_model}", mirror=True, projection=tmp_path / "p.npy")
    close(found, (plain + flipped) / 2 @ matrix)
    np.save(tmp_path / "q.npy", matrix[:5])
    with pytest.raises(InputError, match=stating("5 rows", "12 features", "projection")):
        tacit.encode(pictures, f"onnx:{onnx_model}", projection=tmp_path / "q.npy")
    np.save(tmp_path / "r.npy", np.ones(3, np.float32))
    with pytest.raises(InputError, match="a projection is a matrix"):
        tacit.encode(pictures, f"onnx:{onnx_model}", projection=tmp_path / "r.npy")


def test_options_that_do_not_apply(onnx_model, vit_model, sentence_model, pictures):
    for texts, encoder, options, said in (
        (
            pictures,
            "transformers:x",
            {"weights": vit_model, "sidecar": onnx_model},
            "does not apply to transformers",
        ),
        (
            pictures,
            "transformers:x",
            {"weights": vit_model, "precision": "float8"},
            "precision='float8'",
        ),
        (pictures, "transformers:x", {"weights": vit_model, "device": "tpu9"}, "device='tpu9'"),
        (
            TEXTS,
            "sentence-transformers:x",
            {"weights": sentence_model, "mirror": True},
            "mirror=True is for pictures",
        ),
        (TEXTS, f"onnx:{onnx_model}", {}, "takes pictures"),
    ):
        with pytest.raises(InputError, match=said):
            tacit.encode(texts, encoder, **options)


def test_bfloat16_is_near(vit_model, pictures):
    exact, near = (
        tacit.encode(pictures, "transformers:x", weights=vit_model, precision=own)
        for own in ("float32", "bfloat16")
    )
    assert 0 < np.abs(exact - near).max() < 0.05 * np.abs(exact).max()


def test_a_model_of_a_fixed_batch(onnx_model, tmp_path, pictures):
    import onnx

    model = onnx.load(onnx_model)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4
    path = tmp_path / "four.onnx"
    onnx.save(model, path)
    path.with_suffix(".json").write_text(onnx_model.with_suffix(".json").read_text())
    close(tacit.encode(pictures, f"onnx:{path}"), tacit.encode(pictures, f"onnx:{onnx_model}"))
    with pytest.raises(InputError, match=stating("batch=8", "4")):
        tacit.encode(pictures, f"onnx:{path}", batch=8)
