"""Shared by all tests: where the real data lies, and how a test says that it is absent."""

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tacit.compute import progress_display

# so that tests can share helpers under tests/contracts
sys.path.insert(0, str(Path(__file__).parent))

# no example may fail because the machine is busy
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

TESTS = Path(__file__).parent
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without looking for garbage, and leave what was collected out of later looks.

    Nothing of it goes away before the end, and looking at it took a sixth of the processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """Thorough tests, and those in slow.txt (a second or more together), are left out of `make
    check`.
    """
    listed = set((TESTS / "slow.txt").read_text(encoding="utf-8").split())
    for item in items:
        if f"tests/{item.path.relative_to(TESTS).as_posix()}::{item.originalname}" in listed:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch):
    """Stop the clock of progress lines: on a busy machine they would appear among what a test
    expects on stderr.
    """
    monkeypatch.setattr(progress_display, "monotonic", lambda: 0.0)


@pytest.fixture(scope="session")
def embeddings():
    """Folder of the real embeddings."""
    folder = SHARED / "embeddings"
    if not folder.is_dir():
        pytest.skip(f"real data is absent: {folder} does not exist")
    return folder


def splits(folder, name):
    """Rows and labels to learn from and to test on, and public rows of the same encoder."""
    arrays = {
        split: np.load(folder / name / f"{split}.npy")
        for split in ("train_x", "train_y", "test_x", "test_y")
    }
    return SimpleNamespace(
        **arrays, public=np.load(folder / "tiny_imagenet" / "train_x.npy")[:30000]
    )


@pytest.fixture(scope="session")
def cifar10(embeddings):
    return splits(embeddings / "mobilenetv2-in1k-160", "cifar10")


@pytest.fixture(scope="session")
def cifar100(embeddings):
    return splits(embeddings / "mobilenetv2-in1k-160", "cifar100")
