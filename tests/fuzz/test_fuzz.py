"""Files of every format, damaged in 2,000 ways: each is read, or refused in one line, in 5 s and
500 MB.

Hypothesis draws the damage, from the same seeds each time. `FUZZ_EXAMPLES=1000 pytest tests/fuzz`
tries more for each.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutations import damaged, steps
from fuzz.seeds import SEEDS
from fuzz.worker import MEGABYTES, SECONDS, Worker

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="memory is measured by /proc, which only Linux has"
)

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "112"))  # of each of the formats
TEXTUAL = (".json", ".jsonl", ".yaml", ".csv", ".txt", ".md")


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    for seed in SEEDS:
        (folder / seed.__name__).mkdir()
        seed(folder / seed.__name__)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("name", [seed.__name__ for seed in SEEDS])
def test_damaged_files_are_read_or_refused_in_one_line(worker, whole, name):
    files = sorted(
        path.relative_to(whole / name) for path in (whole / name).rglob("*") if path.is_file()
    )

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 10_000), steps)
    def one(which, changes):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "f"
            shutil.copytree(whole / name, folder)
            file = folder / files[which % len(files)]
            file.write_bytes(damaged(file.read_bytes(), changes, file.suffix in TEXTUAL))
            check(worker.read(name, folder))

    one()


@pytest.mark.thorough
@pytest.mark.parametrize("name", [seed.__name__ for seed in SEEDS if seed.__name__ != "events"])
def test_whole_files_are_read(worker, whole, tmp_path, name):
    shutil.copytree(whole / name, tmp_path / "f")
    outcome = worker.read(name, tmp_path / "f")
    assert outcome.kind == "read", outcome


def check(outcome):
    assert outcome.kind in ("read", "refused"), outcome.said
    assert outcome.said.isprintable(), outcome
    assert len(outcome.said) < 1200, outcome
    assert outcome.said.count("A" * 201) == 0, outcome
    assert outcome.stderr == "", outcome
    assert outcome.seconds <= SECONDS, outcome
    assert outcome.megabytes <= MEGABYTES, outcome
