"""Rows of class names: texts of templates, and the mean of public classes with near names in closed
form.
"""

import numpy as np
import pytest

from messages import stating
from tacit.encoding.encoders import load_encoder
from tacit.encoding.names import TEMPERATURES, encode_names, names_source, names_through
from tacit.errors import InputError

TEMPLATES = ["a {}", "{} and {}"]


def test_every_name_in_every_template():
    source = names_source(["fire_truck", "cat"], TEMPLATES)
    assert list(source.names) == [
        "a fire truck",
        "fire truck and fire truck",
        "a cat",
        "cat and cat",
    ]
    assert list(source.records(2)) == ["a cat", "cat and cat"]
    assert source.labels.tolist() == ["fire_truck", "fire_truck", "cat", "cat"]
    assert (source.classes, source.classes_declared) == (["fire_truck", "cat"], True)
    assert source.facts == {"names": {"what": "rows of class names", "templates": TEMPLATES}}
    described = names_source(2, ["{}"], ["an_apple", "a pear"])
    assert list(described.names) == ["an_apple", "a pear"]
    assert described.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("classes", "templates", "descriptions", "said"),
    [
        ([], ["{}"], None, "classes is empty"),
        (["a", "b", "a"], ["{}"], None, stating("'a'", "twice")),
        (["a"], [], None, "templates are empty"),
        (["a"], ["a photo"], None, stating("'a photo'", "{}")),
        (["a"], ["{}", "{}"], None, stating("'{}'", "twice")),
        (["a", "b"], ["{}"], ["one"], stating("1 texts", "2 classes")),
        (["a", "b"], ["{}"], ["one", " "], stating("class", "empty", "text")),
    ],
)
def test_lists_and_templates_that_are_wrong(classes, templates, descriptions, said):
    with pytest.raises(InputError, match=said):
        names_source(classes, templates, descriptions)


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def directions(rows, centre):
    return (rows - centre) / np.linalg.norm(rows - centre, axis=1, keepdims=True)


def test_rows_through_public_classes_in_closed_form():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 6)) + 1, rng.integers(0, 4, 50)
    names, public_names = rng.normal(size=(3, 5)), rng.normal(size=(4, 5))
    unit = directions(X, 0)
    centre, means = unit.mean(axis=0), np.array([unit[y == k].mean(axis=0) for k in range(4)])
    found = names_through(names, public_names, X, y, temperature=0.05)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    for c in range(3):
        cosines = [
            names[c] @ one / np.linalg.norm(names[c]) / np.linalg.norm(one) for one in public_names
        ]
        wanted = softmax(np.array(cosines) / 0.05) @ means
        assert np.allclose(
            directions(found[[c]], centre), directions(wanted[None], centre), rtol=0, atol=1e-12
        )
    hot = names_through(names, public_names, X, y, temperature=1e6)
    assert np.allclose(
        directions(hot, centre), directions(means.mean(axis=0)[None], centre), atol=1e-4
    )
    cold = names_through(public_names * 3, public_names, X, y, temperature=1e-3)
    assert np.allclose(directions(cold, centre), directions(means, centre), atol=1e-12)


@pytest.mark.parametrize(("turns", "best"), [(1, 0.15), (3, 0.07)])
def test_the_temperature_is_the_one_that_tells_public_classes_by_the_names_of_the_others(
    turns, best
):
    """Names go around a circle, and noisy means go around another, once or more: the more often,
    the fewer neighbours have like means."""
    angles = np.arange(30) * 2 * np.pi / 30
    names = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    means = np.column_stack([np.cos(turns * angles), np.sin(turns * angles), np.ones(30)])
    means += np.random.default_rng(2).normal(size=means.shape) / 2
    X, y = np.repeat(means, 2, axis=0), np.repeat(np.arange(30), 2)
    told = {t: told_by_others(names, X, y, t) for t in TEMPERATURES}
    assert max(told, key=told.get) == best
    assert np.array_equal(
        names_through(names, names, X, y), names_through(names, names, X, y, temperature=best)
    )


def test_a_class_is_no_part_of_the_mean_from_which_it_is_told():
    """Names share an offset, so weights are nearly flat; about the mean of all they would lead away
    from each class.
    """
    rng = np.random.default_rng(3)
    names = rng.normal(size=(10, 8)) + 2
    means = names @ rng.normal(size=(8, 5)) + rng.normal(size=(10, 5)) + 3
    X, y = np.repeat(means, 2, axis=0), np.repeat(np.arange(10), 2)
    told = {t: told_by_others(names, X, y, t) for t in TEMPERATURES}
    assert max(told, key=told.get) == 0.15
    assert np.array_equal(
        names_through(names, names, X, y), names_through(names, names, X, y, temperature=0.15)
    )


def told_by_others(names, X, y, temperature):
    """Mean cosine between each public class and what its name tells by the rows of the others,
    about their mean.
    """
    unit = directions(X, 0)
    names, total = directions(names, 0), 0.0
    for k in range(len(names)):
        centre, cosines = unit[y != k].mean(axis=0), np.delete(names @ names[k], k)
        means = np.array(
            [unit[y == other].mean(axis=0) for other in range(len(names)) if other != k]
        )
        found = softmax(cosines / temperature) @ means
        total += (
            directions(found[None], centre) @ directions(unit[y == k].mean(axis=0)[None], centre).T
        ).item()
    return total / len(names)


def test_names_that_resemble_all_public_classes_alike_give_the_mean():
    X, y = np.random.default_rng(0).normal(size=(60, 4)) + 1, np.arange(60) % 3
    mean = directions(X, 0).mean(axis=0)
    assert np.allclose(
        names_through([[0, 0, 0, 1.0]], np.eye(4)[:3], X, y), mean, rtol=0, atol=1e-12
    )


def test_public_classes_without_rows_have_no_part_and_templates_are_averaged():
    X, y = np.eye(4), [0, 1, 1, 3]
    public = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    found = names_through([[[3.0, 0.0], [0.0, 1.0]]], public, X, y, temperature=2.0)
    weights = softmax(np.array([0.5**0.5, 0.5**0.5, 1.0]) / 2)
    wanted = np.array([[weights[0], weights[1] / 2, weights[1] / 2, weights[2]]])
    centre = np.full(4, 1 / 4)
    assert np.allclose(directions(found, centre), directions(wanted, centre), rtol=0, atol=1e-12)


def test_a_single_public_class_leaves_its_mean():
    assert np.allclose(names_through([[1.0], [2.0]], [[1.0]], np.eye(2), [0, 0]), 0.5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[1.0]], [[1.0, 2.0]], np.eye(2), [0, 0]), stating("1 columns", "public_names", "2")),
        (([[1.0], [1.0, 2.0]], [[1.0]], np.eye(2), [0, 0]), "names has rows of 2 widths"),
        (([[1.0]], [[1.0]], np.eye(2), [0, 1]), stating("y", "public_names", "2 rows")),
        (([[1.0]], [[1.0]], np.eye(2), [0]), "y must have the position"),
        (([[1.0]], [[1.0]], np.eye(2), ["a", "b"]), "y must have the position"),
    ],
)
def test_what_does_not_fit_together(arguments, said):
    with pytest.raises(InputError, match=said):
        names_through(*arguments)
    with pytest.raises(InputError, match="temperature=0 must be above 0"):
        names_through([[1.0]], [[1.0]], np.eye(1), [0], temperature=0)


def test_names_are_encoded_by_the_text_side(sentence_model, clip_model):
    for encoder, weights in (
        ("sentence-transformers:tiny", sentence_model),
        ("open_clip:tiny", clip_model),
    ):
        features = load_encoder(encoder, kind="text", weights=weights, precision="float32")
        found = encode_names(
            ["a", "b_c"], encoder, templates=["{}", "text {}"], weights=weights, precision="float32"
        )
        assert [rows.shape[0] for rows in found] == [2, 2]
        wanted = features(["a", "text a", "b c", "text b c"])
        assert np.allclose(np.concatenate(found), wanted, atol=1e-5)


def test_siglip_reads_texts_of_full_length(siglip_model):
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(siglip_model),
        AutoTokenizer.from_pretrained(siglip_model),
    )
    found = encode_names(
        ["a", "b c"], "transformers:tiny", weights=siglip_model, precision="float32"
    )
    tokens = tokenizer(["a", "b c"], padding="max_length", max_length=16, return_tensors="pt")
    with torch.inference_mode():
        wanted = model.get_text_features(**tokens)
    wanted = getattr(wanted, "pooler_output", wanted).numpy()
    assert np.allclose(np.concatenate(found), wanted, atol=1e-5)


REMEDY = (
    "has no text side that encodes class names; take sentence-transformers:NAME with --through"
    " STORE"
)


@pytest.mark.parametrize(
    "encoder",
    ["timm:resnet18.a1_in1k", "torchvision:resnet18", "onnx:model.onnx", "torch:ours.Net"],
)
def test_encoders_of_pictures_name_the_remedy(encoder, own_module):
    with pytest.raises(InputError, match=REMEDY):
        encode_names(["a"], encoder)


def test_a_transformer_of_pictures_names_the_remedy(vit_model):
    with pytest.raises(InputError, match=REMEDY):
        encode_names(["a"], "transformers:tiny", weights=vit_model)


def test_a_store_of_pictures_carries_names_of_the_same_model(
    clip_model, tmp_path, monkeypatch, capsys
):
    from tacit.cli.main import main
    from tacit.data.embeddings import EmbeddingStore

    monkeypatch.chdir(tmp_path)
    np.save("pets_x.npy", np.random.default_rng(0).integers(0, 255, (6, 32, 32, 3), dtype=np.uint8))
    np.save("pets_y.npy", np.arange(6) % 2)
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    encoder = [
        "--encoder",
        "open_clip:tiny",
        "--weights",
        str(clip_model),
        "--precision",
        "float32",
    ]
    line = [
        "encode",
        "pets_x.npy",
        *encoder,
        "--classes",
        "classes.txt",
        "--labels",
        "index",
        "--mirror",
        "--workers",
        "0",
        "--out",
        "pets",
    ]
    assert main([*line, "--template", "a {}"]) == 0, capsys.readouterr().err
    store = EmbeddingStore.open("pets").verify()
    wanted = load_encoder("open_clip:tiny", kind="text", weights=clip_model, precision="float32")(
        ["a cat", "a dog"]
    )
    assert (store.rows, store.dim) == (6, 24)
    assert np.allclose(np.concatenate(store.names), wanted, rtol=2e-3, atol=1e-3)
    assert store.names_card["encoder"]["weights_sha256"] == store.card["encoder"]["weights_sha256"]
