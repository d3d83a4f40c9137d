import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


HELPERS = ("timing", "cells", "history")
# needs another package, in an environment of its own, and real embeddings
WITH_PEER = ("published",)
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in (*HELPERS, *WITH_PEER)]


@pytest.mark.thorough
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_benchmarks_run(script, monkeypatch, capsys):
    """They run and print ratios; what the ratios are is for `make bench`."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [str(script), "--quick"])
    runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out
    assert out.count("###") >= 2
    assert "nan" not in out
