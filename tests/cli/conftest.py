"""A small private, public and test store, and a way to run commands."""

import numpy as np
import pytest

from tacit.cli.main import main
from tacit.data.embeddings import EmbeddingStore

CLASSES = ["ant", "bee", "cow"]


def rows(rng, n):
    y = np.arange(n) % 3
    return np.eye(3, 5)[y] * 3 + rng.normal(size=(n, 5)), y


@pytest.fixture
def stores(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name, n in (("private", 90), ("test", 60)):
        EmbeddingStore.write(
            tmp_path / name,
            *rows(rng, n),
            classes=CLASSES,
            labels="index",
            declared_public=name == "test",
        )
    EmbeddingStore.write(tmp_path / "public", rows(rng, 40)[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run one command line; returns status, stdout, stderr."""

    def run(line):
        status = main(line.split())
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
