"""Rows of another encoder than the release states are not scored unless `--any-encoder` says so."""

import json

import numpy as np
import pytest

from messages import lacking
from tacit.data.embeddings import EmbeddingStore

ENCODER = {
    "name": "some:vit",
    "weights_commit": "c0ffee",
    "weights_sha256": "ab" * 32,
    "input": {"size": [28, 28], "resize": "bicubic"},
    "precision": "float32",
}
CLASSES = ["ant", "bee", "cow"]
COMMANDS = ("evaluate", "predict", "adapt")


def rows(seed, n):
    y = np.arange(n) % 3
    return np.eye(3, 5)[y] * 3 + np.random.default_rng(seed).normal(size=(n, 5)), y


def write(name, seed, encoder, n=90):
    card = {} if encoder is None else {"encoder": encoder}
    EmbeddingStore.write(
        name, *rows(seed, n), classes=CLASSES, labels="index", card=card, identity=name
    )


@pytest.fixture
def here(tmp_path, monkeypatch, run):
    """A release whose rows are of ENCODER."""
    monkeypatch.chdir(tmp_path)
    write("private", 0, ENCODER)
    write("public", 1, ENCODER, 300)
    fitted = run(
        "fit auto private --public public --budget rho=1 --out release --noise research --seed 0"
        " --allow-research"
    )
    assert fitted[0] == 0, fitted
    return tmp_path


def line(command, store):
    outputs = {"evaluate": "", "predict": "--out labels.csv", "adapt": "--out adapted"}
    return f"{command} release {store} {outputs[command]}"


def test_the_release_states_encoder_revision_and_recipe(here):
    encoder = json.loads((here / "release" / "release.json").read_text())["public_inputs"][
        "encoder"
    ]
    assert encoder == {
        "name": "some:vit",
        "revision": "c0ffee",
        "hash": "ab" * 32,
        "recipe": json.dumps({"input": ENCODER["input"]}, sort_keys=True),
    }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"name": "some:resnet"}, ("some:resnet", "some:vit")),
        ({"weights_commit": "decade"}, ("decade", "c0ffee")),
        ({"weights_sha256": "cd" * 32}, ("cdcd", "abab")),
        ({"input": {"size": [28, 28], "resize": "bilinear"}}, ("bilinear", "bicubic")),
        ({"mirror": "mean of both"}, ("mean of both",)),
    ],
)
def test_another_encoder_is_refused_with_both_values(here, run, command, change, shown):
    write("other", 2, ENCODER | change)
    status, _, err = run(line(command, "other"))
    assert status == 2
    assert "other is of another encoder: " in err
    assert "--any-encoder" in err
    assert all(value in err for value in shown)
    assert not (here / "labels.csv").exists()
    assert not (here / "adapted").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_any_encoder_overrides(here, run, command):
    write("other", 2, ENCODER | {"name": "some:resnet"})
    status, _, err = run(f"{line(command, 'other')} --any-encoder")
    assert status != 2
    assert "encoder" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_or_file_that_states_none_warns(here, run, command):
    write("silent", 2, None)
    np.savez("file.npz", x=rows(2, 90)[0], y=np.array(CLASSES)[rows(2, 90)[1]])
    for name in ("silent", "file.npz"):
        status, _, err = run(f"{line(command, name)} {'--force' if command != 'evaluate' else ''}")
        assert status != 2
        assert not lacking(err, "name", "revision", "hash", "recipe", name)


def test_a_fact_that_only_one_of_them_states_warns(here, run):
    write("part", 2, {key: value for key, value in ENCODER.items() if key != "input"})
    status, _, err = run(line("evaluate", "part"))
    assert status == 0
    assert not lacking(err, "recipe", "compared")


def test_the_same_encoder_says_nothing_and_neither_does_its_precision(here, run):
    write("same", 2, ENCODER | {"precision": "bfloat16", "library": "torch 9"})
    status, _, err = run(line("evaluate", "same"))
    assert status == 0
    assert "encoder" not in err


def test_a_release_that_names_none_cannot_be_compared(here, run):
    write("unnamed", 0, None)
    assert run("fit noisy-sum unnamed --budget rho=1 --out plain")[0] == 0
    write("other", 2, ENCODER)
    status, _, err = run("evaluate plain other")
    assert status == 0
    assert "encoder" not in err
