"""Shared by all tests: where the real data lies, and how a test says that it is absent."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can share helpers under tests/contracts

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def embeddings():
    """Folder of the real embeddings."""
    folder = SHARED / "embeddings"
    if not folder.is_dir():
        pytest.skip(f"real data is absent: {folder} does not exist")
    return folder
